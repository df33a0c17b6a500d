//===- Index.cpp - What each name of a text means --------------------------===//

#include "frontend/Index.h"

#include "absl/strings/str_cat.h"

namespace weft::lang {

void NameIndex::add(NameEntry entry) {
  const std::pair key(entry.place.file, entry.place.offset);
  entries.emplace(key, std::move(entry));
}

void NameIndex::setType(const Place &place, std::string type, const Place &term) {
  auto found = entries.find({place.file, place.offset});
  if (found == entries.end() || !found->second.type.empty())
    return;
  found->second.type = std::move(type);
  found->second.term = term;
}

void NameIndex::addPath(const std::string &model, const std::string &path, const Place &declared) {
  paths.emplace(std::pair(model, path), declared);
}

const NameEntry *NameIndex::at(int32_t file, int32_t offset) const {
  auto next = entries.upper_bound({file, offset});
  if (next == entries.begin())
    return nullptr;
  const NameEntry &entry = std::prev(next)->second;
  const bool covers = entry.place.file == file && offset <= entry.place.offset + entry.place.length;
  return covers ? &entry : nullptr;
}

std::vector<const NameEntry *> NameIndex::usesOf(const Place &declared) const {
  std::vector<const NameEntry *> uses;
  for (const auto &[key, entry] : entries)
    if (entry.declared.length > 0 && entry.declared.file == declared.file &&
        entry.declared.offset == declared.offset)
      uses.push_back(&entry);
  return uses;
}

const NameEntry *NameIndex::declarationOf(const NameEntry &entry) const {
  auto found = entries.find({entry.declared.file, entry.declared.offset});
  return entry.declared.length > 0 && found != entries.end() ? &found->second : nullptr;
}

const Place *NameIndex::pathPlace(const std::string &model, const std::string &path) const {
  auto found = paths.find({model, path});
  return found == paths.end() ? nullptr : &found->second;
}

const NameEntry *NameIndex::sizeNamed(const std::string &model, std::string_view name) const {
  for (const auto &[key, entry] : entries)
    if (entry.isDeclaration() && entry.name == name && entry.model == model &&
        (entry.kind == NameKind::Setting || entry.kind == NameKind::Let))
      return &entry;
  return nullptr;
}

std::vector<const NameEntry *> NameIndex::all() const {
  std::vector<const NameEntry *> list;
  for (const auto &[key, entry] : entries)
    list.push_back(&entry);
  return list;
}

namespace {

class StatementIndexer {
public:
  StatementIndexer(const ast::File &file, NameIndex &names) : file(file), names(names) {}

  void run() {
    for (const ast::Model &model : file.models)
      declare(NameKind::Model, model.name, model.place, model.name.text);
    for (const ast::Plan &plan : file.plans) {
      heading(NameKind::Plan, plan.name, plan.model, plan.place);
      for (const ast::Clause &clause : plan.clauses)
        planClause(clause, plan.model.text);
    }
    for (const ast::Train &train : file.trains) {
      heading(NameKind::Recipe, train.name, train.model, train.place);
      for (const ast::Option &option : train.options)
        phrases(option.values, train.model.text);
    }
    for (const ast::Weights &table : file.weights) {
      heading(NameKind::Table, table.name, table.model, table.place);
      for (const ast::Clause &clause : table.clauses)
        tableClause(clause, table.model.text);
    }
  }

private:
  void declare(NameKind kind, const ast::Name &name, const Place &statement, const std::string &model) {
    names.add({kind, name.text, name.place, name.place, statement, {}, {}, model, {}});
  }

  void use(const ast::Name &name, const Place &declared) {
    NameEntry entry{NameKind::Value, name.text, name.place, declared, {}, {}, {}, {}, {}};
    if (const NameEntry *declaration = names.declarationOf(entry)) {
      entry.kind = declaration->kind;
      entry.type = declaration->type;
      entry.model = declaration->model;
      entry.path = declaration->path;
    }
    names.add(std::move(entry));
  }

  void heading(NameKind kind, const ast::Name &name, const ast::Name &model, const Place &statement) {
    declare(kind, name, statement, model.text);
    if (const ast::Model *found = file.findModel(model.text))
      use(model, found->name.place);
  }

  void planClause(const ast::Clause &clause, const std::string &model) {
    if (clause.verb.text != "use")
      return phrases(clause.phrases, model);
    for (const ast::Phrase &phrase : clause.phrases)
      for (const ast::Term &term : phrase.terms)
        if (const ast::Plan *plan = file.findPlan(term.text))
          use({term.text, term.place}, plan->name.place);
  }

  void tableClause(const ast::Clause &clause, const std::string &model) {
    phrases(clause.phrases, model);
    for (const ast::Phrase &phrase : clause.phrases)
      for (const ast::Term &term : phrase.terms)
        if (term.kind == ast::Term::Kind::List)
          for (const ast::Argument &argument : term.arguments)
            axes(argument.value, model);
    if (clause.verb.text == "sizes")
      for (const ast::Option &option : clause.options)
        size(option.key, model);
  }

  /// `[(3, heads, head), dim]`
  void axes(const ast::Phrase &phrase, const std::string &model) {
    for (const ast::Term &term : phrase.terms) {
      if (term.kind == ast::Term::Kind::Word)
        size({term.text, term.place}, model);
      else if (term.kind == ast::Term::Kind::Group)
        for (const ast::Argument &argument : term.arguments)
          for (const ast::Term &axis : argument.value.terms)
            if (axis.kind == ast::Term::Kind::Word)
              size({axis.text, axis.place}, model);
    }
  }

  void size(const ast::Name &name, const std::string &model) {
    if (const NameEntry *entry = names.sizeNamed(model, name.text))
      use(name, entry->place);
  }

  void phrases(const std::vector<ast::Phrase> &list, const std::string &model) {
    for (const ast::Phrase &phrase : list)
      for (const ast::Term &term : phrase.terms) {
        address(term, model);
        for (const ast::Argument &argument : term.arguments)
          for (const ast::Term &inner : argument.value.terms)
            address(inner, model);
      }
  }

  /// `block[0..9].attn.(wq, wk)`: each step that a path of the model leads to.
  void address(const ast::Term &term, const std::string &model) {
    if (term.kind != ast::Term::Kind::Address && term.kind != ast::Term::Kind::Word)
      return;
    std::string path;
    for (const ast::Segment &segment : term.segments) {
      std::string step;
      for (const ast::Name &name : segment.names) {
        step = path.empty() ? name.text : absl::StrCat(path, ".", name.text);
        if (const Place *declared = names.pathPlace(model, step))
          use(name, *declared);
      }
      path = step;
    }
  }

  const ast::File &file;
  NameIndex &names;
};

} // namespace

void indexStatements(const ast::File &file, NameIndex &names) { StatementIndexer(file, names).run(); }

} // namespace weft::lang

#include "frontend/WeightTerms.h"

#include "frontend/Terms.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <map>

namespace weft::lang {

using ast::Term;

namespace {

/// The name of the index in an address (`i` of `block[i].attn.wq`), or empty.
struct Pattern {
  std::string index;              // i
  std::vector<std::string> names; // wq, or wq, wk, wv
  std::vector<const ast::Segment *> segments;
};

class TableChecker {
public:
  TableChecker(const ast::File &file, const SourceFiles &sources, const Model &model,
               Diagnostics &diagnostics)
      : file(file), sources(sources), model(model), diagnostics(diagnostics) {
    for (ParameterInfo &parameter : parametersOf(model)) {
      order.push_back(parameter.path);
      parameters.emplace(parameter.path, std::move(parameter));
    }
  }

  const ast::Weights *select(std::string_view name);
  void read(const ast::Weights &tree, WeightTable &table);
  void checkAll(const ast::Weights &tree);

private:
  void readSizes(const ast::Clause &clause, WeightTable &table);
  void readStrings(const ast::Clause &clause, WeightTable &table);
  void readExpected(const ast::Clause &clause, WeightTable &table);
  void readEntry(const ast::Clause &clause, WeightTable &table);
  void expand(const ast::Clause &clause, const Pattern &pattern, const Term &key, const Term &layout,
              bool tied, WeightTable &table);
  std::optional<Pattern> patternOf(const Term &address);
  std::string pathOf(const Pattern &pattern, const std::string &name, int64_t index) const;
  bool readLayout(const Term &layout, WeightEntry &entry);
  bool checkStack(const Term &layout, const WeightEntry &entry, size_t stacks);
  void badLine(const Place &place, std::string_view expected);
  void unknownParameter(const ast::Segment &at, const std::string &path);

  const ast::File &file;
  const SourceFiles &sources;
  const Model &model;
  Diagnostics &diagnostics;
  std::vector<std::string> order;
  std::map<std::string, ParameterInfo> parameters;
  std::map<std::string, Place> named, keys; // by parameter, by file key
};

const ast::Weights *TableChecker::select(std::string_view name) {
  std::vector<std::string> names;
  const ast::Weights *chosen = nullptr;
  int count = 0;
  for (const ast::Weights &table : file.weights) {
    names.push_back(table.name.text);
    bool fits = name.empty() ? table.model.text == model.name : table.name.text == name;
    // `huggingface` may name a table of each model: the one for this model comes first.
    if (fits && (!chosen || table.model.text == model.name))
      chosen = &table;
    count += fits && table.model.text == model.name;
  }
  if (!chosen || (name.empty() && count > 1)) {
    std::string near = nearest(name, names);
    diagnostics
        .errorAnywhere(
            Code::W0621,
            absl::StrCat(!name.empty() ? absl::StrCat("there is no weight table `", std::string(name), "`")
                         : count > 1 ? absl::StrCat("there are several weight tables for model ", model.name)
                                     : absl::StrCat("there is no weight table for model ", model.name),
                         "; there are ", names.empty() ? std::string("none") : listed(names)))
        .advise(near.empty() ? std::string() : absl::StrCat("did you mean `", near, "`?"));
    return nullptr;
  }
  if (chosen->model.text != model.name) {
    diagnostics.error(Code::W0622, chosen->model.place,
                      absl::StrCat("weight table `", chosen->name.text, "` is for model ", chosen->model.text,
                                   ", and the model is ", model.name));
    return nullptr;
  }
  return chosen;
}

void TableChecker::badLine(const Place &place, std::string_view expected) {
  diagnostics.error(Code::W0623, place,
                    absl::StrCat("a weight table expects ", std::string(expected), ", found `",
                                 std::string(sources.textAt(place)), "`"));
}

void TableChecker::readSizes(const ast::Clause &clause, WeightTable &table) {
  bool fits = clause.phrases.size() == 1 && clause.phrases[0].terms.size() == 1 &&
              clause.phrases[0].terms[0].kind == Term::Kind::String;
  if (!fits) {
    badLine(clause.place, "`sizes \"FILE\" { setting = key, ... }`");
    return;
  }
  table.sizesFile = clause.phrases[0].terms[0].text;
  for (const ast::Option &option : clause.options) {
    std::vector<std::string> names;
    const Setting *found = nullptr;
    for (const Setting &setting : model.settings) {
      names.push_back(setting.name);
      if (setting.name == option.key.text)
        found = &setting;
    }
    if (!found || !found->words.empty()) {
      std::string near = nearest(option.key.text, names);
      diagnostics
          .error(Code::W0631, option.key.place,
                 found ? absl::StrCat("setting `", option.key.text, "` is a choice of words and no size")
                       : absl::StrCat("model ", model.name, " has no setting `", option.key.text,
                                      "`; it has ", listed(names)))
          .advise(near.empty() || found ? std::string() : absl::StrCat("did you mean `", near, "`?"));
      continue;
    }
    SizeSource source;
    if (option.values.size() == 1)
      source = sourceOf(option.key.text, option.values[0]);
    if (source.keys.empty())
      badLine(option.place, "a key of the file, such as `n_embd`, `a.b or c` or `n_inner or default`");
    else
      table.sizes.push_back(std::move(source));
  }
}

/// `expect KEY value or value, KEY value, ...`
void TableChecker::readExpected(const ast::Clause &clause, WeightTable &table) {
  bool fits = !clause.phrases.empty() && !clause.braces;
  for (const ast::Phrase &phrase : clause.phrases) {
    Expectation expectation;
    fits = fits && phrase.terms.size() % 2 == 0 && !phrase.terms[0].segments.empty();
    if (!fits)
      break;
    for (const ast::Segment &segment : phrase.terms[0].segments) {
      fits = fits && !segment.indexed && segment.names.size() == 1;
      expectation.key.push_back(segment.names[0].text);
    }
    for (size_t i = 1; i < phrase.terms.size(); ++i) {
      std::optional<std::string> value = i % 2 == 1 ? jsonOf(phrase.terms[i]) : std::nullopt;
      fits = fits && (i % 2 == 1 ? value.has_value() : isWord(phrase.terms[i], "or"));
      if (value)
        expectation.allowed.push_back(*std::move(value));
    }
    table.expected.push_back(std::move(expectation));
  }
  if (!fits)
    badLine(clause.place, "`expect KEY value or value, ...` with values in quotes, numbers, `true`, `false` "
                          "or `absent`");
}

void TableChecker::readStrings(const ast::Clause &clause, WeightTable &table) {
  bool prefix = clause.verb.text == "prefix";
  const char *expected = prefix ? "`prefix \"a\" or \"b\"`" : "`ignore \"key\", ...`";
  std::vector<std::string> strings;
  bool fits = !clause.phrases.empty() && (!prefix || clause.phrases.size() == 1);
  for (const ast::Phrase &phrase : clause.phrases)
    for (size_t i = 0; i < phrase.terms.size(); ++i) {
      bool separator = prefix && i % 2 == 1;
      fits = fits &&
             (separator ? isWord(phrase.terms[i], "or")
                        : phrase.terms[i].kind == Term::Kind::String && (prefix || phrase.terms.size() == 1));
      if (!separator)
        strings.push_back(phrase.terms[i].text);
    }
  if (!fits || strings.empty()) {
    badLine(clause.place, expected);
    return;
  }
  std::vector<std::string> &target = prefix ? table.prefixes : table.ignored;
  if (prefix)
    target.clear();
  target.insert(target.end(), strings.begin(), strings.end());
}

std::optional<Pattern> TableChecker::patternOf(const Term &address) {
  Pattern pattern;
  for (const ast::Segment &segment : address.segments) {
    pattern.segments.push_back(&segment);
    bool last = &segment == &address.segments.back();
    if (segment.names.size() > 1 && !last) {
      diagnostics.error(Code::W0623, segment.place, "names in parentheses stand at the end of a path");
      return std::nullopt;
    }
    if (!segment.indexed)
      continue;
    bool named = segment.indices.size() == 1 && !segment.indices[0].name.empty();
    if (!named || !pattern.index.empty()) {
      diagnostics.error(Code::W0623, segment.place,
                        "a path of a weight table takes one index with a name, such as `block[i]`");
      return std::nullopt;
    }
    pattern.index = segment.indices[0].name;
  }
  for (const ast::Name &name : address.segments.back().names)
    pattern.names.push_back(name.text);
  return pattern;
}

std::string TableChecker::pathOf(const Pattern &pattern, const std::string &name, int64_t index) const {
  std::string path;
  for (size_t i = 0; i < pattern.segments.size(); ++i) {
    const ast::Segment &segment = *pattern.segments[i];
    bool last = i + 1 == pattern.segments.size();
    absl::StrAppend(&path, path.empty() ? "" : ".", last ? name : segment.names[0].text);
    if (segment.indexed)
      absl::StrAppend(&path, ".", index);
  }
  return path;
}

void TableChecker::unknownParameter(const ast::Segment &at, const std::string &path) {
  std::string near = nearest(path, order);
  diagnostics
      .error(Code::W0624, at.place, absl::StrCat("model ", model.name, " has no parameter `", path, "`"))
      .advise(near.empty() ? std::string("`weft params` lists the parameters")
                           : absl::StrCat("did you mean `", near, "`?"));
}

bool TableChecker::checkStack(const Term &layout, const WeightEntry &entry, size_t stacks) {
  size_t count = entry.parameters.size();
  if (stacks == count || (stacks == 0 && count == 1))
    return true;
  diagnostics
      .error(Code::W0628, layout.place,
             stacks == 0
                 ? absl::StrCat("the line names ", count, " parameters, and its layout stacks none")
                 : absl::StrCat("the line names ", count, " parameters, and its layout stacks ", stacks))
      .advise(absl::StrCat("write the number of parameters first in parentheses, such as `(", count,
                           ", heads, head)`"));
  return false;
}

bool TableChecker::readLayout(const Term &layout, WeightEntry &entry) {
  const ParameterInfo &parameter = parameters.at(entry.parameters[0]);
  std::map<std::string, int64_t> sizes;
  for (size_t i = 0; i < parameter.axes.size(); ++i)
    sizes[parameter.axes[i]] = parameter.shape[i];
  std::vector<std::string> used;
  size_t stacks = 0;
  bool fits = layout.kind == Term::Kind::List;
  for (const ast::Argument &argument : layout.arguments) {
    const Term *part = argument.value.terms.size() == 1 ? &argument.value.terms[0] : nullptr;
    LayoutAxis axis;
    axis.size = 1;
    std::vector<const Term *> items;
    if (part && part->kind == Term::Kind::Group) {
      for (const ast::Argument &inner : part->arguments)
        items.push_back(inner.value.terms.size() == 1 ? &inner.value.terms[0] : nullptr);
    } else {
      items.push_back(part);
    }
    for (const Term *item : items) {
      if (item && item->kind == Term::Kind::Number && isWhole(item->number) && item->number >= 1 &&
          stacks == 0 && axis.axes.empty()) {
        stacks = static_cast<size_t>(item->number);
        axis.stack = true;
        axis.size *= static_cast<int64_t>(item->number);
      } else if (item && item->kind == Term::Kind::Word) {
        used.push_back(item->text);
        axis.axes.push_back(item->text);
        axis.size *= sizes.count(item->text) ? sizes[item->text] : 1;
      } else {
        fits = false;
      }
    }
    entry.layout.push_back(std::move(axis));
  }
  std::vector<std::string> wanted = parameter.axes;
  std::sort(wanted.begin(), wanted.end());
  std::sort(used.begin(), used.end());
  if (!fits || used != wanted) {
    diagnostics
        .error(Code::W0627, layout.place,
               absl::StrCat("the layout must hold each axis of `", parameter.path,
                            "` once: ", parameter.axes.empty() ? std::string("none") : listed(parameter.axes),
                            ", found `", std::string(sources.textAt(layout.place)), "`"))
        .note(parameter.place, "the parameter is declared here")
        .advise("write the axes in the file's order; parentheses merge axes, a number stacks parameters");
    return false;
  }
  return checkStack(layout, entry, stacks);
}

void TableChecker::expand(const ast::Clause &clause, const Pattern &pattern, const Term &key,
                          const Term &layout, bool tied, WeightTable &table) {
  std::string mark = absl::StrCat("{", pattern.index, "}");
  bool inKey = key.text.find('{') != std::string::npos;
  bool agrees = pattern.index.empty() ? !inKey : key.text.find(mark) != std::string::npos;
  if (!agrees) {
    diagnostics
        .error(Code::W0630, key.place,
               pattern.index.empty()
                   ? absl::StrCat("the file's name `", key.text, "` has an index, and the path has none")
                   : absl::StrCat("the path counts layers with `", pattern.index, "`, and the file's name `",
                                  key.text, "` has no `", mark, "`"))
        .advise("write the index on both sides: `block[i]...` and `{i}`");
    return;
  }
  const ast::Segment &last = *pattern.segments.back();
  for (int64_t i = 0;; ++i) {
    WeightEntry entry;
    entry.key = pattern.index.empty() ? key.text : absl::StrReplaceAll(key.text, {{mark, absl::StrCat(i)}});
    entry.tied = tied;
    entry.place = clause.place;
    size_t missing = 0;
    for (const std::string &name : pattern.names) {
      entry.parameters.push_back(pathOf(pattern, name, i));
      missing += !parameters.count(entry.parameters.back());
    }
    if (missing == pattern.names.size() && i > 0)
      return; // past the last layer
    for (const std::string &path : entry.parameters)
      if (!parameters.count(path)) {
        unknownParameter(last, path);
        return;
      }
    for (const std::string &path : entry.parameters)
      if (parameters.at(path).axes != parameters.at(entry.parameters[0]).axes) {
        diagnostics.error(Code::W0632, last.place,
                          absl::StrCat("parameters of one line must have the same axes: `",
                                       entry.parameters[0], "` has [",
                                       listed(parameters.at(entry.parameters[0]).axes), "], `", path,
                                       "` has [", listed(parameters.at(path).axes), "]"));
        return;
      }
    if (!readLayout(layout, entry))
      return;
    for (const std::string &path : entry.parameters)
      if (auto [before, fresh] = named.emplace(path, clause.place); !fresh && !tied) {
        diagnostics.error(Code::W0625, clause.place, absl::StrCat("parameter `", path, "` is named twice"))
            .note(before->second, "the other line is here")
            .advise("a second copy in the files is written `tied NAME == \"key\" [layout]`");
        return;
      }
    if (auto [before, fresh] = keys.emplace(entry.key, key.place); !fresh) {
      diagnostics
          .error(Code::W0629, key.place, absl::StrCat("the file's name `", entry.key, "` is used twice"))
          .note(before->second, "the other line is here");
      return;
    }
    table.entries.push_back(std::move(entry));
    if (pattern.index.empty())
      return;
  }
}

void TableChecker::readEntry(const ast::Clause &clause, WeightTable &table) {
  const char *expected =
      "`NAME <-> \"key\" [layout]`, `tied NAME == \"key\" [layout]`, `sizes`, `expect`, `prefix` or `ignore`";
  bool tied = clause.verb.text == "tied";
  if (clause.phrases.size() != 1 || clause.phrases[0].terms.size() != 4) {
    badLine(clause.place, expected);
    return;
  }
  const std::vector<Term> &terms = clause.phrases[0].terms;
  bool fits = !terms[0].segments.empty() && terms[1].kind == Term::Kind::Symbol &&
              terms[1].text == (tied ? "==" : "<->") && terms[2].kind == Term::Kind::String &&
              terms[3].kind == Term::Kind::List;
  if (!fits) {
    badLine(clause.place, expected);
    return;
  }
  if (std::optional<Pattern> pattern = patternOf(terms[0]))
    expand(clause, *pattern, terms[2], terms[3], tied, table);
}

void TableChecker::read(const ast::Weights &tree, WeightTable &table) {
  // Copies may be written before what they copy: they are read last.
  for (bool tied : {false, true})
    for (const ast::Clause &clause : tree.clauses) {
      const std::string &verb = clause.verb.text;
      if ((verb == "tied") != tied)
        continue;
      if (verb == "sizes")
        readSizes(clause, table);
      else if (verb == "prefix" || verb == "ignore")
        readStrings(clause, table);
      else if (verb == "expect")
        readExpected(clause, table);
      else if (verb.empty() || tied)
        readEntry(clause, table);
      else
        badLine(clause.verb.place,
                "`NAME <-> \"key\" [layout]`, `tied`, `sizes`, `expect`, `prefix` or `ignore`");
    }
}

void TableChecker::checkAll(const ast::Weights &tree) {
  std::vector<std::string> missing;
  for (const std::string &path : order)
    if (!named.count(path))
      missing.push_back(path);
  if (missing.empty())
    return;
  std::string text = missing[0];
  for (size_t i = 1; i < std::min<size_t>(missing.size(), 4); ++i)
    absl::StrAppend(&text, ", ", missing[i]);
  if (missing.size() > 4)
    absl::StrAppend(&text, " and ", missing.size() - 4, " more");
  diagnostics
      .error(Code::W0626, tree.name.place,
             absl::StrCat("no line names ", missing.size(), " of ", order.size(), " parameters: ", text))
      .note(parameters.at(missing[0]).place, "the first one is declared here");
}

} // namespace

std::vector<int64_t> WeightEntry::shape() const {
  std::vector<int64_t> sizes;
  for (const LayoutAxis &axis : layout)
    sizes.push_back(axis.size);
  return sizes;
}

std::optional<WeightTable> checkWeights(const ast::File &file, const SourceFiles &sources,
                                        std::string_view name, const Model &model, Diagnostics &diagnostics) {
  int before = diagnostics.errorCount();
  TableChecker checker(file, sources, model, diagnostics);
  const ast::Weights *tree = checker.select(name);
  if (!tree)
    return std::nullopt;
  WeightTable table;
  table.name = tree->name.text;
  table.model = model.name;
  checker.read(*tree, table);
  if (diagnostics.errorCount() == before)
    checker.checkAll(*tree);
  if (diagnostics.errorCount() > before)
    return std::nullopt;
  return table;
}

} // namespace weft::lang

//===- Completion.cpp - What could be written here -------------------------===//

#include "tools/lsp/Completion.h"

#include "tools/lsp/Context.h"

#include "absl/strings/str_cat.h"

#include <set>

namespace weft::lsp {
namespace {

using lang::NameEntry;
using lang::NameKind;
using lang::WordPlace;

/// CompletionItemKind of the protocol.
enum class ItemKind {
  Function = 3,
  Field = 5,
  Variable = 6,
  Module = 9,
  Property = 10,
  Value = 12,
  Keyword = 14,
  Constant = 21
};

ItemKind kindOf(NameKind kind) {
  switch (kind) {
  case NameKind::Model:
  case NameKind::Plan:
  case NameKind::Recipe:
  case NameKind::Table:
  case NameKind::Layer:
  case NameKind::Branch:
    return ItemKind::Module;
  case NameKind::Setting:
  case NameKind::Let:
  case NameKind::Index:
    return ItemKind::Constant;
  case NameKind::Choice:
    return ItemKind::Value;
  case NameKind::Param:
    return ItemKind::Field;
  case NameKind::Def:
  case NameKind::Function:
  case NameKind::Operator:
    return ItemKind::Function;
  case NameKind::Argument:
  case NameKind::Value:
  case NameKind::Input:
    break;
  }
  return ItemKind::Variable;
}

class Completer {
public:
  Completer(const Analysis &analysis, size_t offset)
      : analysis(analysis), offset(static_cast<int32_t>(offset)),
        context(contextAt(analysis.sources.file(analysis.own).text, offset)) {}

  rt::Json run() {
    if (!context.place)
      return items;
    if (context.afterFor)
      addNames([](const NameEntry &entry) { return entry.kind == NameKind::Model; });
    else if (context.afterDot)
      addSteps(context.steps);
    else if (!context.key.empty())
      addValues();
    else if (*context.place == WordPlace::Model)
      addModel();
    else
      addStatement();
    return items;
  }

private:
  void add(const std::string &label, ItemKind kind, const std::string &detail,
           std::string_view explained = "") {
    if (!offered.insert(label).second)
      return;
    rt::Json item = {{"label", label}, {"kind", static_cast<int>(kind)}};
    if (!detail.empty())
      item["detail"] = detail;
    if (!explained.empty())
      item["documentation"] = std::string(explained);
    items.push_back(std::move(item));
  }

  template <typename Wanted> void addNames(Wanted wanted) {
    for (const NameEntry *entry : analysis.names.all())
      if (entry->isDeclaration() && wanted(*entry))
        add(entry->name, kindOf(entry->kind), entry->type);
  }

  void addWords(WordPlace place) {
    for (const lang::LanguageWord &word : lang::languageWords())
      if (word.place == place)
        add(std::string(word.name), word.values.empty() ? ItemKind::Keyword : ItemKind::Property,
            std::string(word.values), word.meaning);
  }

  bool isKnownHere(const NameEntry &entry) const {
    return entry.extent.length > 0 && entry.extent.file == analysis.own && entry.extent.offset <= offset &&
           offset <= entry.extent.offset + entry.extent.length;
  }

  void addModel() {
    addNames([&](const NameEntry &entry) {
      const bool isSize = entry.kind == NameKind::Setting || entry.kind == NameKind::Let;
      const bool isPath = entry.kind == NameKind::Layer || entry.kind == NameKind::Branch;
      return isKnownHere(entry) && !isPath && (isSize || !context.inAxes);
    });
    if (context.inAxes)
      return;
    for (const lang::LanguageFunction &function : lang::languageFunctions())
      if (std::isalpha(static_cast<unsigned char>(function.name[0])))
        add(std::string(function.name), ItemKind::Function, std::string(function.signature), function.value);
    addWords(WordPlace::Model);
  }

  void addStatement() {
    addWords(*context.place);
    if (*context.place == WordPlace::Plan || *context.place == WordPlace::Table)
      addSteps({});
    if (*context.place == WordPlace::Table)
      addNames([&](const NameEntry &entry) {
        return entry.model == context.model &&
               (entry.kind == NameKind::Setting || entry.kind == NameKind::Let);
      });
  }

  /// What an address can go on with behind `steps`.
  void addSteps(const std::vector<std::string> &steps) {
    std::string prefix;
    for (const std::string &step : steps)
      absl::StrAppend(&prefix, step, ".");
    addNames([&](const NameEntry &entry) {
      return !entry.path.empty() && entry.model == context.model && entry.path == prefix + entry.name;
    });
    if (!steps.empty() && *context.place == WordPlace::Plan)
      add("heads", ItemKind::Field, "query heads, counted row-major");
  }

  /// Single words in the values of the option's key.
  void addValues() {
    const lang::LanguageWord *option = lang::languageWord(*context.place, context.key);
    if (!option)
      return;
    const std::string_view values = option->values;
    for (size_t start = values.find('`'); start != std::string_view::npos;) {
      const size_t end = values.find('`', start + 1);
      if (end == std::string_view::npos)
        return;
      const std::string word(values.substr(start + 1, end - start - 1));
      const std::string name = word.substr(0, word.find('('));
      if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string::npos)
        add(name, ItemKind::Value, word);
      start = values.find('`', end + 1);
    }
  }

  const Analysis &analysis;
  int32_t offset;
  Context context;
  std::set<std::string> offered;
  rt::Json items = rt::Json::array();
};

} // namespace

rt::Json completionsAt(const Analysis &analysis, size_t offset) { return Completer(analysis, offset).run(); }

} // namespace weft::lsp

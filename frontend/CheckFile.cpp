//===- CheckFile.cpp - Everything that one file holds ----------------------===//

#include "frontend/CheckFile.h"

#include "frontend/Recipe.h"
#include "frontend/Weights.h"

#include "absl/strings/str_cat.h"

namespace weft::lang {
namespace {

class FileChecker {
public:
  FileChecker(const ast::File &file, int32_t own, const SourceFiles &sources, const Overrides &sets,
              Diagnostics &diagnostics, NameIndex *names)
      : file(file), own(own), sources(sources), sets(sets), diagnostics(diagnostics), names(names) {}

  FileStatements check() {
    for (const ast::Model &model : file.models)
      if (isOwn(model.place, result.models))
        modelCalled(model.name);
    for (const ast::Plan &plan : file.plans)
      if (isOwn(plan.place, result.plans))
        if (const Model *model = modelCalled(plan.model))
          if (std::optional<Plan> checked = checkPlan(file, sources, plan.name.text, *model, diagnostics))
            result.plansChecked.push_back(std::move(*checked));
    for (const ast::Train &train : file.trains)
      if (isOwn(train.place, result.recipes))
        if (const Model *model = modelCalled(train.model))
          if (std::optional<rt::Recipe> recipe =
                  checkRecipe(file, sources, train.name.text, *model, diagnostics))
            result.positions[model->name].push_back(recipe->positions);
    for (const ast::Weights &table : file.weights)
      if (isOwn(table.place, result.tables))
        if (const Model *model = modelCalled(table.model))
          checkWeights(file, sources, table.name.text, *model, diagnostics);
    return std::move(result);
  }

private:
  bool isOwn(const Place &place, int &count) const {
    const bool found = place.file == own;
    count += found;
    return found;
  }

  /// Each model is checked once, however many statements are for it.
  const Model *modelCalled(const ast::Name &name) {
    auto [entry, isNew] = result.checked.try_emplace(name.text);
    if (!isNew)
      return entry->second ? &*entry->second : nullptr;
    if (const ast::Model *tree = file.findModel(name.text)) {
      const Overrides given = setsFor(*tree);
      entry->second = names ? checkModel(file, sources, name.text, given, diagnostics, *names)
                            : checkModel(file, sources, name.text, given, diagnostics);
      return entry->second ? &*entry->second : nullptr;
    }
    std::vector<std::string> known;
    for (const ast::Model &model : file.models)
      known.push_back(model.name.text);
    const std::string close = nearest(name.text, known);
    diagnostics.error(Code::W0208, name.place, absl::StrCat("there is no model `", name.text, "`"))
        .advise(close.empty() ? "`use \"FILE.weft\"` brings the models of another file"
                              : absl::StrCat("did you mean `", close, "`?"));
    return nullptr;
  }

  /// Of one model: several models in a file need not have the same settings.
  Overrides setsFor(const ast::Model &model) const {
    Overrides given;
    for (const auto &[name, value] : sets)
      for (const ast::Setting &setting : model.settings)
        if (setting.name.text == name)
          given.emplace_back(name, value);
    return given;
  }

  const ast::File &file;
  int32_t own;
  const SourceFiles &sources;
  const Overrides &sets;
  Diagnostics &diagnostics;
  NameIndex *names;
  FileStatements result;
};

} // namespace

FileStatements checkStatements(const ast::File &file, int32_t own, const SourceFiles &sources,
                               const Overrides &sets, Diagnostics &diagnostics, NameIndex *names) {
  return FileChecker(file, own, sources, sets, diagnostics, names).check();
}

} // namespace weft::lang

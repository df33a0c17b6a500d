//===- error-pages.h - Running the examples of the documentation -*- C++ -*-===//
//
// Takes ```weft blocks out of Markdown and checks them as a command would:
// parse, models with --set, plans, recipes and weight tables.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Checker.h"
#include "frontend/Parser.h"
#include "frontend/Plan.h"
#include "frontend/Recipe.h"
#include "frontend/Weights.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace weft::lang {

inline std::string slurp(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// ```weft wrong --set dim=3 model=m
struct Example {
  std::vector<std::string> words; // behind `weft`
  std::string text;
  bool has(const std::string &word) const {
    return std::find(words.begin(), words.end(), word) != words.end();
  }
};

inline std::vector<Example> examplesOf(const std::string &markdown) {
  std::vector<Example> examples;
  std::istringstream lines(markdown);
  std::string line;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (!inside && line.rfind("```weft", 0) == 0) {
      inside = true;
      examples.emplace_back();
      std::istringstream words(line.substr(7));
      for (std::string word; words >> word;)
        examples.back().words.push_back(word);
    } else if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      examples.back().text += line + "\n";
    }
  }
  return examples;
}

/// What a command was asked for; nullopt: everything there is.
struct Asked {
  std::optional<std::string> model, recipe, weights;
  Overrides settings, recipeSettings;
};

inline Asked askedBy(const Example &example) {
  Asked asked;
  for (size_t i = 0; i < example.words.size(); ++i) {
    const std::string &word = example.words[i];
    size_t equals = word.find('=');
    std::string key = word.substr(0, equals),
                value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (i > 0 && example.words[i - 1] == "--set") {
      const std::vector<std::string> &keys = recipeKeys();
      bool recipe = std::find(keys.begin(), keys.end(), key) != keys.end();
      (recipe ? asked.recipeSettings : asked.settings).push_back({key, value});
    } else if (key == "model") {
      asked.model = value;
    } else if (key == "recipe") {
      asked.recipe = value;
    } else if (key == "weights") {
      asked.weights = value;
    }
  }
  return asked;
}

inline void checkOne(const ast::File &file, const SourceFiles &sources, const std::string &name,
                     const Asked &asked, Diagnostics &diagnostics) {
  std::optional<Model> model = checkModel(file, sources, name, asked.settings, diagnostics);
  if (!model)
    return;
  std::vector<std::optional<rt::Recipe>> recipes;
  for (const ast::Train &train : file.trains)
    if (!asked.recipe && train.model.text == model->name && train.place.file == file.sources.back())
      recipes.push_back(
          checkRecipe(file, sources, train.name.text, *model, diagnostics, asked.recipeSettings));
  if (asked.recipe && asked.recipe->empty()) { // as if a second recipe stood in the file
    ast::File twice =
        parseText("a", "train a for " + model->name + " {}\ntrain b for " + model->name + " {}\n",
                  const_cast<SourceFiles &>(sources), diagnostics);
    checkRecipe(twice, sources, "", *model, diagnostics);
  } else if (asked.recipe) {
    recipes.push_back(checkRecipe(file, sources, *asked.recipe, *model, diagnostics, asked.recipeSettings));
  }
  for (const ast::Plan &tree : file.plans) {
    if (tree.model.text != model->name)
      continue;
    std::optional<Plan> plan = checkPlan(file, sources, tree.name.text, *model, diagnostics);
    for (const std::optional<rt::Recipe> &recipe : recipes)
      if (plan && recipe)
        checkPlanAgainst(*plan, recipe->positions, recipe->microBatches, diagnostics);
  }
  for (const ast::Weights &table : file.weights)
    if (!asked.weights && table.model.text == model->name)
      checkWeights(file, sources, table.name.text, *model, diagnostics);
  if (asked.weights)
    checkWeights(file, sources, *asked.weights, *model, diagnostics);
}

/// The codes that the example gives, and its messages in `rendered`.
inline std::set<std::string> codesOf(const Example &example, std::string *rendered = nullptr) {
  SourceFiles sources;
  Diagnostics diagnostics;
  ast::File file = parseText(WEFT_SOURCE_DIR "/models/example.weft", example.text, sources, diagnostics);
  Asked asked = askedBy(example);
  if (!diagnostics.hasErrors()) {
    if (asked.model)
      checkOne(file, sources, *asked.model, asked, diagnostics);
    else
      for (const ast::Model &model : file.models)
        checkOne(file, sources, model.name.text, asked, diagnostics);
  }
  if (rendered)
    *rendered = diagnostics.render(sources);
  std::set<std::string> codes;
  for (const Diagnostic &entry : diagnostics.sorted())
    codes.insert(std::string(codeName(entry.code)));
  return codes;
}

} // namespace weft::lang

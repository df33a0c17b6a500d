//===- Recipe.h - Checking `train` blocks -----------------------*- C++ -*-===//
//
// From `train NAME for MODEL { ... }` to the plain rt::Recipe that the runtime
// follows, and from its sets of parameters to the parameters of a model.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Ast.h"
#include "frontend/Checker.h"
#include "frontend/Model.h"
#include "runtime/Recipe.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace weft::lang {

/// The keys of a recipe, in the order of docs/language.md. A driver gives
/// `--set` of another name to the model.
const std::vector<std::string> &recipeKeys();

/// Checks recipe `name` of `file` (empty: the only one for the model), with
/// `overrides` of its keys in force (`steps=100`, `data=my.txt`; file names may
/// stand without quotes). Errors go to `diagnostics` (W05xx).
std::optional<rt::Recipe> checkRecipe(const ast::File &file, const SourceFiles &sources,
                                      std::string_view name, const Model &model, Diagnostics &diagnostics,
                                      const Overrides &overrides = {});

/// The value of `--set key=value` as a recipe holds it: file names may stand
/// without quotes on a command line.
std::string overrideText(const std::string &key, const std::string &value);

/// `steps`, `tokens` and `epochs`: how long training lasts. One given from
/// outside takes the place of the others.
bool isLength(std::string_view key);

/// Which optimiser steps a parameter, and which ones decay. `matrices` are those
/// of matricesOf (frontend/PlanSites.h) with two axes or more; a bias of two axes is none.
struct ParameterGroups {
  std::map<std::string, int32_t> optimizer; // path to index into Recipe::optimizers
  std::set<std::string> decayed;            // paths
};
/// The groups of `recipe`; parameters that no optimiser takes are absent.
ParameterGroups parameterGroups(const rt::Recipe &recipe, const Model &model);

/// Whether the parameter `path` (`block.3.attn.wq`) is the address (`block[0..9].attn`)
/// or lies under it.
bool addressCovers(std::string_view address, std::string_view path);

} // namespace weft::lang

//===- CheckFile.h - Everything that one file holds -------------*- C++ -*-===//
#pragma once

#include "frontend/Index.h"
#include "frontend/Plan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::lang {

/// What the statements of a file came to.
struct FileStatements {
  int models = 0, plans = 0, recipes = 0, tables = 0;    // that stand in the file itself
  std::map<std::string, std::optional<Model>> checked;   // by name; nullopt: refused
  std::vector<Plan> plansChecked;                        // those without an error
  std::map<std::string, std::vector<int64_t>> positions; // of a row, by model: each recipe's
};

/// Checks models, plans, recipes and weight tables that stand in file number
/// `own`; files that it uses only lend their models. Each model is checked once,
/// with those of `sets` that it has; its names go to `names` unless that is null.
FileStatements checkStatements(const ast::File &file, int32_t own, const SourceFiles &sources,
                               const Overrides &sets, Diagnostics &diagnostics, NameIndex *names = nullptr);

} // namespace weft::lang

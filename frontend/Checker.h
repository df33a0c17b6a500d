//===- Checker.h - From tree to checked model -------------------*- C++ -*-===//
#pragma once

#include "frontend/Ast.h"
#include "frontend/Model.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::lang {

/// `--set name=value`, in order; a later one of the same name wins.
using Overrides = std::vector<std::pair<std::string, std::string>>;

/// Most layers (unrolled) and nodes (unrolled) of a model.
constexpr int64_t kLayerLimit = 10'000;
constexpr int64_t kModelNodeLimit = 1'000'000;

/// Checks model `modelName` of `file` (empty: the only one) with its settings
/// overridden. Names are resolved, defs pasted, axes lined up, and every
/// formula of every layer was evaluated once. Errors go to `diagnostics`; with
/// any error there is no model.
std::optional<Model> checkModel(const ast::File &file, const SourceFiles &sources, std::string_view modelName,
                                const Overrides &overrides, Diagnostics &diagnostics);

} // namespace weft::lang

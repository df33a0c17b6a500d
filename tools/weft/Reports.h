//===- Reports.h - What a recipe wants reported ------------------*- C++ -*-===//
#pragma once

#include "tools/weft/Session.h"

#include "runtime/data/Corpus.h"
#include "runtime/measure/Regions.h"
#include "runtime/measure/Watch.h"

#include <memory>
#include <string>
#include <vector>

namespace weft {

/// The recipe's `watch` with its parameters. Errors: InvalidArgument for a call
/// that finds none, with what there is.
absl::StatusOr<std::vector<rt::Watched>> watchedOf(const Program &program);

/// Labels of what `data` holds out, or null when the recipe has no regions or
/// nothing is held out. Errors: of RegionLabels::make.
absl::StatusOr<std::shared_ptr<const rt::RegionLabels>> regionLabels(const rt::Recipe &recipe,
                                                                     const rt::Dataset &data);

} // namespace weft

//===- Windows.h - Windows that a plan gives ---------------------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Weft.h"

#include <limits>

namespace weft {

/// The window without a bound.
constexpr int32_t kFullWindow = std::numeric_limits<int32_t>::max();

/// The windows of the heads of `op`, in the branch `path`: those of the module's
/// attribute `weft.windows`, else `own` for each. Errors: another number of heads,
/// a window below 1.
mlir::FailureOr<llvm::SmallVector<int32_t>> plannedWindows(AttendOp op, llvm::StringRef path, int64_t heads,
                                                           int32_t own);

/// Whether a plan decides about the windows of `path` while it runs: it stands in
/// the module's attribute `weft.window_state`.
bool readsWindows(mlir::ModuleOp module, llvm::StringRef path);

} // namespace weft

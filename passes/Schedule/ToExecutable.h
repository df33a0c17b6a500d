//===- ToExecutable.h - A planned schedule as an executable -----*- C++ -*-===//
#pragma once

#include "passes/Codegen/Codegen.h"
#include "passes/Tile/GpuTarget.h"

#include <functional>
#include <optional>
#include <string>

namespace weft {

struct ExecutableOptions {
  CpuTarget target;
  std::string cacheFolder; // compiled kernels by hash; empty: no cache
  int threads = 2;
  std::optional<GpuTarget> gpu{}; // kernels are for it, not for `target`
};

/// What compiling took: for the log, and for tests that count.
struct CompileReport {
  int kernels = 0, compiled = 0, fromCache = 0;
};

/// Writes states, programs and kernels of `module` 1:1 into an executable, and
/// compiles the kernels that the cache lacks. Errors are reported at their place.
llvm::FailureOr<rt::Executable> toExecutable(mlir::ModuleOp module, const ExecutableOptions &options,
                                             CompileReport *report = nullptr);

/// States and programs' ports alone: what the reference machine needs.
rt::StateEntry toStateEntry(StateOp state);
rt::ElementType toElementType(mlir::Type element);

} // namespace weft

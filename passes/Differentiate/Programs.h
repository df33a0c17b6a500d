//===- Programs.h - Functions whose ports have names -------------*- C++ -*-===//
//
// What the passes of this folder share: a program is a `func.func` of one block
// whose arguments and results carry their names as `weft.name`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

constexpr llvm::StringLiteral kNameAttr = "weft.name";

/// Names of ports; empty where there is none.
llvm::StringRef argumentName(mlir::func::FuncOp function, unsigned index);
llvm::StringRef resultName(mlir::func::FuncOp function, unsigned index);

/// The argument, or the returned value, called `name`; null if there is none.
mlir::Value argumentCalled(mlir::func::FuncOp function, llvm::StringRef name);
mlir::Value resultCalled(mlir::func::FuncOp function, llvm::StringRef name);

inline mlir::Block &bodyOf(mlir::func::FuncOp function) { return function.getBody().front(); }

/// Erases ops without effect whose results nothing uses, last first.
void eraseDeadOps(mlir::Block &block);

/// Whether `value` depends on `source`.
bool dependsOn(mlir::Value value, mlir::Value source);

/// The location of what a pass adds on behalf of `loc`: "name"(loc).
mlir::Location namedLocation(llvm::StringRef name, mlir::Location loc);

/// Adds an argument with a name to the end of `function`.
mlir::Value addArgument(mlir::func::FuncOp function, llvm::StringRef name, mlir::Type type);

/// A copy of `forward` called `name`, behind it, with the results that `keeps`
/// accepts, in their order; ops that they don't need are gone.
mlir::func::FuncOp cloneProgram(mlir::func::FuncOp forward, llvm::StringRef name,
                                llvm::function_ref<bool(unsigned)> keeps);

/// Erases the arguments called `names` that nothing uses.
void eraseUnusedArguments(mlir::func::FuncOp function, llvm::ArrayRef<llvm::StringRef> names);

/// Makes every dropout of `program` the identity: evaluation and generation drop nothing.
void removeDropout(mlir::func::FuncOp program);

/// The number of a constant in every element, when `value` is one.
std::optional<double> constantNumber(mlir::Value value);

/// A new state entry of zeros behind the last one of `module`; `slices` are those
/// of the entry that it belongs to.
StateOp addZeroState(mlir::ModuleOp module, llvm::StringRef name, Role role, mlir::RankedTensorType type,
                     mlir::Location loc, SlicesAttr slices = {});

/// State entries of `module` by name and in order.
llvm::SmallVector<StateOp> statesOf(mlir::ModuleOp module, Role role);

/// Names of the entries of a parameter's gradient, moments (AdamW) and momentum (Muon).
std::string gradientName(llvm::StringRef path);
std::string momentumName(llvm::StringRef path);
std::string firstMomentName(llvm::StringRef path);
std::string secondMomentName(llvm::StringRef path);

/// Makes @decode of @forward (FormDecode.cpp). Errors are emitted.
mlir::LogicalResult formDecode(mlir::func::FuncOp forward, int64_t cacheLength);

/// Cuts the results of @prefill to the last position of each row, and with them all
/// that nothing else needs: a row a batch row behind the last attention, whose only query it is
/// (LastPosition.cpp). Errors are emitted.
mlir::LogicalResult keepLastPosition(mlir::func::FuncOp program);

/// Makes @calibrate of @forward: q (times the scale), k and v of every attend as `SITE.q`, `SITE.k` and `SITE.v`,
/// SITE the branch it stands in; or @calibrate_gradient: `loss_sum` and `SITE.out`
/// (FormCalibrate.cpp). Both in evaluation mode. Errors are emitted.
mlir::LogicalResult formCalibrate(mlir::func::FuncOp forward, bool gradient);

/// Makes @calibrate_statistics of @forward, in evaluation mode: weft.pattern_statistics of
/// every attend as `SITE.columns`, `SITE.diagonals` and `SITE.sums`, of the inputs `documents`
/// and `reach` and the patterns `SITE.a`, `SITE.r` and `SITE.z`. Errors are emitted.
mlir::LogicalResult formStatistics(mlir::func::FuncOp forward);

/// Makes @calibrate_branch of @forward, with an input `SITE.mixed` for each attend:
/// gives its output `SITE.out`, the stream behind its branch `SITE.stream`, and the
/// same where `SITE.mixed` stands for the output, `SITE.replaced`. Errors are emitted.
mlir::LogicalResult formBranches(mlir::func::FuncOp forward);

/// In place of each result `SITE.out`: `SITE.gate`, the sum over rows and places of it times
/// its gradient, where it has one.
void addGates(mlir::func::FuncOp program, llvm::function_ref<mlir::Value(mlir::Value)> gradientOf);

/// Makes @update for the trained parameters of `module` (FormUpdate.cpp).
mlir::LogicalResult formUpdate(mlir::ModuleOp module, llvm::ArrayRef<StateOp> trained);

} // namespace weft

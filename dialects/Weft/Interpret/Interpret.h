//===- Interpret.h - What weft IR computes, in float64 -----------*- C++ -*-===//
//
// Plain loops written from each op's description and from nothing else: the
// judge of every pass and lowering, and the reference device.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <string>
#include <vector>

namespace weft {

/// A dense row-major tensor of float64, whatever the element type of its value
/// (integers are held as doubles, exactly).
struct Array {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> data;

  Array() = default;
  /// Of a static type's shape, `fill` in each element.
  explicit Array(mlir::Type type, double fill = 0);
  Array(llvm::ArrayRef<int64_t> shape, std::vector<double> data)
      : shape(shape.begin(), shape.end()), data(std::move(data)) {}
  bool operator==(const Array &) const = default;
};

/// Contents of state entries by symbol name.
using States = std::map<std::string, Array, std::less<>>;

/// Runs a `func.func` or a `weft.kernel` on `inputs`, one for each argument with
/// its shape. `weft.set` and `weft.set_flat` take effect in `states` after the
/// last op. Answer: one array a result.
/// Errors, as diagnostics of the op: an op without meaning here, a wrong shape,
/// an index outside a table, a state entry without contents.
mlir::FailureOr<llvm::SmallVector<Array>> interpret(mlir::FunctionOpInterface function,
                                                    llvm::ArrayRef<Array> inputs, States &states);

/// Runs a schedule on an arena of NaN: reading what nothing wrote shows. A
/// buffer of the arena that has no offset yet has a place of its own. State buffers read and write `states`
/// at the offsets of the module's `weft.state` entries; a result port that no
/// call writes stays NaN.
/// Errors, as diagnostics: as for `interpret`; a buffer or view that ends
/// outside its space; an entry of the state or a port without an offset.
mlir::FailureOr<llvm::SmallVector<Array>> interpretProgram(ProgramOp program, llvm::ArrayRef<Array> inputs,
                                                           States &states);

/// Gives every state entry of `module` its starting value: rt::initialize by
/// its rule in its element type; rope tables in double.
/// Errors, as diagnostics: an init rule that still holds a formula.
mlir::LogicalResult initialize(States &states, mlir::ModuleOp module, uint64_t seed);

/// Numbers of the Philox stream `stream` under `seed`, uniform in [low, high):
/// the same on every machine, for tests and verification.
std::vector<double> drawUniform(uint64_t seed, llvm::StringRef stream, size_t count, double low, double high);

/// cos and sin of position * base^(-i / half): the shape is [positions, half, 2].
Array ropeTable(mlir::RankedTensorType type, double base);

} // namespace weft

//===- AttendProblem.h - One kernel of attention, read for the GPU -*- C++ -*-===//
#pragma once

#include "passes/Codegen/RowProgram.h"
#include "passes/Tile/GpuTarget.h"

#include <string>

namespace weft {

enum class AttendPass : uint8_t { Forward, Query, KeyValue };

/// What a kernel of weft.attend, attend_grad_query or attend_grad_key_value asks
/// for. Tensors are row-major: q, out, dout [batch, queries, heads, channel],
/// k, v [batch, keys, kvHeads, channel], lse, delta [batch, queries, heads].
struct AttendProblem {
  /// A number of the kernel's operands (arguments, then results), -1 where there is none.
  using Operand = int;

  AttendPass pass = AttendPass::Forward;
  std::string name;
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, kvHeads = 0, channel = 0;
  Axes headAxes, kvAxes;
  double scale = 0;
  std::vector<int32_t> order; // of heads (of key-value heads for KeyValue), or empty
  Operand q = -1, k = -1, v = -1, windows = -1, starts = -1, offset = -1, kvOf = -1;
  Operand out = -1, lse = -1, dout = -1, delta = -1; // read or written, by pass
  Operand entropy = -1;                              // written by Forward, f32 as lse
  Operand dq = -1, dk = -1, dv = -1;
  std::vector<mlir::RankedTensorType> types; // of operands, as stored

  /// Heads that an item may be of.
  int64_t itemHeads() const { return pass == AttendPass::KeyValue ? kvHeads : heads; }
};

/// Numbers of a kernel's operands (arguments, then results), -1 where there is none.
class OperandNumbers {
public:
  explicit OperandNumbers(KernelOp kernel) : kernel(kernel) {}

protected:
  /// The argument that `value` is, but for its storage.
  int argument(mlir::Value value);
  /// The result that `value` becomes, but for its storage.
  int result(mlir::Value value);

  KernelOp kernel;
};

/// Reads `kernel`; where the fast kernels don't do it, none, and `why` says why not.
std::optional<AttendProblem> readAttend(KernelOp kernel, const GpuTarget &target, std::string &why);

} // namespace weft

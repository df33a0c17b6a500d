//===- Muon.h - A parameter as the matrix that Muon steps --------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// A parameter as [rows, columns] in its own storage order. The axes that
/// products sum go in, the others come out: all heads of a projection together.
struct MuonMatrix {
  int64_t rows = 0, columns = 0;
  int64_t in = 0, out = 0; // one of them is rows, the other columns
  bool operator==(const MuonMatrix &) const = default;
};

/// The axis that counts matrices of one shape, which step together. No axis of a
/// model has a name with a dot.
constexpr llvm::StringLiteral kMatrixAxis = "muon.matrix";

/// One group of `weft.groups` with kind = "muon".
struct MuonOptions {
  double momentum = 0.95, decay = 0;
  bool nesterov = true;
  int64_t iterations = 5;
};

/// Reads off `forward` which axes of `parameter` its products sum. Errors, at the
/// parameter: no product reads it, two sum different axes, those summed are
/// neither the first nor the last ones.
mlir::FailureOr<MuonMatrix> muonMatrixOf(StateOp parameter, mlir::func::FuncOp forward);

/// What the update is multiplied by: sqrt(max(1, out / in)). Source: arXiv:2607.18363,
/// Experimental Setup; 1 where the matrix does not widen.
double muonFactor(const MuonMatrix &matrix);

struct MuonStep {
  mlir::Value parameter, momentum; // after the step
};

/// One Muon step of matrices of one shape, one after another in the vector `p`, with
/// momentum `m`, g = scale * grad:
///
///   m' = momentum m + g;  u = g + momentum m' (Nesterov) or m'
///   p' = p (1 - rate decay) - rate factor polar(u)
///
/// with the polar factor of each matrix. `rate` and `scale` are single numbers; where `scale` is NaN p and m stay.
MuonStep buildMuonStep(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value p, mlir::Value m,
                       mlir::Value grad, mlir::Value rate, mlir::Value scale, const MuonMatrix &matrix,
                       const MuonOptions &options);

} // namespace weft

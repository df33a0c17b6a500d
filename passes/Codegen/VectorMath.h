//===- VectorMath.h - Functions of floats without libm ----------*- C++ -*-===//
//
// Each takes an f32 or a vector of them. NaN in gives NaN out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"
#include "passes/Codegen/Emitter.h"

namespace weft {

/// e^x, error below 2 ulp; 0 below x = -86.6, infinite above 88.72.
mlir::Value emitExp(Emitter &e, mlir::Value x);

/// 2^x for x <= 0 (attention's probabilities); 0 below -126.
mlir::Value emitExp2OfNegative(Emitter &e, mlir::Value x);

mlir::Value emitLog(Emitter &e, mlir::Value x);
mlir::Value emitSigmoid(Emitter &e, mlir::Value x);

/// x^y as std::pow; `power` is y where it is known.
mlir::Value emitPow(Emitter &e, mlir::Value x, mlir::Value y, std::optional<double> power);

/// f(x), and dy f'(x).
mlir::Value emitUnary(Emitter &e, UnaryFn fn, mlir::Value x);
mlir::Value emitUnaryGrad(Emitter &e, UnaryFn fn, mlir::Value x, mlir::Value dy);

/// `x` where the Philox number of (seed, stream, index) is at least `rate`,
/// scaled by 1 / (1 - rate); 0 elsewhere. seed: i64; index: i64s.
mlir::Value emitDropout(Emitter &e, mlir::Value x, mlir::Value seed, mlir::Value index, double rate,
                        llvm::StringRef stream);

} // namespace weft

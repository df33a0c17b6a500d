//===- Emitter.h - Short words for building kernels -------------*- C++ -*-===//
//
// Values are f32, i32, i64 or vectors of `width` of them; memory is reached
// through raw pointers, indices count elements of f32 (or i32).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

namespace weft {

/// Which elements of a strip are there: all (no mask) or those of the mask.
struct Lanes {
  mlir::Value mask;
};

class Emitter {
public:
  Emitter(mlir::OpBuilder builder, mlir::Location loc, int64_t width);

  mlir::OpBuilder b;
  mlir::Location loc;
  const int64_t width;
  mlir::Type f32, i32, i64, ptr;
  mlir::VectorType floats, ints, longs, bools;
  /// Pointers to elements of bf16, and all that `at` makes of them: loads widen to f32, stores round.
  llvm::DenseSet<mlir::Value> halves;
  /// A GPU's units for powers of two, quotients and roots: errors of 2 ulp, e^x of |x| 2^-24.
  bool approximate = false;

  // Constants. `like` gives the type: a scalar or a vector.
  mlir::Value number(int64_t value);
  mlir::Value constant(mlir::Type like, double value);
  mlir::Value constantInt(mlir::Type like, int64_t value);
  mlir::Value iota(mlir::Type element); // 0, 1, 2, ...
  mlir::Value splat(mlir::Value scalar);

  // Floats; products and sums may contract to fused multiply-adds.
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value neg(mlir::Value x);
  mlir::Value sqrt(mlir::Value x);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value larger(mlir::Value x, mlir::Value y); // x > y ? x : y
  mlir::Value less(mlir::Value x, mlir::Value y);   // ordered
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);

  // Integers.
  mlir::Value addi(mlir::Value x, mlir::Value y);
  mlir::Value addi(mlir::Value x, int64_t y);
  mlir::Value subi(mlir::Value x, mlir::Value y);
  mlir::Value muli(mlir::Value x, mlir::Value y);
  mlir::Value muli(mlir::Value x, int64_t y);
  mlir::Value divi(mlir::Value x, int64_t y); // of x >= 0
  mlir::Value remi(mlir::Value x, int64_t y); // of x >= 0
  mlir::Value mini(mlir::Value x, mlir::Value y);
  mlir::Value maxi(mlir::Value x, mlir::Value y);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value widen(mlir::Value x); // i32 to i64

  // Memory.
  mlir::Value at(mlir::Value pointer, mlir::Value index); // f32 or i32 elements
  mlir::Value bytesFrom(mlir::Value pointer, int64_t bytes);
  /// `alignment` in bytes; 0: that of an element.
  mlir::Value load(mlir::Type type, mlir::Value pointer, int64_t alignment = 0);
  mlir::Value load(mlir::Type type, mlir::Value pointer, mlir::Value index);
  mlir::Value loadIndex(mlir::Value pointer, mlir::Value index); // i32, widened to i64
  mlir::Value loadLanes(mlir::Value pointer, mlir::Value index, const Lanes &lanes, mlir::Value outside = {});
  mlir::Value gatherLanes(mlir::Value pointer, mlir::Value index, int64_t stride, const Lanes &lanes);
  void store(mlir::Value value, mlir::Value pointer, int64_t alignment = 0);
  void store(mlir::Value value, mlir::Value pointer, mlir::Value index);
  void storeLanes(mlir::Value value, mlir::Value pointer, mlir::Value index, const Lanes &lanes);

  // Vectors.
  Lanes first(int64_t count);       // the first lanes, count < width
  Lanes firstOf(mlir::Value count); // the same, count at run time
  mlir::Value sumOf(mlir::Value vector);
  mlir::Value largestOf(mlir::Value vector);
  /// rows[i][j] becomes rows[j][i]; as many rows as lanes.
  void transpose(llvm::MutableArrayRef<mlir::Value> rows);

  // Control.
  void loop(mlir::Value from, mlir::Value to, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange start,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  void choose(mlir::Value condition, llvm::function_ref<void()> yes, llvm::function_ref<void()> no);

  /// Strips of `width` over [0, count), then the rest under a mask.
  void strips(int64_t count, llvm::function_ref<void(mlir::Value, const Lanes &)> body);
  /// The same over [from, to); `to` is the end of a strip or of all.
  void strips(mlir::Value from, mlir::Value to, llvm::function_ref<void(mlir::Value, const Lanes &)> body);
  /// With values that go from strip to strip.
  llvm::SmallVector<mlir::Value> strips(
      int64_t count, mlir::ValueRange start,
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, const Lanes &, mlir::ValueRange)> body);

  /// [part * total / parts, (part + 1) * total / parts).
  std::pair<mlir::Value, mlir::Value> range(mlir::Value part, int64_t total, int64_t parts);

  void zero(mlir::Value pointer, int64_t count); // floats
};

} // namespace weft

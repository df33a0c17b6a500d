//===- AttendEmitter.h - Short words for kernels of tiles -------*- C++ -*-===//
#pragma once

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::tile {

using Values = llvm::SmallVector<mlir::Value>;

/// Scalars are i32, the same in all threads of a warpgroup; places in memory i64.
class Emitter {
public:
  /// `synchronous`: products of mma.sync, done at once, in place of wgmma's.
  Emitter(mlir::OpBuilder builder, mlir::Location loc, bool synchronous);

  mlir::OpBuilder b;
  mlir::Location loc;
  const bool synchronous;
  mlir::Type i1, i32, i64, f32, bf16;

  // Integers. A number beside a value is a constant of its type.
  mlir::Value number(int64_t value);
  mlir::Value real(double value);
  mlir::Value wide(mlir::Value x); // to i64
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, int64_t y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, int64_t y);
  mlir::Value div(mlir::Value x, mlir::Value y); // of x >= 0
  mlir::Value div(mlir::Value x, int64_t y);
  mlir::Value rem(mlir::Value x, mlir::Value y); // of x >= 0
  mlir::Value rem(mlir::Value x, int64_t y);
  mlir::Value min(mlir::Value x, mlir::Value y);
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y);      // x < y
  mlir::Value atMost(mlir::Value x, mlir::Value y);    // x <= y
  mlir::Value same(mlir::Value x, mlir::Value y);      // x == y
  mlir::Value within(mlir::Value x, mlir::Value span); // 0 <= x <= span, by one comparison
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);

  // Floats.
  mlir::Value addf(mlir::Value x, mlir::Value y);
  mlir::Value subf(mlir::Value x, mlir::Value y);
  mlir::Value mulf(mlir::Value x, mlir::Value y);
  mlir::Value divf(mlir::Value x, mlir::Value y);
  mlir::Value maxf(mlir::Value x, mlir::Value y);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value negate(mlir::Value x);
  mlir::Value exp2(mlir::Value x);
  mlir::Value log(mlir::Value x);

  // Control.
  using Body = llvm::function_ref<Values(mlir::Value, mlir::ValueRange)>;
  /// number = from, from + step, ... below `to`.
  Values loop(mlir::Value from, mlir::Value to, mlir::Value step, mlir::ValueRange start, Body body);
  void loop(mlir::Value from, mlir::Value to, llvm::function_ref<void(mlir::Value)> body);
  /// number = next(values), values = body(number, values), while `number` is below `limit`.
  Values loopBelow(mlir::Value limit, mlir::ValueRange start,
                   llvm::function_ref<mlir::Value(mlir::ValueRange)> next, Body body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  /// `body`'s values where the condition holds, else `otherwise`.
  Values when(mlir::Value condition, llvm::function_ref<Values()> body, mlir::ValueRange otherwise);
  /// `body`'s values where the condition holds, else those of `otherwise`.
  Values choose(mlir::Value condition, mlir::TypeRange types, llvm::function_ref<Values()> body,
                llvm::function_ref<Values()> otherwise);
  /// One thread of the warpgroup; with `ofCta` one of the CTA.
  void elect(bool ofCta, llvm::function_ref<void()> body);
  /// What the warpgroups of one role do.
  void role(mlir::Region &region, llvm::function_ref<void()> body);

  // Fragments. `f` gets one scalar an input, then with coordinates row and column.
  using Element = llvm::function_ref<mlir::Value(mlir::ValueRange)>;
  mlir::Value map(mlir::Type result, mlir::ValueRange inputs, Element f);
  mlir::Value mapPlaces(mlir::Type result, mlir::ValueRange inputs, Element f);
  mlir::Type frag(int64_t columns);
  mlir::Type rows(mlir::Type element);
  mlir::Type cols(int64_t columns, mlir::Type element);
  mlir::Value zero(mlir::Type type);
  mlir::Value splat(mlir::Type type, mlir::Value value);
  mlir::Value reduce(Fold fold, mlir::Value frag, bool partial);
  /// The accumulator as left operand of a product, in bf16.
  mlir::Value left(mlir::Value frag);
  mlir::Type leftType(int64_t columns);

  // Products.
  mlir::Value product(mlir::Value a, mlir::Value b, mlir::Value init = {}, bool transposed = false);
  void commit();
  void fence();
  Values wait(int64_t pending, mlir::ValueRange frags);
  mlir::Value waitOne(int64_t pending, mlir::Value frag) { return wait(pending, {frag})[0]; }

  // Memory.
  mlir::Value load(mlir::Value global, mlir::Value offset);
  mlir::Value stage(mlir::Value ring, mlir::Value index);

private:
  mlir::Value mapOver(mlir::Type result, mlir::ValueRange inputs, bool coordinates, Element f);
};

} // namespace weft::tile

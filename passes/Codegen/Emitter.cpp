//===- Emitter.cpp - Short words for building kernels ---------------------===//
#include "passes/Codegen/Emitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace weft {

constexpr auto kContract = arith::FastMathFlags::contract;

Emitter::Emitter(OpBuilder builder, Location loc, int64_t width)
    : b(builder), loc(loc), width(width), f32(b.getF32Type()), i32(b.getI32Type()), i64(b.getI64Type()),
      ptr(LLVM::LLVMPointerType::get(b.getContext())), floats(VectorType::get({width}, f32)),
      ints(VectorType::get({width}, i32)), longs(VectorType::get({width}, i64)),
      bools(VectorType::get({width}, b.getI1Type())) {}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static Value makeConstant(OpBuilder &b, Location loc, Type like, TypedAttr element) {
  TypedAttr attr = element;
  if (auto vector = dyn_cast<VectorType>(like))
    attr = DenseElementsAttr::get(vector, Attribute(element));
  return arith::ConstantOp::create(b, loc, attr);
}

Value Emitter::number(int64_t value) { return makeConstant(b, loc, i64, b.getI64IntegerAttr(value)); }

Value Emitter::constant(Type like, double value) {
  return makeConstant(b, loc, like, b.getFloatAttr(getElementTypeOrSelf(like), value));
}

Value Emitter::constantInt(Type like, int64_t value) {
  return makeConstant(b, loc, like, b.getIntegerAttr(getElementTypeOrSelf(like), value));
}

Value Emitter::iota(Type element) {
  SmallVector<Attribute> values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(b.getIntegerAttr(element, i));
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(VectorType::get({width}, element), values));
}

Value Emitter::splat(Value scalar) {
  if (isa<VectorType>(scalar.getType()))
    return scalar;
  return vector::BroadcastOp::create(b, loc, VectorType::get({width}, scalar.getType()), scalar);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

template <typename Op> static Value contracting(OpBuilder &b, Location loc, Value x, Value y) {
  auto op = Op::create(b, loc, x, y);
  op.setFastmath(kContract);
  return op;
}

Value Emitter::add(Value x, Value y) { return contracting<arith::AddFOp>(b, loc, x, y); }
Value Emitter::sub(Value x, Value y) { return contracting<arith::SubFOp>(b, loc, x, y); }
Value Emitter::mul(Value x, Value y) { return contracting<arith::MulFOp>(b, loc, x, y); }
Value Emitter::div(Value x, Value y) {
  auto op = arith::DivFOp::create(b, loc, x, y);
  if (approximate)
    op.setFastmath(arith::FastMathFlags::afn);
  return op;
}
Value Emitter::neg(Value x) { return arith::NegFOp::create(b, loc, x); }
Value Emitter::sqrt(Value x) {
  auto op = math::SqrtOp::create(b, loc, x);
  if (approximate)
    op.setFastmath(arith::FastMathFlags::afn);
  return op;
}
Value Emitter::fma(Value x, Value y, Value z) { return math::FmaOp::create(b, loc, x, y, z); }

Value Emitter::larger(Value x, Value y) {
  Value greater = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y);
  return select(greater, x, y);
}

Value Emitter::less(Value x, Value y) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
}

Value Emitter::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value Emitter::addi(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value Emitter::addi(Value x, int64_t y) { return y == 0 ? x : addi(x, constantInt(x.getType(), y)); }
Value Emitter::subi(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
Value Emitter::muli(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
Value Emitter::muli(Value x, int64_t y) { return y == 1 ? x : muli(x, constantInt(x.getType(), y)); }
Value Emitter::divi(Value x, int64_t y) {
  return y == 1 ? x : arith::DivUIOp::create(b, loc, x, constantInt(x.getType(), y)).getResult();
}
Value Emitter::remi(Value x, int64_t y) {
  return arith::RemUIOp::create(b, loc, x, constantInt(x.getType(), y));
}
Value Emitter::mini(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value Emitter::maxi(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }
Value Emitter::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}
Value Emitter::both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
Value Emitter::widen(Value x) { return arith::ExtSIOp::create(b, loc, i64, x); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Emitter::at(Value pointer, Value index) {
  if (!halves.contains(pointer))
    return LLVM::GEPOp::create(b, loc, ptr, f32, pointer, ArrayRef<LLVM::GEPArg>{index});
  Value place = LLVM::GEPOp::create(b, loc, ptr, b.getBF16Type(), pointer, ArrayRef<LLVM::GEPArg>{index});
  halves.insert(place);
  return place;
}

Value Emitter::bytesFrom(Value pointer, int64_t bytes) {
  return LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

/// `like` with other elements.
static Type withElements(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? VectorType::get(vector.getShape(), element) : element;
}

Value Emitter::load(Type type, Value pointer, int64_t alignment) {
  constexpr unsigned kFloat = 4, kHalf = 2;
  auto bytes = static_cast<unsigned>(alignment);
  if (!halves.contains(pointer) || getElementTypeOrSelf(type) != f32)
    return LLVM::LoadOp::create(b, loc, type, pointer, bytes ? bytes : kFloat);
  Value half =
      LLVM::LoadOp::create(b, loc, withElements(type, b.getBF16Type()), pointer, bytes ? bytes : kHalf);
  return arith::ExtFOp::create(b, loc, type, half);
}

Value Emitter::load(Type type, Value pointer, Value index) { return load(type, at(pointer, index)); }

Value Emitter::loadIndex(Value pointer, Value index) { return widen(load(i32, pointer, index)); }

Value Emitter::loadLanes(Value pointer, Value index, const Lanes &lanes, Value outside) {
  if (!lanes.mask)
    return load(floats, pointer, index);
  if (!outside)
    outside = constant(floats, 0);
  return LLVM::MaskedLoadOp::create(b, loc, floats, at(pointer, index), lanes.mask, outside, 4);
}

Value Emitter::gatherLanes(Value pointer, Value index, int64_t stride, const Lanes &lanes) {
  if (width == 1 && !lanes.mask)
    return load(floats, pointer, index);
  Value offsets = muli(iota(i64), stride);
  Value places = addi(splat(index), offsets);
  Type pointers = VectorType::get({width}, ptr);
  Value addresses = LLVM::GEPOp::create(b, loc, pointers, f32, pointer, ArrayRef<LLVM::GEPArg>{places});
  Value mask = lanes.mask ? lanes.mask : constantInt(bools, 1);
  return LLVM::masked_gather::create(b, loc, floats, addresses, mask, ValueRange{constant(floats, 0)}, 4);
}

void Emitter::store(Value value, Value pointer, int64_t alignment) {
  constexpr unsigned kFloat = 4, kHalf = 2;
  auto bytes = static_cast<unsigned>(alignment);
  bool half = halves.contains(pointer) && getElementTypeOrSelf(value) == f32;
  if (half)
    value = arith::TruncFOp::create(b, loc, withElements(value.getType(), b.getBF16Type()), value);
  LLVM::StoreOp::create(b, loc, value, pointer, bytes ? bytes : half ? kHalf : kFloat);
}

void Emitter::store(Value value, Value pointer, Value index) { store(value, at(pointer, index)); }

void Emitter::storeLanes(Value value, Value pointer, Value index, const Lanes &lanes) {
  if (!lanes.mask)
    return store(value, pointer, index);
  LLVM::MaskedStoreOp::create(b, loc, value, at(pointer, index), lanes.mask, 4);
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

Lanes Emitter::first(int64_t count) {
  SmallVector<Attribute> values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(b.getBoolAttr(i < count));
  return {arith::ConstantOp::create(b, loc, DenseElementsAttr::get(bools, values))};
}

Lanes Emitter::firstOf(Value count) {
  Value narrow = arith::TruncIOp::create(b, loc, i32, count);
  return {compare(arith::CmpIPredicate::slt, iota(i32), splat(narrow))};
}

Value Emitter::sumOf(Value vector) {
  // The order is the compiler's, but one for all runs.
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, vector,
                                     arith::FastMathFlags::reassoc);
}

Value Emitter::largestOf(Value vector) {
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::MAXNUMF, vector);
}

void Emitter::transpose(MutableArrayRef<Value> rows) {
  // Exchanges one bit of the row number with one bit of the lane number a round.
  for (int64_t bit = 1; bit < width; bit *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < width; ++lane) {
      low.push_back(lane & bit ? width + lane - bit : lane);
      high.push_back(lane & bit ? width + lane : lane + bit);
    }
    for (int64_t row = 0; row < width; ++row) {
      if (row & bit)
        continue;
      Value x = rows[row], y = rows[row + bit];
      rows[row] = vector::ShuffleOp::create(b, loc, x, y, low);
      rows[row + bit] = vector::ShuffleOp::create(b, loc, x, y, high);
    }
  }
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void Emitter::loop(Value from, Value to, int64_t step, function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(b, loc, from, to, number(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

SmallVector<Value> Emitter::loop(Value from, Value to, int64_t step, ValueRange start,
                                 function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  if (start.empty()) {
    loop(from, to, step, [&](Value i) { body(i, {}); });
    return {};
  }
  auto op = scf::ForOp::create(b, loc, from, to, number(step), start);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  auto next = body(op.getInductionVar(), op.getRegionIterArgs());
  scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(op.getResults());
}

void Emitter::when(Value condition, function_ref<void()> body) {
  auto op = scf::IfOp::create(b, loc, condition);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  body();
}

void Emitter::choose(Value condition, function_ref<void()> yes, function_ref<void()> no) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  yes();
  b.setInsertionPointToStart(op.elseBlock());
  no();
}

SmallVector<Value> Emitter::strips(int64_t count, ValueRange start,
                                   function_ref<SmallVector<Value>(Value, const Lanes &, ValueRange)> body) {
  int64_t whole = count - count % width;
  SmallVector<Value> values(start);
  if (whole == width)
    values = body(number(0), {}, values);
  else if (whole > 0)
    values = loop(number(0), number(whole), width, values,
                  [&](Value i, ValueRange carried) { return body(i, {}, carried); });
  if (whole < count)
    values = body(number(whole), first(count - whole), values);
  return values;
}

void Emitter::strips(int64_t count, function_ref<void(Value, const Lanes &)> body) {
  strips(count, {}, [&](Value i, const Lanes &lanes, ValueRange) {
    body(i, lanes);
    return SmallVector<Value>{};
  });
}

void Emitter::strips(Value from, Value to, function_ref<void(Value, const Lanes &)> body) {
  if (width == 1)
    return loop(from, to, 1, [&](Value i) { body(i, {}); });
  Value rest = remi(subi(to, from), width);
  Value whole = subi(to, rest);
  loop(from, whole, width, [&](Value i) { body(i, {}); });
  when(compare(arith::CmpIPredicate::slt, whole, to), [&] { body(whole, firstOf(rest)); });
}

std::pair<Value, Value> Emitter::range(Value part, int64_t total, int64_t parts) {
  Value from = divi(muli(part, total), parts);
  Value to = divi(muli(addi(part, 1), total), parts);
  return {from, to};
}

void Emitter::zero(Value pointer, int64_t count) {
  strips(count, [&](Value i, const Lanes &lanes) { storeLanes(constant(floats, 0), pointer, i, lanes); });
}

} // namespace weft

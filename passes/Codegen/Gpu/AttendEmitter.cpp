//===- AttendEmitter.cpp - Short words for kernels of tiles ---------------===//
#include "passes/Codegen/Gpu/AttendEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft::tile {

Emitter::Emitter(OpBuilder builder, Location loc, bool synchronous)
    : b(builder), loc(loc), synchronous(synchronous), i1(b.getI1Type()), i32(b.getI32Type()),
      i64(b.getI64Type()), f32(b.getF32Type()), bf16(b.getBF16Type()) {}

static Value constantLike(Emitter &e, Value like, int64_t value) {
  return arith::ConstantOp::create(e.b, e.loc, e.b.getIntegerAttr(like.getType(), value));
}

Value Emitter::number(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}
Value Emitter::real(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(value)));
}
Value Emitter::wide(Value x) { return arith::ExtSIOp::create(b, loc, i64, x); }
Value Emitter::add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value Emitter::add(Value x, int64_t y) { return add(x, constantLike(*this, x, y)); }
Value Emitter::sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
Value Emitter::mul(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
Value Emitter::mul(Value x, int64_t y) { return mul(x, constantLike(*this, x, y)); }
Value Emitter::div(Value x, Value y) { return arith::DivUIOp::create(b, loc, x, y); }
Value Emitter::div(Value x, int64_t y) { return div(x, constantLike(*this, x, y)); }
Value Emitter::rem(Value x, Value y) { return arith::RemUIOp::create(b, loc, x, y); }
Value Emitter::rem(Value x, int64_t y) { return rem(x, constantLike(*this, x, y)); }
Value Emitter::min(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value Emitter::max(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }
Value Emitter::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}
Value Emitter::less(Value x, Value y) { return compare(arith::CmpIPredicate::slt, x, y); }
Value Emitter::atMost(Value x, Value y) { return compare(arith::CmpIPredicate::sle, x, y); }
Value Emitter::same(Value x, Value y) { return compare(arith::CmpIPredicate::eq, x, y); }
Value Emitter::within(Value x, Value span) { return compare(arith::CmpIPredicate::ule, x, span); }
Value Emitter::both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
Value Emitter::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

Value Emitter::addf(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
Value Emitter::subf(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
Value Emitter::mulf(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
Value Emitter::divf(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
Value Emitter::maxf(Value x, Value y) { return arith::MaxNumFOp::create(b, loc, x, y); }
Value Emitter::fma(Value x, Value y, Value z) { return math::FmaOp::create(b, loc, x, y, z); }
Value Emitter::negate(Value x) { return arith::NegFOp::create(b, loc, x); }
Value Emitter::exp2(Value x) { return Exp2Op::create(b, loc, f32, x); }
Value Emitter::log(Value x) { return math::LogOp::create(b, loc, x); }

Values Emitter::loop(Value from, Value to, Value step, ValueRange start, Body body) {
  auto loop = scf::ForOp::create(b, loc, from, to, step, start,
                                 [&](OpBuilder &inner, Location, Value number, ValueRange carried) {
                                   OpBuilder::InsertionGuard guard(b);
                                   b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
                                   scf::YieldOp::create(b, loc, body(number, carried));
                                 });
  return Values(loop.getResults());
}

void Emitter::loop(Value from, Value to, function_ref<void(Value)> body) {
  loop(from, to, number(1), {}, [&](Value at, ValueRange) {
    body(at);
    return Values{};
  });
}

Values Emitter::loopBelow(Value limit, ValueRange start, function_ref<Value(ValueRange)> next, Body body) {
  SmallVector<Type> types{limit.getType()};
  llvm::append_range(types, start.getTypes());
  auto loop = scf::WhileOp::create(b, loc, types, start);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> locations(types.size(), loc);
  Block *before = b.createBlock(&loop.getBefore(), {}, start.getTypes(), ArrayRef(locations).drop_front());
  Values found{next(before->getArguments())};
  llvm::append_range(found, before->getArguments());
  scf::ConditionOp::create(b, loc, less(found.front(), limit), found);
  Block *after = b.createBlock(&loop.getAfter(), {}, types, locations);
  scf::YieldOp::create(b, loc, body(after->getArgument(0), after->getArguments().drop_front()));
  return Values(llvm::drop_begin(loop.getResults()));
}

void Emitter::when(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

Values Emitter::when(Value condition, function_ref<Values()> body, ValueRange otherwise) {
  return choose(condition, otherwise.getTypes(), body, [&] { return Values(otherwise); });
}

Values Emitter::choose(Value condition, TypeRange types, function_ref<Values()> body,
                       function_ref<Values()> otherwise) {
  auto branch = scf::IfOp::create(b, loc, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, loc, body());
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise());
  return Values(branch.getResults());
}

void Emitter::elect(bool ofCta, function_ref<void()> body) {
  auto elect = ElectOp::create(b, loc, ofCta);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&elect.getBody());
  EndOp::create(b, loc);
  b.setInsertionPointToStart(&elect.getBody().front());
  body();
}

void Emitter::role(Region &region, function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&region);
  body();
  EndOp::create(b, loc);
}

Value Emitter::mapOver(Type result, ValueRange inputs, bool coordinates, Element f) {
  auto map = MapOp::create(b, loc, TypeRange{result}, inputs, coordinates);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Type> types;
  for (Value input : inputs) {
    Type element = TypeSwitch<Type, Type>(input.getType())
                       .Case<FragType, RowsType, ColsType>([](auto type) { return type.getElement(); })
                       .Default([](Type type) { return type; });
    types.push_back(element);
  }
  if (coordinates)
    types.append(2, i32);
  Block *block = b.createBlock(&map.getBody(), {}, types, SmallVector<Location>(types.size(), loc));
  YieldOp::create(b, loc, f(block->getArguments()));
  return map.getResult(0);
}

Value Emitter::map(Type result, ValueRange inputs, Element f) { return mapOver(result, inputs, false, f); }
Value Emitter::mapPlaces(Type result, ValueRange inputs, Element f) {
  return mapOver(result, inputs, true, f);
}

Type Emitter::frag(int64_t columns) { return FragType::get(b.getContext(), columns, f32); }
Type Emitter::rows(Type element) { return RowsType::get(b.getContext(), FragType::kFragRows, element); }
Type Emitter::cols(int64_t columns, Type element) { return ColsType::get(b.getContext(), columns, element); }
Value Emitter::zero(Type type) { return ZeroOp::create(b, loc, type); }
Value Emitter::splat(Type type, Value value) { return SplatOp::create(b, loc, type, value); }

Value Emitter::reduce(Fold fold, Value frag, bool partial) {
  return ReduceOp::create(b, loc, rows(f32), fold, frag, partial);
}

Value Emitter::left(Value frag) {
  auto type = cast<FragType>(frag.getType());
  return CastOp::create(b, loc, leftType(type.getColumns()), frag);
}
Type Emitter::leftType(int64_t columns) { return FragType::get(b.getContext(), columns, bf16); }

Value Emitter::product(Value a, Value right, Value init, bool transposed) {
  auto type = cast<SmemType>(right.getType());
  Type result = frag(transposed ? type.getColumns() : type.getRows());
  if (synchronous) {
    if (auto tile = dyn_cast<SmemType>(a.getType()))
      a = ReadFragOp::create(b, loc, leftType(tile.getColumns()), a);
    return ProductSyncOp::create(b, loc, result, a, right, init, transposed);
  }
  return ProductOp::create(b, loc, result, a, right, init, transposed);
}

void Emitter::commit() {
  if (!synchronous)
    CommitProductsOp::create(b, loc);
}
void Emitter::fence() {
  if (!synchronous)
    FenceProductsOp::create(b, loc);
}
Values Emitter::wait(int64_t pending, ValueRange frags) {
  if (synchronous)
    return Values(frags);
  return Values(WaitProductsOp::create(b, loc, pending, frags).getResults());
}

Value Emitter::load(Value global, Value offset) {
  Type element = cast<GlobalType>(global.getType()).getElement();
  return LoadOp::create(b, loc, element.isInteger() ? element : f32, global, offset);
}

Value Emitter::stage(Value ring, Value index) { return StageOp::create(b, loc, ring, index); }

} // namespace weft::tile

//===- MixShape.cpp - What the kernels of fixed patterns share ------------===//
#include "passes/Codegen/MixShape.h"

#include "passes/Codegen/AttendShape.h"
#include "passes/Codegen/RowProgram.h"
#include "passes/Codegen/VectorMath.h"

using namespace mlir;

namespace weft {

using Predicate = arith::CmpIPredicate;

MixShape::MixShape(Value value, Value pattern, Value docStart) {
  constexpr int64_t kBlock = 64, kWidest = 16;
  auto v = cast<RankedTensorType>(value.getType());
  batch = v.getDimSize(0);
  keys = v.getDimSize(1);
  channel = v.getShape().back();
  kvHeads = headCount(v);
  queries = cast<RankedTensorType>(docStart.getType()).getDimSize(1);
  heads = cast<RankedTensorType>(pattern.getType()).getDimSize(0);
  places = cast<RankedTensorType>(pattern.getType()).getDimSize(1);
  lanes = std::min(kBlock, (queries + kWidest - 1) / kWidest * kWidest);
  rows = kBlock;
}

Value MixShape::kvOf(Emitter &e, Value head) const { return kvTable ? e.loadIndex(kvTable, head) : head; }

MixShape::Item MixShape::item(Emitter &e, Value number, int64_t count, int64_t blocks) const {
  Value pair = e.remi(number, batch * count);
  Value block = e.subi(e.number(blocks - 1), e.divi(number, batch * count));
  return {e.divi(pair, count), e.remi(pair, count), e.muli(block, lanes)};
}

Strided MixShape::valueRows(Emitter &e, Value base, Value row, Value place, Value kv) const {
  return headRows(e, base, row, place, kv, keys, kvHeads, channel);
}
Strided MixShape::outRows(Emitter &e, Value base, Value row, Value place, Value head) const {
  return headRows(e, base, row, place, head, queries, heads, channel);
}
Strided MixShape::perQuery(Emitter &e, Value base, Value row, Value place, Value head) const {
  return headRows(e, base, row, place, head, queries, heads, 1);
}
Value MixShape::startsOf(Emitter &e, Value row) const { return e.at(starts, e.muli(row, queries)); }
Value MixShape::patternOf(Emitter &e, Value base, Value head) const {
  return e.at(base, e.muli(head, places));
}

void emitDiagonals(Emitter &e, Value slice, Value r, Value first, Value limit, int64_t count, Value least) {
  e.loop(e.number(0), e.number(count), e.width, [&](Value m) {
    Value from = e.addi(first, m);
    // first + lane >= 0 and < limit, in i32.
    Value own = e.addi(e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, from)), e.iota(e.i32));
    Value bound = e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, limit));
    Value there = e.compare(Predicate::ult, own, bound);
    if (least)
      there = e.both(
          there, e.compare(Predicate::sge, own, e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, least))));
    Value power = emitExp(e, e.loadLanes(r, from, {there}));
    e.store(e.select(there, power, e.constant(e.floats, 0)), slice, m);
  });
}

void emitKeyWeights(Emitter &e, Value weights, Value places, Value a, Value starts, bool one, Value key,
                    Value valid, int64_t count) {
  e.loop(e.number(0), valid, 1, [&](Value k) {
    Value place = e.addi(key, k);
    Value own = e.subi(place, e.loadIndex(starts, one ? e.number(0) : place));
    e.store(arith::TruncIOp::create(e.b, e.loc, e.i32, own), places, k);
    e.store(e.load(e.f32, a, own), weights, k);
  });
  e.loop(e.number(0), e.number(count), e.width, [&](Value k) {
    Value power = emitExp(e, e.load(e.floats, weights, k));
    e.store(e.select(e.firstOf(e.subi(valid, k)).mask, power, e.constant(e.floats, 0)), weights, k);
  });
}

void emitFirstWeights(Emitter &e, Value weights, Value places, Value first, int64_t count) {
  e.loop(e.number(0), e.number(count), e.width, [&](Value k) {
    Value bound = e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, first));
    Value there = e.compare(Predicate::slt, e.load(e.ints, places, k), bound);
    e.store(e.select(there, e.load(e.floats, weights, k), e.constant(e.floats, 0)), weights, k);
  });
}

void emitInverses(Emitter &e, Value to, const Strided &lse, Value valid, int64_t count) {
  e.loop(e.number(0), valid, 1,
         [&](Value i) { e.store(e.load(e.f32, lse.base, e.muli(i, lse.rows)), to, i); });
  e.loop(e.number(0), e.number(count), e.width, [&](Value i) {
    Value power = emitExp(e, e.neg(e.load(e.floats, to, i)));
    e.store(e.select(e.firstOf(e.subi(valid, i)).mask, power, e.constant(e.floats, 0)), to, i);
  });
}

} // namespace weft

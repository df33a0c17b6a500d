//===- AttendShape.cpp - What the kernels of attention share --------------===//
#include "passes/Codegen/AttendShape.h"

#include <limits>

using namespace mlir;

namespace weft {

using Predicate = arith::CmpIPredicate;
constexpr int64_t kNothing = std::numeric_limits<int32_t>::max();

static Axes middle(Value value) {
  Axes axes = allAxes(value.getType());
  return Axes(axes.begin() + 2, axes.end() - 1);
}

AttendShape::AttendShape(Value q, Value k, Value v, double scale)
    : headAxes(middle(q)), kvAxes(middle(k)), scale(scale) {
  constexpr int64_t kBlock = 64, kWidest = 16;
  auto shape = cast<RankedTensorType>(q.getType()).getShape();
  batch = shape[0];
  queries = shape[1];
  channel = shape.back();
  keys = cast<RankedTensorType>(k.getType()).getDimSize(1);
  valueChannel = cast<RankedTensorType>(v.getType()).getShape().back();
  heads = countOf(headAxes);
  kvHeads = countOf(kvAxes);
  queryBlock = std::min(kBlock, (queries + kWidest - 1) / kWidest * kWidest);
  keyBlock = kBlock;
}

AttendShape::AttendShape(Value q, Value k, Value v, Value kvOf, const KernelBody &body, double scale)
    : AttendShape(q, k, v, scale) {
  if (kvOf)
    kvTable = body.argument(kvOf);
}

static Value coordinate(Emitter &e, Value number, ArrayRef<Axis> axes, const Axis &axis) {
  return e.remi(e.divi(number, strideOf(axes, axis.name)), axis.size);
}

Value AttendShape::kvOf(Emitter &e, Value head) const {
  if (kvTable)
    return e.loadIndex(kvTable, head);
  Value kv = e.number(0);
  for (const Axis &axis : kvAxes)
    kv = e.addi(kv, e.muli(coordinate(e, head, headAxes, axis), strideOf(kvAxes, axis.name)));
  return kv;
}

void AttendShape::forEachHead(Emitter &e, Value kv, function_ref<void(Value)> visit) const {
  if (kvTable) {
    e.loop(e.number(0), e.number(heads), 1, [&](Value head) {
      e.when(e.compare(Predicate::eq, e.loadIndex(kvTable, head), kv), [&] { visit(head); });
    });
    return;
  }
  Axes others;
  for (const Axis &axis : headAxes)
    if (!strideOf(kvAxes, axis.name))
      others.push_back(axis);
  e.loop(e.number(0), e.number(heads / kvHeads), 1, [&](Value member) {
    Value head = e.number(0);
    for (const Axis &axis : kvAxes)
      head = e.addi(head, e.muli(coordinate(e, kv, kvAxes, axis), strideOf(headAxes, axis.name)));
    for (const Axis &axis : others)
      head = e.addi(head, e.muli(coordinate(e, member, others, axis), strideOf(headAxes, axis.name)));
    visit(head);
  });
}

AttendShape::Item AttendShape::item(Emitter &e, Value number, int64_t count, int64_t blocks,
                                    std::optional<ArrayRef<int32_t>> order) const {
  Value place = e.muli(e.remi(number, blocks), queryBlock);
  Value pair = e.divi(number, blocks);
  if (!order)
    return {e.divi(pair, count), e.remi(pair, count), place};
  Value turn = e.divi(pair, batch), head = e.number(order->front());
  for (auto [at, named] : llvm::enumerate(order->drop_front()))
    head = e.select(e.compare(Predicate::eq, turn, e.number(static_cast<int64_t>(at) + 1)), e.number(named),
                    head);
  return {e.remi(pair, batch), head, place};
}

Strided headRows(Emitter &e, Value base, Value row, Value place, Value head, int64_t places, int64_t heads,
                 int64_t width) {
  Value number = e.addi(e.muli(e.addi(e.muli(row, places), place), heads), head);
  return {e.at(base, e.muli(number, width)), heads * width, 1};
}

Strided AttendShape::queryRows(Emitter &e, Value base, Value row, Value place, Value head) const {
  return headRows(e, base, row, place, head, queries, heads, channel);
}
Strided AttendShape::keyRows(Emitter &e, Value base, Value row, Value place, Value kv) const {
  return headRows(e, base, row, place, kv, keys, kvHeads, channel);
}
Strided AttendShape::valueRows(Emitter &e, Value base, Value row, Value place, Value kv) const {
  return headRows(e, base, row, place, kv, keys, kvHeads, valueChannel);
}
Strided AttendShape::outRows(Emitter &e, Value base, Value row, Value place, Value head) const {
  return headRows(e, base, row, place, head, queries, heads, valueChannel);
}
Strided AttendShape::perQuery(Emitter &e, Value base, Value row, Value place, Value head) const {
  return headRows(e, base, row, place, head, queries, heads, 1);
}

Value AttendMask::firstKey(Emitter &e, Value place) const {
  Value first = e.addi(e.subi(e.addi(place, offset), window), 1);
  return starts ? e.maxi(first, e.loadIndex(starts, place)) : first;
}

Visible AttendMask::ofLanes(Emitter &e, Value place, Value valid) const {
  auto narrow = [&](Value value) -> Value { return arith::TruncIOp::create(e.b, e.loc, e.i32, value); };
  Value own = e.addi(e.splat(narrow(e.addi(place, offset))), e.iota(e.i32));
  Value first = e.addi(e.subi(own, e.splat(narrow(window))), 1);
  first = e.maxi(first, e.constantInt(e.ints, 0));
  Lanes there = e.firstOf(valid);
  if (starts) {
    Value none = e.constantInt(e.ints, 0);
    Value documents =
        LLVM::MaskedLoadOp::create(e.b, e.loc, e.ints, e.at(starts, place), there.mask, none, 4);
    first = e.maxi(first, documents);
  }
  Value some = e.both(there.mask, e.compare(Predicate::sle, first, own));
  Value span = e.select(some, e.subi(own, first), e.constantInt(e.ints, 0));
  return {e.select(some, first, e.constantInt(e.ints, kNothing)), span};
}

Visible AttendMask::ofOne(Emitter &e, Value place) const {
  Value own = e.addi(place, offset);
  Value first = e.maxi(firstKey(e, place), e.number(0));
  Value some = e.compare(Predicate::sle, first, own);
  Value span = e.select(some, e.subi(own, first), e.number(0));
  auto lanes = [&](Value value) -> Value {
    return e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, value));
  };
  return {lanes(e.select(some, first, e.number(kNothing))), lanes(span)};
}

Value isSeen(Emitter &e, Value keys, const Visible &visible) {
  return e.compare(Predicate::ule, e.subi(keys, visible.first), visible.span);
}

Value loadWindow(Emitter &e, Value windows, Value head) {
  return windows ? e.loadIndex(windows, head) : e.number(kNothing);
}

} // namespace weft

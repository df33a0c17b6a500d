//===- LookUp.cpp - Tables, positions, caches -----------------------------===//
#include "passes/Codegen/Builders.h"

using namespace mlir;

namespace weft {

using Predicate = arith::CmpIPredicate;

static RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static void copyRow(Emitter &e, Value from, Value to, int64_t count) {
  e.strips(count,
           [&](Value i, const Lanes &lanes) { e.storeLanes(e.loadLanes(from, i, lanes), to, i, lanes); });
}

/// Copies `count` floats unless both are one storage.
static void copyUnlessSame(Emitter &e, Value from, Value to, Value count) {
  Value same = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, from, to);
  e.when(same, [&] {
    e.strips(e.number(0), count,
             [&](Value i, const Lanes &lanes) { e.storeLanes(e.loadLanes(from, i, lanes), to, i, lanes); });
  });
}

KernelKind gatherKind(GatherOp op) {
  int64_t places = tensorOf(op.getIndex()).getNumElements();
  auto build = [op, places](KernelBody &body) mutable -> LogicalResult {
    Emitter &e = body.e;
    int64_t width = tensorOf(op.getY()).getNumElements() / places;
    Value table = body.argument(op.getTable()), index = body.argument(op.getIndex());
    Value rows = e.number(tensorOf(op.getTable()).getDimSize(0));
    e.loop(body.begin, body.end, 1, [&](Value place) {
      Value row = e.loadIndex(index, place);
      Value to = e.at(body.result(0), e.muli(place, width));
      e.choose(
          e.compare(Predicate::ult, row, rows),
          [&] { copyRow(e, e.at(table, e.muli(row, width)), to, width); }, [&] { e.zero(to, width); });
    });
    return success();
  };
  return {[places] { return places; }, build};
}

KernelKind gatherGradKind(GatherGradOp op) {
  // Each item owns some rows of the table and reads all indices in order: no
  // two write one row, and sums have one order.
  constexpr int64_t kMostItems = 16;
  int64_t rows = tensorOf(op.getDtable()).getDimSize(0);
  int64_t items = std::min(rows, kMostItems);
  auto build = [op, rows, items](KernelBody &body) mutable -> LogicalResult {
    Emitter &e = body.e;
    int64_t places = tensorOf(op.getIndex()).getNumElements();
    int64_t width = tensorOf(op.getDtable()).getNumElements() / rows;
    Value index = body.argument(op.getIndex()), dy = body.argument(op.getDy()), table = body.result(0);
    e.loop(body.begin, body.end, 1, [&](Value item) {
      auto [first, last] = e.range(item, rows, items);
      Value start = e.muli(first, width), count = e.subi(e.muli(last, width), start);
      Value mine = e.at(table, start);
      if (op.getInit())
        copyUnlessSame(e, e.at(body.argument(op.getInit()), start), mine, count);
      else
        e.strips(e.number(0), count,
                 [&](Value i, const Lanes &lanes) { e.storeLanes(e.constant(e.floats, 0), mine, i, lanes); });
      Value owned = e.subi(last, first);
      e.loop(e.number(0), e.number(places), 1, [&](Value place) {
        Value row = e.subi(e.loadIndex(index, place), first);
        e.when(e.compare(Predicate::ult, row, owned), [&] {
          Value from = e.at(dy, e.muli(place, width)), to = e.at(mine, e.muli(row, width));
          e.strips(width, [&](Value i, const Lanes &lanes) {
            e.storeLanes(e.add(e.loadLanes(to, i, lanes), e.loadLanes(from, i, lanes)), to, i, lanes);
          });
        });
      });
    });
    return success();
  };
  return {[items] { return items; }, build};
}

KernelKind positionKind(PositionOp op) {
  auto type = tensorOf(op.getDocStart());
  int64_t length = type.getShape().back(), rows = type.getNumElements() / length;
  auto build = [op, length](KernelBody &body) mutable -> LogicalResult {
    Emitter &e = body.e;
    Value starts = body.argument(op.getDocStart());
    Value offset = op.getOffset() ? e.load(e.i32, body.argument(op.getOffset())) : e.constantInt(e.i32, 0);
    e.loop(body.begin, body.end, 1, [&](Value row) {
      Value base = e.muli(row, length);
      e.loop(e.number(0), e.number(length), 1, [&](Value i) {
        Value at = e.addi(base, i);
        Value place = e.addi(offset, arith::TruncIOp::create(e.b, e.loc, e.i32, i));
        e.store(e.subi(place, e.load(e.i32, starts, at)), body.result(0), at);
      });
    });
    return success();
  };
  return {[rows] { return rows; }, build};
}

KernelKind documentKind(DocumentOp op) {
  auto type = tensorOf(op.getDocStart());
  int64_t length = type.getShape().back(), rows = type.getNumElements() / length;
  auto build = [op, length](KernelBody &body) mutable -> LogicalResult {
    Emitter &e = body.e;
    Value starts = body.argument(op.getDocStart());
    e.loop(body.begin, body.end, 1, [&](Value row) {
      Value base = e.muli(row, length);
      Value first = e.load(e.i32, starts, base);
      e.loop(e.number(0), e.number(length), 1, {first, e.constantInt(e.i32, 0)},
             [&](Value i, ValueRange carried) -> SmallVector<Value> {
               Value at = e.addi(base, i);
               Value start = e.load(e.i32, starts, at);
               Value changed = e.compare(Predicate::ne, start, carried[0]);
               Value step = arith::ExtUIOp::create(e.b, e.loc, e.i32, changed);
               Value number = e.addi(carried[1], step);
               e.store(number, body.result(0), at);
               return {start, number};
             });
    });
    return success();
  };
  return {[rows] { return rows; }, build};
}

KernelKind integersKind(IntegersOp op) {
  auto build = [op](KernelBody &body) mutable -> LogicalResult {
    Emitter &e = body.e;
    e.loop(body.begin, body.end, 1, [&](Value) {
      for (auto [i, value] : llvm::enumerate(op.getValues()))
        e.store(e.constantInt(e.i32, value), body.result(0), e.number(static_cast<int64_t>(i)));
    });
    return success();
  };
  return {[] { return int64_t{1}; }, build};
}

KernelKind cacheUpdateKind(CacheUpdateOp op) {
  auto cacheType = tensorOf(op.getCache());
  int64_t batch = cacheType.getDimSize(0);
  auto build = [op, cacheType, batch](KernelBody &body) mutable -> LogicalResult {
    Emitter &e = body.e;
    int64_t keys = cacheType.getDimSize(1), places = tensorOf(op.getValue()).getDimSize(1);
    int64_t width = cacheType.getNumElements() / batch / keys;
    Value cache = body.argument(op.getCache()), value = body.argument(op.getValue());
    Value offset = e.loadIndex(body.argument(op.getOffset()), e.number(0));
    e.loop(body.begin, body.end, 1, [&](Value row) {
      Value start = e.muli(row, keys * width);
      Value to = e.at(body.result(0), start);
      copyUnlessSame(e, e.at(cache, start), to, e.number(keys * width));
      Value from = e.at(value, e.muli(row, places * width));
      // What would fall outside the cache is not written.
      Value room = e.maxi(e.subi(e.number(keys), offset), e.number(0));
      e.loop(e.number(0), e.mini(room, e.number(places)), 1, [&](Value i) {
        copyRow(e, e.at(from, e.muli(i, width)), e.at(to, e.muli(e.addi(offset, i), width)), width);
      });
    });
    return success();
  };
  return {[batch] { return batch; }, build};
}

} // namespace weft

//===- AttendQueryRows.cpp - The keys that a tile of queries sees ---------===//
#include "passes/Codegen/Gpu/AttendKernel.h"

#include <limits>

using namespace mlir;

namespace weft {

Value AttendQueryRows::offsetOf() {
  return p.offset < 0 ? e.number(0) : e.load(operand(p.offset), e.wide(e.number(0)));
}

/// From the last block that a query of the tile sees down to the first.
AttendKernel::Values AttendQueryRows::forEachRun(const Item &item, ValueRange start, RunBody body) {
  Value offset = offsetOf();
  Value latest =
      e.min(e.add(last(item.place, tiling.groups * kRows, p.queries), offset), e.number(p.keys - 1));
  Value top = e.div(latest, tiling.block);
  Value low = e.div(firstKey(item.row, item.place, windowOf(item.head), offset), tiling.block);
  return body({kvOf(item.head), top, e.add(e.sub(top, low), 1), -1}, start);
}

AttendQueryRows::Keys AttendQueryRows::keysOf(const Item &item, const Run &run) {
  Value offset = offsetOf(), window = windowOf(item.head), row = firstRow(item);
  Value there = e.less(row, e.number(p.queries));
  Value first = e.min(row, e.number(p.queries - 1)), final = last(row, kRows, p.queries);
  Keys keys;
  keys.latest = e.min(e.add(final, offset), e.number(p.keys - 1));
  keys.oldest = firstKey(item.row, first, window, offset);
  Value high = e.div(keys.latest, tiling.block), low = e.div(keys.oldest, tiling.block);
  keys.begin = e.select(there, e.sub(run.from, high), run.count);
  keys.end = e.select(there, e.add(e.sub(run.from, low), 1), run.count);
  keys.wholeFrom = firstKey(item.row, e.max(final, e.number(0)), window, offset);
  keys.wholeTo = e.add(first, offset);

  Value own = e.add(row, offset), none = e.number(0);
  Value starts = e.splat(e.rows(e.i32), none);
  if (p.starts >= 0)
    starts = tile::LoadRowsOp::create(e.b, e.loc, e.rows(e.i32), operand(p.starts),
                                      place(item.row, row, none, p.queries, 1, 1), e.wide(e.number(1)),
                                      e.sub(e.number(p.queries), row));
  Value oldest = e.add(e.sub(own, window), 1);
  keys.first = e.mapPlaces(e.rows(e.i32), {starts},
                           [&](ValueRange in) { return e.max(e.max(in[0], e.add(oldest, in[1])), none); });
  keys.span = e.mapPlaces(e.rows(e.i32), {keys.first},
                          [&](ValueRange in) { return e.sub(e.add(own, in[1]), in[0]); });
  return keys;
}

Value AttendQueryRows::masked(Value scores, Value key, const Keys &keys) {
  Value first = e.map(e.rows(e.i32), {keys.first}, [&](ValueRange in) { return e.sub(in[0], key); });
  constexpr double kFinite = -1e34;
  Value unseen = e.real(p.entropy < 0 ? -std::numeric_limits<double>::infinity() : kFinite);
  return e.mapPlaces(scores.getType(), {scores, first, keys.span}, [&](ValueRange in) {
    Value column = in[4];
    return e.select(e.within(e.sub(column, in[1]), in[2]), in[0], unseen);
  });
}

AttendQueryRows::Values AttendQueryRows::ofSeen(Value scores, Value key, const Keys &keys, TypeRange types,
                                                function_ref<Values(Value)> f) {
  int64_t columns = cast<tile::FragType>(scores.getType()).getColumns();
  Value whole = e.both(e.atMost(keys.wholeFrom, key), e.atMost(e.add(key, columns - 1), keys.wholeTo));
  return e.choose(
      whole, types, [&] { return f(scores); }, [&] { return f(masked(scores, key, keys)); });
}

Value AttendQueryRows::mask(Value scores, Value key, const Keys &keys) {
  return ofSeen(scores, key, keys, {scores.getType()}, [](Value seen) { return Values{seen}; })[0];
}

} // namespace weft

//===- AttendKeyValue.cpp - Backward of attention on tiles, for k and v ---===//
//
// An item is a tile of keys of one key-value head; it goes over the heads that
// read it, so no two items write one number. Scores stand transposed, keys in
// rows, so that p and ds are left operands of the products as they are.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/AttendKernel.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace weft {
namespace {

constexpr size_t kKeys = 0, kValues = 1;    // own
constexpr size_t kQueries = 0, kSlopes = 1; // streamed

class KeyValue : public AttendKernel {
public:
  KeyValue(Location loc, const AttendProblem &p, const AttendTiling &tiling)
      : AttendKernel(loc, p, tiling, {p.k, p.v}, {p.q, p.dout}, {p.lse, p.delta}) {}

private:
  struct Bounds {
    Value begin, end;         // of the run's blocks: this warpgroup's
    Value window, key;        // of the head; this warpgroup's first
    Value wholeFrom, wholeTo; // blocks whose queries all see all its keys
    Value documents;          // blocks before it have no query whose document starts behind `key`
  };
  /// Of the queries of a block.
  struct ColumnValues {
    Value lse, delta;
  };
  Values forEachRun(const Item &item, ValueRange start, RunBody body) override;
  Value consume(const Item &item, Value number) override;
  Value startOfQuery(const Item &item, Value query);
  Value documentsEnd(const Item &item, Value key);
  Value queriesEnd(Value lastKey, Value window);
  Bounds boundsOf(const Item &item, const Run &run);
  ColumnValues loadColumns(const Item &item, const Run &run, Value query);
  Value firstKeys(const Item &item, const Bounds &bounds, Value at, Value query);
  Value mask(Value scores, Value at, Value query, const Item &item, const Bounds &bounds);
  Value probabilitiesOf(Value scores, Value lse);
  Values block(const Item &item, const Run &run, const Bounds &bounds, Value at, Value number,
               ValueRange carried);
  void releaseBoth(Value number);
  Values sumBlocks(const Item &item, const Run &run, Value number, ValueRange sums);
  void store(const Item &item, Value sums, int operand, double scale);

  Value lastStart; // first key of the last query's document
};

/// First key of the document of `query`.
Value KeyValue::startOfQuery(const Item &item, Value query) {
  return e.load(operand(p.starts), place(item.row, query, e.number(0), p.queries, 1, 1));
}

/// Blocks before the first whose documents all start after `key`: starts only move on.
Value KeyValue::documentsEnd(const Item &item, Value key) {
  int64_t blocks = (p.queries + tiling.block - 1) / tiling.block, steps = 0;
  while ((int64_t(1) << steps) < blocks)
    ++steps;
  Value none = e.number(0), all = e.number(blocks);
  auto search = [&] {
    // The block before `low + 1` still has a query that may see the key, the one at `high` has none.
    Values range = e.loop(none, e.number(steps), e.number(1), {none, all}, [&](Value, ValueRange range) {
      Value middle = e.div(e.add(range[0], range[1]), 2);
      Value sees = e.atMost(startOfQuery(item, e.mul(middle, tiling.block)), key);
      return Values{e.select(sees, middle, range[0]), e.select(sees, range[1], middle)};
    });
    return Values{range[1]};
  };
  // Most often the last query's document began before: one load then, not one after another.
  return e.when(e.less(key, lastStart), search, {all})[0];
}

/// Blocks before the first whose queries' windows all begin after `lastKey`.
Value KeyValue::queriesEnd(Value lastKey, Value window) {
  Value end = e.add(lastKey, e.min(window, e.number(p.queries)));
  return e.div(e.add(e.min(end, e.number(p.queries)), tiling.block - 1), tiling.block);
}

AttendKernel::Values KeyValue::forEachRun(const Item &item, ValueRange start, RunBody body) {
  Value lastKey = last(item.place, tiling.groups * kRows, p.keys);
  lastStart = startOfQuery(item, e.number(p.queries - 1));
  Value documents = documentsEnd(item, lastKey), from = e.div(item.place, tiling.block);
  auto run = [&](Value head, Value reads, ValueRange carried) {
    Value end = e.min(queriesEnd(lastKey, windowOf(head)), documents);
    Value count = e.max(e.sub(end, from), e.number(0));
    return body({head, from, reads ? e.select(reads, count, e.number(0)) : count, 1}, carried);
  };
  if (p.kvOf >= 0)
    return e.loop(e.number(0), e.number(p.heads), e.number(1), start, [&](Value head, ValueRange carried) {
      return run(head, e.same(kvOf(head), item.head), carried);
    });
  return e.loop(e.number(0), e.number(p.heads / p.kvHeads), e.number(1), start,
                [&](Value member, ValueRange carried) {
                  Value head = e.number(0), rest = member;
                  for (const Axis &axis : llvm::reverse(p.headAxes)) {
                    int64_t inKv = strideOf(p.kvAxes, axis.name);
                    Value at = e.rem(inKv ? e.div(item.head, inKv) : rest, axis.size);
                    if (!inKv)
                      rest = e.div(rest, axis.size);
                    head = e.add(head, e.mul(at, strideOf(p.headAxes, axis.name)));
                  }
                  return run(head, {}, carried);
                });
}

KeyValue::Bounds KeyValue::boundsOf(const Item &item, const Run &run) {
  Value key = firstRow(item), window = windowOf(run.head);
  Value there = e.less(key, e.number(p.keys));
  Value begin = e.min(e.sub(e.div(key, tiling.block), run.from), run.count);
  Value end = e.min(e.sub(queriesEnd(last(key, kRows, p.keys), window), run.from), run.count);
  Bounds bounds{e.select(there, begin, run.count), e.select(there, end, run.count), window, key, {}, {}, {}};
  // The last query of block b lies at least window behind `key` from b = (key + window) / block on.
  Value near = e.div(e.add(key, e.min(window, e.number(p.queries))), tiling.block);
  // The block before the first whose first query's document starts behind `key` may have such queries too.
  Value all = e.number((p.queries + tiling.block - 1) / tiling.block), cut = documentsEnd(item, key);
  Value documents = e.select(e.less(key, lastStart), e.add(cut, -1), all);
  bounds.documents = e.sub(documents, run.from);
  bounds.wholeFrom = e.sub(e.div(e.add(key, kRows - 1 + tiling.block - 1), tiling.block), run.from);
  bounds.wholeTo = e.sub(e.min(near, documents), run.from);
  return bounds;
}

KeyValue::ColumnValues KeyValue::loadColumns(const Item &item, const Run &run, Value query) {
  Type columns = e.cols(tiling.block, e.f32);
  Value at = place(item.row, query, run.head, p.queries, p.heads, 1);
  Value heads = e.wide(e.number(p.heads)), limit = e.sub(e.number(p.queries), query);
  Value lse = tile::LoadColsOp::create(e.b, e.loc, columns, operand(p.lse), at, heads, limit);
  Value delta = tile::LoadColsOp::create(e.b, e.loc, columns, operand(p.delta), at, heads, limit);
  return {lse, delta};
}

/// Of each query of block `at`, from `query` on, the first key that it sees; 0 for a document that starts
/// before this warpgroup's keys.
Value KeyValue::firstKeys(const Item &item, const Bounds &bounds, Value at, Value query) {
  Type columns = e.cols(tiling.block, e.i32);
  Value none = e.number(0), oldest = e.add(e.sub(query, bounds.window), 1);
  auto starts = [&] {
    return Values{tile::LoadColsOp::create(e.b, e.loc, columns, operand(p.starts),
                                           place(item.row, query, none, p.queries, 1, 1), e.wide(e.number(1)),
                                           e.sub(e.number(p.queries), query))};
  };
  Value given = e.when(e.atMost(bounds.documents, at), starts, {e.splat(columns, none)})[0];
  return e.mapPlaces(columns, {given},
                     [&](ValueRange in) { return e.max(e.max(in[0], e.add(oldest, in[2])), none); });
}

/// Queries from T on bring zeros of q and dout, so whatever they see adds nothing.
Value KeyValue::mask(Value scores, Value at, Value query, const Item &item, const Bounds &bounds) {
  Value whole = e.both(e.atMost(bounds.wholeFrom, at), e.less(at, bounds.wholeTo));
  auto seen = [&] {
    Type columns = e.cols(tiling.block, e.i32);
    Value first = firstKeys(item, bounds, at, query);
    Value span =
        e.mapPlaces(columns, {first}, [&](ValueRange in) { return e.sub(e.add(query, in[2]), in[0]); });
    Value unseen = e.real(-std::numeric_limits<double>::infinity());
    return Values{e.mapPlaces(scores.getType(), {scores, first, span}, [&](ValueRange in) {
      Value distance = e.sub(e.add(bounds.key, in[3]), in[1]);
      return e.select(e.within(distance, in[2]), in[0], unseen);
    })};
  };
  return e.choose(
      whole, {scores.getType()}, [&] { return Values{scores}; }, seen)[0];
}

/// exp(scale * scores - lse), lse of the columns.
Value KeyValue::probabilitiesOf(Value scores, Value lse) {
  Value c = e.real(p.scale * std::numbers::log2e);
  Value base =
      e.map(lse.getType(), {lse}, [&](ValueRange in) { return e.mulf(in[0], e.real(-std::numbers::log2e)); });
  return e.map(scores.getType(), {scores, base},
               [&](ValueRange in) { return e.exp2(e.fma(in[0], c, in[1])); });
}

void KeyValue::releaseBoth(Value number) {
  release(kQueries, number);
  release(kSlopes, number);
}

/// carried: the sums of dk and dv, ds; with `overlap` the product of ds, of the block
/// before, is still under way.
AttendKernel::Values KeyValue::block(const Item &item, const Run &run, const Bounds &bounds, Value at,
                                     Value number, ValueRange carried) {
  Value query = e.mul(blockOf(run, at), tiling.block);
  ColumnValues columns;
  if (!tiling.columns)
    columns = loadColumns(item, run, query);
  Value q = take(kQueries, number), slope = take(kSlopes, number);
  // Before products that read shared memory all the time: a load would wait for them.
  if (tiling.columns && tiling.ahead)
    columns.lse = companion(kQueries, number);
  if (tiling.columns && !tiling.lazy)
    columns.delta = companion(kSlopes, number);
  e.fence();
  Value scores = e.product(own(kKeys), q);
  e.commit();
  e.fence();
  Value slopes = e.product(own(kValues), slope);
  e.commit();
  Values first = e.wait(1, {scores, carried[0], carried[1], carried[2]});
  if (tiling.overlap)
    e.when(e.less(bounds.begin, at), [&] { releaseBoth(e.add(number, -1)); });
  scores = mask(first[0], at, query, item, bounds);
  if (tiling.columns && !tiling.ahead)
    columns.lse = companion(kQueries, number);
  Value probabilities = probabilitiesOf(scores, columns.lse), p16, dv;
  auto addValues = [&] {
    p16 = e.left(probabilities);
    e.fence();
    dv = e.product(p16, slope, first[2], /*transposed=*/true);
    e.commit();
  };
  if (tiling.early)
    addValues();
  slopes = e.waitOne(tiling.early ? 1 : 0, slopes);
  if (tiling.columns && tiling.lazy)
    columns.delta = companion(kSlopes, number);
  slopes = e.map(scores.getType(), {probabilities, slopes, columns.delta},
                 [&](ValueRange in) { return e.mulf(in[0], e.subf(in[1], in[2])); });
  Value ds16 = e.left(slopes);
  if (!tiling.early)
    addValues();
  e.fence();
  Value dk = e.product(ds16, q, first[1], /*transposed=*/true);
  e.commit();
  // With `overlap` dv is done, and registers of p are free, before the next block's products.
  Values done = e.wait(tiling.overlap ? 1 : 0, {dk, dv, ds16, p16});
  if (!tiling.overlap)
    releaseBoth(number);
  done.pop_back();
  return done;
}

/// `sums` of dk and dv with a run's blocks.
AttendKernel::Values KeyValue::sumBlocks(const Item &item, const Run &run, Value number, ValueRange sums) {
  Bounds bounds = boundsOf(item, run);
  Value none = e.zero(e.leftType(tiling.block));
  Value start[] = {sums[0], sums[1], none};
  return stream(item, run, number, bounds.begin, bounds.end, [&] {
    Values given = forEachBlock(
        item, run, number, bounds.begin, bounds.end, start,
        [&](Value at, Value inRing, ValueRange in) { return block(item, run, bounds, at, inRing, in); });
    if (!tiling.overlap)
      return given;
    given = e.wait(0, given);
    e.when(e.less(bounds.begin, bounds.end), [&] { releaseBoth(e.add(e.add(number, bounds.end), -1)); });
    return given;
  });
}

void KeyValue::store(const Item &item, Value sums, int number, double scale) {
  Value row = firstRow(item);
  Value scaled = e.map(sums.getType(), {sums}, [&](ValueRange in) { return e.mulf(in[0], e.real(scale)); });
  tile::StoreFragOp::create(e.b, e.loc, scaled, operand(number),
                            place(item.row, row, item.head, p.keys, p.kvHeads, p.channel),
                            e.wide(e.number(p.kvHeads * p.channel)), e.sub(e.number(p.keys), row));
}

Value KeyValue::consume(const Item &item, Value number) {
  takeOwn(item);
  Type sums = e.frag(p.channel);
  Values given =
      forEachRun(item, {number, e.zero(sums), e.zero(sums)}, [&](const Run &run, ValueRange carried) {
        Values sums = sumBlocks(item, run, carried[0], carried.drop_front());
        return Values{e.add(carried[0], run.count), sums[0], sums[1]};
      });
  releaseOwn();
  store(item, given[1], p.dk, p.scale);
  store(item, given[2], p.dv, 1);
  return given[0];
}

} // namespace

std::unique_ptr<AttendKernel> makeAttendKeyValue(Location loc, const AttendProblem &p,
                                                 const AttendTiling &tiling) {
  return std::make_unique<KeyValue>(loc, p, tiling);
}

} // namespace weft

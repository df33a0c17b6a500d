//===- AttendQuery.cpp - Backward of attention on tiles, for the queries --===//
#include "passes/Codegen/Gpu/AttendKernel.h"

#include <numbers>

using namespace mlir;

namespace weft {
namespace {

constexpr size_t kQueries = 0, kSlopes = 1; // own
constexpr size_t kKeys = 0, kValues = 1;    // streamed

class Query : public AttendQueryRows {
public:
  Query(Location loc, const AttendProblem &p, const AttendTiling &tiling)
      : AttendQueryRows(loc, p, tiling, {p.q, p.dout}, {p.k, p.v}) {}

private:
  struct RowValues {
    Value base, delta; // -log2(e) lse; rowsum(dout out)
  };
  Value consume(const Item &item, Value number) override;
  RowValues readRows(const Item &item);
  Values block(const Run &run, const Keys &keys, const RowValues &rows, Value at, Value number,
               ValueRange carried);
  Value sumBlocks(const Item &item, const Run &run, const Keys &keys, const RowValues &rows, Value number);
};

/// delta is written here too: the pass for keys and values reads it.
Query::RowValues Query::readRows(const Item &item) {
  Type rows = e.rows(e.f32), part = e.frag(kPanel);
  Value row = firstRow(item), limit = e.sub(e.number(p.queries), row);
  Value start = place(item.row, row, item.head, p.queries, p.heads, p.channel);
  Value stride = e.wide(e.number(p.heads * p.channel));
  Value delta = e.zero(rows);
  for (int64_t channel = 0; channel < p.channel; channel += kPanel) {
    Value at = e.add(start, channel);
    Value out = tile::LoadFragOp::create(e.b, e.loc, part, operand(p.out), at, stride, limit);
    Value slope = tile::LoadFragOp::create(e.b, e.loc, part, operand(p.dout), at, stride, limit);
    Value products = e.map(part, {out, slope}, [&](ValueRange in) { return e.mulf(in[0], in[1]); });
    delta = e.map(rows, {delta, e.reduce(tile::Fold::Add, products, /*partial=*/false)},
                  [&](ValueRange in) { return e.addf(in[0], in[1]); });
  }
  Value perRow = place(item.row, row, item.head, p.queries, p.heads, 1);
  Value heads = e.wide(e.number(p.heads));
  tile::StoreRowsOp::create(e.b, e.loc, delta, operand(p.delta), perRow, heads, limit);
  Value lse = tile::LoadRowsOp::create(e.b, e.loc, rows, operand(p.lse), perRow, heads, limit);
  Value base = e.map(rows, {lse}, [&](ValueRange in) { return e.mulf(in[0], e.real(-std::numbers::log2e)); });
  return {base, delta};
}

/// carried: the sums of dq and ds; with `overlap` their product, of the block
/// before, is still under way.
AttendKernel::Values Query::block(const Run &run, const Keys &keys, const RowValues &rows, Value at,
                                  Value number, ValueRange carried) {
  Value k = take(kKeys, number), v = take(kValues, number);
  e.fence();
  Value scores = e.product(own(kQueries), k);
  e.commit();
  e.fence();
  Value slopes = e.product(own(kSlopes), v);
  e.commit();
  Values first = e.wait(1, {scores, carried[0], carried[1]});
  if (tiling.overlap)
    e.when(e.less(keys.begin, at), [&] { release(kKeys, e.add(number, -1)); });
  Value c = e.real(p.scale * std::numbers::log2e);
  Value probabilities = ofSeen(first[0], placeOf(run, at), keys, {scores.getType()}, [&](Value seen) {
    return Values{e.map(scores.getType(), {seen, rows.base},
                        [&](ValueRange in) { return e.exp2(e.fma(in[0], c, in[1])); })};
  })[0];
  slopes = e.waitOne(0, slopes);
  release(kValues, number);
  slopes = e.map(scores.getType(), {probabilities, slopes, rows.delta},
                 [&](ValueRange in) { return e.mulf(in[0], e.subf(in[1], in[2])); });
  Value left = e.left(slopes);
  e.fence();
  Value sums = e.product(left, k, first[1], /*transposed=*/true);
  e.commit();
  if (tiling.overlap)
    return {sums, left};
  Values last = e.wait(0, {sums, left});
  release(kKeys, number);
  return last;
}

Value Query::sumBlocks(const Item &item, const Run &run, const Keys &keys, const RowValues &rows,
                       Value number) {
  Value start[] = {e.zero(e.frag(p.channel)), e.zero(e.leftType(tiling.block))};
  return stream(item, run, number, keys.begin, keys.end, [&] {
    Values sums = forEachBlock(
        item, run, number, keys.begin, keys.end, start,
        [&](Value at, Value inRing, ValueRange in) { return block(run, keys, rows, at, inRing, in); });
    if (!tiling.overlap)
      return sums;
    sums = e.wait(0, sums);
    e.when(e.less(keys.begin, keys.end), [&] { release(kKeys, e.add(e.add(number, keys.end), -1)); });
    return sums;
  })[0];
}

Value Query::consume(const Item &item, Value number) {
  return forEachRun(item, {number}, [&](const Run &run, ValueRange carried) {
    Keys keys = keysOf(item, run);
    RowValues rows = readRows(item);
    takeOwn(item);
    Value sums = sumBlocks(item, run, keys, rows, carried[0]);
    releaseOwn();
    Value dq = e.map(sums.getType(), {sums}, [&](ValueRange in) { return e.mulf(in[0], e.real(p.scale)); });
    Value row = firstRow(item);
    tile::StoreFragOp::create(e.b, e.loc, dq, operand(p.dq),
                              place(item.row, row, item.head, p.queries, p.heads, p.channel),
                              e.wide(e.number(p.heads * p.channel)), e.sub(e.number(p.queries), row));
    return Values{e.add(carried[0], run.count)};
  })[0];
}

} // namespace

std::unique_ptr<AttendKernel> makeAttendQuery(Location loc, const AttendProblem &p,
                                              const AttendTiling &tiling) {
  return std::make_unique<Query>(loc, p, tiling);
}

} // namespace weft

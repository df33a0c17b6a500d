//===- AttendForward.cpp - Attention on tiles -----------------------------===//
//
// Scores of 64 queries and a block of keys, a running maximum and sum a row,
// probabilities as left operand of the product with the values. Powers are of
// two: log2(e) is in the scale. For entropies a third sum runs along, of p log2(p)
// with p over the largest so far.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/AttendKernel.h"

#include <numbers>

using namespace mlir;

namespace weft {
namespace {

constexpr size_t kKeys = 0, kValues = 1;
/// A maximum before any key, finite so that no difference of it is NaN.
constexpr double kLowest = -1e30;

class Forward : public AttendQueryRows {
public:
  Forward(Location loc, const AttendProblem &p, const AttendTiling &tiling)
      : AttendQueryRows(loc, p, tiling, {p.q}, {p.k, p.v}), power(p.scale * std::numbers::log2e) {}

private:
  struct Softmax {
    Value most, total; // of each row: the largest score, this thread's part of the sum
    Value fade;        // what earlier sums are multiplied by
    Value probabilities;
    Value spread; // this thread's part of the sum for entropies, or null
  };
  Value consume(const Item &item, Value number) override;
  Value scoresOf(Value number);
  /// `spread` null: without entropies.
  Softmax softmax(Value scores, Value most, Value total, Value spread);
  /// Of block `block`, with its mask where that hides a key.
  Softmax softmaxOf(Value scores, Value block, const Keys &keys, Value most, Value total, Value spread);
  Value spreadOf(const Softmax &s, Value exponents, Value most, Value total, Value spread);
  /// Carried values end with the sum for entropies.
  Value spreadIn(ValueRange carried) const { return p.entropy < 0 ? Value() : carried.back(); }
  static Values with(Values values, Value spread) {
    if (spread)
      values.push_back(spread);
    return values;
  }
  Value faded(Value out, Value fade);
  Values block(const Run &run, const Keys &keys, Value at, Value number, ValueRange carried);
  Values overlapped(const Run &run, const Keys &keys, Value at, Value number, ValueRange carried);
  Values sumOverlapped(const Item &item, const Run &run, const Keys &keys, Value number);
  Values sumBlocks(const Item &item, const Run &run, const Keys &keys, Value number);
  void finish(const Item &item, ValueRange carried);
  Values nothing() {
    return with({e.splat(e.rows(e.f32), e.real(kLowest)), e.zero(e.rows(e.f32)), e.zero(e.frag(p.channel))},
                p.entropy < 0 ? Value() : e.zero(e.rows(e.f32)));
  }

  double power; // scores to exponents of 2
};

/// The product of queries and keys, under way.
Value Forward::scoresOf(Value number) {
  Value k = take(kKeys, number);
  e.fence();
  Value scores = e.product(own(0), k);
  e.commit();
  return scores;
}

/// Of a largest score that grows by log2(1 / fade): f (sum p log2(p) + log2(f) sum p).
Value Forward::spreadOf(const Softmax &s, Value exponents, Value before, Value total, Value spread) {
  auto contract = arith::FastMathFlags::contract;
  Value parts = e.map(exponents.getType(), {s.probabilities, exponents}, [&](ValueRange in) {
    return arith::MulFOp::create(e.b, e.loc, in[0], in[1], contract).getResult();
  });
  Value sum = e.reduce(tile::Fold::Add, parts, /*partial=*/true);
  return e.map(e.rows(e.f32), {spread, total, s.fade, before, s.most, sum}, [&](ValueRange in) {
    Value lower = e.mulf(e.subf(in[3], in[4]), e.real(power));
    return e.fma(in[2], e.fma(lower, in[1], in[0]), in[5]);
  });
}

Forward::Softmax Forward::softmax(Value scores, Value before, Value total, Value spread) {
  Type rows = e.rows(e.f32);
  Value c = e.real(power), minus = e.real(-power);
  Softmax s;
  s.most = e.map(rows, {before, e.reduce(tile::Fold::Max, scores, /*partial=*/false)},
                 [&](ValueRange in) { return e.maxf(in[0], in[1]); });
  s.fade =
      e.map(rows, {before, s.most}, [&](ValueRange in) { return e.exp2(e.mulf(e.subf(in[0], in[1]), c)); });
  Value base = e.map(rows, {s.most}, [&](ValueRange in) { return e.mulf(in[0], minus); });
  auto exponent = [&](ValueRange in) { return e.fma(in[0], c, in[1]); };
  if (spread) {
    Value exponents = e.map(scores.getType(), {scores, base}, exponent);
    s.probabilities = e.map(scores.getType(), {exponents}, [&](ValueRange in) { return e.exp2(in[0]); });
    s.spread = spreadOf(s, exponents, before, total, spread);
  } else {
    s.probabilities =
        e.map(scores.getType(), {scores, base}, [&](ValueRange in) { return e.exp2(exponent(in)); });
  }
  s.total = e.map(rows, {total, s.fade, e.reduce(tile::Fold::Add, s.probabilities, /*partial=*/true)},
                  [&](ValueRange in) { return e.fma(in[0], in[1], in[2]); });
  return s;
}

Forward::Softmax Forward::softmaxOf(Value scores, Value block, const Keys &keys, Value most, Value total,
                                    Value spread) {
  Type rows = e.rows(e.f32);
  SmallVector<Type> types{rows, rows, rows, scores.getType()};
  if (spread)
    types.push_back(rows);
  Values s = ofSeen(scores, block, keys, types, [&](Value seen) {
    Softmax s = softmax(seen, most, total, spread);
    return with({s.most, s.total, s.fade, s.probabilities}, s.spread);
  });
  return {s[0], s[1], s[2], s[3], spread ? s[4] : Value()};
}

Value Forward::faded(Value out, Value fade) {
  return e.map(out.getType(), {out, fade}, [&](ValueRange in) { return e.mulf(in[0], in[1]); });
}

/// carried: the largest score so far, the thread's part of the sum, the output so far.
AttendKernel::Values Forward::block(const Run &run, const Keys &keys, Value at, Value number,
                                    ValueRange carried) {
  Value scores = e.waitOne(0, scoresOf(number));
  release(kKeys, number);
  Softmax s = softmax(mask(scores, blockOf(run, at), keys), carried[0], carried[1], spreadIn(carried));
  Value out = faded(carried[2], s.fade), left = e.left(s.probabilities), v = take(kValues, number);
  e.fence();
  out = e.product(left, v, out, /*transposed=*/true);
  e.commit();
  out = e.wait(0, {out, left})[0];
  release(kValues, number);
  return with({s.most, s.total, out}, s.spread);
}

/// As block, but carried too are the probabilities of the block before, whose
/// product with its values runs under this block's exponentials.
AttendKernel::Values Forward::overlapped(const Run &run, const Keys &keys, Value at, Value number,
                                         ValueRange carried) {
  Value k = take(kKeys, number), before = e.add(number, -1);
  takeTurn();
  e.fence();
  Value scores = e.product(own(0), k);
  e.commit();
  Value v = take(kValues, before);
  e.fence();
  Value out = e.product(carried[3], v, carried[2], /*transposed=*/true);
  e.commit();
  passTurn();
  Values under = e.wait(1, {scores, out, carried[3]});
  release(kKeys, number);
  Softmax s = softmaxOf(under[0], blockOf(run, at), keys, carried[0], carried[1], spreadIn(carried));
  Values done = e.wait(0, {under[1], under[2]});
  release(kValues, before);
  // Not before the wait: they take the place of those that the product read.
  Value left = e.left(s.probabilities);
  return with({s.most, s.total, faded(done[0], s.fade), left}, s.spread);
}

AttendKernel::Values Forward::sumOverlapped(const Item &item, const Run &run, const Keys &keys,
                                            Value number) {
  Values none = nothing();
  auto some = [&] {
    Value at = keys.begin, inRing = e.add(number, at);
    prefetch(item, run, e.add(at, 1), e.add(inRing, 1));
    Value scores = e.waitOne(0, scoresOf(inRing));
    release(kKeys, inRing);
    // Most often the diagonal's: masked without a question.
    Softmax s = softmax(masked(scores, blockOf(run, at), keys), none[0], none[1], spreadIn(none));
    Values start = with({s.most, s.total, none[2], e.left(s.probabilities)}, s.spread);
    Values sums = forEachBlock(
        item, run, number, e.add(at, 1), keys.end, start,
        [&](Value at, Value inRing, ValueRange in) { return overlapped(run, keys, at, inRing, in); });
    Value last = e.add(e.add(number, keys.end), -1), v = take(kValues, last);
    e.fence();
    Value out = e.product(sums[3], v, sums[2], /*transposed=*/true);
    e.commit();
    out = e.wait(0, {out, sums[3]})[0];
    release(kValues, last);
    return with({sums[0], sums[1], out}, spreadIn(sums));
  };
  return e.when(e.less(keys.begin, keys.end), some, none);
}

AttendKernel::Values Forward::sumBlocks(const Item &item, const Run &run, const Keys &keys, Value number) {
  return stream(item, run, number, keys.begin, keys.end, [&] {
    if (tiling.overlap)
      return sumOverlapped(item, run, keys, number);
    return forEachBlock(
        item, run, number, keys.begin, keys.end, nothing(),
        [&](Value at, Value inRing, ValueRange in) { return block(run, keys, at, inRing, in); });
  });
}

void Forward::finish(const Item &item, ValueRange carried) {
  Type rows = e.rows(e.f32);
  Value total = tile::QuadOp::create(e.b, e.loc, rows, tile::Fold::Add, carried[1]);
  Value inverse = e.map(rows, {total}, [&](ValueRange in) { return e.divf(e.real(1), in[0]); });
  Value out =
      e.map(carried[2].getType(), {carried[2], inverse}, [&](ValueRange in) { return e.mulf(in[0], in[1]); });
  Value lse = e.map(rows, {carried[0], total},
                    [&](ValueRange in) { return e.fma(in[0], e.real(p.scale), e.log(in[1])); });
  Value row = firstRow(item), limit = e.sub(e.number(p.queries), row);
  tile::StoreFragOp::create(e.b, e.loc, out, operand(p.out),
                            place(item.row, row, item.head, p.queries, p.heads, p.channel),
                            e.wide(e.number(p.heads * p.channel)), limit);
  auto storeRows = [&](Value values, int to) {
    tile::StoreRowsOp::create(e.b, e.loc, values, operand(to),
                              place(item.row, row, item.head, p.queries, p.heads, 1),
                              e.wide(e.number(p.heads)), limit);
  };
  storeRows(lse, p.lse);
  if (p.entropy < 0)
    return;
  // log(sum) - sum p log(p) / sum, p over the largest.
  Value spread = tile::QuadOp::create(e.b, e.loc, rows, tile::Fold::Add, spreadIn(carried));
  Value entropy = e.map(rows, {total, spread, inverse}, [&](ValueRange in) {
    Value part = e.mulf(e.mulf(in[1], in[2]), e.real(-std::numbers::ln2));
    return e.addf(e.log(in[0]), part);
  });
  storeRows(entropy, p.entropy);
}

Value Forward::consume(const Item &item, Value number) {
  return forEachRun(item, {number}, [&](const Run &run, ValueRange carried) {
    Keys keys = keysOf(item, run);
    takeOwn(item);
    Values sums = sumBlocks(item, run, keys, carried[0]);
    releaseOwn();
    finish(item, sums);
    return Values{e.add(carried[0], run.count)};
  })[0];
}

} // namespace

std::unique_ptr<AttendKernel> makeAttendForward(Location loc, const AttendProblem &p,
                                                const AttendTiling &tiling) {
  return std::make_unique<Forward>(loc, p, tiling);
}

} // namespace weft

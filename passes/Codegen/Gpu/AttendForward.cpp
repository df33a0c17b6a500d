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
  /// Rows of a block that are worked on: all, or a half.
  struct Part {
    int64_t from, count;
  };
  Value consume(const Item &item, Value number) override;
  Value partOf(Value tile, Part part) {
    return part.count == tiling.block
               ? tile
               : tile::SliceOp::create(e.b, e.loc, tile, e.number(part.from), part.count).getResult();
  }
  Value scoresOf(Value number, Part part);
  /// `spread` null: without entropies.
  Softmax softmax(Value scores, Value most, Value total, Value spread);
  /// Of keys from `key` on, with their mask where it hides one.
  Softmax softmaxOf(Value scores, Value key, const Keys &keys, Value most, Value total, Value spread);
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
  /// What blocks carry to the next: the largest scores, sums, output, probabilities.
  SmallVector<Type> carriedTypes();
  Values first(const Run &run, const Keys &keys, Value at, Value number, Part part);
  Values overlapped(const Run &run, const Keys &keys, Value at, Value number, ValueRange carried, Part part,
                    Part before);
  Values closed(Value number, ValueRange carried, Part part);
  Values sumOverlapped(const Item &item, const Run &run, const Keys &keys, Value number);
  Values sumBlocks(const Item &item, const Run &run, const Keys &keys, Value number);
  void finish(const Item &item, ValueRange carried);
  Values nothing() {
    return with({e.splat(e.rows(e.f32), e.real(kLowest)), e.zero(e.rows(e.f32)), e.zero(e.frag(p.channel))},
                p.entropy < 0 ? Value() : e.zero(e.rows(e.f32)));
  }

  Part whole() const { return {0, tiling.block}; }
  Part lower() const { return {0, tiling.block / 2}; }
  Part upper() const { return {tiling.block / 2, tiling.block / 2}; }

  double power; // scores to exponents of 2
};

/// The product of queries and keys, under way.
Value Forward::scoresOf(Value number, Part part) {
  Value k = partOf(take(kKeys, number), part);
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

Forward::Softmax Forward::softmaxOf(Value scores, Value key, const Keys &keys, Value most, Value total,
                                    Value spread) {
  if (tiling.branches == 1)
    return softmax(mask(scores, key, keys), most, total, spread);
  Type rows = e.rows(e.f32);
  SmallVector<Type> types{rows, rows, rows, scores.getType()};
  if (spread)
    types.push_back(rows);
  Values s = ofSeen(scores, key, keys, types, [&](Value seen) {
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
  Value scores = e.waitOne(0, scoresOf(number, whole()));
  release(kKeys, number);
  Softmax s = softmax(mask(scores, placeOf(run, at), keys), carried[0], carried[1], spreadIn(carried));
  Value out = faded(carried[2], s.fade), left = e.left(s.probabilities), v = take(kValues, number);
  e.fence();
  out = e.product(left, v, out, /*transposed=*/true);
  e.commit();
  out = e.wait(0, {out, left})[0];
  release(kValues, number);
  return with({s.most, s.total, out}, s.spread);
}

SmallVector<Type> Forward::carriedTypes() {
  Type rows = e.rows(e.f32);
  SmallVector<Type> types{rows, rows, e.frag(p.channel), e.leftType(tiling.block)};
  if (p.entropy >= 0)
    types.push_back(rows);
  return types;
}

/// The first block, whose probabilities wait for its values. Most often the diagonal's:
/// masked without a question.
AttendKernel::Values Forward::first(const Run &run, const Keys &keys, Value at, Value number, Part part) {
  Values none = nothing();
  Value scores = e.waitOne(0, scoresOf(number, part));
  release(kKeys, number);
  Value key = e.add(placeOf(run, at), part.from);
  Softmax s = softmax(masked(scores, key, keys), none[0], none[1], spreadIn(none));
  return with({s.most, s.total, none[2], e.left(s.probabilities)}, s.spread);
}

/// As block, but carried too are the probabilities of the block before, whose product with
/// its values runs under this block's exponentials. Halves are masked without a question.
AttendKernel::Values Forward::overlapped(const Run &run, const Keys &keys, Value at, Value number,
                                         ValueRange carried, Part part, Part partBefore) {
  Value k = partOf(take(kKeys, number), part), before = e.add(number, -1);
  takeTurn();
  e.fence();
  Value scores = e.product(own(0), k);
  e.commit();
  Value v = partOf(take(kValues, before), partBefore);
  e.fence();
  Value out = e.product(carried[3], v, carried[2], /*transposed=*/true);
  e.commit();
  passTurn();
  Values under = e.wait(1, {scores, out, carried[3]});
  release(kKeys, number);
  Value key = e.add(placeOf(run, at), part.from);
  bool ask = part.count == partBefore.count;
  Softmax s = ask ? softmaxOf(under[0], key, keys, carried[0], carried[1], spreadIn(carried))
                  : softmax(masked(under[0], key, keys), carried[0], carried[1], spreadIn(carried));
  Values done = e.wait(0, {under[1], under[2]});
  release(kValues, before);
  // Not before the wait: they take the place of those that the product read.
  Value left = e.left(s.probabilities);
  return with({s.most, s.total, faded(done[0], s.fade), left}, s.spread);
}

/// The values of the last block: its sums and output.
AttendKernel::Values Forward::closed(Value number, ValueRange carried, Part part) {
  Value v = partOf(take(kValues, number), part);
  e.fence();
  Value out = e.product(carried[3], v, carried[2], /*transposed=*/true);
  e.commit();
  out = e.wait(0, {out, carried[3]})[0];
  release(kValues, number);
  return with({carried[0], carried[1], out}, spreadIn(carried));
}

/// With `halves`: keys above the diagonal in the first block and before the window in the last
/// are half a block where there are that many, but for an only block and the second of two.
AttendKernel::Values Forward::sumOverlapped(const Item &item, const Run &run, const Keys &keys,
                                            Value number) {
  auto ring = [&](Value at) { return e.add(number, at); };
  auto inner = [&](Value from, Value to, ValueRange start) {
    return forEachBlock(item, run, number, from, to, start, [&](Value at, Value inRing, ValueRange in) {
      return overlapped(run, keys, at, inRing, in, whole(), whole());
    });
  };
  Values none = nothing();
  auto all = [&] {
    Values start = first(run, keys, keys.begin, ring(keys.begin), whole());
    Values sums = inner(e.add(keys.begin, 1), keys.end, start);
    return closed(ring(e.add(keys.end, -1)), sums, whole());
  };
  auto byHalves = [&] {
    Value second = e.add(keys.begin, 1), final = e.add(keys.end, -1);
    Value isHalf =
        e.both(e.less(second, keys.end), e.less(keys.latest, e.add(placeOf(run, keys.begin), upper().from)));
    Values start = e.choose(
        isHalf, carriedTypes(),
        [&] {
          Values half = first(run, keys, keys.begin, ring(keys.begin), lower());
          return overlapped(run, keys, second, ring(second), half, whole(), lower());
        },
        [&] { return first(run, keys, keys.begin, ring(keys.begin), whole()); });
    Value next = e.select(isHalf, e.add(second, 1), second);
    Value endsHalf =
        e.both(e.less(next, keys.end), e.atMost(e.add(placeOf(run, final), upper().from), keys.oldest));
    Values sums = inner(next, e.select(endsHalf, final, keys.end), start);
    return e.choose(
        endsHalf, TypeRange(none),
        [&] {
          Values half = overlapped(run, keys, final, ring(final), sums, upper(), whole());
          return closed(ring(final), half, upper());
        },
        [&] { return closed(ring(final), sums, whole()); });
  };
  auto some = [&] { return tiling.halves ? byHalves() : all(); };
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
    beginTurns(run);
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

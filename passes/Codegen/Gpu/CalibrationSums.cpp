//===- CalibrationSums.cpp - Statistics of calibration on the GPU ---------===//
//
// An item is a share of one head's blocks of rows. A block of rows meets the
// blocks of keys one after another; of each 64 x 64 tile the documents go by, and
// a thread keeps the moving mean of its pairs, so no pair is written but to shared
// memory, once a tile, for its sums over columns and diagonals. Sums of items go
// to memory of the module; the block that comes last adds them in their order.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/AttendShape.h"
#include "passes/Codegen/Gpu/Kinds.h"
#include "passes/Codegen/VectorMath.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

constexpr int64_t kThreads = 256, kSide = 64; // of a tile
constexpr int64_t kChannels = 32;             // that are multiplied at once
constexpr int64_t kItems = 264;               // of all heads, about

class CalibrationSums {
public:
  CalibrationSums(PatternStatisticsOp op, Block &block)
      : op(op), block(block), e(block.e), shape(op.getQ(), op.getK(), op.getK(), numberOf(op.getScale())),
        parts(block.global(e.f32, shape.heads * sharesOf(shape) * partSize())),
        totals(block.shared(kSide * kPitch)), left(block.shared(kSide * kChunkPitch)),
        right(block.shared(kSide * kChunkPitch)) {
    if (op.getKvOf())
      shape.kvTable = block.argument(op.getKvOf());
    down = e.divi(block.thread, kGrid), across = e.remi(block.thread, kGrid);
  }
  void build();
  static int64_t sharesOf(const AttendShape &shape) {
    return std::clamp<int64_t>(kItems / shape.heads, 1, blocksOf(shape.queries));
  }

private:
  static constexpr int64_t kPitch = kSide + 1, kChunkPitch = kChannels + 1, kGrid = 16,
                           kEach = kSide / kGrid; // threads on a side; places of each
  /// What a thread carries: sums in the order of weft.pattern_statistics but for
  /// entropies, which it keeps row by row.
  enum Carried { Information, Score, Frobenius, Divergence, Affinity, Variation, Rows, Count = Rows + kEach };

  /// Of a thread's pairs in one tile.
  struct Pairs {
    SmallVector<Value> reach;      // documents that see the pair, i32
    SmallVector<Value> log, p;     // of the pattern
    SmallVector<Value> rows, keys; // places of the thread's rows and keys
  };

  static int64_t blocksOf(int64_t places) { return (places + kSide - 1) / kSide; }
  int64_t partSize() const { return 2 * shape.queries + kPatternSums; }
  Value none() { return e.constant(e.f32, 0); }
  Value isThread(Predicate predicate, int64_t number) {
    return e.compare(predicate, block.thread, e.number(number));
  }
  void item(Value number);
  SmallVector<Value> rowBlock(Value row, ValueRange sums);
  SmallVector<Value> tile(Value row, Value key, ValueRange sums);
  Pairs pairsOf(Value row, Value key);
  SmallVector<Value> document(const Pairs &pairs, Value row, Value key, Value number, ValueRange carried);
  SmallVector<Value> dots(Value row, Value key);
  void loadChunk(Value memory, Value tensor, Value place, int64_t heads, Value ofHead, Value channel);
  void sumDiagonals(Value row, Value key);
  void sumColumns(Value key);
  void addTo(Value at, Value sum) { e.store(e.add(e.load(e.f32, own, at), sum), own, at); }
  void finish();

  PatternStatisticsOp op;
  Block &block;
  Emitter &e;
  AttendShape shape;
  Value parts, totals, left, right, down, across;
  Value head, kv, window, own; // `own`: sums of the item
};

void CalibrationSums::build() {
  block.items([&](Value number) { item(number); });
  block.last([&] { finish(); });
}

void CalibrationSums::item(Value number) {
  const int64_t shares = sharesOf(shape), places = shape.queries;
  head = e.divi(number, shares);
  kv = shape.kvOf(e, head);
  window = e.loadIndex(block.argument(op.getWindows()), head);
  own = e.at(parts, e.muli(number, partSize()));
  e.loop(block.thread, e.number(partSize()), kThreads, [&](Value at) { e.store(none(), own, at); });
  SmallVector<Value> start(kPatternSums, none());
  auto sums = e.loop(e.remi(number, shares), e.number(blocksOf(places)), shares, start,
                     [&](Value unit, ValueRange carried) -> SmallVector<Value> {
                       return rowBlock(e.muli(unit, kSide), carried);
                     });
  block.barrier();
  for (auto [at, sum] : llvm::enumerate(sums)) {
    Value all = block.overBlock(sum);
    e.when(isThread(Predicate::eq, 0),
           [&, at = at] { e.store(all, own, e.number(2 * places + static_cast<int64_t>(at))); });
  }
  block.barrier();
}

/// Rows row .. row + 63 of all documents; adds to the sums of weft.pattern_statistics.
SmallVector<Value> CalibrationSums::rowBlock(Value row, ValueRange sums) {
  Value oldest = e.maxi(e.addi(e.subi(row, window), 1), e.number(0));
  Value from = e.muli(e.divi(oldest, kSide), kSide);
  Value to = e.mini(e.addi(row, kSide), e.number(shape.queries));
  SmallVector<Value> start(Count, none());
  auto found = e.loop(from, to, kSide, start, [&](Value key, ValueRange carried) -> SmallVector<Value> {
    return tile(row, key, carried);
  });
  Value entropy = none(), share = none();
  for (int64_t i = 0; i < kEach; ++i) {
    Value place = e.addi(e.addi(row, down), i * kGrid);
    Value keys = e.mini(e.addi(place, 1), window), several = e.compare(Predicate::sgt, keys, e.number(1));
    Value log = emitLog(e, arith::SIToFPOp::create(e.b, e.loc, e.f32, e.maxi(keys, e.number(2))));
    Value sum = found[static_cast<size_t>(Rows + i)];
    entropy = e.add(entropy, sum);
    share = e.add(share, e.select(several, e.div(sum, log), none()));
  }
  return {e.add(sums[0], found[Information]),
          e.add(sums[1], found[Score]),
          e.add(sums[2], entropy),
          e.add(sums[3], share),
          e.add(sums[4], found[Frobenius]),
          e.add(sums[5], found[Divergence]),
          e.add(sums[6], found[Affinity]),
          e.add(sums[7], found[Variation])};
}

CalibrationSums::Pairs CalibrationSums::pairsOf(Value row, Value key) {
  Pairs pairs;
  const int64_t places = shape.queries;
  Value table = e.muli(head, places), last = e.number(places - 1);
  SmallVector<Value> reach, logZ, logA;
  for (int64_t i = 0; i < kEach; ++i) {
    pairs.rows.push_back(e.addi(e.addi(row, down), i * kGrid));
    pairs.keys.push_back(e.addi(e.addi(key, across), i * kGrid));
    Value place = e.mini(pairs.rows.back(), last);
    reach.push_back(e.load(e.i32, block.argument(op.getReach()), place));
    logZ.push_back(e.load(e.f32, block.argument(op.getZ()), e.addi(table, place)));
    logA.push_back(e.load(e.f32, block.argument(op.getA()), e.addi(table, e.mini(pairs.keys.back(), last))));
  }
  for (size_t i = 0; i < kEach; ++i)
    for (size_t j = 0; j < kEach; ++j) {
      Value distance = e.subi(pairs.rows[i], pairs.keys[j]);
      Value seen = e.both(e.compare(Predicate::sge, distance, e.number(0)),
                          e.compare(Predicate::slt, distance, window));
      seen = e.both(seen, e.compare(Predicate::slt, pairs.rows[i], e.number(places)));
      pairs.reach.push_back(e.select(seen, reach[i], e.constantInt(e.i32, 0)));
      Value r =
          e.load(e.f32, block.argument(op.getR()), e.addi(table, e.select(seen, distance, e.number(0))));
      Value log = e.sub(e.add(logA[j], r), logZ[i]);
      pairs.p.push_back(emitExp(e, log));
      pairs.log.push_back(e.larger(log, e.constant(e.f32, std::log(1e-30))));
    }
  return pairs;
}

SmallVector<Value> CalibrationSums::tile(Value row, Value key, ValueRange sums) {
  Pairs pairs = pairsOf(row, key);
  SmallVector<Value> start(sums);
  start.append(kEach * kEach, none()); // means
  Value most = e.loadIndex(block.argument(op.getReach()), row);
  auto found = e.loop(e.number(0), most, 1, start, [&](Value number, ValueRange carried) {
    return document(pairs, row, key, number, carried);
  });
  block.barrier();
  for (int64_t i = 0; i < kEach * kEach; ++i) {
    Value mean = found[static_cast<size_t>(Count + i)];
    Value total =
        e.mul(mean, arith::SIToFPOp::create(e.b, e.loc, e.f32, pairs.reach[static_cast<size_t>(i)]));
    Value log = emitLog(e, e.larger(mean, e.constant(e.f32, 1e-37)));
    found[Information] = e.fma(total, log, found[Information]);
    Value at = e.addi(e.muli(e.addi(down, i / kEach * kGrid), kPitch), e.addi(across, i % kEach * kGrid));
    e.store(total, totals, at);
  }
  block.barrier();
  sumDiagonals(row, key);
  sumColumns(key);
  found.truncate(Count);
  return found;
}

/// Document `number` of those that reach the tile's first row.
SmallVector<Value> CalibrationSums::document(const Pairs &pairs, Value row, Value key, Value number,
                                             ValueRange carried) {
  const int64_t tokens = shape.batch * shape.queries;
  Value start = e.loadIndex(block.argument(op.getDocuments()), number);
  SmallVector<Value> now(carried), scores = dots(e.addi(start, row), e.addi(start, key));
  Value narrow = arith::TruncIOp::create(e.b, e.loc, e.i32, number);
  Value share = e.div(e.constant(e.f32, 1), arith::SIToFPOp::create(e.b, e.loc, e.f32, e.addi(number, 1)));
  Value half = e.constant(e.f32, 0.5), scale = e.constant(e.f32, shape.scale);
  for (size_t i = 0; i < kEach; ++i) {
    Value token = e.mini(e.addi(start, pairs.rows[i]), e.number(tokens - 1));
    Value lse = e.load(e.f32, block.argument(op.getLse()), e.addi(e.muli(token, shape.heads), head));
    for (size_t j = 0; j < kEach; ++j) {
      const size_t pair = i * kEach + j;
      Value there = e.compare(Predicate::slt, narrow, pairs.reach[pair]);
      Value log = e.sub(e.mul(scores[pair], scale), lse);
      Value value = e.select(there, emitExp(e, log), none()), &mean = now[Count + pair];
      Value off = e.select(there, e.sub(value, mean), none());
      mean = e.fma(off, share, mean);
      now[Score] = e.fma(off, e.sub(value, mean), now[Score]);
      now[Rows + i] = e.sub(now[Rows + i], e.mul(value, log));
      Value gap = e.select(there, e.sub(value, pairs.p[pair]), none());
      now[Frobenius] = e.fma(gap, gap, now[Frobenius]);
      now[Divergence] = e.fma(value, e.sub(log, pairs.log[pair]), now[Divergence]);
      now[Affinity] = e.add(now[Affinity], e.sqrt(e.mul(value, pairs.p[pair])));
      now[Variation] = e.fma(half, math::AbsFOp::create(e.b, e.loc, gap), now[Variation]);
    }
  }
  return now;
}

/// memory[member][c] for kSide places and kChannels channels from `channel` on; 0 past the last.
void CalibrationSums::loadChunk(Value memory, Value tensor, Value place, int64_t heads, Value ofHead,
                                Value channel) {
  const int64_t vectors = kChannels / e.width, tokens = shape.batch * shape.queries;
  const int64_t bytes = e.width * (e.halves.contains(tensor) ? 2 : 4);
  Type type = e.width == 1 ? e.f32 : Type(e.floats);
  e.loop(block.thread, e.number(kSide * vectors), kThreads, [&](Value number) {
    Value member = e.divi(number, vectors), c = e.muli(e.remi(number, vectors), e.width);
    Value at = e.addi(place, member), inside = e.addi(channel, c);
    Value there = e.both(e.compare(Predicate::slt, at, e.number(tokens)),
                         e.compare(Predicate::slt, inside, e.number(shape.channel)));
    Value from =
        e.addi(e.muli(e.addi(e.muli(e.select(there, at, e.number(0)), heads), ofHead), shape.channel),
               e.select(there, inside, e.number(0)));
    Value value = e.select(there, e.load(type, e.at(tensor, from), bytes), e.constant(type, 0));
    e.store(value, memory, e.addi(e.muli(member, kChunkPitch), c));
  });
}

/// q k of this thread's kEach rows by kEach keys, at places of all rows.
SmallVector<Value> CalibrationSums::dots(Value row, Value key) {
  constexpr int64_t kUnroll = 4, kBytes = 4;
  SmallVector<Value> start(kEach * kEach, none());
  Value ofRows = e.at(left, e.muli(down, kChunkPitch)), ofKeys = e.at(right, e.muli(across, kChunkPitch));
  auto inner = [&](Value c, ValueRange carried) -> SmallVector<Value> {
    SmallVector<Value> sums(carried);
    Value a = e.at(ofRows, c), b = e.at(ofKeys, c);
    for (int64_t step = 0; step < kUnroll; ++step) {
      SmallVector<Value> x, y;
      for (int64_t i = 0; i < kEach; ++i) {
        const int64_t offset = (i * kGrid * kChunkPitch + step) * kBytes;
        x.push_back(e.load(e.f32, e.bytesFrom(a, offset)));
        y.push_back(e.load(e.f32, e.bytesFrom(b, offset)));
      }
      for (size_t i = 0; i < kEach * kEach; ++i)
        sums[i] = e.fma(x[i / kEach], y[i % kEach], sums[i]);
    }
    return sums;
  };
  return e.loop(e.number(0), e.number(shape.channel), kChannels, start,
                [&](Value channel, ValueRange carried) -> SmallVector<Value> {
                  block.barrier();
                  loadChunk(left, block.argument(op.getQ()), row, shape.heads, head, channel);
                  loadChunk(right, block.argument(op.getK()), key, shape.kvHeads, kv, channel);
                  block.barrier();
                  return e.loop(e.number(0), e.number(kChannels), kUnroll, carried, inner);
                });
}

/// A thread a diagonal of the tile: row - key = thread - 63.
void CalibrationSums::sumDiagonals(Value row, Value key) {
  Value inside = e.addi(block.thread, 1 - kSide), distance = e.addi(e.subi(row, key), inside);
  Value there = e.both(isThread(Predicate::slt, 2 * kSide - 1),
                       e.compare(Predicate::ult, distance, e.number(shape.queries)));
  e.when(there, [&] {
    Value from = e.maxi(inside, e.number(0)), to = e.addi(e.mini(inside, e.number(0)), kSide);
    Value sum = e.loop(from, to, 1, {none()}, [&](Value i, ValueRange carried) -> SmallVector<Value> {
      return {e.add(carried[0], e.load(e.f32, totals, e.addi(e.muli(i, kPitch), e.subi(i, inside))))};
    })[0];
    addTo(e.addi(distance, shape.queries), sum);
  });
}

/// The last kSide threads, a column each.
void CalibrationSums::sumColumns(Value key) {
  Value column = e.addi(block.thread, kSide - kThreads), place = e.addi(key, column);
  Value mine = e.both(e.compare(Predicate::sge, column, e.number(0)),
                      e.compare(Predicate::slt, place, e.number(shape.queries)));
  e.when(mine, [&] {
    Value sum = e.loop(e.number(0), e.number(kSide), 1, {none()},
                       [&](Value i, ValueRange carried) -> SmallVector<Value> {
                         return {e.add(carried[0], e.load(e.f32, totals, e.addi(e.muli(i, kPitch), column)))};
                       })[0];
    addTo(place, sum);
  });
}

void CalibrationSums::finish() {
  const int64_t shares = sharesOf(shape), size = partSize(), places = shape.queries;
  e.loop(block.thread, e.number(shape.heads * size), kThreads, [&](Value number) {
    Value ofHead = e.divi(number, size), inside = e.remi(number, size);
    Value first = e.addi(e.muli(ofHead, shares * size), inside);
    Value sum = e.loop(e.number(0), e.number(shares), 1, {none()},
                       [&](Value share, ValueRange carried) -> SmallVector<Value> {
                         return {e.add(carried[0], e.load(e.f32, parts, e.addi(first, e.muli(share, size))))};
                       })[0];
    auto below = [&](int64_t bound) { return e.compare(Predicate::slt, inside, e.number(bound)); };
    auto put = [&](int64_t result, int64_t width, int64_t before) {
      e.store(sum, block.result(result), e.addi(e.muli(ofHead, width), e.addi(inside, -before)));
    };
    e.choose(
        below(places), [&] { put(0, places, 0); },
        [&] {
          e.choose(
              below(2 * places), [&] { put(1, places, places); }, [&] { put(2, kPatternSums, 2 * places); });
        });
  });
}

} // namespace

MaybeKind patternStatisticsKind(const BareKernel &, PatternStatisticsOp op) {
  AttendShape shape(op.getQ(), op.getK(), op.getK(), 1);
  constexpr int64_t kWidth = 4;
  BlockKind kind;
  kind.threads = kThreads;
  kind.items = shape.heads * CalibrationSums::sharesOf(shape);
  kind.width = shape.channel % kWidth == 0 ? kWidth : 1;
  kind.build = [op](Block &block) mutable {
    CalibrationSums(op, block).build();
    return success();
  };
  return kind;
}

} // namespace weft

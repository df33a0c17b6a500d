//===- MixPattern.cpp - Gradients of trained patterns on the GPU ----------===//
//
// An item is a share of one head's blocks of keys, of all rows of the batch. A
// block of keys meets the blocks of queries one after another: 64 x 64 products
// of dout and v, times P, summed over columns and over diagonals. Sums of items
// go to memory of the module; the block that comes last adds them in their order.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/AttendShape.h"
#include "passes/Codegen/Gpu/Kinds.h"
#include "passes/Codegen/MixShape.h"
#include "passes/Codegen/VectorMath.h"

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

constexpr int64_t kThreads = 256, kSide = 64; // of a tile
constexpr int64_t kChannels = 32;             // that are multiplied at once
constexpr int64_t kItems = 264;               // of all heads, about

class PatternGradient {
public:
  PatternGradient(MixGradPatternOp op, Block &block)
      : op(op), block(block), e(block.e), p(op.getV(), op.getA(), op.getDocStart()),
        twoRanges(cast<RankedTensorType>(op.getWindows().getType()).getDimSize(0) != p.heads),
        parts(block.global(block.e.f32, p.heads * sharesOf(p) * 2 * p.places)),
        slopes(block.shared(kSide * kPitch)), left(block.shared(kSide * (kChannels + 1))),
        right(block.shared(kSide * (kChannels + 1))), starts(block.shared(kSide)), lse(block.shared(kSide)),
        delta(block.shared(kSide)), keyStarts(block.shared(kSide)), keyPowers(block.shared(kSide)) {}
  void build();
  static int64_t sharesOf(const MixShape &p) {
    return std::clamp<int64_t>(kItems / p.heads, 1, p.batch * blocksOf(p.queries));
  }

private:
  static constexpr int64_t kPitch = kSide + 1, kGrid = 16,
                           kEach = kSide / kGrid; // threads on a side; places of each
  static int64_t blocksOf(int64_t places) { return (places + kSide - 1) / kSide; }
  Value isThread(Predicate predicate, int64_t number) {
    return e.compare(predicate, block.thread, e.number(number));
  }
  void item(Value number);
  void keyBlock(Value row, Value key);
  void findFirstPlaces();
  void readKeys();
  void readQueries(Value query);
  SmallVector<Value> dots(Value query);
  void loadChunk(Value memory, Value tensor, Value place, int64_t places, int64_t heads, Value ofHead,
                 Value channel);
  void fillSlopes(Value query, ArrayRef<Value> dots);
  void sumDiagonals(Value query);
  Value sumColumns(Value sum);
  void addColumns(Value sum);
  void finish();

  MixGradPatternOp op;
  Block &block;
  Emitter &e;
  MixShape p;
  bool twoRanges; // first places stay in sight behind the window
  Value parts, slopes, left, right, starts, lse, delta, keyStarts, keyPowers;
  Value head, kv, window, sights, early, own, row, key; // `early`: the block of keys has first places;
                                                        // `own`: sums of the item, da then dr
};

void PatternGradient::build() {
  block.items([&](Value number) { item(number); });
  block.last([&] { finish(); });
}

void PatternGradient::item(Value number) {
  int64_t shares = sharesOf(p), blocks = blocksOf(p.queries);
  head = e.divi(number, shares);
  kv = op.getKvOf() ? e.loadIndex(block.argument(op.getKvOf()), head) : head;
  window = e.loadIndex(block.argument(op.getWindows()), head);
  if (twoRanges)
    sights = e.loadIndex(block.argument(op.getWindows()), e.addi(head, p.heads));
  own = e.at(parts, e.muli(number, 2 * p.places));
  e.loop(block.thread, e.number(2 * p.places), kThreads,
         [&](Value at) { e.store(e.constant(e.f32, 0), own, at); });
  e.loop(e.remi(number, shares), e.number(p.batch * blocks), shares,
         [&](Value unit) { keyBlock(e.divi(unit, blocks), e.muli(e.remi(unit, blocks), kSide)); });
}

/// Whether a key of the block is a first place: the first one, or one that begins a document.
void PatternGradient::findFirstPlaces() {
  auto startOf = [&](Value place) {
    return e.loadIndex(block.argument(op.getDocStart()), e.addi(e.muli(row, p.queries), place));
  };
  Value last = e.mini(e.addi(key, kSide - 1), e.number(p.queries - 1));
  Value first = e.compare(Predicate::slt, e.subi(key, startOf(key)), sights);
  Value begins =
      e.both(e.compare(Predicate::sgt, sights, e.number(0)), e.compare(Predicate::sgt, startOf(last), key));
  early = arith::OrIOp::create(e.b, e.loc, first, begins);
}

void PatternGradient::keyBlock(Value ofRow, Value first) {
  row = ofRow, key = first;
  if (twoRanges)
    findFirstPlaces();
  block.barrier();
  readKeys();
  Value sum = e.loop(key, e.number(p.queries), kSide, {e.constant(e.f32, 0)},
                     [&](Value query, ValueRange carried) -> SmallVector<Value> {
                       // Starts only move on: whether the first query sees the last key.
                       Value lastKey = e.addi(key, kSide - 1);
                       Value start = e.loadIndex(block.argument(op.getDocStart()),
                                                 e.addi(e.muli(row, p.queries), query));
                       Value near = e.compare(Predicate::slt, e.subi(query, lastKey), window);
                       if (twoRanges)
                         near = arith::OrIOp::create(e.b, e.loc, near, early);
                       Value seen = e.both(near, e.compare(Predicate::sle, start, lastKey));
                       auto branch = scf::IfOp::create(e.b, e.loc, e.f32, seen, /*withElseRegion=*/true);
                       OpBuilder::InsertionGuard guard(e.b);
                       e.b.setInsertionPointToStart(branch.thenBlock());
                       readQueries(query);
                       fillSlopes(query, dots(query));
                       block.barrier();
                       sumDiagonals(query);
                       scf::YieldOp::create(e.b, e.loc, sumColumns(carried[0]));
                       e.b.setInsertionPointToStart(branch.elseBlock());
                       scf::YieldOp::create(e.b, e.loc, carried[0]);
                       return {branch.getResult(0)};
                     })[0];
  addColumns(sum);
}

/// Of each key: its document, a of its place there.
void PatternGradient::readKeys() {
  e.when(isThread(Predicate::slt, kSide), [&] {
    Value place = e.mini(e.addi(key, block.thread), e.number(p.queries - 1));
    Value start = e.load(e.i32, block.argument(op.getDocStart()), e.addi(e.muli(row, p.queries), place));
    e.store(start, keyStarts, block.thread);
    Value at = e.addi(e.muli(head, p.places), e.subi(place, e.widen(start)));
    e.store(e.load(e.f32, block.argument(op.getA()), at), keyPowers, block.thread);
  });
}

/// Of each query: its document, log-sum and sum of dout out; four threads a query.
void PatternGradient::readQueries(Value query) {
  constexpr int64_t kShared = kThreads / kSide;
  block.barrier();
  Value member = e.divi(block.thread, kShared), lane = e.remi(block.thread, kShared);
  Value place = e.mini(e.addi(query, member), e.number(p.queries - 1));
  Value token = e.addi(e.muli(row, p.queries), place), at = e.addi(e.muli(token, p.heads), head);
  Value dout = e.at(block.argument(op.getDout()), e.muli(at, p.channel));
  Value out = e.at(block.argument(op.getOut()), e.muli(at, p.channel));
  Value sum = e.loop(lane, e.number(p.channel), kShared, {e.constant(e.f32, 0)},
                     [&](Value c, ValueRange carried) -> SmallVector<Value> {
                       return {e.fma(e.load(e.f32, dout, c), e.load(e.f32, out, c), carried[0])};
                     })[0];
  sum = block.overLanes(sum, kShared);
  e.when(e.compare(Predicate::eq, lane, e.number(0)), [&] {
    e.store(sum, delta, member);
    e.store(e.load(e.f32, block.argument(op.getLse()), at), lse, member);
    e.store(e.load(e.i32, block.argument(op.getDocStart()), token), starts, member);
  });
}

/// memory[place][c] for kSide places and kChannels channels from `channel` on; 0 past the last.
void PatternGradient::loadChunk(Value memory, Value tensor, Value place, int64_t places, int64_t heads,
                                Value ofHead, Value channel) {
  e.loop(block.thread, e.number(kSide * kChannels), kThreads, [&](Value number) {
    Value member = e.divi(number, kChannels), c = e.remi(number, kChannels);
    Value at = e.addi(place, member), inside = e.addi(channel, c);
    Value there = e.both(e.compare(Predicate::slt, at, e.number(p.queries)),
                         e.compare(Predicate::slt, inside, e.number(p.channel)));
    Value token = e.addi(e.muli(row, places), e.select(there, at, e.number(0)));
    Value from =
        e.addi(e.muli(e.addi(e.muli(token, heads), ofHead), p.channel), e.select(there, inside, e.number(0)));
    Value value = e.select(there, e.load(e.f32, tensor, from), e.constant(e.f32, 0));
    e.store(value, memory, e.addi(e.muli(member, kChannels + 1), c));
  });
}

/// dout v of this thread's kEach queries by kEach keys.
SmallVector<Value> PatternGradient::dots(Value query) {
  Value down = e.divi(block.thread, kGrid), across = e.remi(block.thread, kGrid);
  auto at = [&](Value first, int64_t number, Value c) {
    return e.addi(e.muli(e.addi(first, number * kGrid), kChannels + 1), c);
  };
  SmallVector<Value> none(kEach * kEach, e.constant(e.f32, 0));
  return e.loop(e.number(0), e.number(p.channel), kChannels, none,
                [&](Value channel, ValueRange carried) -> SmallVector<Value> {
                  block.barrier();
                  loadChunk(left, block.argument(op.getDout()), query, p.queries, p.heads, head, channel);
                  loadChunk(right, block.argument(op.getV()), key, p.keys, p.kvHeads, kv, channel);
                  block.barrier();
                  return e.loop(e.number(0), e.number(kChannels), 1, carried,
                                [&](Value c, ValueRange sums) -> SmallVector<Value> {
                                  SmallVector<Value> a, b, next;
                                  for (int64_t i = 0; i < kEach; ++i) {
                                    a.push_back(e.load(e.f32, left, at(down, i, c)));
                                    b.push_back(e.load(e.f32, right, at(across, i, c)));
                                  }
                                  for (int64_t i = 0; i < kEach * kEach; ++i)
                                    next.push_back(e.fma(a[static_cast<size_t>(i / kEach)],
                                                         b[static_cast<size_t>(i % kEach)],
                                                         sums[static_cast<size_t>(i)]));
                                  return next;
                                });
                });
}

/// P (dout v - delta) of each pair that is seen, else 0.
void PatternGradient::fillSlopes(Value query, ArrayRef<Value> dots) {
  Value down = e.divi(block.thread, kGrid), across = e.remi(block.thread, kGrid);
  Value r = e.at(block.argument(op.getR()), e.muli(head, p.places));
  for (int64_t i = 0; i < kEach; ++i)
    for (int64_t j = 0; j < kEach; ++j) {
      Value ofQuery = e.addi(down, i * kGrid), ofKey = e.addi(across, j * kGrid);
      Value at = e.addi(query, ofQuery), place = e.addi(key, ofKey), distance = e.subi(at, place);
      Value there = e.both(e.compare(Predicate::sle, e.loadIndex(starts, ofQuery), place),
                           e.compare(Predicate::slt, at, e.number(p.queries)));
      Value sees = e.compare(Predicate::slt, distance, window);
      if (twoRanges) {
        Value inside = e.subi(place, e.loadIndex(keyStarts, ofKey));
        sees = arith::OrIOp::create(e.b, e.loc, sees, e.compare(Predicate::slt, inside, sights));
      }
      there = e.both(there, e.both(e.compare(Predicate::sge, distance, e.number(0)), sees));
      Value power =
          e.add(e.load(e.f32, keyPowers, ofKey), e.load(e.f32, r, e.select(there, distance, e.number(0))));
      power = emitExp(e, e.sub(power, e.load(e.f32, lse, ofQuery)));
      Value slope =
          e.mul(power, e.sub(dots[static_cast<size_t>(i * kEach + j)], e.load(e.f32, delta, ofQuery)));
      e.store(e.select(there, slope, e.constant(e.f32, 0)), slopes, e.addi(e.muli(ofQuery, kPitch), ofKey));
    }
}

/// A thread a diagonal of the tile: query - key = thread - 63.
void PatternGradient::sumDiagonals(Value query) {
  Value inside = e.addi(block.thread, 1 - kSide), distance = e.addi(e.subi(query, key), inside);
  Value there = e.both(isThread(Predicate::slt, 2 * kSide - 1),
                       e.compare(Predicate::ult, distance, e.number(p.places)));
  e.when(there, [&] {
    Value from = e.maxi(inside, e.number(0)), to = e.addi(e.mini(inside, e.number(0)), kSide);
    Value sum =
        e.loop(from, to, 1, {e.constant(e.f32, 0)}, [&](Value i, ValueRange carried) -> SmallVector<Value> {
          return {e.add(carried[0], e.load(e.f32, slopes, e.addi(e.muli(i, kPitch), e.subi(i, inside))))};
        })[0];
    Value at = e.addi(distance, p.places);
    e.store(e.add(e.load(e.f32, own, at), sum), own, at);
  });
}

/// The last kSide threads, a column each.
Value PatternGradient::sumColumns(Value sum) {
  Value column = e.maxi(e.addi(block.thread, kSide - kThreads), e.number(0));
  return e.loop(e.number(0), e.number(kSide), 1, {sum},
                [&](Value i, ValueRange carried) -> SmallVector<Value> {
                  return {e.add(carried[0], e.load(e.f32, slopes, e.addi(e.muli(i, kPitch), column)))};
                })[0];
}

/// One document after another: places of two may be the same.
void PatternGradient::addColumns(Value sum) {
  Value column = e.addi(block.thread, kSide - kThreads), place = e.addi(key, column);
  Value mine = e.both(e.compare(Predicate::sge, column, e.number(0)),
                      e.compare(Predicate::slt, place, e.number(p.queries)));
  Value inside = e.maxi(column, e.number(0));
  e.loop(e.number(0), e.number(kSide), 1, [&](Value first) {
    Value start = e.loadIndex(keyStarts, first);
    Value begins = arith::OrIOp::create(e.b, e.loc, e.compare(Predicate::eq, first, e.number(0)),
                                        e.compare(Predicate::eq, start, e.addi(key, first)));
    e.when(begins, [&] {
      block.barrier();
      Value same = e.compare(Predicate::eq, e.loadIndex(keyStarts, inside), start);
      e.when(e.both(mine, same), [&] {
        Value at = e.subi(place, start);
        e.store(e.add(e.load(e.f32, own, at), sum), own, at);
      });
    });
  });
}

void PatternGradient::finish() {
  int64_t shares = sharesOf(p);
  e.loop(block.thread, e.number(p.heads * 2 * p.places), kThreads, [&](Value number) {
    Value ofHead = e.divi(number, 2 * p.places), inside = e.remi(number, 2 * p.places);
    Value first = e.addi(e.muli(ofHead, shares * 2 * p.places), inside);
    Value sum = e.loop(e.number(0), e.number(shares), 1, {e.constant(e.f32, 0)},
                       [&](Value share, ValueRange carried) -> SmallVector<Value> {
                         Value at = e.addi(first, e.muli(share, 2 * p.places));
                         return {e.add(carried[0], e.load(e.f32, parts, at))};
                       })[0];
    Value isDistance = e.compare(Predicate::sge, inside, e.number(p.places));
    Value at = e.addi(e.muli(ofHead, p.places), e.remi(inside, p.places));
    e.choose(
        isDistance, [&] { e.store(sum, block.result(1), at); }, [&] { e.store(sum, block.result(0), at); });
  });
}

} // namespace

MaybeKind mixGradPatternKind(const BareKernel &, MixGradPatternOp op) {
  MixShape shape(op.getV(), op.getA(), op.getDocStart());
  BlockKind kind;
  kind.threads = kThreads;
  kind.items = shape.heads * PatternGradient::sharesOf(shape);
  kind.build = [op](Block &block) {
    PatternGradient(op, block).build();
    return success();
  };
  return kind;
}

} // namespace weft

//===- HeadStatistics.cpp - What a window controller is told, on the GPU --===//
//
// An item is a part of one row's places. A block goes over the part in q, k, v,
// out and the entropies one after another: lanes on the channels of some heads,
// the rest of the threads on other places. Sums of parts go to memory of the
// module, and the block that comes last adds them up in their order.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/AttendShape.h"
#include "passes/Codegen/Gpu/Kinds.h"
#include "passes/Codegen/VectorMath.h"

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

constexpr int64_t kThreads = 512, kParts = 528, kLeastPlaces = 32;
/// Places that a thread reads before it adds the first up.
constexpr int64_t kAhead = 4;
/// Places are compared as floats.
constexpr int64_t kMostPlaces = int64_t(1) << 24;

/// A tensor [batch, places, heads, channels] and the sums that are taken of it.
struct Source {
  Value tensor;
  int64_t heads, channels;
  int64_t sums; // of a head
  int64_t slot; // of the first among a part's
};

class StatisticsEmitter {
public:
  StatisticsEmitter(HeadStatisticsOp op, Block &block, int64_t partsOfRow);
  void build();

private:
  /// How threads lie on heads: `lanes` a head, `heads` at once, `rows` places at once.
  struct Layout {
    int64_t vectors, lanes, heads, rows;
    Layout(const Source &source, int64_t width)
        : vectors(source.channels / width), lanes(std::min(vectors, kThreads)),
          heads(std::min(source.heads, kThreads / lanes)), rows(kThreads / (lanes * heads)) {}
  };
  using Terms = function_ref<SmallVector<Value>(Value place, Value head, Value lane, Value counts)>;

  int64_t slots() const { return entropies.slot + entropies.heads * entropies.sums; }
  void part(Value item);
  Value lastCounted();
  void sum(Value item, const Source &source, int64_t width, Terms terms);
  void sumHeads(Value item, const Source &source, const Layout &layout, Value first, Terms terms);
  void sumChannels(Value item, const Source &source);
  void sumEntropies(Value item);
  void result(Value number);

  HeadStatisticsOp op;
  Block &block;
  Emitter &e;
  AttendShape shape;
  int64_t partsOfRow;
  Source q, k, v, out, entropies;
  Value parts, memory;
  // Of the item.
  Value row, begin, end, last;
  AttendMask mask;
};

StatisticsEmitter::StatisticsEmitter(HeadStatisticsOp op, Block &block, int64_t partsOfRow)
    : op(op), block(block), e(block.e), shape(op.getQ(), op.getK(), op.getV(), 1), partsOfRow(partsOfRow) {
  constexpr int64_t kMoments = 3; // sums of |x|, x, x^2
  if (op.getKvOf())
    shape.kvTable = block.argument(op.getKvOf());
  int64_t slot = 0;
  auto source = [&](Value value, int64_t heads, int64_t channels, int64_t sums) {
    Source made{block.argument(value), heads, channels, sums, slot};
    slot += heads * sums;
    return made;
  };
  q = source(op.getQ(), shape.heads, shape.channel, kMoments);
  k = source(op.getK(), shape.kvHeads, shape.channel, kMoments);
  v = source(op.getV(), shape.kvHeads, shape.valueChannel, kMoments);
  out = source(op.getOut(), shape.heads, shape.valueChannel, 1);
  entropies = source(op.getEntropy(), shape.heads, 1, 2); // and the number of rows
  parts = block.global(e.f32, partsOfRow * shape.batch * slots());
  memory = block.shared(kThreads * kMoments);
}

/// Place of the row's last counted target, -1 if there is none.
Value StatisticsEmitter::lastCounted() {
  if (!op.getTargets())
    return e.number(shape.queries);
  Value targets = e.at(block.argument(op.getTargets()), e.muli(row, shape.queries));
  auto loop = scf::ForOp::create(e.b, e.loc, block.thread, e.number(shape.queries), e.number(kThreads),
                                 ValueRange{e.number(-1)});
  {
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value counted = e.compare(Predicate::sge, e.loadIndex(targets, i), e.number(0));
    scf::YieldOp::create(e.b, e.loc, e.select(counted, i, loop.getRegionIterArgs()[0]));
  }
  Value mine = arith::SIToFPOp::create(e.b, e.loc, e.f32, loop.getResult(0));
  return arith::FPToSIOp::create(e.b, e.loc, e.i64, block.overBlock(mine, /*largest=*/true));
}

/// Heads from `first` on: each thread's sums, then those of a head's threads in order.
void StatisticsEmitter::sumHeads(Value item, const Source &source, const Layout &layout, Value first,
                                 Terms terms) {
  int64_t across = layout.lanes * layout.heads;
  Value column = e.remi(block.thread, across), line = e.divi(block.thread, across);
  Value head = e.addi(first, e.divi(column, layout.lanes)), lane = e.remi(column, layout.lanes);
  Value there = e.both(e.compare(Predicate::slt, line, e.number(layout.rows)),
                       e.compare(Predicate::slt, head, e.number(source.heads)));
  Value safe = e.select(there, head, e.number(0));
  Value from = e.select(there, e.addi(begin, line), end);
  SmallVector<Value> none(static_cast<size_t>(source.sums), e.constant(e.f32, 0));
  auto sums = e.loop(from, end, kAhead * layout.rows, none, [&](Value at, ValueRange carried) {
    SmallVector<Value> now(carried);
    for (int64_t ahead = 0; ahead < kAhead; ++ahead) {
      Value place = e.addi(at, ahead * layout.rows);
      Value inside = e.compare(Predicate::slt, place, end);
      Value real = e.select(inside, place, begin);
      Value counts = e.compare(Predicate::sle, e.loadIndex(mask.starts, real), last);
      for (auto [sum, term] : llvm::zip_equal(now, terms(real, safe, lane, e.both(inside, counts))))
        sum = e.add(sum, term);
    }
    return now;
  });
  block.barrier();
  for (auto [number, sum] : llvm::enumerate(sums))
    e.store(sum, memory, e.addi(e.muli(block.thread, source.sums), static_cast<int64_t>(number)));
  block.barrier();
  auto each =
      scf::ForOp::create(e.b, e.loc, block.thread, e.number(layout.heads * source.sums), e.number(kThreads));
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(each.getBody());
  Value number = each.getInductionVar();
  Value own = e.divi(number, source.sums), which = e.remi(number, source.sums);
  Value sum = e.constant(e.f32, 0);
  sum = e.loop(e.number(0), e.number(layout.rows * layout.lanes), 1, {sum}, [&](Value i, ValueRange in) {
    Value thread = e.addi(e.muli(e.divi(i, layout.lanes), across),
                          e.addi(e.muli(own, layout.lanes), e.remi(i, layout.lanes)));
    Value at = e.addi(e.muli(thread, source.sums), which);
    return SmallVector<Value>{e.add(in[0], e.load(e.f32, memory, at))};
  })[0];
  Value of = e.addi(first, own);
  e.when(e.compare(Predicate::slt, of, e.number(source.heads)), [&] {
    Value slot = e.addi(e.addi(e.muli(of, source.sums), which), source.slot);
    e.store(sum, parts, e.addi(e.muli(item, slots()), slot));
  });
}

void StatisticsEmitter::sum(Value item, const Source &source, int64_t width, Terms terms) {
  Layout layout(source, width);
  e.loop(e.number(0), e.number(source.heads), layout.heads,
         [&](Value first) { sumHeads(item, source, layout, first, terms); });
}

/// Sums of |x|, x and x^2, or of x^2 alone.
void StatisticsEmitter::sumChannels(Value item, const Source &source) {
  int64_t bytes = e.width * (e.halves.contains(source.tensor) ? 2 : 4);
  Layout layout(source, e.width);
  Value nothing = e.constant(e.floats, 0);
  sum(item, source, e.width, [&](Value place, Value head, Value lane, Value counts) -> SmallVector<Value> {
    Value number = e.addi(e.muli(e.addi(e.muli(row, shape.queries), place), source.heads), head);
    Value base = e.muli(number, source.channels);
    SmallVector<Value> sums(static_cast<size_t>(source.sums), nothing);
    for (int64_t from = 0; from < layout.vectors; from += layout.lanes) {
      Value vector = e.addi(lane, from);
      Value inside = e.compare(Predicate::slt, vector, e.number(layout.vectors));
      Value at = e.addi(base, e.muli(e.select(inside, vector, e.number(0)), e.width));
      Value x = e.load(e.floats, e.at(source.tensor, at), bytes);
      x = e.select(e.both(inside, counts), x, nothing);
      sums.back() = e.fma(x, x, sums.back());
      if (source.sums == 1)
        continue;
      sums[0] = e.add(sums[0], e.larger(x, e.neg(x)));
      sums[1] = e.add(sums[1], x);
    }
    for (Value &all : sums)
      all = e.sumOf(all);
    return sums;
  });
}

/// Entropies over the log of the number of keys, and the number of rows.
void StatisticsEmitter::sumEntropies(Value item) {
  Value none = e.constant(e.f32, 0), one = e.constant(e.f32, 1);
  sum(item, entropies, 1, [&](Value place, Value head, Value, Value counts) -> SmallVector<Value> {
    AttendMask own = mask;
    own.window = loadWindow(e, block.argument(op.getWindows()), head);
    Value before = e.subi(place, e.maxi(own.firstKey(e, place), e.number(0))); // keys but the row's own
    Value several = e.compare(Predicate::sgt, before, e.number(0));
    Value keys = arith::SIToFPOp::create(e.b, e.loc, e.f32, e.addi(before, 1));
    Value most = e.select(several, emitLog(e, keys), one);
    Value number = e.addi(e.muli(e.addi(e.muli(row, shape.queries), place), shape.heads), head);
    Value share = e.div(e.load(e.f32, entropies.tensor, number), most);
    return {e.select(e.both(several, counts), share, none), e.select(counts, one, none)};
  });
}

void StatisticsEmitter::part(Value item) {
  row = e.divi(item, partsOfRow);
  std::tie(begin, end) = e.range(e.remi(item, partsOfRow), shape.queries, partsOfRow);
  mask = {e.at(block.argument(op.getDocStart()), e.muli(row, shape.queries)), {}, e.number(0)};
  last = lastCounted();
  for (const Source *source : {&q, &k, &v, &out})
    sumChannels(item, *source);
  sumEntropies(item);
}

/// Result `number`, a head's statistic: a warp adds its parts up.
void StatisticsEmitter::result(Value number) {
  Value head = e.divi(number, kHeadStatistics), which = e.remi(number, kHeadStatistics);
  Value kv = shape.kvOf(e, head);
  auto below = [&](int64_t bound) { return e.compare(Predicate::slt, which, e.number(bound)); };
  auto slotOf = [&](const Source &source, Value of, Value at) {
    return e.addi(e.addi(e.muli(of, source.sums), at), source.slot);
  };
  // In the order of weft.head_statistics.
  constexpr int64_t kKeys = 3, kValues = 6, kEntropy = 9, kOutput = 10, kRows = 11;
  Value zero = e.number(0);
  Value slot = e.select(below(kRows), slotOf(out, head, zero), slotOf(entropies, head, e.number(1)));
  slot = e.select(below(kOutput), slotOf(entropies, head, zero), slot);
  slot = e.select(below(kEntropy), slotOf(v, kv, e.addi(which, -kValues)), slot);
  slot = e.select(below(kValues), slotOf(k, kv, e.addi(which, -kKeys)), slot);
  slot = e.select(below(kKeys), slotOf(q, head, which), slot);
  auto loop = scf::ForOp::create(e.b, e.loc, block.lane, e.number(partsOfRow * shape.batch),
                                 e.number(Block::kWarp), ValueRange{e.constant(e.f32, 0)});
  {
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(loop.getBody());
    Value at = e.addi(e.muli(loop.getInductionVar(), slots()), slot);
    scf::YieldOp::create(e.b, e.loc, e.add(loop.getRegionIterArgs()[0], e.load(e.f32, parts, at)));
  }
  Value all = block.overLanes(loop.getResult(0), Block::kWarp);
  e.when(e.compare(Predicate::eq, block.lane, e.number(0)), [&] { e.store(all, block.result(0), number); });
}

void StatisticsEmitter::build() {
  block.items([&](Value item) { part(item); });
  block.last([&] {
    auto each = scf::ForOp::create(e.b, e.loc, block.warp, e.number(shape.heads * kHeadStatistics),
                                   e.number(kThreads / Block::kWarp));
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(each.getBody());
    result(each.getInductionVar());
  });
}

/// Elements of a vector, at most 16 bytes, that all channels are a multiple of.
int64_t widthOf(const BareKernel &bare, HeadStatisticsOp op) {
  constexpr int64_t kBytes = 16;
  int64_t width = 8;
  for (Value value : {op.getQ(), op.getK(), op.getV(), op.getOut()}) {
    int64_t most = bare.argument(value).isBF16() ? kBytes / 2 : kBytes / 4;
    width = std::min(width, most);
    while (cast<RankedTensorType>(value.getType()).getShape().back() % width)
      width /= 2;
  }
  return width;
}

} // namespace

MaybeKind headStatisticsKind(const BareKernel &bare, HeadStatisticsOp op, std::string &why) {
  AttendShape shape(op.getQ(), op.getK(), op.getV(), 1);
  if (shape.queries >= kMostPlaces) {
    why = "rows of 2^24 places or more";
    return std::nullopt;
  }
  int64_t most = (shape.queries + kLeastPlaces - 1) / kLeastPlaces;
  int64_t partsOfRow = std::clamp<int64_t>(kParts / shape.batch, 1, most);
  BlockKind kind;
  kind.items = shape.batch * partsOfRow;
  kind.threads = kThreads;
  kind.width = widthOf(bare, op);
  kind.build = [op, partsOfRow](Block &block) mutable {
    StatisticsEmitter(op, block, partsOfRow).build();
    return success();
  };
  return kind;
}

} // namespace weft

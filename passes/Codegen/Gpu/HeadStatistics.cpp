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

#include "mlir/Dialect/Math/IR/Math.h"

#include <tuple>

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

constexpr int64_t kThreads = 384, kParts = 264, kLeastPlaces = 32;
/// Places that a thread reads before it adds the first up.
constexpr int64_t kAhead = 8;
/// Targets that it reads at once, and statistics that a warp adds the parts of up at once.
constexpr int64_t kTargets = 8, kTogether = 4;
/// Places are compared and counted as floats.
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
  using Terms = function_ref<SmallVector<Value>(Value place)>;
  using HeadTerms = function_ref<SmallVector<Value>(Value place, Value head, Value lane)>;

  int64_t slots() const { return entropies.slot + entropies.heads * entropies.sums; }
  void part(Value item);
  Value lastCounted();
  Value countedEnd();
  SmallVector<Value> sumPlaces(const Source &source, Type element, int64_t rows, Value from, Terms terms);
  void sumHeads(Value item, const Source &source, Type element, const Layout &layout, Value first,
                HeadTerms terms);
  /// `element`: of the sums of a thread, a vector or a scalar.
  void sum(Value item, const Source &source, Type element, HeadTerms terms);
  void sumChannels(Value item, const Source &source);
  void sumEntropies(Value item);
  Value slotOf(Value number);
  void results(Value first, int64_t apart);

  HeadStatisticsOp op;
  Block &block;
  Emitter &e;
  AttendShape shape;
  int64_t partsOfRow;
  Source q, k, v, out, entropies;
  Value parts, memory;
  // Of the item.
  Value row, begin, end, counted; // places from begin to counted count
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
  Value targets = e.at(block.argument(op.getTargets()), e.muli(row, shape.queries));
  Value none = e.number(-1);
  Value last = e.loop(e.number(0), e.number(shape.queries), kTargets * kThreads, {none},
                      [&](Value from, ValueRange carried) {
                        SmallVector<std::pair<Value, Value>> found; // a place, and its target or -1
                        for (int64_t number = 0; number < kTargets; ++number) {
                          Value place = e.addi(e.addi(from, block.thread), number * kThreads);
                          Value there = e.compare(Predicate::slt, place, e.number(shape.queries));
                          Value target = e.loadIndex(targets, e.select(there, place, e.number(0)));
                          found.emplace_back(place, e.select(there, target, none));
                        }
                        Value latest = carried[0];
                        for (auto [place, target] : found)
                          latest = e.select(e.compare(Predicate::sge, target, e.number(0)), place, latest);
                        return SmallVector<Value>{latest};
                      })[0];
  Value mine = arith::SIToFPOp::create(e.b, e.loc, e.f32, last);
  return arith::FPToSIOp::create(e.b, e.loc, e.i64, block.overBlock(mine, /*largest=*/true));
}

/// What `terms` give of every `rows`-th counted place from `from` on, added up.
SmallVector<Value> StatisticsEmitter::sumPlaces(const Source &source, Type element, int64_t rows, Value from,
                                                Terms terms) {
  SmallVector<Value> none(static_cast<size_t>(source.sums), e.constant(element, 0));
  auto step = [&](Value place, ValueRange carried) {
    SmallVector<Value> now(carried), found = terms(place);
    for (auto [sum, term] : llvm::zip_equal(now, found))
      sum = e.add(sum, term);
    return now;
  };
  // As many places ahead as there are, then the rest one by one.
  int64_t ahead = kAhead * rows;
  Value most = e.maxi(e.subi(e.addi(counted, ahead - 1 - (kAhead - 1) * rows), from), e.number(0));
  Value rest = e.addi(from, e.muli(e.divi(most, ahead), ahead));
  auto sums = e.loop(from, rest, ahead, none, [&](Value at, ValueRange carried) {
    SmallVector<SmallVector<Value>> each;
    for (int64_t number = 0; number < kAhead; ++number)
      each.push_back(terms(e.addi(at, number * rows)));
    SmallVector<Value> now(carried);
    for (const SmallVector<Value> &found : each)
      for (auto [sum, term] : llvm::zip_equal(now, found))
        sum = e.add(sum, term);
    return now;
  });
  return e.loop(rest, counted, rows, sums, step);
}

/// Heads from `first` on: each thread's sums, then those of a head's threads in order.
void StatisticsEmitter::sumHeads(Value item, const Source &source, Type element, const Layout &layout,
                                 Value first, HeadTerms terms) {
  int64_t across = layout.lanes * layout.heads;
  Value column = e.remi(block.thread, across), line = e.divi(block.thread, across);
  Value head = e.addi(first, e.divi(column, layout.lanes)), lane = e.remi(column, layout.lanes);
  Value there = e.both(e.compare(Predicate::slt, line, e.number(layout.rows)),
                       e.compare(Predicate::slt, head, e.number(source.heads)));
  Value safe = e.select(there, head, e.number(0));
  Value from = e.select(there, e.addi(begin, line), counted);
  auto sums =
      sumPlaces(source, element, layout.rows, from, [&](Value place) { return terms(place, safe, lane); });
  // Lanes of a head that share a warp add up there.
  bool warp = layout.lanes <= Block::kWarp && llvm::isPowerOf2_64(static_cast<uint64_t>(layout.lanes));
  block.barrier();
  for (auto [number, sum] : llvm::enumerate(sums)) {
    Value mine = isa<VectorType>(element) ? e.sumOf(sum) : sum;
    mine = warp ? block.overLanes(mine, layout.lanes) : mine;
    e.store(mine, memory, e.addi(e.muli(block.thread, source.sums), static_cast<int64_t>(number)));
  }
  block.barrier();
  auto each =
      scf::ForOp::create(e.b, e.loc, block.thread, e.number(layout.heads * source.sums), e.number(kThreads));
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(each.getBody());
  Value number = each.getInductionVar();
  Value own = e.divi(number, source.sums), which = e.remi(number, source.sums);
  int64_t lanes = warp ? 1 : layout.lanes;
  Value none = e.constant(e.f32, 0);
  Value sum = e.loop(e.number(0), e.number(layout.rows * lanes), 1, {none}, [&](Value i, ValueRange in) {
    Value thread =
        e.addi(e.muli(e.divi(i, lanes), across), e.addi(e.muli(own, layout.lanes), e.remi(i, lanes)));
    Value at = e.addi(e.muli(thread, source.sums), which);
    return SmallVector<Value>{e.add(in[0], e.load(e.f32, memory, at))};
  })[0];
  Value of = e.addi(first, own);
  e.when(e.compare(Predicate::slt, of, e.number(source.heads)), [&] {
    Value slot = e.addi(e.addi(e.muli(of, source.sums), which), source.slot);
    e.store(sum, parts, e.addi(e.muli(item, slots()), slot));
  });
}

void StatisticsEmitter::sum(Value item, const Source &source, Type element, HeadTerms terms) {
  Layout layout(source, isa<VectorType>(element) ? e.width : 1);
  e.loop(e.number(0), e.number(source.heads), layout.heads,
         [&](Value first) { sumHeads(item, source, element, layout, first, terms); });
}

/// Sums of |x|, x and x^2, or of x^2 alone.
void StatisticsEmitter::sumChannels(Value item, const Source &source) {
  int64_t bytes = e.width * (e.halves.contains(source.tensor) ? 2 : 4);
  Layout layout(source, e.width);
  Value nothing = e.constant(e.floats, 0);
  sum(item, source, e.floats, [&](Value place, Value head, Value lane) -> SmallVector<Value> {
    Value number = e.addi(e.muli(e.addi(e.muli(row, shape.queries), place), source.heads), head);
    Value base = e.muli(number, source.channels);
    SmallVector<Value> sums(static_cast<size_t>(source.sums), nothing);
    for (int64_t from = 0; from < layout.vectors; from += layout.lanes) {
      Value vector = e.addi(lane, from), inside;
      if (from + layout.lanes > layout.vectors) {
        inside = e.compare(Predicate::slt, vector, e.number(layout.vectors));
        vector = e.select(inside, vector, e.number(0));
      }
      Value at = e.addi(base, e.muli(vector, e.width));
      Value x = e.load(e.floats, e.at(source.tensor, at), bytes);
      if (inside)
        x = e.select(inside, x, nothing);
      sums.back() = e.fma(x, x, sums.back());
      if (source.sums == 1)
        continue;
      sums[0] = e.add(sums[0], math::AbsFOp::create(e.b, e.loc, x));
      sums[1] = e.add(sums[1], x);
    }
    return sums;
  });
}

/// Entropies over the log of the number of keys, and the number of rows.
void StatisticsEmitter::sumEntropies(Value item) {
  Value none = e.constant(e.f32, 0), one = e.constant(e.f32, 1);
  Value starts = e.at(block.argument(op.getDocStart()), e.muli(row, shape.queries));
  sum(item, entropies, e.f32, [&](Value place, Value head, Value) -> SmallVector<Value> {
    AttendMask mask{starts, loadWindow(e, block.argument(op.getWindows()), head), e.number(0)};
    Value before = e.subi(place, e.maxi(mask.firstKey(e, place), e.number(0))); // keys but the row's own
    Value several = e.compare(Predicate::sgt, before, e.number(0));
    Value keys = arith::SIToFPOp::create(e.b, e.loc, e.f32, e.addi(before, 1));
    Value most = e.select(several, emitLog(e, keys), one);
    Value number = e.addi(e.muli(e.addi(e.muli(row, shape.queries), place), shape.heads), head);
    Value share = e.div(e.load(e.f32, entropies.tensor, number), most);
    return {e.select(several, share, none), one};
  });
}

/// Rows count up to a document behind the last counted target: the part's, from the first.
Value StatisticsEmitter::countedEnd() {
  if (!op.getTargets())
    return end;
  Value starts = e.at(block.argument(op.getDocStart()), e.muli(row, shape.queries)), last = lastCounted();
  Value none = e.constant(e.f32, 0), one = e.constant(e.f32, 1);
  auto loop =
      scf::ForOp::create(e.b, e.loc, e.addi(begin, block.thread), end, e.number(kThreads), ValueRange{none});
  {
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(loop.getBody());
    Value counts = e.compare(Predicate::sle, e.loadIndex(starts, loop.getInductionVar()), last);
    scf::YieldOp::create(e.b, e.loc, e.add(loop.getRegionIterArgs()[0], e.select(counts, one, none)));
  }
  Value count = arith::FPToSIOp::create(e.b, e.loc, e.i64, block.overBlock(loop.getResult(0)));
  return e.addi(begin, count);
}

void StatisticsEmitter::part(Value item) {
  row = e.divi(item, partsOfRow);
  std::tie(begin, end) = e.range(e.remi(item, partsOfRow), shape.queries, partsOfRow);
  counted = countedEnd();
  for (const Source *source : {&q, &k, &v, &out})
    sumChannels(item, *source);
  sumEntropies(item);
}

/// Where the parts of statistic `number`, in the order of weft.head_statistics, lie.
Value StatisticsEmitter::slotOf(Value number) {
  Value head = e.divi(number, kHeadStatistics), which = e.remi(number, kHeadStatistics);
  Value kv = shape.kvOf(e, head);
  auto below = [&](int64_t bound) { return e.compare(Predicate::slt, which, e.number(bound)); };
  auto of = [&](const Source &source, Value own, Value at) {
    return e.addi(e.addi(e.muli(own, source.sums), at), source.slot);
  };
  constexpr int64_t kKeys = 3, kValues = 6, kEntropy = 9, kOutput = 10, kRows = 11;
  Value zero = e.number(0);
  Value slot = e.select(below(kRows), of(out, head, zero), of(entropies, head, e.number(1)));
  slot = e.select(below(kOutput), of(entropies, head, zero), slot);
  slot = e.select(below(kEntropy), of(v, kv, e.addi(which, -kValues)), slot);
  slot = e.select(below(kValues), of(k, kv, e.addi(which, -kKeys)), slot);
  return e.select(below(kKeys), of(q, head, which), slot);
}

/// Statistics `first`, `first` + `apart` and so on, kTogether of them: a warp adds their parts up.
void StatisticsEmitter::results(Value first, int64_t apart) {
  constexpr int64_t kReads = 8, kStep = Block::kWarp * kReads; // parts
  const int64_t count = partsOfRow * shape.batch, all = shape.heads * kHeadStatistics;
  Value none = e.constant(e.f32, 0);
  SmallVector<Value> numbers, slot, wanted, start(kTogether, none);
  for (int64_t i = 0; i < kTogether; ++i) {
    numbers.push_back(e.addi(first, i * apart));
    wanted.push_back(e.compare(Predicate::slt, numbers.back(), e.number(all)));
    slot.push_back(slotOf(e.select(wanted.back(), numbers.back(), e.number(0))));
  }
  auto sums = e.loop(e.number(0), e.number(count), kStep, start, [&](Value from, ValueRange carried) {
    SmallVector<Value> now(carried), found;
    for (int64_t i = 0; i < kTogether; ++i)
      for (int64_t ahead = 0; ahead < kStep; ahead += Block::kWarp) {
        Value part = e.addi(e.addi(from, block.lane), ahead);
        Value there = e.compare(Predicate::slt, part, e.number(count));
        Value at = e.addi(e.muli(e.select(there, part, e.number(0)), slots()), slot[i]);
        found.push_back(e.select(there, e.load(e.f32, parts, at), none));
      }
    for (auto [i, one] : llvm::enumerate(found))
      now[i / kReads] = e.add(now[i / kReads], one);
    return now;
  });
  for (int64_t i = 0; i < kTogether; ++i) {
    Value sum = block.overLanes(sums[i], Block::kWarp);
    e.when(e.both(wanted[i], e.compare(Predicate::eq, block.lane, e.number(0))),
           [&] { e.store(sum, block.result(0), numbers[i]); });
  }
}

void StatisticsEmitter::build() {
  block.items([&](Value item) { part(item); });
  block.last([&] {
    const int64_t warps = kThreads / Block::kWarp;
    e.loop(e.number(0), e.number(shape.heads * kHeadStatistics), warps * kTogether,
           [&](Value first) { results(e.addi(first, block.warp), warps); });
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

//===- Rows.cpp - Fused bodies, row by row or over all elements -----------===//
#include "passes/Codegen/Gpu/Kinds.h"
#include "passes/Codegen/Gpu/RowValues.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace weft {
namespace {

using Kind = RowNode::Kind;
using Predicate = arith::CmpIPredicate;

/// Writes a kernel in which a team of threads does a row.
class RowKernel {
public:
  RowKernel(Block &block, const RowProgram &program, const RowPlan &plan)
      : block(block), e(block.e), program(program), plan(plan), values(block, program, plan) {
    for (auto [number, node] : llvm::enumerate(program.nodes))
      if (node.chunked)
        chunked.push_back(static_cast<int>(number));
  }
  void run();

private:
  void computeRow(Value row);
  void storeRow();
  void chunk(Value item);
  void fetchIfThere(Value row, Value to, Value stage);
  SmallVector<Value> emptySums();
  SmallVector<Value> added(ValueRange sums);
  void storeSums(Value item, ValueRange sums);
  void storeNumber(Value item, int node, Value sum);
  void storeVector(Value item, int node, ValueRange sums);
  int64_t largestSums() const;

  Block &block;
  Emitter &e;
  const RowProgram &program;
  const RowPlan &plan;
  RowValues values;
  SmallVector<int> chunked;
  Value team;
  Value memory; // shared, of partial sums
  Value slots;  // shared, this thread's part of what is copied ahead
};

void RowKernel::computeRow(Value row) {
  values.open(row);
  for (auto [index, node] : llvm::enumerate(program.nodes)) {
    int number = static_cast<int>(index);
    if (node.kind == Kind::Reduce && !node.chunked)
      values.sum(number);
    else if (node.kind == Kind::Rope)
      values.rotate(number);
  }
}

void RowKernel::storeRow() {
  // All loads stand before the stores: a result may be an argument's storage.
  for (auto [number, node] : llvm::enumerate(program.nodes))
    if (!node.results.empty() && !node.chunked) {
      int layout = plan.home[number];
      if (layout < 0)
        values.number(static_cast<int>(number));
      else
        for (int64_t piece = 0; piece < plan.layouts[layout].pieces; ++piece)
          values.at(static_cast<int>(number), layout, piece);
    }
  if (plan.team > 1 && mayRace(program, plan))
    plan.team == Block::kWarp ? block.warpBarrier() : block.barrier();
  for (auto [number, node] : llvm::enumerate(program.nodes))
    if (!node.chunked)
      for (int result : node.results)
        values.storeResult(static_cast<int>(number), result);
}

//===----------------------------------------------------------------------===//
// Partial sums
//===----------------------------------------------------------------------===//

static VectorType lanesType(Emitter &e, const RowLayout &layout) {
  return VectorType::get({layout.lanes}, e.f32);
}

SmallVector<Value> RowKernel::emptySums() {
  SmallVector<Value> sums;
  for (int number : chunked) {
    int layout = plan.home[number];
    if (layout < 0 || program.nodes[number].axes.empty())
      sums.push_back(e.constant(e.f32, 0));
    else
      for (int64_t piece = 0; piece < plan.layouts[layout].pieces; ++piece)
        sums.push_back(e.constant(lanesType(e, plan.layouts[layout]), 0));
  }
  return sums;
}

SmallVector<Value> RowKernel::added(ValueRange sums) {
  SmallVector<Value> next;
  for (int number : chunked) {
    const RowNode &node = program.nodes[number];
    int layout = plan.home[number], input = node.inputs[0];
    if (layout < 0) {
      next.push_back(e.add(sums[next.size()], values.number(input)));
      continue;
    }
    Value whole = node.axes.empty() ? sums[next.size()] : Value();
    for (int64_t piece = 0; piece < plan.layouts[layout].pieces; ++piece) {
      Value value = values.at(input, layout, piece);
      if (Value inside = values.isInside(layout, piece))
        value = e.select(inside, value, e.constant(value.getType(), 0));
      if (whole)
        whole = e.add(whole, e.sumOf(value));
      else
        next.push_back(e.add(sums[next.size()], value));
    }
    if (whole)
      next.push_back(whole);
  }
  return next;
}

/// Elements of shared memory that the largest sum of all teams takes.
int64_t RowKernel::largestSums() const {
  int64_t most = 0;
  for (int number : chunked)
    if (int layout = plan.home[number]; layout >= 0)
      most = std::max(most, plan.teams() * plan.layouts[layout].count());
  return most;
}

void RowKernel::storeNumber(Value item, int number, Value sum) {
  Value whole = block.overBlock(sum);
  Value to = block.result(program.nodes[number].results.front());
  e.when(e.compare(Predicate::eq, block.thread, e.number(0)), [&] { e.store(whole, to, item); });
}

void RowKernel::storeVector(Value item, int number, ValueRange sums) {
  const RowNode &node = program.nodes[number];
  const RowLayout &layout = plan.layouts[plan.home[number]];
  int64_t count = layout.count(), kept = countOf(node.axes);
  Value to = e.at(block.result(node.results.front()), e.muli(item, kept));
  bool direct = plan.teams() == 1 && node.axes == layout.axes;
  if (!direct && !memory)
    memory = block.shared(largestSums());
  if (!direct)
    block.barrier();
  Value base = direct ? to : memory;
  for (auto [piece, sum] : llvm::enumerate(sums)) {
    Value place = values.first(plan.home[number], static_cast<int64_t>(piece));
    if (!direct)
      place = e.addi(place, e.muli(team, count));
    auto store = [&, sum = sum] { e.store(sum, base, place); };
    Value inside = values.isInside(plan.home[number], static_cast<int64_t>(piece));
    inside ? e.when(inside, store) : store();
  }
  if (direct)
    return;
  block.barrier();
  Axes summed;
  for (const Axis &axis : layout.axes)
    if (!llvm::is_contained(node.axes, axis))
      summed.push_back(axis);
  int64_t parts = countOf(summed);
  auto loop = scf::ForOp::create(e.b, e.loc, block.thread, e.number(kept), e.number(block.threads));
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  Value index = loop.getInductionVar(), offset = e.number(0);
  for (const Axis &axis : node.axes) {
    Value at = e.remi(e.divi(index, strideOf(node.axes, axis.name)), axis.size);
    offset = e.addi(offset, e.muli(at, strideOf(layout.axes, axis.name)));
  }
  // Teams in order, and in each the places that are summed in order.
  Value total = e.loop(e.number(0), e.number(plan.teams() * parts), 1, {e.constant(e.f32, 0)},
                       [&](Value part, ValueRange carried) -> SmallVector<Value> {
                         Value place = e.addi(offset, e.muli(e.divi(part, parts), count));
                         for (const Axis &axis : summed) {
                           Value at = e.remi(e.divi(part, strideOf(summed, axis.name)), axis.size);
                           place = e.addi(place, e.muli(at, strideOf(layout.axes, axis.name)));
                         }
                         return {e.add(carried[0], e.load(e.f32, memory, place))};
                       })[0];
  e.store(total, to, index);
}

void RowKernel::storeSums(Value item, ValueRange sums) {
  size_t next = 0;
  values.open({});
  for (int number : chunked) {
    int layout = plan.home[number];
    bool single = layout < 0 || program.nodes[number].axes.empty();
    size_t pieces = single ? 1 : static_cast<size_t>(plan.layouts[layout].pieces);
    if (single)
      storeNumber(item, number, sums[next]);
    else
      storeVector(item, number, sums.slice(next, pieces));
    next += pieces;
  }
}

/// Starts to copy `row`, unless it is past the chunk's end, to stage `stage`: a number of floats.
void RowKernel::fetchIfThere(Value row, Value to, Value stage) {
  e.when(e.compare(Predicate::slt, row, to), [&] { values.fetch(row, e.at(slots, stage)); });
  block.commitCopies();
}

void RowKernel::chunk(Value item) {
  auto [from, to] = e.range(item, program.rowCount, program.chunks);
  Value first = e.addi(from, team), last = to;
  int64_t teams = plan.teams(), stage = plan.stageBytes() / 4, stages = stage * (plan.ahead + 1);
  for (int64_t row = 0; row < plan.ahead; ++row)
    fetchIfThere(e.addi(first, row * teams), last, e.number(row * stage));
  SmallVector<Value> start = emptySums();
  start.push_back(e.number(0)); // the row's stage
  auto loop = scf::ForOp::create(e.b, e.loc, first, last, e.number(teams), start);
  {
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(loop.getBody());
    Value row = loop.getInductionVar(), at = loop.getRegionIterArgs().back();
    auto after = [&](int64_t rows) {
      Value place = e.addi(at, rows * stage);
      return e.select(e.compare(Predicate::slt, place, e.number(stages)), place, e.addi(place, -stages));
    };
    if (plan.ahead > 0) {
      // The stage that the row before has left.
      fetchIfThere(e.addi(row, plan.ahead * teams), last, after(plan.ahead));
      block.awaitCopies(plan.ahead);
      values.setSlots(e.at(slots, at));
    }
    computeRow(row);
    auto next = added(loop.getRegionIterArgs().drop_back());
    storeRow();
    next.push_back(plan.ahead > 0 ? after(1) : at);
    scf::YieldOp::create(e.b, e.loc, next);
  }
  storeSums(item, loop.getResults().drop_back());
}

void RowKernel::run() {
  Value member = e.number(0);
  team = member;
  if (plan.team == 1)
    team = block.thread;
  else if (plan.team == Block::kWarp)
    member = block.lane, team = block.warp;
  else if (plan.teams() == 1)
    member = block.thread;
  else
    member = e.remi(block.thread, plan.team), team = e.divi(block.thread, plan.team);
  // A mark before the loop.
  values.hoistBefore(e.number(0).getDefiningOp(), member);
  if (plan.ahead > 0)
    slots = e.at(block.dynamic((plan.ahead + 1) * plan.stageBytes()), e.muli(block.thread, 4));
  block.items([&](Value item) {
    if (plan.chunked)
      return chunk(item);
    Value row = e.addi(e.muli(item, plan.teams()), team);
    auto work = [&] {
      computeRow(row);
      storeRow();
    };
    if (program.rowCount % plan.teams() == 0)
      return work();
    e.when(e.compare(Predicate::slt, row, e.number(program.rowCount)), work);
  });
}

//===----------------------------------------------------------------------===//
// All elements
//===----------------------------------------------------------------------===//

/// 16-byte vectors where all of a block's elements are there and operands lie so; else one by one.
class FlatKernel {
public:
  FlatKernel(Block &block, const RowProgram &program, RowPlan wide, int64_t perThread)
      : block(block), e(block.e), program(program), wide(std::move(wide)), perThread(perThread),
        rowSize(this->wide.layouts[0].count()) {
    narrow = this->wide;
    narrow.layouts[0].lanes = 1;
    narrow.aligned = false;
  }
  void run();

private:
  void elements(const RowPlan &plan, Value index);
  Value areAligned();

  Block &block;
  Emitter &e;
  const RowProgram &program;
  RowPlan wide, narrow;
  int64_t perThread, rowSize;
};

void FlatKernel::elements(const RowPlan &plan, Value index) {
  RowValues values(block, program, plan);
  if (program.flat) {
    values.openFlat(index);
  } else {
    Value row = e.divi(index, rowSize);
    values.openFlat(e.subi(index, e.muli(row, rowSize)), row);
  }
  SmallVector<int> results;
  for (auto [number, node] : llvm::enumerate(program.nodes))
    if (!node.results.empty() && !node.axes.empty())
      results.push_back(static_cast<int>(number));
  for (int number : results)
    values.at(number, 0, 0);
  for (int number : results)
    for (int result : program.nodes[number].results)
      values.storeResult(number, result);
}

Value FlatKernel::areAligned() {
  Value bits = e.number(0);
  auto look = [&](Value operand) {
    bits = arith::OrIOp::create(e.b, e.loc, bits, LLVM::PtrToIntOp::create(e.b, e.loc, e.i64, operand));
  };
  for (const RowNode &node : program.nodes) {
    if (node.axes.empty())
      continue;
    if (node.kind == Kind::Operand)
      look(block.operands[node.operand]);
    for (int result : node.results)
      look(block.result(result));
  }
  return e.compare(Predicate::eq, e.both(bits, e.number(15)), e.number(0));
}

void FlatKernel::run() {
  int64_t count = (program.flat ? 1 : program.rowCount) * rowSize, share = block.threads * perThread;
  Value aligned = areAligned();
  Value zero = e.number(0);
  // Numbers are the first block's.
  Value writer =
      e.both(e.compare(Predicate::eq, block.block, zero), e.compare(Predicate::eq, block.thread, zero));
  bool numbers = llvm::any_of(program.nodes,
                              [](const RowNode &node) { return !node.results.empty() && node.axes.empty(); });
  if (numbers)
    e.when(writer, [&] {
      RowValues values(block, program, narrow);
      values.openFlat(zero);
      for (auto [number, node] : llvm::enumerate(program.nodes))
        if (node.axes.empty())
          for (int result : node.results)
            values.storeResult(static_cast<int>(number), result);
    });
  block.items([&](Value item) {
    Value from = e.muli(item, share);
    Value whole = e.both(aligned, e.compare(Predicate::sle, e.addi(from, share), e.number(count)));
    e.choose(
        whole, [&] { elements(wide, e.addi(from, e.muli(block.thread, perThread))); },
        [&] {
          e.loop(e.number(0), e.number(perThread), 1, [&](Value round) {
            Value index = e.addi(e.addi(from, e.muli(round, block.threads)), block.thread);
            e.when(e.compare(Predicate::slt, index, e.number(count)), [&] { elements(narrow, index); });
          });
        });
  });
}

} // namespace

static FailureOr<RowProgram> programOf(const BareKernel &bare) { return buildRowProgram(bare.kernel); }

MaybeKind rowsKind(const BareKernel &bare, std::string &why) {
  auto program = programOf(bare);
  if (failed(program))
    return std::nullopt;
  auto plan = planRows(*program, bare, why);
  if (!plan)
    return std::nullopt;
  BlockKind kind;
  kind.items = plan->items(*program);
  kind.threads = plan->threads;
  kind.build = [program = *program, plan = *plan](Block &block) {
    RowKernel(block, program, plan).run();
    return success();
  };
  return kind;
}

/// All elements of `axes` in each of `rows` rows, `lanes` a thread.
static BlockKind elementsKind(const RowProgram &program, const Axes &axes, int64_t rows, int64_t lanes) {
  constexpr int64_t kThreads = 256;
  RowPlan plan;
  plan.aligned = true;
  plan.threads = kThreads;
  plan.layouts.push_back({axes, lanes, 1});
  for (const RowNode &node : program.nodes)
    plan.home.push_back(node.axes.empty() ? -1 : 0);
  BlockKind kind;
  kind.threads = kThreads;
  int64_t share = kThreads * lanes;
  kind.items = (rows * countOf(axes) + share - 1) / share;
  kind.build = [program, plan](Block &block) {
    FlatKernel(block, program, plan, plan.layouts[0].lanes).run();
    return success();
  };
  return kind;
}

static int64_t widestLanes(const BareKernel &bare) {
  constexpr int64_t kHalves = 8, kFloats = 4;
  return llvm::any_of(bare.storage, [](Type type) { return type.isBF16(); }) ? kHalves : kFloats;
}

MaybeKind flatKind(const BareKernel &bare, std::string &) {
  auto program = programOf(bare);
  if (failed(program) || !program->flat)
    return std::nullopt;
  return elementsKind(*program, program->flatAxes, 1, widestLanes(bare));
}

/// The axes that all nodes but numbers of rows have, or none.
static Axes axesOfAll(const RowProgram &program) {
  Axes all;
  for (const RowNode &node : program.nodes) {
    bool summed = node.kind == Kind::Reduce || node.kind == Kind::Rope;
    bool integers = node.type && !node.type.getElementType().isF32();
    if (summed || integers || (node.axes.empty() && !node.results.empty()))
      return {};
    if (node.axes.empty())
      continue;
    if (!all.empty() && node.axes != all)
      return {};
    all = node.axes;
  }
  return all;
}

MaybeKind longRowsKind(const BareKernel &bare) {
  auto program = programOf(bare);
  Axes axes = succeeded(program) && !program->rows.empty() ? axesOfAll(*program) : Axes();
  if (axes.empty())
    return std::nullopt;
  int64_t lanes = widestLanes(bare);
  while (countOf(axes) % lanes != 0)
    lanes /= 2;
  return elementsKind(*program, axes, program->rowCount, lanes);
}

} // namespace weft

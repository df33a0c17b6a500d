//===- RowPlan.cpp - How a row is spread over threads ---------------------===//
#include "passes/Codegen/Gpu/RowPlan.h"

#include <map>

using namespace mlir;

namespace weft {

using Kind = RowNode::Kind;

bool isPrefix(ArrayRef<Axis> part, ArrayRef<Axis> axes) {
  return part.size() <= axes.size() && std::equal(part.begin(), part.end(), axes.begin());
}

int64_t RowPlan::items(const RowProgram &program) const {
  return chunked ? program.chunks : (program.rowCount + teams() - 1) / teams();
}

bool isCopiedAhead(const RowNode &node, const RowLayout &layout, const Storage &storage) {
  if (node.kind != Kind::Operand || node.component >= 0 || node.axes != layout.axes ||
      node.axes.size() == static_cast<size_t>(node.type.getRank()))
    return false;
  return layout.lanes * (storage[static_cast<size_t>(node.operand)].isBF16() ? 2 : 4) == 16;
}

bool mayRace(const RowProgram &program, const RowPlan &plan) {
  for (const RowNode &node : program.nodes) {
    if (node.results.empty() || node.chunked)
      continue;
    for (const RowNode &source : program.nodes)
      if (source.kind == Kind::Operand && source.component < 0 &&
          source.type.getNumElements() == node.type.getNumElements())
        for (const RowLayout &layout : plan.layouts)
          if (source.axes != layout.axes)
            return true;
  }
  return false;
}

namespace {

class Planner {
public:
  Planner(const RowProgram &program, const BareKernel &bare) : program(program), bare(bare) {}
  std::optional<RowPlan> run();
  std::string why;

private:
  bool placeAll();
  int layoutOf(const Axes &axes);
  int sourceLayout(int node);
  bool isThere(int node, int layout);
  bool chooseLanes();
  bool chooseTeam();
  bool meets() const;
  bool fitsSegments();
  void lookAhead();
  bool fail(const Twine &reason) {
    if (why.empty())
      why = reason.str();
    return false;
  }

  const RowProgram &program;
  const BareKernel &bare;
  RowPlan plan;
  std::map<std::pair<int, int>, bool> known;
};

int Planner::layoutOf(const Axes &axes) {
  if (axes.empty())
    return -1;
  for (auto [number, layout] : llvm::enumerate(plan.layouts))
    if (layout.axes == axes)
      return static_cast<int>(number);
  plan.layouts.push_back({axes, 1, 1});
  return static_cast<int>(plan.layouts.size()) - 1;
}

/// The layout whose threads hold sums that `node` is made of, -1 if there is none.
int Planner::sourceLayout(int number) {
  const RowNode &node = program.nodes[number];
  if (node.axes.empty() || node.kind == Kind::Operand || node.kind == Kind::Rope)
    return -1;
  if (node.kind == Kind::Reduce)
    return layoutOf(program.nodes[node.inputs[0]].axes);
  for (int input : node.inputs)
    if (program.nodes[input].axes.size() == node.axes.size())
      if (int layout = sourceLayout(input); layout >= 0)
        return layout;
  return -1;
}

/// Can each thread have its elements of `node` in `layout`?
bool Planner::isThere(int number, int layout) {
  const RowNode &node = program.nodes[number];
  if (node.axes.empty())
    return true;
  auto [entry, fresh] = known.try_emplace({number, layout}, true);
  if (!fresh)
    return entry->second;
  bool good = true;
  switch (node.kind) {
  case Kind::Operand:
    good = node.type.getElementType().isF32() || fail("integers in a row");
    break;
  case Kind::Map:
    for (int input : node.inputs)
      good &= isThere(input, layout);
    break;
  case Kind::Reduce:
    good = (plan.home[number] == layout && isPrefix(node.axes, plan.layouts[layout].axes)) ||
           fail("a sum that is read along other axes");
    break;
  case Kind::Rope:
    good = plan.home[number] == layout || fail("a rotation that is read along other axes");
    break;
  }
  return known[{number, layout}] = good;
}

bool Planner::placeAll() {
  plan.home.assign(program.nodes.size(), -1);
  bool good = true;
  for (auto [index, node] : llvm::enumerate(program.nodes)) {
    int number = static_cast<int>(index);
    bool wanted = !node.results.empty() || node.kind == Kind::Reduce || node.kind == Kind::Rope;
    if (!wanted)
      continue;
    if (node.kind == Kind::Reduce) {
      const Axes &from = program.nodes[node.inputs[0]].axes;
      plan.home[number] = layoutOf(from);
      plan.chunked |= node.chunked;
      good &= isThere(node.inputs[0], plan.home[number]);
      if (node.chunked || node.axes.empty())
        continue;
    } else {
      int source = sourceLayout(number);
      plan.home[number] = source >= 0 ? source : layoutOf(node.axes);
    }
    good &= isThere(node.kind == Kind::Rope ? node.inputs[0] : number, plan.home[number]);
    if (!node.axes.empty() && !isPrefix(node.axes, plan.layouts[plan.home[number]].axes))
      good = fail("a result along other axes than its sum's");
  }
  return good;
}

bool Planner::chooseLanes() {
  constexpr int64_t kHalves = 8, kFloats = 4;
  bool halves = llvm::any_of(bare.storage, [](Type type) { return type.isBF16(); });
  for (RowLayout &layout : plan.layouts) {
    layout.lanes = halves ? kHalves : kFloats;
    while (layout.axes.back().size % layout.lanes != 0)
      layout.lanes /= 2;
  }
  for (auto [number, node] : llvm::enumerate(program.nodes))
    if (node.kind == Kind::Rope) {
      RowLayout &layout = plan.layouts[plan.home[number]];
      while ((node.axes.back().size / 2) % layout.lanes != 0)
        layout.lanes /= 2;
    }
  return true;
}

/// A row's own memory: operands and chunked sums, in elements of `layout`.
static int64_t valuesOf(const RowProgram &program, const RowPlan &plan, int layout) {
  int64_t values = 2;
  for (auto [number, node] : llvm::enumerate(program.nodes)) {
    bool held = node.kind == Kind::Operand || node.chunked || node.kind == Kind::Rope;
    const Axes &axes = node.kind == Kind::Reduce ? program.nodes[node.inputs[0]].axes : node.axes;
    values += held && axes == plan.layouts[layout].axes ? 1 : 0;
  }
  return values;
}

bool Planner::chooseTeam() {
  // Warps that add up rows are few: they may have more registers, and come eight a block.
  constexpr int64_t kRegisters = 160, kSumRegisters = 220, kMostThreads = 1024, kBlock = 128;
  if (plan.layouts.empty()) {
    plan.team = 1;
    plan.threads = 2 * kBlock;
    return true;
  }
  for (int64_t pieces : {4, 3, 2, 1}) {
    int64_t team = Block::kWarp, registers = 0;
    for (const RowLayout &layout : plan.layouts) {
      int64_t share = pieces * Block::kWarp;
      team = std::max(team, (layout.vectors() + share - 1) / share * Block::kWarp);
    }
    for (auto [number, layout] : llvm::enumerate(plan.layouts)) {
      layout.pieces = (layout.vectors() + team - 1) / team;
      registers += layout.pieces * layout.lanes * valuesOf(program, plan, static_cast<int>(number));
    }
    bool sums = team == Block::kWarp && plan.chunked;
    // Above 256 threads each has fewer registers.
    int64_t limit = sums ? kSumRegisters : team <= 256 ? kRegisters : 65536 / team - 32;
    if (team > kMostThreads || (registers > limit && pieces > 1))
      continue;
    plan.team = team;
    plan.threads = team;
    if (team == Block::kWarp)
      plan.threads = sums ? 2 * kBlock : kBlock;
    else if (plan.chunked && !meets())
      plan.threads = std::max<int64_t>(1, 3 * kBlock / team) * team;
    return true;
  }
  return fail("a row of " + Twine(plan.layouts[0].count()) +
              " elements is more than a block's registers hold");
}

/// Do the threads of a team of several warps wait for each other?
bool Planner::meets() const {
  return mayRace(program, plan) || llvm::any_of(program.nodes, [](const RowNode &node) {
           return node.kind == Kind::Reduce && !node.chunked && node.axes.empty();
         });
}

/// Sums over less than a row lie in neighbouring lanes; so do the halves of a rotation.
bool Planner::fitsSegments() {
  for (auto [number, node] : llvm::enumerate(program.nodes)) {
    if (node.kind != Kind::Reduce && node.kind != Kind::Rope)
      continue;
    if (node.chunked || node.axes.empty() || plan.home[number] < 0)
      continue;
    const RowLayout &layout = plan.layouts[plan.home[number]];
    int64_t length = node.kind == Kind::Rope ? node.axes.back().size : layout.count() / countOf(node.axes);
    int64_t vectors = length / layout.lanes;
    if (vectors > Block::kWarp || !llvm::isPowerOf2_64(static_cast<uint64_t>(vectors)))
      return fail("neighbours of " + Twine(length) + " elements are no power of two of vectors");
  }
  return true;
}

/// As many rows as hide a read's latency, as far as two blocks share the memory.
void Planner::lookAhead() {
  constexpr int64_t kUnderWay = 32 << 10, kMostAhead = 3, kSums = 36 << 10, kMost = 80 << 10;
  if (!plan.chunked || !plan.aligned)
    return;
  for (const RowLayout &layout : plan.layouts)
    for (const RowNode &node : program.nodes)
      plan.parts += isCopiedAhead(node, layout, bare.storage) ? layout.pieces : 0;
  if (plan.parts == 0)
    return;
  int64_t stage = plan.stageBytes();
  plan.ahead = std::clamp<int64_t>((kUnderWay + stage - 1) / stage, 1, kMostAhead);
  if ((plan.ahead + 1) * stage > std::min(kMost, bare.sharedBytes - kSums))
    plan.ahead = plan.parts = 0;
}

std::optional<RowPlan> Planner::run() {
  if (!placeAll() || !chooseLanes() || !chooseTeam() || !fitsSegments())
    return std::nullopt;
  constexpr int64_t kShared = 8192; // floats
  for (auto [number, node] : llvm::enumerate(program.nodes))
    if (node.chunked && plan.home[number] >= 0) {
      const RowLayout &layout = plan.layouts[plan.home[number]];
      bool direct = plan.teams() == 1 && node.axes == layout.axes;
      while (!direct && plan.teams() > 1 && plan.teams() * layout.count() > kShared)
        plan.threads = (plan.teams() + 1) / 2 * plan.team;
      if (!direct && plan.teams() * layout.count() > kShared) {
        fail("partial sums of " + Twine(layout.count()) + " elements are more than shared memory holds");
        return std::nullopt;
      }
    }
  plan.aligned = program.rows.size() == 2;
  lookAhead();
  return plan;
}

} // namespace

std::optional<RowPlan> planRows(const RowProgram &program, const BareKernel &bare, std::string &why) {
  Planner planner(program, bare);
  auto plan = planner.run();
  why = planner.why;
  return plan;
}

} // namespace weft

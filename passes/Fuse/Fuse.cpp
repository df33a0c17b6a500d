//===- Fuse.cpp - Group ops between products into regions -----------------===//
//
// 1. Walk the function in order. An op that fits a domain joins the groups of
//    its producers and of other readers of its operands, latest first, if they
//    have the same domain, no path leads from the group through an outside op
//    back to it, and the budget holds. Else it opens a group.
// 2. Order groups and single ops by their dependences, stable in the old order.
// 3. With `recompute`, a group that reads a norm and also what the norm was made
//    of computes it again: the value need not be stored between the two.
// 4. Each group becomes one weft.fused. Constants are cloned where they are read.
//
//===----------------------------------------------------------------------===//

#include "passes/Fuse/Passes.h"
#include "passes/Fuse/Regions.h"

#include <set>

namespace weft {
#define GEN_PASS_DEF_FUSEPASS
#include "passes/Fuse/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

struct Group {
  Domain domain;
  SmallVector<Operation *> members;
  int64_t rowBytes = 0;
};

class Fuser {
public:
  Fuser(func::FuncOp function, int64_t budget, int64_t chunks, bool recompute)
      : block(function.getBody().front()), budget(budget), chunks(chunks), recompute(recompute) {}
  void run();

private:
  void assign(Operation *op);
  SmallVector<int> candidates(Operation *op);
  bool canJoin(int group, Operation *op);
  bool reaches(int group, ArrayRef<Operation *> targets);
  void join(int group, Operation *op);
  void mergeGroups(int into, int from);
  std::vector<Operation *> ordered();
  void recomputeNorms(Group &group);
  void build(const Group &group);
  int64_t rowBytes(Operation *op, const Domain &domain);
  int groupOf(Operation *op) {
    auto found = groupIndex.find(op);
    return found == groupIndex.end() ? -1 : found->second;
  }

  Block &block;
  int64_t budget, chunks;
  bool recompute;
  std::vector<Group> groups;
  llvm::DenseMap<Operation *, int> groupIndex;
  llvm::DenseMap<Operation *, int> position;
};

} // namespace

int64_t Fuser::rowBytes(Operation *op, const Domain &domain) {
  int64_t bytes = 0;
  for (Value result : op->getResults())
    bytes += cast<RankedTensorType>(result.getType()).getNumElements() * 4;
  return domain.rows.empty() ? 0 : bytes / std::max<int64_t>(domain.count(), 1); // an axis may be empty
}

/// Groups that `op` touches: of producers, and of other readers of its operands.
SmallVector<int> Fuser::candidates(Operation *op) {
  std::set<int, std::greater<>> found;
  for (Value operand : op->getOperands()) {
    if (Operation *producer = operand.getDefiningOp())
      found.insert(groupOf(producer));
    if (cast<RankedTensorType>(operand.getType()).getRank() > 0)
      for (Operation *reader : operand.getUsers())
        found.insert(groupOf(reader));
  }
  found.erase(-1);
  return SmallVector<int>(found.begin(), found.end());
}

/// Whether a path of outside ops leads from `group` to one of `targets`' operands.
bool Fuser::reaches(int group, ArrayRef<Operation *> targets) {
  int first = position.lookup(groups[static_cast<size_t>(group)].members.front());
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> stack(targets.begin(), targets.end());
  llvm::DenseSet<Operation *> start(targets.begin(), targets.end());
  while (!stack.empty()) {
    Operation *op = stack.pop_back_val();
    // An outside group stands where its last member needs it: all its members count.
    SmallVector<Operation *> parts{op};
    if (int other = groupOf(op); other >= 0 && other != group && !start.contains(op))
      parts.assign(groups[static_cast<size_t>(other)].members);
    for (Operation *part : parts)
      for (Value operand : part->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (!producer)
          continue;
        if (groupOf(producer) == group) {
          if (!start.contains(op))
            return true;
          continue;
        }
        if ((position.lookup(producer) > first || groupOf(producer) >= 0) && seen.insert(producer).second &&
            !start.contains(producer))
          stack.push_back(producer);
      }
  }
  return false;
}

/// Says why not in a remark, which `weft why` shows.
bool Fuser::canJoin(int group, Operation *op) {
  Group &there = groups[static_cast<size_t>(group)];
  if (there.members.empty())
    return false;
  if (there.rowBytes + rowBytes(op, there.domain) > budget) {
    op->emitRemark("not fused with its producer: row values would take ")
        << there.rowBytes + rowBytes(op, there.domain) << " bytes, more than " << budget;
    return false;
  }
  if (reaches(group, {op})) {
    op->emitRemark("not fused with its producer: a product between them reads the region's values");
    return false;
  }
  return true;
}

void Fuser::join(int group, Operation *op) {
  Group &there = groups[static_cast<size_t>(group)];
  there.members.push_back(op);
  there.rowBytes += rowBytes(op, there.domain);
  groupIndex[op] = group;
}

/// Joins two groups of one domain where no outside path runs either way.
void Fuser::mergeGroups(int into, int from) {
  Group &a = groups[static_cast<size_t>(into)], &b = groups[static_cast<size_t>(from)];
  if (!(a.domain == b.domain) || a.members.empty() || b.members.empty() || a.rowBytes + b.rowBytes > budget ||
      reaches(into, b.members) || reaches(from, a.members))
    return;
  for (Operation *member : b.members)
    groupIndex[member] = into;
  a.members.append(b.members);
  llvm::sort(a.members, [&](Operation *x, Operation *y) { return position.lookup(x) < position.lookup(y); });
  a.rowBytes += b.rowBytes;
  b.members.clear();
}

void Fuser::assign(Operation *op) {
  std::optional<Domain> domain = domainOf(op);
  if (!domain)
    return;
  int home = -1;
  for (int group : candidates(op)) {
    if (!(groups[static_cast<size_t>(group)].domain == *domain))
      continue;
    if (home < 0) {
      if (!canJoin(group, op))
        continue;
      join(group, op);
      home = group;
    } else {
      mergeGroups(home, group);
    }
  }
  if (home < 0) {
    groups.push_back({*domain, {}, 0});
    join(static_cast<int>(groups.size()) - 1, op);
  }
}

/// Ops and groups in an order that respects dependences; a group stands as its last member.
std::vector<Operation *> Fuser::ordered() {
  std::vector<Operation *> order;
  llvm::DenseSet<Operation *> placed;
  llvm::DenseSet<int> placedGroups;
  std::function<void(Operation *)> place = [&](Operation *op) {
    int group = groupOf(op);
    if (group >= 0 ? !placedGroups.insert(group).second : !placed.insert(op).second)
      return;
    SmallVector<Operation *> members{op};
    if (group >= 0)
      members = groups[static_cast<size_t>(group)].members;
    for (Operation *member : members)
      for (Value operand : member->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && (group < 0 || groupOf(producer) != group))
          place(producer);
    llvm::append_range(order, members);
  };
  for (Operation &op : block)
    place(&op);
  return order;
}

/// Norms that `group` reads, and whose operand it reads too, become members of it.
void Fuser::recomputeNorms(Group &group) {
  llvm::DenseSet<Operation *> inside(group.members.begin(), group.members.end());
  llvm::SmallSetVector<Value, 8> read;
  for (Operation *member : group.members)
    for (Value operand : member->getOperands())
      if (!inside.contains(operand.getDefiningOp()))
        read.insert(operand);
  for (Value value : read) {
    Operation *norm = value.getDefiningOp();
    if (!norm || !isa<LayerNormOp, RmsNormOp>(norm) || !read.contains(norm->getOperand(0)))
      continue;
    Operation *again = OpBuilder(group.members.front()).clone(*norm);
    for (Operation *member : group.members)
      member->replaceUsesOfWith(value, again->getResult(0));
    group.members.insert(group.members.begin(), again);
  }
}

void Fuser::build(const Group &group) {
  llvm::SmallSetVector<Value, 8> inputs;
  SmallVector<Value> results;
  llvm::DenseSet<Operation *> inside(group.members.begin(), group.members.end());
  for (Operation *member : group.members) {
    for (Value operand : member->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!(producer && (inside.contains(producer) || isa<ConstantOp>(producer))))
        inputs.insert(operand);
    }
    for (Value result : member->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); }))
        results.push_back(result);
  }
  OpBuilder builder(group.members.back());
  SmallVector<Location> locations;
  for (Operation *member : group.members)
    locations.push_back(member->getLoc());
  SmallVector<Type> types = llvm::map_to_vector(results, [](Value value) { return value.getType(); });
  auto rows =
      builder.getArrayAttr(SmallVector<Attribute>(group.domain.rows.begin(), group.domain.rows.end()));
  auto fused = FusedOp::create(builder, builder.getFusedLoc(locations), types, inputs.getArrayRef(), rows,
                               builder.getI64IntegerAttr(chunksOf(group.domain, chunks)));
  Block &body = fused.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, body.addArgument(input.getType(), input.getLoc()));
  builder.setInsertionPointToEnd(&body);
  for (Operation *member : group.members) {
    for (Value operand : member->getOperands())
      if (auto constant = operand.getDefiningOp<ConstantOp>(); constant && !mapping.contains(operand))
        builder.clone(*constant, mapping);
    builder.clone(*member, mapping);
  }
  SmallVector<Value> yields =
      llvm::map_to_vector(results, [&](Value value) { return mapping.lookup(value); });
  YieldOp::create(builder, fused.getLoc(), yields);
  for (auto [result, value] : llvm::zip(results, fused.getResults()))
    result.replaceUsesWithIf(value, [&](OpOperand &use) { return !inside.contains(use.getOwner()); });
  for (Operation *member : llvm::reverse(group.members))
    member->erase();
}

void Fuser::run() {
  int number = 0;
  for (Operation &op : block)
    position[&op] = number++;
  for (Operation &op : block)
    assign(&op);
  for (Operation *op : ordered())
    op->moveBefore(&block, block.end());
  if (recompute)
    for (Group &group : groups)
      recomputeNorms(group);
  for (const Group &group : groups)
    if (!group.members.empty())
      build(group);
}

namespace {
struct Fuse : weft::impl::FusePassBase<Fuse> {
  using FusePassBase::FusePassBase;
  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      Fuser(function, rowBudget, chunks, recompute).run();
  }
};
} // namespace

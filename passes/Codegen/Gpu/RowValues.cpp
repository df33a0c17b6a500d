//===- RowValues.cpp - Values of one row in a thread's registers ----------===//
#include "passes/Codegen/Gpu/RowValues.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>
#include <utility>

using namespace mlir;

namespace weft {

using Kind = RowNode::Kind;
using Predicate = arith::CmpIPredicate;

void RowValues::hoistBefore(Operation *op, Value newMember) {
  before = op;
  member = newMember;
}

void RowValues::open(Value newRow) {
  row = newRow;
  known.clear();
  numbers.clear();
  bases.clear();
}

void RowValues::openFlat(Value index, Value newRow) {
  open(newRow);
  flatIndex = index;
}

Value RowValues::hoisted(function_ref<Value()> make) {
  OpBuilder::InsertionGuard guard(e.b);
  if (before)
    e.b.setInsertionPoint(before);
  return make();
}

/// Vectors as wide as the layout's; what it writes stands where `e` writes.
Emitter RowValues::lanesOf(int layout) const {
  Emitter wide(e.b, e.loc, plan.layouts[layout].lanes);
  wide.approximate = e.approximate;
  return wide;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Value RowValues::vectorNumber(int64_t piece) { return e.addi(member, piece * plan.team); }

Value RowValues::isInside(int layout, int64_t piece) {
  const RowLayout &there = plan.layouts[layout];
  if (flatIndex || (piece + 1) * plan.team <= there.vectors())
    return {};
  Value &mask = masks[{layout, piece}];
  if (!mask)
    mask = hoisted([&] { return e.compare(Predicate::slt, vectorNumber(piece), e.number(there.vectors())); });
  return mask;
}

Value RowValues::first(int layout, int64_t piece) {
  if (flatIndex)
    return flatIndex;
  Value &start = starts[{layout, piece}];
  if (!start)
    start = hoisted([&] {
      Value number = vectorNumber(piece);
      if ((piece + 1) * plan.team > plan.layouts[layout].vectors())
        number = e.mini(number, e.number(plan.layouts[layout].vectors() - 1));
      return e.muli(number, plan.layouts[layout].lanes);
    });
  return start;
}

Value RowValues::rowOffset(ArrayRef<Axis> axes) {
  if (!row || program.rows.empty())
    return {};
  auto names = llvm::map_to_vector(axes.take_front(std::min(axes.size(), program.rows.size())),
                                   [](const Axis &axis) { return axis.name; });
  int64_t local = 1;
  for (const Axis &axis : axes)
    local *= program.isRow(axis.name) ? 1 : axis.size;
  if (names == program.rows)
    return e.muli(row, local);
  Value offset;
  for (const Axis &axis : axes) {
    if (!program.isRow(axis.name))
      continue;
    Value at = e.remi(e.divi(row, strideOf(program.rowAxes, axis.name)), axis.size);
    Value part = e.muli(at, strideOf(axes, axis.name));
    offset = offset ? e.addi(offset, part) : part;
  }
  return offset;
}

Value RowValues::moved(Value base, RankedTensorType type) {
  Value offset = rowOffset(allAxes(type));
  return offset ? e.at(base, offset) : base;
}

Value RowValues::resultOf(int64_t number, RankedTensorType type) { return moved(block.result(number), type); }

int64_t RowValues::alignmentOf(Type element, int64_t lanes, bool ofRow) const {
  constexpr int64_t kMost = 16;
  int64_t bytes = element.isBF16() ? 2 : 4;
  return plan.aligned && (ofRow || flatIndex) ? std::min(kMost, bytes * lanes) : bytes;
}

/// Where the piece's first element lies in the row's part of `node`'s tensor.
Value RowValues::indexIn(const RowNode &node, int layout, int64_t piece) {
  const RowLayout &there = plan.layouts[layout];
  Value start = first(layout, piece);
  if (node.axes == there.axes || flatIndex)
    return start;
  Value index;
  for (const Axis &axis : there.axes) {
    int64_t step = strideOf(node.axes, axis.name);
    if (step == 0)
      continue;
    Value at = e.divi(start, strideOf(there.axes, axis.name));
    if (axis.name != there.axes.front().name)
      at = e.remi(at, axis.size);
    Value part = e.muli(at, step);
    index = index ? e.addi(index, part) : part;
  }
  return index ? index : e.number(0);
}

Value RowValues::elementNumber(const RowNode &node, int layout, int64_t piece) {
  Value number = rowOffset(allAxes(node.type));
  if (layout < 0)
    return number ? number : e.number(0);
  Value index = indexIn(node, layout, piece);
  number = number ? e.addi(number, index) : index;
  if (!isVector(node, layout))
    return number;
  Emitter wide = lanesOf(layout);
  return wide.addi(wide.splat(number), wide.iota(wide.i64));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool RowValues::isVector(const RowNode &node, int layout) const {
  StringAttr last = plan.layouts[layout].axes.back().name;
  return llvm::any_of(node.axes, [&](const Axis &axis) { return axis.name == last; });
}

Value RowValues::apply(const RowNode &node, ArrayRef<Value> inputs, int layout, int64_t piece) {
  if (layout < 0)
    return node.map(e, inputs, [&] { return elementNumber(node, layout, piece); });
  Emitter wide = lanesOf(layout);
  bool vector = isVector(node, layout);
  SmallVector<Value> values;
  for (Value input : inputs)
    values.push_back(vector && input.getType() == e.f32 ? wide.splat(input) : input);
  Value value = node.map(wide, values, [&] { return elementNumber(node, layout, piece); });
  return vector ? wide.splat(value) : value;
}

Value RowValues::number(int index) {
  if (auto found = numbers.find(index); found != numbers.end())
    return found->second;
  const RowNode &node = program.nodes[index];
  Value value;
  if (node.kind == Kind::Operand) {
    Value base = block.operands[node.operand];
    base = node.component < 0 ? moved(base, node.type) : e.at(base, e.number(node.component));
    value = e.load(node.type.getElementType(), base);
  } else {
    SmallVector<Value> inputs;
    for (int input : node.inputs)
      inputs.push_back(number(input));
    value = apply(node, inputs, -1, 0);
  }
  return numbers[index] = value;
}

/// What all rows share, a gain, is read once and kept, as far as registers go.
Value RowValues::operandAt(const RowNode &node, int layout, int64_t piece) {
  constexpr int64_t kMostHeld = 64;
  bool ofRow = node.axes.size() < static_cast<size_t>(node.type.getRank());
  Value &value = constant[{node.operand, layout, piece}];
  if (value && !ofRow)
    return value;
  int64_t size = isVector(node, layout) ? plan.layouts[layout].lanes : 1;
  if (ofRow || !before || held + size > kMostHeld)
    return loadOperand(node, layout, piece);
  held += size;
  Value outside = bases[node.operand];
  bases.erase(node.operand);
  value = hoisted([&] { return loadOperand(node, layout, piece); });
  bases.erase(node.operand);
  if (outside)
    bases[node.operand] = outside;
  return value;
}

void RowValues::placeSlots() {
  if (plan.ahead == 0)
    return;
  Storage storage;
  for (int64_t i = 0; i < block.argumentCount; ++i)
    storage.push_back(e.halves.contains(block.operands[static_cast<size_t>(i)]) ? Type(e.b.getBF16Type())
                                                                                : e.f32);
  int64_t next = 0;
  for (auto [number, layout] : llvm::enumerate(plan.layouts))
    for (const RowNode &node : program.nodes)
      if (isCopiedAhead(node, layout, storage)) {
        slotNumbers[{node.operand, static_cast<int>(number)}] = next;
        next += layout.pieces;
      }
}

/// Where the thread's vector lies between the slots from `start` on; null if nothing is copied ahead.
Value RowValues::slotOf(const RowNode &node, int layout, int64_t piece, Value start) {
  auto found = slotNumbers.find({node.operand, layout});
  if (!start || found == slotNumbers.end())
    return {};
  Value slot = e.bytesFrom(start, 16 * plan.threads * (found->second + piece));
  if (e.halves.contains(block.operands[node.operand]))
    e.halves.insert(slot);
  return slot;
}

void RowValues::fetch(Value ahead, Value start) {
  Value open = std::exchange(row, ahead);
  for (auto [number, layout] : llvm::enumerate(plan.layouts))
    for (const RowNode &node : program.nodes)
      for (int64_t piece = 0; piece < layout.pieces; ++piece)
        if (Value slot =
                node.kind == Kind::Operand ? slotOf(node, static_cast<int>(number), piece, start) : Value()) {
          Value from = moved(block.operands[node.operand], node.type);
          block.copy(e.at(from, indexIn(node, static_cast<int>(number), piece)), slot);
        }
  row = open;
}

Value RowValues::loadOperand(const RowNode &node, int layout, int64_t piece) {
  if (Value slot = slotOf(node, layout, piece, slots))
    return e.load(lanesOf(layout).floats, slot, 16);
  Value &base = bases[node.operand];
  if (!base)
    base = moved(block.operands[node.operand], node.type);
  Value place = e.at(base, indexIn(node, layout, piece));
  if (!isVector(node, layout))
    return e.load(e.f32, place);
  Emitter wide = lanesOf(layout);
  const RowLayout &there = plan.layouts[layout];
  int64_t step = flatIndex ? 1 : strideOf(node.axes, there.axes.back().name);
  if (step == 1) {
    Type element = e.halves.contains(place) ? e.b.getBF16Type() : e.f32;
    bool ofRow = node.axes.size() < static_cast<size_t>(node.type.getRank());
    return e.load(wide.floats, place, alignmentOf(element, there.lanes, ofRow));
  }
  SmallVector<Value> lanes;
  for (int64_t lane = 0; lane < there.lanes; ++lane)
    lanes.push_back(e.load(e.f32, e.at(place, e.number(lane * step))));
  return vector::FromElementsOp::create(e.b, e.loc, wide.floats, lanes);
}

Value RowValues::at(int index, int layout, int64_t piece) {
  const RowNode &node = program.nodes[index];
  if (node.axes.empty())
    return number(index);
  if (auto found = known.find({index, layout, piece}); found != known.end())
    return found->second;
  Value value;
  if (node.kind == Kind::Operand) {
    value = operandAt(node, layout, piece);
  } else {
    SmallVector<Value> inputs;
    for (int input : node.inputs)
      inputs.push_back(at(input, layout, piece));
    value = apply(node, inputs, layout, piece);
  }
  return known[{index, layout, piece}] = value;
}

//===----------------------------------------------------------------------===//
// Sums and rotations
//===----------------------------------------------------------------------===//

void RowValues::sum(int index) {
  const RowNode &node = program.nodes[index];
  int layout = plan.home[index], input = node.inputs[0];
  auto fold = [&](Value x, Value y) { return node.largest ? e.larger(x, y) : e.add(x, y); };
  if (layout < 0)
    return setNumber(index, number(input));
  const RowLayout &there = plan.layouts[layout];
  double neutral = node.largest ? -std::numeric_limits<double>::infinity() : 0;
  Value whole;
  for (int64_t piece = 0; piece < there.pieces; ++piece) {
    Value value = at(input, layout, piece);
    value = node.largest ? e.largestOf(value) : e.sumOf(value);
    if (Value inside = isInside(layout, piece))
      value = e.select(inside, value, e.constant(e.f32, neutral));
    if (node.axes.empty())
      whole = whole ? fold(whole, value) : value;
    else
      set(index, layout, piece,
          block.overLanes(value, there.count() / countOf(node.axes) / there.lanes, node.largest));
  }
  if (whole)
    setNumber(index, plan.team == Block::kWarp ? block.overLanes(whole, Block::kWarp, node.largest)
                                               : block.overBlock(whole, node.largest));
}

void RowValues::rotate(int index) {
  const RowNode &node = program.nodes[index];
  int layout = plan.home[index];
  const RowLayout &there = plan.layouts[layout];
  Emitter wide = lanesOf(layout);
  int64_t size = node.axes.back().size, half = size / 2;
  RopeOp op = node.rope;
  auto positions = cast<RankedTensorType>(op.getPosition().getType());
  Axes local = program.localAxes(positions);
  Value table = block.operands[node.table];
  for (int64_t piece = 0; piece < there.pieces; ++piece) {
    RowNode place;
    place.axes = local;
    Value index64 = indexIn(place, layout, piece);
    Value position =
        e.loadIndex(moved(block.operands[node.position], positions), local.empty() ? e.number(0) : index64);
    Value channel = e.remi(first(layout, piece), size);
    Value angles = e.at(table, e.addi(e.muli(position, 2 * half), e.muli(e.remi(channel, half), 2)));
    auto pairs = VectorType::get({2 * there.lanes}, e.f32);
    Value both = e.load(pairs, angles, std::min<int64_t>(16, 8 * there.lanes));
    SmallVector<int64_t> even, odd;
    for (int64_t lane = 0; lane < there.lanes; ++lane) {
      even.push_back(2 * lane);
      odd.push_back(2 * lane + 1);
    }
    Value cosine = vector::ShuffleOp::create(e.b, e.loc, both, both, even);
    Value sine = vector::ShuffleOp::create(e.b, e.loc, both, both, odd);
    Value low = e.compare(Predicate::slt, channel, e.number(half));
    // (x cos - y sin, x sin + y cos): the lower half subtracts.
    Value sign = e.select(low, e.constant(e.f32, op.getInverse() ? 1 : -1),
                          e.constant(e.f32, op.getInverse() ? -1 : 1));
    Value x = at(node.inputs[0], layout, piece);
    SmallVector<Value> other;
    for (int64_t lane = 0; lane < there.lanes; ++lane) {
      Value mine = vector::ExtractOp::create(e.b, e.loc, x, lane);
      other.push_back(block.exchanged(mine, half / there.lanes));
    }
    Value partner = vector::FromElementsOp::create(e.b, e.loc, wide.floats, other);
    Value turned = wide.mul(wide.mul(partner, sine), wide.splat(sign));
    set(index, layout, piece, wide.fma(x, cosine, turned));
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void RowValues::storeResult(int index, int result) {
  const RowNode &node = program.nodes[index];
  Value base = resultOf(result, node.type);
  int layout = plan.home[index];
  if (layout < 0) {
    Value leader = member ? e.compare(Predicate::eq, member, e.number(0)) : Value();
    if (plan.team == 1 || !leader)
      return e.store(number(index), base);
    return e.when(leader, [&] { e.store(number(index), base); });
  }
  const RowLayout &there = plan.layouts[layout];
  for (int64_t piece = 0; piece < there.pieces; ++piece) {
    Value value = at(index, layout, piece);
    Value wanted = isInside(layout, piece);
    auto both = [&](Value condition) { wanted = wanted ? e.both(wanted, condition) : condition; };
    if (!isVector(node, layout)) {
      int64_t vectors = there.count() / countOf(node.axes) / there.lanes;
      both(e.compare(Predicate::eq, e.remi(vectorNumber(piece), vectors), e.number(0)));
    }
    Value index64 = indexIn(node, layout, piece);
    auto store = [&] {
      Value place = e.at(base, index64);
      Type element = e.halves.contains(place) ? e.b.getBF16Type() : e.f32;
      e.store(value, place, alignmentOf(element, isVector(node, layout) ? there.lanes : 1, true));
    };
    wanted ? e.when(wanted, store) : store();
  }
}

} // namespace weft

//===- RowEmit.cpp - Loops of a fused kernel ------------------------------===//
#include "passes/Codegen/RowProgram.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace weft {
namespace {

using Kind = RowNode::Kind;
using Coordinates = llvm::DenseMap<StringAttr, Value>;

/// Where a row's part of a tensor lies.
struct Memory {
  Value base;
  Axes axes; // row-major; strides follow
};

class RowEmitter {
public:
  RowEmitter(Emitter &e, const RowProgram &program, KernelOp kernel, ArrayRef<Value> operands, Value scratch)
      : e(e), program(program), operands(operands), scratch(scratch),
        argumentCount(kernel.getBody().front().getNumArguments()) {}

  void run(Value begin, Value end);

private:
  // Set up for a chunk or row.
  void flatChunk(Value chunk);
  void rowChunk(Value chunk);
  void setRow(Value row);
  Value rowOffset(ArrayRef<Axis> axes, Value row);
  void loadScalars();
  Value resultOf(const RowNode &node) { return bases[argumentCount + node.results.front()]; }

  // Groups.
  void emitGroup(const RowGroup &group);
  void emitScalars(const RowGroup &group);
  void overOuter(const RowGroup &group, ArrayRef<Axis> outer, Coordinates &at, function_ref<void()> body);
  void emitLoop(const RowGroup &group, Coordinates &at);
  void emitRope(const RowGroup &group);
  void emitRopeLine(const RowNode &node, const Coordinates &at);
  void emitFlatGroup(const RowGroup &group, Value from, Value to);
  bool collapses(const RowGroup &group) const;
  RowGroup collapsed(const RowGroup &group);

  // One strip.
  struct Strip {
    Strip(Value index, Lanes lanes, ValueRange carried) : index(index), lanes(lanes), carried(carried) {}
    Value index;
    Lanes lanes;
    ValueRange carried;
    SmallVector<Value> next;
    llvm::DenseMap<int, Value> values;
  };
  void emitNodes(const RowGroup &group, const Coordinates &at, Strip &strip);
  Value inputValue(const RowGroup &group, int input, Strip &strip);
  void storeResults(const RowNode &node, const RowGroup &group, const Coordinates &at, Value value,
                    Strip &strip);
  void reduceStrip(const RowNode &node, const RowGroup &group, const Coordinates &at, Value value,
                   Strip &strip);
  Value elementNumber(const RowNode &node, const Coordinates &at, Value index);

  bool isAccumulated(const RowNode &node, const RowGroup &group) const;
  bool addsToMemory(const RowNode &node, const RowGroup &group) const;
  void finishReduction(int number, const RowGroup &group, const Coordinates &at, Value accumulated);

  Memory memoryOf(const RowNode &node);
  Value pointer(const Memory &memory, const Coordinates &at, StringAttr last);
  int64_t stride(const RowNode &node, StringAttr axis) const;

  Emitter &e;
  const RowProgram &program;
  ArrayRef<Value> operands;
  Value scratch;
  int argumentCount;
  SmallVector<Value> bases;             // operands moved to the row
  llvm::DenseMap<int, Value> chunkSums; // chunked nodes: this chunk's part
  llvm::DenseMap<int, Value> scalars;   // values of the row without axes
  Value row, firstItem;
  // While a loop is emitted: its inputs and outputs moved to the outer coordinates.
  llvm::DenseMap<int, Value> inputAt;
  llvm::DenseMap<int, Value> repeated; // inputs that the last axis does not change
  StringAttr flatAxis;
  int64_t flatSize = 0;
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Memory RowEmitter::memoryOf(const RowNode &node) {
  if (node.kind == Kind::Operand)
    return {bases[node.operand], node.axes};
  if (!node.results.empty())
    return {resultOf(node), node.axes};
  return {e.bytesFrom(scratch, node.scratch), node.axes};
}

/// The memory at the outer coordinates; `last` is left to the caller.
Value RowEmitter::pointer(const Memory &memory, const Coordinates &at, StringAttr last) {
  Value index;
  for (const Axis &axis : memory.axes) {
    auto found = at.find(axis.name);
    if (axis.name == last || found == at.end())
      continue;
    Value part = e.muli(found->second, strideOf(memory.axes, axis.name));
    index = index ? e.addi(index, part) : part;
  }
  return index ? e.at(memory.base, index) : memory.base;
}

int64_t RowEmitter::stride(const RowNode &node, StringAttr axis) const {
  if (axis == flatAxis)
    return countOf(node.axes) == flatSize ? 1 : 0;
  return strideOf(node.axes, axis);
}

Value RowEmitter::rowOffset(ArrayRef<Axis> axes, Value row) {
  auto names =
      llvm::map_to_vector(axes.take_front(program.rows.size()), [](const Axis &axis) { return axis.name; });
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

void RowEmitter::setRow(Value newRow) {
  row = newRow;
  bases.assign(operands.begin(), operands.end());
  auto move = [&](int operand, RankedTensorType type) {
    if (Value offset = rowOffset(allAxes(type), row))
      bases[operand] = e.at(operands[operand], offset);
  };
  for (const RowNode &node : program.nodes) {
    if (node.kind == Kind::Operand && node.component < 0)
      move(node.operand, node.type);
    if (!node.chunked)
      for (int result : node.results)
        move(argumentCount + result, node.type);
  }
  loadScalars();
}

void RowEmitter::loadScalars() {
  for (auto [number, node] : llvm::enumerate(program.nodes))
    if (node.kind == Kind::Operand && node.axes.empty()) {
      Value base = bases[node.operand];
      Type type = node.type.getElementType();
      scalars[static_cast<int>(number)] =
          node.component > 0 ? e.load(type, base, e.number(node.component)) : e.load(type, base);
    }
}

//===----------------------------------------------------------------------===//
// One strip of a loop
//===----------------------------------------------------------------------===//

Value RowEmitter::inputValue(const RowGroup &group, int input, Strip &strip) {
  if (auto found = strip.values.find(input); found != strip.values.end())
    return found->second;
  auto scalar = scalars.find(input);
  if (scalar != scalars.end())
    return scalar->second.getType() == e.f32 ? e.splat(scalar->second) : scalar->second;
  if (auto found = repeated.find(input); found != repeated.end())
    return found->second;
  int64_t step = stride(program.nodes[input], group.axes.back().name);
  Value from = inputAt.at(input);
  Value value = step == 1 ? e.loadLanes(from, strip.index, strip.lanes)
                          : e.gatherLanes(from, e.muli(strip.index, step), step, strip.lanes);
  return strip.values[input] = value;
}

Value RowEmitter::elementNumber(const RowNode &node, const Coordinates &at, Value index) {
  Axes axes = allAxes(node.type);
  Value number = program.flat ? Value() : rowOffset(axes, row);
  auto plus = [&](Value part) { number = number ? e.addi(number, part) : part; };
  for (const Axis &axis : node.axes)
    if (auto found = at.find(axis.name); found != at.end())
      plus(e.muli(found->second, strideOf(node.axes, axis.name)));
  if (!index)
    return number ? number : e.number(0);
  plus(index);
  return e.addi(e.splat(number), e.iota(e.i64));
}

bool RowEmitter::addsToMemory(const RowNode &node, const RowGroup &group) const {
  if (node.chunked)
    return true;
  Axes outer(group.axes.begin(), std::prev(group.axes.end()));
  return node.axes != outer;
}

bool RowEmitter::isAccumulated(const RowNode &node, const RowGroup &group) const {
  return node.kind == Kind::Reduce && stride(node, group.axes.back().name) == 0;
}

void RowEmitter::reduceStrip(const RowNode &node, const RowGroup &group, const Coordinates &at, Value value,
                             Strip &strip) {
  if (isAccumulated(node, group)) {
    double neutral = node.largest ? -std::numeric_limits<double>::infinity() : 0;
    if (strip.lanes.mask)
      value = e.select(strip.lanes.mask, value, e.constant(value.getType(), neutral));
    Value before = strip.carried[strip.next.size()];
    strip.next.push_back(node.largest ? e.larger(value, before) : e.add(before, value));
    return;
  }
  StringAttr last = group.axes.back().name;
  Memory memory =
      node.chunked ? Memory{chunkSums.at(&node - program.nodes.data()), node.axes} : memoryOf(node);
  Value to = pointer(memory, at, last);
  Value index = strip.index;
  if (int64_t step = stride(node, last); step != 1)
    index = e.muli(index, step);
  Value sum = e.add(e.loadLanes(to, index, strip.lanes), value);
  e.storeLanes(sum, to, index, strip.lanes);
}

void RowEmitter::storeResults(const RowNode &node, const RowGroup &group, const Coordinates &at, Value value,
                              Strip &strip) {
  StringAttr last = group.axes.back().name;
  for (int result : node.results)
    e.storeLanes(value, pointer({bases[argumentCount + result], node.axes}, at, last), strip.index,
                 strip.lanes);
  if (node.results.empty() && node.stored)
    e.storeLanes(value, pointer(memoryOf(node), at, last), strip.index, strip.lanes);
}

void RowEmitter::emitNodes(const RowGroup &group, const Coordinates &at, Strip &strip) {
  for (int number : group.nodes) {
    const RowNode &node = program.nodes[number];
    SmallVector<Value> inputs;
    for (int input : node.inputs)
      inputs.push_back(inputValue(group, input, strip));
    if (node.kind == Kind::Reduce) {
      reduceStrip(node, group, at, inputs[0], strip);
      continue;
    }
    Value value = node.map(e, inputs, [&] { return elementNumber(node, at, strip.index); });
    strip.values[number] = e.splat(value);
  }
  // All loads of a strip stand before its stores: a result may be an argument's storage.
  for (int number : group.nodes)
    if (const RowNode &node = program.nodes[number]; node.kind == Kind::Map)
      storeResults(node, group, at, strip.values[number], strip);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void RowEmitter::finishReduction(int number, const RowGroup &group, const Coordinates &at,
                                 Value accumulated) {
  const RowNode &node = program.nodes[number];
  Value scalar = node.largest ? e.largestOf(accumulated) : e.sumOf(accumulated);
  bool adds = addsToMemory(node, group);
  if (!adds && node.axes.empty()) {
    scalars[number] = scalar;
    for (int result : node.results)
      e.store(scalar, bases[argumentCount + result]);
    return;
  }
  Memory memory = node.chunked ? Memory{chunkSums.at(number), node.axes} : memoryOf(node);
  Value to = pointer(memory, at, {});
  e.store(adds ? e.add(e.load(e.f32, to), scalar) : scalar, to);
}

void RowEmitter::emitLoop(const RowGroup &group, Coordinates &at) {
  StringAttr last = group.axes.back().name;
  inputAt.clear();
  repeated.clear();
  SmallVector<int> accumulated;
  SmallVector<Value> start;
  for (int number : group.nodes) {
    const RowNode &node = program.nodes[number];
    for (int input : node.inputs) {
      const RowNode &source = program.nodes[input];
      bool inside = source.group == node.group && source.kind != Kind::Operand;
      if (inside || scalars.contains(input) || inputAt.contains(input))
        continue;
      inputAt[input] = pointer(memoryOf(source), at, last);
      if (stride(source, last) == 0)
        repeated[input] = e.splat(e.load(e.f32, inputAt[input]));
    }
    if (isAccumulated(node, group)) {
      accumulated.push_back(number);
      start.push_back(e.constant(e.floats, node.largest ? -std::numeric_limits<double>::infinity() : 0));
    }
  }
  auto sums =
      e.strips(group.axes.back().size, start, [&](Value index, const Lanes &lanes, ValueRange carried) {
        Strip strip(index, lanes, carried);
        emitNodes(group, at, strip);
        return strip.next;
      });
  for (auto [number, sum] : llvm::zip(accumulated, sums))
    finishReduction(number, group, at, sum);
}

void RowEmitter::overOuter(const RowGroup &group, ArrayRef<Axis> outer, Coordinates &at,
                           function_ref<void()> body) {
  if (outer.empty())
    return body();
  e.loop(e.number(0), e.number(outer[0].size), 1, [&](Value i) {
    at[outer[0].name] = i;
    overOuter(group, outer.drop_front(), at, body);
  });
  at.erase(outer[0].name);
}

void RowEmitter::emitScalars(const RowGroup &group) {
  for (int number : group.nodes) {
    const RowNode &node = program.nodes[number];
    SmallVector<Value> inputs;
    for (int input : node.inputs)
      inputs.push_back(scalars.at(input));
    if (node.kind == Kind::Reduce) {
      if (node.chunked) {
        Value to = chunkSums.at(number);
        e.store(e.add(e.load(e.f32, to), inputs[0]), to);
      }
      continue;
    }
    scalars[number] = node.map(e, inputs, [&] { return elementNumber(node, Coordinates(), {}); });
  }
  auto storeAll = [&] {
    for (int number : group.nodes)
      for (int result : program.nodes[number].results)
        if (!program.nodes[number].chunked)
          e.store(scalars.at(number), bases[argumentCount + result]);
  };
  if (!program.flat)
    return storeAll();
  e.when(e.compare(arith::CmpIPredicate::eq, firstItem, e.number(0)), storeAll);
}

/// Do all values of the loop lie in one order without gaps, so that one loop does?
bool RowEmitter::collapses(const RowGroup &group) const {
  if (group.axes.size() < 2)
    return false;
  for (int number : group.nodes) {
    const RowNode &node = program.nodes[number];
    if (node.kind == Kind::Reduce && node.axes != group.axes)
      return false;
    for (int input : node.inputs)
      if (const Axes &axes = program.nodes[input].axes; !axes.empty() && axes != group.axes)
        return false;
  }
  return true;
}

void RowEmitter::emitGroup(const RowGroup &group) {
  if (group.rope)
    return emitRope(group);
  if (group.axes.empty())
    return emitScalars(group);
  RowGroup loop = group;
  Coordinates at;
  if (collapses(group)) {
    flatAxis = StringAttr::get(e.b.getContext(), "#flat");
    flatSize = countOf(group.axes);
    loop.axes = {{flatAxis, flatSize}};
  }
  for (int number : group.nodes)
    if (const RowNode &node = program.nodes[number];
        node.kind == Kind::Reduce && !node.chunked && addsToMemory(node, loop))
      e.zero(memoryOf(node).base, countOf(node.axes));
  overOuter(loop, ArrayRef(loop.axes).drop_back(), at, [&] { emitLoop(loop, at); });
  flatAxis = {};
  // What several outer loops added up to one number is a value from here on.
  for (int number : group.nodes)
    if (const RowNode &node = program.nodes[number];
        node.kind == Kind::Reduce && !node.chunked && node.axes.empty() && !scalars.contains(number))
      scalars[number] = e.load(e.f32, memoryOf(node).base);
}

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

void RowEmitter::emitRopeLine(const RowNode &node, const Coordinates &at) {
  StringAttr last = node.axes.back().name;
  int64_t half = node.axes.back().size / 2;
  const RowNode &source = program.nodes[node.inputs[0]];
  Value from = pointer(memoryOf(source), at, last), to = pointer(memoryOf(node), at, last);
  RopeOp op = node.rope;
  Memory positions{bases[node.position], program.localAxes(op.getPosition().getType())};
  Value position = e.loadIndex(pointer(positions, at, {}), e.number(0));
  Value angles = e.at(bases[node.table], e.muli(position, 2 * half));
  e.strips(half, [&](Value i, const Lanes &lanes) {
    Value place = e.muli(i, 2);
    Value cosine, sine;
    if (lanes.mask) {
      cosine = e.gatherLanes(angles, place, 2, lanes);
      sine = e.gatherLanes(angles, e.addi(place, 1), 2, lanes);
    } else {
      SmallVector<int64_t> even, odd;
      for (int64_t lane = 0; lane < e.width; ++lane) {
        even.push_back(2 * lane);
        odd.push_back(2 * lane + 1);
      }
      Value low = e.load(e.floats, angles, place), high = e.load(e.floats, angles, e.addi(place, e.width));
      cosine = vector::ShuffleOp::create(e.b, e.loc, low, high, even);
      sine = vector::ShuffleOp::create(e.b, e.loc, low, high, odd);
    }
    if (op.getInverse())
      sine = e.neg(sine);
    Value other = e.addi(i, half);
    Value x = e.loadLanes(from, i, lanes), y = e.loadLanes(from, other, lanes);
    e.storeLanes(e.sub(e.mul(x, cosine), e.mul(y, sine)), to, i, lanes);
    e.storeLanes(e.add(e.mul(x, sine), e.mul(y, cosine)), to, other, lanes);
  });
}

void RowEmitter::emitRope(const RowGroup &group) {
  Coordinates at;
  const RowNode &node = program.nodes[group.nodes[0]];
  overOuter(group, ArrayRef(group.axes).drop_back(), at, [&] { emitRopeLine(node, at); });
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

void RowEmitter::emitFlatGroup(const RowGroup &group, Value from, Value to) {
  flatAxis = StringAttr::get(e.b.getContext(), "#flat");
  flatSize = countOf(program.flatAxes);
  RowGroup loop{{{flatAxis, flatSize}}, group.nodes, false};
  inputAt.clear();
  repeated.clear();
  for (int number : group.nodes)
    for (int input : program.nodes[number].inputs)
      if (const RowNode &source = program.nodes[input];
          !scalars.contains(input) && source.group != program.nodes[number].group)
        inputAt[input] = memoryOf(source).base;
  e.strips(from, to, [&](Value index, const Lanes &lanes) {
    Strip strip(index, lanes, {});
    emitNodes(loop, Coordinates(), strip);
  });
  flatAxis = {};
}

void RowEmitter::flatChunk(Value chunk) {
  // In strips, so that only the last one is cut.
  int64_t count = countOf(program.flatAxes);
  int64_t strips = (count + e.width - 1) / e.width;
  auto [first, last] = e.range(chunk, strips, program.chunks);
  Value from = e.muli(first, e.width);
  Value to = e.mini(e.muli(last, e.width), e.number(count));
  for (const RowGroup &group : program.groups)
    if (!group.axes.empty())
      emitFlatGroup(group, from, to);
}

void RowEmitter::rowChunk(Value chunk) {
  bases.assign(operands.begin(), operands.end());
  for (auto [number, node] : llvm::enumerate(program.nodes))
    if (node.chunked) {
      int64_t count = countOf(node.axes);
      Value sums = e.at(resultOf(node), e.muli(chunk, count));
      e.zero(sums, count);
      chunkSums[static_cast<int>(number)] = sums;
    }
  auto [first, last] = e.range(chunk, program.rowCount, program.chunks);
  e.loop(first, last, 1, [&](Value row) {
    scalars.clear();
    setRow(row);
    for (const RowGroup &group : program.groups)
      emitGroup(group);
  });
}

void RowEmitter::run(Value begin, Value end) {
  bases.assign(operands.begin(), operands.end());
  firstItem = begin;
  if (program.flat) {
    loadScalars();
    for (const RowGroup &group : program.groups)
      if (group.axes.empty())
        emitScalars(group);
  }
  e.loop(begin, end, 1, [&](Value chunk) { program.flat ? flatChunk(chunk) : rowChunk(chunk); });
}

} // namespace

void emitRowProgram(Emitter &e, const RowProgram &program, KernelOp kernel, ArrayRef<Value> operands,
                    Value begin, Value end, Value scratch) {
  RowEmitter(e, program, kernel, operands, scratch).run(begin, end);
}

} // namespace weft

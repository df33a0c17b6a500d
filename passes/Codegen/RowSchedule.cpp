//===- RowSchedule.cpp - Maps and reductions put together into loops ------===//
#include "passes/Codegen/RowSchedule.h"

using namespace mlir;

namespace weft {

using Kind = RowNode::Kind;

static const Axes &loopAxes(const RowProgram &program, const RowNode &node) {
  return node.kind == Kind::Reduce ? program.nodes[node.inputs[0]].axes : node.axes;
}

/// The first group that may hold `node`: after what it reads, or with it.
static int earliest(const RowProgram &program, const RowNode &node) {
  int first = 0;
  for (int input : node.inputs) {
    const RowNode &source = program.nodes[input];
    if (source.kind == Kind::Operand)
      continue;
    bool together = source.kind == Kind::Map && node.kind != Kind::Rope &&
                    program.groups[source.group].axes == loopAxes(program, node);
    first = std::max(first, together ? source.group : source.group + 1);
  }
  return first;
}

static void place(RowProgram &program, int number) {
  RowNode &node = program.nodes[number];
  const Axes &axes = loopAxes(program, node);
  bool rope = node.kind == Kind::Rope;
  int group = earliest(program, node);
  int count = static_cast<int>(program.groups.size());
  while (group < count && (rope || program.groups[group].rope || program.groups[group].axes != axes))
    ++group;
  if (group >= count) {
    program.groups.push_back({axes, {}, rope});
    group = count;
  }
  node.group = group;
  program.groups[group].nodes.push_back(number);
}

/// May result storage of `node` be an argument that a later loop still reads?
static bool overwritesTooEarly(const RowProgram &program, const RowNode &node) {
  int64_t count = node.type.getNumElements();
  for (const RowNode &reader : program.nodes)
    if (reader.group > node.group)
      for (int input : reader.inputs)
        if (const RowNode &source = program.nodes[input]; source.kind == Kind::Operand &&
                                                          source.component < 0 && !source.axes.empty() &&
                                                          source.type.getNumElements() == count)
          return true;
  return false;
}

/// Results that must not be written yet go to scratch and are copied at the end.
static void deferResults(RowProgram &program) {
  size_t count = program.nodes.size();
  SmallVector<int> copies;
  for (size_t i = 0; i < count; ++i) {
    RowNode &node = program.nodes[i];
    if (node.results.empty() || node.chunked || node.axes.empty() || !overwritesTooEarly(program, node))
      continue;
    RowNode copy;
    copy.axes = node.axes;
    copy.type = node.type;
    copy.inputs = {static_cast<int>(i)};
    copy.map = [](Emitter &, ArrayRef<Value> in, function_ref<Value()>) { return in[0]; };
    std::swap(copy.results, node.results);
    copies.push_back(static_cast<int>(program.nodes.size()));
    program.nodes.push_back(std::move(copy));
  }
  for (int number : copies) {
    RowNode &copy = program.nodes[number];
    copy.group = static_cast<int>(program.groups.size());
    program.groups.push_back({copy.axes, {number}, false});
  }
}

void scheduleRows(RowProgram &program) {
  for (size_t i = 0; i < program.nodes.size(); ++i)
    if (program.nodes[i].kind != Kind::Operand)
      place(program, static_cast<int>(i));
  deferResults(program);
  for (const RowNode &node : program.nodes)
    for (int input : node.inputs)
      if (RowNode &source = program.nodes[input]; source.kind != Kind::Operand)
        source.stored |= source.group != node.group;
  constexpr int64_t kAlignment = 64;
  for (RowNode &node : program.nodes) {
    bool needed = node.kind == Kind::Operand ? false : node.kind == Kind::Map ? node.stored : !node.chunked;
    if (!needed || !node.results.empty())
      continue;
    node.scratch = program.scratchBytes;
    int64_t bytes = countOf(node.axes) * static_cast<int64_t>(sizeof(float));
    program.scratchBytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

} // namespace weft

//===- State.cpp - Reading and assigning state, starting values ------------===//
#include "dialects/Weft/Interpret/Frame.h"
#include "runtime/core/Initialize.h"
#include "runtime/core/Philox.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace weft {
namespace interp {

/// The contents of one entry; null, with a diagnostic, when there are none.
static const Array *contentsOf(Operation *op, StringRef name, const Frame &frame) {
  auto found = frame.states.find(name);
  if (found != frame.states.end())
    return &found->second;
  op->emitError() << "state entry @" << name << " has no contents";
  return nullptr;
}

LogicalResult evaluate(GetOp op, Frame &frame) {
  const Array *contents = contentsOf(op, op.getState(), frame);
  if (!contents)
    return failure();
  Array &result = frame.make(op.getResult());
  if (contents->shape != result.shape)
    return op.emitError() << "state entry @" << op.getState() << " holds another shape than " << op.getType();
  result.data = contents->data;
  return success();
}

LogicalResult evaluate(SetOp op, Frame &frame) {
  frame.assigned.emplace_back(op.getState().str(), frame[op.getValue()]);
  return success();
}

LogicalResult evaluate(GetFlatOp op, Frame &frame) {
  Array &result = frame.make(op.getResult());
  size_t elements = result.data.size();
  result.data.clear();
  for (auto name : op.getStates().getAsRange<FlatSymbolRefAttr>()) {
    const Array *contents = contentsOf(op, name.getValue(), frame);
    if (!contents)
      return failure();
    llvm::append_range(result.data, contents->data);
  }
  if (result.data.size() != elements)
    return op.emitError() << "expected " << elements << " elements, found " << result.data.size();
  return success();
}

LogicalResult evaluate(SetFlatOp op, Frame &frame) {
  const Array &value = frame[op.getValue()];
  size_t start = 0;
  for (auto name : op.getStates().getAsRange<FlatSymbolRefAttr>()) {
    const Array *contents = contentsOf(op, name.getValue(), frame);
    if (!contents)
      return failure();
    Array part = *contents;
    if (start + part.data.size() > value.data.size())
      return op.emitError() << "the value ends inside @" << name.getValue();
    std::copy_n(value.data.begin() + start, part.data.size(), part.data.begin());
    start += part.data.size();
    frame.assigned.emplace_back(name.getValue().str(), std::move(part));
  }
  if (start != value.data.size())
    return op.emitError() << "the entries hold " << start << " elements, the value " << value.data.size();
  return success();
}

static std::optional<rt::ElementType> elementTypeOf(Type element) {
  if (element.isF32())
    return rt::ElementType::F32;
  if (element.isF64())
    return rt::ElementType::F64;
  if (element.isBF16())
    return rt::ElementType::BF16;
  return std::nullopt;
}

static rt::InitRule::Kind kindOf(InitKind kind) {
  switch (kind) {
  case InitKind::Normal:
    return rt::InitRule::Kind::Normal;
  case InitKind::Uniform:
    return rt::InitRule::Kind::Uniform;
  case InitKind::Truncated:
    return rt::InitRule::Kind::Truncated;
  case InitKind::Orthogonal:
    return rt::InitRule::Kind::Orthogonal;
  default:
    return rt::InitRule::Kind::Constant;
  }
}

/// Bits of a bfloat16 are the upper half of a float's.
static double fromBf16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// The slices that `entry` holds of its whole.
static Array slicesOf(const Array &whole, StateOp entry) {
  SlicesAttr slices = *entry.getSlices();
  ArrayRef<int64_t> shape = slices.getFullShape();
  auto first = static_cast<size_t>(slices.getFirstAxis()), count = static_cast<size_t>(slices.getAxisCount());
  int64_t places = product(shape.slice(first, count)), inner = product(shape.drop_front(first + count));
  Array part(entry.getTensorType());
  size_t to = 0;
  for (int64_t outer = 0; outer < product(shape.take_front(first)); ++outer)
    for (int64_t place : slices.getKept())
      for (int64_t i = 0; i < inner; ++i)
        part.data[to++] = whole.data[(outer * places + place) * inner + i];
  return part;
}

static FailureOr<Array> startOf(StateOp entry, uint64_t seed) {
  RankedTensorType type = entry.getTensorType();
  if (entry.getSlices())
    type = RankedTensorType::get(entry.getSlices()->getFullShape(), type.getElementType());
  InitAttr init = entry.getInit();
  if (!llvm::isa<FloatAttr>(init.getA()) || (init.getB() && !llvm::isa<FloatAttr>(init.getB())))
    return entry.emitError() << "the starting value of @" << entry.getSymName() << " is still a formula";
  double a = numberOf(init.getA());
  if (init.getKind() == InitKind::RopeTable)
    return ropeTable(type, a);
  std::optional<rt::ElementType> element = elementTypeOf(type.getElementType());
  if (!element) // integers start as a constant
    return Array(entry.getTensorType(), a);
  rt::Tensor tensor(*element, {type.getShape().begin(), type.getShape().end()});
  rt::InitRule rule{kindOf(init.getKind()), a, init.getB() ? numberOf(init.getB()) : 0};
  StringRef name = entry.getSymName();
  absl::Status done = rt::initialize(tensor, rule, std::string_view(name.data(), name.size()), seed);
  if (!done.ok())
    return entry.emitError() << std::string(done.message());
  Array array(type);
  for (size_t i = 0; i < array.data.size(); ++i)
    array.data[i] = *element == rt::ElementType::F32   ? static_cast<double>(tensor.as<float>()[i])
                    : *element == rt::ElementType::F64 ? tensor.as<double>()[i]
                                                       : fromBf16(tensor.as<uint16_t>()[i]);
  return entry.getSlices() ? slicesOf(array, entry) : array;
}

} // namespace interp

std::vector<double> drawUniform(uint64_t seed, StringRef stream, size_t count, double low, double high) {
  rt::Philox philox(seed, std::string_view(stream.data(), stream.size()));
  std::vector<double> numbers(count);
  for (size_t i = 0; i < count; ++i)
    numbers[i] = low + (high - low) * philox.uniform(i);
  return numbers;
}

Array ropeTable(RankedTensorType type, double base) {
  Array table(type);
  int64_t positions = type.getDimSize(0), half = type.getDimSize(1);
  for (int64_t position = 0; position < positions; ++position)
    for (int64_t i = 0; i < half; ++i) {
      double angle =
          static_cast<double>(position) * std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
      table.data[(position * half + i) * 2] = std::cos(angle);
      table.data[(position * half + i) * 2 + 1] = std::sin(angle);
    }
  return table;
}

LogicalResult initialize(States &states, ModuleOp module, uint64_t seed) {
  for (auto entry : module.getOps<StateOp>()) {
    FailureOr<Array> start = interp::startOf(entry, seed);
    if (failed(start))
      return failure();
    states.insert_or_assign(entry.getSymName().str(), std::move(*start));
  }
  return success();
}

} // namespace weft

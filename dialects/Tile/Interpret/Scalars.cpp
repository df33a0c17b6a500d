//===- Scalars.cpp - arith and math ---------------------------------------===//

#include "dialects/Tile/Interpret/Arithmetic.h"
#include "dialects/Tile/Interpret/Lanes.h"
#include "dialects/Tile/Interpret/State.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/StringSwitch.h"

#include <bit>
#include <cmath>

using namespace mlir;

namespace weft::tile {

unsigned bitsOf(Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }

static std::optional<FloatFn> floatFnOf(Operation *op) {
  return llvm::StringSwitch<std::optional<FloatFn>>(op->getName().getStringRef())
      .Case("arith.addf", FloatFn::Add)
      .Case("arith.subf", FloatFn::Subtract)
      .Case("arith.mulf", FloatFn::Multiply)
      .Case("arith.divf", FloatFn::Divide)
      .Case("arith.maximumf", FloatFn::Maximum)
      .Case("arith.maxnumf", FloatFn::MaxNumber)
      .Case("arith.minimumf", FloatFn::Minimum)
      .Case("arith.minnumf", FloatFn::MinNumber)
      .Case("arith.negf", FloatFn::Negate)
      .Case("math.absf", FloatFn::Absolute)
      .Case("math.exp2", FloatFn::Exp2)
      .Case("tile.exp2", FloatFn::FastExp2)
      .Case("math.log2", FloatFn::Log2)
      .Case("math.exp", FloatFn::Exp)
      .Case("math.log", FloatFn::Log)
      .Case("math.sqrt", FloatFn::Sqrt)
      .Case("math.rsqrt", FloatFn::ReverseSqrt)
      .Case("math.tanh", FloatFn::Tanh)
      .Default(std::nullopt);
}

static std::optional<IntegerFn> integerFnOf(Operation *op) {
  return llvm::StringSwitch<std::optional<IntegerFn>>(op->getName().getStringRef())
      .Case("arith.addi", IntegerFn::Add)
      .Case("arith.subi", IntegerFn::Subtract)
      .Case("arith.muli", IntegerFn::Multiply)
      .Case("arith.divsi", IntegerFn::Divide)
      .Case("arith.remsi", IntegerFn::Remainder)
      .Case("arith.floordivsi", IntegerFn::FloorDivide)
      .Case("arith.ceildivsi", IntegerFn::CeilDivide)
      .Case("arith.maxsi", IntegerFn::Maximum)
      .Case("arith.minsi", IntegerFn::Minimum)
      .Case("arith.divui", IntegerFn::DivideUnsigned)
      .Case("arith.remui", IntegerFn::RemainderUnsigned)
      .Case("arith.maxui", IntegerFn::MaximumUnsigned)
      .Case("arith.minui", IntegerFn::MinimumUnsigned)
      .Case("arith.andi", IntegerFn::And)
      .Case("arith.ori", IntegerFn::Or)
      .Case("arith.xori", IntegerFn::Xor)
      .Case("arith.shli", IntegerFn::ShiftLeft)
      .Case("arith.shrsi", IntegerFn::ShiftRight)
      .Case("arith.shrui", IntegerFn::ShiftRightUnsigned)
      .Default(std::nullopt);
}

static absl::Status unknown(Operation *op) {
  return absl::UnimplementedError(
      absl::StrCat("the tile interpreter gives '", op->getName().getStringRef().str(), "' no meaning here"));
}

static absl::Status compareFloat(arith::CmpFOp op, std::span<const LanesView> operands, Lanes &result) {
  using P = arith::CmpFPredicate;
  auto with = [&](Compare how, bool unordered) {
    compareFloats(how, unordered, result.integers, operands[0].numbers, operands[1].numbers);
    return absl::OkStatus();
  };
  switch (op.getPredicate()) {
  case P::OEQ:
    return with(Compare::Equal, false);
  case P::ONE:
    return with(Compare::NotEqual, false);
  case P::OLT:
    return with(Compare::Less, false);
  case P::OLE:
    return with(Compare::LessEqual, false);
  case P::OGT:
    return with(Compare::Greater, false);
  case P::OGE:
    return with(Compare::GreaterEqual, false);
  case P::UEQ:
    return with(Compare::Equal, true);
  case P::UNE:
    return with(Compare::NotEqual, true);
  case P::ULT:
    return with(Compare::Less, true);
  case P::ULE:
    return with(Compare::LessEqual, true);
  case P::UGT:
    return with(Compare::Greater, true);
  case P::UGE:
    return with(Compare::GreaterEqual, true);
  default:
    return unknown(op);
  }
}

static void compareInteger(arith::CmpIOp op, std::span<const LanesView> operands, Lanes &result) {
  using P = arith::CmpIPredicate;
  auto with = [&](Compare how, bool isSigned) {
    compareIntegers(how, isSigned, result.integers, operands[0].integers, operands[1].integers);
  };
  switch (op.getPredicate()) {
  case P::eq:
    return with(Compare::Equal, true);
  case P::ne:
    return with(Compare::NotEqual, true);
  case P::slt:
    return with(Compare::Less, true);
  case P::sle:
    return with(Compare::LessEqual, true);
  case P::sgt:
    return with(Compare::Greater, true);
  case P::sge:
    return with(Compare::GreaterEqual, true);
  case P::ult:
    return with(Compare::Less, false);
  case P::ule:
    return with(Compare::LessEqual, false);
  case P::ugt:
    return with(Compare::Greater, false);
  case P::uge:
    return with(Compare::GreaterEqual, false);
  }
}

static void select(std::span<const LanesView> operands, Lanes &result) {
  auto choose = [&](auto &into, auto yes, auto no) {
    std::span<const int64_t> which = operands[0].integers;
    const size_t step = which.size() > 1, yesStep = yes.size() > 1, noStep = no.size() > 1;
    for (size_t i = 0; i < into.size(); ++i)
      into[i] = which[i * step] ? yes[i * yesStep] : no[i * noStep];
  };
  if (!result.numbers.empty())
    choose(result.numbers, operands[1].numbers, operands[2].numbers);
  else
    choose(result.integers, operands[1].integers, operands[2].integers);
}

/// Changes of type, each element alone.
static absl::Status convert(Operation *op, const LanesView &from, Lanes &result) {
  unsigned bits = result.numbers.empty() ? bitsOf(op->getResult(0).getType()) : 32;
  Type source = op->getOperand(0).getType();
  auto integers = [&](auto fn) {
    for (size_t i = 0; i < result.integers.size(); ++i)
      result.integers[i] = cutTo(bits, fn(from.integers[i]));
    return absl::OkStatus();
  };
  if (isa<arith::ExtSIOp>(op)) // of one bit: its sign is that bit
    return integers([&](int64_t x) { return bitsOf(source) == 1 ? -x : x; });
  if (isa<arith::TruncIOp, arith::IndexCastOp>(op))
    return integers([](int64_t x) { return x; });
  if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op)) {
    uint64_t mask = bitsOf(source) >= 64 ? ~uint64_t{0} : (uint64_t{1} << bitsOf(source)) - 1;
    return integers([&](int64_t x) { return static_cast<int64_t>(static_cast<uint64_t>(x) & mask); });
  }
  for (size_t i = 0; i < result.numbers.size(); ++i)
    if (isa<arith::SIToFPOp>(op))
      result.numbers[i] = static_cast<float>(from.integers[i]);
    else if (isa<arith::BitcastOp>(op) && !from.integers.empty())
      result.numbers[i] = std::bit_cast<float>(static_cast<uint32_t>(from.integers[i]));
    else
      return unknown(op);
  for (size_t i = 0; i < result.integers.size(); ++i)
    if (isa<arith::FPToSIOp>(op))
      result.integers[i] = std::abs(from.numbers[i]) < 0x1p62f ? static_cast<int64_t>(from.numbers[i]) : 0;
    else if (isa<arith::BitcastOp>(op) && !from.numbers.empty())
      result.integers[i] = std::bit_cast<int32_t>(from.numbers[i]);
    else
      return unknown(op);
  return absl::OkStatus();
}

static absl::Status constant(arith::ConstantOp op, Lanes &result) {
  if (auto number = dyn_cast<FloatAttr>(op.getValue()))
    result.numbers[0] = number.getValue().convertToFloat();
  else if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
    result.integers[0] = cutTo(bitsOf(op.getType()), integer.getValue().getSExtValue());
  else
    return unknown(op);
  return absl::OkStatus();
}

absl::Status evaluate(Operation *op, std::span<const LanesView> operands, Lanes &result) {
  Type type = op->getResult(0).getType();
  if (!type.isF32() && !type.isIntOrIndex())
    return unknown(op);
  size_t count = 1;
  for (const LanesView &operand : operands)
    count = std::max(count, operand.size());
  result.numbers.resize(type.isF32() ? count : 0);
  result.integers.resize(type.isF32() ? 0 : count);
  if (auto value = dyn_cast<arith::ConstantOp>(op))
    return constant(value, result);
  if (std::optional<FloatFn> fn = floatFnOf(op)) {
    applyFloat(*fn, result.numbers, operands[0].numbers, operands.back().numbers);
  } else if (std::optional<IntegerFn> fn = integerFnOf(op)) {
    applyInteger(*fn, bitsOf(type), result.integers, operands[0].integers, operands[1].integers);
  } else if (isa<math::FmaOp>(op)) {
    applyFma(result.numbers, operands[0].numbers, operands[1].numbers, operands[2].numbers);
  } else if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    return compareFloat(compare, operands, result);
  } else if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    compareInteger(compare, operands, result);
  } else if (isa<arith::SelectOp>(op)) {
    select(operands, result);
  } else {
    return operands.size() == 1 ? convert(op, operands[0], result) : unknown(op);
  }
  return absl::OkStatus();
}

absl::Status Cta::performScalar(Warpgroup &w, Operation *op) {
  llvm::SmallVector<LanesView, 4> operands;
  for (mlir::Value operand : op->getOperands()) {
    const Value &value = at(w, operand);
    if (operand.getType().isF32())
      operands.push_back({{&value.number, 1}, {}});
    else
      operands.push_back({{}, {&value.integer, 1}});
  }
  Lanes result;
  if (absl::Status status = evaluate(op, {operands.data(), operands.size()}, result); !status.ok())
    return status;
  Value &value = at(w, op->getResult(0));
  if (result.numbers.empty())
    value.integer = result.integers[0];
  else
    value.number = result.numbers[0];
  return absl::OkStatus();
}

} // namespace weft::tile

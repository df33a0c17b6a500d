//===- KernelInputs.cpp - What a kernel is tried on -----------------------===//

#include "tools/weft/KernelInputs.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace weft;

namespace {

/// What an argument means to the op that reads it.
enum class Meaning {
  Number,
  Positive,
  Rates,
  LogSum,
  Logarithm,
  Index,
  Target,
  Document,
  Window,
  Offset,
  Noise
};

struct Role {
  Meaning meaning = Meaning::Number;
  int64_t bound = 1; // of an index or a target: below it; of documents and windows: positions
};

int64_t sizeAlong(Value value, int64_t axis) {
  return cast<RankedTensorType>(value.getType()).getDimSize(axis);
}

/// Keys of an op of attention: the second axis of its values.
template <typename Op> Role attentionRole(Op op, Value operand, Value values) {
  int64_t keys = sizeAlong(values, 1);
  if (operand == op.getWindows())
    return {Meaning::Window, keys};
  if (operand == op.getDocStart())
    return {Meaning::Document, keys};
  if (operand == op.getKvOf())
    return {Meaning::Index, headCount(cast<RankedTensorType>(values.getType()))};
  if constexpr (requires { op.getOffset(); })
    if (operand == op.getOffset())
      return {Meaning::Offset, keys};
  if constexpr (requires {
                  op.getA();
                  op.getR();
                })
    if (operand == op.getA() || operand == op.getR())
      return {Meaning::Logarithm};
  return {};
}

template <typename Op> Role gradientRole(Op op, Value operand, Value values) {
  return operand == op.getLse() ? Role{Meaning::LogSum, 1} : attentionRole(op, operand, values);
}

Role adamRole(AdamWOp op, Value operand) {
  if (operand == op.getV())
    return {Meaning::Positive};
  return operand == op.getHyper() || operand == op.getScale() ? Role{Meaning::Rates} : Role{};
}

Role roleFor(Operation *user, Value operand) {
  return llvm::TypeSwitch<Operation *, Role>(user)
      .Case([&](AttendOp op) { return attentionRole(op, operand, op.getK()); })
      .Case([&](AttendGradQueryOp op) { return gradientRole(op, operand, op.getK()); })
      .Case([&](AttendGradKeyValueOp op) { return gradientRole(op, operand, op.getK()); })
      .Case([&](MixOp op) { return attentionRole(op, operand, op.getV()); })
      .Case([&](MixGradValueOp op) { return gradientRole(op, operand, op.getDv()); })
      .Case([&](MixGradPatternOp op) { return gradientRole(op, operand, op.getV()); })
      .Case([&](HeadStatisticsOp op) {
        return operand == op.getTargets() ? Role{Meaning::Target, 2} : gradientRole(op, operand, op.getK());
      })
      .Case([&](GatherOp op) {
        return operand == op.getIndex() ? Role{Meaning::Index, sizeAlong(op.getTable(), 0)} : Role{};
      })
      .Case([&](GatherGradOp op) {
        return operand == op.getIndex() ? Role{Meaning::Index, sizeAlong(op.getDtable(), 0)} : Role{};
      })
      .Case([&](RopeOp op) {
        bool isPosition = operand == op.getPosition() && op.getTable();
        return isPosition ? Role{Meaning::Index, sizeAlong(op.getTable(), 0)} : Role{};
      })
      .Case([&](CrossEntropyOp op) {
        return operand == op.getTargets()
                   ? Role{Meaning::Target,
                          sizeAlong(op.getLogits(),
                                    -1 + cast<RankedTensorType>(op.getLogits().getType()).getRank())}
                   : Role{};
      })
      .Case([&](CrossEntropyGradOp op) {
        return operand == op.getTargets()
                   ? Role{Meaning::Target,
                          sizeAlong(op.getLogits(),
                                    -1 + cast<RankedTensorType>(op.getLogits().getType()).getRank())}
                   : Role{};
      })
      .Case([&](PositionOp op) {
        return operand == op.getDocStart() ? Role{Meaning::Document, sizeAlong(op.getResult(), 1)}
                                           : Role{Meaning::Offset, 1};
      })
      .Case([&](DocumentOp op) {
        return Role{Meaning::Document, sizeAlong(op.getResult(), 1)};
      })
      .Case([&](CacheUpdateOp op) {
        return operand == op.getOffset()
                   ? Role{Meaning::Offset, sizeAlong(op.getCache(), 1) - sizeAlong(op.getValue(), 1) + 1}
                   : Role{};
      })
      .Case([&](DropoutOp op) { return operand == op.getNoise() ? Role{Meaning::Noise} : Role{}; })
      .Case([&](AdamWOp op) { return adamRole(op, operand); })
      .Case([&](ClipScaleOp) { return Role{Meaning::Positive}; })
      .Case([&](AcceptOp op) { return operand == op.getScale() ? Role{Meaning::Positive} : Role{}; })
      .Case([&](UnaryOp op) {
        bool positive = op.getFn() == UnaryFn::Log || op.getFn() == UnaryFn::Sqrt;
        return positive ? Role{Meaning::Positive} : Role{};
      })
      .Default([](Operation *) { return Role{}; });
}

Role roleOf(Value argument) {
  for (Operation *user : argument.getUsers()) {
    Role role = isa<ConvertOp>(user) ? roleOf(user->getResult(0)) : roleFor(user, argument);
    if (role.meaning != Meaning::Number)
      return role;
  }
  return {};
}

class Drawing {
public:
  explicit Drawing(uint64_t seed) : random(seed) {}
  void fill(Array &array, const Role &role);

private:
  int64_t below(int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(random); }
  double number(const Role &role);
  void documents(Array &array, int64_t positions);
  void windows(Array &array, int64_t positions);

  std::mt19937_64 random;
  std::normal_distribution<double> normal;
};

} // namespace

double Drawing::number(const Role &role) {
  switch (role.meaning) {
  case Meaning::Positive:
    return std::abs(normal(random)) + 0.01;
  case Meaning::Rates:
    return 0.1 + 0.8 * static_cast<double>(below(1000)) / 1000;
  case Meaning::LogSum:
    return 5 + normal(random) / 4;
  case Meaning::Logarithm:
    return 2 * normal(random);
  case Meaning::Index:
  case Meaning::Offset:
    return static_cast<double>(below(std::max<int64_t>(role.bound, 1)));
  case Meaning::Target: // one in eight is not counted
    return below(8) == 0 ? -1 : static_cast<double>(below(role.bound));
  case Meaning::Noise:
    return static_cast<double>(below(1 << 30));
  default:
    return normal(random);
  }
}

/// Starts of documents, row by row: one row in three is one document.
void Drawing::documents(Array &array, int64_t positions) {
  for (size_t row = 0; row + static_cast<size_t>(positions) <= array.data.size();
       row += static_cast<size_t>(positions)) {
    bool whole = below(3) == 0;
    int64_t start = 0, end = 0;
    for (int64_t i = 0; i < positions; ++i) {
      if (i == end && !whole) {
        start = i;
        end = i + 1 + (below(4) == 0 ? 0 : below(std::max<int64_t>(positions / 2, 1)));
      }
      array.data[row + static_cast<size_t>(i)] = static_cast<double>(start);
    }
  }
}

void Drawing::windows(Array &array, int64_t positions) {
  const int64_t kChoices[] = {1, 2, 3, 64, 128, positions - 1, positions, 10 * positions, INT32_MAX};
  for (double &window : array.data)
    window = static_cast<double>(std::clamp<int64_t>(kChoices[below(std::size(kChoices))], 1, INT32_MAX));
}

void Drawing::fill(Array &array, const Role &role) {
  if (role.meaning == Meaning::Document && array.data.size() % static_cast<size_t>(role.bound) == 0)
    return documents(array, role.bound);
  if (role.meaning == Meaning::Window)
    return windows(array, role.bound);
  for (double &value : array.data)
    value = role.meaning == Meaning::Document ? 0 : number(role);
}

llvm::SmallVector<Array> weft::kernelInputs(KernelOp kernel, uint64_t seed) {
  llvm::SmallVector<Array> arrays;
  Drawing drawing(seed);
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    Array array(argument.getType());
    drawing.fill(array, roleOf(argument));
    if (auto type = dyn_cast<FloatType>(cast<RankedTensorType>(argument.getType()).getElementType()))
      for (double &value : array.data) {
        llvm::APFloat rounded(value);
        bool lossy = false;
        rounded.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lossy);
        value = rounded.convertToDouble();
      }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

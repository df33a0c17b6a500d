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
  Rotations,
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

struct ArgumentRole {
  Meaning meaning = Meaning::Number;
  int64_t bound = 1; // of an index or a target: below it; of documents and windows: positions
  double base = 0;   // of rotations
};

int64_t sizeAlong(Value value, int64_t axis) {
  return cast<RankedTensorType>(value.getType()).getDimSize(axis);
}

/// Keys of an op of attention: the second axis of its values.
template <typename Op> ArgumentRole attentionRole(Op op, Value operand, Value values) {
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

template <typename Op> ArgumentRole gradientRole(Op op, Value operand, Value values) {
  return operand == op.getLse() ? ArgumentRole{Meaning::LogSum, 1} : attentionRole(op, operand, values);
}

/// Of mix_scale or mix_product; `kv_of` counts heads of `shared`.
template <typename Op> ArgumentRole scaleRole(Op op, Value operand, Value shared) {
  if (operand == op.getScale())
    return {Meaning::Positive};
  if (operand == op.getDocStart())
    return {Meaning::Document, sizeAlong(op.getDocStart(), 1)};
  return operand == op.getKvOf()
             ? ArgumentRole{Meaning::Index, headCount(cast<RankedTensorType>(shared.getType()))}
             : ArgumentRole{};
}

ArgumentRole adamRole(AdamWOp op, Value operand) {
  if (operand == op.getV())
    return {Meaning::Positive};
  return operand == op.getHyper() || operand == op.getScale() ? ArgumentRole{Meaning::Rates} : ArgumentRole{};
}

ArgumentRole roleFor(Operation *user, Value operand) {
  return llvm::TypeSwitch<Operation *, ArgumentRole>(user)
      .Case([&](AttendOp op) { return attentionRole(op, operand, op.getK()); })
      .Case([&](AttendGradQueryOp op) { return gradientRole(op, operand, op.getK()); })
      .Case([&](AttendGradKeyValueOp op) { return gradientRole(op, operand, op.getK()); })
      .Case([&](MixOp op) { return attentionRole(op, operand, op.getV()); })
      .Case([&](MixGradValueOp op) { return gradientRole(op, operand, op.getDv()); })
      .Case([&](MixGradPatternOp op) { return gradientRole(op, operand, op.getV()); })
      .Case([&](MixTableOp op) {
        return operand == op.getWindows() ? ArgumentRole{Meaning::Window, sizeAlong(op.getA(), 1)}
                                          : ArgumentRole{Meaning::Logarithm};
      })
      .Case([&](MixScaleOp op) { return scaleRole(op, operand, op.getX()); })
      .Case([&](MixProductOp op) {
        return operand == op.getWindows() ? ArgumentRole{Meaning::Window, sizeAlong(op.getX(), 1)}
                                          : scaleRole(op, operand, op.getY());
      })
      .Case([&](PatternStatisticsOp op) {
        if (operand == op.getWindows())
          return ArgumentRole{Meaning::Window, sizeAlong(op.getK(), 1)};
        if (operand == op.getKvOf())
          return ArgumentRole{Meaning::Index, headCount(cast<RankedTensorType>(op.getK().getType()))};
        bool sum = operand == op.getLse() || operand == op.getZ();
        return sum ? ArgumentRole{Meaning::LogSum} : ArgumentRole{};
      })
      .Case([&](HeadStatisticsOp op) {
        if (operand == op.getTargets())
          return ArgumentRole{Meaning::Target, 2};
        return operand == op.getEntropy() ? ArgumentRole{Meaning::Positive}
                                          : attentionRole(op, operand, op.getK());
      })
      .Case([&](GatherOp op) {
        return operand == op.getIndex() ? ArgumentRole{Meaning::Index, sizeAlong(op.getTable(), 0)}
                                        : ArgumentRole{};
      })
      .Case([&](GatherGradOp op) {
        return operand == op.getIndex() ? ArgumentRole{Meaning::Index, sizeAlong(op.getDtable(), 0)}
                                        : ArgumentRole{};
      })
      .Case([&](RopeOp op) {
        if (operand == op.getTable())
          return ArgumentRole{Meaning::Rotations, 1, numberOf(op.getBase())};
        bool isPosition = operand == op.getPosition() && op.getTable();
        return isPosition ? ArgumentRole{Meaning::Index, sizeAlong(op.getTable(), 0)} : ArgumentRole{};
      })
      .Case([&](CrossEntropyOp op) {
        return operand == op.getTargets()
                   ? ArgumentRole{Meaning::Target,
                                  sizeAlong(op.getLogits(),
                                            -1 + cast<RankedTensorType>(op.getLogits().getType()).getRank())}
                   : ArgumentRole{};
      })
      .Case([&](CrossEntropyGradOp op) {
        return operand == op.getTargets()
                   ? ArgumentRole{Meaning::Target,
                                  sizeAlong(op.getLogits(),
                                            -1 + cast<RankedTensorType>(op.getLogits().getType()).getRank())}
                   : ArgumentRole{};
      })
      .Case([&](PositionOp op) {
        return operand == op.getDocStart() ? ArgumentRole{Meaning::Document, sizeAlong(op.getResult(), 1)}
                                           : ArgumentRole{Meaning::Offset, 1};
      })
      .Case([&](DocumentOp op) {
        return ArgumentRole{Meaning::Document, sizeAlong(op.getResult(), 1)};
      })
      .Case([&](CacheUpdateOp op) {
        return operand == op.getOffset() ? ArgumentRole{Meaning::Offset, sizeAlong(op.getCache(), 1) -
                                                                             sizeAlong(op.getValue(), 1) + 1}
                                         : ArgumentRole{};
      })
      .Case([&](DropoutOp op) {
        return operand == op.getNoise() ? ArgumentRole{Meaning::Noise} : ArgumentRole{};
      })
      .Case([&](AdamWOp op) { return adamRole(op, operand); })
      .Case([&](ClipScaleOp) { return ArgumentRole{Meaning::Positive}; })
      .Case([&](AcceptOp op) {
        return operand == op.getScale() ? ArgumentRole{Meaning::Positive} : ArgumentRole{};
      })
      .Case([&](UnaryOp op) {
        bool positive = op.getFn() == UnaryFn::Log || op.getFn() == UnaryFn::Sqrt;
        return positive ? ArgumentRole{Meaning::Positive} : ArgumentRole{};
      })
      .Default([](Operation *) { return ArgumentRole{}; });
}

ArgumentRole roleOf(Value argument) {
  for (Operation *user : argument.getUsers()) {
    ArgumentRole role = isa<ConvertOp>(user) ? roleOf(user->getResult(0)) : roleFor(user, argument);
    if (role.meaning != Meaning::Number)
      return role;
  }
  return {};
}

/// Numbers of a large array that is to be timed; the others repeat them: drawing and
/// rounding each would take longer than the runs.
constexpr size_t kDrawn = 1000003;

class Drawing {
public:
  Drawing(uint64_t seed, bool whole) : random(seed), whole(whole) {}
  void fill(Array &array, const ArgumentRole &role);
  /// First places behind the windows of `heads`: blocks of 64.
  void firstPlaces(Array &windows, int64_t heads, int64_t positions);

private:
  int64_t below(int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(random); }
  double number(const ArgumentRole &role);
  int64_t documentEnd(int64_t start, int64_t positions);
  void documents(Array &array, int64_t positions);
  void windows(Array &array, int64_t positions);

  std::mt19937_64 random;
  bool whole;
  std::normal_distribution<double> normal;
};

} // namespace

double Drawing::number(const ArgumentRole &role) {
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

/// The place behind a document that begins at `start`: anywhere in half a row from there, right behind it,
/// or such that the next one begins inside the last 64 rows of a tile of 64, 128 or 192 queries, or
/// leaves the last one or two places of the row to itself.
int64_t Drawing::documentEnd(int64_t start, int64_t positions) {
  constexpr int64_t kRows = 64, kMostTiles = 3;
  switch (below(4)) {
  case 0:
    return start + 1;
  case 1: {
    const int64_t tile = kRows * (1 + below(kMostTiles)), next = (start / tile + 1) * tile;
    return std::max(start + 1, next - 1 - below(kRows - 1));
  }
  case 2:
    return std::max(start + 1, positions - 1 - below(2));
  default:
    return start + 1 + below(std::max<int64_t>(positions / 2, 1));
  }
}

/// Starts of documents, row by row: one row in three is one document.
void Drawing::documents(Array &array, int64_t positions) {
  for (size_t row = 0; row + static_cast<size_t>(positions) <= array.data.size();
       row += static_cast<size_t>(positions)) {
    bool one = whole || below(3) == 0;
    int64_t start = 0, end = 0;
    for (int64_t i = 0; i < positions; ++i) {
      if (i == end && !one) {
        start = i;
        end = documentEnd(i, positions);
      }
      array.data[row + static_cast<size_t>(i)] = static_cast<double>(start);
    }
  }
}

void Drawing::windows(Array &array, int64_t positions) {
  const int64_t kChoices[] = {1, 2, 3, 64, 128, positions - 1, positions, 10 * positions, INT32_MAX};
  for (double &window : array.data)
    window =
        whole ? INT32_MAX
              : static_cast<double>(std::clamp<int64_t>(kChoices[below(std::size(kChoices))], 1, INT32_MAX));
}

void Drawing::firstPlaces(Array &windows, int64_t heads, int64_t positions) {
  constexpr int64_t kGrain = 64;
  for (size_t at = static_cast<size_t>(heads); at < windows.data.size(); ++at)
    windows.data[at] = static_cast<double>(kGrain * below(positions / kGrain + 2));
}

void Drawing::fill(Array &array, const ArgumentRole &role) {
  if (role.meaning == Meaning::Document && array.data.size() % static_cast<size_t>(role.bound) == 0)
    return documents(array, role.bound);
  if (role.meaning == Meaning::Window)
    return windows(array, role.bound);
  size_t count = whole ? std::min(array.data.size(), kDrawn) : array.data.size();
  for (size_t i = 0; i < count; ++i)
    array.data[i] = role.meaning == Meaning::Document ? 0 : number(role);
}

static int64_t argumentOf(Value value) {
  if (auto convert = value.getDefiningOp<ConvertOp>())
    value = convert.getX();
  return cast<BlockArgument>(value).getArgNumber();
}

/// Tables as weft.mix_table has them, of what was drawn: one number a distance, none from the window on; in
/// a second table none below it.
static void layOutTiles(MixProductOp op, llvm::MutableArrayRef<Array> arrays) {
  constexpr int64_t kCore = MixTableOp::kCore, kCells = kCore * kCore, kReach = MixTableOp::kReach;
  std::vector<double> &table = arrays[static_cast<size_t>(argumentOf(op.getTable()))].data;
  const std::vector<double> &windows = arrays[static_cast<size_t>(argumentOf(op.getWindows()))].data;
  auto heads = sizeAlong(op.getX(), 2), tables = sizeAlong(op.getWindows(), 0) / heads;
  auto cells = sizeAlong(op.getTable(), 1) / tables, blocks = cells / kCells;
  for (size_t number = 0; number < static_cast<size_t>(heads * tables); ++number) {
    double *own = &table[number * static_cast<size_t>(cells)],
           window = windows[number / static_cast<size_t>(tables)];
    bool near = number % static_cast<size_t>(tables) == 0;
    std::vector<double> drawn(own, own + cells);
    for (int64_t cell = 0; cell < cells; ++cell) {
      int64_t n = cell / kCells * kCore + cell % kCells / kCore + cell % kCore;
      int64_t d = op.getBack() ? n - kCore * (kReach + 1) + 1 : kCore * (blocks - kReach) - 1 - n;
      bool there = d >= 0 && (static_cast<double>(d) < window) == near;
      own[cell] = there ? std::abs(drawn[static_cast<size_t>(d)]) : 0;
    }
  }
}

/// A document a row, the last ones shorter than the rows.
static void layOutDocuments(PatternStatisticsOp op, llvm::MutableArrayRef<Array> arrays) {
  const int64_t rows = sizeAlong(op.getQ(), 0), places = sizeAlong(op.getQ(), 1);
  std::vector<double> &starts = arrays[static_cast<size_t>(argumentOf(op.getDocuments()))].data;
  std::vector<double> &reach = arrays[static_cast<size_t>(argumentOf(op.getReach()))].data;
  for (size_t i = 0; i < starts.size(); ++i)
    starts[i] = static_cast<double>(static_cast<int64_t>(i) % rows * places);
  for (int64_t i = 0; i < places; ++i)
    reach[static_cast<size_t>(i)] = static_cast<double>(4 * i < 3 * places ? rows : rows - rows / 3);
}

static double rounded(double value, FloatType type) {
  llvm::APFloat number(value);
  bool lossy = false;
  number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lossy);
  return number.convertToDouble();
}

llvm::SmallVector<Array> weft::kernelInputs(KernelOp kernel, uint64_t seed, bool whole) {
  llvm::SmallVector<Array> arrays;
  Drawing drawing(seed, whole);
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    Array array(argument.getType());
    ArgumentRole role = roleOf(argument);
    if (role.meaning == Meaning::Rotations)
      array = ropeTable(cast<RankedTensorType>(argument.getType()), role.base);
    else
      drawing.fill(array, role);
    bool repeats = whole && role.meaning != Meaning::Rotations;
    auto type = dyn_cast<FloatType>(cast<RankedTensorType>(argument.getType()).getElementType());
    for (size_t i = 0; i < array.data.size(); ++i)
      if (repeats && i >= kDrawn)
        array.data[i] = array.data[i - kDrawn];
      else if (type)
        array.data[i] = rounded(array.data[i], type);
    arrays.push_back(std::move(array));
  }
  auto drawFirst = [&](auto op, int64_t heads, int64_t positions) {
    drawing.firstPlaces(arrays[static_cast<size_t>(argumentOf(op.getWindows()))], heads, positions);
  };
  kernel.getBody().walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<MixOp, MixGradValueOp, MixGradPatternOp, MixTableOp>(
            [&](auto mix) { drawFirst(mix, sizeAlong(mix.getA(), 0), sizeAlong(mix.getA(), 1)); })
        .Case([&](MixProductOp mix) { drawFirst(mix, sizeAlong(mix.getX(), 2), sizeAlong(mix.getX(), 1)); });
  });
  for (MixProductOp op : kernel.getBody().getOps<MixProductOp>())
    layOutTiles(op, arrays);
  for (PatternStatisticsOp op : kernel.getBody().getOps<PatternStatisticsOp>())
    layOutDocuments(op, arrays);
  return arrays;
}

bool weft::hideDocuments(KernelOp kernel, llvm::MutableArrayRef<Array> arrays) {
  constexpr int64_t kRows = 64, kTile = 3 * kRows;
  bool any = false;
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    const ArgumentRole role = roleOf(argument);
    std::vector<double> &starts = arrays[argument.getArgNumber()].data;
    if (role.meaning != Meaning::Document || starts.size() % static_cast<size_t>(role.bound) != 0)
      continue;
    for (size_t at = 0; at < starts.size(); ++at) {
      const int64_t place = static_cast<int64_t>(at) % role.bound, row = place % kTile - (kTile - kRows);
      if (row <= 0)
        continue;
      any |= starts[at] != starts[at - 1];
      starts[at] = starts[at - 1];
    }
  }
  return any;
}

//===- Map.cpp - Fragments element by element, sums over rows -------------===//
//
// The body of a map runs once, each op on all elements at a time; what is the
// same for all stays one element. Rows hold four values each, one a thread of the
// quad, so that parts of sums are what the threads would hold.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Interpret/Arithmetic.h"
#include "dialects/Tile/Interpret/Lanes.h"
#include "dialects/Tile/Interpret/State.h"

using namespace mlir;

namespace weft::tile {

/// The thread of a quad that holds a column.
static size_t laneOf(size_t column) { return column % 8 / 2; }

namespace {
/// The elements of a map's results: a frag's, rows' for each lane, or cols'.
struct Domain {
  size_t rows = 1, columns = 1;
  bool isRows = false;
  explicit Domain(Type type) {
    if (auto frag = dyn_cast<FragType>(type))
      rows = static_cast<size_t>(frag.getRows()), columns = static_cast<size_t>(frag.getColumns());
    else if (auto lines = dyn_cast<RowsType>(type))
      rows = static_cast<size_t>(lines.getRows()), columns = static_cast<size_t>(kQuad), isRows = true;
    else
      columns = static_cast<size_t>(cast<ColsType>(type).getColumns());
  }
  size_t size() const { return rows * columns; }
};
} // namespace

/// `from`, of rows or cols, repeated over the elements of a frag.
template <typename Number>
static std::vector<Number> repeat(const std::vector<Number> &from, Type type, const Domain &domain) {
  std::vector<Number> all(domain.size());
  bool byRow = isa<RowsType>(type);
  for (size_t row = 0; row < domain.rows; ++row)
    for (size_t column = 0; column < domain.columns; ++column)
      all[row * domain.columns + column] =
          byRow ? from[row * static_cast<size_t>(kQuad) + laneOf(column)] : from[column];
  return all;
}

static Lanes inputOf(const Registers &registers, Type type, Type result, const Domain &domain) {
  bool same = isa<FragType>(type) || isa<RowsType, ColsType>(result);
  if (same)
    return {registers.numbers, registers.integers};
  if (registers.integers.empty())
    return {repeat(registers.numbers, type, domain), {}};
  return {{}, repeat(registers.integers, type, domain)};
}

/// Row and column of each element; 0 for the one that rows or cols lack.
static void addCoordinates(Block &block, const Domain &domain, Type result,
                           llvm::DenseMap<mlir::Value, Lanes> &values) {
  Lanes rows, columns;
  rows.integers.resize(domain.size());
  columns.integers.resize(domain.size());
  for (size_t row = 0; row < domain.rows; ++row)
    for (size_t column = 0; column < domain.columns; ++column) {
      rows.integers[row * domain.columns + column] = isa<ColsType>(result) ? 0 : static_cast<int64_t>(row);
      columns.integers[row * domain.columns + column] = domain.isRows ? 0 : static_cast<int64_t>(column);
    }
  unsigned count = block.getNumArguments();
  values[block.getArgument(count - 2)] = std::move(rows);
  values[block.getArgument(count - 1)] = std::move(columns);
}

absl::Status Cta::performMap(Warpgroup &w, MapOp op) {
  Block &block = op.getBody().front();
  Type shape = op.getResultTypes().front();
  Domain domain(shape);
  llvm::DenseMap<mlir::Value, Lanes> values;
  for (auto [input, argument] : llvm::zip(op.getInputs(), block.getArguments())) {
    if (input.getType().isF32()) {
      values[argument] = {{at(w, input).number}, {}};
      continue;
    }
    absl::StatusOr<RegistersRef> registers = settled(w, op, input);
    if (!registers.ok())
      return registers.status();
    values[argument] = inputOf(**registers, input.getType(), shape, domain);
  }
  if (op.getCoordinates())
    addCoordinates(block, domain, shape, values);
  auto view = [&](mlir::Value value) -> LanesView {
    if (auto found = values.find(value); found != values.end())
      return found->second.view();
    const Value &outer = at(w, value);
    return value.getType().isF32() ? LanesView{{&outer.number, 1}, {}} : LanesView{{}, {&outer.integer, 1}};
  };
  for (Operation &inner : block.without_terminator()) {
    llvm::SmallVector<LanesView, 4> operands;
    for (mlir::Value operand : inner.getOperands())
      operands.push_back(view(operand));
    Lanes result;
    if (absl::Status status = evaluate(&inner, {operands.data(), operands.size()}, result); !status.ok())
      return status;
    values[inner.getResult(0)] = std::move(result);
  }
  for (auto [yielded, result] : llvm::zip(block.getTerminator()->getOperands(), op.getResults())) {
    LanesView lanes = view(yielded);
    auto registers = std::make_shared<Registers>();
    registers->numbers.assign(lanes.numbers.begin(), lanes.numbers.end());
    registers->integers.assign(lanes.integers.begin(), lanes.integers.end());
    if (lanes.numbers.size() == 1)
      registers->numbers.assign(domain.size(), lanes.numbers[0]);
    if (lanes.integers.size() == 1)
      registers->integers.assign(domain.size(), lanes.integers[0]);
    give(w, result, std::move(registers));
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Other ops of fragments
//===----------------------------------------------------------------------===//

absl::Status Cta::reduce(Warpgroup &w, ReduceOp op) {
  absl::StatusOr<RegistersRef> frag = settled(w, op, op.getFrag());
  if (!frag.ok())
    return frag.status();
  auto rows = static_cast<size_t>(op.getFrag().getType().getRows());
  auto columns = static_cast<size_t>(op.getFrag().getType().getColumns());
  auto result = std::make_shared<Registers>();
  bool maximum = op.getFold() == Fold::Max;
  result->numbers.resize(rows * static_cast<size_t>(kQuad));
  foldColumns(maximum, result->numbers, (*frag)->numbers, rows, columns);
  if (!op.getPartial())
    foldParts(maximum, result->numbers);
  give(w, op.getResult(), std::move(result));
  return absl::OkStatus();
}

absl::Status Cta::quad(Warpgroup &w, QuadOp op) {
  absl::StatusOr<RegistersRef> rows = settled(w, op, op.getRows());
  if (!rows.ok())
    return rows.status();
  auto result = std::make_shared<Registers>();
  result->numbers = (*rows)->numbers;
  foldParts(op.getFold() == Fold::Max, result->numbers);
  give(w, op.getResult(), std::move(result));
  return absl::OkStatus();
}

absl::Status Cta::performFragment(Warpgroup &w, Operation *op) {
  if (auto sums = dyn_cast<ReduceOp>(op))
    return reduce(w, sums);
  if (auto join = dyn_cast<QuadOp>(op))
    return quad(w, join);
  auto result = std::make_shared<Registers>();
  if (auto cast = dyn_cast<CastOp>(op)) {
    absl::StatusOr<RegistersRef> frag = settled(w, op, cast.getFrag());
    if (!frag.ok())
      return frag.status();
    result->numbers = (*frag)->numbers;
    for (float &number : result->numbers)
      number = roundToBf16(number);
  } else if (auto part = dyn_cast<ColumnsOp>(op)) {
    absl::StatusOr<RegistersRef> frag = settled(w, op, part.getFrag());
    if (!frag.ok())
      return frag.status();
    int64_t all = part.getFrag().getType().getColumns(), count = part.getType().getColumns();
    for (int64_t row = 0; row < FragType::kFragRows; ++row) {
      auto from = (*frag)->numbers.begin() + row * all + static_cast<int64_t>(part.getFirst());
      result->numbers.insert(result->numbers.end(), from, from + count);
    }
  } else {
    Type type = op->getResult(0).getType();
    auto splat = dyn_cast<SplatOp>(op);
    size_t size = Domain(type).size();
    if (elementOf(type).isInteger(32))
      result->integers.assign(size, splat ? integer(w, splat.getValue()) : 0);
    else
      result->numbers.assign(size, splat ? at(w, splat.getValue()).number : 0);
  }
  give(w, op->getResult(0), std::move(result));
  return absl::OkStatus();
}

} // namespace weft::tile

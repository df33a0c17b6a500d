//===- Pattern.cpp - One kernel of fixed patterns, read for the GPU -------===//
#include "passes/Codegen/Gpu/AttendProblem.h"
#include "passes/Codegen/Gpu/PatternKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace weft {
namespace {

class Reader : OperandNumbers {
public:
  explicit Reader(KernelOp kernel) : OperandNumbers(kernel) {}
  std::optional<PatternProblem> read(std::string &why);

private:
  MixProductOp onlyOp();
  std::string problemOf();
  RankedTensorType typeOf(int operand) { return p.types[static_cast<size_t>(operand)]; }

  PatternProblem p;
};

MixProductOp Reader::onlyOp() {
  MixProductOp found;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isa<ConvertOp>(op))
      continue;
    if (found || !isa<MixProductOp>(op))
      return {};
    found = cast<MixProductOp>(op);
  }
  return found;
}

std::string Reader::problemOf() {
  for (int operand : {p.x, p.table, p.scale, p.windows, p.starts, p.y})
    if (operand < 0)
      return "an operand that is no argument of the kernel, or a result that it does not yield";
  for (int operand : {p.x, p.table})
    if (!typeOf(operand).getElementType().isBF16())
      return "operand " + std::to_string(operand) + " is stored in f32; tiles read bf16";
  // Places, heads and items are counted in 32 bits.
  constexpr int64_t kMost = int64_t(1) << 30;
  if (p.batch * std::max(p.heads, p.results) * p.positions >= kMost)
    return "more than 2^30 rows of heads";
  return "";
}

std::optional<PatternProblem> Reader::read(std::string &why) {
  MixProductOp op = onlyOp();
  if (!op) {
    why = "a body of more than one product of patterns";
    return std::nullopt;
  }
  p.name = kernel.getSymName().str();
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes()))
    p.types.push_back(cast<RankedTensorType>(type));
  auto shape = cast<RankedTensorType>(op.getX().getType()).getShape();
  p.back = op.getBack();
  p.batch = shape[0], p.positions = shape[1], p.heads = shape[2], p.channel = shape[3];
  p.results = headCount(cast<RankedTensorType>(op.getY().getType()));
  p.places = cast<RankedTensorType>(op.getScale().getType()).getDimSize(1);
  constexpr int64_t kCells = MixTableOp::kCore * MixTableOp::kCore;
  p.tables = cast<RankedTensorType>(op.getWindows().getType()).getDimSize(0) / p.heads;
  p.blocks = cast<RankedTensorType>(op.getTable().getType()).getDimSize(1) / kCells / p.tables;
  p.x = argument(op.getX()), p.table = argument(op.getTable()), p.scale = argument(op.getScale());
  p.windows = argument(op.getWindows()), p.starts = argument(op.getDocStart());
  p.lse = argument(op.getLse()), p.kvOf = argument(op.getKvOf());
  p.y = result(op.getY()), p.rowLse = result(op.getRowLse());
  why = problemOf();
  FailureOr<AttendOptions> form = formOf(kernel);
  if (failed(form))
    return std::nullopt;
  p.parts = form->own > 0 ? form->own * PatternKernel::kGroups : PatternKernel::partsFor(p);
  return why.empty() ? std::optional(std::move(p)) : std::nullopt;
}

} // namespace

bool hasPatternTiles(StringRef chip, int64_t channel) {
  return chip == "sm_90a" && (channel == 64 || channel == 128);
}

std::optional<PatternProblem> readPattern(KernelOp kernel, const GpuTarget &target, std::string &why) {
  auto problem = Reader(kernel).read(why);
  if (problem && !hasPatternTiles(target.chip, problem->channel)) {
    why = "target " + target.chip + ", head size " + std::to_string(problem->channel) +
          "; there are tiles for sm_90a, 64 and 128";
    return std::nullopt;
  }
  return problem;
}

std::optional<int64_t> patternItems(KernelOp kernel, const GpuTarget &target) {
  std::string why;
  auto problem = readPattern(kernel, target, why);
  return problem ? std::optional(PatternKernel::itemCount(*problem)) : std::nullopt;
}

FailureOr<AttendTile> buildPatternTile(KernelOp kernel, const GpuTarget &target) {
  std::string why;
  auto problem = readPattern(kernel, target, why);
  if (!problem)
    return kernel.emitOpError("has no kernel on tiles: ") << why;
  kernel.getContext()
      ->loadDialect<tile::TileDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
  AttendTile tile = PatternKernel(kernel.getLoc(), *problem).build();
  if (failed(mlir::verify(*tile.module)))
    return failure();
  return tile;
}

} // namespace weft

//===- FoldedProduct.cpp - Products and what follows them, for the GPU ----===//
#include "passes/Codegen/Gpu/FoldedProduct.h"

#include "passes/Codegen/Gemms.h"
#include "passes/Codegen/Gpu/FoldedKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace weft {

FoldedSize foldedSize(const FoldedProblem &problem) {
  auto tiles = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile; };
  const rt::Gemm &gemm = problem.gemm;
  return {tiles(gemm.m, FoldedKernel::kTileRows) * tiles(gemm.n, FoldedKernel::kTileColumns),
          tiles(gemm.k, FoldedKernel::kStep), !gemm.transB && problem.arguments == 2};
}

/// What tensor copies and tiles ask of a product; empty, or what is wrong with it.
static std::string problemOf(const rt::Gemm &gemm, const BareKernel &bare) {
  constexpr size_t kMostOperands = 4;                         // factors and two: more spill
  constexpr int64_t kAlignment = 8, kMost = int64_t(1) << 30; // elements of 16 bytes; places in 32 bits
  if (gemm.batch != 1 || gemm.transA || gemm.accumulate)
    return "a product of several, of a transposed left factor or with init";
  if (!llvm::all_of(bare.storage, [](Type type) { return type.isBF16(); }))
    return "an operand that is not stored in bf16";
  if (bare.storage.size() > kMostOperands)
    return "more inputs and results than registers hold";
  if (gemm.lda % kAlignment != 0 || gemm.ldb % kAlignment != 0 || gemm.ldc != gemm.n)
    return "rows that start between 16 bytes";
  if (gemm.n % FoldedKernel::kSlice != 0)
    return "columns that are no multiple of " + std::to_string(FoldedKernel::kSlice);
  if (gemm.m >= kMost || gemm.n >= kMost || gemm.k >= kMost)
    return "more than 2^30 rows";
  return "";
}

/// The body behind the product as a kernel of its own, which has the product as its last argument.
static KernelOp followingOf(OpBuilder &builder, KernelOp kernel, ContractOp contract) {
  auto copy = cast<KernelOp>(builder.clone(*kernel));
  mlir::Block &block = copy.getBody().front();
  Value argument = block.addArgument(contract.getType(), contract.getLoc());
  block.front().getResult(0).replaceAllUsesWith(argument);
  block.front().erase();
  copy.setFunctionType(FunctionType::get(copy.getContext(), block.getArgumentTypes(),
                                         block.getTerminator()->getOperandTypes()));
  return copy;
}

/// Whether `program` is elementwise on tensors of `axes`: numbers come only from constants.
static bool isElementwise(const RowProgram &program, const Axes &axes) {
  llvm::DenseSet<int> read;
  for (const RowNode &node : program.nodes)
    read.insert(node.inputs.begin(), node.inputs.end());
  for (auto [number, node] : llvm::enumerate(program.nodes)) {
    bool operand = node.kind == RowNode::Kind::Operand;
    if (operand && !read.contains(static_cast<int>(number)))
      continue;
    bool fits = operand ? node.component < 0 && node.operand > 1 && allAxes(node.type) == axes &&
                              node.type.getElementType().isF32()
                        : node.kind == RowNode::Kind::Map;
    if (!fits || (!node.results.empty() && allAxes(node.type) != axes))
      return false;
  }
  return true;
}

std::optional<FoldedProblem> readFolded(const BareKernel &bare, const GpuTarget &target, std::string &why) {
  KernelOp kernel = bare.kernel;
  mlir::Block &block = kernel.getBody().front();
  auto contract = dyn_cast<ContractOp>(block.front());
  if (!contract || llvm::hasNItems(block, 2)) {
    why = "a body that is no product with something behind it";
    return std::nullopt;
  }
  auto gemm = gemmOf(contract);
  why = target.chip != "sm_90a" ? "target " + target.chip + "; there are tiles for sm_90a"
        : !gemm                 ? "a product of an odd order of axes"
                                : problemOf(*gemm, bare);
  if (!why.empty())
    return std::nullopt;
  FoldedProblem problem;
  problem.name = kernel.getSymName().str();
  problem.gemm = *gemm;
  problem.storage.assign(bare.storage.begin(), bare.storage.end());
  problem.arguments = bare.argumentCount;
  problem.product = static_cast<int>(bare.argumentCount);
  OwningOpRef<ModuleOp> own = ModuleOp::create(kernel.getLoc());
  OpBuilder builder(own->getBodyRegion());
  auto following = followingOf(builder, kernel, contract);
  auto isFunction = [](Operation &op) { return isa<ConstantOp, UnaryOp, UnaryGradOp, BinaryOp>(op); };
  bool functions = llvm::all_of(following.getBody().front().without_terminator(), isFunction);
  auto program = functions ? buildRowProgram(following) : FailureOr<RowProgram>(failure());
  if (failed(program) || !isElementwise(*program, allAxes(contract.getType()))) {
    why = "more than functions of elements behind the product";
    return std::nullopt;
  }
  problem.program = std::move(*program);
  return problem;
}

FailureOr<AttendTile> buildFoldedTile(KernelOp kernel, const GpuTarget &target) {
  auto bare = makeBare(kernel, target);
  if (failed(bare))
    return failure();
  std::string why;
  auto problem = readFolded(*bare, target, why);
  if (!problem)
    return kernel.emitOpError("has no kernel on tiles: ") << why;
  kernel.getContext()
      ->loadDialect<tile::TileDialect, arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect,
                    scf::SCFDialect>();
  AttendTile tile = FoldedKernel(kernel.getLoc(), *problem).build();
  if (failed(mlir::verify(*tile.module)))
    return failure();
  return tile;
}

FailureOr<rt::Kernel> compileFolded(KernelOp kernel, const GpuTarget &target) {
  return compileTiles(kernel, target, [&](KernelOp copy) { return buildFoldedTile(copy, target); });
}

} // namespace weft

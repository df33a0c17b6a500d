//===- Kernel.cpp - The whole way of a kernel to the GPU ------------------===//
#include "passes/Codegen/Codegen.h"
#include "passes/Codegen/Gemms.h"
#include "passes/Codegen/Gpu/Attend.h"
#include "passes/Codegen/Gpu/FoldedProduct.h"
#include "passes/Codegen/Gpu/Gpu.h"
#include "passes/Codegen/Gpu/Kinds.h"
#include "passes/Codegen/Gpu/Pattern.h"
#include "passes/Codegen/RowProgram.h"
#include "passes/Tile/Lower.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {

static void loadDialects(MLIRContext &context) {
  context.loadDialect<WeftDialect, arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect,
                      NVVM::NVVMDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
}

/// The kernel alone in a module of `context`.
static OwningOpRef<ModuleOp> copyInto(MLIRContext &context, KernelOp kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  return parseSourceString<ModuleOp>(text, &context);
}

static MaybeKind singleKind(const BareKernel &bare, std::string &why) {
  KernelOp kernel = bare.kernel;
  mlir::Block &block = kernel.getBody().front();
  return TypeSwitch<Operation *, MaybeKind>(&block.front())
      .Case<GatherOp>([&](auto op) { return gatherKind(bare, op); })
      .Case<GatherGradOp>([&](auto op) { return gatherGradKind(bare, op); })
      .Case<PositionOp>([&](auto op) { return positionKind(bare, op); })
      .Case<CacheUpdateOp>([&](auto op) { return cacheUpdateKind(bare, op); })
      .Case<TakeOp>([&](auto op) { return takeKind(bare, op); })
      .Case<PutOp>([&](auto op) { return putKind(bare, op); })
      .Case<MixTableOp>([&](auto op) { return mixTableKind(bare, op); })
      .Case<MixScaleOp>([&](auto op) { return mixScaleKind(bare, op); })
      .Case<MixGradPatternOp>([&](auto op) { return mixGradPatternKind(bare, op); })
      .Case<PatternStatisticsOp>([&](auto op) { return patternStatisticsKind(bare, op); })
      .Case<SumToOp>([&](auto op) { return sumToKind(bare, op); })
      .Case<NormOp>([&](auto op) { return normKind(bare, op); })
      .Case<HeadStatisticsOp>([&](auto op) { return headStatisticsKind(bare, op, why); })
      .Case<CrossEntropyOp>([&](auto op) { return crossEntropyKind(bare, op); })
      .Case<CrossEntropyGradOp>([&](auto op) { return crossEntropyGradKind(bare, op); })
      .Case<ContractOp>([&](auto op) { return productKind(bare, op); })
      .Default([&](Operation *op) -> MaybeKind {
        if (!isa<DocumentOp, IntegersOp>(op))
          why = ("no fast form of " + op->getName().stripDialect()).str();
        return std::nullopt;
      });
}

/// Does the body fuse ops, or is it one that fused bodies consist of?
static bool isRowBody(KernelOp kernel) {
  mlir::Block &block = kernel.getBody().front();
  return !llvm::hasNItems(block, 2) || isRowOp(&block.front()) || !kernel.getRows().empty();
}

BlockKind blockKindOf(const BareKernel &bare) {
  std::string why;
  MaybeKind kind;
  if (isRowBody(bare.kernel)) {
    kind = flatKind(bare, why);
    if (!kind)
      kind = rowsKind(bare, why);
    if (!kind)
      kind = longRowsKind(bare);
  } else {
    kind = singleKind(bare, why);
  }
  if (kind)
    return *kind;
  BlockKind slow = slowKind(bare);
  slow.slow = why;
  return slow;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static rt::ElementType elementOf(Type type) {
  return type.isBF16() ? rt::ElementType::BF16 : rt::ElementType::F32;
}

/// A body of a contract and one op more that cuBLASLt does at once:
///   d = A B, yield d gelu_tanh'(x), x the last argument
static bool hasGeluGrad(ContractOp product, YieldOp yield) {
  Value d = product.getResult();
  auto grad = dyn_cast<UnaryGradOp>(product->getNextNode());
  if (!grad || grad.getFn() != UnaryFn::GeluTanh || grad.getDy() != d || !d.hasOneUse())
    return false;
  auto x = dyn_cast<BlockArgument>(grad.getX());
  bool one = yield->getNumOperands() == 1 && yield.getValues()[0] == grad.getDx();
  return one && x && x.getArgNumber() == 2;
}

/// A product with an epilogue: all that cuBLASLt reads and writes is bf16, and
/// rows of the auxiliary start at multiples of 16 bytes.
static std::optional<rt::Gemm> foldedGemmOf(const BareKernel &bare) {
  KernelOp kernel = bare.kernel;
  mlir::Block &block = kernel.getBody().front();
  auto product = dyn_cast<ContractOp>(block.front());
  if (!product || product.getInit() || !llvm::hasNItems(block, 3))
    return std::nullopt;
  auto gemm = hasGeluGrad(product, cast<YieldOp>(block.getTerminator())) ? gemmOf(product) : std::nullopt;
  bool narrow = llvm::all_of(bare.storage, [](Type type) { return type.isBF16(); });
  if (!gemm || !narrow || gemm->ldc % 8 != 0 || gemm->strideC % 8 != 0)
    return std::nullopt;
  gemm->typeA = gemm->typeB = gemm->typeC = rt::ElementType::BF16;
  gemm->epilogue = rt::Gemm::Epilogue::GeluGrad;
  return gemm;
}

/// On a copy: the bare kernel replaces the one that it was made of.
static std::optional<rt::Gemm> gemmOfBare(const BareKernel &bare) {
  auto gemm = gemmOf(bare.kernel);
  if (!gemm)
    return foldedGemmOf(bare);
  gemm->typeA = elementOf(bare.storage[0]);
  gemm->typeB = elementOf(bare.storage[1]);
  gemm->typeC = elementOf(bare.storage.back());
  gemm->separate = gemm->accumulate;
  bool good = gemm->typeA == gemm->typeB;
  if (gemm->accumulate)
    good &= bare.storage[2] == bare.storage.back();
  return good ? gemm : std::nullopt;
}

namespace {

/// A kernel copied where it may be changed.
struct Copy {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  std::string problem;
  FailureOr<BareKernel> bare = failure();

  Copy(KernelOp kernel, const GpuTarget &target) {
    loadDialects(context);
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      problem += (problem.empty() ? "" : "; ") + diagnostic.str();
      return success();
    });
    module = copyInto(context, kernel);
    if (module)
      bare = makeBare(*module->getOps<KernelOp>().begin(), target);
  }
};

} // namespace

std::optional<rt::Gemm> gpuGemmOf(KernelOp kernel) {
  Copy copy(kernel, {});
  return succeeded(copy.bare) ? gemmOfBare(*copy.bare) : std::nullopt;
}

static bool isAttention(KernelOp kernel) {
  auto isOne = [](Operation &op) { return isa<AttendOp, AttendGradQueryOp, AttendGradKeyValueOp>(op); };
  return llvm::any_of(kernel.getBody().front(), isOne);
}

static bool isPatternProduct(KernelOp kernel) {
  return llvm::any_of(kernel.getBody().front(), [](Operation &op) { return isa<MixProductOp>(op); });
}

std::optional<FoldedSize> gpuFoldedSize(KernelOp kernel, const GpuTarget &target) {
  Copy copy(kernel, target);
  std::string why;
  auto problem = succeeded(copy.bare) ? readFolded(*copy.bare, target, why) : std::nullopt;
  return problem ? std::optional(foldedSize(*problem)) : std::nullopt;
}

int64_t gpuGridOf(KernelOp kernel, const GpuTarget &target) {
  if (kernel->hasAttr(kOnTilesAttr))
    if (auto size = gpuFoldedSize(kernel, target))
      return size->items;
  if (isAttention(kernel))
    if (auto items = attendItems(kernel, target))
      return *items;
  if (isPatternProduct(kernel))
    return patternItems(kernel, target).value_or(1);
  Copy copy(kernel, target);
  if (failed(copy.bare) || gemmOfBare(*copy.bare))
    return 1;
  return blockKindOf(*copy.bare).items;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// func.func @NAME(one pointer an operand, scratch), its entry block open.
static func::FuncOp makeFunction(OpBuilder &b, KernelOp kernel, size_t operands) {
  SmallVector<Type> types(operands + 1, LLVM::LLVMPointerType::get(b.getContext()));
  auto function = func::FuncOp::create(b, kernel.getLoc(), kernel.getSymName(), b.getFunctionType(types, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
  func::ReturnOp::create(b, kernel.getLoc());
  b.setInsertionPointToStart(&function.front());
  return function;
}

static FailureOr<GpuCode> build(const BareKernel &bare) {
  KernelOp kernel = bare.kernel;
  BlockKind kind = blockKindOf(bare);
  GpuCode code;
  code.module = ModuleOp::create(kernel.getLoc());
  OpBuilder b(code.module->getBodyRegion());
  func::FuncOp function = makeFunction(b, kernel, bare.storage.size());
  Block block(b, kernel.getLoc(), kind, *code.module);
  Emitter &e = block.e;
  block.argumentCount = static_cast<int64_t>(kernel.getArgumentTypes().size());
  for (auto [number, element] : llvm::enumerate(bare.storage)) {
    Value operand = function.getArgument(static_cast<unsigned>(number));
    if (element.isBF16())
      e.halves.insert(operand);
    block.operands.push_back(operand);
  }
  auto bytes = arith::ConstantOp::create(e.b, e.loc, e.b.getI64IntegerAttr(0));
  block.scratch = LLVM::GEPOp::create(e.b, e.loc, e.ptr, e.b.getI8Type(), function.getArguments().back(),
                                      ArrayRef<LLVM::GEPArg>{e.muli(block.block, bytes.getResult())});
  if (failed(kind.build(block)))
    return failure();
  bytes.setValueAttr(e.b.getI64IntegerAttr(block.scratchBytes));
  code.items = kind.items;
  code.threads = block.threads;
  code.scratchBytes = block.scratchBytes;
  code.sharedBytes = block.dynamicBytes;
  code.slow = kind.slow;
  return code;
}

FailureOr<GpuCode> buildGpuKernel(KernelOp kernel, const GpuTarget &target) {
  loadDialects(*kernel.getContext());
  OwningOpRef<ModuleOp> own = ModuleOp::create(kernel.getLoc());
  OpBuilder b(own->getBodyRegion());
  auto bare = makeBare(cast<KernelOp>(b.clone(*kernel)), target);
  if (failed(bare))
    return failure();
  return build(*bare);
}

LogicalResult lowerGpuKernel(GpuCode &code) {
  ModuleOp module = *code.module;
  if (failed(lowerToLLVM(module)))
    return failure();
  auto function = *module.getOps<LLVM::LLVMFuncOp>().begin();
  OpBuilder b(module.getContext());
  function->setAttr("nvvm.kernel", b.getUnitAttr());
  function->setAttr("nvvm.reqntid", b.getDenseI32ArrayAttr({static_cast<int32_t>(code.threads)}));
  if (code.scratchBytes != 0)
    return success();
  BlockArgument scratch = function.getArguments().back();
  b.setInsertionPointToStart(&function.front());
  scratch.replaceAllUsesWith(LLVM::ZeroOp::create(b, function.getLoc(), scratch.getType()));
  // Not eraseArgument: it knows no function type without results.
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                          function.getFunctionType().getParams().drop_back());
  function.setFunctionType(type);
  function.front().eraseArgument(scratch.getArgNumber());
  return success();
}

FailureOr<rt::Kernel> compileGpuKernel(KernelOp kernel, const GpuTarget &target) {
  std::string noTile = isAttention(kernel) ? whyNoAttendTile(kernel, target) : "";
  if (isAttention(kernel) && noTile.empty())
    return compileAttend(kernel, target);
  if (isPatternProduct(kernel))
    return compilePattern(kernel, target);
  if (kernel->hasAttr(kOnTilesAttr))
    return compileFolded(kernel, target);
  rt::Kernel result;
  result.name = kernel.getSymName().str();
  result.hash = structuralHash(kernel);
  Copy copy(kernel, target);
  auto fail = [&](StringRef stage) -> LogicalResult {
    return kernel.emitOpError("can't be compiled for ")
           << target.chip << " (" << stage << "): " << copy.problem;
  };
  if (failed(copy.bare))
    return fail("operands");
  if (auto gemm = gemmOfBare(*copy.bare)) {
    result.kind = rt::Kernel::Kind::Gemm;
    result.gemm = *gemm;
    return result;
  }
  ScopedDiagnosticHandler handler(&copy.context, [&](Diagnostic &diagnostic) {
    copy.problem += (copy.problem.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  auto code = build(*copy.bare);
  if (failed(code))
    return fail("loops");
  if (!code->slow.empty())
    kernel.emitRemark("slow-path: ") << kernel.getSymName() << " runs one thread a work item: " << code->slow;
  if (failed(lowerGpuKernel(*code)))
    return fail("llvm dialect");
  auto text = translateToPtx(*code->module, target);
  if (failed(text))
    return fail("PTX");
  result.symbol = result.name;
  result.object = std::move(*text);
  result.form = rt::Kernel::Form::Ptx;
  result.scratchBytes = static_cast<uint64_t>(code->scratchBytes);
  result.launch.threads = static_cast<uint32_t>(code->threads);
  result.launch.sharedBytes = static_cast<uint32_t>(code->sharedBytes);
  return result;
}

} // namespace weft

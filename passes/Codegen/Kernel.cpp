//===- Kernel.cpp - The whole way of a kernel -----------------------------===//
#include "passes/Codegen/Builders.h"
#include "passes/Codegen/Codegen.h"
#include "passes/Codegen/Machine.h"
#include "passes/Codegen/RowProgram.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {

static void loadDialects(MLIRContext &context) {
  context.loadDialect<WeftDialect, arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect,
                      math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
}

Value KernelBody::take(int64_t count) {
  constexpr int64_t kAlignment = 64;
  Value start = e.bytesFrom(scratch, scratchBytes);
  int64_t bytes = count * static_cast<int64_t>(sizeof(float));
  scratchBytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return start;
}

/// The only op of a kernel that is not a fused body.
static Operation *singleOp(KernelOp kernel) {
  Block &block = kernel.getBody().front();
  if (!llvm::hasNItems(block, 2))
    return nullptr;
  return &block.front();
}

KernelKind kindOf(KernelOp kernel) {
  Operation *single = singleOp(kernel);
  if (!single || isRowOp(single) || (isa<SumToOp>(single) && !kernel.getRows().empty()))
    return {};
  return TypeSwitch<Operation *, KernelKind>(single)
      .Case([](ContractOp op) { return contractKind(op); })
      .Case([](GatherOp op) { return gatherKind(op); })
      .Case([](GatherGradOp op) { return gatherGradKind(op); })
      .Case([](PositionOp op) { return positionKind(op); })
      .Case([](DocumentOp op) { return documentKind(op); })
      .Case([](IntegersOp op) { return integersKind(op); })
      .Case([](CacheUpdateOp op) { return cacheUpdateKind(op); })
      .Case([](SumToOp op) { return sumToKind(op); })
      .Case([](NormOp op) { return normKind(op); })
      .Case([](CrossEntropyOp op) { return crossEntropyKind(op); })
      .Case([](CrossEntropyGradOp op) { return crossEntropyGradKind(op); })
      .Case([](AttendOp op) { return attendKind(op); })
      .Case([](AttendGradQueryOp op) { return attendGradQueryKind(op); })
      .Case([](AttendGradKeyValueOp op) { return attendGradKeyValueKind(op); })
      .Case([](HeadStatisticsOp op) { return headStatisticsKind(op); })
      .Case([](PatternStatisticsOp op) { return patternStatisticsKind(op); })
      .Case([](TakeOp op) { return takeKind(op); })
      .Case([](PutOp op) { return putKind(op); })
      .Case([](MixOp op) { return mixKind(op); })
      .Case([](MixGradValueOp op) { return mixGradValueKind(op); })
      .Case([](MixGradPatternOp op) { return mixGradPatternKind(op); })
      .Case([](MixDenseOp op) { return mixDenseKind(op); })
      .Case([](MixDenseGradValueOp op) { return mixDenseGradValueKind(op); })
      .Default([](Operation *) { return KernelKind{}; });
}

int64_t gridOf(KernelOp kernel) {
  KernelKind kind = kindOf(kernel);
  return kind.grid ? kind.grid() : std::max<int64_t>(kernel.getChunks(), 1);
}

/// func.func @NAME(operands, begin, end, table, scratch), its entry block open.
static func::FuncOp makeFunction(OpBuilder &b, KernelOp kernel) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type integer = b.getI64Type();
  auto type = b.getFunctionType({pointer, integer, integer, pointer, pointer}, {});
  auto function = func::FuncOp::create(b, kernel.getLoc(), kernel.getSymName(), type);
  b.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

static LogicalResult fill(KernelOp kernel, KernelBody &body) {
  if (KernelKind kind = kindOf(kernel); kind.build)
    return kind.build(body);
  auto program = buildRowProgram(kernel);
  if (failed(program))
    return failure();
  body.scratchBytes = program->scratchBytes;
  emitRowProgram(body.e, *program, kernel, body.operands, body.begin, body.end, body.scratch);
  return success();
}

static LogicalResult checkTypes(KernelOp kernel) {
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        !(tensor.getElementType().isF32() || tensor.getElementType().isInteger(32)))
      return kernel.emitOpError("has an operand of type ")
             << type << ": expected a static tensor of f32 or i32";
  }
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> buildKernel(KernelOp kernel, const CpuTarget &target) {
  constexpr int kFloatBits = 32;
  if (failed(checkTypes(kernel)))
    return failure();
  loadDialects(*kernel.getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  OpBuilder b(module->getBodyRegion());
  func::FuncOp function = makeFunction(b, kernel);
  Block &entry = function.front();
  func::ReturnOp::create(b, kernel.getLoc());
  b.setInsertionPointToStart(&entry);

  Emitter e(b, kernel.getLoc(), target.vectorBits / kFloatBits);
  KernelBody body{
      e, {}, entry.getArgument(1), entry.getArgument(2), entry.getArgument(3), entry.getArgument(4)};
  body.argumentCount = static_cast<int64_t>(kernel.getArgumentTypes().size());
  int64_t count = body.argumentCount + static_cast<int64_t>(kernel.getResultTypes().size());
  for (int64_t i = 0; i < count; ++i) {
    Value slot = LLVM::GEPOp::create(e.b, e.loc, e.ptr, e.ptr, entry.getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    body.operands.push_back(LLVM::LoadOp::create(e.b, e.loc, e.ptr, slot));
  }
  if (failed(fill(kernel, body)))
    return failure();
  (*module)->setAttr("weft.scratch", b.getI64IntegerAttr(body.scratchBytes));
  return module;
}

/// The kernel alone in a module of `context`.
static OwningOpRef<ModuleOp> copyInto(MLIRContext &context, KernelOp kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  return parseSourceString<ModuleOp>(text, &context);
}

FailureOr<rt::Kernel> compileKernel(KernelOp kernel, const CpuTarget &target) {
  rt::Kernel result;
  result.name = kernel.getSymName().str();
  result.hash = structuralHash(kernel);
  if (auto gemm = gemmOf(kernel)) {
    result.kind = rt::Kernel::Kind::Gemm;
    result.gemm = *gemm;
    return result;
  }
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  // What goes wrong inside is told where the caller looks for it.
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    problem += (problem.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  auto fail = [&](StringRef stage) -> LogicalResult {
    return kernel.emitOpError("can't be compiled (") << stage << "): " << problem;
  };
  OwningOpRef<ModuleOp> copy = copyInto(context, kernel);
  if (!copy)
    return fail("copy");
  auto module = buildKernel(*copy->getOps<KernelOp>().begin(), target);
  if (failed(module))
    return fail("loops");
  result.scratchBytes =
      static_cast<uint64_t>((**module)->getAttrOfType<IntegerAttr>("weft.scratch").getInt());
  if (failed(lowerToLLVM(**module)))
    return fail("llvm dialect");
  auto object = toObject(**module, target);
  if (failed(object))
    return fail("machine code");
  result.symbol = result.name;
  result.object = std::move(*object);
  return result;
}

} // namespace weft

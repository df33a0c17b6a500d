//===- Machine.cpp - LLVM dialect, LLVM IR, objects -----------------------===//
#include "passes/Codegen/Machine.h"

#include "passes/Codegen/Codegen.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace mlir;

namespace weft {

CpuTarget hostTarget() {
  CpuTarget target;
  target.triple = llvm::sys::getDefaultTargetTriple();
  target.cpu = llvm::sys::getHostCPUName().str();
  llvm::SmallVector<std::string> features;
  auto host = llvm::sys::getHostCPUFeatures();
  for (const auto &feature : host)
    features.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(features);
  target.features = llvm::join(features, ",");
  target.vectorBits = host.lookup("avx512f") ? 512 : host.lookup("avx2") && host.lookup("fma") ? 256 : 128;
  return target;
}

namespace {

/// Logarithms, tanh and erf as polynomials.
struct MathPass : PassWrapper<MathPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MathPass)
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, vector::VectorDialect>();
  }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name == "math.log" || name == "math.tanh" || name == "math.erf";
    });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

LogicalResult lowerToLLVM(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(std::make_unique<MathPass>());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

static std::unique_ptr<llvm::TargetMachine> machineFor(const CpuTarget &target, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  llvm::Triple triple(target.triple);
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return nullptr;
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                 llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  // Kernels are vectors already.
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

/// Optimised LLVM IR of a module in the llvm dialect.
static std::unique_ptr<llvm::Module> translate(ModuleOp module, llvm::LLVMContext &context,
                                               llvm::TargetMachine &machine, const CpuTarget &target) {
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  auto result = translateModuleToLLVMIR(module, context);
  if (!result)
    return nullptr;
  result->setTargetTriple(machine.getTargetTriple());
  result->setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
    function.addFnAttr("min-legal-vector-width", std::to_string(target.vectorBits));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  optimise(*result, machine);
  return result;
}

static FailureOr<std::string> emitFile(ModuleOp module, const CpuTarget &target,
                                       std::optional<llvm::CodeGenFileType> type) {
  std::string error;
  auto machine = machineFor(target, error);
  if (!machine)
    return module.emitError("no machine code for ") << target.triple << ": " << error;
  llvm::LLVMContext context;
  auto code = translate(module, context, *machine, target);
  if (!code)
    return failure();
  llvm::SmallVector<char> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (!type) {
    code->print(stream, nullptr);
  } else {
    llvm::legacy::PassManager passes;
    if (machine->addPassesToEmitFile(passes, stream, nullptr, *type))
      return module.emitError("LLVM can't write this kind of file for ") << target.triple;
    passes.run(*code);
  }
  return std::string(bytes.data(), bytes.size());
}

FailureOr<std::string> toLLVMText(ModuleOp module, const CpuTarget &target) {
  return emitFile(module, target, std::nullopt);
}

FailureOr<std::string> toAssembly(ModuleOp module, const CpuTarget &target) {
  return emitFile(module, target, llvm::CodeGenFileType::AssemblyFile);
}

FailureOr<std::string> toObject(ModuleOp module, const CpuTarget &target) {
  auto object = emitFile(module, target, llvm::CodeGenFileType::ObjectFile);
  if (failed(object))
    return failure();
  if (std::string symbols = foreignSymbols(*object); !symbols.empty())
    return module.emitError("the object needs ") << symbols << ": expected no symbol from outside";
  return object;
}

std::string foreignSymbols(llvm::StringRef object) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(object, "kernel"));
  if (!file)
    return "nothing that is an object (" + llvm::toString(file.takeError()) + ")";
  std::string names;
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags.takeError());
      llvm::consumeError(name.takeError());
      return "a symbol that can't be read";
    }
    bool undefined = *flags & llvm::object::SymbolRef::SF_Undefined;
    if (undefined && !name->empty() && *name != "memset" && *name != "memcpy" && *name != "memmove")
      names += (names.empty() ? "" : ", ") + name->str();
  }
  return names;
}

} // namespace weft

//===- Translate.cpp - LLVM dialect to PTX --------------------------------===//
//
// MLIR's inline assembly can't say `convergent`, and LLVM then may sink a
// product or a barrier into a branch that only some threads take. So every
// call of assembly with effects or with .sync is marked after translation.
//
//===----------------------------------------------------------------------===//

#include "passes/Tile/Lower.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

#include <mutex>

using namespace mlir;

namespace weft {

static std::unique_ptr<llvm::TargetMachine> machineFor(const GpuTarget &target, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return nullptr;
  llvm::TargetOptions options;
  // a * b + c is one fma, as in CUDA.
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(triple, target.chip, "+ptx" + std::to_string(target.ptxVersion), options,
                                 std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  // Kernels come with their vectors and unrolled bodies; wider code costs registers.
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
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

static void markConvergent(llvm::Function &function) {
  for (llvm::Instruction &instruction : llvm::instructions(function)) {
    auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    auto *assembly = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
    if (assembly &&
        (assembly->hasSideEffects() || assembly->getAsmString().find(".sync") != std::string::npos))
      call->setConvergent();
  }
}

/// Sets what the target and the optimiser must know. Returns the count of entries.
static int prepare(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  int entries = 0;
  for (llvm::Function &function : module) {
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    markConvergent(function);
    if (function.getCallingConv() == llvm::CallingConv::PTX_Kernel) {
      ++entries;
      continue;
    }
    // A call would serialise products on either side of it.
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  return entries;
}

/// The name of an intrinsic that NVPTX turns into a call of a C library, which no
/// GPU has (LLVM then ends the process), or "".
static std::string libraryCall(llvm::Module &module) {
  using namespace llvm;
  for (Function &function : module)
    switch (function.getIntrinsicID()) {
    case Intrinsic::exp:
    case Intrinsic::exp10:
    case Intrinsic::log:
    case Intrinsic::log2:
    case Intrinsic::log10:
    case Intrinsic::pow:
    case Intrinsic::powi:
    case Intrinsic::tan:
    case Intrinsic::tanh:
    case Intrinsic::sinh:
    case Intrinsic::cosh:
    case Intrinsic::asin:
    case Intrinsic::acos:
    case Intrinsic::atan:
    case Intrinsic::atan2:
      return function.getName().str();
    default:
      break;
    }
  return "";
}

/// The kernel in which ptxas 13.0 would get a number wrong, or "". Of two upper halves of 32-bit products,
/// widened and subtracted in 64 bits, it makes one multiply-and-add of the negated second; where that is 0
/// nothing carries, and the upper half of the difference is -1. LLVM writes so what stands between two
/// divisions by a constant: `part * total / parts`, of this part and the next.
static std::string wrongDifference(StringRef ptx) {
  std::string kernel;
  llvm::StringSet<> upper, wide;
  for (StringRef line : llvm::split(ptx, '\n')) {
    SmallVector<StringRef> words;
    line.trim().split(words, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef &word : words)
      word = word.trim("\t,;");
    if (line.contains(".entry")) {
      kernel = line.trim("({ ").rsplit(' ').second.str();
      upper.clear(), wide.clear();
    }
    auto is = [&](StringRef name, size_t operands) {
      return words.size() == operands + 1 && words[0] == name;
    };
    if (is("mul.hi.u32", 3))
      upper.insert(words[1]);
    else if (is("cvt.u64.u32", 2) && upper.contains(words[2]))
      wide.insert(words[1]);
    else if (is("sub.s64", 3) && wide.contains(words[2]) && wide.contains(words[3]))
      return kernel;
  }
  return "";
}

namespace {

/// Turns LLVM's errors into MLIR's. Without it, selection failures end the process.
struct ErrorsToMlir : llvm::DiagnosticHandler {
  explicit ErrorsToMlir(ModuleOp module) : module(module) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error)
      return true;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    module.emitError("LLVM can't write this kernel as PTX: ") << text;
    failed = true;
    return true;
  }
  ModuleOp module;
  bool failed = false;
};

} // namespace

FailureOr<std::string> translateToPtx(ModuleOp module, const GpuTarget &target) {
  if (target.chip != "sm_90a" && target.chip != "sm_80")
    return module.emitError("no kernels for the chip ") << target.chip << ": expected sm_90a or sm_80";
  std::string error;
  auto machine = machineFor(target, error);
  if (!machine)
    return module.emitError("this LLVM has no NVPTX target: ") << error;
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  registerNVVMDialectTranslation(*module.getContext());
  llvm::LLVMContext context;
  auto handler = std::make_unique<ErrorsToMlir>(module);
  ErrorsToMlir &errors = *handler;
  context.setDiagnosticHandler(std::move(handler));
  // A name of the file it came from would stand in the text.
  auto code = translateModuleToLLVMIR(module, context, "weft");
  if (!code)
    return failure();
  if (prepare(*code, *machine) == 0)
    return module.emitError("no kernel in the module: expected an llvm.func with the attribute nvvm.kernel");
  optimise(*code, *machine);
  if (std::string name = libraryCall(*code); !name.empty())
    return module.emitError("a kernel calls ")
           << name << ", which PTX lacks: write it by ex2, lg2 and arithmetic";
  llvm::SmallVector<char> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return module.emitError("LLVM can't write PTX for ") << target.chip;
  passes.run(*code);
  if (errors.failed)
    return failure();
  std::string ptx(bytes.data(), bytes.size());
  if (std::string name = wrongDifference(ptx); !name.empty())
    return module.emitError("ptxas 13.0 would get a difference of two divisions in '")
           << name << "' wrong (docs/gpu.md): expected parts of one size, whose places need no division";
  return ptx;
}

} // namespace weft

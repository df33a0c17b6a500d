//===- CompileCommand.cpp - weft compile, run, verify ----------------------===//

#include "tools/weft/Command.h"
#include "tools/weft/Device.h"
#include "tools/weft/Freeze.h"
#include "tools/weft/GpuText.h"
#include "tools/weft/Loaded.h"
#include "tools/weft/MemoryPolicies.h"

#include "dialects/Weft/Weft.h"
#include "passes/Verify/Verify.h"
#include "runtime/core/File.h"
#include "runtime/core/Philox.h"
#include "runtime/train/State.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

#include "absl/strings/str_cat.h"

#include <thread>

using namespace weft;
namespace cl = llvm::cl;

namespace {

/// What `--emit` can show, in the order of the way.
enum class Emit { Rolled, Weft, Grad, Fused, Kernels, Schedule, Vector, Llvm, Asm, Tile, Nvvm, Ptx, Exe };

struct ShapeFlags {
  cl::opt<int64_t> batch{"batch", cl::desc("rows of a program (default: the recipe's micro-batch, or 1)"),
                         cl::init(0), cl::cat(flagCategory())};
  cl::opt<int64_t> positions{"positions", cl::desc("positions of a row (default: the recipe's, or 16)"),
                             cl::init(0), cl::cat(flagCategory())};
  cl::list<std::string> programs{
      "program",
      cl::desc(
          "micro, update, eval, prefill, decode (default: micro, update, eval with a recipe, else eval)"),
      cl::CommaSeparated, cl::cat(flagCategory())};

  PipelineOptions options(const Program &program) const {
    PipelineOptions options;
    if (program.recipe) {
      options = shapesOf(*program.recipe);
      options.programs = {"micro", "update", "eval"};
    }
    options.memory = policyOf(program);
    if (batch > 0)
      options.batch = batch;
    if (positions > 0)
      options.positions = positions;
    if (!programs.empty())
      options.programs.assign(programs.begin(), programs.end());
    return options;
  }
};

Stage stageOf(Emit emit) {
  switch (emit) {
  case Emit::Rolled:
    return Stage::Rolled;
  case Emit::Weft:
    return Stage::Unrolled;
  case Emit::Grad:
    return Stage::Programs;
  case Emit::Fused:
    return Stage::Fused;
  case Emit::Kernels:
    return Stage::Kernels;
  default:
    return Stage::Schedule;
  }
}

/// Code of every kernel, one after another.
absl::StatusOr<std::string> kernelText(mlir::ModuleOp module, Emit emit) {
  CpuTarget target = hostTarget();
  std::string text;
  llvm::raw_string_ostream out(text);
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    if (gemmOf(kernel)) {
      out << "// " << kernel.getSymName() << ": a product through BLAS\n";
      continue;
    }
    mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> built = buildKernel(kernel, target);
    bool good = mlir::succeeded(built);
    out << (emit == Emit::Asm ? "# " : emit == Emit::Llvm ? "; " : "// ") << kernel.getSymName() << "\n";
    if (good && emit == Emit::Vector) {
      (*built)->print(out);
      out << "\n";
      continue;
    }
    good = good && mlir::succeeded(lowerToLLVM(**built));
    mlir::FailureOr<std::string> code;
    if (good)
      code = emit == Emit::Llvm ? toLLVMText(**built, target) : toAssembly(**built, target);
    if (!good || mlir::failed(code))
      return absl::InternalError(
          absl::StrCat("kernel ", kernel.getSymName().str(), " can't be lowered (see above)"));
    out << *code << "\n";
  }
  return text;
}

/// Stages that only one kind of target has.
absl::Status checkEmit(Emit emit, const std::string &target) {
  bool gpu = target != "cpu";
  if (gpu && target != "sm_90a" && target != "sm_80")
    return absl::InvalidArgumentError(absl::StrCat("--target ", target, ": expected cpu, sm_90a or sm_80"));
  bool ofCpu = emit == Emit::Vector || emit == Emit::Llvm || emit == Emit::Asm;
  bool ofGpu = emit == Emit::Tile || emit == Emit::Nvvm || emit == Emit::Ptx;
  if ((gpu && ofCpu) || (!gpu && ofGpu))
    return absl::InvalidArgumentError(
        absl::StrCat("--emit: vector, llvm and asm are of --target cpu; tile, nvvm and ptx of sm_90a and "
                     "sm_80; the target is ",
                     target));
  return absl::OkStatus();
}

GpuStage gpuStageOf(Emit emit) {
  return emit == Emit::Tile ? GpuStage::Tile : emit == Emit::Nvvm ? GpuStage::Nvvm : GpuStage::Ptx;
}

absl::Status deliver(const std::string &text, const std::string &path) {
  if (!path.empty())
    return rt::writeFileAtomic(path, text);
  llvm::outs() << text;
  return absl::OkStatus();
}

absl::StatusOr<std::string> emitted(const Program &program, PipelineOptions options, Emit emit,
                                    const TrailOptions &trail) {
  std::shared_ptr<mlir::MLIRContext> context = makeContext();
  options.stage = stageOf(emit);
  absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> module = lower(program, options, trail, *context);
  if (!module.ok())
    return module.status();
  if (emit == Emit::Vector || emit == Emit::Llvm || emit == Emit::Asm)
    return kernelText(**module, emit);
  if (emit == Emit::Tile || emit == Emit::Nvvm || emit == Emit::Ptx)
    return gpuKernelText(**module, gpuStageOf(emit), GpuTarget{options.chip});
  if (emit == Emit::Exe) {
    ExecutableOptions exe{hostTarget(), cacheFolder(), static_cast<int>(std::thread::hardware_concurrency())};
    if (!options.chip.empty())
      exe.gpu = GpuTarget{options.chip};
    context->enableMultithreading();
    mlir::FailureOr<rt::Executable> executable = toExecutable(**module, exe);
    context->disableMultithreading();
    if (mlir::failed(executable))
      return absl::InternalError("a kernel could not be compiled (see above)");
    executable->model = program.model.name;
    return rt::serialize(*executable);
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream);
  return text + "\n";
}

} // namespace

int weft::compileCommand(int argc, const char **argv) {
  ModelFlags flags;
  ShapeFlags shapes;
  cl::opt<Emit> emit("emit", cl::desc("what to show (default: schedule)"), cl::init(Emit::Schedule),
                     cl::cat(flagCategory()),
                     cl::values(clEnumValN(Emit::Rolled, "rolled", "layers rolled, sizes as formulas"),
                                clEnumValN(Emit::Weft, "weft", "one function with static sizes"),
                                clEnumValN(Emit::Grad, "grad", "programs with their gradients"),
                                clEnumValN(Emit::Fused, "fused", "fused regions"),
                                clEnumValN(Emit::Kernels, "kernels", "kernels, shared by structure"),
                                clEnumValN(Emit::Schedule, "schedule", "calls on planned memory"),
                                clEnumValN(Emit::Vector, "vector", "each kernel as vector loops"),
                                clEnumValN(Emit::Llvm, "llvm", "each kernel as LLVM IR"),
                                clEnumValN(Emit::Asm, "asm", "each kernel as assembly"),
                                clEnumValN(Emit::Tile, "tile", "GPU: attention as tiles"),
                                clEnumValN(Emit::Nvvm, "nvvm", "GPU: each kernel in the NVVM dialect"),
                                clEnumValN(Emit::Ptx, "ptx", "GPU: each kernel as PTX"),
                                clEnumValN(Emit::Exe, "exe", "an executable for `weft run`")));
  cl::opt<std::string> target("target", cl::desc("cpu, sm_90a or sm_80 (no GPU is needed)"), cl::init("cpu"),
                              cl::cat(flagCategory()));
  MemoryFlag memory;
  cl::opt<std::string> trail("trail", cl::desc("write the IR after each pass that changed it"),
                             cl::value_desc("DIR"), cl::cat(flagCategory()));
  cl::opt<std::string> out("o", cl::desc("write to a file"), cl::value_desc("FILE"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "shows the IR after any stage, or saves an executable",
                  "  weft compile models/tiny.weft --emit rolled\n  weft compile models/gpt2.weft --emit "
                  "fused --trail "
                  "trail\n  weft compile models/tiny.weft --emit exe -o tiny.exe\n  weft compile runs/frozen "
                  "--emit exe -o frozen.exe\n"))
    return kUsage;
  if (absl::Status status = checkEmit(emit, target); !status.ok())
    return fail(status);
  if (emit == Emit::Exe && out.empty()) {
    llvm::errs() << "weft compile: --emit exe needs -o FILE\n";
    return kUsage;
  }
  Request request = flags.request(true);
  memory.apply(request);
  absl::StatusOr<LoadedText> loaded = loadText(request);
  if (!loaded.ok())
    return fail(loaded.status());
  const Program &program = *loaded->program;
  if (absl::Status status = refuseUndecided(program); !status.ok())
    return fail(status);
  PipelineOptions options = shapes.options(program);
  if (target != "cpu")
    options.chip = target;
  absl::StatusOr<std::string> text = emitted(program, options, emit, {trail});
  if (!text.ok())
    return fail(text.status());
  absl::Status status = deliver(*text, out);
  return status.ok() ? 0 : fail(status);
}

//===----------------------------------------------------------------------===//
// weft run
//===----------------------------------------------------------------------===//

/// Inputs that depend on names and the seed alone: tokens below the smallest
/// vocabulary, one document a row.
static rt::Tensor drawnInput(const rt::Port &port, uint64_t seed, int64_t vocabulary) {
  rt::Tensor tensor(port.type, port.shape);
  rt::Philox philox(seed, "run/" + port.name);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    auto index = static_cast<size_t>(i);
    if (port.type == rt::ElementType::I32)
      tensor.as<int32_t>()[index] =
          port.name == "doc_start"
              ? 0
              : static_cast<int32_t>(philox.uniform(index) * static_cast<double>(vocabulary));
    else if (port.type == rt::ElementType::F32)
      tensor.as<float>()[index] = 1e-3f;
  }
  return tensor;
}

/// A model, compiled here.
static absl::StatusOr<std::unique_ptr<rt::Machine>> machineOf(const Request &request,
                                                              const ShapeFlags &shapes) {
  absl::StatusOr<std::unique_ptr<Program>> program = loadDecided(request);
  if (!program.ok())
    return program.status();
  return makeMachine(**program, shapes.options(**program), request, {});
}

/// A saved executable, which needs no compiler.
static absl::StatusOr<std::unique_ptr<rt::Machine>> machineIn(const Request &request) {
  absl::StatusOr<std::string> bytes = rt::readFile(request.path);
  absl::StatusOr<rt::Executable> executable = bytes.ok() ? rt::deserialize(*bytes) : bytes.status();
  if (!executable.ok())
    return absl::Status(executable.status().code(),
                        absl::StrCat(request.path, ": ", executable.status().message()));
  return openMachine(std::move(*executable), request);
}

int weft::runCommand(int argc, const char **argv) {
  ModelFlags flags;
  flags.path.setDescription("EXECUTABLE|MODEL.weft");
  ShapeFlags shapes;
  cl::opt<int64_t> repeats("steps", cl::desc("how often to run each program"), cl::init(1),
                           cl::cat(flagCategory()));
  cl::opt<uint64_t> seed("seed", cl::desc("of initial values and inputs"), cl::init(0),
                         cl::cat(flagCategory()));
  cl::opt<int64_t> vocabulary("vocabulary", cl::desc("tokens are drawn below this"), cl::init(256),
                              cl::cat(flagCategory()));
  DeviceFlags device;
  addCompilerFlags();
  if (!parseFlags(argc, argv,
                  "runs a saved executable, or a model compiled here, on drawn inputs and prints "
                  "what it gives",
                  "  weft run tiny.exe --steps 3\n  weft run models/tiny.weft --program eval\n"))
    return kUsage;
  Request request = flags.request(true);
  device.apply(request);
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine =
      isModelPath(flags.path) ? machineOf(request, shapes) : machineIn(request);
  if (!machine.ok())
    return fail(machine.status());
  if (absl::Status status = rt::initializeState(**machine, seed); !status.ok())
    return fail(status);
  for (int64_t step = 0; step < repeats; ++step)
    for (const rt::Program &program : (*machine)->executable().programs) {
      std::vector<rt::Tensor> inputs, results;
      for (const rt::Port &port : program.inputs)
        inputs.push_back(drawnInput(port, seed + static_cast<uint64_t>(step), vocabulary));
      for (const rt::Port &port : program.results)
        results.emplace_back(port.type, port.shape);
      if (absl::Status status = (*machine)->run(program.name, inputs, results); !status.ok())
        return fail(status);
      for (auto [port, result] : llvm::zip(program.results, results)) {
        llvm::StringRef raw(reinterpret_cast<const char *>(result.bytes.data()), result.bytes.size());
        llvm::outs() << llvm::formatv("step {0} {1}.{2} = ", step, program.name, port.name);
        if (result.elements() == 1 && result.type == rt::ElementType::F32)
          llvm::outs() << llvm::formatv("{0:F6} ", result.as<float>()[0]);
        llvm::outs() << llvm::formatv("(hash {0:x-16})\n", llvm::xxh3_64bits(raw));
      }
    }
  return 0;
}

//===----------------------------------------------------------------------===//
// weft verify
//===----------------------------------------------------------------------===//

int weft::verifyCommand(int argc, const char **argv) {
  ModelFlags flags;
  ShapeFlags shapes;
  MemoryFlag memory;
  cl::opt<bool> eachPass("each-pass", cl::desc("interpret before and after each pass"), cl::init(true),
                         cl::cat(flagCategory()));
  cl::opt<std::string> plant("plant",
                             cl::desc("insert a fault that must be caught: dropped-residual, swapped-heads, "
                                      "window-off-by-one, wrong-kv-group, overlapping-buffers"),
                             cl::cat(flagCategory()));
  cl::opt<std::string> target("target", cl::desc("whose passes: cpu, sm_90a or sm_80"), cl::init("cpu"),
                              cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "interprets the IR before and after each pass in float64 and compares",
                  "  weft verify models/nano.weft --each-pass --batch 2 --positions 12\n"))
    return kUsage;
  // Sizes may be set so small that the recipe no longer fits: then without it, and without an optimiser.
  Request request = flags.request(true);
  memory.apply(request);
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!program.ok())
    program = loadProgram(flags.request(false));
  if (!program.ok())
    return fail(program.status());
  if (absl::Status status = refuseUndecided(**program); !status.ok())
    return fail(status);
  PipelineOptions options = shapes.options(**program);
  if (!(*program)->recipe && shapes.programs.empty())
    options.programs = {"micro", "eval", "prefill"};
  // The interpreter is plain loops: small shapes unless others were asked for.
  options.batch = shapes.batch > 0 ? int64_t(shapes.batch) : 2;
  options.positions = shapes.positions > 0 ? int64_t(shapes.positions) : 12;
  if (!plant.empty()) {
    if (!createPlantPass(plant))
      return fail(
          absl::InvalidArgumentError(absl::StrCat("--plant ", std::string(plant), ": no such fault")));
    auto make = [&] { return createPlantPass(plant); };
    (plant == "overlapping-buffers" ? options.afterPlan : options.afterUnroll) = make;
  }
  if (absl::Status status = checkEmit(Emit::Schedule, target); !status.ok())
    return fail(status);
  VerifyOptions verify;
  if (target != "cpu") {
    options.chip = target;
    // bf16 has eight bits of mantissa; logits are rounded where the loss head is scheduled,
    // and what a region kept in registers where a part of it is made again.
    constexpr double kRounding = 5e-2;
    for (const char *pass : {"weft-tile-patterns", "weft-store-in-bf16", "weft-fold-activations",
                             "weft-recompute", "weft-schedule"})
      verify.rounding[pass] = kRounding;
  }
  VerifyReport report;
  std::shared_ptr<mlir::MLIRContext> context = makeContext();
  absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> module =
      lower(**program, options, {}, *context,
            [&](mlir::PassManager &manager) { verifyEachPass(manager, report, verify); });
  for (const PassVerdict &verdict : report.passes)
    llvm::outs() << verdict.text() << "\n";
  if (!module.ok())
    return fail(module.status());
  if (const PassVerdict *fault = report.firstFault()) {
    llvm::errs() << "weft: pass " << fault->pass << " changed the program\n";
    return kExplained;
  }
  return 0;
}

//===- KernelsCommand.cpp - weft kernels ----------------------------------===//
//
// The GPU kernels of a model, or of a file of weft.kernel ops: what each costs,
// whether it computes what its body says, and how fast it is.
//
//===----------------------------------------------------------------------===//

#include "tools/weft-opt/Nesting.h"
#include "tools/weft/Command.h"
#include "tools/weft/Device.h"
#include "tools/weft/KernelInputs.h"
#include "tools/weft/KernelRun.h"
#include "tools/weft/MemoryPolicies.h"

#include "passes/Codegen/Gpu/Attend.h"
#include "passes/Codegen/Gpu/Gpu.h"
#include "passes/Codegen/Gpu/Pattern.h"
#include "passes/Tile/Ptxas.h"
#include "runtime/core/File.h"
#include "runtime/core/Json.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include "absl/strings/str_cat.h"

#include <atomic>
#include <thread>

using namespace weft;
namespace cl = llvm::cl;

namespace {

using KernelModule = mlir::OwningOpRef<mlir::ModuleOp>;

/// Kernels of a model's programs at these shapes.
absl::StatusOr<KernelModule> kernelsOfModel(Request request, std::vector<std::string> programs, int64_t batch,
                                            int64_t positions, const std::string &chip,
                                            mlir::MLIRContext &context) {
  // Without a recipe, or at sizes that it does not fit, there is no optimiser.
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!program.ok()) {
    request.needsRecipe = false;
    program = loadProgram(request);
    std::erase(programs, "update");
  }
  if (!program.ok())
    return program.status();
  PipelineOptions options;
  if ((*program)->recipe)
    options = shapesOf(*(*program)->recipe);
  options.programs = programs;
  options.batch = batch > 0 ? batch : options.batch;
  options.positions = positions > 0 ? positions : options.positions;
  options.chip = chip;
  options.stage = Stage::Schedule;
  options.memory = policyOf(**program);
  return lower(**program, options, {}, context);
}

absl::StatusOr<KernelModule> kernelsInFile(const std::string &path, mlir::MLIRContext &context) {
  KernelModule module;
  if (fileNestingIsBounded(path))
    module = mlir::parseSourceFile<mlir::ModuleOp>(path, &context);
  if (!module)
    return absl::InvalidArgumentError(absl::StrCat(path, ": holds no IR of kernels (see above)"));
  return module;
}

/// One line of the table of what kernels cost.
struct Cost {
  std::string line;
  rt::OrderedJson json;
  bool good = true;
};

Cost costOf(KernelOp kernel, const GpuTarget &target, const std::string &folder) {
  Cost cost;
  std::string name = nameOf(kernel);
  cost.json["kernel"] = name;
  mlir::FailureOr<rt::Kernel> compiled = compileGpuKernel(kernel, target);
  auto bad = [&](std::string_view why) {
    cost.good = false;
    cost.json["error"] = std::string(why);
    cost.line = llvm::formatv("{0,-44} {1}", name, why);
    return cost;
  };
  if (mlir::failed(compiled))
    return bad("does not compile (see above)");
  if (compiled->kind != rt::Kernel::Kind::Code) {
    cost.json["kind"] = "product";
    cost.line = llvm::formatv("{0,-44} a product through cuBLASLt", name);
    return cost;
  }
  auto write = [&](const char *ending, std::string_view bytes) {
    return folder.empty() ? absl::OkStatus()
                          : rt::writeFileAtomic(absl::StrCat(folder, "/", name, ending), std::string(bytes));
  };
  if (absl::Status status = write(".ptx", compiled->object); !status.ok())
    return bad(std::string(status.message()));
  absl::StatusOr<PtxasReport> report = assemble(compiled->object, target.chip);
  if (!report.ok())
    return bad(std::string(report.status().message()));
  if (absl::Status status = checkReport(*report, name); !status.ok())
    bad(std::string(status.message()));
  uint64_t shared = static_cast<uint64_t>(report->sharedBytes) + compiled->launch.sharedBytes;
  cost.json["threads"] = compiled->launch.threads;
  cost.json["registers"] = report->registers;
  cost.json["shared"] = shared;
  cost.json["spill"] = report->spillStoreBytes + report->spillLoadBytes;
  cost.json["scratch"] = compiled->scratchBytes;
  if (cost.good)
    cost.line = llvm::formatv("{0,-44} {1,7} {2,9} {3,8} {4,6} {5,9}", name, compiled->launch.threads,
                              report->registers, shared, report->spillStoreBytes + report->spillLoadBytes,
                              compiled->scratchBytes);
  if (absl::Status status = write(".cubin", report->cubin); !status.ok())
    return bad(std::string(status.message()));
  return cost;
}

/// `work(i)` for each i below `count`, on all cores.
void inParallel(size_t count, const std::function<void(size_t)> &work) {
  std::atomic<size_t> next = 0;
  auto loop = [&] {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i)
    helpers.emplace_back(loop);
  loop();
  for (std::thread &helper : helpers)
    helper.join();
}

bool showCosts(llvm::ArrayRef<KernelOp> kernels, const GpuTarget &target, const std::string &folder,
               bool json) {
  std::vector<Cost> costs(kernels.size());
  inParallel(kernels.size(), [&](size_t i) { costs[i] = costOf(kernels[i], target, folder); });
  bool good = true;
  rt::OrderedJson list = rt::OrderedJson::array();
  if (!json)
    llvm::outs() << llvm::formatv("{0,-44} threads registers   shared  spill   scratch\n", target.chip);
  for (const Cost &cost : costs) {
    good &= cost.good;
    if (json)
      list.push_back(cost.json);
    else
      llvm::outs() << cost.line << "\n";
  }
  if (json)
    llvm::outs() << rt::dumpJson(list) << "\n";
  return good;
}

using KernelForms = llvm::SmallVector<mlir::OwningOpRef<KernelOp>>;

/// Each kernel of attention or of fixed patterns in each of these forms; other kernels have none.
absl::StatusOr<KernelForms> inForms(llvm::ArrayRef<KernelOp> kernels, const std::vector<std::string> &forms,
                                    const GpuTarget &target) {
  for (const std::string &form : forms) {
    AttendOptions options;
    if (std::string problem = readForm(form, options); !problem.empty())
      return absl::InvalidArgumentError(absl::StrCat("--form ", form, ": ", problem));
  }
  KernelForms all;
  for (KernelOp kernel : kernels)
    for (const std::string &form : forms)
      if (whyNoAttendTile(kernel, target).empty() || patternItems(kernel, target)) {
        all.push_back(kernel.clone());
        (*all.back())->setAttr(kFormAttr, mlir::StringAttr::get(kernel.getContext(), form));
      }
  return all;
}

/// Checks or times each kernel on the device; one line each, flushed.
bool runAll(llvm::ArrayRef<KernelOp> kernels, const KernelRun &run, uint64_t seed, int repeats,
            PlantedFault plant, bool json) {
  bool good = true;
  llvm::SmallVector<Array> inputs; // of a timing; forms of one kernel share them
  llvm::StringRef drawnFor;
  for (KernelOp kernel : kernels) {
    if (repeats > 0 && kernel.getSymName() != drawnFor) {
      inputs = kernelInputs(kernel, seed, /*whole=*/true);
      drawnFor = kernel.getSymName();
    }
    absl::StatusOr<KernelVerdict> verdict =
        repeats > 0 ? run.time(kernel, inputs, repeats) : run.check(kernel, seed, plant);
    if (!verdict.ok()) {
      KernelVerdict failed;
      failed.kernel = kernel.getSymName().str();
      failed.problem = std::string(verdict.status().message());
      verdict = std::move(failed);
    }
    good &= verdict->problem.empty();
    llvm::outs() << (json ? verdict->json() : verdict->text()) << "\n";
    llvm::outs().flush();
  }
  return good;
}

} // namespace

int weft::kernelsCommand(int argc, const char **argv) {
  ModelFlags flags;
  MemoryFlag memory;
  DeviceFlags device;
  cl::opt<int64_t> batch("batch", cl::desc("rows of a program (default: the recipe's)"), cl::init(0),
                         cl::cat(flagCategory()));
  cl::opt<int64_t> positions("positions", cl::desc("positions of a row (default: the recipe's)"), cl::init(0),
                             cl::cat(flagCategory()));
  cl::list<std::string> programs("program", cl::desc("default: micro, update, eval, prefill, decode"),
                                 cl::CommaSeparated, cl::cat(flagCategory()));
  cl::opt<std::string> target("target", cl::desc("sm_90a or sm_80 (default: the device's, or sm_90a)"),
                              cl::cat(flagCategory()));
  cl::opt<bool> check("check", cl::desc("run each on the device beside the interpreter"),
                      cl::cat(flagCategory()));
  cl::opt<PlantedFault> plant(
      "plant", cl::desc("with --check: a fault in each kernel, which must be found"), cl::ValueOptional,
      cl::init(PlantedFault::None),
      cl::values(clEnumValN(PlantedFault::Body, "", "what it computes is a little else"),
                 clEnumValN(PlantedFault::Documents, "documents",
                            "documents that begin inside a tile's last rows are hidden from it")),
      cl::cat(flagCategory()));
  cl::opt<int> time("time", cl::desc("time each on the device, this many times"), cl::init(0),
                    cl::value_desc("N"), cl::cat(flagCategory()));
  cl::opt<std::string> filter("filter", cl::desc("only kernels whose name holds this"),
                              cl::cat(flagCategory()));
  cl::list<std::string> form("form",
                             cl::desc("kernels of attention in this form, as early=0,block=64 (repeat)"),
                             cl::cat(flagCategory()));
  cl::opt<uint64_t> seed("seed", cl::desc("of the inputs"), cl::init(0), cl::cat(flagCategory()));
  cl::opt<std::string> out("o", cl::desc("write the PTX and the cubin of each into a folder"), cl::value_desc("DIR"),
                           cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("JSON"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "the GPU kernels of a model: cost, correctness, speed",
                  "  weft kernels models/gpt_rope.weft --target sm_90a\n"
                  "  weft kernels models/nano.weft --batch 2 --positions 65 --check --device cuda\n"
                  "  weft kernels models/gpt_rope.weft --time 20 --device cuda --json\n"))
    return kUsage;
  bool runs = check || time > 0;
  Request request = flags.request(false);
  device.apply(request);
  GpuTarget gpu;
  if (!target.empty())
    gpu.chip = target;
  if (runs) {
    absl::StatusOr<Device> found = chooseDevice(request.device);
    if (!found.ok())
      return fail(found.status());
    if (found->chip.empty())
      return fail(absl::FailedPreconditionError("--check and --time need a CUDA device; none was found"));
    if (target.empty())
      gpu.chip = found->chip;
  }
  Request modelRequest = flags.request(true);
  memory.apply(modelRequest);
  std::shared_ptr<mlir::MLIRContext> context = makeContext();
  std::vector<std::string> which(programs.begin(), programs.end());
  if (which.empty())
    which = {"micro", "update", "eval", "prefill", "decode"};
  absl::StatusOr<KernelModule> module =
      isModelPath(flags.path) ? kernelsOfModel(modelRequest, which, batch, positions, gpu.chip, *context)
                              : kernelsInFile(flags.path, *context);
  if (!module.ok())
    return fail(module.status());
  llvm::SmallVector<KernelOp> kernels;
  for (KernelOp kernel : (**module).getOps<KernelOp>())
    if (kernel.getSymName().contains(llvm::StringRef(filter)))
      kernels.push_back(kernel);
  absl::StatusOr<KernelForms> forms =
      inForms(kernels, std::vector<std::string>(form.begin(), form.end()), gpu);
  if (!forms.ok())
    return fail(forms.status());
  if (!form.empty()) {
    kernels.clear();
    for (mlir::OwningOpRef<KernelOp> &kernel : *forms)
      kernels.push_back(*kernel);
  }
  bool good = runs ? runAll(kernels, KernelRun{request, gpu}, seed, time, plant, json)
                   : showCosts(kernels, gpu, out, json);
  return good ? 0 : kExplained;
}

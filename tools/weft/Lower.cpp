//===- Lower.cpp - From a checked program to IR and machines --------------===//

#include "tools/weft/Session.h"

#include "dialects/Weft/Weft.h"
#include "frontend/Emit/Emit.h"
#include "runtime/cpu/Memory.h"
#include "tools/weft/Device.h"
#include "tools/weft/MemoryPolicies.h"
#include "tools/weft/ReferenceMachine.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ToolOutputFile.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <thread>

using namespace mlir;
using namespace weft;

namespace {

/// Writes the module after each pass that changed it, as it happens.
class Trail : public PassInstrumentation {
public:
  explicit Trail(std::string folder) : folder(std::move(folder)) {
    std::filesystem::create_directories(this->folder);
  }

  void begin(ModuleOp module) { write(module, "emitted"); }
  void runAfterPass(Pass *pass, Operation *op) override {
    // Passes on functions run one after another; the module is what people read.
    auto module = dyn_cast<ModuleOp>(op);
    if (!module)
      module = op->getParentOfType<ModuleOp>();
    if (module)
      write(module, pass->getArgument());
  }
  void runAfterPassFailed(Pass *pass, Operation *op) override { runAfterPass(pass, op); }

private:
  void write(ModuleOp module, StringRef name) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream, OpPrintingFlags().elideLargeElementsAttrs(64));
    if (name.empty() || text == last)
      return;
    last = text;
    std::string file = llvm::formatv("{0}{1}-{2}.mlir", count < 10 ? "0" : "", count, name).str();
    ++count;
    std::ofstream(folder + "/" + file) << text;
    std::ofstream(folder + "/index.txt", std::ios::app)
        << file << "  " << std::count(text.begin(), text.end(), '\n') << " lines\n";
  }

  std::string folder, last;
  int count = 0;
};

/// The place in the text that a location goes back to.
std::string placeOf(Location loc) {
  std::string place;
  loc->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    place = absl::StrCat(file.getFilename().str(), ":", file.getLine(), ":", file.getColumn(), ": ");
    return WalkResult::interrupt();
  });
  return place;
}

void setWindows(ModuleOp module, const Program &program) {
  Builder builder(module.getContext());
  NamedAttrList windows;
  for (const lang::Plan &plan : program.plans)
    for (const auto &[path, heads] : plan.fixedWindows) {
      SmallVector<int32_t> values;
      for (int64_t head : heads)
        values.push_back(static_cast<int32_t>(std::min<int64_t>(head, std::numeric_limits<int32_t>::max())));
      windows.set(path, builder.getDenseI32ArrayAttr(values));
    }
  if (!windows.empty())
    module->setAttr("weft.windows", windows.getDictionary(module.getContext()));
}

/// Sites whose windows are decided while a run goes on: programs read them from
/// state, so that no window is compiled in.
void setWindowState(ModuleOp module, const Program &program) {
  std::set<std::string> paths;
  for (const lang::Plan &plan : program.plans)
    for (const lang::WindowsRule &rule : plan.windows) {
      bool given =
          rule.kind == lang::WindowsRule::Kind::Fixed || rule.kind == lang::WindowsRule::Kind::Listed;
      if (given && rule.from.amount == 0)
        continue;
      for (int64_t head : rule.heads) {
        auto after = std::upper_bound(plan.firstHead.begin(), plan.firstHead.end(), head);
        paths.insert(plan.sites[static_cast<size_t>(after - plan.firstHead.begin()) - 1].path);
      }
    }
  if (paths.empty())
    return;
  SmallVector<StringRef> names(paths.begin(), paths.end());
  module->setAttr("weft.window_state", Builder(module.getContext()).getStrArrayAttr(names));
}

/// What the pass `drop-ffn` does, of every plan.
void setDrops(ModuleOp module, const Program &program) {
  Builder builder(module.getContext());
  SmallVector<Attribute> drops;
  for (const lang::Plan &plan : program.plans)
    for (const lang::DropRule &rule : plan.drops) {
      NamedAttrList fields;
      fields.set("layer", builder.getStringAttr(rule.layer));
      fields.set("branch", builder.getStringAttr(rule.branch));
      if (rule.newDepth != rule.oldDepth) {
        fields.set("setting", builder.getStringAttr(lang::depthSettingOf(program.written, rule.layer)));
        fields.set("depth", builder.getI64IntegerAttr(rule.newDepth));
      } else if (static_cast<int64_t>(rule.indices.size()) < rule.oldDepth) {
        fields.set("indices", builder.getDenseI64ArrayAttr(rule.indices));
      }
      drops.push_back(fields.getDictionary(module.getContext()));
    }
  if (!drops.empty())
    module->setAttr("weft.drop", builder.getArrayAttr(drops));
}

void setGroups(ModuleOp module, const Program &program) {
  if (!program.recipe)
    return;
  Builder builder(module.getContext());
  SmallVector<Attribute> groups;
  for (const OptimizerGroup &group : optimizerGroups(program)) {
    SmallVector<StringRef> names(group.parameters.begin(), group.parameters.end());
    auto number = [&](StringRef name, double value) {
      return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
    };
    if (group.optimizer.kind == rt::Optimizer::Kind::Muon) {
      groups.push_back(builder.getDictionaryAttr(
          {number("decay", group.optimizer.decay),
           builder.getNamedAttr("iterations", builder.getI64IntegerAttr(group.optimizer.iterations)),
           builder.getNamedAttr("kind", builder.getStringAttr("muon")),
           number("momentum", group.optimizer.momentum),
           builder.getNamedAttr("nesterov", builder.getBoolAttr(group.optimizer.nesterov)),
           builder.getNamedAttr("params", builder.getStrArrayAttr(names))}));
      continue;
    }
    groups.push_back(builder.getDictionaryAttr(
        {number("beta1", group.optimizer.beta1), number("beta2", group.optimizer.beta2),
         number("decay", group.optimizer.decay), number("eps", group.optimizer.eps),
         builder.getNamedAttr("params", builder.getStrArrayAttr(names))}));
  }
  module->setAttr("weft.groups", builder.getArrayAttr(groups));
  module->setAttr("weft.clip", builder.getF64FloatAttr(program.recipe->clip));
}

} // namespace

std::shared_ptr<MLIRContext> weft::makeContext() {
  DialectRegistry registry;
  registerWeftDialects(registry);
  auto context = std::make_shared<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false); // a place of the text says more than an op
  context->getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
      return success();
    StringRef kind = diagnostic.getSeverity() == DiagnosticSeverity::Error ? "error" : "warning";
    llvm::errs() << placeOf(diagnostic.getLocation()) << kind << ": " << diagnostic.str() << "\n";
    for (Diagnostic &note : diagnostic.getNotes())
      llvm::errs() << placeOf(note.getLocation()) << "note: " << note.str() << "\n";
    return success();
  });
  return context;
}

absl::StatusOr<OwningOpRef<ModuleOp>> weft::lower(const Program &program, const PipelineOptions &options,
                                                  const TrailOptions &trail, MLIRContext &context,
                                                  const std::function<void(PassManager &)> &attach) {
  OwningOpRef<ModuleOp> module = emitModel(program.written, program.sources, context);
  setDrops(*module, program);
  setWindows(*module, program);
  setWindowState(*module, program);
  setHeadDecisions(*module, program.heads);
  setGroups(*module, program);
  if (failed(verify(*module)))
    return absl::InternalError("the emitted model does not verify");
  PassManager manager(&context, ModuleOp::getOperationName());
  if (failed(applyPassManagerCLOptions(manager)))
    return absl::InvalidArgumentError("the flags for passes do not fit together");
  applyDefaultTimingPassManagerCLOptions(manager);
  if (!trail.folder.empty()) {
    auto writer = std::make_unique<Trail>(trail.folder);
    writer->begin(*module);
    manager.addInstrumentation(std::move(writer));
  }
  if (attach)
    attach(manager);
  buildPipeline(manager, options);
  if (failed(manager.run(*module)))
    return absl::InternalError(
        absl::StrCat("compiling ", program.model.name,
                     " failed (see above); --mlir-pass-pipeline-crash-reproducer=FILE saves a reproducer"));
  return module;
}

/// Bytes that can be allocated on `device`; of a GPU, `held` keeps what was opened to ask.
static absl::StatusOr<uint64_t> roomOn(const Device &device, std::shared_ptr<void> &held) {
  if (device.kind != rt::DeviceChoice::Kind::Cuda)
    return rt::availableMemory();
  absl::StatusOr<rt::CudaRoom> free = rt::cudaRoom(device.index);
  if (!free.ok())
    return free.status();
  held = std::move(free->context);
  return free->freeBytes;
}

absl::StatusOr<std::unique_ptr<rt::Machine>>
weft::makeMachine(const Program &program, PipelineOptions options, const Request &request,
                  const TrailOptions &trail, MachineReport *report) {
  auto start = std::chrono::steady_clock::now();
  absl::StatusOr<Device> device = chooseDevice(request.device);
  if (!device.ok())
    return device.status();
  bool reference = device->kind == rt::DeviceChoice::Kind::Reference;
  std::shared_ptr<MLIRContext> context = makeContext();
  options.float64 = reference;
  options.chip = device->chip;
  options.stage = reference ? Stage::Programs : Stage::Schedule;
  std::shared_ptr<void> held; // of the device, until the machine is made
  absl::StatusOr<WithinMemory> lowered =
      lowerWithin(program, options, trail, *context, [&] { return roomOn(*device, held); });
  if (!lowered.ok())
    return lowered.status();
  OwningOpRef<ModuleOp> &module = lowered->module;
  if (reference)
    return makeReferenceMachine(std::move(module), context);
  ExecutableOptions executableOptions{hostTarget(), cacheFolder(),
                                      static_cast<int>(std::thread::hardware_concurrency())};
  if (!device->chip.empty())
    executableOptions.gpu = GpuTarget{device->chip};
  CompileReport compile;
  context->enableMultithreading();
  FailureOr<rt::Executable> executable = toExecutable(*module, executableOptions, &compile);
  context->disableMultithreading();
  if (failed(executable))
    return absl::InternalError("a kernel could not be compiled (see above)");
  executable->model = program.model.name;
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = openMachine(std::move(*executable), request);
  if (report)
    *report = {compile, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
               lowered->report};
  return machine;
}

//===- Train.cpp - weft train ----------------------------------------------===//

#include "tools/weft/BenchReport.h"
#include "tools/weft/Command.h"
#include "tools/weft/DryRun.h"
#include "tools/weft/MemoryPolicies.h"
#include "tools/weft/Output.h"
#include "tools/weft/Phases.h"
#include "tools/weft/Reports.h"
#include "tools/weft/Resume.h"
#include "tools/weft/WindowPlans.h"

#include "runtime/data/Rows.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/Train.h"

#include "llvm/Support/FormatVariadic.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <ctime>
#include <filesystem>

using namespace weft;
namespace cl = llvm::cl;

namespace {

struct TrainFlags {
  cl::opt<std::string> path{cl::Positional, cl::desc("MODEL.weft"), cl::cat(flagCategory())};
  cl::list<std::string> sets{"set", cl::desc("set a size, a choice, or a key of the recipe"),
                             cl::value_desc("name=value"), cl::cat(flagCategory())};
  cl::list<std::string> plans{"plan", cl::desc("apply a plan"), cl::value_desc("[FILE:]NAME"),
                              cl::cat(flagCategory())};
  cl::opt<std::string> recipe{"recipe", cl::desc("which `train` block (default: the only one)"),
                              cl::value_desc("NAME"), cl::cat(flagCategory())};
  cl::opt<std::string> out{"out", cl::desc("run directory (default: runs/MODEL-DATE)"), cl::value_desc("DIR"),
                           cl::cat(flagCategory())};
  cl::opt<std::string> resume{"resume", cl::desc("go on with this run from its latest checkpoint"),
                              cl::value_desc("RUN"), cl::cat(flagCategory())};
  cl::opt<int64_t> steps{"steps", cl::desc("steps of the whole run, instead of the recipe's"), cl::init(0),
                         cl::cat(flagCategory())};
  cl::opt<int64_t> until{"until", cl::desc("save and stop after this step; --resume goes on"), cl::init(0),
                         cl::cat(flagCategory())};
  cl::opt<std::string> from{"from", cl::desc("start from the weights of this run, with a new optimiser"),
                            cl::value_desc("RUN"), cl::cat(flagCategory())};
  cl::opt<bool> dryRun{"dry-run", cl::desc("compile and print sizes, train nothing"),
                       cl::cat(flagCategory())};
  cl::opt<std::string> profile{"profile",
                               cl::desc("write the calls of kernels as a trace for Chrome or Perfetto"),
                               cl::value_desc("FILE"), cl::cat(flagCategory())};
  DeviceFlags device;
  MemoryFlag memory;
};

std::string dated(const std::string &model) {
  std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", std::localtime(&now));
  return "runs/" + model + "-" + text;
}

int64_t vocabularyOf(const lang::Model &model) {
  lang::Bindings names = model.bindings();
  auto found = names.find("vocab");
  return found == names.end() ? 0 : static_cast<int64_t>(found->second.number);
}

absl::StatusOr<rt::RunDirectory> openRun(const TrainFlags &flags, const Program &program) {
  if (!flags.resume.empty())
    return rt::RunDirectory::open(flags.resume);
  std::string path = flags.out.empty() ? dated(program.model.name) : std::string(flags.out);
  return rt::RunDirectory::create(path, program.runText);
}

std::string bytesText(uint64_t bytes) {
  return bytes < (1 << 20) ? llvm::formatv("{0:F1} KiB", bytes / 1024.0).str()
                           : llvm::formatv("{0:F1} MiB", bytes / 1048576.0).str();
}

/// What was compiled, and what memory it takes.
void describe(rt::Console &console, const Program &program, const rt::Machine &machine,
              const MachineReport &report) {
  const rt::Executable &executable = machine.executable();
  int64_t parameters = 0;
  for (const lang::ParameterInfo &info : lang::parametersOf(program.model)) {
    int64_t count = 1;
    for (int64_t size : info.shape)
      count *= size;
    parameters += count;
  }
  console.line(
      llvm::formatv("{0}: {1:N} parameters; {2} kernels ({3} compiled, {4} from the cache) in "
                    "{5:F2} s; state {6}, arena {7}{8}",
                    program.model.name, parameters, report.compile.kernels, report.compile.compiled,
                    report.compile.fromCache, report.seconds, bytesText(executable.stateBytes),
                    bytesText(executable.arenaBytes),
                    report.memory ? absl::StrCat(", memory ", policyName(report.memory->policy)) : "")
          .str());
  if (absl::StatusOr<std::optional<rt::CudaMemory>> memory = rt::cudaMemory(machine); memory.ok() && *memory)
    console.line(memoryText(**memory));
}

/// The checkpoint's shapes were checked; this says why a model can't be trained yet.
absl::Status checkTrainable(const Program &program) {
  if (program.recipe->precision == rt::Recipe::Precision::Bf16)
    return absl::UnimplementedError("recipe " + program.recipe->name +
                                    ": precision bf16 needs a GPU path, which this "
                                    "build has not; use auto or fp32");
  return absl::OkStatus();
}

int report(rt::Console &console, const rt::TrainSummary &summary, const rt::RunDirectory &run) {
  if (summary.eval)
    console.line(llvm::formatv("held out: loss {0:F4}, perplexity {1:F2}, over {2:N} targets",
                               summary.eval->loss, summary.eval->perplexity, summary.eval->targets)
                     .str());
  if (std::isnan(summary.loss) && summary.tokensPerSecond == 0)
    console.line(
        llvm::formatv("step {0}/{1}: nothing was left to do", summary.step, summary.totalSteps).str());
  else
    console.line(
        llvm::formatv("step {0}/{1}: loss {2:F4}, {3:N} tokens, {4:F0} tokens/s, {5:F1} s{6}", summary.step,
                      summary.totalSteps, summary.loss, summary.tokens, summary.tokensPerSecond,
                      summary.seconds,
                      summary.skipped ? absl::StrCat(", ", summary.skipped, " steps skipped") : std::string())
            .str());
  console.line("run directory " + run.path() + ", IR after each pass in " + run.trail() + ", checkpoint " +
               summary.checkpoint);
  if (!summary.interrupted)
    return 0;
  console.line("interrupted and saved; go on with: weft train --resume " + run.path());
  return rt::kInterruptedExit;
}

/// The heads that the run to start from had lost.
absl::Status inheritFrom(const std::string &checkpoint, Program &program) {
  absl::StatusOr<rt::CheckpointInfo> info = rt::readCheckpointInfo(checkpoint);
  if (!info.ok())
    return info.status();
  absl::StatusOr<rt::FreezeRecord> record = rt::readFreezeRecord(info->decisions);
  if (!record.ok())
    return record.status();
  if (absl::Status status = checkInheritedWindows(program, checkpoint); !status.ok())
    return status;
  record->statements.clear(); // of the other run's plans
  if (!record->frozen.empty() && program.recipe->positions > record->positions)
    return absl::InvalidArgumentError(absl::StrCat(
        "'", checkpoint, "': its patterns have ", record->positions, " positions, the recipe's rows ",
        program.recipe->positions, ": use rows of at most ", record->positions));
  adoptRecord(program, *std::move(record));
  return absl::OkStatus();
}

/// A run whose newest checkpoint knows nothing of an added plan is the one it was.
void restoreSource(rt::RunDirectory &run, const std::string &before) {
  absl::StatusOr<std::string> checkpoint = rt::findCheckpoint(run.path());
  absl::StatusOr<rt::CheckpointInfo> info =
      checkpoint.ok() ? rt::readCheckpointInfo(*checkpoint) : checkpoint.status();
  if (run.source() != before && (!info.ok() || info->source != run.source()))
    run.replaceSource(before).IgnoreError(); // the first error is the one to tell
}

/// What statements need before the first step; of a run that goes on, with what it
/// had decided.
absl::Status prepareRun(Program &program, const std::string &folder, const std::string &resumed,
                        int64_t totalSteps) {
  if (resumed.empty())
    return prepareFreezing(program, folder, totalSteps, program.freeze);
  absl::StatusOr<Standing> standing = standingOf(resumed, program);
  if (!standing.ok())
    return standing.status();
  // A run at its end has no step to come too late for.
  const bool ended = standing->step >= totalSteps;
  return prepareFreezing(program, folder, ended ? std::nullopt : std::optional(totalSteps), program.freeze);
}

int runTraining(const TrainFlags &flags, Program &program, const Request &request) {
  rt::Recipe recipe = runtimeRecipe(program);
  std::string folder = std::filesystem::path(request.path).parent_path().string();
  absl::StatusOr<rt::Dataset> data = rt::loadDataset(recipe, vocabularyOf(program.model), folder);
  if (!data.ok())
    return fail(data.status());
  std::optional<rt::CalibrationSplit> split;
  if (const CalibrationNeed need = calibrationNeed(program); need.rows > 0) {
    if (!data->train)
      return fail(
          absl::InvalidArgumentError("freeze and prune calibrate on text, and this recipe has none: name "
                                     "heads, or take them and patterns from files"));
    absl::StatusOr<rt::CalibrationSplit> made =
        rt::splitCalibration(data->train, recipe, need.rows, need.budget);
    if (!made.ok())
      return fail(made.status());
    split = *std::move(made);
    data->train = split->train;
  }
  absl::StatusOr<rt::TrainData> batches = rt::trainRows(*data, recipe);
  if (!batches.ok())
    return fail(batches.status());
  absl::StatusOr<std::optional<rt::EvalData>> held = rt::heldOutRows(*data, recipe);
  if (!held.ok())
    return fail(held.status());
  absl::StatusOr<std::vector<rt::Watched>> watched = watchedOf(program);
  if (!watched.ok())
    return fail(watched.status());
  absl::StatusOr<std::shared_ptr<const rt::RegionLabels>> regions = regionLabels(recipe, *data);
  if (!regions.ok())
    return fail(regions.status());
  PipelineOptions options = shapesOf(recipe);
  options.programs = {"micro", "update", "eval"};
  if (choosesWindows(program))
    options.programs.push_back("observe");
  rt::Console console;
  auto compiled = [&](const rt::Machine &machine, const MachineReport &made) {
    describe(console, program, machine, made);
  };
  if (flags.dryRun) {
    MachineReport made;
    absl::StatusOr<std::unique_ptr<rt::Machine>> machine = makeMachine(program, options, request, {}, &made);
    if (!machine.ok())
      return fail(machine.status());
    compiled(**machine, made);
    if (made.memory)
      llvm::outs() << memoryText(*made.memory);
    absl::Status status = printDryRun(program, **machine, options, recipe, batches->steps());
    return status.ok() ? 0 : fail(status);
  }
  rt::InterruptGuard guard;
  rt::TrainOptions train;
  train.resume = !flags.resume.empty();
  if (flags.until > 0)
    train.until = flags.until;
  train.console = &console;
  train.dropped = program.model.dropped;
  train.watch = *std::move(watched);
  train.regions = *std::move(regions);
  if (!flags.from.empty()) {
    absl::StatusOr<std::string> from = rt::findCheckpoint(flags.from);
    if (!from.ok())
      return fail(from.status());
    train.from = *from;
    if (absl::Status status = inheritFrom(*from, program); !status.ok())
      return fail(status);
  }
  absl::StatusOr<std::vector<std::string>> notes = std::vector<std::string>();
  if (train.resume)
    notes = checkResumedPlans(program, flags.resume);
  if (!notes.ok())
    return fail(notes.status());
  if (absl::Status status = prepareRun(program, folder, flags.resume, batches->steps()); !status.ok())
    return fail(status);
  // Last of all: what is refused leaves no folder behind.
  absl::StatusOr<rt::RunDirectory> run = openRun(flags, program);
  if (!run.ok())
    return fail(run.status());
  const std::string before = run->source();
  if (train.resume && !flags.plans.empty())
    if (absl::Status status = run->replaceSource(program.runText); !status.ok())
      return fail(status);
  console.mirrorTo(run->consoleLog()).IgnoreError();
  for (const std::string &note : *notes)
    console.line(note);
  PhaseSetup setup{program,
                   request,
                   options,
                   recipe,
                   *batches,
                   held->has_value() ? &**held : nullptr,
                   split ? &*split : nullptr,
                   *run,
                   console,
                   compiled};
  absl::StatusOr<rt::TrainSummary> summary = trainInPhases(setup, train);
  if (!summary.ok()) {
    run->discardUnused();
    if (train.resume)
      restoreSource(*run, before);
    return fail(summary.status());
  }
  return report(console, *summary, *run);
}

} // namespace

int weft::trainCommand(int argc, const char **argv) {
  TrainFlags flags;
  addCompilerFlags();
  if (!parseFlags(
          argc, argv, "trains a model as its recipe says",
          "  weft train models/tiny.weft --out runs/first\n  weft train models/gpt2.weft --set depth=6 --set "
          "steps=100 --dry-run\n  weft train --resume runs/first\n"))
    return kUsage;
  if (!flags.profile.empty())
    ::setenv("WEFT_TRACE", flags.profile.c_str(), 1);
  if (flags.path.empty() == flags.resume.empty()) {
    llvm::errs() << "weft train: expected either MODEL.weft or --resume RUN\n";
    return kUsage;
  }
  if (!flags.from.empty() && !flags.resume.empty())
    return misuse("train", "--from begins a run, --resume goes on with one: give one of the two");
  Request request;
  setPath(request, flags.resume.empty() ? std::string(flags.path) : flags.resume + "/run.weft");
  request.sets.assign(flags.sets.begin(), flags.sets.end());
  if (flags.steps > 0)
    request.sets.push_back("steps=" + std::to_string(flags.steps));
  request.plans.assign(flags.plans.begin(), flags.plans.end());
  request.recipe = flags.recipe;
  request.needsRecipe = true;
  request.fromRun = !flags.resume.empty();
  flags.device.apply(request);
  flags.memory.apply(request);
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!program.ok())
    return fail(program.status());
  if (absl::Status status = checkTrainable(**program); !status.ok())
    return fail(status);
  return runTraining(flags, **program, request);
}

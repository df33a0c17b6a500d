//===- FreezeCommand.cpp - weft freeze, weft plan apply --------------------===//
//
// Both take a run as it stands, carry out the `freeze` and `prune` statements of
// a plan at once, and write a new run that training goes on from.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Command.h"
#include "tools/weft/Freeze.h"
#include "tools/weft/Phases.h"

#include "runtime/core/File.h"
#include "runtime/data/Corpus.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/Migrate.h"
#include "runtime/train/State.h"

#include "absl/strings/str_cat.h"

#include <filesystem>

using namespace weft;
namespace cl = llvm::cl;

namespace {

/// A run as it stands, with the plan in force.
struct Applied {
  std::unique_ptr<Program> program;
  rt::CheckpointInfo info;
  std::string checkpoint, folder; // folder: where relative paths of plans start
  Request request;
};

absl::StatusOr<Applied> openApplied(const std::string &run, Request request, const std::string &planText) {
  Applied applied;
  absl::StatusOr<std::string> checkpoint = rt::findCheckpoint(run);
  if (!checkpoint.ok())
    return checkpoint.status();
  absl::StatusOr<rt::CheckpointInfo> info = rt::readCheckpointInfo(*checkpoint);
  if (!info.ok())
    return info.status();
  absl::StatusOr<rt::FreezeRecord> record = rt::readFreezeRecord(info->decisions);
  if (!record.ok())
    return record.status();
  request.path = absl::StrCat(*checkpoint, "/run.weft");
  request.text = absl::StrCat(info->source, planText);
  request.fromRun = request.needsRecipe = true;
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!program.ok())
    return program.status();
  applied.program = *std::move(program);
  adoptRecord(*applied.program, *std::move(record));
  applied.info = *std::move(info);
  applied.checkpoint = *checkpoint;
  applied.folder = std::filesystem::path(request.path).parent_path().string();
  applied.request = std::move(request);
  return applied;
}

absl::StatusOr<std::unique_ptr<rt::Machine>> machineOf(const Applied &applied) {
  PipelineOptions options = shapesOf(*applied.program->recipe);
  options.programs = {"micro", "update", "eval"};
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine =
      makeMachine(*applied.program, options, applied.request, {});
  if (!machine.ok())
    return machine;
  absl::Status status = rt::initializeState(**machine, applied.program->recipe->seed);
  return status.ok() ? std::move(machine) : absl::StatusOr<std::unique_ptr<rt::Machine>>(status);
}

/// Rows to calibrate on: those that a run with this plan would have left out.
absl::StatusOr<std::optional<rt::CalibrationSplit>> splitOf(const Applied &applied) {
  const CalibrationNeed need = calibrationNeed(*applied.program);
  if (need.rows == 0)
    return std::nullopt;
  rt::Recipe recipe = runtimeRecipe(*applied.program);
  lang::Bindings names = applied.program->model.bindings();
  auto vocab = names.find("vocab");
  absl::StatusOr<rt::Dataset> data = rt::loadDataset(
      recipe, vocab == names.end() ? 0 : static_cast<int64_t>(vocab->second.number), applied.folder);
  if (!data.ok())
    return data.status();
  if (!data->train)
    return absl::InvalidArgumentError("the recipe has no text to calibrate on");
  llvm::errs() << "weft: calibrating on the end of the training text, which the run may have trained on\n";
  absl::StatusOr<rt::CalibrationSplit> split =
      rt::splitCalibration(data->train, recipe, need.rows, need.budget);
  return split.ok() ? absl::StatusOr<std::optional<rt::CalibrationSplit>>(*std::move(split)) : split.status();
}

/// Carries out every statement that is left; the machine with what remains.
absl::StatusOr<std::unique_ptr<rt::Machine>> carryOut(Applied &applied, const rt::Ranking *earlier,
                                                      std::vector<rt::OrderedJson> &reports) {
  Program &program = *applied.program;
  if (absl::Status status = prepareFreezing(program, applied.folder, std::nullopt, program.freeze);
      !status.ok())
    return status;
  absl::StatusOr<std::optional<rt::CalibrationSplit>> split = splitOf(applied);
  if (!split.ok())
    return split.status();
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = machineOf(applied);
  if (!machine.ok())
    return machine;
  if (absl::Status status =
          rt::loadCheckpoint(applied.checkpoint, **machine, rt::LoadPart::ParametersAndMoments);
      !status.ok())
    return status;
  for (const Statement &statement : statementsOf(program))
    while (!program.freeze.statements[statement.name].done) {
      FreezeContext context{
          program,           applied.request,         **machine, split->has_value() ? &**split : nullptr,
          applied.info.step, applied.info.totalSteps, earlier};
      absl::StatusOr<FreezeOutcome> outcome = decide(context, statement);
      if (!outcome.ok())
        return outcome.status();
      outcome->record.events.push_back(rt::Json(outcome->report));
      adoptRecord(program, outcome->record);
      absl::StatusOr<std::unique_ptr<rt::Machine>> next = machineOf(applied);
      if (!next.ok())
        return next;
      if (absl::Status status = rt::migrateState(**machine, **next, outcome->given); !status.ok())
        return status;
      machine = std::move(next);
      llvm::outs() << outcome->table;
      reports.push_back(std::move(outcome->report));
    }
  return machine;
}

absl::Status saveRun(const Applied &applied, const rt::Machine &machine,
                     const std::vector<rt::OrderedJson> &reports, const std::string &out) {
  absl::StatusOr<rt::RunDirectory> run = rt::RunDirectory::create(out, applied.program->runText);
  if (!run.ok())
    return run.status();
  for (const rt::OrderedJson &report : reports)
    if (absl::Status status = run->log(report); !status.ok())
      return status;
  if (absl::Status status =
          rt::writeFileAtomic(out + "/heads.json", headsFile(applied.program->freeze).dump(2) + "\n");
      !status.ok())
    return status;
  rt::CheckpointInfo info = applied.info;
  info.source = applied.program->runText;
  info.build = machine.executable().build;
  if (!info.decisions.is_object())
    info.decisions = rt::Json::object();
  info.decisions["freeze"] = rt::toJson(applied.program->freeze);
  absl::StatusOr<std::string> saved = rt::saveCheckpoint(run->checkpoints(), machine, info, 1);
  if (!saved.ok())
    return saved.status();
  llvm::outs() << "saved " << *saved << "; go on with: weft train --resume " << out << "\n";
  return absl::OkStatus();
}

/// What both commands take.
struct ApplyFlags {
  cl::opt<std::string> run{cl::Positional, cl::Required, cl::desc("RUN"), cl::cat(flagCategory())};
  cl::opt<std::string> out{"out", cl::Required, cl::desc("the new run"), cl::value_desc("DIR"),
                           cl::cat(flagCategory())};
  cl::opt<std::string> against{"against",
                               cl::desc("print how far the choice agrees with this earlier ranking"),
                               cl::value_desc("HEADS.json"), cl::cat(flagCategory())};
  DeviceFlags device;
};

/// Carries out `plans`, or those that `planText` adds to the run's text.
int apply(const ApplyFlags &flags, std::vector<std::string> plans, const std::string &planText) {
  std::optional<rt::Ranking> earlier;
  if (!flags.against.empty()) {
    absl::StatusOr<rt::Ranking> read = rt::readRanking(flags.against);
    if (!read.ok())
      return fail(read.status());
    earlier = *std::move(read);
  }
  Request request;
  flags.device.apply(request);
  request.plans = std::move(plans);
  absl::StatusOr<Applied> applied = openApplied(flags.run, std::move(request), planText);
  if (!applied.ok())
    return fail(applied.status());
  std::vector<rt::OrderedJson> reports;
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine =
      carryOut(*applied, earlier ? &*earlier : nullptr, reports);
  if (!machine.ok())
    return fail(machine.status());
  if (absl::Status status = saveRun(*applied, **machine, reports, flags.out); !status.ok())
    return fail(status);
  return 0;
}

/// block.3.attn -> block[..].attn
std::string addressOf(const std::string &site) {
  std::string address;
  for (size_t at = 0; at < site.size();) {
    if (site[at] == '.' && at + 1 < site.size() && std::isdigit(static_cast<unsigned char>(site[at + 1]))) {
      address += "[..]";
      for (++at; at < site.size() && std::isdigit(static_cast<unsigned char>(site[at])); ++at) {
      }
    } else {
      address += site[at++];
    }
  }
  return address;
}

/// The plan that `weft freeze` writes for a run.
absl::StatusOr<std::string> planFor(const std::string &run, const std::string &rate, const std::string &by) {
  absl::StatusOr<Applied> stands = openApplied(run, Request(), "");
  if (!stands.ok())
    return stands.status();
  absl::StatusOr<lang::Outline> outline = lang::outlineOf(stands->program->model);
  if (!outline.ok())
    return outline.status();
  std::set<std::string> addresses;
  for (const lang::HeadSite &site : outline->sites)
    addresses.insert(addressOf(site.path));
  if (addresses.size() != 1)
    return absl::InvalidArgumentError(absl::StrCat("the model has ", addresses.size(),
                                                   " kinds of attends: write a plan with an address and use "
                                                   "`weft plan apply`"));
  return absl::StrCat("\nplan frozen_at_", stands->info.step, " for ", stands->program->model.name,
                      " { freeze ", rate, " of ", *addresses.begin(), ".heads[..] at step 0 { by = ", by,
                      " } }\n");
}

} // namespace

int weft::freezeCommand(int argc, const char **argv) {
  ApplyFlags flags;
  cl::opt<std::string> rate("rate", cl::desc("share of the heads, or their number"), cl::value_desc("25%"),
                            cl::init("25%"), cl::cat(flagCategory()));
  cl::opt<std::string> by("by", cl::desc("how heads are chosen (docs/language.md)"), cl::value_desc("SCORE"),
                          cl::init("variance"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "gives heads of a trained model fixed patterns, as a new run",
                  "  weft freeze runs/first --rate 25% --out runs/frozen\n"))
    return kUsage;
  absl::StatusOr<std::string> text = planFor(flags.run, rate, by);
  return text.ok() ? apply(flags, {}, *text) : fail(text.status());
}

int weft::planApply(int argc, const char **argv) {
  ApplyFlags flags;
  cl::opt<std::string> plan(cl::Positional, cl::Required, cl::desc("[FILE:]PLAN"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "carries out freeze and prune of a plan on a trained model, as a new run",
                  "  weft plan apply runs/first plans.weft:quarter --out runs/frozen\n"))
    return kUsage;
  return apply(flags, {plan}, "");
}

//===- Loaded.cpp - A model with weights, ready to run --------------------===//

#include "tools/weft/Loaded.h"

#include "tools/weft/Freeze.h"
#include "tools/weft/WindowPlans.h"

#include "runtime/train/Checkpoint.h"
#include "runtime/train/State.h"

#include <filesystem>

using namespace weft;

namespace {

/// A checkpoint and what plans had decided by then.
struct Found {
  std::string checkpoint;
  rt::FreezeRecord record;
};

} // namespace

/// The text that a checkpoint was trained with, as a request.
static absl::StatusOr<Found> describeCheckpoint(Request &request) {
  absl::StatusOr<std::string> checkpoint = rt::findCheckpoint(request.path);
  if (!checkpoint.ok())
    return checkpoint.status();
  absl::StatusOr<rt::CheckpointInfo> info = rt::readCheckpointInfo(*checkpoint);
  if (!info.ok())
    return info.status();
  request.path = *checkpoint + "/run.weft";
  request.text = info->source;
  request.fromRun = true;
  absl::StatusOr<rt::FreezeRecord> record = rt::readFreezeRecord(info->decisions);
  if (!record.ok())
    return record.status();
  return Found{*checkpoint, *std::move(record)};
}

/// Patterns say nothing beyond the positions that they were calibrated for.
static absl::Status checkPositions(const Program &program, int64_t positions) {
  if (program.freeze.frozen.empty() || positions <= program.freeze.positions)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the patterns of frozen heads have ", program.freeze.positions, " positions, asked for are ", positions,
      ": use rows of at most ", program.freeze.positions));
}

absl::StatusOr<LoadedText> weft::loadText(Request &request) {
  LoadedText loaded;
  rt::FreezeRecord record;
  if (!isModelPath(request.path)) {
    absl::StatusOr<Found> found = describeCheckpoint(request);
    if (!found.ok())
      return found.status();
    loaded.checkpoint = found->checkpoint;
    record = std::move(found->record);
  }
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!program.ok())
    return program.status();
  loaded.program = std::move(*program);
  adoptRecord(*loaded.program, std::move(record));
  return loaded;
}

absl::StatusOr<Loaded>
weft::loadModel(Request request, const std::function<void(const Program &, PipelineOptions &)> &shapes) {
  absl::StatusOr<LoadedText> text = loadText(request);
  if (!text.ok())
    return text.status();
  if (absl::Status status = refuseUndecided(*text->program); !status.ok())
    return status;
  Loaded loaded{std::move(text->program), nullptr, text->checkpoint, nullptr};
  PipelineOptions options;
  if (loaded.program->recipe)
    options = shapesOf(*loaded.program->recipe);
  shapes(*loaded.program, options);
  if (absl::Status status = checkPositions(*loaded.program, options.positions); !status.ok())
    return status;
  if (llvm::is_contained(options.programs, "eval") && evaluatesLive(*loaded.program, loaded.checkpoint))
    options.programs.insert(options.programs.end(), {"micro", "observe"});
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = makeMachine(*loaded.program, options, request, {});
  if (!machine.ok())
    return machine.status();
  loaded.machine = std::move(*machine);
  // Tables and caches start by their rules; a checkpoint then brings the weights.
  uint64_t seed = loaded.program->recipe ? loaded.program->recipe->seed : 0;
  if (absl::Status status = rt::initializeState(*loaded.machine, seed); !status.ok())
    return status;
  if (!loaded.checkpoint.empty())
    if (absl::Status status = rt::loadCheckpoint(loaded.checkpoint, *loaded.machine, rt::LoadPart::Parameters,
                                                 loaded.program->model.dropped);
        !status.ok())
      return status;
  absl::StatusOr<std::unique_ptr<rt::WindowControl>> windows =
      startWindows(*loaded.program, *loaded.machine, loaded.checkpoint);
  if (!windows.ok())
    return windows.status();
  loaded.windows = *std::move(windows);
  return loaded;
}

absl::StatusOr<std::shared_ptr<const rt::Tokenizer>> weft::tokenizerOf(const Program &program) {
  if (!program.recipe)
    return rt::makeTokenizer("bytes");
  return rt::makeTokenizer(program.recipe->tokenizer, program.recipe->tokenizerCut);
}

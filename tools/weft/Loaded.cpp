//===- Loaded.cpp - A model with weights, ready to run --------------------===//

#include "tools/weft/Loaded.h"

#include "runtime/train/Checkpoint.h"
#include "runtime/train/State.h"

#include <filesystem>

using namespace weft;

/// The text that a checkpoint was trained with, as a request.
static absl::StatusOr<std::string> describeCheckpoint(Request &request) {
  absl::StatusOr<std::string> checkpoint = rt::findCheckpoint(request.path);
  if (!checkpoint.ok())
    return checkpoint.status();
  absl::StatusOr<rt::CheckpointInfo> info = rt::readCheckpointInfo(*checkpoint);
  if (!info.ok())
    return info.status();
  request.path = *checkpoint + "/run.weft";
  request.text = info->source;
  request.fromRun = true;
  return checkpoint;
}

absl::StatusOr<Loaded>
weft::loadModel(Request request, const std::function<void(const Program &, PipelineOptions &)> &shapes) {
  Loaded loaded;
  if (!request.path.ends_with(".weft") || std::filesystem::is_directory(request.path)) {
    absl::StatusOr<std::string> checkpoint = describeCheckpoint(request);
    if (!checkpoint.ok())
      return checkpoint.status();
    loaded.checkpoint = *checkpoint;
  }
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!program.ok())
    return program.status();
  loaded.program = std::move(*program);
  PipelineOptions options;
  if (loaded.program->recipe)
    options = shapesOf(*loaded.program->recipe);
  shapes(*loaded.program, options);
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = makeMachine(*loaded.program, options, request, {});
  if (!machine.ok())
    return machine.status();
  loaded.machine = std::move(*machine);
  // Tables and caches start by their rules; a checkpoint then brings the weights.
  uint64_t seed = loaded.program->recipe ? loaded.program->recipe->seed : 0;
  if (absl::Status status = rt::initializeState(*loaded.machine, seed); !status.ok())
    return status;
  if (!loaded.checkpoint.empty())
    if (absl::Status status =
            rt::loadCheckpoint(loaded.checkpoint, *loaded.machine, rt::LoadPart::Parameters);
        !status.ok())
      return status;
  return loaded;
}

absl::StatusOr<std::shared_ptr<const rt::Tokenizer>> weft::tokenizerOf(const Program &program) {
  if (!program.recipe)
    return rt::makeTokenizer("bytes");
  return rt::makeTokenizer(program.recipe->tokenizer, program.recipe->tokenizerCut);
}

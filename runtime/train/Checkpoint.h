//===- Checkpoint.h - Saving a run so that it goes on exactly ---*- C++ -*-===//
//
//   checkpoints/step-00000500/model.safetensors   parameters by path
//                             state.safetensors   moments by name
//                             control.safetensors what plans own, if they own anything
//                             controller.safetensors  what chooses windows (runtime/train/Control.h)
//                             run.json            CheckpointInfo
//   checkpoints/latest        the newest one's folder name, written last
//
// A folder is written under a hidden name, flushed and renamed, so one that has
// its final name is complete. Gradients and caches are not kept: between steps
// they are zero, or worth nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/core/Json.h"
#include "runtime/train/Control.h"

#include <cstdint>
#include <set>
#include <string>

namespace weft::rt {

/// What run.json holds. Batches are pure functions of the step number, so `step`
/// is the data's position too.
struct CheckpointInfo {
  std::string model, build; // name of the model; build of the compiler
  int64_t step = 0, totalSteps = 0;
  int64_t tokens = 0, skipped = 0;
  double seconds = 0;
  uint64_t seed = 0;
  int64_t rows = 0, positions = 0;     // of a step
  std::string source;                  // text of run.weft: model, plans, recipe
  Json decisions;                      // what plans decided so far, or null
  std::optional<ControlState> control; // of the windows; in controller.safetensors, read by readControlState
};

/// Bytes a checkpoint of `executable` takes.
uint64_t checkpointBytes(const Executable &executable, const CheckpointInfo &info);

/// Saves `machine` into `folder` (checkpoints/), then removes older ones beyond
/// `keep` (at least the new one stays; nothing is removed before the new one and
/// `latest` are on disk). Returns the new checkpoint's folder.
/// Errors: ResourceExhausted with path, bytes needed and free; FailedPrecondition
/// names a parameter or moment that is not finite: broken weights are not saved.
absl::StatusOr<std::string> saveCheckpoint(const std::string &folder, const Machine &machine,
                                           const CheckpointInfo &info, int64_t keep);

/// Removes what killed processes left half-written in `folder`.
void removeLeftovers(const std::string &folder);

/// The checkpoint that `path` means: itself; the latest of a run directory or of
/// its checkpoints/ (if `latest` is missing or names none, the highest step).
/// Errors: NotFound says what was looked for.
absl::StatusOr<std::string> findCheckpoint(const std::string &path);

/// Errors: DataLoss names file and field.
absl::StatusOr<CheckpointInfo> readCheckpointInfo(const std::string &checkpoint);

/// What the controller of `checkpoint` carried, or nothing. Errors: DataLoss names the file.
absl::StatusOr<std::optional<ControlState>> readControlState(const std::string &checkpoint);

enum class LoadPart { Parameters, ParametersAndMoments };

/// Writes a checkpoint into the state of `machine`. Names and shapes are compared
/// both ways before anything is written. F32 values may be read into an F64
/// machine and back. Gradients are zeroed; with `Parameters`, moments too.
/// Control entries that the checkpoint lacks start anew: a plan may be applied to
/// a checkpoint that was trained without it.
/// `dropped` are paths of branches (`block.3.ffn`) that a plan made 0: what the
/// checkpoint has under them is left where it is.
/// Errors: DataLoss of the files; FailedPrecondition lists names that one side lacks.
absl::Status loadCheckpoint(const std::string &checkpoint, Machine &machine, LoadPart part,
                            const std::set<std::string, std::less<>> &dropped = {});

} // namespace weft::rt

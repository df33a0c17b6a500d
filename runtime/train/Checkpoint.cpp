//===- Checkpoint.cpp - Saving a run so that it goes on exactly -*- C++ -*-===//
#include "runtime/train/Checkpoint.h"

#include "runtime/core/File.h"
#include "runtime/core/Safetensors.h"
#include "runtime/train/BoundProgram.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::rt {
namespace fs = std::filesystem;

namespace {

constexpr const char *kModelFile = "model.safetensors";
constexpr const char *kStateFile = "state.safetensors";
constexpr const char *kControlFile = "control.safetensors";
constexpr const char *kInfoFile = "run.json";
constexpr const char *kPrefix = "step-";

/// Files of tensors and what they hold. Control entries have a file where there are any.
constexpr std::pair<const char *, StateEntry::Role> kFiles[] = {{kModelFile, StateEntry::Role::Parameter},
                                                                {kStateFile, StateEntry::Role::Moment},
                                                                {kControlFile, StateEntry::Role::Control}};

std::vector<TensorToWrite> entriesOf(const Executable &executable, StateEntry::Role role) {
  std::vector<TensorToWrite> entries;
  for (const StateEntry &entry : executable.states)
    if (entry.role == role)
      entries.push_back({entry.name, entry.type, entry.shape});
  return entries;
}

std::map<std::string, std::string> metadataOf(const CheckpointInfo &info) {
  return {{"format", "weft"}, {"model", info.model}, {"step", absl::StrCat(info.step)}};
}

std::string infoText(const CheckpointInfo &info) {
  OrderedJson json = {{"format", 1},
                      {"model", info.model},
                      {"build", info.build},
                      {"step", info.step},
                      {"total_steps", info.totalSteps},
                      {"tokens", info.tokens},
                      {"skipped", info.skipped},
                      {"seconds", info.seconds},
                      {"seed", info.seed},
                      {"rows", info.rows},
                      {"positions", info.positions},
                      {"decisions", info.decisions},
                      {"controller", info.control.has_value()},
                      {"source", info.source}};
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::vector<TensorToWrite> controlEntries(const ControlState &control) {
  std::vector<TensorToWrite> entries;
  for (const auto &[name, tensor] : control.tensors)
    entries.push_back({name, tensor.type, tensor.shape});
  return entries;
}

std::map<std::string, std::string> controlMetadata(const CheckpointInfo &info) {
  std::map<std::string, std::string> metadata = metadataOf(info);
  metadata["controller"] = dumpJson(info.control->json);
  return metadata;
}

absl::Status writeControl(const std::string &path, const CheckpointInfo &info) {
  auto value = [&](const std::string &name) -> absl::StatusOr<Tensor> {
    for (const auto &[known, tensor] : info.control->tensors)
      if (known == name)
        return tensor;
    return absl::NotFoundError(name);
  };
  return writeSafetensors(path, controlEntries(*info.control), value, controlMetadata(info));
}

/// Step number of a folder named step-00000500, or -1.
int64_t stepOf(const fs::path &folder) {
  const std::string name = folder.filename().string();
  int64_t step = -1;
  if (name.rfind(kPrefix, 0) != 0 || !absl::SimpleAtoi(name.substr(5), &step) || step < 0)
    return -1;
  return step;
}

/// Complete checkpoints, highest step first.
std::vector<fs::path> checkpointsIn(const std::string &folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (stepOf(entry.path()) >= 0 && fs::exists(entry.path() / kInfoFile, error))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end(),
            [](const fs::path &a, const fs::path &b) { return stepOf(a) > stepOf(b); });
  return found;
}

absl::Status renameError(const fs::path &from, const fs::path &to) {
  return absl::UnavailableError(
      absl::StrCat("can't rename '", from.string(), "' to '", to.string(), "': ", std::strerror(errno)));
}

/// Moves `made` to `final`. One that stands there already is swapped out in one
/// move where the file system can, so the name never lacks a complete checkpoint.
absl::Status moveIntoPlace(const fs::path &made, const fs::path &final) {
  std::error_code ignored;
  if (!fs::exists(final, ignored))
    return ::rename(made.c_str(), final.c_str()) == 0 ? absl::OkStatus() : renameError(made, final);
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE) != 0) {
    const fs::path old = final.parent_path() / absl::StrCat(".old-", final.filename().string());
    fs::remove_all(old, ignored);
    if (::rename(final.c_str(), old.c_str()) != 0)
      return renameError(final, old);
    if (::rename(made.c_str(), final.c_str()) != 0)
      return renameError(made, final);
    fs::remove_all(old, ignored);
    return absl::OkStatus();
  }
  fs::remove_all(made, ignored);
  return absl::OkStatus();
}

/// Removes the checkpoints before `step` that are more than `keep` - 1.
void rotate(const std::string &folder, int64_t step, int64_t keep) {
  std::error_code ignored;
  int64_t kept = 1;
  for (const fs::path &checkpoint : checkpointsIn(folder)) {
    if (stepOf(checkpoint) >= step || kept++ < keep)
      continue;
    // Renamed first: a half-removed folder must not look like a checkpoint.
    const fs::path trash = checkpoint.parent_path() / absl::StrCat(".old-", checkpoint.filename().string());
    fs::rename(checkpoint, trash, ignored);
    fs::remove_all(trash, ignored);
  }
}

absl::Status writeContents(const std::string &made, const Machine &machine, const CheckpointInfo &info) {
  const Executable &executable = machine.executable();
  auto value = [&](const std::string &name) -> absl::StatusOr<Tensor> {
    absl::StatusOr<Tensor> tensor = machine.readState(name);
    if (tensor.ok() && !allFinite(*tensor))
      return absl::FailedPreconditionError(absl::StrCat("'", name, "' is not finite at step ", info.step,
                                                        ": not saved, the checkpoints before it stay; ",
                                                        "resume one with a lower rate or clip"));
    return tensor;
  };
  for (auto [file, role] : kFiles) {
    std::vector<TensorToWrite> entries = entriesOf(executable, role);
    if (role == StateEntry::Role::Control && entries.empty())
      continue;
    if (absl::Status status =
            writeSafetensors(absl::StrCat(made, "/", file), std::move(entries), value, metadataOf(info));
        !status.ok())
      return status;
  }
  if (info.control)
    if (absl::Status status = writeControl(absl::StrCat(made, "/controller.safetensors"), info); !status.ok())
      return status;
  return writeFileAtomic(absl::StrCat(made, "/", kInfoFile), infoText(info));
}

} // namespace

uint64_t checkpointBytes(const Executable &executable, const CheckpointInfo &info) {
  uint64_t bytes = infoText(info).size();
  for (auto [file, role] : kFiles)
    if (std::vector<TensorToWrite> entries = entriesOf(executable, role);
        role != StateEntry::Role::Control || !entries.empty())
      bytes += safetensorsBytes(std::move(entries), metadataOf(info));
  if (info.control)
    bytes += safetensorsBytes(controlEntries(*info.control), controlMetadata(info));
  return bytes;
}

absl::StatusOr<std::string> saveCheckpoint(const std::string &folder, const Machine &machine,
                                           const CheckpointInfo &info, int64_t keep) {
  const std::string name = absl::StrFormat("%s%08d", kPrefix, info.step);
  const std::string made = absl::StrCat(folder, "/.tmp-", name, "-", ::getpid());
  const std::string final = absl::StrCat(folder, "/", name);
  std::error_code ignored;
  fs::remove_all(made, ignored);
  if (absl::Status status = makeFolders(made); !status.ok())
    return status;
  const uint64_t needed = checkpointBytes(machine.executable(), info);
  absl::StatusOr<uint64_t> available = freeBytes(folder);
  absl::Status status;
  if (available.ok() && *available < needed)
    status = absl::ResourceExhaustedError(absl::StrCat("no room for the checkpoint '", final, "': needed ",
                                                       describeBytes(needed), ", free ",
                                                       describeBytes(*available)));
  if (status.ok())
    status = writeContents(made, machine, info);
  if (status.ok())
    status = moveIntoPlace(made, final);
  if (!status.ok()) {
    fs::remove_all(made, ignored);
    return status;
  }
  if (status = syncFolder(folder); !status.ok())
    return status;
  if (status = writeFileAtomic(absl::StrCat(folder, "/latest"), absl::StrCat(name, "\n")); !status.ok())
    return status;
  rotate(folder, info.step, std::max<int64_t>(keep, 1));
  return final;
}

void removeLeftovers(const std::string &folder) {
  std::error_code ignored;
  std::vector<fs::path> hidden;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, ignored))
    if (const std::string name = entry.path().filename().string();
        name.rfind(".tmp-", 0) == 0 || name.rfind(".old-", 0) == 0 || name.rfind(".latest.tmp-", 0) == 0)
      hidden.push_back(entry.path());
  for (const fs::path &path : hidden)
    fs::remove_all(path, ignored);
}

absl::StatusOr<std::string> findCheckpoint(const std::string &path) {
  std::error_code ignored;
  if (fs::exists(fs::path(path) / kInfoFile, ignored))
    return path;
  std::string folder = path;
  if (fs::is_directory(fs::path(path) / "checkpoints", ignored))
    folder = (fs::path(path) / "checkpoints").string();
  if (absl::StatusOr<std::string> latest = readFile(absl::StrCat(folder, "/latest"), 4096); latest.ok()) {
    const std::string name = latest->substr(0, latest->find_first_of("\r\n"));
    const fs::path named = fs::path(folder) / name;
    if (stepOf(named) >= 0 && fs::exists(named / kInfoFile, ignored))
      return named.string();
  }
  std::vector<fs::path> all = checkpointsIn(folder);
  if (all.empty())
    return absl::NotFoundError(absl::StrCat("no checkpoint at '", path, "': expected ", kInfoFile,
                                            " in it, or in checkpoints/step-*/"));
  return all.front().string();
}

} // namespace weft::rt

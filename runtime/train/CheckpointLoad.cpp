//===- CheckpointLoad.cpp - Reading a saved run -----------------*- C++ -*-===//
#include "runtime/core/File.h"
#include "runtime/core/Safetensors.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/State.h"

#include <filesystem>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::rt {
namespace {

constexpr uint64_t kMaxInfoBytes = 64u << 20;

/// Stores `value` in `into`, or keeps the first error in `status`.
template <typename T> void take(absl::StatusOr<T> value, T &into, absl::Status &status) {
  if (value.ok())
    into = *std::move(value);
  else if (status.ok())
    status = value.status();
}

/// "a, b, c and 12 more".
std::string someOf(const std::vector<std::string> &names) {
  constexpr size_t kShown = 5;
  const std::vector<std::string> first(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown)));
  std::string text = absl::StrJoin(first, ", ");
  if (names.size() > kShown)
    absl::StrAppend(&text, " and ", names.size() - kShown, " more");
  return text;
}

using Paths = std::set<std::string, std::less<>>;

/// Whether the entry `name` (`block.3.ffn.up`, `adamw.m/block.3.ffn.up`) belongs to one of `branches`.
bool isUnder(const Paths &branches, std::string_view name) {
  name.remove_prefix(name.find('/') + 1); // npos + 1 is 0
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1))
    if (branches.contains(name.substr(0, dot)))
      return true;
  return false;
}

/// Names and shapes of the entries of `role` against those of `file`, both ways.
absl::Status compare(const Executable &executable, StateEntry::Role role, const SafetensorsFile &file,
                     const Paths &dropped) {
  std::vector<std::string> absent, unknown;
  std::set<std::string> known;
  for (const StateEntry &entry : executable.states) {
    if (entry.role != role)
      continue;
    known.insert(entry.name);
    auto found = file.tensors().find(entry.name);
    if (found == file.tensors().end())
      absent.push_back(entry.name);
    else if (found->second.shape != entry.shape)
      return absl::FailedPreconditionError(absl::StrCat("'", file.path(), "' tensor '", entry.name,
                                                        "': the model has shape ", describeShape(entry.shape),
                                                        ", the file ", describeShape(found->second.shape)));
  }
  for (const auto &[name, info] : file.tensors())
    if (!known.contains(name) && !isUnder(dropped, name))
      unknown.push_back(name);
  if (absent.empty() && unknown.empty())
    return absl::OkStatus();
  std::string text = absl::StrCat("'", file.path(), "' does not fit the model '", executable.model, "'");
  if (!absent.empty())
    absl::StrAppend(&text, "; it lacks: ", someOf(absent));
  if (!unknown.empty())
    absl::StrAppend(&text, "; the model lacks: ", someOf(unknown));
  return absl::FailedPreconditionError(text);
}

absl::Status copyIn(Machine &machine, StateEntry::Role role, const SafetensorsFile &file) {
  for (const StateEntry &entry : machine.executable().states) {
    if (entry.role != role)
      continue;
    absl::StatusOr<Tensor> value = file.readAs(entry.name, entry.type);
    if (!value.ok())
      return value.status();
    if (absl::Status status = machine.writeState(entry.name, *value); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

/// Control entries from their file, where it is there and has them.
absl::Status copyControl(Machine &machine, const std::string &path) {
  std::optional<SafetensorsFile> file;
  if (std::error_code ignored; std::filesystem::exists(path, ignored)) {
    absl::StatusOr<SafetensorsFile> opened = SafetensorsFile::open(path);
    if (!opened.ok())
      return opened.status();
    file = *std::move(opened);
  }
  for (const StateEntry &entry : machine.executable().states) {
    if (entry.role != StateEntry::Role::Control)
      continue;
    absl::Status status;
    const bool held = file && file->tensors().contains(entry.name);
    if (!held && entry.name.starts_with("pattern/")) {
      status =
          absl::DataLossError(absl::StrCat("'", path, "': tensor '", entry.name, "' not found, but ",
                                           "the checkpoint's decisions froze these heads; restore the file"));
    } else if (!held) {
      status = startControl(machine, entry);
    } else if (const std::vector<int64_t> &shape = file->tensors().at(entry.name).shape;
               shape != entry.shape) {
      status = absl::FailedPreconditionError(
          absl::StrCat("'", path, "' tensor '", entry.name, "': the plan has shape ",
                       describeShape(entry.shape), ", the file ", describeShape(shape)));
    } else {
      absl::StatusOr<Tensor> value = file->readAs(entry.name, entry.type);
      status = value.ok() ? machine.writeState(entry.name, *value) : value.status();
    }
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<CheckpointInfo> readCheckpointInfo(const std::string &checkpoint) {
  const std::string path = absl::StrCat(checkpoint, "/run.json"), what = absl::StrCat("'", path, "'");
  absl::StatusOr<std::string> text = readFile(path, kMaxInfoBytes);
  if (!text.ok())
    return text.status();
  absl::StatusOr<Json> json = parseJson(*text, what);
  if (!json.ok())
    return json.status();
  absl::StatusOr<int64_t> format = int64Of(*json, "format", what);
  if (!format.ok())
    return format.status();
  if (*format != 1)
    return absl::DataLossError(
        absl::StrCat(what, ": expected format 1, found ", *format, ": written by a newer version"));
  CheckpointInfo info;
  absl::Status status;
  take(stringOf(*json, "model", what), info.model, status);
  take(stringOf(*json, "build", what), info.build, status);
  take(stringOf(*json, "source", what), info.source, status);
  take(int64Of(*json, "step", what), info.step, status);
  take(int64Of(*json, "total_steps", what), info.totalSteps, status);
  take(int64Of(*json, "tokens", what), info.tokens, status);
  take(int64Of(*json, "skipped", what), info.skipped, status);
  take(int64Of(*json, "rows", what), info.rows, status);
  take(int64Of(*json, "positions", what), info.positions, status);
  take(numberOf(*json, "seconds", what), info.seconds, status);
  take(uint64Of(*json, "seed", what), info.seed, status);
  if (!status.ok())
    return status;
  info.decisions = json->value("decisions", Json());
  if (info.step < 0 || info.skipped < 0 || info.skipped > info.step || info.tokens < 0)
    return absl::DataLossError(absl::StrCat(what, ": step ", info.step, ", skipped ", info.skipped,
                                            " and tokens ", info.tokens, " can't be"));
  return info;
}

absl::StatusOr<std::optional<ControlState>> readControlState(const std::string &checkpoint) {
  const std::string path = absl::StrCat(checkpoint, "/controller.safetensors");
  if (std::error_code ignored; !std::filesystem::exists(path, ignored)) {
    absl::StatusOr<std::string> text = readFile(absl::StrCat(checkpoint, "/run.json"), kMaxInfoBytes);
    absl::StatusOr<Json> info = text.ok() ? parseJson(*text, "run.json") : text.status();
    if (info.ok() && info->is_object() && info->value("controller", Json()) == true)
      return absl::DataLossError(absl::StrCat("'", path,
                                              "' not found, but run.json says that the run's windows ",
                                              "have a controller, which would start anew: restore the file"));
    return std::nullopt;
  }
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.ok())
    return file.status();
  auto text = file->metadata().find("controller");
  if (text == file->metadata().end())
    return absl::DataLossError(absl::StrCat("'", path, "': expected `controller` in its metadata"));
  absl::StatusOr<Json> json = parseJson(text->second, absl::StrCat("'", path, "' controller"));
  if (!json.ok())
    return json.status();
  ControlState state{*std::move(json), {}};
  for (const auto &[name, info] : file->tensors()) {
    absl::StatusOr<Tensor> value = file->read(name);
    if (!value.ok())
      return value.status();
    state.tensors.emplace_back(name, *std::move(value));
  }
  return std::optional(std::move(state));
}

absl::Status loadCheckpoint(const std::string &checkpoint, Machine &machine, LoadPart part,
                            const std::set<std::string, std::less<>> &dropped) {
  absl::StatusOr<SafetensorsFile> model =
      SafetensorsFile::open(absl::StrCat(checkpoint, "/model.safetensors"));
  if (!model.ok())
    return model.status();
  const Executable &executable = machine.executable();
  if (absl::Status status = compare(executable, StateEntry::Role::Parameter, *model, dropped); !status.ok())
    return status;
  if (part == LoadPart::ParametersAndMoments) {
    absl::StatusOr<SafetensorsFile> state =
        SafetensorsFile::open(absl::StrCat(checkpoint, "/state.safetensors"));
    if (!state.ok())
      return state.status();
    if (absl::Status status = compare(executable, StateEntry::Role::Moment, *state, dropped); !status.ok())
      return status;
    if (absl::Status status = copyIn(machine, StateEntry::Role::Moment, *state); !status.ok())
      return status;
  } else if (absl::Status status = zeroState(machine, StateEntry::Role::Moment); !status.ok()) {
    return status;
  }
  if (absl::Status status = copyIn(machine, StateEntry::Role::Parameter, *model); !status.ok())
    return status;
  if (absl::Status status = copyControl(machine, absl::StrCat(checkpoint, "/control.safetensors"));
      !status.ok())
    return status;
  return zeroState(machine, StateEntry::Role::Gradient);
}

} // namespace weft::rt

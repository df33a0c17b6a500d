//===- RunDirectory.h - Where a run keeps what it makes ---------*- C++ -*-===//
//
//   run.weft       model, plans and recipe after overrides: repeats the run
//   log.jsonl      a line a logged step, evaluation, ... (runtime/train/Log.h)
//   console.log    what the terminal showed
//   trail/         the IR after every pass
//   checkpoints/   runtime/train/Checkpoint.h
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/train/Log.h"

#include <string>

namespace weft::rt {

class RunDirectory {
public:
  /// Makes it and writes run.weft. Errors: AlreadyExists when it holds a run.
  static absl::StatusOr<RunDirectory> create(const std::string &path, const std::string &source);
  /// Opens one to go on. Errors: NotFound; FailedPrecondition when another
  /// process trains in it.
  static absl::StatusOr<RunDirectory> open(const std::string &path);

  RunDirectory(RunDirectory &&other) noexcept;
  RunDirectory &operator=(RunDirectory &&) = delete;
  ~RunDirectory();

  const std::string &path() const { return root; }
  const std::string &source() const { return text; }
  std::string checkpoints() const { return root + "/checkpoints"; }
  std::string trail() const { return root + "/trail"; }
  std::string consoleLog() const { return root + "/console.log"; }

  /// Removes what `create` made when nothing was trained in it: a run that could not
  /// begin leaves nothing behind. Does nothing to one that was opened.
  void discardUnused();

  /// Writes run.weft anew: a plan was added to the run.
  absl::Status replaceSource(const std::string &source);

  /// Appends a line to log.jsonl.
  absl::Status log(const OrderedJson &line) { return lines.append(dumpJson(line)); }

  /// Drops lines of log.jsonl past `step`, and one that a kill tore: a resumed
  /// run writes them again.
  absl::Status trimLog(int64_t step);

private:
  RunDirectory() = default;
  absl::Status lockAndOpen();
  std::string root, text;
  LineFile lines;
  int lock = -1;
  bool created = false, madeFolder = false;
};

} // namespace weft::rt

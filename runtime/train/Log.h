//===- Log.h - What a run writes while it works -----------------*- C++ -*-===//
//
// log.jsonl for scripts, console.log (and the terminal) for people. A line is
// written whole and at once, so a killed run leaves at most one torn line.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/core/Json.h"

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::rt {

/// Appends to a file, line by line. Errors name path and bytes free.
class LineFile {
public:
  LineFile() = default;
  LineFile(LineFile &&other) noexcept : path(std::move(other.path)), descriptor(other.descriptor) {
    other.descriptor = -1;
  }
  LineFile &operator=(LineFile &&other) noexcept;
  ~LineFile();
  static absl::StatusOr<LineFile> open(const std::string &path);
  absl::Status append(std::string line);

private:
  std::string path;
  int descriptor = -1;
};

/// A step as log.jsonl holds it. `tokens` since the run's start; `rate` of the
/// first optimiser; `skipped` steps since the run's start; `seconds` of training
/// since the run's start, resumes included.
struct TrainLine {
  int64_t step = 0, tokens = 0;
  double loss = 0, rate = 0, gradNorm = 0;
  int64_t skipped = 0;
  double tokensPerSecond = 0, seconds = 0;
};

struct EvalLine {
  int64_t step = 0;
  double loss = 0, perplexity = 0;
  int64_t targets = 0;
  double seconds = 0;
};

/// {"kind":"train","step","tokens","loss","lr","grad_norm","skipped","tokens_per_s","seconds"}
/// A number that is not finite stands as null.
OrderedJson toJson(const TrainLine &line);
/// {"kind":"eval","step","loss","perplexity","targets","seconds"}
OrderedJson toJson(const EvalLine &line);

/// Lines for people: to `stream` (may be null) and to a file (may be closed).
/// On a terminal, status() shows a line that the next one overwrites.
class Console {
public:
  explicit Console(std::FILE *stream = stdout);
  /// Also write every line to `path`.
  absl::Status mirrorTo(const std::string &path);
  void line(const std::string &text);
  void status(const std::string &text);
  bool terminal() const { return isTerminal; }

private:
  void wipe();
  std::FILE *stream;
  bool isTerminal = false, statusShown = false;
  LineFile mirror;
  bool mirrored = false;
};

} // namespace weft::rt

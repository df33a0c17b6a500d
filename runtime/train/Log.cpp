//===- Log.cpp - What a run writes while it works ---------------*- C++ -*-===//
#include "runtime/train/Log.h"

#include "runtime/core/File.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace weft::rt {

LineFile &LineFile::operator=(LineFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(descriptor, other.descriptor);
  return *this;
}

LineFile::~LineFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

absl::StatusOr<LineFile> LineFile::open(const std::string &path) {
  LineFile file;
  file.path = path;
  file.descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file.descriptor < 0)
    return absl::UnavailableError(absl::StrCat("can't open '", path, "' to append: ", std::strerror(errno)));
  return file;
}

absl::Status LineFile::append(std::string line) {
  line.push_back('\n');
  const int error = writeFully(descriptor, line);
  if (error == 0)
    return absl::OkStatus();
  std::string text = absl::StrCat("can't write to '", path, "': ", std::strerror(error), "; needed ",
                                  describeBytes(line.size()));
  if (absl::StatusOr<uint64_t> available = freeBytes(path); available.ok())
    absl::StrAppend(&text, ", free ", describeBytes(*available));
  return absl::ResourceExhaustedError(text);
}

OrderedJson toJson(const TrainLine &line) {
  return {{"kind", "train"},         {"step", line.step},
          {"tokens", line.tokens},   {"loss", line.loss},
          {"lr", line.rate},         {"grad_norm", line.gradNorm},
          {"skipped", line.skipped}, {"tokens_per_s", line.tokensPerSecond},
          {"seconds", line.seconds}};
}

OrderedJson toJson(const EvalLine &line) {
  return {{"kind", "eval"},          {"step", line.step},
          {"loss", line.loss},       {"perplexity", line.perplexity},
          {"targets", line.targets}, {"seconds", line.seconds}};
}

Console::Console(std::FILE *stream) : stream(stream) {
  isTerminal = stream && ::isatty(::fileno(stream)) == 1;
}

absl::Status Console::mirrorTo(const std::string &path) {
  absl::StatusOr<LineFile> file = LineFile::open(path);
  if (!file.ok())
    return file.status();
  mirror = *std::move(file);
  mirrored = true;
  return absl::OkStatus();
}

void Console::wipe() {
  if (statusShown)
    std::fputs("\r\033[K", stream);
  statusShown = false;
}

void Console::line(const std::string &text) {
  if (stream) {
    wipe();
    std::fprintf(stream, "%s\n", text.c_str());
    std::fflush(stream);
  }
  // A mirror that can't be written any more must not stop training: log.jsonl is the record.
  if (mirrored && !mirror.append(text).ok())
    mirrored = false;
}

void Console::status(const std::string &text) {
  if (!isTerminal)
    return;
  wipe();
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
  statusShown = true;
}

} // namespace weft::rt

//===- Ptxas.cpp - Runs ptxas without a shell and reads its log -----------===//
#include "passes/Tile/Ptxas.h"

#include "runtime/core/File.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace weft {

std::vector<std::string> PtxasReport::codes() const {
  std::vector<std::string> codes;
  for (const std::string &line : warnings)
    for (size_t at = line.find("(C"); at != std::string::npos; at = line.find("(C", at + 1)) {
      size_t end = line.find_first_not_of("0123456789", at + 2);
      if (end == std::string::npos || line[end] != ')' || end == at + 2)
        continue;
      std::string code = line.substr(at + 1, end - at - 1);
      if (std::find(codes.begin(), codes.end(), code) == codes.end())
        codes.push_back(code);
    }
  return codes;
}

absl::StatusOr<std::string> findPtxas() {
  auto runs = [](const std::string &path) { return access(path.c_str(), X_OK) == 0; };
  if (const char *given = std::getenv("WEFT_PTXAS"); given && *given) {
    if (runs(given))
      return std::string(given);
    return absl::NotFoundError(absl::StrCat(
        "WEFT_PTXAS is ", given, ": expected a program that can be run; set it to the path of ptxas"));
  }
  const char *path = std::getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path ? path : "", ':'))
    if (std::string candidate = absl::StrCat(folder, "/ptxas"); !folder.empty() && runs(candidate))
      return candidate;
  if (std::string standard = "/usr/local/cuda/bin/ptxas"; runs(standard))
    return standard;
  return absl::NotFoundError(
      "no ptxas in WEFT_PTXAS, on PATH or in /usr/local/cuda/bin: install the CUDA toolkit "
      "(the package that holds nvcc) or leave PTX to the driver");
}

namespace {

/// A folder that goes with what is in it.
class TemporaryFolder {
public:
  static absl::StatusOr<TemporaryFolder> make() {
    const char *base = std::getenv("TMPDIR");
    std::string path = absl::StrCat(base && *base ? base : "/tmp", "/weft-ptxas-XXXXXX");
    if (!mkdtemp(path.data()))
      return absl::UnavailableError(absl::StrCat("no temporary folder ", path, ": ", std::strerror(errno)));
    return TemporaryFolder(path);
  }
  TemporaryFolder(TemporaryFolder &&other) noexcept : path(std::move(other.path)) { other.path.clear(); }
  ~TemporaryFolder() {
    if (path.empty())
      return;
    for (const char *name : kNames)
      unlink(file(name).c_str());
    rmdir(path.c_str());
  }
  std::string file(std::string_view name) const { return path + "/" + std::string(name); }

private:
  explicit TemporaryFolder(std::string path) : path(std::move(path)) {}
  static constexpr std::array<const char *, 3> kNames = {"kernel.ptx", "kernel.cubin", "log"};
  std::string path;
};

/// Runs `arguments`, both outputs into the file `log`. Returns the exit code.
absl::StatusOr<int> runProcess(std::vector<std::string> arguments, const std::string &log) {
  std::vector<char *> pointers;
  for (std::string &argument : arguments)
    pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int error = posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error)
    return absl::UnavailableError(absl::StrCat("can't start ", arguments[0], ": ", std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return absl::UnavailableError(
          absl::StrCat("can't wait for ", arguments[0], ": ", std::strerror(errno)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The integer right before `word` in `line`, or -1: "12 bytes spill stores".
int64_t numberBefore(absl::string_view line, absl::string_view word) {
  size_t at = line.find(word);
  if (at == absl::string_view::npos || at == 0)
    return -1;
  size_t end = line.find_last_not_of(' ', at - 1);
  if (end == absl::string_view::npos)
    return -1;
  size_t begin = line.find_last_not_of("0123456789", end);
  int64_t value;
  return absl::SimpleAtoi(line.substr(begin + 1, end - begin), &value) ? value : -1;
}

} // namespace

PtxasReport parsePtxasLog(std::string_view log) {
  PtxasReport report;
  for (absl::string_view line : absl::StrSplit(absl::string_view(log.data(), log.size()), '\n')) {
    report.registers = std::max(report.registers, numberBefore(line, " registers"));
    report.sharedBytes = std::max(report.sharedBytes, numberBefore(line, " bytes smem"));
    report.stackBytes = std::max(report.stackBytes, numberBefore(line, " bytes stack frame"));
    report.spillStoreBytes = std::max(report.spillStoreBytes, numberBefore(line, " bytes spill stores"));
    report.spillLoadBytes = std::max(report.spillLoadBytes, numberBefore(line, " bytes spill loads"));
    if (line.find("(C") != absl::string_view::npos || line.find("warning") != absl::string_view::npos)
      report.warnings.emplace_back(line);
  }
  return report;
}

absl::StatusOr<PtxasReport> assemble(std::string_view ptx, std::string_view chip,
                                     const std::vector<std::string> &options) {
  auto program = findPtxas();
  if (!program.ok())
    return program.status();
  auto folder = TemporaryFolder::make();
  if (!folder.ok())
    return folder.status();
  std::string source = folder->file("kernel.ptx"), cubin = folder->file("kernel.cubin"),
              log = folder->file("log");
  if (absl::Status written = rt::writeFileAtomic(source, ptx); !written.ok())
    return written;
  std::vector<std::string> arguments = {*program, "-v", "-arch=" + std::string(chip), source, "-o", cubin};
  arguments.insert(arguments.end(), options.begin(), options.end());
  auto code = runProcess(std::move(arguments), log);
  if (!code.ok())
    return code.status();
  auto text = rt::readFile(log, 16 << 20);
  if (!text.ok())
    return text.status();
  if (*code != 0)
    return absl::InvalidArgumentError(absl::StrCat(*program, " refused a kernel for ",
                                                   absl::string_view(chip.data(), chip.size()), " (exit ",
                                                   *code, "): ", text->substr(0, 2000)));
  PtxasReport report = parsePtxasLog(*text);
  auto bytes = rt::readFile(cubin);
  if (!bytes.ok())
    return bytes.status();
  report.cubin = *std::move(bytes);
  return report;
}

absl::Status checkReport(const PtxasReport &report, std::string_view kernel, int64_t spillLimit) {
  absl::string_view name(kernel.data(), kernel.size());
  for (const std::string &code : report.codes()) {
    if (code.substr(0, 3) != "C75" || code == "C7519")
      continue;
    for (const std::string &line : report.warnings)
      if (line.find(code) != std::string::npos)
        return absl::FailedPreconditionError(absl::StrCat("kernel ", name, ": ptxas warns ", code, ": ", line,
                                                          "; expected products that overlap"));
  }
  int64_t spill = std::max(report.spillStoreBytes, report.spillLoadBytes);
  if (spill > spillLimit)
    return absl::FailedPreconditionError(absl::StrCat("kernel ", name, ": a thread spills ", spill,
                                                      " bytes: expected at most ", spillLimit, "; ",
                                                      report.registers, " registers, make the tile smaller"));
  return absl::OkStatus();
}

} // namespace weft

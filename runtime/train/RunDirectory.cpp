//===- RunDirectory.cpp - Where a run keeps what it makes -------*- C++ -*-===//
#include "runtime/train/RunDirectory.h"

#include "runtime/core/File.h"
#include "runtime/train/Checkpoint.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace weft::rt {

RunDirectory::RunDirectory(RunDirectory &&other) noexcept
    : root(std::move(other.root)), text(std::move(other.text)), lines(std::move(other.lines)),
      lock(std::exchange(other.lock, -1)), created(other.created), madeFolder(other.madeFolder) {}

RunDirectory::~RunDirectory() {
  if (lock >= 0)
    ::close(lock);
}

/// The lock dies with the process, however it ends.
absl::Status RunDirectory::lockAndOpen() {
  const std::string lockPath = absl::StrCat(root, "/.lock");
  lock = ::open(lockPath.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0)
    return absl::UnavailableError(absl::StrCat("can't open '", lockPath, "': ", std::strerror(errno)));
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("another process trains in '", root, "': stop it, or choose another --out"));
  for (const std::string &folder : {checkpoints(), trail()})
    if (absl::Status status = makeFolders(folder); !status.ok())
      return status;
  removeLeftovers(checkpoints());
  absl::StatusOr<LineFile> file = LineFile::open(absl::StrCat(root, "/log.jsonl"));
  if (!file.ok())
    return file.status();
  lines = *std::move(file);
  return absl::OkStatus();
}

absl::StatusOr<RunDirectory> RunDirectory::create(const std::string &path, const std::string &source) {
  std::error_code ignored;
  const std::string file = absl::StrCat(path, "/run.weft");
  if (std::filesystem::exists(file, ignored))
    return absl::AlreadyExistsError(
        absl::StrCat("'", path, "' already holds a run: go on with --resume, or choose another --out"));
  RunDirectory run;
  run.created = true;
  run.madeFolder = !std::filesystem::exists(path, ignored);
  if (absl::Status status = makeFolders(path); !status.ok())
    return status;
  run.root = path;
  run.text = source;
  if (absl::Status status = run.lockAndOpen(); !status.ok())
    return status;
  if (absl::Status status = writeFileAtomic(file, source); !status.ok())
    return status;
  return run;
}

absl::StatusOr<RunDirectory> RunDirectory::open(const std::string &path) {
  absl::StatusOr<std::string> source = readFile(absl::StrCat(path, "/run.weft"));
  if (!source.ok())
    return absl::NotFoundError(absl::StrCat("no run at '", path, "': ", source.status().message()));
  RunDirectory run;
  run.root = path;
  run.text = *std::move(source);
  if (absl::Status status = run.lockAndOpen(); !status.ok())
    return status;
  return run;
}

void RunDirectory::discardUnused() {
  std::error_code ignored;
  if (!created || std::filesystem::file_size(absl::StrCat(root, "/log.jsonl"), ignored) > 0 ||
      findCheckpoint(root).ok())
    return;
  for (const char *name : {"run.weft", "log.jsonl", "console.log", ".lock"})
    std::filesystem::remove(absl::StrCat(root, "/", name), ignored);
  for (const std::string &folder : {checkpoints(), trail()})
    std::filesystem::remove_all(folder, ignored);
  if (madeFolder)
    std::filesystem::remove(root, ignored); // only when it is empty
}

absl::Status RunDirectory::replaceSource(const std::string &source) {
  text = source;
  return writeFileAtomic(absl::StrCat(root, "/run.weft"), source);
}

absl::Status RunDirectory::trimLog(int64_t step) {
  const std::string path = absl::StrCat(root, "/log.jsonl");
  absl::StatusOr<std::string> old = readFile(path);
  if (!old.ok())
    return old.status();
  std::string kept;
  for (size_t begin = 0, end; (end = old->find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = old->substr(begin, end - begin);
    absl::StatusOr<Json> json = parseJson(line, "log line");
    if (!json.ok())
      continue;
    absl::StatusOr<int64_t> at = int64Of(*json, "step", "log line");
    if (!at.ok() || *at <= step)
      absl::StrAppend(&kept, line, "\n");
  }
  if (kept == *old)
    return absl::OkStatus();
  if (absl::Status status = writeFileAtomic(path, kept); !status.ok())
    return status;
  absl::StatusOr<LineFile> file = LineFile::open(path);
  if (!file.ok())
    return file.status();
  lines = *std::move(file);
  return absl::OkStatus();
}

} // namespace weft::rt

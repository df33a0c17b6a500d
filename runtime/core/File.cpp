//===- File.cpp - Whole files, written so that a crash leaves none half -*- C++ -*-===//
#include "runtime/core/File.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::rt {
namespace fs = std::filesystem;

namespace {

absl::StatusCode codeOf(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR:
    return absl::StatusCode::kNotFound;
  case EACCES:
  case EPERM:
  case EROFS:
    return absl::StatusCode::kPermissionDenied;
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
    return absl::StatusCode::kResourceExhausted;
  default:
    return absl::StatusCode::kUnavailable;
  }
}

absl::Status systemError(std::string_view doing, const std::string &path, int error) {
  return absl::Status(codeOf(error),
                      absl::StrCat("can't ", std::string(doing), " '", path, "': ", std::strerror(error)));
}

std::string folderOf(const std::string &path) {
  std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Closes on every way out of readFile.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0)
      ::close(value);
  }
};

} // namespace

std::string describeBytes(uint64_t bytes) {
  static constexpr const char *kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024)
    return absl::StrCat(bytes, " bytes");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1024;
  return absl::StrFormat("%d bytes (%.1f %s)", bytes, value, kUnits[unit]);
}

int writeFully(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

absl::StatusOr<std::string> readFile(const std::string &path, uint64_t limit) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0)
    return systemError("open", path, errno);
  struct stat info {};
  if (::fstat(file.value, &info) != 0)
    return systemError("look at", path, errno);
  if (S_ISDIR(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("expected a file, found the folder '", path, "'"));
  auto tooLarge = [&](uint64_t size) {
    return absl::ResourceExhaustedError(absl::StrCat("'", path, "' holds ", describeBytes(size),
                                                     ", expected at most ", describeBytes(limit)));
  };
  const auto size = static_cast<uint64_t>(info.st_size);
  if (S_ISREG(info.st_mode) && size > limit)
    return tooLarge(size);

  std::string bytes;
  bytes.reserve(S_ISREG(info.st_mode) ? size : 0);
  char block[1 << 16];
  while (true) {
    ssize_t got = ::read(file.value, block, sizeof block);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return systemError("read", path, errno);
    if (got == 0)
      return bytes;
    if (bytes.size() + static_cast<uint64_t>(got) > limit)
      return tooLarge(bytes.size() + static_cast<uint64_t>(got));
    bytes.append(block, static_cast<size_t>(got));
  }
}

absl::StatusOr<uint64_t> freeBytes(const std::string &path) {
  std::error_code ignored;
  fs::path place = fs::absolute(path, ignored);
  while (!fs::exists(place, ignored) && place.has_relative_path())
    place = place.parent_path();
  struct statvfs info {};
  if (::statvfs(place.c_str(), &info) != 0)
    return systemError("look at the file system of", path, errno);
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

absl::Status makeFolders(const std::string &path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    return systemError("make the folder", path, error.value());
  if (!fs::is_directory(path, error))
    return absl::FailedPreconditionError(absl::StrCat("expected a folder at '", path, "', found a file"));
  return absl::OkStatus();
}

absl::Status syncFolder(const std::string &folder) {
  Descriptor file{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (file.value < 0)
    return systemError("open the folder", folder, errno);
  // Some network file systems refuse fsync on folders; there is nothing better to do there.
  if (::fsync(file.value) != 0 && errno != EINVAL && errno != ENOTSUP)
    return systemError("flush the folder", folder, errno);
  return absl::OkStatus();
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept { *this = std::move(other); }

AtomicFile &AtomicFile::operator=(AtomicFile &&other) noexcept {
  if (this == &other)
    return *this;
  discard();
  path = std::exchange(other.path, {});
  temporary = std::exchange(other.temporary, {});
  expected = std::exchange(other.expected, 0);
  descriptor = std::exchange(other.descriptor, -1);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
  if (!temporary.empty())
    ::unlink(temporary.c_str());
  temporary.clear();
}

absl::Status AtomicFile::failure(std::string_view doing, int error) const {
  std::string text = absl::StrCat("can't ", std::string(doing), " '", path, "': ", std::strerror(error),
                                  "; needed ", describeBytes(expected));
  if (absl::StatusOr<uint64_t> available = freeBytes(path); available.ok())
    absl::StrAppend(&text, ", free ", describeBytes(*available));
  return absl::Status(codeOf(error), text);
}

absl::StatusOr<AtomicFile> AtomicFile::create(const std::string &path, uint64_t expectedBytes) {
  AtomicFile file;
  file.expected = expectedBytes;
  // A link keeps pointing where it does: the file behind it is replaced.
  std::error_code ignored;
  fs::path real = fs::canonical(path, ignored);
  file.path = real.empty() ? path : real.string();

  if (fs::exists(file.path, ignored) && !fs::is_regular_file(file.path, ignored)) {
    file.descriptor = ::open(file.path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.descriptor < 0)
      return systemError("write to", path, errno);
    return file;
  }
  const fs::path name = fs::path(file.path).filename();
  file.temporary = absl::StrCat(folderOf(file.path), "/.", name.string(), ".tmp-", ::getpid());
  file.descriptor = ::open(file.temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file.descriptor < 0) {
    const int error = errno;
    file.temporary.clear();
    return file.failure("create", error);
  }
  absl::StatusOr<uint64_t> available = freeBytes(file.temporary);
  if (available.ok() && *available < expectedBytes)
    return file.failure("write", ENOSPC);
  return file;
}

absl::Status AtomicFile::append(std::string_view bytes) {
  if (int error = writeFully(descriptor, bytes))
    return failure("write", error);
  return absl::OkStatus();
}

absl::Status AtomicFile::commit() {
  // Devices and pipes know no fsync; the error of a full disk can also come this late.
  if (::fsync(descriptor) != 0 && !temporary.empty())
    return failure("flush", errno);
  if (::close(std::exchange(descriptor, -1)) != 0)
    return failure("close", errno);
  if (temporary.empty())
    return absl::OkStatus();
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return failure("rename into place", errno);
  temporary.clear();
  return syncFolder(folderOf(path));
}

absl::Status writeFileAtomic(const std::string &path, std::string_view bytes) {
  absl::StatusOr<AtomicFile> file = AtomicFile::create(path, bytes.size());
  if (!file.ok())
    return file.status();
  if (absl::Status status = file->append(bytes); !status.ok())
    return status;
  return file->commit();
}

} // namespace weft::rt

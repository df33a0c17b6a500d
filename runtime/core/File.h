//===- File.h - Whole files, written so that a crash leaves none half --*- C++ -*-===//
//
// Every error names the path; a failed write also says how many bytes were
// needed and how many the file system has free.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::rt {

/// The bytes of the file at `path`. Errors: NotFound; ResourceExhausted when it
/// holds more than `limit` bytes, before anything is allocated.
absl::StatusOr<std::string> readFile(const std::string &path, uint64_t limit = UINT64_MAX);

/// Bytes a user may still write on the file system that holds `path` (or its
/// nearest existing parent).
absl::StatusOr<uint64_t> freeBytes(const std::string &path);

/// Makes `path` and its parents; one that exists is fine.
absl::Status makeFolders(const std::string &path);

/// Makes renames and new files inside `folder` last through a power cut.
absl::Status syncFolder(const std::string &folder);

/// A file that appears under its name only when it is complete: bytes go to a
/// hidden file in the same folder; commit() flushes it to disk, renames it and
/// flushes the folder. Destroyed without commit(), it leaves nothing behind.
/// A path that is no regular file (a device, a pipe) is written in place, since
/// a rename would replace it.
class AtomicFile {
public:
  AtomicFile() = default;
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&other) noexcept;
  ~AtomicFile();

  /// `expectedBytes`: ResourceExhausted at once when fewer are free.
  static absl::StatusOr<AtomicFile> create(const std::string &path, uint64_t expectedBytes);
  absl::Status append(std::string_view bytes);
  absl::Status commit();

private:
  absl::Status failure(std::string_view doing, int error) const;
  void discard();

  std::string path, temporary; // temporary is empty when written in place
  uint64_t expected = 0;
  int descriptor = -1;
};

/// AtomicFile in one call.
absl::Status writeFileAtomic(const std::string &path, std::string_view bytes);

/// Writes all of `bytes` to an open descriptor, through short writes and
/// signals. Returns 0 or errno.
int writeFully(int descriptor, std::string_view bytes);

/// "1536 bytes (1.5 KiB)".
std::string describeBytes(uint64_t bytes);

} // namespace weft::rt

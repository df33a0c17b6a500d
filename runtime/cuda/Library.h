//===- Library.h - Shared libraries found at run time -----------*- C++ -*-===//
//
// Looked for, in this order: the folders of WEFT_CUDA_LIBS (separated by `:`);
// the system's own search (LD_LIBRARY_PATH, ld.so.cache); /usr/local/nvidia/lib64;
// /usr/local/cuda/lib64; and, as pip installs them, the folders nvidia/*/lib in
// the site-packages of VIRTUAL_ENV and of each python3 on PATH.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::rt::cuda {

/// An open library. It stays loaded until the process ends: CUDA's libraries do
/// not survive being unloaded.
class Library {
public:
  /// Opens the first of `names` that is found. Errors: NotFound, one line: what
  /// was needed, for what (`purpose`), and what the system's search said.
  static absl::StatusOr<Library> open(const std::vector<std::string> &names, std::string_view purpose);

  /// Sets `function` to the symbol's address, null when there is none.
  template <typename T> bool find(const char *symbol, T *&function) const {
    function = reinterpret_cast<T *>(address(symbol));
    return function != nullptr;
  }
  const std::string &path() const { return file; }

private:
  void *address(const char *symbol) const;
  void *handle = nullptr;
  std::string file; // as it was found
};

/// The folders that are searched before and after the system's own search.
std::vector<std::string> foldersBefore();
std::vector<std::string> foldersAfter();

/// Fills a table of functions and remembers the first symbol that is missing.
class Binder {
public:
  explicit Binder(const Library &library) : library(library) {}
  template <typename T> void operator()(const char *symbol, T *&function) {
    if (!library.find(symbol, function) && missing.empty())
      missing = symbol;
  }
  /// Errors: FailedPrecondition names the library and the symbol.
  absl::Status status(std::string_view advice) const;

private:
  const Library &library;
  std::string missing;
};

} // namespace weft::rt::cuda

//===- CubinCache.h - Cubins on disk ----------------------------*- C++ -*-===//
//
// Beside the CPU's compiled kernels and in their format (an executable that holds
// one kernel alone), so that `weft cache` lists and clears them. A file's name is
// the hash of all that the cubin depends on; a file that can't be read, or holds
// something else, is made again.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Executable.h"

#include <optional>

namespace weft::rt::cuda {

/// 16 hex digits of FNV-1a in 64 bits over `parts`, each with its length.
std::string hashOf(const std::vector<std::string_view> &parts);

class CubinCache {
public:
  /// `folder` empty: finds and keeps nothing.
  explicit CubinCache(std::string folder) : folder(std::move(folder)) {}

  /// The cubin kept under `key`, made from `kernel`.
  std::optional<std::string> find(const Kernel &kernel, const std::string &key) const;
  void store(const Kernel &kernel, const std::string &key, const std::string &cubin) const;

private:
  std::string pathOf(const std::string &key) const;
  std::string folder;
};

} // namespace weft::rt::cuda

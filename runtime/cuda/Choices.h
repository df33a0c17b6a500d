//===- Choices.h - Which algorithms took products, on disk ------*- C++ -*-===//
//
// Beside the cubins, one JSON file for each device, driver and cuBLASLt: what timing
// chose for each product. A choice is the number of a proposal among those that
// cuBLASLt made, told by their hash, so that it holds only while it proposes the same;
// no algorithm is read from the file.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/cuda/Abi.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::rt::cuda {

class Choices {
public:
  /// `identity`: of device, driver and library. `folder` empty: finds and keeps nothing.
  Choices(const std::string &folder, std::string identity);

  /// The number of the proposal that was chosen for `problem`.
  std::optional<size_t> find(const std::string &problem, const std::vector<LtHeuristic> &proposals) const;
  void keep(const std::string &problem, const std::vector<LtHeuristic> &proposals, size_t number);
  /// Writes what was added. A folder that can't be written costs time, nothing else.
  void write() const;

  /// Why the file was left alone; empty when it was read or there is none.
  const std::string &remark() const { return why; }

private:
  struct Choice {
    std::string proposals; // hash
    uint64_t number = 0;
  };
  void read();

  std::string path, identity, why;
  std::map<std::string, Choice> choices; // by problem
  bool changed = false;
};

} // namespace weft::rt::cuda

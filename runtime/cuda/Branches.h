//===- Branches.h - Calls that need not wait for each other -----*- C++ -*-===//
//
// Calls of a program are a list, and most wait for the one before. A call marked
// `beside` waits only for those that it shares memory with: what one of them
// writes and the other reads or writes. Memory is planned for the list, so a byte
// may hold several tensors one after the other; looking at bytes finds these orders
// as well.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/cuda/Abi.h"

#include <cstdint>
#include <vector>

namespace weft::rt::cuda {

/// Bytes [begin, end) of the device's memory that a call reads or writes.
struct Access {
  DevicePointer begin = 0, end = 0;
  bool written = false;
};

struct BranchCall {
  std::vector<Access> accesses;
  bool beside = false;
};

/// For each call the earlier ones that it waits for, by number, ascending; none that it
/// waits for anyway by way of another. Calls that are not `beside` form a chain. Every two
/// calls that conflict are ordered as in the list. O(calls^2).
std::vector<std::vector<uint32_t>> waits(const std::vector<BranchCall> &calls);

} // namespace weft::rt::cuda

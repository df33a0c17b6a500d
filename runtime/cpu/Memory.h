//===- Memory.h - Memory that programs run in -------------------*- C++ -*-===//
#pragma once

#include "runtime/Executable.h"

namespace weft::rt {

/// Zeroed memory of its own pages (so 4096-byte aligned), huge ones where the
/// system has them. Pages cost nothing until they are touched.
class MappedMemory {
public:
  /// Errors: ResourceExhausted.
  static absl::StatusOr<MappedMemory> map(uint64_t bytes);

  MappedMemory() = default;
  MappedMemory(MappedMemory &&other) noexcept;
  MappedMemory &operator=(MappedMemory &&other) noexcept;
  ~MappedMemory();

  std::byte *data() const { return base; }
  uint64_t size() const { return length; }

private:
  std::byte *base = nullptr;
  uint64_t length = 0;
};

/// Bytes this process may still take: the smaller of the machine's MemAvailable
/// and what is left of each control group (v1, v2) that it is in. `root` stands
/// before /proc and /sys; 2^62 when nothing can be read.
uint64_t availableMemory(const std::string &root = "");

/// Whether `executable` fits: state, arena and `extraBytes` (scratch, staging)
/// against `available`. Errors: ResourceExhausted with the sizes and the largest
/// buffers.
absl::Status checkMemory(const Executable &executable, uint64_t extraBytes, uint64_t available);

/// The largest buffers, as `name (size), ...`: states by name, arena buffers by the
/// kernel that uses them first.
std::string largestBuffers(const Executable &executable);

/// 1.5 GiB, 640 KiB, 12 bytes.
std::string bytesText(uint64_t bytes);

} // namespace weft::rt

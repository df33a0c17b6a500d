//===- Philox.h - Counter-based random numbers ------------------*- C++ -*-===//
//
// Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011. A number is a pure function of (seed, stream name, index), so any
// element can be computed alone, on any thread, in any order, and a resumed run
// needs no generator state.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace weft::rt {

/// The bare function: ten rounds on `counter` under `key`.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// FNV-1a, 64 bits, of `text`.
uint64_t fnv1a(std::string_view text);

/// One stream of numbers. Streams are named for what they are used for:
/// "init/block.3.attn.wq", "data/shuffle", "sample".
///
///   key     = (seed low, seed high)
///   counter = (index low, index high, h low, h high), h = fnv1a(stream)
class Philox {
public:
  Philox(uint64_t seed, std::string_view stream) : seed(seed), stream(fnv1a(stream)) {}

  std::array<uint32_t, 4> block(uint64_t index) const;

  /// The first 64 bits of block `index`.
  uint64_t bits(uint64_t index) const;

  /// In [0, 1), a multiple of 2^-53.
  double uniform(uint64_t index) const;

  /// Both standard normals of block `index`, by Box-Muller in double:
  /// r cos(2 pi v), r sin(2 pi v), r = sqrt(-2 ln u), u in (0, 1].
  std::array<double, 2> normals(uint64_t index) const;

  /// Normals number first, first + 1, ...: the same bits as normals(), many at once.
  void normals(uint64_t first, std::span<double> out) const;

  /// Standard normal number `index`: half of block index / 2.
  double normal(uint64_t index) const { return normals(index / 2)[index % 2]; }

private:
  uint64_t seed, stream;
};

} // namespace weft::rt

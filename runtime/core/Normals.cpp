//===- Normals.cpp - Many standard normals at once ------------------------===//
//
// Box-Muller on groups of blocks, written as loops over lanes that the compiler
// turns into vector code. A large model starts from 10^8 normals: one libm call
// each would be seconds. Only +, -, *, /, sqrt and integers are used, and this
// file is compiled without contraction, so that every machine gives the same bits.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Philox.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#if defined(__x86_64__)
#define WEFT_LANES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WEFT_LANES
#endif

namespace weft::rt {
namespace {

constexpr int kLanes = 64;

/// Words of `kLanes` blocks, word by word.
struct Words {
  uint32_t word[4][kLanes];
};

[[gnu::always_inline]] inline void rounds(Words &w, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      uint64_t even = uint64_t{0xD2511F53} * w.word[0][i];
      uint64_t odd = uint64_t{0xCD9E8D57} * w.word[2][i];
      w.word[0][i] = static_cast<uint32_t>(odd >> 32) ^ w.word[1][i] ^ key0;
      w.word[2][i] = static_cast<uint32_t>(even >> 32) ^ w.word[3][i] ^ key1;
      w.word[1][i] = static_cast<uint32_t>(odd);
      w.word[3][i] = static_cast<uint32_t>(even);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

/// (high:low >> 11) as a double: 53 bits, exact. Signed conversions have vector
/// instructions on every x86-64, unsigned ones do not.
[[gnu::always_inline]] inline double bits53(uint32_t low, uint32_t high) {
  double upper = static_cast<double>(static_cast<int32_t>(high ^ 0x80000000u)) + 0x1p31;
  return upper * 0x1p21 + static_cast<double>(static_cast<int32_t>(low >> 11));
}

/// ln u for a normal u in (0, 1]: u = m 2^e with m in [sqrt(1/2), sqrt(2)), and
/// ln m = 2 atanh((m - 1) / (m + 1)). The first term left out is below 2^-53.
[[gnu::always_inline]] inline double logOf(double u) {
  // Bits of sqrt(1/2), so that the exponent counts from there.
  constexpr uint64_t kBase = 0x3FE6A09E667F3BCD;
  uint64_t bits = std::bit_cast<uint64_t>(u);
  uint64_t shifted = bits - kBase + (uint64_t{1023} << 52);
  // The exponent fits 32 bits, which convert to double in vectors.
  double exponent = static_cast<double>(static_cast<int32_t>(shifted >> 52) - 1023);
  double m = std::bit_cast<double>((shifted & 0x000FFFFFFFFFFFFF) + kBase);
  double s = (m - 1) / (m + 1), z = s * s;
  double sum = 1.0 / 21;
  for (int k = 19; k >= 1; k -= 2)
    sum = sum * z + 1.0 / k;
  return exponent * std::numbers::ln2 + 2 * s * sum;
}

/// Sine and cosine of 2 pi v, v in [0, 1): a quarter turn is taken off exactly,
/// the rest, within pi / 4, is summed to below 2^-54.
[[gnu::always_inline]] inline void turn(double v, double &sine, double &cosine) {
  auto quarter = static_cast<int32_t>(4 * v + 0.5);
  double x = 2 * std::numbers::pi * (v - 0.25 * static_cast<double>(quarter)), z = x * x;
  double s = 1, c = 1;
  for (int k = 17; k >= 3; k -= 2)
    s = 1 - s * z / (k * (k - 1));
  for (int k = 16; k >= 2; k -= 2)
    c = 1 - c * z / (k * (k - 1));
  s *= x;
  bool swapped = quarter & 1;
  double first = swapped ? c : s, second = swapped ? s : c;
  sine = quarter & 2 ? -first : first;
  cosine = (quarter + 1) & 2 ? -second : second;
}

/// Both normals of a block.
[[gnu::always_inline]] inline void boxMuller(uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3,
                                             double *out) {
  // One is added so that the logarithm never sees zero.
  double radius = std::sqrt(-2 * logOf((bits53(w0, w1) + 1) * 0x1p-53));
  double sine, cosine;
  turn(bits53(w2, w3) * 0x1p-53, sine, cosine);
  out[0] = radius * cosine;
  out[1] = radius * sine;
}

WEFT_LANES void fillLanes(uint64_t first, uint64_t stream, uint64_t seed, double *out) {
  Words w;
  for (int i = 0; i < kLanes; ++i) {
    uint64_t index = first + static_cast<uint64_t>(i);
    w.word[0][i] = static_cast<uint32_t>(index);
    w.word[1][i] = static_cast<uint32_t>(index >> 32);
    w.word[2][i] = static_cast<uint32_t>(stream);
    w.word[3][i] = static_cast<uint32_t>(stream >> 32);
  }
  rounds(w, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  for (int i = 0; i < kLanes; ++i)
    boxMuller(w.word[0][i], w.word[1][i], w.word[2][i], w.word[3][i], out + 2 * i);
}

} // namespace

std::array<double, 2> Philox::normals(uint64_t index) const {
  auto words = block(index);
  std::array<double, 2> pair;
  boxMuller(words[0], words[1], words[2], words[3], pair.data());
  return pair;
}

void Philox::normals(uint64_t first, std::span<double> out) const {
  double lanes[2 * kLanes];
  for (size_t done = 0; done < out.size();) {
    uint64_t number = first + done;
    size_t skip = number % 2, count = std::min(out.size() - done, 2 * kLanes - skip);
    fillLanes(number / 2, stream, seed, lanes);
    std::copy_n(lanes + skip, count, out.data() + done);
    done += count;
  }
}

} // namespace weft::rt

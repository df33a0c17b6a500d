//===- Philox.cpp - Counter-based random numbers --------------------------===//
#include "runtime/core/Philox.h"

namespace weft::rt {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t even = uint64_t{0xD2511F53} * counter[0];
    uint64_t odd = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(odd >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(odd),
               static_cast<uint32_t>(even >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(even)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

static uint64_t join(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

std::array<uint32_t, 4> Philox::block(uint64_t index) const {
  auto low = [](uint64_t v) { return static_cast<uint32_t>(v); };
  auto high = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  return philox4x32({low(index), high(index), low(stream), high(stream)}, {low(seed), high(seed)});
}

uint64_t Philox::bits(uint64_t index) const {
  auto words = block(index);
  return join(words[0], words[1]);
}

double Philox::uniform(uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }

} // namespace weft::rt

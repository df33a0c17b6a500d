//===- Checksum.h - Whether bytes are those that were written ---*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::rt {

/// FNV-1a over 64 bits (Fowler, Noll, Vo: http://www.isthe.com/chongo/tech/comp/fnv):
/// h = (h xor byte) x 1099511628211 from 14695981039346656037 on. Any single byte that
/// differs gives another sum, since each step is a bijection of h; it is no signature.
constexpr uint64_t checksum(std::string_view bytes) {
  uint64_t sum = 14695981039346656037u;
  for (char byte : bytes)
    sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return sum;
}

} // namespace weft::rt

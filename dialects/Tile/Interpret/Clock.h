//===- Clock.h - What a warpgroup may count on -------------------*- C++ -*-===//
//
// A vector clock: one number for each source of events in a CTA. An event is a
// source and its number there; who holds at least that number may count on it.
// Sources, W warpgroups and B barriers:
//   plain(w)    what warpgroup w did itself
//   fenced(w)   its plain writes that tile.fence_async has shown to copies and products
//   products(w) its groups of products that have ended
//   copies(w)   its groups of copies (cp.async) that have ended
//   shown(w)    those that tile.fence_async has shown
//   thread(w)   what its elected thread wrote into cells
//   phases(b)   phases of barrier b that have ended
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weft::tile {

struct Sources {
  size_t warpgroups = 1, barriers = 0;
  size_t count() const { return 6 * warpgroups + barriers; }
  size_t plain(size_t w) const { return w; }
  size_t fenced(size_t w) const { return warpgroups + w; }
  size_t products(size_t w) const { return 2 * warpgroups + w; }
  size_t copies(size_t w) const { return 3 * warpgroups + w; }
  size_t shown(size_t w) const { return 4 * warpgroups + w; }
  size_t thread(size_t w) const { return 5 * warpgroups + w; }
  size_t phases(size_t b) const { return 6 * warpgroups + b; }
};

/// Starts empty: nothing may be counted on.
class Clock {
public:
  explicit Clock(size_t sources = 0) : numbers(sources, 0) {}
  int64_t &operator[](size_t source) { return numbers[source]; }
  int64_t operator[](size_t source) const { return numbers[source]; }
  void join(const Clock &other) {
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = std::max(numbers[i], other.numbers[i]);
  }

private:
  std::vector<int64_t> numbers;
};

} // namespace weft::tile

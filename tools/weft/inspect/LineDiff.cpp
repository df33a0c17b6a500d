//===- LineDiff.cpp - What changed between two lists of lines -------------===//
#include "tools/weft/inspect/LineDiff.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace weft::inspect {
namespace {

using Lines = std::span<const int32_t>;

/// A piece of both sides.
struct Piece {
  int32_t from = 0, fromEnd = 0, to = 0, toEnd = 0;
};

class Matcher {
public:
  Matcher(Lines from, Lines to) : a(from), b(to) {}

  /// Pairs of equal lines, increasing on both sides.
  std::vector<std::pair<int32_t, int32_t>> matches;

  void match(Piece piece);

private:
  std::vector<std::pair<int32_t, int32_t>> anchors(const Piece &piece) const;
  void shortest(const Piece &piece);

  Lines a, b;
};

/// The longest run of pairs that increases on both sides; `pairs` increase in `first`.
std::vector<std::pair<int32_t, int32_t>> increasing(const std::vector<std::pair<int32_t, int32_t>> &pairs) {
  std::vector<size_t> tails;
  std::vector<std::ptrdiff_t> before(pairs.size(), -1);
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto place = std::lower_bound(tails.begin(), tails.end(), pairs[i].second,
                                  [&](size_t tail, int32_t value) { return pairs[tail].second < value; });
    if (place != tails.begin())
      before[i] = static_cast<std::ptrdiff_t>(*std::prev(place));
    if (place == tails.end())
      tails.push_back(i);
    else
      *place = i;
  }
  std::vector<std::pair<int32_t, int32_t>> run;
  for (std::ptrdiff_t i = tails.empty() ? -1 : static_cast<std::ptrdiff_t>(tails.back()); i >= 0;
       i = before[static_cast<size_t>(i)])
    run.push_back(pairs[static_cast<size_t>(i)]);
  std::ranges::reverse(run);
  return run;
}

/// Lines that stand once on each side of `piece`, in an order that both share.
std::vector<std::pair<int32_t, int32_t>> Matcher::anchors(const Piece &piece) const {
  struct Seen {
    int32_t timesA = 0, timesB = 0, placeB = 0;
  };
  std::unordered_map<int32_t, Seen> seen;
  for (int32_t i = piece.from; i < piece.fromEnd; ++i)
    ++seen[a[static_cast<size_t>(i)]].timesA;
  for (int32_t j = piece.to; j < piece.toEnd; ++j)
    if (auto found = seen.find(b[static_cast<size_t>(j)]); found != seen.end()) {
      ++found->second.timesB;
      found->second.placeB = j;
    }
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t i = piece.from; i < piece.fromEnd; ++i)
    if (const Seen &line = seen[a[static_cast<size_t>(i)]]; line.timesA == 1 && line.timesB == 1)
      pairs.emplace_back(i, line.placeB);
  return increasing(pairs);
}

/// Myers' greedy search: reach[d][k] is how far d edits lead on diagonal k.
void Matcher::shortest(const Piece &piece) {
  const int32_t n = piece.fromEnd - piece.from, m = piece.toEnd - piece.to;
  auto equal = [&](int32_t x, int32_t y) {
    return a[static_cast<size_t>(piece.from + x)] == b[static_cast<size_t>(piece.to + y)];
  };
  const int32_t most = std::min(n + m, kMostEdits);
  std::vector<std::vector<int32_t>> reach;
  auto at = [&](int32_t d, int32_t k) { return reach[static_cast<size_t>(d)][static_cast<size_t>(k + d)]; };
  auto down = [&](int32_t d, int32_t k) {
    return k == -d || (k != d && at(d - 1, k - 1) < at(d - 1, k + 1));
  };
  for (int32_t d = 0; d <= most; ++d) {
    reach.emplace_back(static_cast<size_t>(2 * d + 1));
    for (int32_t k = -d; k <= d; k += 2) {
      int32_t x = d == 0 ? 0 : down(d, k) ? at(d - 1, k + 1) : at(d - 1, k - 1) + 1;
      int32_t y = x - k;
      while (x < n && y >= 0 && y < m && equal(x, y))
        ++x, ++y;
      reach.back()[static_cast<size_t>(k + d)] = x;
      if (x < n || y < m)
        continue;
      // Back along the way that led here; what lies between two edits is equal.
      const size_t first = matches.size();
      for (int32_t back = d; back >= 0; --back) {
        const int32_t diagonal = x - y;
        const int32_t start = back == 0              ? 0
                              : down(back, diagonal) ? at(back - 1, diagonal + 1)
                                                     : at(back - 1, diagonal - 1) + 1;
        for (; x > start; --x, --y)
          matches.emplace_back(piece.from + x - 1, piece.to + y - 1);
        if (back > 0 && down(back, diagonal))
          --y;
        else
          --x;
      }
      std::reverse(matches.begin() + static_cast<std::ptrdiff_t>(first), matches.end());
      return;
    }
  }
}

void Matcher::match(Piece piece) {
  while (piece.from < piece.fromEnd && piece.to < piece.toEnd &&
         a[static_cast<size_t>(piece.from)] == b[static_cast<size_t>(piece.to)])
    matches.emplace_back(piece.from++, piece.to++);
  int32_t tail = 0;
  while (piece.from < piece.fromEnd && piece.to < piece.toEnd &&
         a[static_cast<size_t>(piece.fromEnd - 1)] == b[static_cast<size_t>(piece.toEnd - 1)])
    --piece.fromEnd, --piece.toEnd, ++tail;
  if (piece.from < piece.fromEnd && piece.to < piece.toEnd) {
    const std::vector<std::pair<int32_t, int32_t>> fixed = anchors(piece);
    if (fixed.empty())
      shortest(piece);
    Piece gap = piece;
    for (const auto &[from, to] : fixed) {
      match({gap.from, from, gap.to, to});
      matches.emplace_back(from, to);
      gap.from = from + 1;
      gap.to = to + 1;
    }
    if (!fixed.empty())
      match({gap.from, piece.fromEnd, gap.to, piece.toEnd});
  }
  for (int32_t i = 0; i < tail; ++i)
    matches.emplace_back(piece.fromEnd + i, piece.toEnd + i);
}

} // namespace

std::vector<Edit> diffLines(Lines from, Lines to) {
  const auto n = static_cast<int32_t>(from.size()), m = static_cast<int32_t>(to.size());
  Matcher matcher(from, to);
  matcher.match({0, n, 0, m});
  matcher.matches.emplace_back(n, m);
  std::vector<Edit> edits;
  int32_t x = 0, y = 0, keep = 0;
  for (const auto &[i, j] : matcher.matches) {
    if (i > x || j > y) {
      edits.push_back({keep, i - x, {to.begin() + y, to.begin() + j}});
      keep = 0;
    }
    ++keep;
    x = i + 1;
    y = j + 1;
  }
  return edits;
}

std::vector<int32_t> applyEdits(Lines from, const std::vector<Edit> &edits) {
  std::vector<int32_t> result;
  auto at = from.begin();
  for (const Edit &edit : edits) {
    result.insert(result.end(), at, at + edit.keep);
    at += edit.keep + edit.drop;
    result.insert(result.end(), edit.add.begin(), edit.add.end());
  }
  result.insert(result.end(), at, from.end());
  return result;
}

} // namespace weft::inspect

//===- AttendCase.h - Attentions for tests of tile kernels ------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::test {

/// Sizes, windows and documents of one attention. Heads of k and v: `groups`
/// heads of q read each (kv(h) = h / groups), or kvOf.
struct AttendCase {
  int64_t batch = 1, length = 8, kvHeads = 1, groups = 1, channel = 64;
  std::vector<int32_t> windows{INT32_MAX}; // of heads, repeated
  std::vector<int32_t> starts{0};          // of documents, in every row of the batch
  std::vector<int32_t> kvOf;               // of heads, or empty
  std::vector<int32_t> order, keyOrder;    // of work, or empty
  int64_t keys = 0, offset = -1;           // of a cache; none: as many keys as queries
  double spread = 1;                       // of q's numbers
  bool entropies = false;                  // forward gives them too

  int64_t heads() const { return kvHeads * groups; }
  int64_t keyCount() const { return keys ? keys : length; }
  int32_t window(int64_t head) const { return windows[static_cast<size_t>(head) % windows.size()]; }
  int64_t kv(int64_t head) const { return kvOf.empty() ? head / groups : kvOf[static_cast<size_t>(head)]; }
  int32_t start(int64_t place) const;
  double scale() const;
  std::string name() const;

  // weft.kernel @k on bf16 storage.
  std::string forwardText() const;
  std::string queryText() const;
  std::string keyValueText() const;
};

/// Row-major, as the kernels' operands are.
struct AttendNumbers {
  std::vector<double> q, k, v, dout;            // representable in bf16
  std::vector<double> out, lse, entropy, delta; // float64 loops
  std::vector<double> dq, dk, dv;
  /// The same where probabilities, their slopes and results are rounded to bf16:
  /// what the error of a kernel is measured by.
  std::vector<double> roundOut, roundDq, roundDk, roundDv;
};

double toBf16(double value);

/// Numbers from a seed; gradients when `gradients`.
AttendNumbers attendNumbers(const AttendCase &c, uint32_t seed, bool gradients);

} // namespace weft::test

//===- attention-test.cpp - Attention and its gradients -------------------===//
#include "test/passes/Codegen/KernelHarness.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

namespace weft::test {
namespace {

constexpr double kFull = 2147483647;

/// One attention: sizes, which head axes k and v have, windows by head, where documents start.
struct Case {
  int64_t batch = 1, length = 8, channel = 8, valueChannel = 8;
  std::string heads = "heads:2", kv = "heads:2";
  int64_t headCount = 2;
  std::vector<double> windows{kFull};
  std::vector<double> starts{0};

  std::string query() const { return type(heads, channel); }
  std::string key() const { return type(kv, channel); }
  std::string value() const { return type(kv, valueChannel); }
  std::string out() const { return type(heads, valueChannel); }
  std::string perQuery() const { return tensor(front() + heads); }
  std::string places() const { return tensor(front(), "i32"); }
  std::string windowType() const { return "tensor<" + std::to_string(headCount) + "xi32>"; }
  std::string scale() const {
    return "{scale = " + std::to_string(1 / std::sqrt(static_cast<double>(channel))) + " : f64}";
  }

  double window(size_t head) const { return windows[head % windows.size()]; }
  double start(size_t i) const {
    double found = 0;
    for (double at : starts)
      if (at <= static_cast<double>(i % static_cast<size_t>(length)))
        found = at;
    return found;
  }

private:
  std::string front() const {
    return "batch:" + std::to_string(batch) + " pos:" + std::to_string(length) + " ";
  }
  std::string type(const std::string &axes, int64_t width) const {
    return tensor(front() + axes + (axes.empty() ? "" : " ") + "head:" + std::to_string(width));
  }
};

std::string forwardText(const Case &c) {
  return "weft.kernel @k rows [] chunks 1 (%q: " + c.query() + ", %k: " + c.key() + ", %v: " + c.value() +
         ", %w: " + c.windowType() + ", %d: " + c.places() + ") -> (" + c.out() + ", " + c.perQuery() +
         ") {\n%o, %l = weft.attend %q, %k, %v windows %w documents %d " + c.scale() + " : (" + c.query() +
         ", " + c.key() + ", " + c.value() + ", " + c.windowType() + ", " + c.places() + ") -> (" + c.out() +
         ", " + c.perQuery() + ")\nweft.yield %o, %l : " + c.out() + ", " + c.perQuery() + " }";
}

/// Both passes read what the forward pass gives: that is computed in the same
/// kernel text by the judge, so here `out` and `lse` are filled from a run of it.
std::string queryGradText(const Case &c) {
  std::string types = c.query() + ", " + c.key() + ", " + c.value() + ", " + c.windowType() + ", " +
                      c.places() + ", " + c.out() + ", " + c.perQuery() + ", " + c.out();
  return "weft.kernel @k rows [] chunks 1 (%q: " + c.query() + ", %k: " + c.key() + ", %v: " + c.value() +
         ", %w: " + c.windowType() + ", %d: " + c.places() + ", %o: " + c.out() + ", %l: " + c.perQuery() +
         ", %g: " + c.out() + ") -> (" + c.query() + ", " + c.perQuery() +
         ") {\n%dq, %e = weft.attend_grad_query %q, %k, %v windows %w documents %d, %o, %l, %g " + c.scale() +
         " : (" + types + ") -> (" + c.query() + ", " + c.perQuery() +
         ")\nweft.yield %dq, %e : " + c.query() + ", " + c.perQuery() + " }";
}

std::string keyValueGradText(const Case &c) {
  std::string types = c.query() + ", " + c.key() + ", " + c.value() + ", " + c.windowType() + ", " +
                      c.places() + ", " + c.perQuery() + ", " + c.perQuery() + ", " + c.out();
  return "weft.kernel @k rows [] chunks 1 (%q: " + c.query() + ", %k: " + c.key() + ", %v: " + c.value() +
         ", %w: " + c.windowType() + ", %d: " + c.places() + ", %l: " + c.perQuery() +
         ", %e: " + c.perQuery() + ", %g: " + c.out() + ") -> (" + c.key() + ", " + c.value() +
         ") {\n%dk, %dv = weft.attend_grad_key_value %q, %k, %v windows %w documents %d, %l, %e, %g " +
         c.scale() + " : (" + types + ") -> (" + c.key() + ", " + c.value() +
         ")\nweft.yield %dk, %dv : " + c.key() + ", " + c.value() + " }";
}

void fillCommon(KernelHarness &harness, const Case &c) {
  harness.fill[3] = [&c](size_t, size_t i) { return c.window(i); };
  harness.fill[4] = [&c](size_t, size_t i) { return c.start(i); };
}

KernelHarness::Fill numbers(std::vector<float> values) {
  return [values = std::move(values)](size_t, size_t i) { return static_cast<double>(values[i]); };
}

void checkAll(const Case &c) {
  SCOPED_TRACE("length " + std::to_string(c.length) + ", channel " + std::to_string(c.channel) + ", heads " +
               c.heads + " on " + c.kv + ", window " + std::to_string(c.windows[0]));
  KernelHarness forward(forwardText(c));
  fillCommon(forward, c);
  forward.check(5e-6);
  auto results = forward.run();
  KernelHarness query(queryGradText(c));
  fillCommon(query, c);
  query.fill[5] = numbers(results[0]);
  query.fill[6] = numbers(results[1]);
  query.check(2e-5);
  KernelHarness keyValue(keyValueGradText(c));
  fillCommon(keyValue, c);
  keyValue.fill[5] = numbers(results[1]);
  keyValue.check(4e-5);
}

// Catches: a window off by one at either end, a mask left out of an edge block.
TEST(Attention, windows) {
  for (int64_t length : {1, 7, 64, 65, 150})
    for (double window :
         {1.0, 2.0, 3.0, 64.0, static_cast<double>(length - 1), static_cast<double>(length), kFull})
      if (window >= 1) {
        Case c;
        c.length = length;
        c.windows = {window, kFull};
        checkAll(c);
      }
}

// Catches: keys of another document, one start for all rows of a block.
TEST(Attention, documents) {
  for (std::vector<double> starts :
       {std::vector<double>{0, 1, 2, 3}, {0, 63, 64}, {0, 30, 100, 129}, {0, 64, 128}})
    for (double window : {kFull, 40.0}) {
      Case c;
      c.batch = 2;
      c.length = 131;
      c.windows = {window, 7};
      c.starts = starts;
      checkAll(c);
    }
}

// Catches: the wrong key-value head, for groups before, after and around the shared axis.
TEST(Attention, groups) {
  using Heads = std::pair<const char *, const char *>;
  for (auto [heads, kv] : {Heads{"kv:2 group:3", "kv:2"}, Heads{"group:3 kv:2", "kv:2"}, Heads{"heads:6", ""},
                           Heads{"a:2 b:1 c:3", "a:2 c:3"}, Heads{"kv:6", "kv:6"}}) {
    Case c;
    c.batch = 2;
    c.length = 70;
    c.heads = heads;
    c.kv = kv;
    c.headCount = 6;
    c.windows = {kFull, 5, 30, 1, 64, 65};
    c.starts = {0, 20};
    checkAll(c);
  }
}

TEST(Attention, channels) {
  using Widths = std::pair<int64_t, int64_t>;
  for (auto [channel, value] :
       {Widths{8, 8}, Widths{10, 6}, Widths{32, 32}, Widths{64, 48}, Widths{128, 128}, Widths{256, 256}}) {
    Case c;
    c.length = 67;
    c.channel = channel;
    c.valueChannel = value;
    checkAll(c);
  }
}

// One query at the end of a cache: offset counts, later places are not read.
TEST(Attention, decode) {
  for (double offset : {0.0, 1.0, 63.0, 64.0, 90.0})
    for (double window : {kFull, 5.0}) {
      std::string q = tensor("batch:2 pos:1 kv:2 group:2 head:16"),
                  k = tensor("batch:2 keys:96 kv:2 head:16");
      std::string l = tensor("batch:2 pos:1 kv:2 group:2"), d = tensor("batch:2 pos:1", "i32");
      KernelHarness harness(
          "weft.kernel @k rows [] chunks 1 (%q: " + q + ", %k: " + k + ", %v: " + k +
          ", %w: tensor<4xi32>, %d: " + d + ", %o: tensor<i32>) -> (" + q + ", " + l +
          ") {\n%r, %l = weft.attend %q, %k, %v windows %w documents %d offset %o {scale = 0.25 : "
          "f64} : (" +
          q + ", " + k + ", " + k + ", tensor<4xi32>, " + d + ", tensor<i32>) -> (" + q + ", " + l +
          ")\nweft.yield %r, %l : " + q + ", " + l + " }");
      harness.fill[3] = [window](size_t, size_t i) { return i == 1 ? 3.0 : window; };
      harness.fill[4] = [offset](size_t, size_t i) { return i == 1 && offset > 60 ? 10.0 : 0.0; };
      harness.fill[5] = [offset](size_t, size_t) { return offset; };
      harness.check(5e-6);
    }
}

// What a query must not see does not change one bit of it, not even when it is not a number.
TEST(Attention, forbiddenKeysLeaveNoTrace) {
  Case c;
  c.length = 100;
  c.starts = {0, 37};
  KernelHarness plain(forwardText(c)), poisoned(forwardText(c));
  fillCommon(plain, c);
  fillCommon(poisoned, c);
  auto number = [](size_t operand, size_t i) { return std::sin(static_cast<double>(operand * 1000 + i)); };
  for (size_t operand : {0, 1, 2}) {
    plain.fill[operand] = number;
    poisoned.fill[operand] = number;
  }
  // Keys of the first document, and the last place, change.
  poisoned.fill[1] = [&](size_t operand, size_t i) {
    size_t place = i / 16;
    return place < 37 || place == 99 ? 50.0 : number(operand, i);
  };
  auto before = plain.run(), after = poisoned.run();
  for (size_t i = size_t{37} * 16; i < size_t{99} * 16; ++i)
    EXPECT_EQ(before[0][i], after[0][i]) << "element " << i;
}

TEST(Attention, narrowVectors) {
  for (int bits : {128, 256}) {
    Case c;
    c.length = 70;
    c.channel = c.valueChannel = 12;
    KernelHarness forward(forwardText(c));
    forward.vectorBits = bits;
    fillCommon(forward, c);
    forward.check(5e-6);
  }
}

/// Prints speeds; WEFT_BENCH=1 asks for it.
TEST(Attention, speed) {
  if (!std::getenv("WEFT_BENCH"))
    GTEST_SKIP() << "set WEFT_BENCH=1 to measure";
  for (int64_t length : {256, 2048}) {
    Case c;
    c.length = length;
    c.batch = 2048 / length;
    c.channel = c.valueChannel = 32;
    c.heads = c.kv = "heads:4";
    c.headCount = 4;
    KernelHarness forward(forwardText(c)), query(queryGradText(c)), keyValue(keyValueGradText(c));
    for (KernelHarness *harness : {&forward, &query, &keyValue})
      fillCommon(*harness, c);
    std::printf("T=%d, 2048 tokens, 4 heads of 32: forward %.3f ms, dq %.3f ms, dk dv %.3f ms\n",
                static_cast<int>(length), forward.time(20) * 1e3, query.time(20) * 1e3,
                keyValue.time(20) * 1e3);
  }
}

} // namespace
} // namespace weft::test

//===- attention-test.cpp - Attention and its gradients -------------------===//
#include "runtime/control/ExecutedWork.h"
#include "test/passes/Codegen/KernelHarness.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

namespace weft::test {
namespace {

/// One attention: sizes, which head axes k and v have, windows by head.
struct Case : DocumentRows {
  int64_t channel = 8, valueChannel = 8;
  std::string heads = "heads:2", kv = "heads:2";
  int64_t headCount = 2;
  std::vector<double> windows{kFull};
  std::vector<double> kvOf; // by head; empty: by the names of axes
  std::string order;        // of work: " order [2, 0, 1]"
  std::string keyOrder;     // the same of key-value heads

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

  std::string table() const { return kvOf.empty() ? "" : " kv_of %t"; }
  std::string tableArgument() const { return kvOf.empty() ? "" : ", %t: " + windowType(); }
  std::string tableType() const { return kvOf.empty() ? "" : ", " + windowType(); }

  double window(size_t head) const { return windows[head % windows.size()]; }

private:
  std::string type(const std::string &axes, int64_t width) const {
    return tensor(front() + axes + (axes.empty() ? "" : " ") + "head:" + std::to_string(width));
  }
};

/// With entropies, a third result.
std::string observedText(const Case &c) {
  std::string results = c.out() + ", " + c.perQuery() + ", " + c.perQuery();
  std::string scale = c.scale();
  scale.insert(1, "entropies, ");
  return "weft.kernel @k rows [] chunks 1 (%q: " + c.query() + ", %k: " + c.key() + ", %v: " + c.value() +
         ", %w: " + c.windowType() + ", %d: " + c.places() + c.tableArgument() + ") -> (" + results +
         ") {\n%o, %l, %h = weft.attend %q, %k, %v windows %w documents %d" + c.table() + c.order + " " +
         scale + " : (" + c.query() + ", " + c.key() + ", " + c.value() + ", " + c.windowType() + ", " +
         c.places() + c.tableType() + ") -> (" + results + ")\nweft.yield %o, %l, %h : " + results + " }";
}

std::string forwardText(const Case &c) {
  return "weft.kernel @k rows [] chunks 1 (%q: " + c.query() + ", %k: " + c.key() + ", %v: " + c.value() +
         ", %w: " + c.windowType() + ", %d: " + c.places() + c.tableArgument() + ") -> (" + c.out() + ", " +
         c.perQuery() + ") {\n%o, %l = weft.attend %q, %k, %v windows %w documents %d" + c.table() + c.order +
         " " + c.scale() + " : (" + c.query() + ", " + c.key() + ", " + c.value() + ", " + c.windowType() +
         ", " + c.places() + c.tableType() + ") -> (" + c.out() + ", " + c.perQuery() +
         ")\nweft.yield %o, %l : " + c.out() + ", " + c.perQuery() + " }";
}

/// Both passes read what the forward pass gives: that is computed in the same
/// kernel text by the judge, so here `out` and `lse` are filled from a run of it.
std::string queryGradText(const Case &c) {
  std::string types = c.query() + ", " + c.key() + ", " + c.value() + ", " + c.windowType() + ", " +
                      c.places() + ", " + c.out() + ", " + c.perQuery() + ", " + c.out() + c.tableType();
  return "weft.kernel @k rows [] chunks 1 (%q: " + c.query() + ", %k: " + c.key() + ", %v: " + c.value() +
         ", %w: " + c.windowType() + ", %d: " + c.places() + ", %o: " + c.out() + ", %l: " + c.perQuery() +
         ", %g: " + c.out() + c.tableArgument() + ") -> (" + c.query() + ", " + c.perQuery() +
         ") {\n%dq, %e = weft.attend_grad_query %q, %k, %v windows %w documents %d, %o, %l, %g" + c.table() +
         c.order + " " + c.scale() + " : (" + types + ") -> (" + c.query() + ", " + c.perQuery() +
         ")\nweft.yield %dq, %e : " + c.query() + ", " + c.perQuery() + " }";
}

std::string keyValueGradText(const Case &c) {
  std::string types = c.query() + ", " + c.key() + ", " + c.value() + ", " + c.windowType() + ", " +
                      c.places() + ", " + c.perQuery() + ", " + c.perQuery() + ", " + c.out() + c.tableType();
  return "weft.kernel @k rows [] chunks 1 (%q: " + c.query() + ", %k: " + c.key() + ", %v: " + c.value() +
         ", %w: " + c.windowType() + ", %d: " + c.places() + ", %l: " + c.perQuery() +
         ", %e: " + c.perQuery() + ", %g: " + c.out() + c.tableArgument() + ") -> (" + c.key() + ", " +
         c.value() +
         ") {\n%dk, %dv = weft.attend_grad_key_value %q, %k, %v windows %w documents %d, %l, %e, %g" +
         c.table() + c.keyOrder + " " + c.scale() + " : (" + types + ") -> (" + c.key() + ", " + c.value() +
         ")\nweft.yield %dk, %dv : " + c.key() + ", " + c.value() + " }";
}

void fillCommon(KernelHarness &harness, const Case &c) {
  harness.fill[3] = [&c](size_t, size_t i) { return c.window(i); };
  harness.fill[4] = [&c](size_t, size_t i) { return c.start(i); };
}

void fillTable(KernelHarness &harness, const Case &c, size_t operand) {
  if (!c.kvOf.empty())
    harness.fill[operand] = [&c](size_t, size_t i) { return c.kvOf[i]; };
}

KernelHarness::Fill numbers(std::vector<float> values) {
  return [values = std::move(values)](size_t, size_t i) { return static_cast<double>(values[i]); };
}

void checkAll(const Case &c) {
  SCOPED_TRACE("length " + std::to_string(c.length) + ", channel " + std::to_string(c.channel) + ", heads " +
               c.heads + " on " + c.kv + ", window " + std::to_string(c.windows[0]));
  KernelHarness forward(forwardText(c));
  fillCommon(forward, c);
  fillTable(forward, c, 5);
  forward.check(5e-6);
  auto results = forward.run();
  KernelHarness query(queryGradText(c));
  fillCommon(query, c);
  query.fill[5] = numbers(results[0]);
  query.fill[6] = numbers(results[1]);
  fillTable(query, c, 8);
  query.check(2e-5);
  KernelHarness keyValue(keyValueGradText(c));
  fillCommon(keyValue, c);
  keyValue.fill[5] = numbers(results[1]);
  fillTable(keyValue, c, 8);
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

// Catches: a table read for another head, a key-value head's readers left out, an
// order that skips a head or mixes up rows.
TEST(Attention, tablesAndOrders) {
  Case c;
  c.batch = 2;
  c.length = 70;
  c.heads = "live:5";
  c.kv = "kv:3";
  c.headCount = 5;
  c.windows = {kFull, 5, 30, 1, 64};
  c.starts = {0, 20};
  c.kvOf = {2, 0, 2, 1, 0};
  checkAll(c);
  c.order = " order [0, 4, 2, 1, 3]";
  c.keyOrder = " order [2, 0, 1]";
  checkAll(c);
}

/// Statistics of a case, with targets that end before its padding.
std::string statisticsText(const Case &c, bool targets) {
  std::string result = "tensor<" + std::to_string(c.headCount) + "x12xf32>";
  std::string target = targets ? ", %y: " + c.places() : "", targetType = targets ? ", " + c.places() : "";
  return "weft.kernel @k rows [] chunks 1 (%q: " + c.query() + ", %k: " + c.key() + ", %v: " + c.value() +
         ", %w: " + c.windowType() + ", %d: " + c.places() + ", %o: " + c.out() + ", %h: " + c.perQuery() +
         c.tableArgument() + target + ") -> (" + result +
         ") {\n%r = weft.head_statistics %q, %k, %v, %o, %h windows %w documents %d" + c.table() +
         (targets ? " targets %y" : "") + " : (" + c.query() + ", " + c.key() + ", " + c.value() + ", " +
         c.out() + ", " + c.perQuery() + ", " + c.windowType() + ", " + c.places() + c.tableType() +
         targetType + ") -> " + result + "\nweft.yield %r : " + result + " }";
}

void checkStatistics(const Case &c, bool targets) {
  SCOPED_TRACE("length " + std::to_string(c.length) + ", heads " + c.heads + " on " + c.kv);
  KernelHarness plain(forwardText(c)), forward(observedText(c));
  for (KernelHarness *harness : {&plain, &forward}) {
    fillCommon(*harness, c);
    fillTable(*harness, c, 5);
  }
  forward.check(5e-6);
  auto results = forward.run();
  EXPECT_EQ(plain.run()[0], results[0]); // an observed step changes nothing
  EXPECT_EQ(plain.run()[1], results[1]);
  KernelHarness statistics(statisticsText(c, targets));
  fillCommon(statistics, c);
  statistics.fill[5] = numbers(results[0]);
  statistics.fill[6] = numbers(results[2]);
  fillTable(statistics, c, 7);
  if (targets) // none in the last document, some left out before
    statistics.fill[c.kvOf.empty() ? 7 : 8] = [&c](size_t, size_t i) {
      size_t place = i % static_cast<size_t>(c.length);
      return static_cast<double>(place) >= c.starts.back() || place % 3 == 1 ? -1.0 : 4.0;
    };
  statistics.check(2e-5);
}

// Catches: an entropy whose sum is not faded, or by the fade alone; padding that
// counts, an entropy over another number of keys, rows of a
// block left out or counted twice, k and v of another head.
TEST(Attention, statistics) {
  for (int64_t length : {1, 7, 64, 65, 150}) {
    Case c;
    c.length = length;
    c.windows = {3, kFull};
    checkStatistics(c, false);
  }
  Case c;
  c.batch = 2;
  c.length = 131;
  c.channel = 10;
  c.valueChannel = 6;
  c.heads = "kv:2 group:3";
  c.kv = "kv:2";
  c.headCount = 6;
  c.windows = {kFull, 5, 30, 1, 64, 65};
  c.starts = {0, 30, 100, 129};
  checkStatistics(c, true);
  c.heads = "live:6";
  c.kvOf = {0, 1, 0, 1, 1, 1};
  checkStatistics(c, true);
}

/// Equal scores, values that say where they stand: a query's output is the mean
/// place of the keys it sees.
void makeFlat(KernelHarness &harness, size_t perPlace) {
  harness.fill[0] = [](size_t, size_t) { return 0.0; };
  harness.fill[2] = [perPlace](size_t, size_t i) { return static_cast<double>(i / perPlace); };
}

// Place i with window W sees i - W + 1 .. i. Catches: a key too many or too few.
TEST(Attention, flatProbe) {
  for (double window : {1.0, 2.0, 3.0}) {
    Case c;
    c.length = 8;
    c.windows = {window};
    KernelHarness harness(forwardText(c));
    fillCommon(harness, c);
    makeFlat(harness, 16);
    auto out = harness.run()[0];
    for (size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(out[i * 16], (std::max(static_cast<double>(i) - window + 1, 0.0) + i) / 2, 1e-6) << i;
  }
}

// A document is what it is alone, whatever padding stands behind it, bit for bit.
TEST(Attention, paddingChangesNothing) {
  Case alone, padded;
  alone.length = 2;
  padded.length = 4;
  padded.starts = {0, 2};
  KernelHarness first(forwardText(alone)), second(forwardText(padded));
  fillCommon(first, alone);
  fillCommon(second, padded);
  for (KernelHarness *harness : {&first, &second})
    for (size_t operand : {0, 1, 2})
      harness->fill[operand] = [](size_t at, size_t i) {
        return std::cos(static_cast<double>(at * 100 + i));
      };
  auto expected = first.run(), found = second.run();
  for (size_t result : {0, 1})
    for (size_t i = 0; i < expected[result].size(); ++i)
      EXPECT_EQ(found[result][i], expected[result][i]) << i;
  for (float value : found[0])
    EXPECT_TRUE(std::isfinite(value));
}

/// Pairs whose products a kernel computes, told by its own output: place i of
/// what is multiplied (values, or slopes) holds NaN in channel i alone, so
/// channel i of a result is NaN when its tile touched place i, masked or not.
int64_t touchedPairs(const std::vector<float> &result, const Case &c) {
  constexpr int64_t kTile = 64;
  int64_t pairs = 0;
  for (int64_t place = 0; place < c.length; place += kTile)
    for (int64_t head = 0; head < c.headCount; ++head)
      for (int64_t i = 0; i < c.valueChannel; ++i)
        pairs += kTile * static_cast<int64_t>(std::isnan(
                             result[static_cast<size_t>((place * c.headCount + head) * c.valueChannel + i)]));
  return pairs;
}

// Catches: executedPairs that differs from what the kernels do.
TEST(Attention, executedPairs) {
  for (const std::vector<double> &starts : {std::vector<double>{0}, {0, 30, 100, 129}, {0, 64, 128, 140}}) {
    Case c;
    c.length = c.valueChannel = 150;
    c.heads = c.kv = "heads:6";
    c.headCount = 6;
    c.windows = {1, 2, 40, 64, 100, kFull};
    c.starts = starts;
    auto marked = [&c](size_t, size_t i) {
      auto width = static_cast<size_t>(c.valueChannel);
      return i % width == i / width / static_cast<size_t>(c.headCount)
                 ? std::numeric_limits<double>::quiet_NaN()
                 : 0.0;
    };
    KernelHarness forward(forwardText(c)), keyValue(keyValueGradText(c));
    fillCommon(forward, c);
    fillCommon(keyValue, c);
    forward.fill[2] = marked;
    keyValue.fill[7] = marked;
    std::vector<int32_t> docStart, windows;
    for (size_t i = 0; i < static_cast<size_t>(c.length); ++i)
      docStart.push_back(static_cast<int32_t>(c.start(i)));
    for (double window : c.windows)
      windows.push_back(static_cast<int32_t>(window));
    rt::ExecutedPairs expected = rt::executedPairs(docStart, c.length, windows);
    EXPECT_EQ(touchedPairs(forward.run()[0], c), expected.forward);
    EXPECT_EQ(touchedPairs(keyValue.run()[1], c), expected.gradKeyValue);
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
      bool flat = offset == 63 && window == 5; // 59..63 and, in the second head, 61..63
      if (flat) {
        harness.fill[0] = [](size_t, size_t) { return 0.0; };
        harness.fill[2] = [](size_t, size_t i) { return static_cast<double>(i / 32 % 96); };
      }
      harness.check(5e-6);
      if (flat) {
        auto out = harness.run()[0];
        EXPECT_NEAR(out[0], 61, 1e-5);
        EXPECT_NEAR(out[16], 62, 1e-5);
      }
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

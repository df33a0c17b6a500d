//===- patterns-test.cpp - Fixed patterns, slices -------------------------===//
//
// Machine code against the interpreter's float64 loops over pairs.
//
//===----------------------------------------------------------------------===//
#include "test/passes/Codegen/KernelHarness.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

namespace weft::test {
namespace {

/// One mix: sizes, windows by head, and the value head of each head.
struct Case : DocumentRows {
  int64_t channel = 8, heads = 2, kvHeads = 2;
  int64_t places = 0; // of the pattern; 0: length
  std::vector<double> windows{kFull};
  std::vector<double> firstPlaces{}; // behind the windows, one a head
  std::vector<double> kvOf{};

  std::string value() const {
    return tensor(front() + "kv:" + std::to_string(kvHeads) + " head:" + std::to_string(channel));
  }
  std::string pattern() const {
    return tensor("frozen:" + std::to_string(heads) +
                  " place:" + std::to_string(places > 0 ? places : length));
  }
  std::string out() const {
    return tensor(front() + "frozen:" + std::to_string(heads) + " head:" + std::to_string(channel));
  }
  std::string perQuery() const { return tensor(front() + "frozen:" + std::to_string(heads)); }
  std::string documents() const { return tensor(front(), "i32"); }
  std::string perHead() const { return "tensor<" + std::to_string(heads) + "xi32>"; }
  std::string perWindow() const {
    return "tensor<" + std::to_string(firstPlaces.empty() ? heads : 2 * heads) + "xi32>";
  }
};

/// A kernel of one op: `operands` name and type, `results` types; `body` stands
/// between the op's name and its types.
std::string kernelText(const std::string &op,
                       const std::vector<std::pair<std::string, std::string>> &operands,
                       const std::vector<std::string> &results, const std::string &body) {
  std::string arguments, types, out, values, names;
  for (const auto &[name, type] : operands) {
    arguments += (arguments.empty() ? "%" : ", %") + name + ": " + type;
    types += (types.empty() ? "" : ", ") + type;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    out += (i ? ", " : "") + results[i];
    values += (i ? ", %res#" : "%res#") + std::to_string(i);
  }
  return "weft.kernel @k rows [] chunks 1 (" + arguments + ") -> (" + out +
         ") {\n%res:" + std::to_string(results.size()) + " = weft." + op + " " + body + " : (" + types +
         ") -> (" + out + ")\nweft.yield " + values + " : " + out + " }";
}

std::vector<std::pair<std::string, std::string>>
withKv(const Case &c, std::vector<std::pair<std::string, std::string>> operands) {
  if (!c.kvOf.empty())
    operands.emplace_back("kv", c.perHead());
  return operands;
}

std::string forwardText(const Case &c) {
  std::string kv = c.kvOf.empty() ? "" : " kv_of %kv";
  return kernelText("mix",
                    withKv(c, {{"v", c.value()},
                               {"a", c.pattern()},
                               {"r", c.pattern()},
                               {"w", c.perWindow()},
                               {"d", c.documents()}}),
                    {c.out(), c.perQuery()}, "%v, %a, %r windows %w documents %d" + kv);
}

std::string valueGradText(const Case &c) {
  std::string kv = c.kvOf.empty() ? "" : " kv_of %kv";
  return kernelText("mix_grad_value",
                    withKv(c, {{"a", c.pattern()},
                               {"r", c.pattern()},
                               {"w", c.perWindow()},
                               {"d", c.documents()},
                               {"l", c.perQuery()},
                               {"g", c.out()}}),
                    {c.value()}, "%a, %r windows %w documents %d, %l, %g" + kv);
}

std::string patternGradText(const Case &c) {
  std::string kv = c.kvOf.empty() ? "" : " kv_of %kv";
  return kernelText("mix_grad_pattern",
                    withKv(c, {{"v", c.value()},
                               {"a", c.pattern()},
                               {"r", c.pattern()},
                               {"w", c.perWindow()},
                               {"d", c.documents()},
                               {"o", c.out()},
                               {"l", c.perQuery()},
                               {"g", c.out()}}),
                    {c.pattern(), c.pattern()}, "%v, %a, %r windows %w documents %d, %o, %l, %g" + kv);
}

std::string wholePattern(const Case &c) {
  const std::string places = std::to_string(c.places > 0 ? c.places : c.length);
  return tensor("frozen:" + std::to_string(c.heads) + " row:" + places + " place:" + places);
}

std::string wholeForwardText(const Case &c) {
  return kernelText("mix_dense", withKv(c, {{"v", c.value()}, {"p", wholePattern(c)}, {"d", c.documents()}}),
                    {c.out()}, std::string("%v, %p documents %d") + (c.kvOf.empty() ? "" : " kv_of %kv"));
}

std::string wholeGradText(const Case &c) {
  return kernelText("mix_dense_grad_value",
                    withKv(c, {{"p", wholePattern(c)}, {"d", c.documents()}, {"g", c.out()}}), {c.value()},
                    std::string("%p documents %d, %g") + (c.kvOf.empty() ? "" : " kv_of %kv"));
}

/// `first` is the argument of the windows; documents stand behind it.
void fillCommon(KernelHarness &harness, const Case &c, size_t first, size_t kv) {
  harness.fill[first] = [&c](size_t, size_t i) {
    const auto heads = static_cast<size_t>(c.heads);
    return i < heads ? c.windows[i % c.windows.size()] : c.firstPlaces[(i - heads) % c.firstPlaces.size()];
  };
  harness.fill[first + 1] = [&c](size_t, size_t i) { return c.start(i); };
  if (!c.kvOf.empty())
    harness.fill[kv] = [&c](size_t, size_t i) { return c.kvOf[i]; };
}

KernelHarness::Fill numbers(std::vector<float> values) {
  return [values = std::move(values)](size_t, size_t i) { return static_cast<double>(values[i]); };
}

void checkAll(const Case &c) {
  SCOPED_TRACE("length " + std::to_string(c.length) + ", channel " + std::to_string(c.channel) + ", heads " +
               std::to_string(c.heads) + " on " + std::to_string(c.kvHeads) + ", window " +
               std::to_string(c.windows[0]));
  // One pattern for all three, with the range that a fit may give.
  auto pattern = [](size_t operand, size_t i) {
    return -3.0 + 3 * std::sin(static_cast<double>(operand * 977 + i * 13));
  };
  KernelHarness forward(forwardText(c));
  fillCommon(forward, c, 3, 5);
  forward.fill[1] = [&](size_t, size_t i) { return pattern(1, i); };
  forward.fill[2] = [&](size_t, size_t i) { return pattern(2, i); };
  forward.check(5e-6);
  auto results = forward.run();
  KernelHarness value(valueGradText(c));
  fillCommon(value, c, 2, 6);
  value.fill[0] = forward.fill[1], value.fill[1] = forward.fill[2];
  value.fill[4] = numbers(results[1]);
  value.check(1e-5);
  KernelHarness patterns(patternGradText(c));
  fillCommon(patterns, c, 3, 8);
  patterns.fill[0] = numbers([&] {
    std::vector<float> v;
    for (double x : forward.inputs()[0].data)
      v.push_back(static_cast<float>(x));
    return v;
  }());
  patterns.fill[1] = forward.fill[1], patterns.fill[2] = forward.fill[2];
  patterns.fill[5] = numbers(results[0]);
  patterns.fill[6] = numbers(results[1]);
  patterns.check(1e-4);
}

// Catches: a window off by one at either end, a diagonal off by one, the wrong
// end of a slice of diagonals in an edge block.
TEST(Patterns, windows) {
  for (int64_t length : {1, 7, 64, 65, 150}) {
    auto last = static_cast<double>(length);
    Case c;
    c.length = length;
    c.heads = c.kvHeads = 7;
    c.windows = {1, 2, 3, 64, std::max(last - 1, 1.0), last, kFull};
    checkAll(c);
  }
}

// Catches: places counted from the row's start and not from the document's, keys
// of another document, one start for all rows of a block.
TEST(Patterns, documents) {
  for (std::vector<double> starts :
       {std::vector<double>{0, 1, 2, 3}, {0, 63, 64}, {0, 30, 100, 129}, {0, 64, 128}}) {
    Case c;
    c.batch = 2;
    c.length = 131;
    c.heads = c.kvHeads = 4;
    c.windows = {kFull, 40, 7, 1};
    c.starts = starts;
    checkAll(c);
  }
}

// Catches: the value head of another head; heads of one value head not summed;
// value heads that no head reads not zero; a longer pattern read with the row's stride.
TEST(Patterns, groups) {
  for (std::vector<double> kvOf : {std::vector<double>{0, 0, 1, 2, 2}, {2, 0, 2, 2, 0}}) {
    Case c;
    c.batch = 2;
    c.length = 70;
    c.heads = 5;
    c.kvHeads = 3;
    c.places = 90;
    c.kvOf = kvOf;
    c.windows = {kFull, 5, 30, 1, 64};
    c.starts = {0, 20};
    checkAll(c);
  }
}

// Windows of one place and of a block, first places that end before, in and behind a window,
// documents that begin in a block, shared values. Catches: pairs counted twice where both see
// a key, first places of the row and not of the document, keys behind the last query's window
// left out, first places of an earlier document.
TEST(Patterns, firstPlaces) {
  for (std::vector<double> starts : {std::vector<double>{0}, {0, 30, 100, 101, 163}, {0, 64, 192}})
    for (bool shared : {false, true}) {
      Case c;
      c.batch = 2;
      c.length = 260;
      c.heads = 5;
      c.kvHeads = shared ? 2 : 5;
      c.places = 270;
      if (shared)
        c.kvOf = {1, 0, 1, 1, 0};
      c.windows = {1, 64, 20, kFull, 100};
      c.firstPlaces = {64, 128, 0, 64, 192};
      c.starts = starts;
      checkAll(c);
    }
}

TEST(Patterns, channels) {
  for (int64_t channel : {6, 32, 65, 128}) {
    Case c;
    c.length = 67;
    c.channel = channel;
    checkAll(c);
  }
}

TEST(Patterns, narrowVectors) {
  for (int bits : {128, 256}) {
    Case c;
    c.length = 70;
    c.channel = 12;
    KernelHarness forward(forwardText(c));
    forward.vectorBits = bits;
    fillCommon(forward, c, 3, 5);
    forward.check(5e-6);
  }
}

// One query at the end of a cache, in a document that began at 10.
TEST(Patterns, decode) {
  for (double offset : {0.0, 1.0, 63.0, 64.0, 90.0})
    for (double window : {kFull, 5.0, 6.0}) {
      const bool firstPlaces = window == 6; // 64 of them, of two heads
      std::string v = tensor("batch:2 cache:96 kv:2 head:16"), p = tensor("frozen:4 place:100"),
                  d = tensor("batch:2 pos:1", "i32"), o = tensor("batch:2 pos:1 frozen:4 head:16"),
                  l = tensor("batch:2 pos:1 frozen:4");
      KernelHarness harness(kernelText("mix",
                                       {{"v", v},
                                        {"a", p},
                                        {"r", p},
                                        {"w", firstPlaces ? "tensor<8xi32>" : "tensor<4xi32>"},
                                        {"d", d},
                                        {"o", "tensor<i32>"},
                                        {"kv", "tensor<4xi32>"}},
                                       {o, l}, "%v, %a, %r windows %w documents %d offset %o kv_of %kv"));
      harness.fill[3] = [window](size_t, size_t i) {
        return i == 1 ? 3.0 : i < 4 ? window : 64.0 * static_cast<double>(i % 2);
      };
      harness.fill[4] = [offset](size_t, size_t i) { return i == 1 && offset > 60 ? 10.0 : 0.0; };
      harness.fill[5] = [offset](size_t, size_t) { return offset; };
      harness.fill[6] = [](size_t, size_t i) { return static_cast<double>(i / 2); };
      harness.check(5e-6);
    }
}

/// Both kernels of whole patterns, whose upper triangles are not zero here.
void checkWhole(const Case &c, int bits = 0) {
  SCOPED_TRACE("length " + std::to_string(c.length) + ", channel " + std::to_string(c.channel));
  KernelHarness forward(wholeForwardText(c)), gradient(wholeGradText(c));
  forward.vectorBits = gradient.vectorBits = bits;
  forward.fill[2] = gradient.fill[1] = [&c](size_t, size_t i) { return c.start(i); };
  if (!c.kvOf.empty())
    forward.fill[3] = gradient.fill[3] = [&c](size_t, size_t i) { return c.kvOf[i]; };
  forward.check(1e-5);
  gradient.check(1e-5);
}

// Catches: a row of the pattern by the query's place in the row and not in its document, keys
// after the query or of another document, an edge block read past its end, heads of one value
// head not summed, a longer pattern read with the row's stride.
TEST(Patterns, whole) {
  for (int64_t length : {1, 65, 131}) {
    Case c;
    c.batch = 2;
    c.length = length;
    c.channel = 12;
    c.starts = {0, 1, 30, 64, 66, 129};
    checkWhole(c);
  }
  Case c;
  c.batch = 2;
  c.length = 70;
  c.heads = 5, c.kvHeads = 3, c.places = 90;
  c.kvOf = {2, 0, 2, 2, 0};
  checkWhole(c, 128);
}

// One query at the end of a cache, in a document that began at 10.
TEST(Patterns, wholeDecode) {
  for (double offset : {0.0, 64.0, 90.0}) {
    std::string v = tensor("batch:2 cache:96 kv:2 head:16"), p = tensor("frozen:4 row:100 place:100"),
                d = tensor("batch:2 pos:1", "i32"), o = tensor("batch:2 pos:1 frozen:4 head:16");
    KernelHarness harness(
        kernelText("mix_dense", {{"v", v}, {"p", p}, {"d", d}, {"o", "tensor<i32>"}, {"kv", "tensor<4xi32>"}},
                   {o}, "%v, %p documents %d offset %o kv_of %kv"));
    harness.fill[2] = [offset](size_t, size_t i) { return i == 1 && offset > 60 ? 10.0 : 0.0; };
    harness.fill[3] = [offset](size_t, size_t) { return offset; };
    harness.fill[4] = [](size_t, size_t i) { return static_cast<double>(i / 2); };
    harness.check(1e-5);
  }
}

// Catches: slices of the wrong stride, an index counted in one of two axes, a
// repeated index that is not summed, places without a slice that are not zero.
TEST(Slices, takeAndPut) {
  struct Sliced {
    const char *whole, *part, *axes, *indices;
  };
  for (const Sliced &s :
       {Sliced{"dim:3 heads:4 head:5", "dim:3 live:2 head:5", "[\"heads\"]", "[1, 3]"},
        {"kv:2 group:3 head:7 dim:9", "live:4 head:7 dim:9", "[\"kv\", \"group\"]", "[5, 0, 2, 5]"},
        {"heads:3 dim:9000", "live:1 dim:9000", "[\"heads\"]", "[2]"},
        {"heads:5", "live:3", "[\"heads\"]", "[0, 1, 4]"}}) {
    std::string whole = tensor(s.whole), part = tensor(s.part), indices = s.indices;
    KernelHarness take(kernelText("take", {{"x", whole}}, {part},
                                  "%x " + std::string(s.axes) + " as \"live\" at " + indices));
    take.check(0);
    KernelHarness put(kernelText("put", {{"y", part}}, {whole},
                                 "%y from \"live\" to " + std::string(s.axes) + " at " + indices));
    put.check(1e-7);
  }
}

/// Prints speeds; WEFT_BENCH=1 asks for it.
TEST(Patterns, speed) {
  if (!std::getenv("WEFT_BENCH"))
    GTEST_SKIP() << "set WEFT_BENCH=1 to measure";
  for (int64_t length : {256, 2048})
    for (int64_t channel : {32, 64}) {
      Case c;
      c.length = length;
      c.batch = 2048 / length;
      c.channel = channel;
      c.heads = c.kvHeads = 4;
      KernelHarness forward(forwardText(c)), value(valueGradText(c)), pattern(patternGradText(c));
      fillCommon(forward, c, 3, 5);
      fillCommon(value, c, 2, 6);
      fillCommon(pattern, c, 3, 8);
      std::printf("T=%d, 2048 tokens, 4 heads of %d: forward %.3f ms, dv %.3f ms, da dr %.3f ms\n",
                  static_cast<int>(length), static_cast<int>(channel), forward.time(20) * 1e3,
                  value.time(20) * 1e3, pattern.time(20) * 1e3);
    }
}

/// Calibration: documents of `lengths`, the longest first, laid end to end in rows.
struct Calibration : DocumentRows {
  int64_t channel = 8;
  std::string heads = "heads:2", kv = "heads:2";
  int64_t headCount = 2;
  std::vector<double> windows{kFull};
  std::vector<double> kvOf{};
  std::vector<std::pair<double, int64_t>> documents{}; // place of all rows, length

  std::string text() const {
    const std::string perHead = "tensor<" + std::to_string(headCount) + "xi32>";
    const std::string table =
        tensor("live:" + std::to_string(headCount) + " place:" + std::to_string(length));
    std::vector<std::pair<std::string, std::string>> operands = {
        {"q", tensor(front() + heads + " head:" + std::to_string(channel))},
        {"k", tensor(front() + kv + " head:" + std::to_string(channel))},
        {"l", tensor(front() + heads)},
        {"w", perHead},
        {"d", "tensor<" + std::to_string(batch * length) + "xi32>"},
        {"n", "tensor<" + std::to_string(length) + "xi32>"},
        {"a", table},
        {"r", table},
        {"z", table}};
    if (!kvOf.empty())
      operands.emplace_back("t", perHead);
    return kernelText("pattern_statistics", operands,
                      {table, table, tensor("live:" + std::to_string(headCount) + " sum:8")},
                      std::string("%q, %k, %l windows %w documents %d reach %n pattern %a, %r, %z ") +
                          (kvOf.empty() ? "" : "kv_of %t ") + "{scale = 0.3 : f64}");
  }
};

void checkCalibration(const Calibration &c) {
  SCOPED_TRACE("length " + std::to_string(c.length) + ", heads " + c.heads + " on " + c.kv + ", window " +
               std::to_string(c.windows[0]));
  KernelHarness harness(c.text());
  harness.fill[2] = [](size_t, size_t i) { return 2 + 0.1 * static_cast<double>(i % 11); };
  harness.fill[3] = [&c](size_t, size_t i) { return c.windows[i % c.windows.size()]; };
  harness.fill[4] = [&c](size_t, size_t i) { return i < c.documents.size() ? c.documents[i].first : 0; };
  harness.fill[5] = [&c](size_t, size_t i) {
    return static_cast<double>(std::count_if(c.documents.begin(), c.documents.end(), [i](const auto &each) {
      return each.second > static_cast<int64_t>(i);
    }));
  };
  harness.fill[8] = [](size_t, size_t i) { return 3 + 0.1 * static_cast<double>(i % 7); };
  if (!c.kvOf.empty())
    harness.fill[9] = [&c](size_t, size_t i) { return c.kvOf[i]; };
  harness.check(2e-5);
}

// Catches: a row or key of another document, a mean over documents that are too short,
// squares about another mean, a diagonal one off, lanes past the last row that count.
TEST(Patterns, calibration) {
  for (int64_t length : {1, 7, 64, 65, 150}) {
    Calibration c;
    c.batch = 3;
    c.length = length;
    c.windows = {3, kFull};
    const auto row = static_cast<double>(length);
    c.documents = {{0, length}, {row, length}, {2 * row + length / 3, length - length / 3}};
    if (length / 3 > 0)
      c.documents.emplace_back(2 * row, length / 3);
    checkCalibration(c);
  }
  Calibration c;
  c.batch = 2;
  c.length = 131;
  c.channel = 10;
  c.heads = "kv:2 group:3";
  c.kv = "kv:2";
  c.headCount = 6;
  c.windows = {kFull, 5, 30, 1, 64, 65};
  c.documents = {{131, 131}, {30, 70}, {100, 29}, {0, 1}};
  checkCalibration(c);
  c.heads = "live:6";
  c.kvOf = {0, 1, 0, 1, 1, 1};
  checkCalibration(c);
  c.documents.clear();
  checkCalibration(c);
}

} // namespace
} // namespace weft::test

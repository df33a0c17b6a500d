//===- products-test.cpp - Products, look-ups, sums and losses ------------===//
#include "test/passes/Codegen/KernelHarness.h"

#include <gtest/gtest.h>

namespace weft::test {
namespace {

/// A kernel of one op: "OP ARGUMENTS : (TYPES) -> RESULTS".
std::string single(const std::string &head, const std::vector<std::string> &types,
                   const std::vector<std::string> &results, const std::string &op) {
  std::string arguments, inputs, outputs, values;
  for (size_t i = 0; i < types.size(); ++i) {
    arguments += (i ? ", %" : "%") + std::to_string(i) + ": " + types[i];
    inputs += (i ? ", " : "") + types[i];
  }
  for (size_t i = 0; i < results.size(); ++i) {
    outputs += (i ? ", " : "") + results[i];
    values += (i ? ", %r" : "%r") + std::to_string(i);
  }
  return "weft.kernel @" + head + " rows [] chunks 1 (" + arguments + ") -> (" + outputs + ") {\n" + values +
         " = " + op + " : (" + inputs + ") -> " + (results.size() > 1 ? "(" + outputs + ")" : outputs) +
         "\nweft.yield " + values + " : " + outputs + " }";
}

struct Product {
  const char *a, *b, *c;
  bool blas; // as it is stored
};

// Catches: a wrong transpose flag or leading size, batch taken for rows, a
// product that BLAS can't do given to it.
TEST(Products, everyOrderOfAxes) {
  for (Product product :
       {Product{"batch:2 pos:9 dim:7", "out:5 dim:7", "batch:2 pos:9 out:5", true},
        Product{"batch:2 pos:9 dim:7", "dim:7 out:5", "batch:2 pos:9 out:5", true},
        Product{"batch:2 pos:9 dim:7", "batch:2 pos:9 out:5", "dim:7 out:5", true},
        Product{"batch:2 pos:9 dim:7", "batch:2 pos:9 out:5", "out:5 dim:7", false},
        Product{"pos:9 heads:3 head:7", "heads:3 head:7 out:5", "pos:9 out:5", true},
        Product{"pos:9 heads:3 head:7", "heads:3 head:7 out:5", "pos:9 heads:3 out:5", true},
        Product{"pos:9 heads:3 head:7", "heads:3 out:5 head:7", "heads:3 pos:9 out:5", true},
        Product{"a:4 b:3 c:5", "b:3 d:6 c:5", "a:4 d:6", false},
        Product{"a:4 b:3 c:5", "c:5 d:6 b:3", "a:4 d:6", false},
        Product{"a:4 b:3 c:5", "b:3 d:6", "c:5 d:6 a:4", false},
        Product{"pos:70 dim:7", "out:90 dim:7", "out:90 pos:70", false}, Product{"n:9", "n:9", "", true}}) {
    for (bool init : {false, true}) {
      std::string a = tensor(product.a), b = tensor(product.b), c = tensor(product.c);
      SCOPED_TRACE(a + " by " + b + " to " + c);
      std::vector<std::string> types{a, b};
      if (init)
        types.push_back(c);
      KernelHarness harness(
          single("k", types, {c}, init ? "weft.contract %0, %1 init %2" : "weft.contract %0, %1"));
      if (init)
        harness.inPlace = {{0, 2}};
      EXPECT_EQ(gemmOf(harness.kernel()).has_value(), product.blas);
      harness.check(1e-5);
    }
  }
}

TEST(Products, gather) {
  for (int64_t width : {1, 7, 33, 128}) {
    std::string table = tensor("vocab:11 dim:" + std::to_string(width)),
                index = tensor("batch:2 pos:9", "i32");
    std::string y = tensor("batch:2 pos:9 dim:" + std::to_string(width));
    KernelHarness harness(single("k", {table, index}, {y}, "weft.gather %0, %1"));
    harness.fill[1] = [](size_t, size_t i) { return static_cast<double>(i * 7 % 11); };
    harness.check(0);
  }
}

TEST(Products, gatherOutsideTheTableIsZero) {
  std::string table = tensor("vocab:3 dim:5"), index = tensor("pos:4", "i32"), y = tensor("pos:4 dim:5");
  KernelHarness harness(single("k", {table, index}, {y}, "weft.gather %0, %1"));
  harness.fill[0] = [](size_t, size_t) { return 1.0; };
  harness.fill[1] = [](size_t, size_t i) { return std::array{-1.0, 2.0, 3.0, 0.0}[i]; };
  auto y0 = harness.run().at(0);
  for (size_t i = 0; i < y0.size(); ++i)
    EXPECT_EQ(y0[i], i / 5 == 1 || i / 5 == 3 ? 1 : 0);
}

// Catches: rows of a neighbour's share, a start that is not zero, init counted twice.
TEST(Products, gatherGrad) {
  for (bool init : {false, true})
    for (int64_t vocab : {3, 17, 100}) {
      std::string index = tensor("batch:2 pos:50", "i32"), dy = tensor("batch:2 pos:50 dim:19");
      std::string table = tensor("vocab:" + std::to_string(vocab) + " dim:19");
      std::vector<std::string> types{index, dy};
      if (init)
        types.push_back(table);
      for (bool shared : {false, true}) {
        KernelHarness harness(single("k", types, {table},
                                     init ? "weft.gather_grad %0, %1 init %2" : "weft.gather_grad %0, %1"));
        if (init && shared)
          harness.inPlace = {{0, 2}};
        harness.fill[0] = [vocab](size_t, size_t i) {
          return static_cast<double>(i * i % static_cast<size_t>(vocab));
        };
        harness.check(2e-6);
      }
    }
}

TEST(Products, positionsAndDocuments) {
  std::string type = tensor("batch:3 pos:7", "i32");
  auto starts = [](size_t, size_t i) { return std::array{0.0, 0.0, 0.0, 3.0, 3.0, 5.0, 6.0}[i % 7]; };
  KernelHarness position(single("k", {type, "tensor<i32>"}, {type}, "weft.position %0 offset %1"));
  position.fill = {{0, starts}, {1, [](size_t, size_t) { return 40.0; }}};
  position.check(0);
  KernelHarness document(single("k", {type}, {type}, "weft.document %0"));
  document.fill = {{0, starts}};
  document.check(0);
  KernelHarness integers("weft.kernel @k rows [] chunks 1 () -> (tensor<3xi32, #weft.axes<h>>) {\n"
                         "%0 = weft.integers [5, -1, 2147483647] : tensor<3xi32, #weft.axes<h>>\n"
                         "weft.yield %0 : tensor<3xi32, #weft.axes<h>> }");
  integers.check(0);
}

TEST(Products, cacheUpdate) {
  std::string cache = tensor("batch:2 keys:9 kv:2 head:5"), value = tensor("batch:2 pos:3 kv:2 head:5");
  for (bool shared : {false, true}) {
    KernelHarness harness(
        single("k", {cache, value, "tensor<i32>"}, {cache}, "weft.cache_update %0, %1, %2"));
    harness.fill[2] = [](size_t, size_t) { return 4.0; };
    if (shared)
      harness.inPlace = {{0, 0}};
    harness.check(0);
  }
}

TEST(Products, sums) {
  using Case = std::pair<const char *, const char *>;
  for (auto [from, to] :
       {Case{"chunk:6 dim:1037", "dim:1037"}, Case{"batch:3 pos:37", ""}, Case{"a:3 b:5 c:18", "a:3 c:18"},
        Case{"a:3 b:5 c:18", "c:18 b:5"}, Case{"a:3 b:5 c:18", "b:5"}, Case{"a:3 b:5 c:18", "c:18"},
        Case{"a:3 b:5", "b:5 a:3"}})
    for (bool init : {false, true}) {
      SCOPED_TRACE(std::string(from) + " to " + to);
      std::vector<std::string> types{tensor(from)};
      if (init)
        types.push_back(tensor(to));
      KernelHarness harness(
          single("k", types, {tensor(to)}, init ? "weft.sum_to %0 init %1" : "weft.sum_to %0"));
      if (init)
        harness.inPlace = {{0, 1}};
      harness.check(1e-5);
    }
}

// Catches: sums in float32: 2^24 + 1 small squares would vanish.
TEST(Products, norm) {
  for (int64_t count : {1, 63, 64, 1000, 40001}) {
    KernelHarness harness(single("k", {"tensor<" + std::to_string(count) + "xf32>", "tensor<f32>"},
                                 {"tensor<f32>"}, "weft.norm %0, %1"));
    harness.fill[0] = [](size_t, size_t i) { return i == 0 ? 16384.0 : 0.5; };
    harness.check(1e-7);
  }
}

// Catches: -1 counted, a target's own term forgotten, the sum over the padded vocabulary.
TEST(Products, crossEntropy) {
  for (int64_t vocab : {2, 16, 65, 257})
    for (const char *numbers :
         {"z = 0.0 : f64, smoothing = 0.0 : f64", "z = 1.0e-2 : f64, smoothing = 0.1 : f64"})
      for (bool weighted : {false, true}) {
        std::string logits = tensor("batch:2 pos:9 vocab:" + std::to_string(vocab));
        std::string targets = tensor("batch:2 pos:9", "i32"), rows = tensor("batch:2 pos:9");
        std::vector<std::string> types{logits, targets};
        if (weighted)
          types.push_back(rows);
        std::string tail = std::string(" %0, %1") + (weighted ? " weight %2" : "") + " {" + numbers + "}";
        KernelHarness loss(single("k", types, {"tensor<f32>"}, "weft.cross_entropy" + tail));
        KernelHarness grad(single("k", types, {logits, rows}, "weft.cross_entropy_grad" + tail));
        grad.inPlace = {{0, 0}};
        for (KernelHarness *harness : {&loss, &grad}) {
          harness->fill[0] = [](size_t, size_t i) { return static_cast<double>(i * 31 % 97) / 3; };
          harness->fill[1] = [vocab](size_t, size_t i) {
            return i % 4 == 1 ? -1.0 : static_cast<double>(i * 5 % static_cast<size_t>(vocab));
          };
          harness->check(1e-5);
        }
      }
}

TEST(Products, hashSeesWhatCounts) {
  auto hash = [](const std::string &name, const std::string &axis, int64_t size, const std::string &fn) {
    std::string type = tensor(axis + ":" + std::to_string(size));
    KernelHarness harness("weft.kernel @" + name + " rows [] chunks 1 (%x: " + type + ") -> (" + type +
                          ") {\n%y = weft.unary " + fn + " %x {weft.label = \"" + name + "\"} : (" + type +
                          ") -> " + type + "\nweft.yield %y : " + type + " }");
    return structuralHash(harness.kernel());
  };
  std::string one = hash("a", "dim", 8, "exp");
  EXPECT_EQ(one.size(), 16U);
  EXPECT_EQ(one, hash("b", "dim", 8, "exp"));
  EXPECT_EQ(one, hash("b", "mlp", 8, "exp"));
  EXPECT_NE(one, hash("a", "dim", 9, "exp"));
  EXPECT_NE(one, hash("a", "dim", 8, "log"));
}

} // namespace
} // namespace weft::test

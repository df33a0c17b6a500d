//===- costs-test.cpp - What ops cost, against counting by hand -----------===//
#include "dialects/Weft/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace weft {
namespace {

/// The cost of the only op of `mnemonic` in a function over `arguments`.
Cost costOf(const std::string &arguments, const std::string &body, StringRef name) {
  DialectRegistry registry;
  registerWeftDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module =
      parseSourceString<ModuleOp>("func.func @f(" + arguments + ") {\n" + body + "\nreturn }", &context);
  EXPECT_TRUE(module);
  Cost cost;
  if (module)
    module->walk([&](CostOpInterface op) {
      if (op->getName().getStringRef() == name)
        cost += op.getCost();
    });
  return cost;
}

TEST(Costs, ContractCountsEachPointOfTheUnionTwice) {
  Cost cost = costOf(
      "%a : tensor<3x5x7xf32, #weft.axes<batch, pos, dim>>, %b : tensor<7x11xf32, #weft.axes<dim, hidden>>",
      "%r = weft.contract %a, %b : (tensor<3x5x7xf32, #weft.axes<batch, pos, dim>>, tensor<7x11xf32, "
      "#weft.axes<dim, hidden>>) -> tensor<3x5x11xf32, #weft.axes<batch, pos, hidden>>",
      "weft.contract");
  EXPECT_EQ(cost.productFlops, 2.0 * 3 * 5 * 7 * 11);
  EXPECT_EQ(cost.bytesRead, 4.0 * (3 * 5 * 7 + 7 * 11));
  EXPECT_EQ(cost.bytesWritten, 4.0 * (3 * 5 * 11));
}

Cost attentionCost(const std::string &windows) {
  std::string q = "tensor<2x6x3x4xf32, #weft.axes<batch, pos, heads, head>>",
              ids = "tensor<2x6xi32, #weft.axes<batch, pos>>";
  return costOf("%q : " + q + ", %d : " + ids,
                "%w = weft.integers [" + windows +
                    "] : tensor<3xi32>\n%o, %l = weft.attend %q, %q, %q windows %w documents %d "
                    "{scale = 1.0 : f64} : (" +
                    q + ", " + q + ", " + q + ", tensor<3xi32>, " + ids + ") -> (" + q +
                    ", tensor<2x6x3xf32, #weft.axes<batch, pos, heads>>)",
                "weft.attend");
}

TEST(Costs, AttentionCountsCausalPairs) {
  Cost cost = attentionCost("2147483647, 6, 7");
  EXPECT_EQ(cost.productFlops, 2.0 * (2 * 3 * 6 * 7 / 2) * (4 + 4)); // T (T + 1) / 2 pairs
}

// Window 1: a pair a query. Window 3 of 6: 1 + 2 + 3 + 3 + 3 + 3.
TEST(Costs, AttentionCountsOnlyPairsInsideWindows) {
  Cost cost = attentionCost("1, 3, 6");
  EXPECT_EQ(cost.productFlops, 2.0 * 2 * (6 + 15 + 21) * (4 + 4));
}

TEST(Costs, DecodingCountsTheWholeCache) {
  std::string q = "tensor<1x1x2x4xf32, #weft.axes<batch, pos, heads, head>>",
              k = "tensor<1x9x4xf32, #weft.axes<batch, cache, head>>",
              ids = "tensor<1x1xi32, #weft.axes<batch, pos>>";
  Cost cost =
      costOf("%q : " + q + ", %k : " + k + ", %d : " + ids + ", %s : tensor<i32>",
             "%w = weft.integers [2147483647, 4] : tensor<2xi32>\n%o, %l = weft.attend %q, %k, %k windows %w "
             "documents %d offset %s {scale = 1.0 : f64} : (" +
                 q + ", " + k + ", " + k + ", tensor<2xi32>, " + ids + ", tensor<i32>) -> (" + q +
                 ", tensor<1x1x2xf32, #weft.axes<batch, pos, heads>>)",
             "weft.attend");
  EXPECT_EQ(cost.productFlops, 2.0 * (9 + 4) * (4 + 4));
}

// T (T + 1) / 2 pairs a row and head, whatever is zero in the pattern; backward as many.
TEST(Costs, WholePatternsCountCausalPairs) {
  std::string v = "tensor<2x6x3x4xf32, #weft.axes<batch, pos, heads, head>>",
              p = "tensor<3x8x8xf32, #weft.axes<heads, row, place>>",
              ids = "tensor<2x6xi32, #weft.axes<batch, pos>>",
              arguments = "%v : " + v + ", %p : " + p + ", %d : " + ids;
  Cost forward = costOf(
      arguments, "%o = weft.mix_dense %v, %p documents %d : (" + v + ", " + p + ", " + ids + ") -> " + v,
      "weft.mix_dense");
  EXPECT_EQ(forward.productFlops, 2.0 * (2 * 3 * 6 * 7 / 2) * 4);
  EXPECT_EQ(forward.bytesRead, 4.0 * (2 * 6 * 3 * 4 + 3 * 8 * 8 + 2 * 6));
  Cost backward = costOf(arguments,
                         "%o = weft.mix_dense_grad_value %p documents %d, %v : (" + p + ", " + ids + ", " +
                             v + ") -> " + v,
                         "weft.mix_dense_grad_value");
  EXPECT_EQ(backward.productFlops, forward.productFlops);
}

TEST(Costs, GatherReadsItsRowsAndNotTheTable) {
  std::string table = "tensor<1000x4xf32, #weft.axes<vocab, dim>>",
              ids = "tensor<2x3xi32, #weft.axes<batch, pos>>";
  Cost cost = costOf("%t : " + table + ", %i : " + ids,
                     "%y = weft.gather %t, %i : (" + table + ", " + ids +
                         ") -> tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>",
                     "weft.gather");
  EXPECT_EQ(cost.bytesRead, 4.0 * (6 + 24));
  EXPECT_EQ(cost.bytesWritten, 4.0 * 24);
}

// Head 0: window 50 and 64 first places of 200; head 1: all. Pairs counted one by one.
TEST(Costs, PatternsCountFirstPlacesBehindTheWindow) {
  std::string v = "tensor<3x200x2x4xf32, #weft.axes<batch, pos, kv, head>>",
              a = "tensor<2x200xf32, #weft.axes<frozen, place>>",
              d = "tensor<3x200xi32, #weft.axes<batch, pos>>",
              out = "tensor<3x200x2x4xf32, #weft.axes<batch, pos, frozen, head>>",
              lse = "tensor<3x200x2xf32, #weft.axes<batch, pos, frozen>>";
  Cost cost = costOf("%v : " + v + ", %a : " + a + ", %d : " + d,
                     "%w = weft.integers [50, 2147483647, 64, 64] : tensor<4xi32>\n"
                     "%o, %l = weft.mix %v, %a, %a windows %w documents %d : (" +
                         v + ", " + a + ", " + a + ", tensor<4xi32>, " + d + ") -> (" + out + ", " + lse + ")",
                     "weft.mix");
  int64_t pairs = 0;
  for (int64_t i = 0; i < 200; ++i)
    for (int64_t j = 0; j <= i; ++j)
      pairs += 1 + (i - j < 50 || j < 64 ? 1 : 0);
  EXPECT_EQ(cost.productFlops, 2.0 * 3 * 4 * static_cast<double>(pairs));
}

// Forward, dx and dtable: three products of targets x words x channels.
TEST(Costs, LossHeadGradientIsThreeProducts) {
  std::string x = "tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>",
              table = "tensor<4x10xf32, #weft.axes<dim, vocab>>",
              ids = "tensor<2x3xi32, #weft.axes<batch, pos>>",
              types = "(" + x + ", " + table + ", " + ids + ")";
  std::string numbers = "{z = 0.0 : f64, smoothing = 0.0 : f64}";
  Cost forward = costOf("%x : " + x + ", %t : " + table + ", %i : " + ids,
                        "%l = weft.loss_head %x, %t, %i " + numbers + " : " + types + " -> tensor<f32>",
                        "weft.loss_head");
  Cost backward = costOf("%x : " + x + ", %t : " + table + ", %i : " + ids,
                         "%l, %dx, %dt = weft.loss_head_grad %x, %t, %i " + numbers + " : " + types +
                             " -> (tensor<f32>, " + x + ", " + table + ")",
                         "weft.loss_head_grad");
  EXPECT_EQ(forward.productFlops, 2.0 * 6 * 10 * 4);
  EXPECT_EQ(backward.productFlops, 3 * forward.productFlops);
}

} // namespace
} // namespace weft

//===- mix-test.cpp - Tables of patterns and scaled values as thread blocks -===//
#include "test/passes/Codegen/Gpu/GpuHarness.h"

#include "test/passes/Codegen/KernelHarness.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>

namespace weft::test {
namespace {

std::string kernelOf(const std::string &op, const std::vector<std::string> &arguments,
                     const std::vector<std::string> &results) {
  std::string list, types, outs, names;
  for (size_t i = 0; i < arguments.size(); ++i) {
    list += (i ? ", %a" : "%a") + std::to_string(i) + ": " + arguments[i];
    types += (i ? ", " : "") + arguments[i];
  }
  for (size_t i = 0; i < results.size(); ++i) {
    outs += (i ? ", " : "") + results[i];
    names += (i ? ", %r" : "%r") + std::to_string(i);
  }
  return "weft.kernel @k rows [] chunks 1 (" + list + ") -> (" + outs + ") {\n" + names + " = " + op +
         " : (" + types + ") -> (" + outs + ")\nweft.yield " + names + " : " + outs + " }";
}

// Patterns that end in and at blocks of keys and rows, windows of one place and wider than
// the pattern, logarithms far from 0. Catches: keys of a step left out, rows added to a
// neighbour's, a tile's row and column exchanged, sums that overflow without the maximum.
TEST(GpuMix, tables) {
  for (int64_t places : {1, 3, 127, 128, 129, 256, 257, 300, 530}) {
    std::string pattern = tensor("frozen:3 place:" + std::to_string(places));
    std::string table = tensor("frozen:3 cell:" + std::to_string(64 * (8 * ((places + 63) / 64) + 63)));
    GpuHarness harness(kernelOf("weft.mix_table %a0, %a1 windows %a2", {pattern, pattern, "tensor<3xi32>"},
                                {table, table, pattern, pattern, pattern}));
    harness.fill[0] = [](size_t, size_t i) { return 90 + 3 * std::sin(0.7 * static_cast<double>(i)); };
    harness.fill[1] = [](size_t, size_t i) { return -200 + 4 * std::cos(0.3 * static_cast<double>(i)); };
    harness.fill[2] = [](size_t, size_t i) { return i == 0 ? 2147483647.0 : i == 1 ? 1.0 : 150.0; };
    harness.storeHalves({}, {0, 1});
    harness.check(5e-5);
  }
}

// Catches: first places counted twice within the window, the second table's distances in the
// first, a last step of keys that holds more than first places.
TEST(GpuMix, tablesWithFirstPlaces) {
  for (int64_t places : {1, 65, 129, 300, 530}) {
    std::string pattern = tensor("frozen:3 place:" + std::to_string(places));
    std::string table = tensor("frozen:3 cell:" + std::to_string(128 * (8 * ((places + 63) / 64) + 63)));
    GpuHarness harness(kernelOf("weft.mix_table %a0, %a1 windows %a2", {pattern, pattern, "tensor<6xi32>"},
                                {table, table, pattern, pattern, pattern}));
    harness.fill[0] = [](size_t, size_t i) { return 3 * std::sin(0.7 * static_cast<double>(i)); };
    harness.fill[1] = [](size_t, size_t i) { return 4 * std::cos(0.3 * static_cast<double>(i)); };
    harness.fill[2] = [](size_t, size_t i) {
      return std::array<double, 6>{2147483647.0, 1.0, 150.0, 64.0, 192.0, 64.0}[i];
    };
    harness.storeHalves({}, {0, 1});
    harness.check(5e-5);
  }
}

// Catches: a scale by place instead of by place of the document, a head's values of another.
TEST(GpuMix, scales) {
  for (bool shared : {false, true}) {
    std::string rows = "batch:2 pos:37 ", kv = shared ? "kv:2" : "kv:3";
    std::vector<std::string> arguments{tensor("batch:2 pos:40 " + kv + " head:64"),
                                       tensor("frozen:3 place:41"), tensor(rows, "i32")};
    if (shared)
      arguments.push_back("tensor<3xi32>");
    GpuHarness harness(
        kernelOf(std::string("weft.mix_scale %a0, %a1 documents %a2") + (shared ? " kv_of %a3" : ""),
                 arguments, {tensor(rows + "frozen:3 head:64")}));
    harness.fill[2] = [](size_t, size_t i) { return i % 37 < 11 ? 0.0 : i % 37 < 30 ? 11.0 : 30.0; };
    harness.fill[3] = [](size_t, size_t i) { return i == 1 ? 0.0 : 1.0; };
    harness.storeHalves({0}, {0});
    harness.check(4e-3);
  }
}

// Ends of tiles, documents that share a tile and whose places are the same, windows, shared
// values, channels that are no multiple of a step. Catches: a diagonal or column of a
// neighbouring tile, two documents' sums of one place added at once, queries past the end.
TEST(GpuMix, gradients) {
  struct Case {
    int64_t length, channel;
    bool shared, firstPlaces;
  };
  for (const Case &c : {Case{1, 8, false, false}, Case{64, 64, false, false}, Case{65, 40, true, false},
                        Case{200, 72, true, false}, Case{200, 40, false, true}}) {
    SCOPED_TRACE("length " + std::to_string(c.length));
    std::string rows = "batch:2 pos:" + std::to_string(c.length) + " ",
                channel = " head:" + std::to_string(c.channel);
    std::string v = tensor(rows + (c.shared ? "kv:1" : "kv:2") + channel),
                y = tensor(rows + "frozen:2" + channel);
    std::string pattern = tensor("frozen:2 place:" + std::to_string(c.length + 3));
    std::vector<std::string> arguments{v,
                                       pattern,
                                       pattern,
                                       c.firstPlaces ? "tensor<4xi32>" : "tensor<2xi32>",
                                       tensor(rows, "i32"),
                                       y,
                                       tensor(rows + "frozen:2"),
                                       y};
    std::string op = "weft.mix_grad_pattern %a0, %a1, %a2 windows %a3 documents %a4, %a5, %a6, %a7";
    if (c.shared)
      op += " kv_of %a8", arguments.push_back("tensor<2xi32>");
    GpuHarness harness(kernelOf(op, arguments, {pattern, pattern}));
    harness.fill[3] = [&c](size_t, size_t i) {
      return i > 1 ? 64.0 : i == 0 ? 50.0 : c.firstPlaces ? 1.0 : 2147483647.0;
    };
    harness.fill[4] = [&c](size_t, size_t i) {
      size_t place = i % static_cast<size_t>(c.length);
      return place < 20 ? 0.0 : place < 23 ? 20.0 : place < 130 ? 23.0 : 130.0;
    };
    harness.fill[8] = [](size_t, size_t) { return 0.0; };
    harness.storeHalves({0, 5, 7}, {});
    harness.check(2e-4);
  }
}

} // namespace
} // namespace weft::test

//===- ops-test.cpp - Kernels of one op as thread blocks ------------------===//
#include "test/passes/Codegen/Gpu/GpuHarness.h"

#include "test/passes/Codegen/KernelHarness.h"

#include <cmath>
#include <gtest/gtest.h>

namespace weft::test {
namespace {

/// A kernel of one op on arguments %0, %1, ...
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

// Rows of whole vectors and others. Catches: an index outside the table that reads past
// it, columns past the last round of a warp left out.
TEST(GpuOps, gather) {
  for (const char *dim : {" dim:37", " dim:264"})
    for (bool halves : {false, true}) {
      std::string table = tensor(std::string("vocab:11") + dim), index = tensor("batch:3 pos:7", "i32");
      GpuHarness harness(
          kernelOf("weft.gather %a0, %a1", {table, index}, {tensor(std::string("batch:3 pos:7") + dim)}));
      harness.fill[1] = [](size_t, size_t i) { return static_cast<double>(i * 7 % 11); };
      if (halves)
        harness.storeHalves({}, {0});
      harness.check(halves ? 4e-3 : 0);
    }
}

// Tokens come often or never, and more of them than a list holds; runs that lie in one
// warp's part, in two, in all. Catches: a place lost between rounds, rows of a
// neighbour's block, a part handed on twice or never, runs of two rows as one.
TEST(GpuOps, gatherGrad) {
  struct Size {
    int64_t places, dim, vocab;
  };
  for (auto [places, dim, vocab] : {Size{5, 3, 613}, {3000, 3, 37}, {700, 264, 261}, {8300, 8, 37}})
    for (bool init : {false, true}) {
      std::string columns = " dim:" + std::to_string(dim);
      std::string dy = tensor("batch:1 pos:" + std::to_string(places) + columns);
      std::string index = tensor("batch:1 pos:" + std::to_string(places), "i32"),
                  table = tensor("vocab:" + std::to_string(vocab) + columns);
      GpuHarness harness(init ? kernelOf("weft.gather_grad %a0, %a1 init %a2", {index, dy, table}, {table})
                              : kernelOf("weft.gather_grad %a0, %a1", {index, dy}, {table}));
      harness.fill[0] = [rows = static_cast<size_t>(vocab)](size_t, size_t i) {
        // The block of row 4 has row 260 too.
        return static_cast<double>(i % 3 == 0 ? i * 5 % rows : i % 2 && rows > 260 ? 260 : 4);
      };
      harness.storeHalves({1}, {});
      if (init)
        harness.inPlace = {{0, 2}};
      harness.check(1e-5);
    }
}

TEST(GpuOps, positionsAndDocuments) {
  std::string t = tensor("batch:3 pos:50", "i32");
  for (bool offset : {false, true}) {
    GpuHarness harness(offset ? kernelOf("weft.position %a0 offset %a1", {t, "tensor<i32>"}, {t})
                              : kernelOf("weft.position %a0", {t}, {t}));
    harness.fill[0] = [](size_t, size_t i) { return static_cast<double>(i % 50 / 11 * 11); };
    harness.fill[1] = [](size_t, size_t) { return 17.0; };
    harness.check(0);
  }
  GpuHarness document(kernelOf("weft.document %a0", {t}, {t}));
  document.fill[0] = [](size_t, size_t i) { return static_cast<double>(i % 50 / 11 * 11); };
  document.check(0);
  GpuHarness integers("weft.kernel @k rows [] chunks 1 () -> (tensor<3xi32>) {\n%0 = weft.integers [5, -1, "
                      "2147483647] : tensor<3xi32>\nweft.yield %0 : tensor<3xi32> }");
  integers.check(0);
}

// In place and apart; past the end of the cache nothing is written.
TEST(GpuOps, cacheUpdate) {
  for (double offset : {0.0, 5.0, 7.0})
    for (bool inPlace : {false, true}) {
      std::string cache = tensor("batch:2 keys:9 heads:3 dim:5"),
                  value = tensor("batch:2 pos:4 heads:3 dim:5");
      GpuHarness harness(kernelOf("weft.cache_update %a0, %a1, %a2", {cache, value, "tensor<i32>"}, {cache}));
      harness.fill[2] = [offset](size_t, size_t) { return std::min(offset, 5.0); };
      harness.storeHalves({0, 1}, {0});
      if (inPlace)
        harness.inPlace = {{0, 0}};
      harness.check(0);
    }
}

TEST(GpuOps, takeAndPut) {
  std::string whole = tensor("batch:2 heads:5 dim:7"), part = tensor("batch:2 head:3 dim:7");
  GpuHarness take(kernelOf("weft.take %a0 [\"heads\"] as \"head\" at [4, 0, 4]", {whole}, {part}));
  take.storeHalves({0}, {0});
  take.check(0);
  GpuHarness put(kernelOf("weft.put %a0 from \"head\" to [\"heads\"] at [4, 0, 4]", {part}, {whole}));
  put.check(1e-6);
}

// Columns, rows and everything; with and without what is added to.
TEST(GpuOps, sumTo) {
  std::string chunks = tensor("chunk:37 heads:3 dim:21");
  for (std::string kept : {tensor("heads:3 dim:21"), tensor("dim:21"), tensor("chunk:37"), tensor(""),
                           tensor("chunk:37 dim:21")})
    for (bool init : {false, true}) {
      GpuHarness harness(init ? kernelOf("weft.sum_to %a0 init %a1", {chunks, kept}, {kept})
                              : kernelOf("weft.sum_to %a0", {chunks}, {kept}));
      if (init)
        harness.inPlace = {{0, 1}};
      harness.check(1e-5);
    }
}

// Catches: parts of the last block alone, a counter that is not set back, numbers past
// the last vector left out or added twice.
TEST(GpuOps, norm) {
  for (int64_t count : {3, 5000, 70001}) {
    std::string x = tensor("n:" + std::to_string(count));
    GpuHarness harness(kernelOf("weft.norm %a0, %a1", {x, "tensor<f32>"}, {"tensor<f32>"}));
    harness.check(1e-6);
  }
}

// Rows that start anywhere and are read twice; rows that shared memory holds, two at a
// time, one, or a part of one; targets that count or not, in the part that is held or
// not, large logits. Catches: a row read before its copy is there, or over one that is
// still worked on; another thread's target.
TEST(GpuOps, crossEntropy) {
  for (int64_t vocab : {5, 64, 5003, 5008, 40000, 60000})
    for (bool halves : {false, true}) {
      std::string logits = tensor("token:6 vocab:" + std::to_string(vocab)),
                  targets = tensor("token:6", "i32");
      std::string weight = tensor("token:6");
      std::string options = "{z = 1.0e-3 : f64, smoothing = 1.0e-1 : f64}";
      auto fill = [&](GpuHarness &harness) {
        harness.fill[0] = [](size_t, size_t i) {
          return std::sin(static_cast<double>(i)) * (i % 97 ? 4 : 80);
        };
        harness.fill[1] = [vocab](size_t, size_t i) {
          int64_t target = static_cast<int64_t>(i * 31) % vocab;
          return i == 2 ? -1.0 : static_cast<double>(i == 4 ? vocab - 3 : target);
        };
      };
      GpuHarness harness(kernelOf("weft.cross_entropy_grad %a0, %a1 weight %a2 " + options,
                                  {logits, targets, weight}, {logits, weight}));
      fill(harness);
      if (halves)
        harness.storeHalves({0}, {0});
      harness.inPlace = {{0, 0}};
      harness.check(halves ? 4e-3 : 2e-5);
      GpuHarness loss(kernelOf("weft.cross_entropy %a0, %a1 weight %a2 " + options, {logits, targets, weight},
                               {"tensor<f32>"}));
      fill(loss);
      if (halves)
        loss.storeHalves({0}, {});
      loss.check(2e-5);
    }
}

// Rows that end in columns which are no classes, whatever lies there. Catches: padding
// in the sum, a gradient left there, a row that starts where the classes end.
TEST(GpuOps, crossEntropyOfPaddedRows) {
  const std::pair<int64_t, int64_t> sizes[] = {{57, 64}, {5003, 5008}, {39991, 40000}, {119991, 120000}};
  for (auto [classes, width] : sizes)
    for (const char *smoothing : {"0.0", "1.0e-1"}) {
      std::string logits = tensor("token:6 vocab:" + std::to_string(width)),
                  targets = tensor("token:6", "i32"), losses = tensor("token:6");
      GpuHarness harness(kernelOf(
          "weft.cross_entropy_grad %a0, %a1 {z = 1.0e-3 : f64, smoothing = " + std::string(smoothing) +
              " : f64, weft.classes = " + std::to_string(classes) + " : i64}",
          {logits, targets}, {logits, losses}));
      harness.fill[1] = [classes = classes](size_t, size_t i) {
        return i == 2 ? -1.0 : static_cast<double>(classes - 1 - static_cast<int64_t>(i));
      };
      harness.storeHalves({0}, {0});
      harness.inPlace = {{0, 0}};
      harness.check(4e-3);
    }
}

// Elements of long rows, each with its row's number. Catches: the number of a
// neighbouring row, elements past the last whole vector left out.
TEST(GpuOps, longRows) {
  for (int64_t columns : {301, 304})
    for (bool halves : {false, true}) {
      std::string x = tensor("m:3 rows:200 columns:" + std::to_string(columns)), n = tensor("m:3");
      GpuHarness harness("weft.kernel @k rows [\"m\"] chunks 3 (%x: " + x + ", %n: " + n + ") -> (" + x +
                         ") {\n%y = weft.binary div %x, %n : (" + x + ", " + n + ") -> " + x +
                         "\nweft.yield %y : " + x + " }");
      harness.fill[1] = [](size_t, size_t i) { return 0.5 + static_cast<double>(i); };
      if (halves)
        harness.storeHalves({}, {0});
      harness.check(halves ? 4e-3 : 1e-6);
      GpuHarness sums(kernelOf("weft.sum_to %a0", {x}, {n}));
      sums.check(1e-3);
    }
}

// Sums over the middle axis, a batch in the middle: no product that BLAS knows.
TEST(GpuOps, oddProducts) {
  std::string a = tensor("batch:2 heads:3 pos:5"), b = tensor("heads:3 dim:4 pos:5");
  std::string c = tensor("dim:4 batch:2 heads:3");
  GpuHarness harness(kernelOf("weft.contract %a0, %a1 init %a2", {a, b, c}, {c}));
  harness.storeHalves({0, 1}, {});
  harness.check(1e-5);
}

// A kernel without a fast form, with scratch of its own for each thread.
TEST(GpuOps, slowMix) {
  std::string pos = "batch:2 pos:70 ", pattern = tensor("frozen:2 place:70");
  GpuHarness harness(
      kernelOf("weft.mix %a0, %a1, %a2 windows %a3 documents %a4",
               {tensor(pos + "kv:2 head:8"), pattern, pattern, "tensor<2xi32>", tensor(pos, "i32")},
               {tensor(pos + "frozen:2 head:8"), tensor(pos + "frozen:2")}));
  harness.fill[3] = [](size_t, size_t i) { return i ? 2147483647.0 : 17.0; };
  harness.fill[4] = [](size_t, size_t i) { return i % 70 < 23 ? 0.0 : 23.0; };
  harness.maySlow = true;
  harness.storeHalves({0}, {0});
  harness.check(8e-3);
}

/// What a window controller is told of heads: sizes of q and k, and how rows count.
struct StatisticsCase {
  int64_t batch = 1, length = 5;
  std::string heads = "heads:2", kv = "heads:2";
  int64_t headCount = 2, channel = 8, valueChannel = 8;
  bool table = false, targets = false, halves = true;

  std::string type(const std::string &inner, const std::string &element = "f32") const {
    return tensor("batch:" + std::to_string(batch) + " pos:" + std::to_string(length) + " " + inner, element);
  }
};

void checkStatistics(const StatisticsCase &c) {
  SCOPED_TRACE("length " + std::to_string(c.length) + ", heads " + c.heads + " on " + c.kv + ", channel " +
               std::to_string(c.channel));
  std::string channel = " head:" + std::to_string(c.channel),
              width = " head:" + std::to_string(c.valueChannel);
  std::string perHead = "tensor<" + std::to_string(c.headCount) + "xi32>", places = c.type("", "i32");
  std::vector<std::string> types{c.type(c.heads + channel),
                                 c.type(c.kv + channel),
                                 c.type(c.kv + width),
                                 c.type(c.heads + width),
                                 c.type(c.heads),
                                 perHead,
                                 places};
  std::string op = "weft.head_statistics %a0, %a1, %a2, %a3, %a4 windows %a5 documents %a6";
  size_t tableAt = types.size();
  if (c.table)
    op += " kv_of %a" + std::to_string(types.size()), types.push_back(perHead);
  size_t targetsAt = types.size();
  if (c.targets)
    op += " targets %a" + std::to_string(types.size()), types.push_back(places);
  GpuHarness harness(kernelOf(op, types, {"tensor<" + std::to_string(c.headCount) + "x12xf32>"}));
  auto placeOf = [&c](size_t i) { return static_cast<int64_t>(i) % c.length; };
  int64_t second = c.length / 3, third = c.length - c.length / 4; // documents
  harness.fill[4] = [](size_t, size_t i) { return 0.1 + static_cast<double>(i % 7); };
  harness.fill[5] = [](size_t, size_t i) { return i % 3 ? static_cast<double>(4 * i + 1) : kFull; };
  harness.fill[6] = [=](size_t, size_t i) {
    return static_cast<double>(placeOf(i) < second ? 0 : placeOf(i) < third ? second : third);
  };
  if (c.table)
    harness.fill[tableAt] = [](size_t, size_t i) { return static_cast<double>((i + 1) % 2); };
  if (c.targets) // none in the last document, some left out before
    harness.fill[targetsAt] = [=](size_t, size_t i) {
      return placeOf(i) >= third || placeOf(i) % 3 == 1 ? -1.0 : 4.0;
    };
  if (c.halves)
    harness.storeHalves({0, 1, 2, 3}, {});
  harness.check(2e-5);
}

// More heads than a block takes at once, channels that fill no vector or more
// lanes than there are. Catches: padding that counts, places of a part left out
// or counted twice, a head's lanes added to its neighbour's, k and v of another
// head, an entropy over another number of keys, parts in the order of blocks.
TEST(GpuOps, headStatistics) {
  for (int64_t length : {1, 5, 33, 129, 700})
    for (bool halves : {false, true}) {
      StatisticsCase c;
      c.length = length;
      c.halves = halves;
      checkStatistics(c);
    }
  StatisticsCase groups{2, 131, "kv:2 group:3", "kv:2", 6, 10, 6};
  groups.targets = true;
  checkStatistics(groups);
  groups.heads = "live:6";
  groups.table = true;
  checkStatistics(groups);
  checkStatistics({3, 70, "heads:12", "heads:12", 12, 64, 64});
  checkStatistics({1, 40, "heads:5", "", 5, 128, 128});
  checkStatistics({1, 9, "heads:70", "heads:70", 70, 64, 3});
  checkStatistics({1, 3, "heads:2", "heads:2", 2, 4104, 1});
}

/// Calibration of two heads or more: documents of three rows.
struct CalibrationCase {
  int64_t length = 7;
  std::string heads = "heads:2", kv = "heads:2";
  int64_t headCount = 2, channel = 8;
  bool table = false, halves = true;
};

void checkCalibration(const CalibrationCase &c) {
  SCOPED_TRACE("length " + std::to_string(c.length) + ", heads " + c.heads + ", channel " +
               std::to_string(c.channel));
  const std::string rows = "batch:3 pos:" + std::to_string(c.length) + " ",
                    channel = " head:" + std::to_string(c.channel),
                    perHead = "tensor<" + std::to_string(c.headCount) + "xi32>",
                    pattern =
                        tensor("live:" + std::to_string(c.headCount) + " place:" + std::to_string(c.length));
  std::vector<std::string> types{tensor(rows + c.heads + channel),
                                 tensor(rows + c.kv + channel),
                                 tensor(rows + c.heads),
                                 perHead,
                                 "tensor<" + std::to_string(3 * c.length) + "xi32>",
                                 "tensor<" + std::to_string(c.length) + "xi32>",
                                 pattern,
                                 pattern,
                                 pattern};
  std::string op =
      "weft.pattern_statistics %a0, %a1, %a2 windows %a3 documents %a4 reach %a5 pattern %a6, %a7, %a8";
  if (c.table)
    op += " kv_of %a9", types.push_back(perHead);
  GpuHarness harness(kernelOf(op + " {scale = 0.3 : f64}", types,
                              {pattern, pattern, tensor("live:" + std::to_string(c.headCount) + " sum:8")}));
  // The second row whole, the end and the start of the first, the start of the third.
  const int64_t cut = c.length / 3;
  const std::vector<std::pair<int64_t, int64_t>> documents{
      {c.length, c.length}, {cut, c.length - cut}, {0, cut}, {2 * c.length, cut / 2}};
  harness.fill[2] = [](size_t, size_t i) { return 2 + 0.1 * static_cast<double>(i % 11); };
  harness.fill[3] = [](size_t, size_t i) { return i % 2 ? 37.0 : kFull; };
  harness.fill[4] = [=](size_t, size_t i) {
    return i < documents.size() ? static_cast<double>(documents[i].first) : 0.0;
  };
  harness.fill[5] = [=](size_t, size_t i) {
    double reach = 0;
    for (auto [place, length] : documents)
      reach += length > static_cast<int64_t>(i);
    return reach;
  };
  harness.fill[8] = [](size_t, size_t i) { return 3 + 0.1 * static_cast<double>(i % 7); };
  if (c.table)
    harness.fill[9] = [](size_t, size_t i) { return static_cast<double>((i + 1) % 2); };
  if (c.halves)
    harness.storeHalves({0, 1}, {});
  harness.check(4e-5);
}

// Catches: a tile's mean that counts documents which end before it, a diagonal or a
// column given to the tile beside it, shares added in the order of blocks, channels
// past the last, rows past the last document.
TEST(GpuOps, calibration) {
  checkCalibration({1});
  checkCalibration({70});
  checkCalibration({150, "heads:2", "heads:2", 2, 64});
  checkCalibration({65, "kv:2 group:2", "kv:2", 4, 6, false, false});
  checkCalibration({80, "live:3", "kv:2", 3, 36, true});
}

} // namespace
} // namespace weft::test

//===- attend-values-test.cpp - Numbers of attention on tiles -------------===//
#include "test/passes/Codegen/Gpu/AttendHarness.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace weft::test {
namespace {

using tile::Effects;

constexpr AttendPassKind kPasses[] = {AttendPassKind::Forward, AttendPassKind::Query,
                                      AttendPassKind::KeyValue};
constexpr int32_t kFull = INT32_MAX;
const GpuTarget kSm80{"sm_80", 80};
const AttendOptions kProducer = AttendOptions::fastest();

void check(const AttendCase &c, AttendPassKind pass, const GpuTarget &target, const AttendOptions &options) {
  SCOPED_TRACE(c.name() + ", pass " + std::to_string(static_cast<int>(pass)) + ", " + target.chip +
               (options.producer ? ", producer" : "") + (options.overlap ? ", overlap" : ""));
  AttendHarness harness(c, pass, target, options);
  ASSERT_TRUE(harness.tile.module);
  absl::Status status = harness.run({1, Effects::Random, 2});
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(harness.difference(), "");
}

AttendOptions form(const std::string &text) {
  AttendOptions options = AttendOptions::fastest();
  EXPECT_EQ(readForm(text, options), "");
  return options;
}

/// Every pass and form. Small as they are, forward has items of two warpgroups by itself.
void check(const AttendCase &c) {
  check(c, AttendPassKind::Forward, {}, form(c.channel == 64 ? "groups=3" : "groups=1"));
  for (AttendPassKind pass : kPasses) {
    check(c, pass, {}, {});
    check(c, pass, {}, kProducer);
    check(c, pass, {}, {.producer = true});
    check(c, pass, {}, {.producer = true, .overlap = true});
    check(c, pass, kSm80, {});
  }
}

AttendCase of(int64_t length, std::vector<int32_t> windows = {kFull}, std::vector<int32_t> starts = {0}) {
  AttendCase c;
  c.length = length;
  c.windows = std::move(windows);
  c.starts = std::move(starts);
  return c;
}

// Mutation: a bound of blocks one too small or too large, a missing limit of a store.
TEST(AttendValues, lengths) {
  for (int64_t length : {1, 2, 31, 65, 127, 128, 129, 193})
    check(of(length));
}

TEST(AttendValues, channels128) {
  for (int64_t length : {1, 65, 129, 193}) {
    AttendCase c = of(length, {kFull, 40});
    c.kvHeads = 2;
    c.channel = 128;
    check(c);
  }
}

// Mutation: own tensors of the item before, companions of another stage, a form that is not read.
TEST(AttendValues, forms) {
  for (int64_t channel : {64, 128}) {
    AttendCase c = of(321, {70, kFull}, {0, 200});
    c.channel = channel;
    c.kvHeads = 2;
    for (const char *text :
         {"own=2", "deal=0", "columns=0", "early=0", "joint=0", "overlap=0", "block=32,stages=8",
          "groups=3,block=64,overlap=0", "groups=1,own=2,stages=2", "block=128,stages=2,own=1", "ahead=0"})
      for (AttendPassKind pass : {AttendPassKind::Query, AttendPassKind::KeyValue}) {
        SCOPED_TRACE(text);
        check(c, pass, {}, form(text));
      }
  }
}

// Mutation: probabilities of a half with the other half's values, a key of a half that is not masked, turns
// that some warpgroups take and others don't.
TEST(AttendValues, forwardForms) {
  for (int64_t channel : {64, 128})
    for (AttendCase c :
         {of(450, {70, kFull, 128, 1}, {0, 200, 333}), of(450, {64, 65, 127, 200}), of(150, {kFull, 130})})
      for (const char *text : {"groups=2", "groups=1", "branches=1", "branches=2,own=1", "halves=0,brief=1",
                               "groups=3", "groups=3,branches=1", "groups=3,halves=0,brief=1"})
        for (bool entropies : {false, true}) {
          if (channel == 128 && llvm::StringRef(text).starts_with("groups=3"))
            continue; // more than shared memory and registers hold
          c.channel = channel;
          c.kvHeads = static_cast<int64_t>(c.windows.size());
          c.entropies = entropies;
          SCOPED_TRACE(text);
          check(c, AttendPassKind::Forward, {}, form(text));
        }
}

// Measured on an H200 but for the last: what an item's rows are is the faster of both. Mutation: the longest item alone, all
// blocks alone, of another number of rows.
TEST(AttendValues, rowsOfAnItem) {
  struct Launch {
    int64_t length, heads, batch, rows;
  };
  for (const Launch &launch :
       {Launch{2048, 12, 1, 128}, Launch{4096, 6, 1, 128}, Launch{4096, 9, 1, 192}, Launch{4096, 12, 1, 192},
        Launch{16384, 12, 1, 192}, Launch{4096, 12, 16, 192}, Launch{1024, 12, 64, 192}}) {
    AttendCase c = of(launch.length);
    c.kvHeads = launch.heads;
    c.batch = launch.batch;
    AttendHarness harness(c, AttendPassKind::Forward, {}, kProducer);
    EXPECT_EQ(harness.tile.threads, 2 * launch.rows + 128) << launch.length << ", " << launch.heads;
    EXPECT_EQ(harness.tile.items,
              launch.batch * launch.heads * ((launch.length + launch.rows - 1) / launch.rows));
  }
}

// A row's numbers are those of its own warpgroup: the same bits whatever others an item has. Mutation: blocks
// that begin where the item's do.
TEST(AttendValues, sameBitsWhateverTheRows) {
  for (int64_t channel : {64, 128})
    for (bool entropies : {false, true}) {
      AttendCase c = of(450, {70, kFull}, {0, 200, 333});
      c.kvHeads = 2;
      c.channel = channel;
      c.entropies = entropies;
      std::vector<std::vector<float>> results;
      for (const char *text : {"groups=1", "groups=2", "groups=3"}) {
        if (channel == 128 && results.size() == 2)
          continue;
        AttendHarness harness(c, AttendPassKind::Forward, {}, form(text));
        ASSERT_TRUE(harness.run({3, Effects::Random, 2}).ok()) << text;
        results.push_back(harness.results());
        EXPECT_EQ(results.back(), results.front()) << text;
      }
    }
}

TEST(AttendValues, formsThatAreNone) {
  AttendOptions options;
  for (const char *text : {"early", "early=2", "block=48", "rows=64", "own=x", "branches=3", "brief=2"})
    EXPECT_NE(readForm(text, options), "") << text;
}

// Mutation: `<` for `<=` at the window's edge.
TEST(AttendValues, windows) {
  for (int32_t window : {1, 2, 3, 64, 128, 193})
    check(of(193, {window}));
  AttendCase each = of(321, {1, 70, 128, kFull});
  each.kvHeads = 4;
  check(each);
}

// Mutation: documents left out of a bound, read with the wrong row of the batch.
TEST(AttendValues, documents) {
  check(of(129, {kFull}, {0, 1, 2, 64, 100}));
  check(of(321, {100}, {0, 63, 65, 200, 320}));
  AttendCase rows = of(70, {33}, {0, 20, 64});
  rows.batch = 3;
  check(rows);
}

// Mutation: the wrong head of k and v, a group's head left out.
TEST(AttendValues, groups) {
  for (int64_t groups : {1, 2, 3, 4}) {
    AttendCase c = of(100, {kFull, 5, 64}, {0, 70});
    c.batch = 2;
    c.kvHeads = 2;
    c.groups = groups;
    check(c);
  }
}

TEST(AttendValues, tableOfHeadsAndOrder) {
  AttendCase c = of(130, {kFull, 20}, {0, 90});
  c.kvHeads = 2;
  c.groups = 2;
  c.kvOf = {1, 1, 0, 1};
  c.order = {2, 0, 3, 1};
  c.keyOrder = {1, 0};
  c.batch = 2;
  check(c);
}

// A query's place is the cache's, whose length is another.
TEST(AttendValues, cache) {
  for (int64_t offset : {0, 5, 60, 187}) {
    AttendCase c = of(5, {kFull, 50});
    c.kvHeads = 2;
    c.keys = 200;
    c.offset = offset;
    for (const AttendOptions &options : {AttendOptions{}, kProducer, form("groups=3")})
      check(c, AttendPassKind::Forward, {}, options);
    check(c, AttendPassKind::Forward, kSm80, {});
  }
}

// Scores of some hundreds: without the running maximum powers are infinite.
TEST(AttendValues, largeScores) {
  AttendCase c = of(150);
  c.spread = 100;
  check(c, AttendPassKind::Forward, {}, {});
  check(c, AttendPassKind::Forward, {}, kProducer);
  check(c, AttendPassKind::Forward, {}, form("groups=3"));
}

// Mutation: a third sum that is not faded, or by the fade alone; 0 times minus
// infinity where a key is not seen. Out and lse are those of the plain kernel.
TEST(AttendValues, entropies) {
  AttendCase edges = of(193, {1, 2, 70, kFull}, {0, 63, 65});
  edges.kvHeads = 2;
  edges.groups = 2;
  edges.kvOf = {1, 0, 0, 1};
  AttendCase wide = of(321, {100, kFull}, {0, 20, 200});
  wide.channel = 128;
  wide.batch = 2;
  wide.groups = 2;
  AttendCase large = of(150);
  large.spread = 30;
  struct Form {
    GpuTarget target;
    AttendOptions options;
  };
  for (AttendCase c : {of(1), of(129, {40}), edges, wide, large})
    for (const Form &form : {Form{{}, {}}, Form{{}, kProducer}, Form{kSm80, {}}}) {
      AttendHarness plain(c, AttendPassKind::Forward, form.target, form.options);
      ASSERT_TRUE(plain.run({1, Effects::Random, 2}).ok());
      c.entropies = true;
      check(c, AttendPassKind::Forward, form.target, form.options);
      AttendHarness observed(c, AttendPassKind::Forward, form.target, form.options);
      ASSERT_TRUE(observed.run({1, Effects::Random, 2}).ok());
      std::vector<float> both = observed.results(), alone = plain.results();
      both.resize(alone.size());
      EXPECT_EQ(both, alone);
      c.entropies = false;
    }
}

// Mutation: sums that go on from one item to the next.
TEST(AttendValues, sameBitsWhateverTheLaunch) {
  AttendCase c = of(200, {90, kFull}, {0, 50});
  c.kvHeads = 2;
  c.batch = 2;
  for (AttendPassKind pass : kPasses)
    for (const AttendOptions &options : {AttendOptions{}, kProducer, form("groups=3")}) {
      if (options.groups && pass != AttendPassKind::Forward)
        continue;
      AttendHarness harness(c, pass, {}, options);
      std::vector<std::vector<float>> results;
      for (int64_t ctas : {1, 3, 7, 132}) {
        ASSERT_TRUE(harness.run({3, Effects::Random, ctas}).ok());
        results.push_back(harness.results());
      }
      for (const auto &other : results)
        EXPECT_EQ(other, results[0]);
    }
}

/// Pairs of one head's tiles that the kernel really multiplies: what it reads of one
/// block makes 64 rows NaN, seen or not.
int64_t multiplied(const AttendCase &c, AttendPassKind pass, int64_t block) {
  const size_t operands[] = {2, 1, 7}; // v; k; dout
  auto width = static_cast<size_t>(c.channel);
  int64_t pairs = 0;
  for (int64_t from = 0; from < c.length; from += block) {
    AttendHarness harness(c, pass, {}, kProducer);
    harness.operand(operands[static_cast<size_t>(pass)])[static_cast<size_t>(from) * width] = NAN;
    EXPECT_TRUE(harness.run({1, Effects::Random, 2}).ok());
    std::vector<float> results = harness.results();
    for (int64_t row = 0; row < c.length; row += 64) {
      auto first = results.begin() + row * c.channel;
      pairs += 64 * block * std::any_of(first, first + c.channel, [](float x) { return std::isnan(x); });
    }
  }
  return pairs;
}

// Catches: rt::executedPairs that differs from what the kernels do.
TEST(AttendValues, executedPairs) {
  for (int64_t channel : {64, 128})
    for (AttendCase c : {of(321), of(321, {70}), of(321, {1}), of(321, {kFull}, {0, 63, 200})}) {
      c.channel = channel;
      rt::AttendTiles tiles = attendTiles(channel, {});
      std::vector<int32_t> starts;
      for (int64_t i = 0; i < c.length; ++i)
        starts.push_back(c.start(i));
      rt::ExecutedPairs expected = rt::executedPairs(starts, c.window(0), tiles);
      SCOPED_TRACE(c.name());
      EXPECT_EQ(multiplied(c, AttendPassKind::Forward, tiles.forwardBlock / 2), expected.forward);
      EXPECT_EQ(multiplied(c, AttendPassKind::Query, tiles.queryBlock), expected.gradQuery);
      EXPECT_EQ(multiplied(c, AttendPassKind::KeyValue, tiles.keyValueBlock), expected.gradKeyValue);
    }
}

// Rows 0, 64, ... of 321, halves of 64 keys each. Mutation: a bound one key off, of either half.
TEST(AttendValues, executedHalves) {
  struct Range {
    AttendCase c;
    int64_t halves;
  };
  for (const Range &range :
       {Range{of(321), 2 + 2 + 3 + 4 + 5 + 6}, Range{of(321, {128}), 2 + 2 + 3 + 3 + 3 + 3}})
    for (int64_t channel : {64, 128}) {
      AttendCase c = range.c;
      c.channel = channel;
      EXPECT_EQ(multiplied(c, AttendPassKind::Forward, 64), 64 * 64 * range.halves) << channel;
    }
}

TEST(AttendValues, launch) {
  AttendCase c = of(193);
  c.batch = 2;
  c.kvHeads = 2;
  c.groups = 3;
  AttendHarness harness(c, AttendPassKind::Forward);
  // 3 tiles of 64 rows a CTA: 2 of them for 193 rows; 2 * 6 heads.
  EXPECT_EQ(harness.tile.threads, 384);
  EXPECT_EQ(harness.tile.items, 2 * 6 * 2);
  // Queries 3 * 8 KiB, two rings of 2 * 16 KiB, barriers.
  EXPECT_EQ(harness.tile.sharedBytes, (24 + 64 + 1) * 1024);
  ASSERT_EQ(harness.tile.maps.size(), 3);
  const rt::TensorMap &query = harness.tile.maps[0], &key = harness.tile.maps[1];
  EXPECT_EQ(query.operand, 0);
  EXPECT_EQ(query.sizes, (std::vector<uint64_t>{64, 6, 193, 2}));
  EXPECT_EQ(query.strides, (std::vector<uint64_t>{128, 768, 148224}));
  EXPECT_EQ(query.box, (std::vector<uint32_t>{64, 1, 64, 1}));
  EXPECT_EQ(query.swizzle, 128);
  EXPECT_EQ(key.operand, 1);
  EXPECT_EQ(key.sizes, (std::vector<uint64_t>{64, 2, 193, 2}));
  EXPECT_EQ(key.box, (std::vector<uint32_t>{64, 1, 128, 1}));
}

TEST(AttendValues, refusals) {
  AttendCase c;
  EXPECT_EQ(refusal(c.forwardText()), "");
  EXPECT_NE(refusal(c.forwardText(), {"sm_75", 80}).find("sm_75"), std::string::npos);
  c.entropies = true;
  EXPECT_EQ(refusal(c.forwardText()), "");
  c.channel = 80;
  EXPECT_NE(refusal(c.forwardText()).find("head size 80"), std::string::npos);
  std::string text = AttendCase{}.forwardText();
  for (size_t at = text.find("bf16"); at != std::string::npos; at = text.find("bf16"))
    text.replace(at, 4, "f32");
  EXPECT_NE(refusal(text).find("stored in f32"), std::string::npos);
}

} // namespace
} // namespace weft::test

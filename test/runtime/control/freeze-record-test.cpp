#include "runtime/control/FreezeRecord.h"

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

FreezeRecord example() {
  FreezeRecord record;
  record.positions = 64;
  record.frozen["block.0.attn"] = {{1, 3}, {7, 2147483647}, {0, 128}, true};
  record.frozen["block.2.attn"] = {{4}, {64}, {0}, false, true};
  record.pruned["block.1.attn"] = {0, 2};
  record.statements["frozen/0"].installed = 2;
  record.statements["frozen/0"].planned = {{1, "block.1.attn", 3}};
  record.statements["frozen/1"].done = true;
  record.statements["frozen/1"].spent = 0.0125;
  record.statements["frozen/1"].due = 30;
  record.events.push_back({{"step", 20}});
  return record;
}

// Mutation caught: a field that is written and not read back.
TEST(FreezeRecord, IsReadAsWritten) {
  FreezeRecord record = example();
  const Json json = {{"freeze", toJson(record)}};
  auto read = readFreezeRecord(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(toJson(*read), json["freeze"]);
  EXPECT_EQ(read->frozen["block.0.attn"].windows[1], 2147483647);
  EXPECT_EQ(read->frozen["block.0.attn"].firstPlaces, (std::vector<int64_t>{0, 128}));
  Json older = json; // has no first places
  older["freeze"]["frozen"]["block.0.attn"].erase("first_places");
  EXPECT_EQ(readFreezeRecord(older)->frozen["block.0.attn"].firstPlaces, (std::vector<int64_t>{0, 0}));
  for (int64_t places : {-64, 40}) {
    older["freeze"]["frozen"]["block.0.attn"]["first_places"] = {0, places};
    EXPECT_EQ(readFreezeRecord(older).status().code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_TRUE(read->frozen["block.2.attn"].dense);
  EXPECT_FALSE(read->frozen["block.0.attn"].dense);
  EXPECT_TRUE(readFreezeRecord(Json())->empty());
  Json broken = json;
  broken["freeze"]["frozen"]["block.0.attn"]["windows"] = {7};
  EXPECT_EQ(readFreezeRecord(broken).status().code(), absl::StatusCode::kDataLoss);
  // A window that sees nothing would train to NaN.
  broken["freeze"]["frozen"]["block.0.attn"]["windows"] = {7, 0};
  EXPECT_EQ(readFreezeRecord(broken).status().code(), absl::StatusCode::kDataLoss);
  broken["freeze"]["frozen"]["block.0.attn"]["windows"] = {"all", 1};
  EXPECT_EQ(readFreezeRecord(broken).status().code(), absl::StatusCode::kDataLoss);
}

// Mutation caught: a flag or a report that is taken for what it should be (nlohmann throws).
TEST(FreezeRecord, OtherTypesAreRefused) {
  const Json good = {{"freeze", toJson(example())}};
  auto refused = [&](const char *pointer, const Json &value) {
    Json broken = good;
    broken[Json::json_pointer(pointer)] = value;
    return readFreezeRecord(broken).status().code() == absl::StatusCode::kDataLoss;
  };
  EXPECT_TRUE(refused("/freeze/frozen/block.0.attn/trained", "yes"));
  EXPECT_TRUE(refused("/freeze/frozen/block.0.attn/dense", 1));
  EXPECT_TRUE(refused("/freeze/statements/frozen~10/done", nullptr));
  EXPECT_TRUE(refused("/freeze/events", {3}));
  EXPECT_TRUE(refused("/freeze/events", 3));
  EXPECT_TRUE(refused("/freeze/events/0/statement", 3));
  EXPECT_TRUE(refused("/freeze/events/0/heads", {{"a", 1}}));
}

TEST(FreezeRecord, KnowsLiveHeads) {
  FreezeRecord record = example();
  EXPECT_EQ(record.liveHeads("block.0.attn", 5), (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(record.liveHeads("block.1.attn", 4), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(record.liveHeads("block.3.attn", 2), (std::vector<int64_t>{0, 1}));
}

// Loss 1, 1, ..: no improvement, so it fires as soon as span steps lie behind.
// Loss falling by 5% a step: the average falls too, faster than 0.5% in 10 steps.
TEST(LossTrigger, FiresWhenTheLossStandsStill) {
  LossTrigger still(10, 0.005), falling(10, 0.005);
  double loss = 8;
  for (int step = 1; step <= 40; ++step) {
    EXPECT_EQ(still.add(1), step > 10) << step;
    EXPECT_EQ(falling.add(loss *= 0.95), false || step > 1000) << step;
  }
}

// ema after 2, 1: 0.98 x 2 + 0.02 = 1.98: an improvement of 1% of 2 over one step.
TEST(LossTrigger, ComparesAverages) {
  LossTrigger loose(1, 0.0101), tight(1, 0.0099);
  loose.add(2);
  tight.add(2);
  EXPECT_TRUE(loose.add(1));
  EXPECT_FALSE(tight.add(1));
}

// Mutation caught: a restored trigger that starts its average anew.
TEST(LossTrigger, GoesOnExactly) {
  LossTrigger straight(5, 0.01), first(5, 0.01), second(5, 0.01);
  for (int step = 0; step < 7; ++step) {
    straight.add(1.0 / (step + 3));
    first.add(1.0 / (step + 3));
  }
  ASSERT_TRUE(second.restore(*parseJson(dumpJson(first.toJson()), "trigger")).ok());
  for (int step = 7; step < 20; ++step) {
    EXPECT_EQ(straight.add(1.0 / (step + 3)), second.add(1.0 / (step + 3)));
    EXPECT_EQ(straight.toJson(), second.toJson());
  }
}

} // namespace
} // namespace weft::rt

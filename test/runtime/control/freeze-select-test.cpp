// Selectors against NumPy (test/numpy/select_heads.py), counts by arithmetic.
#include "runtime/control/FreezeSelect.h"

#include "test/runtime/control/numpy-check.h"

#include "runtime/core/Philox.h"

#include <algorithm>
#include <cmath>

namespace weft::rt {
namespace {

std::vector<HeadCandidate> drawn(int64_t sites, int64_t heads, int64_t groupSize = 1) {
  std::vector<HeadCandidate> result;
  Philox philox(5, "test/heads");
  for (int64_t i = 0; i < sites * heads; ++i) {
    HeadCandidate candidate;
    candidate.number = i;
    candidate.site = "block." + std::to_string(i / heads) + ".attn";
    candidate.head = i % heads;
    candidate.group = candidate.head / groupSize;
    // Few values, so that there are ties.
    candidate.scores["variance"] = std::floor(philox.uniform(static_cast<uint64_t>(3 * i)) * 9);
    candidate.scores["qk_gradient"] = philox.uniform(static_cast<uint64_t>(3 * i + 1));
    candidate.scores["gate_taylor"] = philox.normal(static_cast<uint64_t>(i + 500));
    candidate.kl = philox.uniform(static_cast<uint64_t>(3 * i + 2)) * 0.25;
    result.push_back(candidate);
  }
  return result;
}

std::vector<int64_t> chosenOf(const std::vector<HeadCandidate> &heads, const HeadChoices &choices) {
  std::vector<int64_t> numbers;
  for (const HeadChoice &choice : choices.ranked)
    if (choice.chosen)
      numbers.push_back(heads[choice.candidate].number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Mutations caught: ties by score alone; tolerance counted as taken; veto of the
// lowest quarter; limits over all sites where they are by site.
TEST(ChooseHeads, AgreesWithNumpy) {
  const int64_t groupSize = 2;
  const std::vector<HeadCandidate> heads = drawn(4, 6, groupSize);
  Json list = Json::array();
  for (const HeadCandidate &head : heads)
    list.push_back({{"site", head.site},
                    {"kl", head.kl},
                    {"variance", head.scores.at("variance")},
                    {"gate_taylor", head.scores.at("gate_taylor")},
                    {"qk_gradient", head.scores.at("qk_gradient")}});
  for (const char *by : {"variance", "qk_gradient", "rank_sum", "gradient_veto", "gate_taylor"})
    for (int mode = 0; mode < 8; ++mode) {
      HeadSelection selection;
      selection.by = by;
      selection.highest = mode & 1;
      selection.perSite = mode & 2;
      selection.groups = mode & 4;
      selection.share = 0.25;
      selection.tolerance = 0.2;
      HeadChoices found = chooseHeads(heads, selection);
      Json wanted = test::numpyAnswer("select_heads.py", {{"by", by},
                                                          {"highest", selection.highest},
                                                          {"per_site", selection.perSite},
                                                          {"groups", selection.groups},
                                                          {"share", 0.25},
                                                          {"tolerance", 0.2},
                                                          {"group_size", groupSize},
                                                          {"heads", list}});
      std::vector<int64_t> order;
      for (const HeadChoice &choice : found.ranked)
        order.push_back(heads[choice.candidate].number);
      EXPECT_EQ(Json(order), wanted["order"]) << by << " mode " << mode;
      EXPECT_EQ(Json(chosenOf(heads, found)), wanted["chosen"]) << by << " mode " << mode;
      EXPECT_EQ(found.chosen, static_cast<int64_t>(chosenOf(heads, found).size()));
    }
}

// 25% of 144 and of 512 heads: 36 and 128. rint: half of 5 heads is 2.
TEST(ChooseHeads, RoundsTheShareToEven) {
  for (auto [heads, share, wanted] :
       {std::tuple(144, 0.25, 36), {512, 0.25, 128}, {5, 0.5, 2}, {7, 0.5, 4}}) {
    HeadSelection selection;
    selection.share = share;
    HeadChoices choices = chooseHeads(drawn(1, heads), selection);
    EXPECT_EQ(choices.wanted, wanted);
    EXPECT_EQ(choices.chosen, wanted);
  }
}

TEST(ChooseHeads, PassesOverWhatFitsWorse) {
  std::vector<HeadCandidate> heads = drawn(1, 4);
  for (size_t i = 0; i < 4; ++i) {
    heads[i].scores["variance"] = static_cast<double>(i);
    heads[i].kl = i == 0 || i == 2 ? 0.3 : 0.1;
  }
  HeadSelection selection;
  selection.count = 3;
  selection.tolerance = 0.2;
  HeadChoices choices = chooseHeads(heads, selection);
  EXPECT_EQ(chosenOf(heads, choices), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(choices.wanted, 3);
  EXPECT_EQ(choices.chosen, 2);
  EXPECT_EQ(choices.passed, 2);
  EXPECT_EQ(choices.ranked[0].reason, "tolerance");
  selection.tolerance.reset();
  EXPECT_EQ(chosenOf(heads, chooseHeads(heads, selection)), (std::vector<int64_t>{0, 1, 2}));
}

// Mutation caught: the layers' counts of all heads, not of those variance took.
TEST(ChooseHeads, RandomKeepsTheCountsOfVariance) {
  std::vector<HeadCandidate> heads = drawn(4, 8);
  auto countsOf = [&](const HeadChoices &choices) {
    std::map<std::string, int64_t> counts;
    for (const HeadChoice &choice : choices.ranked)
      if (choice.chosen)
        ++counts[heads[choice.candidate].site];
    return counts;
  };
  HeadSelection selection;
  selection.share = 0.25;
  const auto wanted = countsOf(chooseHeads(heads, selection));
  selection.by = "random(matched)";
  selection.seed = 1;
  const HeadChoices one = chooseHeads(heads, selection);
  EXPECT_EQ(countsOf(one), wanted);
  EXPECT_EQ(chosenOf(heads, one), chosenOf(heads, chooseHeads(heads, selection)));
  selection.seed = 2;
  EXPECT_EQ(countsOf(chooseHeads(heads, selection)), wanted);
  EXPECT_NE(chosenOf(heads, one), chosenOf(heads, chooseHeads(heads, selection)));
  selection.by = "random(unmatched)";
  EXPECT_EQ(chooseHeads(heads, selection).chosen, 8);
}

TEST(HeadsFile, IsReadAsWritten) {
  std::vector<HeadCandidate> heads = drawn(2, 4);
  HeadSelection selection;
  selection.count = 3;
  HeadChoices choices = chooseHeads(heads, selection);
  const std::string path = testing::TempDir() + "heads.json";
  ASSERT_TRUE(writeFileAtomic(path, dumpJson(toJson(heads, choices))).ok());
  auto read = readHeads(path);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*read)[i].site, heads[choices.ranked[i].candidate].site);
    EXPECT_EQ((*read)[i].head, heads[choices.ranked[i].candidate].head);
  }
  ASSERT_TRUE(writeFileAtomic(path, R"({"heads": [{"layer": 2, "head": 5}]})").ok());
  EXPECT_EQ(readHeads(path)->at(0).layer, 2);
  ASSERT_TRUE(writeFileAtomic(path, R"({"heads": [{"layer": "two", "head": 5}]})").ok());
  EXPECT_EQ(readHeads(path).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(layerOf("block.12.attn"), 12);
  EXPECT_EQ(layerOf("attn"), -1);
}

} // namespace
} // namespace weft::rt

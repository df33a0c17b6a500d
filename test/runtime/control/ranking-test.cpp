// Agreement of two rankings against NumPy (test/numpy/rankings.py).
#include "runtime/control/Ranking.h"

#include "test/runtime/control/numpy-check.h"

#include "runtime/core/Philox.h"

#include <algorithm>

namespace weft::rt {
namespace {

/// `sites` x `heads` heads in a drawn order, a third of them chosen; every seventh left out.
Ranking drawn(int64_t sites, int64_t heads, uint64_t seed, bool gaps) {
  const Philox philox(seed, "ranking");
  std::vector<std::pair<double, RankedHead>> order;
  for (int64_t site = 0; site < sites; ++site)
    for (int64_t head = 0; head < heads; ++head) {
      const auto number = static_cast<uint64_t>(site * heads + head);
      if (gaps && number % 7 == 3)
        continue;
      order.push_back(
          {philox.uniform(number),
           {"block." + std::to_string(site) + ".attn", site, head, philox.uniform(1000 + number) < 1.0 / 3}});
    }
  std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  Ranking ranking;
  for (const auto &[place, head] : order)
    ranking.push_back(head);
  return ranking;
}

Json listOf(const Ranking &ranking) {
  Json list = Json::array();
  for (const RankedHead &head : ranking)
    list.push_back(Json::array({head.site, head.head, head.chosen}));
  return list;
}

// Mutations caught: places counted over heads that only one ranking holds; chance over all heads
// and not by site; a pair counted twice.
TEST(Ranking, AgreesWithNumpy) {
  for (bool gaps : {false, true})
    for (uint64_t seed : {1, 2}) {
      const Ranking now = drawn(5, 6, seed, false), then = drawn(5, 6, seed + 10, gaps);
      const Agreement found = agreementOf(now, then);
      const Json wanted = test::numpyAnswer("rankings.py", {{"now", listOf(now)}, {"then", listOf(then)}});
      EXPECT_EQ(found.heads, wanted["heads"].get<int64_t>());
      EXPECT_EQ(found.overlap, wanted["overlap"].get<int64_t>());
      EXPECT_NEAR(found.byChance, wanted["by_chance"].get<double>(), 1e-12);
      EXPECT_NEAR(found.spearman, wanted["spearman"].get<double>(), 1e-12);
      EXPECT_NEAR(found.kendall, wanted["kendall"].get<double>(), 1e-12);
    }
}

TEST(Ranking, TheSameAndTheReverse) {
  const Ranking one = drawn(2, 4, 3, false);
  Ranking other = one;
  const Agreement same = agreementOf(one, other);
  EXPECT_EQ(same.overlap, same.chosen);
  EXPECT_EQ(same.spearman, 1);
  std::reverse(other.begin(), other.end());
  EXPECT_EQ(agreementOf(one, other).spearman, -1);
  EXPECT_EQ(agreementOf(one, other).kendall, -1);
}

// A file of layers names the same heads; a head that two statements ranked stands where the
// second put it. Mutation caught: its first place kept.
TEST(Ranking, ReadsFiles) {
  const std::string path = testing::TempDir() + "ranking-" + std::to_string(::getpid()) + ".json";
  ASSERT_TRUE(writeFileAtomic(
                  path, R"({"heads": [{"layer": 1, "head": 2, "chosen": false}, {"layer": 0, "head": 3}]})")
                  .ok());
  absl::StatusOr<Ranking> read = readRanking(path);
  ASSERT_TRUE(read.ok()) << read.status();
  const Agreement found = agreementOf(
      {{"block.0.attn", 0, 3, true}, {"block.1.attn", 1, 2, true}, {"block.1.attn", 1, 0, true}}, *read);
  EXPECT_EQ(found.heads, 2);
  EXPECT_EQ(found.chosenThen, 1);
  EXPECT_EQ(found.overlap, 1);
  EXPECT_EQ(found.spearman, -1);
  ASSERT_TRUE(writeFileAtomic(path, R"({"heads": [{"site": "a.0", "head": 2, "chosen": false},
                {"site": "a.0", "head": 1}, {"site": "a.0", "head": 2}]})")
                  .ok());
  read = readRanking(path);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(read->at(1).head, 2);
  EXPECT_TRUE(read->at(1).chosen);
}

} // namespace
} // namespace weft::rt

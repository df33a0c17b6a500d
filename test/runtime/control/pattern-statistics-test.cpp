// Statistics of a head, by blocks of rows, against dense NumPy
// (test/numpy/pattern_fit.py), over documents of several lengths.
#include "runtime/control/PatternStatistics.h"

#include "test/runtime/control/numpy-check.h"

#include "runtime/core/Philox.h"

namespace weft::rt {
namespace {

struct Case {
  int64_t window, length;
  std::vector<int64_t> documents;
};

class Statistics : public testing::TestWithParam<Case> {};

void expectMoments(const PatternMoments &found, const Json &wanted) {
  for (size_t i = 0; i < found.rows.size(); ++i) {
    EXPECT_NEAR(found.columns[i], wanted["columns"][i].get<double>(), 2e-5) << i;
    EXPECT_NEAR(found.diagonals[i], wanted["diagonals"][i].get<double>(), 2e-5) << i;
  }
  EXPECT_NEAR(found.information, wanted["information"].get<double>(), 1e-4);
}

// Mutations caught: the mean taken over all documents where few reach a row;
// a window one too wide; the first block's keys used for later blocks.
TEST_P(Statistics, AgreeWithNumpy) {
  const int64_t channels = 5, stride = 11; // rows stand apart, as heads of one tensor do
  HeadInput input;
  input.channels = channels;
  input.scale = 0.7;
  input.window = GetParam().window;
  input.length = GetParam().length;
  std::vector<std::vector<float>> kept;
  Json documents = Json::array();
  for (int64_t length : GetParam().documents) {
    Json document;
    std::vector<const float *> pointers;
    for (const char *name : {"q", "k"}) {
      Philox philox(7, name + std::to_string(kept.size()));
      std::vector<float> values(static_cast<size_t>(length * stride));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(philox.normal(i));
      Json rows = Json::array();
      for (int64_t i = 0; i < length; ++i)
        rows.push_back(
            std::vector<float>(values.begin() + i * stride, values.begin() + i * stride + channels));
      document[name] = rows;
      kept.push_back(std::move(values));
    }
    documents.push_back(document);
  }
  for (size_t x = 0; x < GetParam().documents.size(); ++x)
    input.documents.push_back(
        {kept[2 * x].data(), kept[2 * x + 1].data(), stride, stride, GetParam().documents[x]});
  Pattern pattern{{}, {}, input.window};
  for (int64_t i = 0; i < input.length; ++i) {
    pattern.a.push_back(-0.5F * static_cast<float>(i % 3));
    pattern.r.push_back(-0.03F * static_cast<float>(i));
  }
  const HeadStatistics found = headStatistics(input);
  const PatternDistances distances = distancesTo(input, pattern);
  Json wanted = test::numpyAnswer("pattern_fit.py", {{"kind", "statistics"},
                                                     {"documents", documents},
                                                     {"scale", input.scale},
                                                     {"window", std::min(input.window, input.length)},
                                                     {"length", input.length},
                                                     {"a", pattern.a},
                                                     {"r", pattern.r}});
  const std::pair<const char *, double> numbers[] = {{"score", found.score},
                                                     {"forward_kl", found.forwardKl},
                                                     {"entropy", found.entropy},
                                                     {"recent", found.recent},
                                                     {"first", found.first},
                                                     {"frobenius", distances.frobenius},
                                                     {"kl", distances.kl},
                                                     {"hellinger", distances.hellinger},
                                                     {"variation", distances.variation}};
  for (const auto &[name, value] : numbers)
    EXPECT_NEAR(value, wanted[name].get<double>(), 1e-5) << name;
  EXPECT_EQ(Json(found.mean.rows), wanted["rows"]);
  expectMoments(found.mean, wanted["mean"]);
  expectMoments(found.sharp, wanted["sharp"]);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Statistics,
                         testing::Values(Case{kNoWindow, 70, {70, 70, 70}}, Case{9, 70, {70, 41, 3}},
                                         Case{kNoWindow, 80, {33, 80, 1, 64}}, Case{1, 5, {5, 5}},
                                         Case{100, 40, {37, 20}}));

// Identical inputs have no variance; float sums of squares would go below zero.
TEST(PatternStatistics, VarianceIsNeverNegative) {
  std::vector<float> values(50 * 4);
  Philox philox(3, "same");
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(philox.normal(i));
  HeadInput input;
  input.channels = 4;
  input.length = 50;
  for (int x = 0; x < 16; ++x)
    input.documents.push_back({values.data(), values.data(), 4, 4, 50});
  const HeadStatistics found = headStatistics(input);
  EXPECT_GE(found.score, 0);
  EXPECT_LT(found.score, 1e-10);
  EXPECT_GE(found.forwardKl, 0);
}

} // namespace
} // namespace weft::rt

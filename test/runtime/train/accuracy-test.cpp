//===- accuracy-test.cpp - How often the likeliest token is right -----------===//
#include "runtime/train/Accuracy.h"

#include "runtime/train/Evaluate.h"
#include "test/runtime/train/TrainSetup.h"

#include <cmath>

namespace weft::rt {
namespace {

std::shared_ptr<const Mqar> task() {
  MqarOptions options;
  options.vocabulary = 16;
  options.length = 8;
  options.pairs = 2;
  options.rows = 5;
  options.test = true;
  return std::make_shared<const Mqar>(*Mqar::make(options));
}

// After key t the machine answers `guess`; counted by hand from the rows themselves. Counting
// positions without a target, or the last row twice, fails.
TEST(Accuracy, CountsLabelledPositionsAlone) {
  BigramMachine machine(smallOptions()); // rows of 2: the last batch is half empty
  Tensor table = *machine.readState("table");
  for (int64_t t = 0; t < 16; ++t)
    for (int64_t id = 0; id < 16; ++id)
      set(table, t * 16 + id, id == 8 + t % 8 ? 3 : 0);
  ASSERT_TRUE(machine.writeState("table", table).ok());
  EvalData data = *EvalData::make(task(), smallRecipe(1), 2);
  absl::StatusOr<AccuracyResult> result = accuracy(machine, data);
  ASSERT_TRUE(result.ok()) << result.status();
  int64_t right = 0, targets = 0;
  double loss = 0;
  for (int64_t row = 0; row < 5; ++row) {
    std::vector<int32_t> inputs(8), wanted(8);
    task()->row(row, inputs, wanted);
    for (size_t p = 0; p < 8; ++p)
      if (wanted[p] >= 0) {
        ++targets;
        const bool hit = wanted[p] == 8 + inputs[p] % 8;
        right += hit;
        loss += std::log(std::exp(3) + 15) - (hit ? 3 : 0);
      }
  }
  EXPECT_EQ(targets, 10);
  EXPECT_EQ(result->targets, targets);
  EXPECT_EQ(result->right, right);
  EXPECT_NEAR(result->loss, loss / 10, 1e-6);
  EXPECT_NEAR(evaluate(machine, data)->loss, result->loss, 1e-6);
}

TEST(Accuracy, OfEqualLogitsTheLowestId) {
  BigramOptions options = smallOptions();
  options.init = {};
  BigramMachine machine(options);
  EvalData data = *EvalData::make(task(), smallRecipe(1), 2);
  EXPECT_EQ(accuracy(machine, data)->right, 0); // values are 8 to 15, the answer is always 0
}

} // namespace
} // namespace weft::rt

#include "runtime/train/Migrate.h"

#include "runtime/core/Philox.h"

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

StateEntry entryOf(std::vector<int64_t> full, int64_t firstAxis, int64_t axisCount,
                   std::vector<int64_t> kept) {
  StateEntry entry;
  entry.name = "block.0.attn.wq";
  if (kept.empty()) {
    entry.shape = full;
    return entry;
  }
  entry.fullShape = full;
  entry.firstAxis = firstAxis;
  entry.axisCount = axisCount;
  entry.kept = kept;
  entry.shape.assign(full.begin(), full.begin() + firstAxis);
  entry.shape.push_back(static_cast<int64_t>(kept.size()));
  entry.shape.insert(entry.shape.end(), full.begin() + firstAxis + axisCount, full.end());
  return entry;
}

/// Element (x, group, head, c) of a tensor [2, 2, 3, 2] is 1000x + 100 slice + c.
float element(int64_t x, int64_t slice, int64_t c) { return static_cast<float>(1000 * x + 100 * slice + c); }

Tensor filled(const StateEntry &entry, const std::vector<int64_t> &slices) {
  Tensor value(ElementType::F32, entry.shape);
  size_t at = 0;
  for (int64_t x = 0; x < 2; ++x)
    for (int64_t slice : slices)
      for (int64_t c = 0; c < 2; ++c)
        value.as<float>()[at++] = element(x, slice, c);
  return value;
}

// Mutations caught: outer and inner swapped; places counted in the whole tensor
// where the old entry holds a part.
TEST(Resliced, TakesHeadsOutOfWholeAndPart) {
  const std::vector<int64_t> full{2, 2, 3, 2};
  const StateEntry whole = entryOf(full, 0, 0, {}), part = entryOf(full, 1, 2, {0, 2, 4, 5}),
                   less = entryOf(full, 1, 2, {2, 5});
  const Tensor all = filled(whole, {0, 1, 2, 3, 4, 5});
  auto first = resliced(whole, all, part);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->shape, (std::vector<int64_t>{2, 4, 2}));
  EXPECT_EQ(first->bytes, filled(part, {0, 2, 4, 5}).bytes);
  auto second = resliced(part, *first, less);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->bytes, filled(less, {2, 5}).bytes);
  EXPECT_EQ(resliced(part, *first, part)->bytes, first->bytes);
}

TEST(Resliced, RefusesWhatIsNotThere) {
  const std::vector<int64_t> full{2, 2, 3, 2};
  const StateEntry part = entryOf(full, 1, 2, {0, 2}), other = entryOf(full, 1, 2, {1}),
                   wider = entryOf({2, 2, 3, 3}, 0, 0, {});
  const Tensor value = filled(part, {0, 2});
  EXPECT_EQ(resliced(part, value, other).status().code(), absl::StatusCode::kFailedPrecondition);
  // Both shapes are named: a plan or checkpoint of another model.
  const std::string text(resliced(part, value, wider).status().message());
  EXPECT_NE(text.find("[2, 2, 3, 3]"), std::string::npos) << text;
  EXPECT_NE(text.find("[2, 2, 3, 2]"), std::string::npos) << text;
}

TEST(Shortened, KeepsThePrefixOfEachHead) {
  Tensor table(ElementType::F32, {2, 4});
  for (size_t i = 0; i < 8; ++i)
    table.as<float>()[i] = static_cast<float>(i);
  Tensor prefix = shortened(table, 3);
  EXPECT_EQ(std::vector<float>(prefix.as<float>().begin(), prefix.as<float>().end()),
            (std::vector<float>{0, 1, 2, 4, 5, 6}));
}

} // namespace
} // namespace weft::rt

#include "runtime/core/Slices.h"

#include <numeric>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

/// Places 1 and 4 of the axes [2, 3] of a tensor [2, 2, 3, 2].
StateEntry entry() {
  StateEntry part;
  part.name = "wq";
  part.shape = {2, 2, 2};
  part.fullShape = {2, 2, 3, 2};
  part.firstAxis = 1;
  part.axisCount = 2;
  part.kept = {1, 4};
  return part;
}

Tensor counted(std::vector<int64_t> shape) {
  Tensor tensor(ElementType::F32, std::move(shape));
  std::iota(tensor.as<float>().begin(), tensor.as<float>().end(), 0.0F);
  return tensor;
}

// Element (o, place, i) of the whole is 12 o + 2 place + i. Catches: axes counted
// apart, an outer stride of the part.
TEST(Slices, ArePlacesOfAxesTogether) {
  absl::StatusOr<Tensor> part = sliceFor(entry(), counted({2, 2, 3, 2}));
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->shape, (std::vector<int64_t>{2, 2, 2}));
  auto values = part->as<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{2, 3, 8, 9, 14, 15, 20, 21}));
}

TEST(Slices, AnEntryWithoutThemIsTheWhole) {
  StateEntry all;
  all.name = "wo", all.shape = {3, 2};
  absl::StatusOr<Tensor> same = sliceFor(all, counted({3, 2}));
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->bytes, counted({3, 2}).bytes);
  EXPECT_EQ(wholeShape(all), all.shape);
  EXPECT_EQ(wholeShape(entry()), (std::vector<int64_t>{2, 2, 3, 2}));
}

TEST(Slices, OtherShapesAreRefused) {
  absl::StatusOr<Tensor> part = sliceFor(entry(), counted({2, 2, 2}));
  EXPECT_EQ(part.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(part.status().message().find("`wq` is F32 [2, 2, 3, 2] as a whole"), absl::string_view::npos)
      << part.status();
}

} // namespace
} // namespace weft::rt

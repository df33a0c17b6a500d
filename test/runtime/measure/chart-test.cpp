//===- chart-test.cpp - Pictures of lines ----------------------------------===//
#include "runtime/measure/Chart.h"

#include <cmath>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Chart, EveryFinitePointIsDrawn) {
  Chart chart{
      "Loss", "step", "nats", false, {{"a", {{1, 2}, {2, 1.5}, {3, std::nan("")}}}, {"b<&", {{2, 3}}}}};
  std::string picture = svg(chart);
  EXPECT_EQ(count(picture, "<circle"), 3u);
  EXPECT_EQ(count(picture, "<polyline"), 2u);
  EXPECT_NE(picture.find("b&lt;&amp;"), std::string::npos);
  EXPECT_EQ(picture.find("nan"), std::string::npos);
  EXPECT_EQ(picture, svg(chart));
}

/// x of the points in order.
std::vector<double> places(const std::string &picture) {
  std::vector<double> result;
  for (size_t at = picture.find("cx=\""); at != std::string::npos; at = picture.find("cx=\"", at + 1))
    result.push_back(std::stod(picture.substr(at + 4)));
  return result;
}

// Equal ratios are equal steps on a logarithmic axis, and not on another.
TEST(Chart, LogarithmicAxes) {
  Chart chart{"Sweep", "rate", "nats", true, {{"a", {{0.5, 1}, {1, 1}, {2, 1}, {0, 1}}}}};
  std::vector<double> x = places(svg(chart));
  ASSERT_EQ(x.size(), 3u);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.11);
  chart.logX = false;
  x = places(svg(chart));
  ASSERT_EQ(x.size(), 4u);
  EXPECT_NEAR(2 * (x[1] - x[0]), x[2] - x[1], 0.21);
}

TEST(Chart, NothingAndOnePoint) {
  EXPECT_NE(svg({"t", "x", "y", false, {{"a", {}}}}).find("nothing to show"), std::string::npos);
  std::string one = svg({"t", "x", "y", false, {{"a", {{5, 5}}}}});
  EXPECT_EQ(count(one, "<circle"), 1u);
  EXPECT_EQ(one.find("nan"), std::string::npos);
}

} // namespace
} // namespace weft::rt

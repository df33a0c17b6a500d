//===- regions-test.cpp - Which part of its document a token is in ---------===//
#include "runtime/measure/Regions.h"

#include "runtime/data/Corpus.h"

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

std::shared_ptr<const Tokenizer> bytes() { return *makeTokenizer("bytes"); }

TokenStream streamOf(const std::vector<std::string> &texts) {
  TokenStream stream;
  for (const std::string &text : texts)
    stream.add(bytes()->encode(text));
  return stream;
}

std::string labelsOf(const std::vector<std::string> &texts, const std::vector<Region> &regions) {
  TokenStream stream = streamOf(texts);
  absl::StatusOr<RegionLabels> labels = RegionLabels::make(stream, regions, *bytes());
  EXPECT_TRUE(labels.ok()) << labels.status();
  std::string result;
  for (int64_t i = 0; i < stream.size(); ++i)
    result += labels->names()[labels->at(i)][0];
  return result;
}

const std::vector<Region> kRegions = {{"query", "<q>"}, {"trace", "<t>"}, {"answer", "<a>"}};

// A region that begins at its marker, that goes on past the document's end, or a document that
// begins in the last region of the one before fails.
TEST(Regions, FromAMarkerToTheNextOrTheEnd) {
  EXPECT_EQ(labelsOf({"x<q>ab<t>c<a>d", "yz<a>e"}, kRegions), "oooo"
                                                              "qq"
                                                              "ooo"
                                                              "t"
                                                              "ooo"
                                                              "a"
                                                              "oo"
                                                              "ooo"
                                                              "a");
}

TEST(Regions, AMarkerMayComeAgainAndOthersAreText) {
  EXPECT_EQ(labelsOf({"<q>a<e>b<q>c<"}, kRegions), "ooo"
                                                   "qqqqq"
                                                   "ooo"
                                                   "qq");
}

// Markers are searched for in token order: taking the first that fits would call this `short`.
TEST(Regions, OfMarkersThatBeginAlikeTheLongest) {
  EXPECT_EQ(labelsOf({"<q>a<q>>b"}, {{"short", "<q>"}, {"long", "<q>>"}}), "ooo"
                                                                           "s"
                                                                           "oooo"
                                                                           "l");
}

TEST(Regions, WrongMarkersAreRefused) {
  TokenStream stream = streamOf({"a"});
  EXPECT_FALSE(RegionLabels::make(stream, {{"other", "<o>"}}, *bytes()).ok());
  EXPECT_FALSE(RegionLabels::make(stream, {{"a", "<a>"}, {"b", "<a>"}}, *bytes()).ok());
}

} // namespace
} // namespace weft::rt

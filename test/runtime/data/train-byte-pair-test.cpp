//===- train-byte-pair-test.cpp - A tokenizer of one's own text -----------===//
#include "runtime/data/TrainBytePair.h"

#include "runtime/core/File.h"
#include "runtime/data/BytePair.h"
#include "runtime/data/Corpus.h"
#include "runtime/data/Markers.h"

#include <zlib.h>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

/// The texts of the ids after the bytes.
std::vector<std::string> learnt(const std::string &ranks) {
  auto tokenizer = makeBytePairTokenizer(ranks, "ranks", 0);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::vector<std::string> result;
  for (int32_t id = 256; id < *(*tokenizer)->separator(); ++id)
    result.push_back((*tokenizer)->decode(std::vector<int32_t>{id}));
  return result;
}

// Pieces: abab x3, abc x1. ab occurs 7 times, then abab 3 times; of the two
// "ba" inside abab nothing is left. Ties go to the first in byte order.
TEST(TrainBytePairs, ByHand) {
  std::vector<std::string> texts = {"abab!abab!", "abab!abc"};
  auto ranks = trainBytePairs(texts, 259);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(learnt(*ranks), (std::vector<std::string>{"ab", "abab"}));
  absl::Status more = trainBytePairs(texts, 260).status();
  EXPECT_NE(more.message().find("found enough for 259"), absl::string_view::npos) << more;
  EXPECT_EQ(trainBytePairs(texts, 256).status().code(), absl::StatusCode::kInvalidArgument);
  std::vector<std::string> tie = {"yz yz!ab!yz!ab!ab"}; // three times each
  EXPECT_EQ(learnt(*trainBytePairs(tie, 258))[0], "ab");
}

// Values from a Python program that counts every pair anew for each merge.
TEST(TrainBytePairs, Persuasion) {
  auto novel = readBuiltin("austen/persuasion");
  ASSERT_TRUE(novel.ok()) << novel.status();
  std::vector<std::string> texts = {novel->front().text};
  auto ranks = trainBytePairs(texts, 600);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  std::string joined;
  for (const std::string &bytes : learnt(*ranks))
    joined += (joined.empty() ? "" : "\n") + bytes;
  EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef *>(joined.data()), joined.size()), 0x99ee883au);
  auto tokenizer = makeBytePairTokenizer(*ranks, "ranks", 0);
  EXPECT_EQ((*tokenizer)->encode(texts[0]).size(), 200253u);
  EXPECT_EQ((*tokenizer)->vocabulary(), 600);
}

// Markers are ids of their own between any neighbours. Split by GPT-2's pieces, "!<|q|>" would begin
// with the piece "!<|"; learned across, "q" and "<" would be joined.
TEST(TrainBytePairs, MarkersAreOneIdEverywhere) {
  const std::vector<std::string> texts = {"ab<|q|>ab!<|q|>ab<|qq|>ab", "ab ab"},
                                 markers = {"<|q|>", "<|qq|>", "<|q|>x"};
  auto ranks = trainBytePairs(texts, 261, markers);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  const std::string path = testing::TempDir() + "/marked.ranks";
  ASSERT_TRUE(writeFileAtomic(path, *ranks).ok());
  auto tokenizer = *makeTokenizer(path);
  EXPECT_EQ(tokenizer->vocabulary(), 261);
  EXPECT_EQ(*tokenizer->separator(), 260);
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(tokenizer->encode("ab<|q|>ab!<|qq|>"), (Ids{256, 257, 256, '!', 258}));
  EXPECT_EQ(tokenizer->encode("<|q|>x<|q|>y"), (Ids{259, 257, 'y'})); // the longest first
  EXPECT_EQ(tokenizer->encode("<|q"), (Ids{'<', '|', 'q'}));
  const std::string text = "!<|q|><|qq|>ab<|q|>x";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_EQ(tokenizer->decode(Ids{260}), "<|endoftext|>");
  EXPECT_FALSE(trainBytePairs(texts, 259, markers).ok());
}

TEST(TrainBytePairs, DamagedMarkersAreNamed) {
  auto damaged = [](std::string_view ranks) { return takeMarkers(ranks, "r").status(); };
  EXPECT_TRUE(damaged("YQ== 0\n").ok());
  EXPECT_TRUE(damaged("YQ== 0\nmarker YWI=\n").ok());
  EXPECT_NE(damaged("YQ== 0\nmarker YWI=\nYg== 1\n").message().find("line 3"), absl::string_view::npos);
  EXPECT_FALSE(damaged("marker YWI=\nmarker YWI=\n").ok());
  EXPECT_FALSE(damaged("marker ???\n").ok());
}

} // namespace
} // namespace weft::rt

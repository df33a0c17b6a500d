//===- tokenizer-test.cpp - Text to ids and back --------------------------===//
#include "runtime/data/Tokenizer.h"

#include "runtime/core/File.h"
#include "runtime/data/BytePair.h"
#include "runtime/data/DataFolder.h"
#include "runtime/data/PreSplit.h"
#include "test/runtime/data/TestFolder.h"

#include <functional>
#include <numeric>
#include <pthread.h>

#include "absl/strings/escaping.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace weft::rt {
namespace {

using Ids = std::vector<int32_t>;

std::shared_ptr<const Tokenizer> tokenizer(const std::string &name, int64_t cut = 0) {
  auto result = makeTokenizer(name, cut);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : nullptr;
}

/// The 256 bytes in order, then `merges`.
std::string ranksOf(const std::vector<std::string> &merges) {
  std::string text;
  for (int i = 0; i < 256; ++i)
    text += absl::Base64Escape(std::string(1, static_cast<char>(i))) + " " + std::to_string(i) + "\n";
  for (size_t i = 0; i < merges.size(); ++i)
    text += absl::Base64Escape(merges[i]) + " " + std::to_string(256 + i) + "\n";
  return text;
}

TEST(BytesTokenizer, EveryByteIsItself) {
  auto bytes = tokenizer("bytes");
  std::string text(256, '\0');
  std::iota(text.begin(), text.end(), '\0');
  Ids ids = bytes->encode(text);
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(ids[i], i);
  EXPECT_EQ(bytes->decode(ids), text);
  EXPECT_EQ(bytes->vocabulary(), 256);
  EXPECT_FALSE(bytes->separator());
  EXPECT_EQ(bytes->decode(Ids{65, 256, -1}), "A\xEF\xBF\xBD\xEF\xBF\xBD");
}

// Test cases of another implementation, each "Sample: TEXT" and "Encoded: [..]".
TEST(Gpt2Tokenizer, GoldenCases) {
  auto gpt2 = tokenizer("gpt2");
  auto plans = readDataFile("gpt2/TestPlans.txt", "gpt2");
  ASSERT_TRUE(plans.ok()) << plans.status();
  const std::string kHead = "EncodingName: r50k_base\nSample: ", kIds = "\nEncoded: ";
  int cases = 0;
  for (size_t at = 0; (at = plans->find(kHead, at)) != std::string::npos; ++cases) {
    size_t begin = at + kHead.size(), middle = plans->find(kIds, begin);
    size_t end = plans->find(']', middle) + 1;
    std::string text = plans->substr(begin, middle - begin);
    auto list = nlohmann::json::parse(plans->substr(middle + kIds.size(), end - middle - kIds.size()),
                                      nullptr, false);
    ASSERT_FALSE(list.is_discarded()) << text;
    EXPECT_EQ(gpt2->encode(text), list.get<Ids>()) << text;
    EXPECT_EQ(gpt2->decode(list.get<Ids>()), text);
    at = end;
  }
  EXPECT_EQ(cases, 64);
}

// Ids from tiktoken 1.0.22 for npm. The first line fails when U+180E counts as
// a space, the second when U+0085 or U+00A0 does not, the third when U+FEFF does.
TEST(Gpt2Tokenizer, SpacesAreUnicodeWhiteSpace) {
  auto gpt2 = tokenizer("gpt2");
  EXPECT_EQ(gpt2->encode("a\u180eb \u180e c"), (Ids{64, 157, 254, 236, 65, 28053, 254, 236, 269}));
  EXPECT_EQ(gpt2->encode("  \u0085\u00a0x"), (Ids{220, 1587, 227, 1849, 87}));
  EXPECT_EQ(gpt2->encode("\ufeffhi"), (Ids{171, 119, 123, 5303}));
  EXPECT_EQ(gpt2->encode(" \n \u3000y"), (Ids{220, 198, 220, 5099, 222, 88}));
  EXPECT_EQ(gpt2->encode("     a"), (Ids{220, 220, 220, 220, 257}));
  EXPECT_EQ(gpt2->encode("don't DON'T we'll"), (Ids{9099, 470, 23917, 6, 51, 356, 1183}));
}

// The separator's text inside a document is text.
TEST(Gpt2Tokenizer, SeparatorTextIsText) {
  auto gpt2 = tokenizer("gpt2");
  EXPECT_EQ(gpt2->encode("<|endoftext|>"), (Ids{27, 91, 437, 1659, 5239, 91, 29}));
  EXPECT_EQ(gpt2->separator(), 50256);
  EXPECT_EQ(gpt2->vocabulary(), 50257);
  EXPECT_EQ(gpt2->decode(Ids{64, 50256, 50257}), "a<|endoftext|>\xEF\xBF\xBD");
  EXPECT_TRUE(gpt2->encode("").empty());
}

/// Runs `work` on a thread with 256 KiB of stack.
void runOnSmallStack(const std::function<void()> &work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  auto entry = [](void *argument) -> void * {
    (*static_cast<const std::function<void()> *>(argument))();
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, entry, const_cast<std::function<void()> *>(&work)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Recursion a character would need megabytes of stack; quadratic merging would
// take minutes.
TEST(Gpt2Tokenizer, LongRuns) {
  auto gpt2 = tokenizer("gpt2");
  runOnSmallStack([&] {
    EXPECT_EQ(gpt2->encode(std::string(1000000, '^')).size(), 250000u);
    std::string spaces(300000, ' '), letters(300000, 'a');
    EXPECT_EQ(gpt2->encode(spaces).size(), 300000u);
    EXPECT_EQ(gpt2->encode(spaces + "x").size(), 300000u); // the last space joins x
    EXPECT_EQ(gpt2->decode(gpt2->encode(letters)), letters);
  });
}

TEST(Gpt2Tokenizer, AnyBytesComeBack) {
  auto gpt2 = tokenizer("gpt2"), cut = tokenizer("gpt2", 300);
  uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      state = state * 1664525 + 1013904223;
      text += static_cast<char>(state >> 24);
    }
    EXPECT_EQ(gpt2->decode(gpt2->encode(text)), text);
    EXPECT_EQ(cut->decode(cut->encode(text)), text);
  }
}

TEST(Gpt2Tokenizer, CutKeepsTheFirstIdsAndTheSeparator) {
  auto cut = tokenizer("gpt2(16384)");
  EXPECT_EQ(cut->vocabulary(), 16384);
  EXPECT_EQ(cut->separator(), 16383);
  // " hello" is 23748 in full, made of " hell" (5968) and "o" (78).
  EXPECT_EQ(tokenizer("gpt2")->encode(" hello"), (Ids{23748}));
  EXPECT_EQ(cut->encode(" hello"), (Ids{5968, 78}));
  for (int32_t id : cut->encode(std::string(1000, '^') + " antidisestablishmentarianism \u5b57"))
    EXPECT_LT(id, 16383);
  EXPECT_EQ(makeTokenizer("gpt2", 256).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(makeTokenizer("gpt2(50258)").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(makeTokenizer("gpt2(x)").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tokenizer("gpt2(257)")->encode("hello"), (Ids{71, 68, 75, 75, 78})); // h e l l o in r50k's order
}

// Lowest id first, leftmost first: by hand, with bc = 256, ab = 257, abc = 258.
TEST(BytePair, MergesByRankThenPlace) {
  auto pairs = makeBytePairTokenizer(ranksOf({"bc", "ab", "abc", "aa"}), "ranks", 0);
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  EXPECT_EQ((*pairs)->encode("abx"), (Ids{257, 'x'}));
  EXPECT_EQ((*pairs)->encode("abcx"), (Ids{258, 'x'})); // bc, then a bc
  EXPECT_EQ((*pairs)->encode("abbcx"), (Ids{257, 256, 'x'}));
  EXPECT_EQ((*pairs)->encode("aaax"), (Ids{259, 'a', 'x'}));
  EXPECT_EQ((*pairs)->encode("aaabx"), (Ids{259, 257, 'x'})); // ab before aa
  EXPECT_EQ((*pairs)->separator(), 260);
  // With 259 ids, abc (258) is the separator's and does not exist.
  auto cut = makeBytePairTokenizer(ranksOf({"bc", "ab", "abc", "aa"}), "ranks", 259);
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ((*cut)->encode("abcx"), (Ids{'a', 256, 'x'}));
  EXPECT_EQ((*cut)->separator(), 258);
}

TEST(BytePair, DamagedFilesAreNamed) {
  std::string good = ranksOf({"ab"});
  auto message = [](const std::string &ranks, int64_t cut = 0) {
    return std::string(makeBytePairTokenizer(ranks, "my.ranks", cut).status().message());
  };
  EXPECT_NE(message(good + "!! 257\n").find("my.ranks: line 258"), std::string::npos);
  EXPECT_NE(message(good + "YWM= 300\n").find("expected id 257, found 300"), std::string::npos);
  EXPECT_NE(message(good + "YWM=\n").find("line 258"), std::string::npos);
  EXPECT_NE(message("").find("my.ranks"), std::string::npos);
  EXPECT_NE(message(good, 300).find("found 300"), std::string::npos);
  std::string noByte = good;
  noByte.replace(noByte.find("YQ== 97"), 7, "YWJj 97");
  EXPECT_NE(message(noByte).find("byte 97"), std::string::npos);
}

TEST(Tokenizer, FileOfRanks) {
  TestFolder folder;
  auto own = tokenizer(folder.write("own.ranks", ranksOf({"th"})));
  EXPECT_EQ(own->encode("th"), (Ids{256}));
  EXPECT_EQ(own->vocabulary(), 258);
  EXPECT_EQ(makeTokenizer(folder.path + "/none").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Tokenizer, MissingRanksSayWhatToRun) {
  TestFolder folder;
  setenv("WEFT_DATA_DIR", folder.path.c_str(), 1);
  std::string message(makeTokenizer("gpt2").status().message());
  unsetenv("WEFT_DATA_DIR");
  EXPECT_NE(message.find(folder.path + "/gpt2/r50k_base.tiktoken"), std::string::npos);
  EXPECT_NE(message.find("tools/get-text gpt2"), std::string::npos);
}

TEST(Tokenizer, Prompts) {
  auto pairs = makeBytePairTokenizer(ranksOf({}), "ranks", 0);
  EXPECT_EQ(*encodePrompt(**pairs, "ab"), (Ids{'a', 'b'}));
  EXPECT_EQ(*encodePrompt(**pairs, ""), (Ids{256}));
  EXPECT_EQ(encodePrompt(*tokenizer("bytes"), "").status().code(), absl::StatusCode::kInvalidArgument);
}

std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> result;
  auto split = PreSplit::make();
  EXPECT_TRUE(split.ok()) << split.status();
  split->run(text, [&](std::string_view piece) { result.emplace_back(piece); });
  return result;
}

TEST(PreSplit, PiecesByHand) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(pieces("I'm  here,\n\n12ab"), (Pieces{"I", "'m", " ", " here", ",", "\n", "\n", "12", "ab"}));
  EXPECT_EQ(pieces("a \xff\xfe!b"), (Pieces{"a", " \xff\xfe!", "b"}));
  // A surrogate, an overlong slash and a cut character are symbols, byte by byte.
  EXPECT_EQ(pieces("x\xed\xa0\x80y\xc0\xafz\xe5\xad"),
            (Pieces{"x", "\xed\xa0\x80", "y", "\xc0\xaf", "z", "\xe5\xad"}));
  EXPECT_EQ(pieces("  "), (Pieces{"  "}));
  EXPECT_TRUE(pieces("").empty());
}

TEST(PreSplit, Utf8Lengths) {
  EXPECT_EQ(utf8Length("\x7f"), 1u);
  EXPECT_EQ(utf8Length("\xc2\x80"), 2u);
  EXPECT_EQ(utf8Length("\xc1\x80"), 0u);
  EXPECT_EQ(utf8Length("\xe0\xa0\x80"), 3u);
  EXPECT_EQ(utf8Length("\xe0\x9f\xbf"), 0u);
  EXPECT_EQ(utf8Length("\xed\x9f\xbf"), 3u);
  EXPECT_EQ(utf8Length("\xed\xa0\x80"), 0u);
  EXPECT_EQ(utf8Length("\xf4\x8f\xbf\xbf"), 4u);
  EXPECT_EQ(utf8Length("\xf4\x90\x80\x80"), 0u);
  EXPECT_EQ(utf8Length("\xf0\x8f\xbf\xbf"), 0u);
  EXPECT_EQ(utf8Length("\xe5\xad"), 0u);
  EXPECT_EQ(utf8Length(""), 0u);
}

} // namespace
} // namespace weft::rt

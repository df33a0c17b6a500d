//===- prepare-test.cpp - Text to token files and back --------------------===//
#include "runtime/data/Prepare.h"

#include "runtime/core/Json.h"
#include "runtime/data/Corpus.h"
#include "test/runtime/data/TestFolder.h"

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using Ids = std::vector<int32_t>;

std::vector<Ids> documentsOf(const TokenStream &stream) {
  std::vector<Ids> result;
  for (const TokenStream::Document &doc : stream.documents()) {
    result.emplace_back(doc.length);
    stream.copy(doc.begin, doc.length, result.back().data());
  }
  return result;
}

/// Prepares a.txt "a b c d", b.txt "e f", c.txt "g" and reads the shards back.
struct Round {
  std::vector<Ids> before, after;
  std::vector<std::string> files;
};

Round prepare(const std::string &tokenizer, int64_t shardTokens) {
  TestFolder folder;
  folder.write("a.txt", "a b c d");
  folder.write("b.txt", "e f");
  folder.write("c.txt", "g");
  PrepareOptions options{{"*.txt"}, folder.path, tokenizer, folder.path + "/out/x", shardTokens};
  auto done = prepareData(options);
  EXPECT_TRUE(done.ok()) << done.status();
  auto kind = *makeTokenizer(tokenizer);
  auto read = [&](const std::string &pattern) {
    auto names = expandSources({pattern}, folder.path);
    return documentsOf(*readTokens(*names, *kind, kind->vocabulary()));
  };
  Round round{read("*.txt"), read("out/x-*.bin"), {}};
  for (const std::string &file : done->files)
    round.files.push_back(std::filesystem::path(file).filename());
  return round;
}

// With the separator the documents have 5, 3 and 2 tokens.
TEST(Prepare, DocumentsComeBack) {
  Round one = prepare("gpt2", 1000);
  EXPECT_EQ(one.files, std::vector<std::string>{"x-000000.bin"});
  EXPECT_EQ(one.after, one.before);
  ASSERT_EQ(one.before.size(), 3u);
  EXPECT_EQ(one.before[0], (Ids{50256, 64, 275, 269, 288})); // a, " b", " c", " d"
  // Eight tokens hold the first two documents, seven only the first.
  EXPECT_EQ(prepare("gpt2", 8).files.size(), 2u);
  EXPECT_EQ(prepare("gpt2", 7).files.size(), 2u);
  EXPECT_EQ(prepare("gpt2", 7).after, one.before);
  EXPECT_EQ(prepare("gpt2", 5).after, one.before);
  // Of two tokens each: 2 + 2 + 1, 2 + 1, 2. Every token is kept.
  Round cut = prepare("gpt2", 2);
  EXPECT_EQ(cut.files.size(), 6u);
  Ids all, parts;
  for (const Ids &ids : one.before)
    all.insert(all.end(), ids.begin(), ids.end());
  for (const Ids &ids : cut.after)
    parts.insert(parts.end(), ids.begin(), ids.end());
  EXPECT_EQ(parts, all);
}

// Bytes have no separator: without files of their own documents would melt.
TEST(Prepare, DocumentsWithoutSeparatorHaveTheirOwnFiles) {
  Round bytes = prepare("bytes", 1000);
  EXPECT_EQ(bytes.files.size(), 3u);
  EXPECT_EQ(bytes.after, bytes.before);
}

// A pattern over the second call's shards must not read the first call's.
TEST(Prepare, OldShardsGo) {
  TestFolder folder;
  folder.write("a.txt", "abcdef");
  std::string out = folder.path + "/x";
  EXPECT_EQ(prepareData({{"a.txt"}, folder.path, "bytes", out, 2})->files.size(), 3u);
  EXPECT_EQ(prepareData({{"a.txt"}, folder.path, "bytes", out, 4})->files.size(), 2u);
  EXPECT_EQ(expandSources({"x-*.bin"}, folder.path)->size(), 2u);
}

TEST(Prepare, WrongUseIsExplained) {
  TestFolder folder;
  folder.write("a.txt", "");
  EXPECT_EQ(prepareData({{"a.txt"}, folder.path, "bytes", "", 10}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(prepareData({{"a.txt"}, folder.path, "bytes", folder.path + "/o", 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
  absl::Status empty = prepareData({{"a.txt"}, folder.path, "bytes", folder.path + "/o", 10}).status();
  EXPECT_NE(empty.message().find("no tokens"), absl::string_view::npos);
}

TEST(Show, CountsByHand) {
  TestFolder folder;
  folder.write("a.txt", "abca");
  folder.write("b.txt", "zz");
  auto summary = summarizeData({"*.txt"}, folder.path, "bytes", 1, 100);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->documents, 2);
  EXPECT_EQ(summary->tokens, 6);
  EXPECT_EQ(summary->shortest, 2);
  EXPECT_EQ(summary->longest, 4);
  EXPECT_EQ(summary->distinct, 4);
  EXPECT_EQ(summary->highest, 'z');
  EXPECT_EQ(summary->head, "zz");
  EXPECT_EQ(summarizeData({"*.txt"}, folder.path, "bytes", 0, 3)->head, "abc");
  EXPECT_EQ(summarizeData({"*.txt"}, folder.path, "bytes", 2).status().code(), absl::StatusCode::kOutOfRange);
  auto line = parseJson(describe(*summary, true), "summary");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ((*line)["tokens"], 6);
  EXPECT_NE(describe(*summary, false).find("tokens     6\n"), std::string::npos);
}

} // namespace
} // namespace weft::rt

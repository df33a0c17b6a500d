//===- shard-test.cpp - Files of token ids --------------------------------===//
#include "runtime/data/Shard.h"

#include "test/runtime/data/TestFolder.h"

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using Ids = std::vector<int32_t>;

Ids idsOf(const TokenStream &stream) {
  Ids ids(stream.size());
  stream.copy(0, stream.size(), ids.data());
  return ids;
}

std::string integers(const std::vector<uint32_t> &values, int width) {
  std::string bytes;
  for (uint32_t value : values)
    for (int b = 0; b < width; ++b)
      bytes += static_cast<char>(value >> 8 * b & 255);
  return bytes;
}

std::string llmc(std::vector<uint32_t> head, const std::vector<uint32_t> &ids, int width) {
  head.resize(256);
  return integers(head, 4) + integers(ids, width);
}

TokenStream read(const std::string &path, std::optional<int32_t> separator, int64_t vocabulary) {
  TokenStream stream;
  absl::Status status = addShard(stream, path, separator, vocabulary);
  EXPECT_TRUE(status.ok()) << status;
  return stream;
}

std::string failure(const std::string &path, int64_t vocabulary = 50257) {
  TokenStream stream;
  return std::string(addShard(stream, path, 50256, vocabulary).message());
}

TEST(Shard, TellsTheKindsApart) {
  TestFolder folder;
  Ids ids = {50256, 7, 8, 50256, 9};
  std::vector<uint32_t> same(ids.begin(), ids.end());
  std::string paths[] = {folder.write("a.bin", llmc({20240520, 1, 5}, same, 2)),
                         folder.write("b.bin", llmc({20240801, 7, 5}, same, 4)),
                         folder.write("c.bin", integers(same, 2))};
  for (const std::string &path : paths) {
    TokenStream stream = read(path, 50256, 50257);
    EXPECT_EQ(idsOf(stream), ids) << path;
    ASSERT_EQ(stream.documents().size(), 2u);
    EXPECT_EQ(stream.documents()[1].begin, 3);
    EXPECT_EQ(stream.documents()[1].length, 2);
  }
}

// 65536 ids end at 65535 and fit two bytes; 65537 need four. A narrowing would
// give 0 for 65536 and 4464 for 70000.
TEST(Shard, WideIdsComeBack) {
  TestFolder folder;
  struct Case {
    Ids ids;
    int64_t vocabulary;
    int width;
  };
  for (const Case &c : {Case{{65535, 0}, 65536, 2}, Case{{65535, 65536}, 65537, 4},
                        Case{{70000, 1}, 151936, 4}, Case{{255, 0}, 256, 2}}) {
    TokenStream stream;
    stream.add(c.ids);
    std::string path = folder.path + "/out.bin";
    ASSERT_TRUE(writeShard(path, stream, c.vocabulary).ok());
    EXPECT_EQ(std::filesystem::file_size(path), 1024u + 2 * c.width);
    EXPECT_EQ(idsOf(read(path, std::nullopt, c.vocabulary)), c.ids);
  }
}

TEST(Shard, IdsOutsideTheVocabularyAreNamed) {
  TestFolder folder;
  std::string path = folder.write("x.bin", integers({5, 255, 256}, 2));
  EXPECT_NE(failure(path, 256).find("x.bin: token 2 is id 256, expected below the vocabulary 256"),
            std::string::npos);
  EXPECT_EQ(failure(path, 257), "");
}

TEST(Shard, DamagedFilesAreNamed) {
  TestFolder folder;
  std::string cut = llmc({20240520, 1, 5}, {1, 2, 3, 4}, 2);
  EXPECT_NE(failure(folder.write("cut.bin", cut))
                .find("says 5 tokens, which need 1034 bytes, but the file has 1032"),
            std::string::npos);
  EXPECT_NE(failure(folder.write("minus.bin", llmc({20240520, 1, 0xffffffff}, {}, 2))).find("-1 tokens"),
            std::string::npos);
  EXPECT_NE(failure(folder.write("v2.bin", llmc({20240520, 2, 0}, {}, 2))).find("version 1"),
            std::string::npos);
  EXPECT_NE(failure(folder.write("odd.bin", "abc")).find("odd number of bytes, 3"), std::string::npos);
  EXPECT_NE(failure(folder.path + "/none.bin").find("No such file"), std::string::npos);
  EXPECT_NE(failure(folder.path).find("Is a directory"), std::string::npos);
  EXPECT_EQ(failure(folder.write("empty.bin", "")), "");
}

TEST(TokenStream, SlicesAcrossSegments) {
  TokenStream stream;
  stream.add({0, 1, 2});
  stream.add({});
  stream.add({3, 4, 5, 6});
  TokenStream part = stream.slice(2, 5);
  EXPECT_EQ(idsOf(part), (Ids{2, 3, 4}));
  ASSERT_EQ(part.documents().size(), 2u);
  EXPECT_EQ(part.documents()[0].length, 1);
  EXPECT_EQ(part.documents()[1].begin, 1);
  EXPECT_EQ(part.documents()[1].length, 2);
  int32_t middle[4];
  stream.copy(1, 4, middle);
  EXPECT_EQ(Ids(middle, middle + 4), (Ids{1, 2, 3, 4}));
}

} // namespace
} // namespace weft::rt

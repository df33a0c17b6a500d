//===- corpus-test.cpp - Where documents come from ------------------------===//
#include "runtime/data/Corpus.h"

#include "runtime/data/Batches.h"
#include "test/runtime/data/TestFolder.h"

#include <zlib.h>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using Ids = std::vector<int32_t>;

Ids idsOf(const TokenStream &stream) {
  Ids ids(stream.size());
  stream.copy(0, stream.size(), ids.data());
  return ids;
}

std::string big(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string block(const std::string &item) {
  std::string packed(compressBound(item.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef *>(packed.data()), &size, reinterpret_cast<const Bytef *>(item.data()),
           item.size());
  return big(item.size()) + packed.substr(0, size);
}

std::string vectorItem(const std::vector<std::string> &lines) {
  std::string item =
      "X\n" + big(3) + big(0x40201) + big(0x30500) + big(5) + "UTF-8" + big(16) + big(lines.size());
  for (const std::string &line : lines)
    item += big(0x40009) + big(line.size()) + line;
  return item;
}

TEST(Rdb, ReadsCharacterVectors) {
  std::string file =
      block(vectorItem({"one", "", "two"})) +
      block("X\n" + big(2) + big(0) + big(0) + big(254)) + // nothing: passed over
      block("X\n" + big(2) + big(0) + big(0) + big(16) + big(2) + big(9) + big(-1) + big(9) + big(1) + "z");
  auto texts = readRdb(file);
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(*texts, (std::vector<std::string>{"one\n\ntwo\n", "\nz\n"}));
}

// Any cut and any changed byte gives a status or a text, never a read outside.
TEST(Rdb, DamagedFilesAreRefused) {
  std::string file = block(vectorItem({"one", "two"}));
  for (size_t size = 1; size < file.size(); ++size)
    EXPECT_FALSE(readRdb(file.substr(0, size)).ok()) << size;
  for (size_t i = 0; i < file.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ 1 << bit);
      readRdb(damaged).status().IgnoreError();
    }
  for (const std::string &item :
       {"X\n" + big(3) + big(0) + big(0) + big(0x7fffffff),
        "X\n" + big(2) + big(0) + big(0) + big(16) + big(5),
        "X\n" + big(2) + big(0) + big(0) + big(16) + big(1) + big(9) + big(100) + "short", std::string("no")})
    EXPECT_EQ(readRdb(block(item)).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(readRdb(big(0x3fffffff) + "xx").status().message().find("1073741823"), absl::string_view::npos);
}

// Sizes and checksum from the Python reader of the package's file.
TEST(Builtin, Austen) {
  auto novels = readBuiltin("austen");
  ASSERT_TRUE(novels.ok()) << novels.status();
  std::vector<std::pair<std::string, size_t>> expected = {
      {"emma", 883028},       {"mansfield_park", 883280},      {"northanger_abbey", 433411},
      {"persuasion", 466854}, {"pride_and_prejudice", 684768}, {"sense_and_sensibility", 673688}};
  ASSERT_EQ(novels->size(), expected.size());
  uLong crc = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto &[name, text] = (*novels)[i];
    EXPECT_EQ(name, "builtin:austen/" + expected[i].first);
    EXPECT_EQ(text.size(), expected[i].second);
    crc = crc32(crc, reinterpret_cast<const Bytef *>(text.data()), text.size());
  }
  EXPECT_EQ(crc, 0x610578f2u);
}

TEST(Builtin, SpeechesAreInOrderOfYears) {
  auto speeches = readBuiltin("sotu");
  ASSERT_TRUE(speeches.ok()) << speeches.status();
  EXPECT_EQ(speeches->size(), 233u);
  EXPECT_EQ(speeches->front().name, "builtin:sotu/1790_george_washington_n");
  size_t bytes = 0;
  for (const TextDocument &speech : *speeches)
    bytes += speech.text.size();
  EXPECT_EQ(bytes, 10761413u);
}

TEST(Builtin, UnknownNamesListTheKnown) {
  EXPECT_NE(readBuiltin("tolstoy").status().message().find("builtin:austen"), absl::string_view::npos);
  EXPECT_NE(readBuiltin("austen/ulysses").status().message().find("builtin:austen/emma"),
            absl::string_view::npos);
}

Recipe recipeOf(std::vector<std::string> sources) {
  Recipe recipe;
  recipe.data = std::move(sources);
  recipe.rows = 2;
  recipe.positions = 8;
  return recipe;
}

// 466,854 bytes have 466,853 targets; the other five novels are trained on.
TEST(Dataset, HeldOutPersuasion) {
  Recipe recipe = recipeOf({"builtin:austen"});
  recipe.heldOut = {HeldOut::Kind::Source, 0, "builtin:austen/persuasion"};
  recipe.positions = 256;
  auto data = loadDataset(recipe, 256);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->heldOut->size(), 466854);
  EXPECT_EQ(data->train->size(), 4025029 - 466854);
  EXPECT_EQ(data->train->documents().size(), 5u);
  auto eval = EvalData::make(data->heldOut, recipe);
  ASSERT_TRUE(eval.ok()) << eval.status();
  EXPECT_EQ(eval->targets(), 466853);
}

// Counted with tiktoken for npm, speech by speech and novel by novel; each
// document has its separator besides.
TEST(Dataset, Gpt2Counts) {
  Recipe recipe = recipeOf({"builtin:sotu"});
  recipe.tokenizer = "gpt2";
  auto speeches = loadDataset(recipe, 50304);
  ASSERT_TRUE(speeches.ok()) << speeches.status();
  EXPECT_EQ(speeches->train->size(), 2074279 + 233);
  recipe.data = {"builtin:austen"};
  auto novels = loadDataset(recipe, 50304);
  ASSERT_TRUE(novels.ok()) << novels.status();
  EXPECT_EQ(novels->train->size(), 993328 + 6);
}

TEST(Dataset, FilesAndPatterns) {
  TestFolder folder;
  folder.write("t/b.txt", "bb");
  folder.write("t/a.txt", "a");
  folder.write("t/val.txt", "v");
  folder.write("c[1].txt", "c");
  auto data = loadDataset(recipeOf({"t/*.txt", "t/b.txt"}), 0, folder.path);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(idsOf(*data->train), (Ids{'a', 'b', 'b', 'v'}));
  EXPECT_EQ(data->train->documents().size(), 3u);
  EXPECT_EQ(data->heldOut, nullptr);
  // A file held out by name is not trained on, though the pattern names it.
  Recipe recipe = recipeOf({"t/*.txt"});
  recipe.heldOut = {HeldOut::Kind::Source, 0, "t/val.txt"};
  data = loadDataset(recipe, 0, folder.path);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(idsOf(*data->train), (Ids{'a', 'b', 'b'}));
  EXPECT_EQ(idsOf(*data->heldOut), (Ids{'v'}));
  recipe.data = {"t/val.txt"};
  EXPECT_NE(loadDataset(recipe, 0, folder.path).status().message().find("nothing is left"),
            absl::string_view::npos);
  auto none = loadDataset(recipeOf({"u/*.txt"}), 0, folder.path).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(none.message().find("u/*.txt"), absl::string_view::npos);
}

// 5% of 41 is 2.05: two tokens; a share never leaves nothing.
TEST(Dataset, LastShare) {
  TestFolder folder;
  std::string text(41, 'x');
  text[38] = 'y';
  folder.write("a.txt", text);
  Recipe recipe = recipeOf({"a.txt"});
  recipe.heldOut = {HeldOut::Kind::LastFraction, 0.05, ""};
  auto data = loadDataset(recipe, 0, folder.path);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->size(), 39);
  EXPECT_EQ(idsOf(*data->heldOut), (Ids{'x', 'x'}));
  EXPECT_EQ(idsOf(*data->train)[38], 'y');
  recipe.heldOut.fraction = 1;
  EXPECT_FALSE(loadDataset(recipe, 0, folder.path).ok());
}

// The first share is kept, after what is held out went.
TEST(Dataset, PortionKeepsTheFirstShare) {
  TestFolder folder;
  folder.write("a.txt", "abcdefghij" + std::string(30, 'x'));
  Recipe recipe = recipeOf({"a.txt"});
  recipe.heldOut = {HeldOut::Kind::LastFraction, 0.5, ""};
  recipe.portion = 0.25;
  auto data = loadDataset(recipe, 0, folder.path);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(idsOf(*data->train), (Ids{'a', 'b', 'c', 'd', 'e'}));
  EXPECT_EQ(data->heldOut->size(), 20);
}

TEST(Dataset, SeparatorBeginsEachDocument) {
  TestFolder folder;
  std::string ranks;
  const char *digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int i = 0; i < 256; ++i)
    ranks += std::string{digits[i >> 2], digits[(i & 3) << 4]} + "== " + std::to_string(i) + "\n";
  folder.write("bytes.ranks", ranks);
  folder.write("1.txt", "hi");
  folder.write("2.txt", "");
  folder.write("3.txt", "yo");
  Recipe recipe = recipeOf({"?.txt"});
  recipe.tokenizer = "bytes.ranks";
  auto data = loadDataset(recipe, 300, folder.path);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(idsOf(*data->train), (Ids{256, 'h', 'i', 256, 256, 'y', 'o'}));
  EXPECT_EQ(data->train->documents().size(), 3u);
}

TEST(Dataset, VocabularyMustHoldTheTokenizer) {
  TestFolder folder;
  folder.write("a.txt", "abc");
  EXPECT_TRUE(loadDataset(recipeOf({"a.txt"}), 256, folder.path).ok());
  absl::Status status = loadDataset(recipeOf({"a.txt"}), 255, folder.path).status();
  EXPECT_NE(status.message().find("256"), absl::string_view::npos);
  EXPECT_NE(status.message().find("255"), absl::string_view::npos);
}

TEST(Dataset, TextAndShardsKeepTheirOrder) {
  TestFolder folder;
  folder.write("a.txt", "A");
  folder.write("b.bin", std::string("B\0b\0", 4));
  folder.write("c.txt", "C");
  auto data = loadDataset(recipeOf({"c.txt", "b.bin", "a.txt"}), 0, folder.path);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(idsOf(*data->train), (Ids{'C', 'B', 'b', 'A'}));
}

} // namespace
} // namespace weft::rt

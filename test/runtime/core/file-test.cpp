//===- file-test.cpp - Atomic files and JSON --------------------*- C++ -*-===//
#include "runtime/core/File.h"
#include "runtime/core/Json.h"

#include <csignal>
#include <filesystem>
#include <limits>

#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

namespace fs = std::filesystem;

struct FileTest : testing::Test {
  FileTest() {
    std::string pattern = (fs::temp_directory_path() / "weft-file-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
  }
  ~FileTest() override { fs::remove_all(root); }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(root), fs::directory_iterator()));
  }
  std::string root;
};

std::string messageOf(const absl::Status &status) { return std::string(status.message()); }

TEST_F(FileTest, WritesAndReadsEveryByte) {
  std::string bytes(200000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 7);
  ASSERT_TRUE(writeFileAtomic(root + "/a", bytes).ok());
  EXPECT_EQ(*readFile(root + "/a"), bytes);
  ASSERT_TRUE(writeFileAtomic(root + "/a", "short").ok());
  EXPECT_EQ(*readFile(root + "/a"), "short");
  EXPECT_EQ(files(), 1u); // no temporary stays
}

TEST_F(FileTest, LeavesTheOldFileWhenNotCommitted) {
  ASSERT_TRUE(writeFileAtomic(root + "/a", "old").ok());
  {
    absl::StatusOr<AtomicFile> file = AtomicFile::create(root + "/a", 3);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->append("new").ok());
    EXPECT_EQ(*readFile(root + "/a"), "old");
  }
  EXPECT_EQ(*readFile(root + "/a"), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, WritesThroughALink) {
  ASSERT_TRUE(writeFileAtomic(root + "/target", "old").ok());
  fs::create_symlink(root + "/target", root + "/link");
  ASSERT_TRUE(writeFileAtomic(root + "/link", "new").ok());
  EXPECT_TRUE(fs::is_symlink(root + "/link"));
  EXPECT_EQ(*readFile(root + "/target"), "new");
}

// A rename over a device would replace it by a file.
TEST_F(FileTest, WritesADeviceInPlaceAndSeesThatItIsFull) {
  absl::Status status = writeFileAtomic("/dev/full", "bytes");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(messageOf(status).find("'/dev/full'"), std::string::npos);
  EXPECT_NE(messageOf(status).find("needed 5 bytes"), std::string::npos) << messageOf(status);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(FileTest, RefusesMoreThanIsFreeBeforeWriting) {
  absl::StatusOr<AtomicFile> file = AtomicFile::create(root + "/big", uint64_t{1} << 60);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(messageOf(file.status()).find("(1.0 EiB), free "), std::string::npos) << messageOf(file.status());
  EXPECT_EQ(files(), 0u);
}

TEST_F(FileTest, AWriteThatFailsHalfWayLeavesNothing) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit small{4096, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  absl::Status status = writeFileAtomic(root + "/a", std::string(10000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(files(), 0u);
}

TEST_F(FileTest, SaysWhatCantBeRead) {
  EXPECT_EQ(readFile(root + "/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(messageOf(readFile(root).status()).find("found the folder"), std::string::npos);
  ASSERT_TRUE(writeFileAtomic(root + "/a", "12345").ok());
  EXPECT_EQ(messageOf(readFile(root + "/a", 4).status()),
            "'" + root + "/a' holds 5 bytes, expected at most 4 bytes");
  EXPECT_EQ(readFile("/dev/zero", 1000).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(makeFolders(root + "/a/b").ok());
}

TEST(Bytes, AreWrittenForPeople) {
  EXPECT_EQ(describeBytes(1023), "1023 bytes");
  EXPECT_EQ(describeBytes(1536), "1536 bytes (1.5 KiB)");
  EXPECT_EQ(describeBytes(uint64_t{1} << 40), "1099511627776 bytes (1.0 TiB)");
}

TEST(Json, NamesThePlaceOfWrongText) {
  EXPECT_NE(messageOf(parseJson("{\"a\": ]", "run.json").status()).find("run.json: not JSON at byte 7"),
            std::string::npos)
      << parseJson("{\"a\": ]", "run.json").status();
  EXPECT_NE(messageOf(parseJson("{\"a\":1,\"b\":{\"a\":2},\"a\":3}", "x").status()).find("'a' stands twice"),
            std::string::npos);
  EXPECT_TRUE(parseJson("{\"a\":1,\"b\":{\"a\":2},\"c\":[{\"a\":1},{\"a\":2}]}", "x").ok());
  EXPECT_FALSE(parseJson("", "x").ok());
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_NE(messageOf(parseJson(deep, "x").status()).find("nested deeper"), std::string::npos);
}

TEST(Json, ReadsFieldsByType) {
  const Json json =
      *parseJson(R"({"i": -3, "f": 1.5, "s": "x", "n": null, "big": 18446744073709551615})", "t");
  EXPECT_EQ(*int64Of(json, "i", "t"), -3);
  EXPECT_EQ(*uint64Of(json, "big", "t"), UINT64_MAX);
  EXPECT_EQ(*numberOf(json, "f", "t"), 1.5);
  EXPECT_TRUE(std::isnan(*numberOf(json, "n", "t")));
  EXPECT_EQ(*stringOf(json, "s", "t"), "x");
  EXPECT_FALSE(int64Of(json, "f", "t").ok());
  EXPECT_FALSE(int64Of(json, "big", "t").ok()); // would wrap to -1
  EXPECT_FALSE(uint64Of(json, "i", "t").ok());
  EXPECT_EQ(messageOf(stringOf(json, "i", "t").status()), "t: 'i': expected a string, found -3");
  EXPECT_EQ(messageOf(int64Of(json, "none", "t").status()), "t: 'none' is missing");
}

TEST(Json, WritesAnythingWithoutThrowing) {
  EXPECT_EQ(dumpJson(Json("\xff")), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(dumpJson(Json(std::numeric_limits<double>::infinity())), "null");
}

} // namespace
} // namespace weft::rt

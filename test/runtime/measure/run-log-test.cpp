// A run's log as CSV and as TensorBoard's event file.
#include "runtime/core/File.h"
#include "runtime/measure/RunLog.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

namespace weft::rt {
namespace {

std::string folderWith(const std::string &log) {
  const std::string folder = testing::TempDir() + "run-log";
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(writeFileAtomic(folder + "/log.jsonl", log).ok());
  return folder;
}

constexpr const char *kLog =
    "{\"kind\":\"train\",\"step\":10,\"loss\":5.25,\"lr\":0.1,\"grad_norm\":null,\"seconds\":2.5}\n"
    "{\"kind\":\"eval\",\"step\":10,\"loss\":4,\"regions\":[{\"name\":\"a,b\",\"loss\":1.5}],\"seconds\":9}\n"
    "{\"kind\":\"train\",\"step\":20,\"lo";

// Vectors of RFC 3720, appendix B.4. Catches: another polynomial, the sum not inverted.
TEST(RunLog, ChecksumsAreCastagnoli) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

// Numbers give themselves back; a line torn by a kill and null are left out.
TEST(RunLog, TableOfCommaSeparatedValues) {
  absl::StatusOr<std::vector<LogRow>> rows = readRunLog(folderWith(kLog));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(csvOf(*rows), "kind,step,loss,lr,seconds,regions/0/loss\n"
                          "train,10,5.25,0.1,2.5,\n"
                          "eval,10,4,,9,1.5\n");
  EXPECT_EQ(csvOf({}), "kind,step\n");
}

TEST(RunLog, SaysWhichLineIsNone) {
  absl::StatusOr<std::vector<LogRow>> rows =
      readRunLog(folderWith("{\"kind\":\"train\",\"step\":1}\n{\"step\":2}\n"));
  ASSERT_FALSE(rows.ok());
  EXPECT_NE(rows.status().message().find("line 2: expected a `kind`"), std::string::npos) << rows.status();
  EXPECT_FALSE(readRunLog(testing::TempDir() + "no-such-run").ok());
}

// The first record is the version alone: 8 + 4 + bytes + 4, length and bytes each
// with their sum. The event by hand: 09 <double> 10 00 1a 0d "brain.Event:2".
TEST(RunLog, EventFileStartsWithItsVersion) {
  const std::string file = tensorBoardOf({}, 1.0);
  const std::string event = std::string("\x09\0\0\0\0\0\0\xf0\x3f\x10\0\x1a\x0d", 13) + "brain.Event:2";
  ASSERT_EQ(file.size(), 8 + 4 + event.size() + 4);
  EXPECT_EQ(file.substr(0, 8), std::string("\x1a\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(file.substr(12, event.size()), event);
  uint32_t sum = 0;
  std::memcpy(&sum, file.data() + 12 + event.size(), 4);
  const uint32_t crc = crc32c(event);
  EXPECT_EQ(sum, ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

} // namespace
} // namespace weft::rt

#include "tools/lsp/Frames.h"

#include <gtest/gtest.h>

namespace weft::lsp {
namespace {

std::string nextOf(FrameReader &reader) {
  absl::StatusOr<std::optional<std::string>> message = reader.next();
  if (!message.ok())
    return "error: " + std::string(message.status().message());
  return *message ? **message : "more";
}

// Mutation: a message cut where a read ended.
TEST(Frames, ComeInPieces) {
  FrameReader reader;
  for (const char c : framed("{\"a\":1}") + framed("[]")) {
    EXPECT_EQ(nextOf(reader), "more");
    reader.feed({&c, 1});
    if (c == '}' || c == ']') {
      EXPECT_TRUE(reader.midway());
      EXPECT_EQ(nextOf(reader), c == '}' ? "{\"a\":1}" : "[]");
      EXPECT_FALSE(reader.midway());
    }
  }
}

TEST(Frames, OtherHeadersAreRead) {
  FrameReader reader;
  reader.feed("Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:  2 \r\n\r\n{}");
  EXPECT_EQ(nextOf(reader), "{}");
}

// Mutation: the length taken as it is, or cut to 32 bits.
TEST(Frames, RefusesLengths) {
  for (const char *length : {"99999999999999999999", "-1", "67108865", "4294967298", "", "two", "0x10"}) {
    FrameReader reader;
    reader.feed(std::string("Content-Length: ") + length + "\r\n\r\n{}");
    EXPECT_TRUE(nextOf(reader).starts_with("error: expected a Content-Length of at most 67108864 bytes"))
        << length;
  }
}

TEST(Frames, RefusesHeadersThatAreNone) {
  FrameReader reader;
  reader.feed("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(nextOf(reader), "error: expected a header line `Content-Length: N`, found `GET / HTTP/1.1`");
  FrameReader endless;
  endless.feed(std::string(kHeaderLimit + 1, 'x'));
  EXPECT_TRUE(nextOf(endless).starts_with("error: expected an empty line"));
  FrameReader without;
  without.feed("X: 1\r\n\r\n");
  EXPECT_EQ(nextOf(without), "error: a message without a Content-Length");
}

} // namespace
} // namespace weft::lsp

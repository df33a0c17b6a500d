//===- Rdb.cpp - Character vectors of an R lazy-load file -----------------===//
//
// The file repeats [4-byte big-endian unpacked length][zlib stream]. A stream is
// R's XDR serialisation: "X\n", version, two versions of R (version 3: length
// and name of the encoding), then an item; a character vector is type 16: flags,
// count, and count times flags, length (-1: missing), bytes.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Corpus.h"

#include <zlib.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr int64_t kCharacterVector = 16;
constexpr uint32_t kLargest = 1u << 30;

absl::Status damaged(size_t offset, const std::string &what) {
  return absl::DataLossError(absl::StrCat("R data file: at byte ", offset, ": ", what, "; fetch it again"));
}

/// Big-endian fields with a bound; a read past the end sets `failed`.
struct Reader {
  std::string_view bytes;
  size_t at = 0;
  bool failed = false;

  std::string_view take(size_t count) {
    if (failed || count > bytes.size() - at) {
      failed = true;
      return {};
    }
    at += count;
    return bytes.substr(at - count, count);
  }
  int32_t integer() {
    uint32_t value = 0;
    for (char c : take(4))
      value = value << 8 | static_cast<unsigned char>(c);
    return static_cast<int32_t>(value);
  }
};

/// Unpacks the stream at `packed`; `used` is how many bytes it took.
absl::StatusOr<std::string> unpack(std::string_view packed, size_t size, size_t &used) {
  std::string result(size, '\0');
  z_stream stream = {};
  if (inflateInit(&stream) != Z_OK)
    return absl::ResourceExhaustedError("R data file: zlib can't start");
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(packed.data()));
  stream.avail_in = static_cast<uInt>(std::min<size_t>(packed.size(), kLargest));
  stream.next_out = reinterpret_cast<Bytef *>(result.data());
  stream.avail_out = static_cast<uInt>(size);
  int code = inflate(&stream, Z_FINISH);
  used = stream.total_in;
  bool complete = code == Z_STREAM_END && stream.total_out == size;
  inflateEnd(&stream);
  if (!complete)
    return absl::DataLossError("a packed block does not unpack to its stated length");
  return result;
}

/// Appends the text of a character vector; other items are passed over.
bool appendText(std::string_view item, std::vector<std::string> &texts) {
  Reader reader{item};
  if (reader.take(2) != "X\n")
    return false;
  int32_t version = reader.integer();
  reader.take(8);
  if (version == 3)
    reader.take(static_cast<uint32_t>(reader.integer()));
  int32_t flags = reader.integer();
  if (reader.failed || (flags & 255) != kCharacterVector)
    return !reader.failed;
  std::string text;
  for (int32_t left = reader.integer(); left > 0 && !reader.failed; --left) {
    reader.integer();
    int32_t length = reader.integer();
    text += reader.take(length < 0 ? 0 : length);
    text += '\n';
  }
  texts.push_back(std::move(text));
  return !reader.failed;
}

} // namespace

absl::StatusOr<std::vector<std::string>> readRdb(std::string_view bytes) {
  std::vector<std::string> texts;
  for (size_t at = 0; at < bytes.size();) {
    Reader head{bytes.substr(at)};
    uint32_t size = static_cast<uint32_t>(head.integer());
    // zlib packs at most about 1032 to 1: a larger claim is not worth allocating.
    if (head.failed || size > kLargest || size / 1100 > bytes.size() - at)
      return damaged(at, absl::StrCat("no block of ", size, " bytes can be here"));
    size_t used = 0;
    absl::StatusOr<std::string> item = unpack(bytes.substr(at + 4), size, used);
    if (!item.ok())
      return damaged(at, std::string(item.status().message()));
    if (!appendText(*item, texts))
      return damaged(at, "the unpacked block is no R object");
    at += 4 + used;
  }
  return texts;
}

} // namespace weft::rt

//===- Frames.cpp - Messages with a Content-Length -------------------------===//

#include "tools/lsp/Frames.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft::lsp {
namespace {

constexpr std::string_view kEnd = "\r\n\r\n";

absl::string_view viewOf(std::string_view text) { return {text.data(), text.size()}; }

} // namespace

absl::Status FrameReader::readHeader(std::string_view header) {
  length.reset();
  while (!header.empty()) {
    const size_t end = std::min(header.find("\r\n"), header.size());
    const absl::string_view line = viewOf(header.substr(0, end));
    header.remove_prefix(std::min(end + 2, header.size()));
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos)
      return absl::InvalidArgumentError(absl::StrCat("expected a header line `Content-Length: N`, found `",
                                                     absl::CHexEscape(line.substr(0, 60)), "`"));
    if (!absl::EqualsIgnoreCase(line.substr(0, colon), "Content-Length"))
      continue;
    const absl::string_view number = absl::StripAsciiWhitespace(line.substr(colon + 1));
    uint64_t bytes = 0;
    if (!absl::SimpleAtoi(number, &bytes) || bytes > kMessageLimit)
      return absl::InvalidArgumentError(absl::StrCat("expected a Content-Length of at most ", kMessageLimit,
                                                     " bytes, found `",
                                                     absl::CHexEscape(number.substr(0, 60)), "`"));
    length = bytes;
  }
  if (!length)
    return absl::InvalidArgumentError("a message without a Content-Length");
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> FrameReader::next() {
  if (!length) {
    const std::string_view rest = std::string_view(waiting).substr(start);
    const size_t end = rest.find(kEnd);
    if (std::min(end, rest.size()) > kHeaderLimit)
      return absl::InvalidArgumentError(
          absl::StrCat("expected an empty line within the first ", kHeaderLimit, " bytes of a message"));
    if (end == std::string_view::npos)
      return std::nullopt;
    if (absl::Status status = readHeader(rest.substr(0, end)); !status.ok())
      return status;
    start += end + kEnd.size();
  }
  if (waiting.size() - start < *length)
    return std::nullopt;
  std::string message = waiting.substr(start, *length);
  start += *length;
  length.reset();
  if (start == waiting.size() || start > (1u << 20)) {
    waiting.erase(0, start);
    start = 0;
  }
  return message;
}

std::string framed(std::string_view json) {
  return absl::StrCat("Content-Length: ", json.size(), "\r\n\r\n", viewOf(json));
}

} // namespace weft::lsp

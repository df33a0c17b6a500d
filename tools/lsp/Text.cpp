//===- Text.cpp - Positions of editors in texts ----------------------------===//

#include "tools/lsp/Text.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace weft::lsp {
namespace {

/// Bytes of the character at `at`; 1 where it is no UTF-8.
size_t charLength(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const size_t length = byte < 0xc2 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : byte < 0xf5 ? 4 : 1;
  if (at + length > text.size())
    return 1;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80)
      return 1;
  return length;
}

/// Characters of four bytes are pairs of UTF-16 units.
int64_t unitsOf(size_t charLength) { return charLength == 4 ? 2 : 1; }

} // namespace

Text::Text(std::string given) : text(std::move(given)) {
  if (text.starts_with("\xEF\xBB\xBF")) // no part of the text, as in lang::SourceFiles
    text.erase(0, 3);
  findLines();
}

void Text::findLines() {
  starts = {0};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n')
      ++i;
    else if (text[i] != '\r' && text[i] != '\n')
      continue;
    starts.push_back(i + 1);
  }
}

/// Without the line's end.
size_t Text::lineEnd(size_t line) const {
  size_t end = line + 1 < starts.size() ? starts[line + 1] : text.size();
  if (line + 1 == starts.size())
    return end;
  --end;
  return end > starts[line] && text[end] == '\n' && text[end - 1] == '\r' ? end - 1 : end;
}

size_t Text::offsetOf(const Position &position) const {
  if (position.line < 0)
    return 0;
  if (position.line >= static_cast<int64_t>(starts.size()))
    return text.size();
  const auto line = static_cast<size_t>(position.line);
  const size_t end = lineEnd(line);
  size_t at = starts[line];
  for (int64_t units = 0; at < end;) {
    const size_t length = charLength(text, at);
    units += unitsOf(length);
    if (units > position.character)
      break;
    at += length;
  }
  return at;
}

Position Text::positionOf(size_t offset) const {
  offset = std::min(offset, text.size());
  auto next = std::upper_bound(starts.begin(), starts.end(), offset);
  const auto line = static_cast<size_t>(next - starts.begin()) - 1;
  Position position{static_cast<int64_t>(line), 0};
  for (size_t at = starts[line]; at < offset;) {
    const size_t length = charLength(text, at);
    if (at + length > offset)
      break;
    position.character += unitsOf(length);
    at += length;
  }
  return position;
}

absl::Status Text::replace(const Range &range, std::string_view with) {
  const size_t start = offsetOf(range.start), end = offsetOf(range.end);
  if (end < start)
    return absl::InvalidArgumentError("a range that ends before it starts");
  text.replace(start, end - start, with);
  findLines();
  return absl::OkStatus();
}

rt::Json jsonOf(const Position &position) {
  return {{"line", position.line}, {"character", position.character}};
}

rt::Json jsonOf(const Range &range) { return {{"start", jsonOf(range.start)}, {"end", jsonOf(range.end)}}; }

absl::StatusOr<Position> positionOf(const rt::Json &json) {
  Position position;
  for (auto [key, number] :
       {std::pair("line", &position.line), std::pair("character", &position.character)}) {
    absl::StatusOr<int64_t> value = rt::int64Of(json, key, "position");
    if (!value.ok())
      return value.status();
    if (*value < 0)
      return absl::DataLossError(absl::StrCat("position: '", key, "': expected 0 or more, found ", *value));
    *number = *value;
  }
  return position;
}

absl::StatusOr<Range> rangeOf(const rt::Json &json) {
  Range range;
  for (auto [key, end] : {std::pair("start", &range.start), std::pair("end", &range.end)}) {
    absl::StatusOr<const rt::Json *> member = rt::memberOf(json, key, "range");
    absl::StatusOr<Position> position = member.ok() ? positionOf(**member) : member.status();
    if (!position.ok())
      return position.status();
    *end = *position;
  }
  return range;
}

std::string pathOfUri(const std::string &uri) {
  constexpr std::string_view kScheme = "file://";
  if (!uri.starts_with(kScheme))
    return uri;
  std::string path;
  for (size_t i = kScheme.size(); i < uri.size(); ++i) {
    const bool escape = uri[i] == '%' && i + 2 < uri.size() &&
                        std::isxdigit(static_cast<unsigned char>(uri[i + 1])) &&
                        std::isxdigit(static_cast<unsigned char>(uri[i + 2]));
    path += escape ? static_cast<char>(std::stoi(uri.substr(i + 1, 2), nullptr, 16)) : uri[i];
    i += escape ? 2 : 0;
  }
  return path;
}

std::string uriOfPath(const std::string &path) {
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  std::string uri = "file://";
  for (const char c : error ? path : absolute) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) ||
                       std::string_view("/-_.~").find(c) != std::string_view::npos;
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    uri += plain ? std::string(1, c) : std::string{'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return uri;
}

} // namespace weft::lsp

//===- Source.cpp - Source files and places in them -----------------------===//

#include "frontend/Source.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace weft::lang {
namespace {

/// Positions are 32-bit; a model is a page.
constexpr uintmax_t kFileLimit = 16u << 20;

std::vector<int32_t> findLineStarts(std::string_view text) {
  std::vector<int32_t> starts = {0};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n')
      ++i;
    else if (text[i] != '\r' && text[i] != '\n')
      continue;
    starts.push_back(static_cast<int32_t>(i + 1));
  }
  return starts;
}

} // namespace

int32_t SourceFiles::add(std::string path, std::string text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF")
    text.erase(0, 3);
  std::vector<int32_t> starts = findLineStarts(text);
  files.push_back({std::move(path), std::move(text), std::move(starts)});
  canonical.emplace_back();
  return count() - 1;
}

absl::StatusOr<int32_t> SourceFiles::load(const std::string &path) {
  int32_t known = find(path);
  if (known >= 0)
    return known;
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return absl::NotFoundError(absl::StrCat("there is no file ", path));
  if (std::filesystem::is_directory(status))
    return absl::InvalidArgumentError(absl::StrCat(path, " is a folder, expected a .weft file"));
  uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > kFileLimit)
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has ", size, " bytes, a .weft file at most ", kFileLimit));
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return absl::PermissionDeniedError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  int32_t index = add(path, std::move(text));
  canonical[static_cast<size_t>(index)] = std::filesystem::weakly_canonical(path, error).string();
  return index;
}

int32_t SourceFiles::find(const std::string &path) const {
  std::error_code error;
  std::string wanted = std::filesystem::weakly_canonical(path, error).string();
  for (size_t i = 0; i < canonical.size(); ++i)
    if (!canonical[i].empty() && canonical[i] == wanted)
      return static_cast<int32_t>(i);
  return -1;
}

Place SourceFiles::placeAt(int32_t index, int32_t offset, int32_t length) const {
  const File &source = file(index);
  int32_t size = static_cast<int32_t>(source.text.size());
  offset = std::clamp(offset, 0, size);
  length = std::clamp(length, 0, size - offset);
  auto after = std::upper_bound(source.lineStarts.begin(), source.lineStarts.end(), offset);
  int32_t line = static_cast<int32_t>(after - source.lineStarts.begin());
  return {index, line, offset - *std::prev(after) + 1, offset, length};
}

std::string_view SourceFiles::lineText(int32_t index, int32_t line) const {
  const File &source = file(index);
  if (line < 1 || line > static_cast<int32_t>(source.lineStarts.size()))
    return {};
  size_t start = static_cast<size_t>(source.lineStarts[static_cast<size_t>(line - 1)]);
  size_t end = start;
  while (end < source.text.size() && source.text[end] != '\n' && source.text[end] != '\r')
    ++end;
  return std::string_view(source.text).substr(start, end - start);
}

std::string_view SourceFiles::textAt(const Place &place) const {
  return std::string_view(file(place.file).text)
      .substr(static_cast<size_t>(place.offset), static_cast<size_t>(place.length));
}

std::string SourceFiles::describe(const Place &place) const {
  return absl::StrCat(file(place.file).path, ":", place.line, ":", place.column);
}

Place spanOf(const Place &first, const Place &last) {
  Place span = first;
  span.length = std::max(first.length, last.offset + last.length - first.offset);
  return span;
}

} // namespace weft::lang

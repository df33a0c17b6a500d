//===- Markers.cpp - Ids of their own for chosen texts ---------------------===//
#include "runtime/data/Markers.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

class MarkedTokenizer : public Tokenizer {
public:
  MarkedTokenizer(std::shared_ptr<const Tokenizer> base, std::vector<std::string> markers)
      : base(std::move(base)), markers(std::move(markers)),
        first(static_cast<int32_t>(this->base->vocabulary() - (this->base->separator() ? 1 : 0))) {}

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    splitAtMarkers(
        text, markers,
        [&](std::string_view part) {
          std::vector<int32_t> inner = base->encode(part);
          ids.insert(ids.end(), inner.begin(), inner.end());
        },
        [&](size_t marker) { ids.push_back(first + static_cast<int32_t>(marker)); });
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    const auto end = first + static_cast<int32_t>(markers.size());
    for (int32_t id : ids)
      if (id >= first && id < end)
        text += markers[static_cast<size_t>(id - first)];
      else
        text += id == end ? "<|endoftext|>" : base->decode(std::span(&id, 1));
    return text;
  }

  int64_t vocabulary() const override { return first + static_cast<int64_t>(markers.size()) + 1; }
  std::optional<int32_t> separator() const override { return first + static_cast<int32_t>(markers.size()); }

private:
  std::shared_ptr<const Tokenizer> base;
  std::vector<std::string> markers;
  int32_t first; // id of the first marker
};

} // namespace

void splitAtMarkers(std::string_view whole, const std::vector<std::string> &markers,
                    const std::function<void(std::string_view)> &text,
                    const std::function<void(size_t)> &marker) {
  size_t begin = 0;
  std::vector<size_t> next(markers.size(), 0); // where each marker stands next, at or after `begin`
  while (begin < whole.size()) {
    size_t best = markers.size(), place = whole.size();
    for (size_t m = 0; m < markers.size(); ++m) {
      if (next[m] != std::string_view::npos && next[m] <= begin)
        next[m] = whole.find(markers[m], begin);
      const bool longer =
          best < markers.size() && next[m] == place && markers[m].size() > markers[best].size();
      if (next[m] < place || longer) {
        place = next[m];
        best = m;
      }
    }
    if (place > begin)
      text(whole.substr(begin, place - begin));
    if (best == markers.size())
      return;
    marker(best);
    begin = place + markers[best].size();
  }
}

absl::StatusOr<std::vector<std::string>> takeMarkers(std::string_view &ranks, const std::string &path) {
  constexpr std::string_view kWord = "marker ";
  std::vector<std::string> markers;
  size_t at = ranks.starts_with(kWord) ? 0 : ranks.find("\nmarker ");
  if (at == std::string_view::npos)
    return markers;
  at += ranks[at] == '\n';
  std::string_view rest = ranks.substr(at);
  int64_t line = std::count(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  ranks = ranks.substr(0, at);
  while (!rest.empty()) {
    std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    ++line;
    std::string bytes;
    if (!text.starts_with(kWord) || !absl::Base64Unescape(std::string(text.substr(kWord.size())), &bytes) ||
        bytes.empty() || std::ranges::find(markers, bytes) != markers.end())
      return absl::DataLossError(absl::StrCat(path, ", line ", line,
                                              ": expected `marker BASE64`, another one each line, found `",
                                              std::string(text.substr(0, 60)), "`"));
    markers.push_back(std::move(bytes));
  }
  return markers;
}

std::shared_ptr<const Tokenizer> withMarkers(std::shared_ptr<const Tokenizer> base,
                                             std::vector<std::string> markers) {
  if (markers.empty())
    return base;
  return std::make_shared<const MarkedTokenizer>(std::move(base), std::move(markers));
}

} // namespace weft::rt

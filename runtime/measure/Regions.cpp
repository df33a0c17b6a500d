//===- Regions.cpp - Which part of its document a token is in --------------===//
#include "runtime/measure/Regions.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

using Ids = std::vector<int32_t>;

/// Labels one document. `markers` by region; `other` is the last label.
void labelDocument(const Ids &ids, const std::vector<Ids> &markers, uint8_t *labels) {
  const auto other = static_cast<uint8_t>(markers.size());
  uint8_t current = other;
  for (size_t i = 0; i < ids.size();) {
    size_t found = markers.size(), length = 0;
    for (size_t m = 0; m < markers.size(); ++m)
      if (markers[m].size() > length && markers[m].size() <= ids.size() - i &&
          std::equal(markers[m].begin(), markers[m].end(), ids.begin() + static_cast<std::ptrdiff_t>(i))) {
        found = m;
        length = markers[m].size();
      }
    if (found == markers.size()) {
      labels[i++] = current;
      continue;
    }
    std::fill_n(labels + i, length, other);
    current = static_cast<uint8_t>(found);
    i += length;
  }
}

} // namespace

absl::StatusOr<RegionLabels> RegionLabels::make(const TokenStream &stream, const std::vector<Region> &regions,
                                                const Tokenizer &tokenizer) {
  RegionLabels result;
  std::vector<Ids> markers;
  for (const Region &region : regions) {
    if (region.name == "other")
      return absl::InvalidArgumentError(
          "regions: the name `other` is that of what belongs to no region; choose another name");
    Ids marker = tokenizer.encode(region.marker);
    if (marker.empty() || std::ranges::find(markers, marker) != markers.end())
      return absl::InvalidArgumentError(absl::StrCat("regions: the marker of `", region.name, "`, \"",
                                                     region.marker, "\", has the ids of another marker"));
    result.all.push_back(region.name);
    markers.push_back(std::move(marker));
  }
  if (regions.size() > 254)
    return absl::InvalidArgumentError(absl::StrCat("regions: expected at most 254, found ", regions.size()));
  result.all.emplace_back("other");
  result.labels.resize(static_cast<size_t>(stream.size()));
  for (const TokenStream::Document &document : stream.documents()) {
    Ids ids(static_cast<size_t>(document.length));
    stream.copy(document.begin, document.length, ids.data());
    const bool separated = tokenizer.separator() && ids[0] == *tokenizer.separator();
    uint8_t *labels = result.labels.data() + document.begin;
    if (separated) { // a document of its own begins with it, whatever the markers are
      labels[0] = static_cast<uint8_t>(markers.size());
      ids.erase(ids.begin());
    }
    labelDocument(ids, markers, labels + separated);
  }
  return result;
}

} // namespace weft::rt

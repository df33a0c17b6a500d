//===- Regions.h - Which part of its document a token is in -----*- C++ -*-===//
//
// The regions of a recipe: what follows a marker, up to the next marker of any
// region or the document's end. Markers, document separators and what stands
// before the first marker are region `other`, so that shares sum to 1 (SAN,
// Table 4). A target counts to the region that it stands in itself.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Recipe.h"
#include "runtime/data/TokenStream.h"
#include "runtime/data/Tokenizer.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::rt {

class RegionLabels {
public:
  /// Labels every token of `stream`. A marker of several ids is found where all
  /// of them stand in order; of markers that begin alike the longest is taken.
  /// Errors: InvalidArgument for a region named `other`, or a marker that has
  /// the ids of another.
  static absl::StatusOr<RegionLabels> make(const TokenStream &stream, const std::vector<Region> &regions,
                                           const Tokenizer &tokenizer);

  /// As the recipe orders them, then `other`.
  const std::vector<std::string> &names() const { return all; }
  /// Index into names() of the token at stream index `place`.
  size_t at(int64_t place) const { return labels[static_cast<size_t>(place)]; }

private:
  std::vector<std::string> all;
  std::vector<uint8_t> labels;
};

} // namespace weft::rt

//===- Slices.cpp - State entries that hold part of a tensor --------------===//
#include "runtime/core/Slices.h"

#include <cstring>
#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::rt {

absl::StatusOr<Tensor> sliceFor(const StateEntry &entry, const Tensor &full) {
  if (full.type != entry.type || full.shape != wholeShape(entry))
    return absl::FailedPreconditionError(
        absl::StrCat("`", entry.name, "` is ", std::string(nameOf(entry.type)), " [",
                     absl::StrJoin(wholeShape(entry), ", "), "] as a whole, but a tensor of ",
                     std::string(nameOf(full.type)), " [", absl::StrJoin(full.shape, ", "), "] was given"));
  if (entry.fullShape.empty())
    return full;
  auto first = full.shape.begin() + entry.firstAxis, last = first + entry.axisCount;
  auto product = [](auto from, auto to) {
    return std::accumulate(from, to, int64_t{1}, std::multiplies<>());
  };
  const int64_t outer = product(full.shape.begin(), first), places = product(first, last);
  const auto bytes = static_cast<size_t>(product(last, full.shape.end())) * sizeOf(full.type);
  Tensor part(entry.type, entry.shape);
  std::byte *to = part.bytes.data();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t place : entry.kept) {
      std::memcpy(to, full.bytes.data() + static_cast<size_t>(o * places + place) * bytes, bytes);
      to += bytes;
    }
  return part;
}

} // namespace weft::rt

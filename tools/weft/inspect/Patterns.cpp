//===- Patterns.cpp - Fixed patterns of a checkpoint, small enough to see ---===//

#include "tools/weft/inspect/Document.h"

#include "tools/weft/Costs.h"

#include "runtime/core/Safetensors.h"

#include <algorithm>
#include <filesystem>
#include <span>

using namespace weft;
using namespace weft::inspect;

namespace {

constexpr int64_t kSamples = 64; // a side of a picture
constexpr size_t kMostHeads = 64;

/// The table `name`, from the file of the checkpoint that holds it.
absl::StatusOr<rt::Tensor> tableOf(const std::string &checkpoint, const std::string &name) {
  absl::Status missing;
  for (const char *part : {"control.safetensors", "model.safetensors"}) {
    std::error_code ignored;
    const std::string path = checkpoint + "/" + part;
    if (!std::filesystem::exists(path, ignored))
      continue;
    absl::StatusOr<rt::SafetensorsFile> file = rt::SafetensorsFile::open(path);
    if (!file.ok())
      return file.status();
    if (file->tensors().contains(name))
      return file->readAs(name, rt::ElementType::F32);
  }
  return absl::NotFoundError(checkpoint + ": no table " + name);
}

/// Elements `start + place` for `kSamples` places spread over `length`.
rt::OrderedJson sampled(std::span<const float> all, int64_t start, int64_t length) {
  rt::OrderedJson list = rt::OrderedJson::array();
  const int64_t count = std::min(kSamples, length);
  for (int64_t i = 0; i < count; ++i)
    list.push_back(all[static_cast<size_t>(start + i * length / count)]);
  return list;
}

/// {"length", "a", "r"} or {"length", "p": rows}, of row `row` of a site's tables.
absl::StatusOr<rt::OrderedJson> pictureOf(const std::string &checkpoint, const std::string &site, bool dense,
                                          int64_t row) {
  if (!dense) {
    absl::StatusOr<rt::Tensor> keys = tableOf(checkpoint, patternKeyName(site)),
                               distances = tableOf(checkpoint, patternDistanceName(site));
    if (!keys.ok() || !distances.ok())
      return keys.ok() ? distances.status() : keys.status();
    for (const rt::Tensor *table : {&*keys, &*distances})
      if (table->shape.size() != 2 || row >= table->shape[0] || table->shape != keys->shape)
        return absl::DataLossError(checkpoint + ": tables of " + site + " have no row for each frozen head");
    const int64_t length = keys->shape[1];
    return rt::OrderedJson{{"length", length},
                           {"a", sampled(keys->as<float>(), row * length, length)},
                           {"r", sampled(distances->as<float>(), row * length, length)}};
  }
  absl::StatusOr<rt::Tensor> whole = tableOf(checkpoint, wholePatternName(site));
  if (!whole.ok())
    return whole.status();
  if (whole->shape.size() != 3 || row >= whole->shape[0] || whole->shape[1] != whole->shape[2])
    return absl::DataLossError(checkpoint + ": the table of " + site + " has no square for each frozen head");
  const int64_t length = whole->shape[1], count = std::min(kSamples, length);
  rt::OrderedJson rows = rt::OrderedJson::array();
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(sampled(whole->as<float>(), (row * length + i * length / count) * length, length));
  return rt::OrderedJson{{"length", length}, {"p", rows}};
}

} // namespace

absl::StatusOr<rt::OrderedJson> weft::inspect::patternList(const Program &program,
                                                           const std::string &checkpoint) {
  rt::OrderedJson list = rt::OrderedJson::array();
  if (checkpoint.empty())
    return list;
  for (const auto &[site, frozen] : program.heads.frozen)
    for (size_t i = 0; i < frozen.heads.size() && list.size() < kMostHeads; ++i) {
      absl::StatusOr<rt::OrderedJson> picture =
          pictureOf(checkpoint, site, frozen.dense, static_cast<int64_t>(i));
      if (!picture.ok())
        return picture.status();
      rt::OrderedJson entry = {{"address", addressOf(site)},
                               {"head", frozen.heads[i]},
                               {"window", frozen.windows[i] >= rt::kNoBound ? -1 : frozen.windows[i]},
                               {"first_places", frozen.firstPlaces.empty() ? 0 : frozen.firstPlaces[i]},
                               {"trained", frozen.trained}};
      entry.update(*picture);
      list.push_back(std::move(entry));
    }
  return list;
}

//===- SafetensorsSet.cpp - Shards read as one table ------------*- C++ -*-===//
#include "runtime/core/File.h"
#include "runtime/core/Json.h"
#include "runtime/core/Safetensors.h"

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::rt {
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxIndexBytes = 100'000'000;

/// tensor -> shard file name. Names must stay inside the folder.
absl::StatusOr<std::map<std::string, std::string>> readWeightMap(const std::string &path) {
  absl::StatusOr<std::string> text = readFile(path, kMaxIndexBytes);
  if (!text.ok())
    return text.status();
  const std::string what = absl::StrCat("'", path, "'");
  absl::StatusOr<Json> index = parseJson(*text, what);
  if (!index.ok())
    return index.status();
  absl::StatusOr<const Json *> table = memberOf(*index, "weight_map", what);
  if (!table.ok())
    return table.status();
  if (!(*table)->is_object())
    return absl::DataLossError(absl::StrCat(what, ": 'weight_map' is no object"));
  std::map<std::string, std::string> shards;
  for (const auto &[name, shard] : (*table)->items()) {
    if (!shard.is_string())
      return absl::DataLossError(absl::StrCat(what, ": tensor '", name, "': the shard is no string"));
    std::string file = shard.get<std::string>();
    if (file.empty() || file != fs::path(file).filename().string() || file == ".." || file == ".")
      return absl::DataLossError(
          absl::StrCat(what, ": tensor '", name, "': shard '", file, "' is no plain file name"));
    shards[name] = std::move(file);
  }
  return shards;
}

} // namespace

absl::StatusOr<SafetensorsSet> SafetensorsSet::open(const std::string &path) {
  std::error_code ignored;
  std::string file = path;
  if (fs::is_directory(path, ignored)) {
    file = (fs::path(path) / "model.safetensors.index.json").string();
    if (!fs::exists(file, ignored))
      file = (fs::path(path) / "model.safetensors").string();
  }
  if (fs::path(file).extension() == ".json")
    return openIndex(file);
  absl::StatusOr<SafetensorsFile> single = SafetensorsFile::open(file);
  if (!single.ok())
    return single.status();
  SafetensorsSet set;
  for (const auto &[name, info] : single->tensors())
    set.where[name] = 0;
  set.files.push_back(*std::move(single));
  return set;
}

absl::StatusOr<SafetensorsSet> SafetensorsSet::openIndex(const std::string &path) {
  absl::StatusOr<std::map<std::string, std::string>> weights = readWeightMap(path);
  if (!weights.ok())
    return weights.status();
  const fs::path folder = fs::path(path).parent_path();
  std::set<std::string> shards;
  for (const auto &[name, shard] : *weights)
    shards.insert(shard);
  std::error_code ignored;
  std::vector<std::string> missing;
  for (const std::string &shard : shards)
    if (!fs::exists(folder / shard, ignored))
      missing.push_back(shard);
  if (!missing.empty())
    return absl::NotFoundError(absl::StrCat(
        "'", path, "' names shards that are not there: ", absl::StrJoin(missing, ", "), "; fetch them"));

  SafetensorsSet set;
  std::map<std::string, size_t> number;
  for (const std::string &shard : shards) {
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::open((folder / shard).string());
    if (!file.ok())
      return file.status();
    number[shard] = set.files.size();
    for (const auto &[name, info] : file->tensors())
      if (auto listed = weights->find(name); listed == weights->end() || listed->second != shard)
        return absl::DataLossError(absl::StrCat("'", path, "': tensor '", name, "' lies in '", shard,
                                                "' and the index does not say so"));
    set.files.push_back(*std::move(file));
  }
  for (const auto &[name, shard] : *weights) {
    if (!set.files[number[shard]].tensors().contains(name))
      return absl::DataLossError(
          absl::StrCat("'", path, "': tensor '", name, "' is not in its shard '", shard, "'"));
    set.where[name] = number[shard];
  }
  for (const fs::directory_entry &entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored))
    if (entry.path().extension() == ".safetensors" && !shards.contains(entry.path().filename().string()))
      set.strays.push_back(entry.path().filename().string());
  return set;
}

std::vector<std::string> SafetensorsSet::names() const {
  std::vector<std::string> all;
  for (const auto &[name, file] : where)
    all.push_back(name);
  return all;
}

const TensorInfo *SafetensorsSet::info(const std::string &name) const {
  auto found = where.find(name);
  return found == where.end() ? nullptr : &files[found->second].tensors().at(name);
}

absl::StatusOr<Tensor> SafetensorsSet::readAs(const std::string &name, ElementType type) const {
  auto found = where.find(name);
  if (found == where.end())
    return absl::NotFoundError(absl::StrCat("no tensor '", name, "' in the weights"));
  return files[found->second].readAs(name, type);
}

} // namespace weft::rt

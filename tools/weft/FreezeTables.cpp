//===- FreezeTables.cpp - Pattern tables as state -------------------------===//

#include "tools/weft/FreezeTables.h"

#include "runtime/core/Floats.h"
#include "runtime/core/Safetensors.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

using namespace weft;

absl::StatusOr<std::map<HeadName, rt::Pattern>>
weft::readPatterns(const std::string &path, const std::vector<rt::NamedHead> &heads, int64_t positions) {
  absl::StatusOr<rt::SafetensorsFile> file = rt::SafetensorsFile::open(path);
  if (!file.ok())
    return file.status();
  std::map<std::string, std::vector<int64_t>> bySite;
  for (const rt::NamedHead &head : heads)
    bySite[head.site].push_back(head.head);
  std::map<HeadName, rt::Pattern> patterns;
  for (auto &[site, numbers] : bySite) {
    std::sort(numbers.begin(), numbers.end());
    for (const char *table : {"/a", "/r"}) {
      const std::string name = absl::StrCat("pattern/", site, table);
      absl::StatusOr<rt::Tensor> value = file->readAs(name, rt::ElementType::F32);
      if (!value.ok())
        return value.status();
      const auto rows = static_cast<int64_t>(numbers.size());
      if (value->shape.size() != 2 || value->shape[0] != rows || value->shape[1] < positions)
        return absl::InvalidArgumentError(absl::StrCat("'", path, "' tensor '", name, "': expected ",
                                                       rt::describeShape({rows, positions}), ", found ",
                                                       rt::describeShape(value->shape)));
      for (size_t row = 0; row < numbers.size(); ++row) {
        std::span<const float> from = value->as<float>().subspan(row * static_cast<size_t>(value->shape[1]),
                                                                 static_cast<size_t>(positions));
        if (!std::all_of(from.begin(), from.end(), [](float number) { return std::isfinite(number); }))
          return absl::InvalidArgumentError(
              absl::StrCat("'", path, "' tensor '", name, "': a number is not finite"));
        rt::Pattern &pattern = patterns[{site, numbers[row]}];
        (table[1] == 'a' ? pattern.a : pattern.r).assign(from.begin(), from.end());
      }
    }
  }
  return patterns;
}

namespace {

/// Rows of `heads`: new ones by `fresh`, others out of `old`, whose rows are `before`.
rt::Tensor merged(const std::vector<int64_t> &heads, const std::vector<int64_t> &before,
                  const rt::Tensor &old, int64_t length,
                  const std::function<std::span<const float>(int64_t)> &fresh) {
  // In float64: exact for tables of every machine.
  rt::Tensor table(rt::ElementType::F64, {static_cast<int64_t>(heads.size()), length});
  const rt::Tensor wide = before.empty() ? rt::Tensor() : rt::asType(old, rt::ElementType::F64);
  const auto width = static_cast<size_t>(length);
  for (size_t row = 0; row < heads.size(); ++row) {
    auto found = std::lower_bound(before.begin(), before.end(), heads[row]);
    const bool isOld = found != before.end() && *found == heads[row];
    const std::span<double> into = table.as<double>().subspan(row * width, width);
    if (isOld)
      std::ranges::copy(wide.as<double>().subspan(static_cast<size_t>(found - before.begin()) * width, width),
                        into.begin());
    else
      std::ranges::copy(fresh(heads[row]), into.begin());
  }
  return table;
}

/// Moments of the tables of `site`: new rows start at zero.
absl::Status mergeMoments(const std::string &table, const std::vector<int64_t> &heads,
                          const std::vector<int64_t> &before, const rt::Machine &trained, int64_t length,
                          std::map<std::string, rt::Tensor> &given) {
  const std::vector<float> zero(static_cast<size_t>(length));
  for (const rt::StateEntry &entry : trained.executable().states) {
    if (entry.role != rt::StateEntry::Role::Moment || !absl::EndsWith(entry.name, "/" + table))
      continue;
    absl::StatusOr<rt::Tensor> old = trained.readState(entry.name);
    if (!old.ok())
      return old.status();
    given[entry.name] =
        merged(heads, before, *old, length, [&](int64_t) { return std::span<const float>(zero); });
  }
  return absl::OkStatus();
}

} // namespace

absl::Status weft::enterFrozen(const HeadName &name, const rt::PatternCut &sees, bool isTrained, bool isDense,
                               rt::FreezeRecord &record) {
  rt::FrozenHeads &site = record.frozen[name.first];
  auto mixed = [&](const char *one, const char *other) {
    return absl::FailedPreconditionError(absl::StrCat("'", name.first, "' has ", one, " and ", other,
                                                      " patterns: heads of one branch need one of both"));
  };
  if (!site.heads.empty() && site.trained != isTrained)
    return mixed("fixed", "trained");
  if (!site.heads.empty() && site.dense != isDense)
    return mixed("compact", "dense");
  site.trained = isTrained;
  site.dense = isDense;
  const auto place = std::lower_bound(site.heads.begin(), site.heads.end(), name.second) - site.heads.begin();
  site.heads.insert(site.heads.begin() + place, name.second);
  site.windows.insert(site.windows.begin() + place, sees.window);
  site.firstPlaces.insert(site.firstPlaces.begin() + place, sees.firstPlaces);
  return absl::OkStatus();
}

absl::Status weft::addPatterns(const std::map<HeadName, rt::Pattern> &patterns, bool isTrained,
                               const rt::Machine &trained, rt::FreezeRecord &record,
                               std::map<std::string, rt::Tensor> &given) {
  std::map<std::string, rt::FrozenHeads> before = record.frozen;
  for (const auto &[name, pattern] : patterns)
    if (absl::Status status =
            enterFrozen(name, {pattern.window, pattern.firstPlaces}, isTrained, false, record);
        !status.ok())
      return status;
  for (const auto &[site, frozen] : record.frozen)
    for (bool key : {true, false}) {
      const std::string table = absl::StrCat("pattern/", site, key ? "/a" : "/r");
      if (frozen.dense)
        continue;
      rt::Tensor old;
      if (!before[site].heads.empty()) {
        absl::StatusOr<rt::Tensor> found = trained.readState(table);
        if (!found.ok())
          return found.status();
        old = *std::move(found);
      }
      if (frozen.heads == before[site].heads)
        continue;
      given[table] = merged(frozen.heads, before[site].heads, old, record.positions, [&](int64_t head) {
        const rt::Pattern &pattern = patterns.at({site, head});
        return std::span<const float>(key ? pattern.a : pattern.r);
      });
      if (absl::Status status =
              mergeMoments(table, frozen.heads, before[site].heads, trained, record.positions, given);
          !status.ok())
        return status;
    }
  return absl::OkStatus();
}

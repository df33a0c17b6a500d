//===- WholePatterns.cpp - Whole patterns as state ------------------------===//

#include "tools/weft/WholePatterns.h"

#include "tools/weft/FreezeTables.h"

#include "runtime/core/Floats.h"
#include "runtime/core/Safetensors.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

using namespace weft;

namespace {

std::string tableOf(const std::string &site) { return absl::StrCat("pattern/", site, "/p"); }

/// Row `row` of a square of `stride`, checked.
absl::StatusOr<std::vector<double>> sharesOf(std::span<const float> square, int64_t stride, int64_t row,
                                             const std::string &what) {
  std::span<const float> from =
      square.subspan(static_cast<size_t>(row * stride), static_cast<size_t>(row + 1));
  auto bad = std::find_if_not(from.begin(), from.end(),
                              [](float number) { return std::isfinite(number) && number >= 0; });
  if (bad != from.end())
    return absl::InvalidArgumentError(absl::StrCat(what, ": row ", row, ", key ", bad - from.begin(),
                                                   ": expected a number of at least 0, found ", *bad));
  std::vector<double> values(from.begin(), from.end());
  if (std::accumulate(values.begin(), values.end(), 0.0) <= 0)
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": row ", row, ": expected a positive number at one of its keys, found none"));
  return values;
}

} // namespace

absl::StatusOr<std::map<HeadName, rt::WholePattern>>
weft::readWholePatterns(const std::string &path, const std::vector<rt::NamedHead> &heads, int64_t positions) {
  absl::StatusOr<rt::SafetensorsFile> file = rt::SafetensorsFile::open(path);
  if (!file.ok())
    return file.status();
  std::map<std::string, std::vector<int64_t>> bySite;
  for (const rt::NamedHead &head : heads)
    bySite[head.site].push_back(head.head);
  std::map<HeadName, rt::WholePattern> patterns;
  for (auto &[site, numbers] : bySite) {
    std::sort(numbers.begin(), numbers.end());
    const std::string what = absl::StrCat("'", path, "' tensor '", tableOf(site), "'");
    absl::StatusOr<rt::Tensor> value = file->readAs(tableOf(site), rt::ElementType::F32);
    if (!value.ok())
      return value.status();
    const auto rows = static_cast<int64_t>(numbers.size());
    const std::vector<int64_t> &shape = value->shape;
    if (shape.size() != 3 || shape[0] != rows || shape[1] != shape[2] || shape[1] < positions)
      return absl::InvalidArgumentError(absl::StrCat(what, ": expected ",
                                                     rt::describeShape({rows, positions, positions}),
                                                     ", found ", rt::describeShape(shape)));
    const auto square = static_cast<size_t>(shape[1] * shape[1]);
    for (size_t n = 0; n < numbers.size(); ++n) {
      rt::WholePattern &pattern = patterns[{site, numbers[n]}];
      pattern.length = positions;
      pattern.p.assign(static_cast<size_t>(positions * positions), 0.0F);
      for (int64_t row = 0; row < positions; ++row) {
        absl::StatusOr<std::vector<double>> shares =
            sharesOf(value->as<float>().subspan(n * square, square), shape[1], row, what);
        if (!shares.ok())
          return shares.status();
        pattern.setRow(row, *shares);
      }
    }
  }
  return patterns;
}

absl::StatusOr<std::map<HeadName, rt::WholePattern>>
weft::makeWholePatterns(Calibrator &calibrator, const lang::FreezeRule &rule, uint64_t seed,
                        const std::map<HeadName, rt::Pattern> &fits) {
  std::map<HeadName, rt::WholePattern> whole;
  std::mutex mutex;
  absl::Status status =
      calibrator.forEachHead([&](const HeadName &head) { return fits.contains(head); },
                             [&](const HeadName &head, const rt::HeadInput &input) {
                               const rt::PatternMaking making{
                                   rule.pattern, rule.dirichlet, seed,
                                   absl::StrCat("freeze/", rule.pattern, "/", head.first, "/", head.second)};
                               rt::WholePattern made = rt::wholePattern(input, making, fits.at(head));
                               std::lock_guard lock(mutex);
                               whole[head] = std::move(made);
                             });
  return status.ok() ? absl::StatusOr<std::map<HeadName, rt::WholePattern>>(std::move(whole)) : status;
}

absl::Status weft::addWholePatterns(const std::map<HeadName, rt::WholePattern> &patterns,
                                    const rt::Machine &trained, rt::FreezeRecord &record,
                                    std::map<std::string, rt::Tensor> &given) {
  std::map<std::string, rt::FrozenHeads> before = record.frozen;
  for (const auto &[name, pattern] : patterns)
    if (absl::Status status = enterFrozen(name, {pattern.window, 0}, false, true, record); !status.ok())
      return status;
  const int64_t places = record.positions, square = places * places;
  for (const auto &[site, frozen] : record.frozen) {
    const std::vector<int64_t> &old = before[site].heads;
    if (!frozen.dense || frozen.heads == old)
      continue;
    rt::Tensor held, table(rt::ElementType::F32, {static_cast<int64_t>(frozen.heads.size()), places, places});
    if (!old.empty()) {
      absl::StatusOr<rt::Tensor> found = trained.readState(tableOf(site));
      if (!found.ok())
        return found.status();
      held = *std::move(found);
    }
    for (size_t n = 0; n < frozen.heads.size(); ++n) {
      const int64_t head = frozen.heads[n];
      auto place = std::lower_bound(old.begin(), old.end(), head);
      const bool isOld = place != old.end() && *place == head;
      const std::span<float> into =
          table.as<float>().subspan(n * static_cast<size_t>(square), static_cast<size_t>(square));
      if (!isOld)
        std::ranges::copy(patterns.at({site, head}).p, into.begin());
      for (int64_t i = 0; isOld && i < square; ++i)
        into[static_cast<size_t>(i)] =
            static_cast<float>(rt::floatAt(held, (place - old.begin()) * square + i));
    }
    given[tableOf(site)] = std::move(table);
  }
  return absl::OkStatus();
}

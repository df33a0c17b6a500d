//===- CalibrateStatistics.cpp - Sums of calibration from the machine ------===//

#include "tools/weft/Calibrate.h"

#include "runtime/core/Floats.h"
#include "runtime/train/Feed.h"

#include <algorithm>
#include <numeric>

using namespace weft;

namespace {

constexpr size_t kRecent = 64; // newest keys, as in SAF appendix B.2
/// r of a distance that a pattern's window leaves out: exp of it is 0.
constexpr float kNever = -1e4F;

/// Sums of weft.pattern_statistics, in its order.
enum Sum : size_t { Information, Score, Entropy, Share, Frobenius, Divergence, Affinity, Variation };

/// Numbers [first, first + count) as doubles.
std::vector<double> part(const rt::Tensor &tensor, int64_t first, int64_t count) {
  std::vector<double> numbers;
  for (int64_t i = first; i < first + count; ++i)
    numbers.push_back(rt::floatAt(tensor, i));
  return numbers;
}

/// All rows as one batch.
absl::StatusOr<rt::Batch> batchOf(const rt::EvalData &rows, int64_t count) {
  rt::Batch all;
  for (rt::Tensor *tensor : {&all.tokens, &all.targets, &all.docStart})
    *tensor = rt::Tensor(rt::ElementType::I32, {count, rows.positions()});
  for (int64_t row = 0; row < count; ++row) {
    absl::StatusOr<rt::Batch> one = rows.at(row);
    if (!one.ok())
      return one.status();
    auto put = [&](rt::Tensor &to, const rt::Tensor &from) {
      std::ranges::copy(from.as<int32_t>(), to.as<int32_t>().begin() + row * rows.positions());
    };
    put(all.tokens, one->tokens);
    put(all.targets, one->targets);
    put(all.docStart, one->docStart);
    all.counted += one->counted;
  }
  return all;
}

} // namespace

absl::Status Calibrator::bindStatistics() {
  progress("compiling", 0, count);
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = machineWith("calibrate_statistics", count);
  if (!machine.ok())
    return machine.status();
  summing = std::move(*machine);
  absl::StatusOr<rt::BoundProgram> bound = rt::BoundProgram::bind(*summing, "calibrate_statistics");
  if (!bound.ok())
    return bound.status();
  summed.emplace(*std::move(bound));
  absl::StatusOr<rt::Batch> batch = batchOf(rows, count);
  if (!batch.ok())
    return batch.status();
  if (absl::Status status = rt::setBatch(*summed, *std::move(batch)); !status.ok())
    return status;
  const int64_t places = rows.positions();
  std::vector<std::pair<int64_t, int64_t>> listed; // -length, place
  for (size_t row = 0; row < documents.size(); ++row)
    for (auto [begin, length] : documents[row])
      listed.emplace_back(-length, static_cast<int64_t>(row) * places + begin);
  std::sort(listed.begin(), listed.end());
  rt::Tensor starts(rt::ElementType::I32, {count * places}), reached(rt::ElementType::I32, {places});
  for (size_t n = 0; n < listed.size(); ++n) {
    starts.as<int32_t>()[n] = static_cast<int32_t>(listed[n].second);
    for (int32_t &each : reached.as<int32_t>().first(static_cast<size_t>(-listed[n].first)))
      ++each;
  }
  reach.assign(reached.as<int32_t>().begin(), reached.as<int32_t>().end());
  if (absl::Status status = summed->setInput("documents", std::move(starts)); !status.ok())
    return status;
  return summed->setInput("reach", std::move(reached));
}

/// The patterns of a site's live heads; 1 throughout for those without one.
absl::Status Calibrator::setPatterns(const lang::HeadSite &site,
                                     const std::map<HeadName, rt::Pattern> &patterns) {
  const std::vector<int64_t> live = program.freeze.liveHeads(site.path, site.heads);
  if (live.empty())
    return absl::OkStatus();
  absl::StatusOr<const rt::Tensor *> like = summed->result(site.path + ".columns");
  if (!like.ok())
    return like.status();
  const auto places = static_cast<size_t>(rows.positions());
  rt::Tensor a(rt::ElementType::F32, (*like)->shape), r = a, z = a;
  inParallel(static_cast<int64_t>(live.size()), [&](int64_t head) {
    const size_t from = static_cast<size_t>(head) * places;
    auto found = patterns.find({site.path, live[static_cast<size_t>(head)]});
    if (found == patterns.end())
      return;
    rt::Pattern pattern = found->second;
    if (pattern.firstPlaces > 0) // compared as it was before its middle was cut
      pattern.firstPlaces = 0, pattern.window = rt::kNoWindow;
    std::ranges::copy(pattern.a, a.as<float>().begin() + static_cast<std::ptrdiff_t>(from));
    for (size_t d = 0; d < places; ++d)
      r.as<float>()[from + d] = static_cast<int64_t>(d) < pattern.window ? pattern.r[d] : kNever;
    const std::vector<double> logSums = rt::patternLogSums(pattern);
    std::ranges::copy(logSums, z.as<float>().begin() + static_cast<std::ptrdiff_t>(from));
  });
  for (auto [name, tensor] : {std::pair(".a", &a), std::pair(".r", &r), std::pair(".z", &z)})
    if (absl::Status status = summed->setInput(site.path + name, rt::asType(*tensor, (*like)->type));
        !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status Calibrator::sumUp(const std::map<HeadName, rt::Pattern> &patterns,
                               const std::function<void(const HeadName &, const HeadSums &)> &visit) {
  if (!summed)
    if (absl::Status status = bindStatistics(); !status.ok())
      return status;
  for (const lang::HeadSite &site : sites)
    if (absl::Status status = setPatterns(site, patterns); !status.ok())
      return status;
  progress(patterns.empty() ? "summing up attention" : "comparing with patterns", 0, count);
  if (absl::Status status = summed->run(); !status.ok())
    return status;
  progress(patterns.empty() ? "summing up attention" : "comparing with patterns", count, count);
  const int64_t places = rows.positions();
  for (const lang::HeadSite &site : sites) {
    const std::vector<int64_t> live = program.freeze.liveHeads(site.path, site.heads);
    for (size_t n = 0; n < live.size(); ++n) {
      absl::StatusOr<const rt::Tensor *> columns = summed->result(site.path + ".columns"),
                                         diagonals = summed->result(site.path + ".diagonals"),
                                         sums = summed->result(site.path + ".sums");
      for (const auto *result : {&columns, &diagonals, &sums})
        if (!result->ok())
          return result->status();
      const auto head = static_cast<int64_t>(n), width = (*sums)->shape[1];
      visit({site.path, live[n]},
            {part(**columns, head * places, places), part(**diagonals, head * places, places),
             part(**sums, head * width, width)});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<HeadName, rt::HeadStatistics>> Calibrator::statistics() {
  std::map<HeadName, rt::HeadStatistics> result;
  absl::Status status = sumUp({}, [&](const HeadName &name, const HeadSums &found) {
    rt::HeadStatistics &head = result[name];
    head.mean = {reach, found.columns, found.diagonals, found.sums[Information], windowOf(name)};
    const double total = head.mean.total();
    if (total <= 0)
      return;
    head.score = found.sums[Score] / total;
    // sum_x KL(A_x || M) = -sum_x H(A_x) - count sum_j M log M
    head.forwardKl = std::max(0.0, -found.sums[Entropy] - found.sums[Information]) / total;
    head.entropy = found.sums[Share] / total;
    const auto recent = static_cast<std::ptrdiff_t>(std::min(kRecent, found.diagonals.size()));
    head.recent = std::accumulate(found.diagonals.begin(), found.diagonals.begin() + recent, 0.0) / total;
    head.first = found.columns[0] / total;
  });
  return status.ok() ? absl::StatusOr<std::map<HeadName, rt::HeadStatistics>>(std::move(result)) : status;
}

absl::StatusOr<std::map<HeadName, rt::PatternDistances>>
Calibrator::distances(const std::map<HeadName, rt::Pattern> &patterns) {
  std::map<HeadName, rt::PatternDistances> result;
  absl::Status status = sumUp(patterns, [&](const HeadName &name, const HeadSums &found) {
    const double total = std::accumulate(reach.begin(), reach.end(), 0.0);
    if (patterns.contains(name) && total > 0)
      result[name] = {found.sums[Frobenius] / total, found.sums[Divergence] / total,
                      1 - found.sums[Affinity] / total, found.sums[Variation] / total};
  });
  return status.ok() ? absl::StatusOr<std::map<HeadName, rt::PatternDistances>>(std::move(result)) : status;
}

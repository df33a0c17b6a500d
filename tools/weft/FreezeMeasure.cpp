//===- FreezeMeasure.cpp - Scores and fits of a statement's heads ----------===//

#include "tools/weft/FreezeMeasure.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <mutex>

using namespace weft;

void Laps::lap(const std::string &what) {
  const double now = seconds();
  absl::StrAppend(&words, words.empty() ? "" : ", ", what, absl::StrFormat(" %.2f s", now - last));
  last = now;
}

namespace {

struct Measuring {
  Calibrator &calibrator;
  const lang::FreezeRule &rule;
  std::vector<rt::HeadCandidate> &candidates;
  Laps &laps;
  const std::function<void(const std::string &)> &onHost;
  std::map<HeadName, Measured> measured = {};

  absl::Status measureSums();
  absl::Status measureRows();
  absl::Status scoreFurther();
  static void enter(rt::HeadCandidate &candidate, const Measured &found);
};

/// What is known of a candidate from here on.
void Measuring::enter(rt::HeadCandidate &candidate, const Measured &found) {
  candidate.kl = rt::patternKl(found.statistics.mean, found.fit.pattern);
  candidate.scores["variance"] = found.statistics.score;
  candidate.scores["forward_kl"] = found.statistics.forwardKl;
}

/// Statistics from the machine, fits from here.
absl::Status Measuring::measureSums() {
  if (absl::Status status = calibrator.bindStatistics(); !status.ok())
    return status;
  laps.lap("ready in");
  absl::StatusOr<std::map<HeadName, rt::HeadStatistics>> statistics = calibrator.statistics();
  if (!statistics.ok())
    return statistics.status();
  laps.lap("attention summed up");
  std::vector<Measured> found(candidates.size());
  calibrator.inParallel(static_cast<int64_t>(candidates.size()), [&](int64_t number) {
    rt::HeadCandidate &candidate = candidates[static_cast<size_t>(number)];
    Measured &own = found[static_cast<size_t>(number)];
    own.statistics = statistics->at({candidate.site, candidate.head});
    own.fit = rt::fitPattern(own.statistics.mean, {rule.rounds, rule.stop});
    enter(candidate, own);
  });
  for (size_t n = 0; n < found.size(); ++n)
    measured[{candidates[n].site, candidates[n].head}] = std::move(found[n]);
  laps.lap(absl::StrCat(candidates.size(), " heads fitted"));
  return absl::OkStatus();
}

/// Both from queries and keys: the mean of scores is not a sum over attention.
absl::Status Measuring::measureRows() {
  onHost("pattern = sharp");
  std::map<HeadName, rt::HeadCandidate *> wanted;
  for (rt::HeadCandidate &candidate : candidates)
    wanted[{candidate.site, candidate.head}] = &candidate;
  std::mutex mutex;
  absl::Status status =
      calibrator.forEachHead([&](const HeadName &head) { return wanted.contains(head); },
                             [&](const HeadName &head, const rt::HeadInput &input) {
                               Measured result{rt::headStatistics(input), {}};
                               result.fit = rt::fitPattern(result.statistics.sharp, {rule.rounds, rule.stop});
                               std::lock_guard lock(mutex);
                               enter(*wanted.at(head), result);
                               measured[head] = std::move(result);
                             });
  laps.lap("attention summed up and fitted");
  return status;
}

absl::Status Measuring::scoreFurther() {
  std::vector<std::string> needed = rt::scoresNeeded(rule.by);
  if (std::count(needed.begin(), needed.end(), "residual_cosine")) {
    onHost("by = residual_cosine");
    absl::StatusOr<std::map<HeadName, double>> cosines = calibrator.residualCosines();
    if (!cosines.ok())
      return cosines.status();
    for (rt::HeadCandidate &candidate : candidates)
      candidate.scores["residual_cosine"] = (*cosines)[{candidate.site, candidate.head}];
    laps.lap("streams compared");
  }
  const bool wanted = std::any_of(needed.begin(), needed.end(), [](const std::string &word) {
    return word == "qk_gradient" || word == "gate_taylor";
  });
  if (!wanted)
    return absl::OkStatus();
  absl::StatusOr<std::map<HeadName, Calibrator::Gradients>> gradients = calibrator.gradients();
  if (!gradients.ok())
    return gradients.status();
  for (rt::HeadCandidate &candidate : candidates) {
    const Calibrator::Gradients &found = (*gradients)[{candidate.site, candidate.head}];
    candidate.scores["qk_gradient"] = found.qkGradient;
    candidate.scores["gate_taylor"] = found.gateTaylor;
  }
  laps.lap("gradients");
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::map<HeadName, Measured>>
weft::measureHeads(Calibrator &calibrator, const lang::FreezeRule &rule,
                   std::vector<rt::HeadCandidate> &candidates, Laps &laps,
                   const std::function<void(const std::string &what)> &onHost) {
  Measuring measuring{calibrator, rule, candidates, laps, onHost};
  absl::Status status = rule.pattern == "sharp" ? measuring.measureRows() : measuring.measureSums();
  if (status.ok())
    status = measuring.scoreFurther();
  return status.ok() ? absl::StatusOr<std::map<HeadName, Measured>>(std::move(measuring.measured)) : status;
}

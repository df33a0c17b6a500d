//===- FreezeDecide.cpp - Choosing heads and fitting their patterns --------===//

#include "tools/weft/Calibrate.h"
#include "tools/weft/Freeze.h"
#include "tools/weft/FreezeTables.h"
#include "tools/weft/WholePatterns.h"

#include "runtime/core/Philox.h"

#include "llvm/Support/FormatVariadic.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <mutex>

using namespace weft;
using Rule = lang::FreezeRule;

namespace {

/// What is known of a head after calibration.
struct Measured {
  rt::HeadStatistics statistics;
  rt::PatternFit fit;
};

class Decider {
public:
  Decider(const FreezeContext &context, const Statement &statement)
      : context(context), statement(statement), rule(*statement.rule), sites(statement.plan->sites),
        record(context.program.freeze), progress(record.statements[statement.name]) {}

  absl::StatusOr<FreezeOutcome> go();

private:
  const lang::HeadSite &siteOf(int64_t number) const {
    auto after = std::upper_bound(statement.plan->firstHead.begin(), statement.plan->firstHead.end(), number);
    return sites[static_cast<size_t>(after - statement.plan->firstHead.begin()) - 1];
  }
  int64_t firstOf(const lang::HeadSite &site) const {
    return statement.plan->firstHead[static_cast<size_t>(&site - sites.data())];
  }
  uint64_t seed() const { return rule.seed.value_or(context.program.recipe->seed); }

  void listCandidates();
  absl::Status calibrate();
  absl::Status scoreFurther();
  void choose();
  absl::StatusOr<std::map<HeadName, rt::Pattern>> patternsOf(const std::vector<rt::NamedHead> &heads);
  absl::Status install(const std::vector<rt::NamedHead> &heads);
  absl::Status installWhole(const std::vector<rt::NamedHead> &heads);
  std::vector<HeadName> dealt(std::vector<HeadName> heads) const;
  absl::Status measureDistances(const std::function<std::vector<double>(const HeadName &, int64_t)> &rowOf);
  int64_t windowOf(const HeadName &head) const;
  rt::OrderedJson comparison() const;
  rt::OrderedJson report(const std::vector<rt::NamedHead> &heads);
  std::string tableOf(const rt::OrderedJson &report) const;

  const FreezeContext &context;
  const Statement &statement;
  const Rule &rule;
  const std::vector<lang::HeadSite> &sites;
  rt::FreezeRecord record;
  rt::FreezeProgress &progress;
  std::unique_ptr<Calibrator> calibrator;
  std::vector<rt::HeadCandidate> candidates;
  std::map<HeadName, Measured> measured;
  std::map<HeadName, int64_t> installed; // windows
  std::map<HeadName, rt::PatternDistances> distances;
  rt::HeadChoices choices;
  std::map<std::string, rt::Tensor> given;
};

/// The heads that the statement may take: those it names, or those of its file.
void Decider::listCandidates() {
  auto add = [&](const lang::HeadSite &site, int64_t head) {
    if (!record.isLive(site.path, head))
      return;
    rt::HeadCandidate candidate;
    candidate.number = firstOf(site) + head;
    candidate.site = site.path;
    candidate.head = head;
    candidate.group = head / std::max<int64_t>(1, site.heads / std::max<int64_t>(site.kvHeads, 1));
    candidates.push_back(std::move(candidate));
  };
  if (rule.amount == Rule::Amount::File || !progress.planned.empty()) {
    for (const rt::NamedHead &head : progress.planned)
      for (const lang::HeadSite &site : sites)
        if (site.path == head.site)
          add(site, head.head);
    return;
  }
  for (int64_t number : rule.heads)
    add(siteOf(number), number - firstOf(siteOf(number)));
}

absl::Status Decider::calibrate() {
  if (!context.split || candidates.empty())
    return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<Calibrator>> made = Calibrator::make(
      context.program, context.request, sites, context.trained, *context.split->rows, rule.calibrateRows);
  if (!made.ok())
    return made.status();
  calibrator = std::move(*made);
  std::map<HeadName, rt::HeadCandidate *> wanted;
  for (rt::HeadCandidate &candidate : candidates)
    wanted[{candidate.site, candidate.head}] = &candidate;
  std::mutex mutex;
  absl::Status status =
      calibrator->forEachHead([&](const HeadName &head) { return wanted.contains(head); },
                              [&](const HeadName &head, const rt::HeadInput &input) {
                                Measured result{rt::headStatistics(input), {}};
                                result.fit = rt::fitPattern(rule.pattern == "sharp" ? result.statistics.sharp
                                                                                    : result.statistics.mean,
                                                            {rule.rounds, rule.stop});
                                const double kl = rt::patternKl(result.statistics.mean, result.fit.pattern);
                                std::lock_guard lock(mutex);
                                rt::HeadCandidate &candidate = *wanted.at(head);
                                candidate.kl = kl;
                                candidate.scores["variance"] = result.statistics.score;
                                candidate.scores["forward_kl"] = result.statistics.forwardKl;
                                measured[head] = std::move(result);
                              });
  return status.ok() ? scoreFurther() : status;
}

absl::Status Decider::scoreFurther() {
  std::vector<std::string> needed = rt::scoresNeeded(rule.by);
  if (std::count(needed.begin(), needed.end(), "residual_cosine")) {
    absl::StatusOr<std::map<HeadName, double>> cosines = calibrator->residualCosines();
    if (!cosines.ok())
      return cosines.status();
    for (rt::HeadCandidate &candidate : candidates)
      candidate.scores["residual_cosine"] = (*cosines)[{candidate.site, candidate.head}];
  }
  const bool wanted = std::any_of(needed.begin(), needed.end(), [](const std::string &word) {
    return word == "qk_gradient" || word == "gate_taylor";
  });
  if (!wanted)
    return absl::OkStatus();
  absl::StatusOr<std::map<HeadName, Calibrator::Gradients>> gradients = calibrator->gradients();
  if (!gradients.ok())
    return gradients.status();
  for (rt::HeadCandidate &candidate : candidates) {
    const Calibrator::Gradients &found = (*gradients)[{candidate.site, candidate.head}];
    candidate.scores["qk_gradient"] = found.qkGradient;
    candidate.scores["gate_taylor"] = found.gateTaylor;
  }
  return absl::OkStatus();
}

/// Fills progress.planned, once.
void Decider::choose() {
  rt::HeadSelection selection;
  selection.by = rule.by;
  selection.highest = rule.highest;
  selection.perSite = rule.perLayer;
  selection.groups = rule.kvGroups;
  selection.seed = seed();
  // Heads that a list, a file or the first of several events named.
  const bool listed =
      rule.amount == Rule::Amount::Named || rule.amount == Rule::Amount::File || !progress.planned.empty();
  if (rule.amount == Rule::Amount::Share && !listed)
    selection.share = rule.share;
  else
    selection.count = listed ? static_cast<int64_t>(candidates.size()) : rule.count;
  if (!rule.prune && !listed)
    selection.tolerance = rule.tolerance;
  if (listed)
    selection.perSite = selection.groups = false;
  choices = rt::chooseHeads(candidates, selection);
  if (!progress.planned.empty())
    return;
  for (const rt::HeadChoice &choice : choices.ranked)
    if (choice.chosen) {
      const rt::HeadCandidate &head = candidates[choice.candidate];
      progress.planned.push_back({rt::layerOf(head.site), head.site, head.head});
    }
}

int64_t Decider::windowOf(const HeadName &head) const {
  if (calibrator)
    return calibrator->windowOf(head);
  for (const lang::HeadSite &site : sites) {
    if (site.path != head.first)
      continue;
    auto found = statement.plan->fixedWindows.find(site.path);
    const std::vector<int64_t> &windows =
        found == statement.plan->fixedWindows.end() ? site.windows : found->second;
    return std::min(windows[static_cast<size_t>(head.second)], rt::kNoWindow);
  }
  return rt::kNoWindow;
}

absl::StatusOr<std::map<HeadName, rt::Pattern>> Decider::patternsOf(const std::vector<rt::NamedHead> &heads) {
  if (rule.pattern == "file")
    return readPatterns(rule.patternFile, heads, context.program.recipe->positions);
  std::map<HeadName, rt::Pattern> patterns;
  const auto length = static_cast<size_t>(context.program.recipe->positions);
  for (const rt::NamedHead &head : heads) {
    const HeadName name{head.site, head.head};
    if (rule.pattern == "uniform") {
      patterns[name] = {std::vector<float>(length), std::vector<float>(length), rt::kNoWindow};
      continue;
    }
    auto found = measured.find(name);
    if (found == measured.end())
      return absl::FailedPreconditionError(
          absl::StrCat("head ", head.head, " of ", head.site,
                       " is to be frozen, but was not measured: the plan is another than the one the run's "
                       "heads were chosen by; restore it, or begin anew with weft train --from"));
    patterns[name] = found->second.fit.pattern;
  }
  if (rule.pattern != "structured")
    return patterns;
  std::vector<HeadName> order;
  for (const auto &[name, pattern] : patterns)
    order.push_back(name);
  order = dealt(std::move(order));
  std::map<HeadName, rt::Pattern> swapped;
  for (size_t i = 0; i < order.size(); ++i)
    swapped[order[i]] = patterns[order[(i + 1) % order.size()]];
  return swapped;
}

/// `heads` in a drawn order, in which each gets the next one's pattern.
std::vector<HeadName> Decider::dealt(std::vector<HeadName> heads) const {
  const rt::Philox philox(seed(), "freeze/structured");
  std::sort(heads.begin(), heads.end());
  std::vector<std::pair<double, HeadName>> drawn;
  for (size_t i = 0; i < heads.size(); ++i)
    drawn.emplace_back(philox.uniform(i), heads[i]);
  std::sort(drawn.begin(), drawn.end());
  for (size_t i = 0; i < heads.size(); ++i)
    heads[i] = drawn[i].second;
  return heads;
}

absl::Status Decider::install(const std::vector<rt::NamedHead> &heads) {
  if (rule.prune || rule.pattern == "zero") {
    for (const rt::NamedHead &head : heads)
      record.pruned[head.site].push_back(head.head);
    for (auto &[site, numbers] : record.pruned)
      std::sort(numbers.begin(), numbers.end());
    return absl::OkStatus();
  }
  if (record.positions == 0)
    record.positions = context.program.recipe->positions;
  if (rule.dense)
    return installWhole(heads);
  absl::StatusOr<std::map<HeadName, rt::Pattern>> patterns = patternsOf(heads);
  if (!patterns.ok())
    return patterns.status();
  for (auto &[name, pattern] : *patterns) {
    pattern.window = windowOf(name);
    pattern.window = rt::effectiveWindow(pattern, rule.negligible);
    installed[name] = pattern.window;
  }
  if (absl::Status status = addPatterns(*patterns, rule.trained, context.trained, record, given);
      !status.ok())
    return status;
  return measureDistances(
      [&](const HeadName &head, int64_t row) { return rt::patternRow(patterns->at(head), row); });
}

absl::Status
Decider::measureDistances(const std::function<std::vector<double>(const HeadName &, int64_t)> &rowOf) {
  if (!calibrator)
    return absl::OkStatus();
  std::mutex mutex;
  return calibrator->forEachHead([&](const HeadName &head) { return installed.contains(head); },
                                 [&](const HeadName &head, const rt::HeadInput &input) {
                                   rt::PatternDistances found =
                                       rt::distancesTo(input, [&](int64_t row) { return rowOf(head, row); });
                                   std::lock_guard lock(mutex);
                                   distances[head] = found;
                                 });
}

/// As install, of patterns with a number a pair.
absl::Status Decider::installWhole(const std::vector<rt::NamedHead> &heads) {
  std::map<HeadName, rt::WholePattern> whole;
  if (rule.pattern == "file") {
    absl::StatusOr<std::map<HeadName, rt::WholePattern>> read =
        readWholePatterns(rule.patternFile, heads, record.positions);
    if (!read.ok())
      return read.status();
    whole = *std::move(read);
  } else {
    absl::StatusOr<std::map<HeadName, rt::Pattern>> compact = patternsOf(heads);
    if (!compact.ok())
      return compact.status();
    std::vector<HeadName> order;
    for (auto &[name, pattern] : *compact) {
      order.push_back(name);
      if (rule.pattern == "uniform")
        whole[name] = rt::wholePattern(pattern);
      else
        pattern = measured.at(name).fit.pattern; // its own, though others' are dealt
    }
    if (rule.pattern != "uniform" && calibrator) { // without heads nothing was calibrated
      absl::StatusOr<std::map<HeadName, rt::WholePattern>> made =
          makeWholePatterns(*calibrator, rule, seed(), *compact);
      if (!made.ok())
        return made.status();
      whole = *std::move(made);
    }
    if (rule.pattern == "structured") {
      order = dealt(std::move(order));
      for (size_t i = 0; i + 1 < order.size(); ++i)
        std::swap(whole[order[i]], whole[order[i + 1]]);
    }
  }
  for (auto &[name, pattern] : whole) {
    installed[name] = windowOf(name);
    pattern = rt::cutTo(std::move(pattern), installed[name]);
    pattern.window = installed[name];
  }
  if (absl::Status status = addWholePatterns(whole, context.trained, record, given); !status.ok())
    return status;
  return measureDistances([&](const HeadName &head, int64_t row) { return whole.at(head).row(row); });
}

/// One head of the report; what was not measured is left out.
rt::OrderedJson entryOf(const rt::HeadCandidate &candidate, const rt::HeadChoice &choice,
                        const Measured *measured, const rt::PatternDistances *distances, int64_t window) {
  rt::OrderedJson entry = {{"layer", rt::layerOf(candidate.site)},
                           {"site", candidate.site},
                           {"head", candidate.head},
                           {"score", choice.score},
                           {"kl", candidate.kl},
                           {"chosen", choice.chosen},
                           {"reason", choice.reason}};
  for (const auto &[word, value] : candidate.scores)
    entry[word] = value;
  if (measured) {
    entry["entropy"] = measured->statistics.entropy;
    entry["recent"] = measured->statistics.recent;
    entry["first"] = measured->statistics.first;
    entry["rounds"] = measured->fit.rounds;
    entry["rows_unreached"] = measured->fit.rowsUnreached;
  }
  if (distances)
    entry["distances"] = {{"frobenius", distances->frobenius},
                          {"kl", distances->kl},
                          {"hellinger", distances->hellinger},
                          {"variation", distances->variation}};
  if (window > 0)
    entry["window"] = window;
  return entry;
}

/// Means of chosen and unchosen heads, and how many each site gave (SAF, B.2, B.3).
rt::OrderedJson summaryOf(const rt::OrderedJson &heads) {
  rt::OrderedJson sides, sites;
  for (const char *side : {"chosen", "unchosen"})
    for (const char *word : {"entropy", "recent", "first"}) {
      double sum = 0;
      int64_t count = 0;
      for (const rt::OrderedJson &head : heads)
        if (head.contains(word) && head["chosen"].get<bool>() == (std::string(side) == "chosen")) {
          sum += head[word].get<double>();
          ++count;
        }
      if (count > 0)
        sides[side][word] = sum / static_cast<double>(count);
    }
  for (const rt::OrderedJson &head : heads) {
    const std::string site = head["site"].get<std::string>();
    sites[site] =
        (sites.contains(site) ? sites[site].get<int64_t>() : 0) + (head["chosen"].get<bool>() ? 1 : 0);
  }
  return {{"means", sides}, {"by_site", sites}};
}

/// This ranking beside an earlier one.
rt::OrderedJson Decider::comparison() const {
  rt::Ranking now;
  for (const rt::HeadChoice &choice : choices.ranked) {
    const rt::HeadCandidate &head = candidates[choice.candidate];
    now.push_back({head.site, rt::layerOf(head.site), head.head, choice.chosen});
  }
  const rt::Agreement found = rt::agreementOf(now, *context.earlier);
  return {{"heads", found.heads},     {"chosen", found.chosen},      {"chosen_then", found.chosenThen},
          {"overlap", found.overlap}, {"by_chance", found.byChance}, {"spearman", found.spearman},
          {"kendall", found.kendall}};
}

rt::OrderedJson Decider::report(const std::vector<rt::NamedHead> &heads) {
  rt::OrderedJson list = rt::OrderedJson::array(), now = rt::OrderedJson::array();
  for (const rt::HeadChoice &choice : choices.ranked) {
    const rt::HeadCandidate &candidate = candidates[choice.candidate];
    const HeadName name{candidate.site, candidate.head};
    auto found = measured.find(name);
    auto far = distances.find(name);
    auto pattern = installed.find(name);
    list.push_back(entryOf(candidate, choice, found == measured.end() ? nullptr : &found->second,
                           far == distances.end() ? nullptr : &far->second,
                           pattern == installed.end() ? 0 : pattern->second));
  }
  for (const rt::NamedHead &head : heads)
    now.push_back({{"site", head.site}, {"head", head.head}});
  rt::OrderedJson line = {{"kind", "freeze"},
                          {"step", context.step},
                          {"statement", statement.name},
                          {"action", rule.prune ? "prune" : "freeze"},
                          {"by", rule.by},
                          {"eligible", candidates.size()},
                          {"wanted", choices.wanted},
                          {"chosen", choices.chosen},
                          {"passed_over", choices.passed},
                          {"installed", now}};
  if (!rule.prune)
    line["pattern"] = rule.pattern;
  if (rule.dense)
    line["form"] = "dense";
  line.update(summaryOf(list));
  if (context.earlier)
    line["against"] = comparison();
  line["heads"] = list;
  return line;
}

std::string Decider::tableOf(const rt::OrderedJson &report) const {
  std::string text =
      llvm::formatv("step {0}: {1} by {2}: {3} of {4} heads chosen, {5} wanted, {6} passed over; "
                    "{7} now\n",
                    context.step, rule.prune ? "prune" : "freeze", rule.by, choices.chosen, candidates.size(),
                    choices.wanted, choices.passed, report["installed"].size())
          .str();
  text += "  site                 head  score       kl (nats)  entropy  newest 64  first   \n";
  for (const rt::OrderedJson &head : report["heads"]) {
    auto number = [&](const char *word) { return head.contains(word) ? head[word].get<double>() : 0.0; };
    text += llvm::formatv("  {0,-20} {1,4}  {2,-10:E3}  {3,-9:F4}  {4,-7:F3}  {5,-9:F3}  {6,-6:F3}  {7}\n",
                          head["site"].get<std::string>(), head["head"].get<int64_t>(), number("score"),
                          number("kl"), number("entropy"), number("recent"), number("first"),
                          head["chosen"].get<bool>() ? "chosen" : head["reason"].get<std::string>())
                .str();
  }
  if (report.contains("against")) {
    const rt::OrderedJson &against = report["against"];
    text += llvm::formatv("  of {0} heads in both rankings {1} are chosen now, {2} were then, {3} both times "
                          "({4:F1} by chance); rank correlation {5:F3} (Spearman), {6:F3} (Kendall)\n",
                          against["heads"].get<int64_t>(), against["chosen"].get<int64_t>(),
                          against["chosen_then"].get<int64_t>(), against["overlap"].get<int64_t>(),
                          against["by_chance"].get<double>(), against["spearman"].get<double>(),
                          against["kendall"].get<double>())
                .str();
  }
  if (choices.chosen < choices.wanted)
    text += llvm::formatv("  {0} of {1} wanted: the others fit worse than the tolerance\n", choices.chosen,
                          choices.wanted)
                .str();
  return text;
}

absl::StatusOr<FreezeOutcome> Decider::go() {
  listCandidates();
  if (absl::Status status = calibrate(); !status.ok())
    return status;
  choose();
  const std::vector<rt::NamedHead> group = groupOf(rule, progress);
  if (absl::Status status = install(group); !status.ok())
    return status;
  ++progress.installed;
  progress.done = isLastGroup(rule, progress);
  progress.trigger = nullptr;
  FreezeOutcome outcome;
  outcome.report = report(group);
  outcome.table = tableOf(outcome.report);
  outcome.record = record;
  outcome.given = given;
  return outcome;
}

} // namespace

absl::StatusOr<FreezeOutcome> weft::decide(const FreezeContext &context, const Statement &statement) {
  return Decider(context, statement).go();
}

//===- FreezeDecide.cpp - Choosing heads and fitting their patterns --------===//

#include "tools/weft/Calibrate.h"
#include "tools/weft/Freeze.h"
#include "tools/weft/FreezeMeasure.h"
#include "tools/weft/FreezeReport.h"
#include "tools/weft/FreezeTables.h"
#include "tools/weft/WholePatterns.h"

#include "runtime/core/Philox.h"
#include "runtime/cuda/Cuda.h"

#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <mutex>

using namespace weft;
using Rule = lang::FreezeRule;

namespace {

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
  /// Says that `what` is worked on by the host where the model is not.
  void onHost(const std::string &what) const {
    if (rt::cudaCounters(context.trained))
      llvm::errs() << "weft: remark: slow-path: plan " << statement.plan->name << ": `" << what
                   << "` reads queries, keys and values on the host\n";
  }
  void choose();
  absl::Status checkDealt() const;
  absl::StatusOr<std::map<HeadName, rt::Pattern>> patternsOf(const std::vector<rt::NamedHead> &heads);
  void cutPatterns(std::map<HeadName, rt::Pattern> &patterns);
  absl::Status install(const std::vector<rt::NamedHead> &heads);
  absl::Status installWhole(const std::vector<rt::NamedHead> &heads);
  std::vector<HeadName> dealt(std::vector<HeadName> heads) const;
  absl::Status measureDistances(const std::function<std::vector<double>(const HeadName &, int64_t)> &rowOf);
  int64_t windowOf(const HeadName &head) const;
  double keptShare() const;
  rt::OrderedJson report(const std::vector<rt::NamedHead> &heads);

  const FreezeContext &context;
  const Statement &statement;
  const Rule &rule;
  const std::vector<lang::HeadSite> &sites;
  rt::FreezeRecord record;
  rt::FreezeProgress &progress;
  std::unique_ptr<Calibrator> calibrator;
  std::vector<rt::HeadCandidate> candidates;
  std::map<HeadName, Measured> measured;
  std::map<HeadName, rt::PatternCut> installed;
  std::map<HeadName, rt::PatternDistances> distances;
  rt::HeadChoices choices;
  std::map<std::string, rt::Tensor> given;
  Laps laps;
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
  if (context.console)
    calibrator->progress = [this](const std::string &stage, int64_t done, int64_t all) {
      context.console->status(
          absl::StrFormat("calibrating: %s, %d of %d sequences, %.1f s", stage, done, all, laps.seconds()));
    };
  absl::StatusOr<std::map<HeadName, Measured>> found =
      measureHeads(*calibrator, rule, candidates, laps, [this](const std::string &what) { onHost(what); });
  if (!found.ok())
    return found.status();
  measured = *std::move(found);
  return absl::OkStatus();
}

/// Settles progress.planned at the first event.
void Decider::choose() {
  const bool first = progress.installed == 0 && progress.tried == 0;
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
  if (!rule.prune && first) // heads that are named, too
    selection.tolerance = rule.tolerance;
  if (listed)
    selection.perSite = selection.groups = false;
  choices = rt::chooseHeads(candidates, selection);
  if (!first)
    return;
  std::vector<rt::NamedHead> chosen;
  for (const rt::HeadChoice &choice : choices.ranked)
    if (choice.chosen) {
      const rt::HeadCandidate &head = candidates[choice.candidate];
      chosen.push_back({rt::layerOf(head.site), head.site, head.head});
    }
  if (progress.planned.empty())
    progress.planned = std::move(chosen);
  else // a file's heads keep its order
    std::erase_if(progress.planned, [&](const rt::NamedHead &head) {
      return std::ranges::none_of(chosen, [&](const rt::NamedHead &other) {
        return other.site == head.site && other.head == head.head;
      });
    });
}

/// A head that is dealt a pattern alone would get its own.
absl::Status Decider::checkDealt() const {
  rt::FreezeProgress ahead = progress;
  for (bool last = rule.prune || rule.pattern != "structured"; !last; last = isLastGroup(rule, ahead)) {
    if (groupOf(rule, ahead).size() == 1)
      return absl::FailedPreconditionError(absl::StrCat(
          "plan ", statement.plan->name,
          ": pattern = structured gives a head another chosen head's pattern, ", "and ",
          progress.planned.size(), " chosen heads leave one alone: take more heads or fewer groups, ",
          "or say pattern = mean"));
    ++ahead.installed;
  }
  return absl::OkStatus();
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

/// Leaves out what is negligible; counts the pairs that stay.
void Decider::cutPatterns(std::map<HeadName, rt::Pattern> &patterns) {
  std::vector<std::pair<rt::Pattern *, rt::PatternCut *>> all;
  for (auto &[name, pattern] : patterns) {
    pattern.window = windowOf(name);
    all.emplace_back(&pattern, &installed[name]);
  }
  auto cut = [&](int64_t number) {
    auto [pattern, found] = all[static_cast<size_t>(number)];
    *found = rule.cutMiddle ? rt::cutMiddle(*pattern, rule.negligible)
                            : rt::PatternCut{rt::effectiveWindow(*pattern, rule.negligible), 0};
    pattern->window = found->window, pattern->firstPlaces = found->firstPlaces;
  };
  if (calibrator)
    return calibrator->inParallel(static_cast<int64_t>(all.size()), cut);
  for (size_t number = 0; number < all.size(); ++number)
    cut(static_cast<int64_t>(number));
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
  cutPatterns(*patterns);
  if (absl::Status status = addPatterns(*patterns, rule.trained, context.trained, record, given);
      !status.ok())
    return status;
  if (!calibrator)
    return absl::OkStatus();
  laps.lap("patterns entered");
  absl::StatusOr<std::map<HeadName, rt::PatternDistances>> found = calibrator->distances(*patterns);
  if (!found.ok())
    return found.status();
  distances = *std::move(found);
  laps.lap("distances");
  return absl::OkStatus();
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
      onHost("form = dense");
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
    installed[name] = {windowOf(name), 0};
    pattern = rt::cutTo(std::move(pattern), installed[name].window);
    pattern.window = installed[name].window;
  }
  if (absl::Status status = addWholePatterns(whole, context.trained, record, given); !status.ok())
    return status;
  return measureDistances([&](const HeadName &head, int64_t row) { return whole.at(head).row(row); });
}

/// Of all pairs of places, those that the patterns installed now keep; a mean over them.
double Decider::keptShare() const {
  double sum = 0;
  for (const auto &[name, cut] : installed)
    sum += static_cast<double>(rt::keptPairs(record.positions, cut));
  const auto places = static_cast<double>(record.positions);
  return sum / static_cast<double>(installed.size()) / (places * (places + 1) / 2);
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
                           pattern == installed.end() ? nullptr : &pattern->second));
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
  if (rule.cutMiddle && !installed.empty())
    line["kept_pairs"] = keptShare();
  if (context.earlier)
    line["against"] = comparisonOf(candidates, choices, *context.earlier);
  line["heads"] = list;
  return line;
}

absl::StatusOr<FreezeOutcome> Decider::go() {
  listCandidates();
  if (absl::Status status = calibrate(); !status.ok())
    return status;
  choose();
  if (absl::Status status = checkDealt(); !status.ok())
    return status;
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
  if (calibrator)
    outcome.times = absl::StrCat("calibrated on ", rule.calibrateRows, " sequences: ", laps.text());
  return outcome;
}

} // namespace

absl::StatusOr<FreezeOutcome> weft::decide(const FreezeContext &context, const Statement &statement) {
  return Decider(context, statement).go();
}

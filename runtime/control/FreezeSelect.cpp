//===- FreezeSelect.cpp - Which heads are frozen or pruned ----------------===//
#include "runtime/control/FreezeSelect.h"

#include "runtime/core/File.h"
#include "runtime/core/Philox.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weft::rt {
namespace {

using Candidates = std::vector<HeadCandidate>;

double scoreOf(const HeadCandidate &candidate, std::string_view word) {
  auto found = candidate.scores.find(word);
  return found == candidate.scores.end() ? 0 : found->second;
}

/// Places from 0 in rising order of `values`, ties by index.
std::vector<double> ranksOf(const std::vector<double> &values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t place = 0; place < order.size(); ++place)
    ranks[order[place]] = static_cast<double>(place);
  return ranks;
}

std::vector<double> column(const Candidates &candidates, std::string_view word) {
  std::vector<double> values;
  for (const HeadCandidate &candidate : candidates)
    values.push_back(scoreOf(candidate, word));
  return values;
}

bool isRandom(const std::string &by) { return by.starts_with("random"); }

std::vector<double> selectorScores(const Candidates &candidates, const HeadSelection &selection) {
  if (selection.by == "rank_sum") {
    std::vector<double> sum = ranksOf(column(candidates, "variance"));
    const std::vector<double> gradient = ranksOf(column(candidates, "qk_gradient"));
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += gradient[i];
    return sum;
  }
  if (isRandom(selection.by)) {
    const Philox philox(selection.seed, "freeze/random");
    std::vector<double> drawn;
    for (const HeadCandidate &candidate : candidates)
      drawn.push_back(philox.uniform(static_cast<uint64_t>(candidate.number)));
    return drawn;
  }
  return column(candidates, selection.by == "gradient_veto" ? "variance" : selection.by);
}

/// Heads of the quarter that is highest by qk_gradient.
std::set<size_t> vetoed(const Candidates &candidates, const HeadSelection &selection) {
  std::set<size_t> found;
  if (selection.by != "gradient_veto")
    return found;
  const std::vector<double> ranks = ranksOf(column(candidates, "qk_gradient"));
  const double from = std::ceil(0.75 * static_cast<double>(ranks.size()));
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] >= from)
      found.insert(i);
  return found;
}

/// What goes together: a head, or the heads of a key-value head.
struct Unit {
  std::vector<size_t> members; // candidates, by number
  double score = 0;
  std::string reason; // why it may not be taken
};

class Chooser {
public:
  Chooser(const Candidates &candidates, const HeadSelection &selection)
      : candidates(candidates), selection(selection), scores(selectorScores(candidates, selection)) {
    const std::set<size_t> veto = vetoed(candidates, selection);
    std::map<std::pair<std::string, int64_t>, size_t> known;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const auto key = std::pair(candidates[i].site, candidates[i].group);
      auto [at, isNew] = known.emplace(key, units.size());
      if (isNew || !selection.groups) {
        units.emplace_back();
        at->second = units.size() - 1;
      }
      Unit &unit = units[at->second];
      unit.members.push_back(i);
      if (selection.tolerance && candidates[i].kl > *selection.tolerance)
        unit.reason = "tolerance";
      else if (veto.contains(i) && unit.reason.empty())
        unit.reason = "gradient veto";
    }
    for (Unit &unit : units) {
      for (size_t member : unit.members)
        unit.score += scores[member] / static_cast<double>(unit.members.size());
      total[candidates[unit.members[0]].site] += static_cast<int64_t>(unit.members.size());
    }
    std::stable_sort(units.begin(), units.end(), [&](const Unit &a, const Unit &b) {
      return selection.highest && !isRandom(selection.by) ? a.score > b.score : a.score < b.score;
    });
  }

  /// `limits`: heads a site may give; without them one limit over all sites.
  HeadChoices choose(const std::optional<std::map<std::string, int64_t>> &limits) const {
    HeadChoices result;
    std::map<std::string, int64_t> taken;
    result.wanted = limits ? 0 : wantedOf(static_cast<int64_t>(candidates.size()));
    for (const auto &[site, limit] : limits.value_or(std::map<std::string, int64_t>()))
      result.wanted += limit;
    for (const Unit &unit : units) {
      const std::string &site = candidates[unit.members[0]].site;
      const auto size = static_cast<int64_t>(unit.members.size());
      bool room = false;
      if (!limits)
        room = fits(result.chosen, size, result.wanted);
      else if (auto limit = limits->find(site); limit != limits->end())
        room = fits(taken[site], size, limit->second);
      const bool chosen = room && unit.reason.empty();
      if (chosen) {
        taken[site] += size;
        result.chosen += size;
      } else if (room) {
        result.passed += size;
      }
      for (size_t member : unit.members)
        result.ranked.push_back({member, selection.groups ? unit.score : scores[member], chosen,
                                 room && !chosen ? unit.reason : std::string()});
    }
    return result;
  }

  std::map<std::string, int64_t> limitsBySite() const {
    std::map<std::string, int64_t> limits;
    for (const auto &[site, heads] : total)
      limits[site] = wantedOf(heads);
    return limits;
  }

private:
  /// Whole groups, as many as come nearest to what is wanted.
  bool fits(int64_t taken, int64_t size, int64_t wanted) const {
    return selection.groups
               ? std::nearbyint(static_cast<double>(wanted - taken) / static_cast<double>(size)) >= 1
               : taken + size <= wanted;
  }

  int64_t wantedOf(int64_t heads) const {
    if (!selection.share)
      return std::min(selection.count, heads);
    return static_cast<int64_t>(std::nearbyint(*selection.share * static_cast<double>(heads)));
  }

  const Candidates &candidates;
  const HeadSelection &selection;
  std::vector<double> scores;
  std::vector<Unit> units; // in rank order
  std::map<std::string, int64_t> total;
};

} // namespace

HeadChoices chooseHeads(const Candidates &candidates, const HeadSelection &selection) {
  Chooser chooser(candidates, selection);
  if (selection.by == "random(matched)") {
    HeadSelection variance = selection;
    variance.by = "variance";
    std::map<std::string, int64_t> limits;
    for (const HeadChoice &choice : chooseHeads(candidates, variance).ranked)
      if (choice.chosen)
        ++limits[candidates[choice.candidate].site];
    return chooser.choose(limits);
  }
  return chooser.choose(selection.perSite ? std::optional(chooser.limitsBySite()) : std::nullopt);
}

std::vector<std::string> scoresNeeded(const std::string &selector) {
  if (selector == "rank_sum" || selector == "gradient_veto")
    return {"variance", "qk_gradient"};
  if (selector == "random(matched)")
    return {"variance"};
  if (selector == "random(unmatched)")
    return {};
  return {selector};
}

int64_t layerOf(const std::string &site) {
  for (absl::string_view part : absl::StrSplit(site, '.')) {
    int64_t number = 0;
    if (!part.empty() && absl::ascii_isdigit(static_cast<unsigned char>(part[0])) &&
        absl::SimpleAtoi(part, &number))
      return number;
  }
  return -1;
}

OrderedJson toJson(const Candidates &candidates, const HeadChoices &choices) {
  OrderedJson heads = OrderedJson::array();
  for (const HeadChoice &choice : choices.ranked) {
    const HeadCandidate &candidate = candidates[choice.candidate];
    heads.push_back({{"layer", layerOf(candidate.site)},
                     {"site", candidate.site},
                     {"head", candidate.head},
                     {"score", choice.score},
                     {"kl", candidate.kl},
                     {"chosen", choice.chosen},
                     {"reason", choice.reason}});
  }
  return {{"heads", heads}};
}

absl::StatusOr<std::vector<NamedHead>> readHeads(const std::string &path) {
  absl::StatusOr<std::string> text = readFile(path, 64u << 20);
  if (!text.ok())
    return text.status();
  const std::string what = absl::StrCat("'", path, "'");
  absl::StatusOr<Json> json = parseJson(*text, what);
  if (!json.ok())
    return json.status();
  absl::StatusOr<const Json *> list = memberOf(*json, "heads", what);
  if (!list.ok() || !(*list)->is_array())
    return absl::DataLossError(absl::StrCat(what, ": expected {\"heads\": [{\"layer\", \"head\", ..}]}"));
  std::vector<NamedHead> heads;
  for (const Json &entry : **list) {
    if (entry.is_object() && entry.contains("chosen") && entry["chosen"] == false)
      continue;
    absl::StatusOr<int64_t> head = int64Of(entry, "head", what);
    if (!head.ok())
      return head.status();
    NamedHead named{-1, "", *head};
    if (entry.contains("site")) {
      absl::StatusOr<std::string> site = stringOf(entry, "site", what);
      if (!site.ok())
        return site.status();
      named.site = *site;
    } else {
      absl::StatusOr<int64_t> layer = int64Of(entry, "layer", what);
      if (!layer.ok())
        return layer.status();
      named.layer = *layer;
    }
    heads.push_back(named);
  }
  return heads;
}

} // namespace weft::rt

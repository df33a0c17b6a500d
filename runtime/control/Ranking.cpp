//===- Ranking.cpp - Whether two selections agree -------------------------===//
#include "runtime/control/Ranking.h"

#include "runtime/control/FreezeSelect.h"
#include "runtime/core/File.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

absl::StatusOr<RankedHead> readHead(const Json &entry, const std::string &what) {
  RankedHead head;
  absl::StatusOr<int64_t> number = int64Of(entry, "head", what);
  if (!number.ok())
    return number.status();
  head.head = *number;
  head.chosen = entry.value("chosen", Json(true)) == true;
  if (entry.contains("site")) {
    absl::StatusOr<std::string> site = stringOf(entry, "site", what);
    if (!site.ok())
      return site.status();
    head.site = *std::move(site);
    head.layer = layerOf(head.site);
    return head;
  }
  absl::StatusOr<int64_t> layer = int64Of(entry, "layer", what);
  if (!layer.ok())
    return layer.status();
  head.layer = *layer;
  return head;
}

bool areSame(const RankedHead &one, const RankedHead &other) {
  const bool named = !one.site.empty() && !other.site.empty();
  return one.head == other.head && (named ? one.site == other.site : one.layer == other.layer);
}

/// Heads of `of` that `other` holds too.
Ranking sharedOf(const Ranking &of, const Ranking &other) {
  Ranking shared;
  for (const RankedHead &head : of)
    for (const RankedHead &match : other)
      if (areSame(head, match)) {
        shared.push_back(head);
        break;
      }
  return shared;
}

/// Of each head of `now`, its place in `then`.
std::vector<size_t> placesIn(const Ranking &now, const Ranking &then) {
  std::vector<size_t> places;
  for (const RankedHead &head : now)
    for (size_t place = 0; place < then.size(); ++place)
      if (areSame(head, then[place])) {
        places.push_back(place);
        break;
      }
  return places;
}

} // namespace

absl::StatusOr<Ranking> readRanking(const std::string &path) {
  absl::StatusOr<std::string> text = readFile(path, 64U << 20);
  if (!text.ok())
    return text.status();
  const std::string what = absl::StrCat("'", path, "'");
  absl::StatusOr<Json> json = parseJson(*text, what);
  if (!json.ok())
    return json.status();
  absl::StatusOr<const Json *> list = memberOf(*json, "heads", what);
  if (!list.ok() || !(*list)->is_array())
    return absl::DataLossError(absl::StrCat(what, ": expected {\"heads\": [{\"site\", \"head\", ..}]}"));
  Ranking ranking;
  for (const Json &entry : **list) {
    absl::StatusOr<RankedHead> head = readHead(entry, what);
    if (!head.ok())
      return head.status();
    std::erase_if(ranking, [&](const RankedHead &other) { return areSame(*head, other); });
    ranking.push_back(*std::move(head));
  }
  return ranking;
}

Agreement agreementOf(const Ranking &now, const Ranking &then) {
  const Ranking ours = sharedOf(now, then), theirs = sharedOf(then, now);
  const std::vector<size_t> places = placesIn(ours, theirs);
  Agreement result;
  result.heads = static_cast<int64_t>(ours.size());
  struct Counts {
    double heads = 0, now = 0, then = 0;
  };
  std::map<std::string, Counts> sites;
  double squares = 0, order = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const bool chosenThen = theirs[places[i]].chosen;
    result.chosen += ours[i].chosen;
    result.chosenThen += chosenThen;
    result.overlap += ours[i].chosen && chosenThen;
    Counts &site = sites[ours[i].site];
    site.heads += 1, site.now += ours[i].chosen, site.then += chosenThen;
    const double difference = static_cast<double>(i) - static_cast<double>(places[i]);
    squares += difference * difference;
    for (size_t j = 0; j < i; ++j)
      order += places[j] < places[i] ? 1 : -1;
  }
  for (const auto &[name, site] : sites)
    result.byChance += site.now * site.then / site.heads;
  if (const auto n = static_cast<double>(ours.size()); ours.size() > 1) {
    result.spearman = 1 - 6 * squares / (n * (n * n - 1));
    result.kendall = order / (n * (n - 1) / 2);
  }
  return result;
}

} // namespace weft::rt

//===- FreezeRecord.cpp - What freezing and pruning decided ---------------===//
#include "runtime/control/FreezeRecord.h"

#include "runtime/control/Pattern.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr const char *kWhat = "the decisions of the checkpoint";
constexpr double kKeep = 0.98;

/// An array of whole numbers under `key`.
absl::Status readNumbers(const Json &object, const char *key, std::vector<int64_t> &into) {
  absl::StatusOr<const Json *> list = memberOf(object, key, kWhat);
  if (!list.ok())
    return list.status();
  for (const Json &value : **list) {
    if (!value.is_number_integer())
      return absl::DataLossError(absl::StrCat(kWhat, ": '", key, "': expected whole numbers"));
    into.push_back(value.get<int64_t>());
  }
  return absl::OkStatus();
}

/// A yes or no that older records lack: then it is no.
absl::Status readFlag(const Json &object, const char *key, bool &into) {
  auto found = object.find(key);
  if (found == object.end())
    return absl::OkStatus();
  if (!found->is_boolean())
    return absl::DataLossError(absl::StrCat(kWhat, ": '", key, "': expected true or false"));
  into = found->get<bool>();
  return absl::OkStatus();
}

absl::Status readFrozen(const Json &sites, FreezeRecord &record) {
  for (const auto &[site, fields] : sites.items()) {
    FrozenHeads frozen;
    if (absl::Status status = readNumbers(fields, "heads", frozen.heads); !status.ok())
      return status;
    if (absl::Status status = readNumbers(fields, "windows", frozen.windows); !status.ok())
      return status;
    const bool rising =
        std::ranges::adjacent_find(frozen.heads, std::greater_equal<>()) == frozen.heads.end();
    if (frozen.heads.empty() || frozen.heads.front() < 0 || !rising ||
        frozen.heads.size() != frozen.windows.size() || std::ranges::min(frozen.windows) < 1)
      return absl::DataLossError(absl::StrCat(kWhat, ": frozen heads of '", site,
                                              "': expected rising numbers and a window of at least 1 each"));
    frozen.firstPlaces.assign(frozen.heads.size(), 0); // what older records mean
    if (fields.contains("first_places")) {
      frozen.firstPlaces.clear();
      if (absl::Status status = readNumbers(fields, "first_places", frozen.firstPlaces); !status.ok())
        return status;
    }
    const auto isGood = [](int64_t places) { return places >= 0 && places % kPlacesGrain == 0; };
    if (frozen.firstPlaces.size() != frozen.heads.size() || !std::ranges::all_of(frozen.firstPlaces, isGood))
      return absl::DataLossError(absl::StrCat(kWhat, ": 'first_places' of '", site,
                                              "': expected a multiple of ", kPlacesGrain, " for each of its ",
                                              frozen.heads.size(), " heads"));
    if (absl::Status status = readFlag(fields, "trained", frozen.trained); !status.ok())
      return status;
    if (absl::Status status = readFlag(fields, "dense", frozen.dense); !status.ok())
      return status;
    record.frozen[site] = std::move(frozen);
  }
  return absl::OkStatus();
}

absl::Status readStatement(const Json &fields, FreezeProgress &progress) {
  absl::StatusOr<int64_t> installed = int64Of(fields, "installed", kWhat);
  if (!installed.ok())
    return installed.status();
  progress.installed = *installed;
  absl::StatusOr<int64_t> tried = int64Of(fields, "tried", kWhat), due = int64Of(fields, "due", kWhat);
  if (!tried.ok() || !due.ok())
    return tried.ok() ? due.status() : tried.status();
  absl::StatusOr<double> spent = numberOf(fields, "spent", kWhat);
  if (!spent.ok())
    return spent.status();
  progress.tried = *tried;
  progress.due = *due;
  progress.spent = *spent;
  if (absl::Status status = readFlag(fields, "done", progress.done); !status.ok())
    return status;
  progress.trigger = fields.value("trigger", Json());
  for (const Json &head : fields.value("planned", Json::array())) {
    absl::StatusOr<std::string> site = stringOf(head, "site", kWhat);
    absl::StatusOr<int64_t> number = int64Of(head, "head", kWhat);
    if (!site.ok() || !number.ok())
      return site.ok() ? number.status() : site.status();
    progress.planned.push_back({layerOf(*site), *site, *number});
  }
  return absl::OkStatus();
}

/// Reports as runs wrote them: objects, with their statement and their heads.
absl::Status checkEvents(const Json &events) {
  for (const Json &event : events) {
    const bool good = events.is_array() && event.is_object() &&
                      (!event.contains("statement") || event["statement"].is_string()) &&
                      (!event.contains("heads") || event["heads"].is_array());
    if (!good)
      return absl::DataLossError(
          absl::StrCat(kWhat, ": 'events': expected objects with a word `statement` and a list `heads`"));
  }
  return absl::OkStatus();
}

} // namespace

bool LossTrigger::add(double loss) {
  averages.push_back(averages.empty() ? loss : kKeep * averages.back() + (1 - kKeep) * loss);
  if (static_cast<int64_t>(averages.size()) <= span)
    return false;
  while (static_cast<int64_t>(averages.size()) > span + 1)
    averages.pop_front();
  return averages.front() - averages.back() < limit * averages.front();
}

Json LossTrigger::toJson() const { return std::vector<double>(averages.begin(), averages.end()); }

absl::Status LossTrigger::restore(const Json &saved) {
  averages.clear();
  if (saved.is_null())
    return absl::OkStatus();
  for (const Json &value : saved) {
    if (!value.is_number())
      return absl::DataLossError(absl::StrCat(kWhat, ": 'trigger': expected numbers"));
    averages.push_back(value.get<double>());
  }
  return absl::OkStatus();
}

bool FreezeRecord::isLive(const std::string &site, int64_t head) const {
  auto holds = [&](const std::vector<int64_t> &heads) {
    return std::binary_search(heads.begin(), heads.end(), head);
  };
  if (auto found = frozen.find(site); found != frozen.end() && holds(found->second.heads))
    return false;
  auto found = pruned.find(site);
  return found == pruned.end() || !holds(found->second);
}

std::vector<int64_t> FreezeRecord::liveHeads(const std::string &site, int64_t heads) const {
  std::vector<int64_t> live;
  for (int64_t head = 0; head < heads; ++head)
    if (isLive(site, head))
      live.push_back(head);
  return live;
}

Json toJson(const FreezeRecord &record) {
  Json frozen = Json::object(), statements = Json::object();
  for (const auto &[site, heads] : record.frozen) {
    frozen[site] = {{"heads", heads.heads},
                    {"windows", heads.windows},
                    {"trained", heads.trained},
                    {"dense", heads.dense}};
    if (!heads.firstPlaces.empty())
      frozen[site]["first_places"] = heads.firstPlaces;
  }
  for (const auto &[name, progress] : record.statements) {
    Json planned = Json::array();
    for (const NamedHead &head : progress.planned)
      planned.push_back({{"site", head.site}, {"head", head.head}});
    statements[name] = {{"installed", progress.installed}, {"tried", progress.tried}, {"due", progress.due},
                        {"spent", progress.spent},         {"done", progress.done},   {"planned", planned},
                        {"trigger", progress.trigger}};
  }
  return {{"positions", record.positions},
          {"frozen", frozen},
          {"pruned", record.pruned},
          {"statements", statements},
          {"events", record.events}};
}

absl::StatusOr<FreezeRecord> readFreezeRecord(const Json &decisions) {
  FreezeRecord record;
  if (!decisions.is_object() || !decisions.contains("freeze"))
    return record;
  const Json &json = decisions["freeze"];
  absl::StatusOr<int64_t> positions = int64Of(json, "positions", kWhat);
  if (!positions.ok())
    return positions.status();
  record.positions = *positions;
  for (const char *key : {"frozen", "pruned", "statements", "events"})
    if (absl::StatusOr<const Json *> member = memberOf(json, key, kWhat); !member.ok())
      return member.status();
  if (absl::Status status = readFrozen(json["frozen"], record); !status.ok())
    return status;
  for (const auto &[site, heads] : json["pruned"].items())
    if (absl::Status status = readNumbers(json["pruned"], site.c_str(), record.pruned[site]); !status.ok())
      return status;
  for (const auto &[name, fields] : json["statements"].items())
    if (absl::Status status = readStatement(fields, record.statements[name]); !status.ok())
      return status;
  if (absl::Status status = checkEvents(json["events"]); !status.ok())
    return status;
  record.events = json["events"];
  return record;
}

} // namespace weft::rt

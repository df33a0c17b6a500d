//===- Freeze.cpp - When heads are frozen or pruned -----------------------===//

#include "tools/weft/Freeze.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

using namespace weft;
using Rule = lang::FreezeRule;

namespace {

constexpr double kLatestTrigger = 0.75, kTriggerSpan = 0.05;
/// Of a budget: groups that are tried one after another, and how often.
constexpr int64_t kBudgetGroups = 4;
constexpr double kBudgetEvery = 0.02;

/// floor(share x steps): 0.29 of 100 is 29, though 0.29 x 100 is less in binary.
int64_t floorOf(double share, int64_t total) {
  return static_cast<int64_t>(std::floor(share * static_cast<double>(total) + 1e-9));
}

int64_t stepOf(const lang::When &when, int64_t total) {
  return when.fraction ? floorOf(when.amount, total) : static_cast<int64_t>(when.amount);
}

/// The step of the next event of `rule`, or none.
std::optional<int64_t> nextStep(const Rule &rule, const rt::FreezeProgress &progress, int64_t total) {
  if (progress.done)
    return std::nullopt;
  switch (rule.schedule) {
  case Rule::Schedule::Once:
    return stepOf(rule.at, total);
  case Rule::Schedule::Groups: {
    const double from = rule.groupsFrom.amount, to = rule.groupsTo.amount;
    const auto last = static_cast<double>(std::max<int64_t>(rule.groups - 1, 1));
    return floorOf(from + (to - from) * static_cast<double>(progress.installed) / last, total);
  }
  case Rule::Schedule::Budget:
    return stepOf(rule.at, total) + progress.tried * std::max<int64_t>(1, floorOf(kBudgetEvery, total));
  case Rule::Schedule::Trigger:
    return progress.due >= 0 ? progress.due : floorOf(kLatestTrigger, total);
  }
  return std::nullopt;
}

/// `plans.weft:3:1: plan late: `freeze`: `.
std::string placeOf(const Program &program, const Statement &statement) {
  return absl::StrCat(program.sources.describe(statement.rule->place), ": plan ", statement.plan->name, ": `",
                      statement.rule->prune ? "prune" : "freeze", "`: ");
}

/// The last event that is sure to come must come before the last step: what is
/// decided there, no step would use.
absl::Status checkReached(const Program &program, const Statement &statement, int64_t total) {
  const Rule &rule = *statement.rule;
  if (rule.schedule == Rule::Schedule::Trigger)
    return absl::OkStatus();
  const int64_t step = stepOf(rule.schedule == Rule::Schedule::Groups ? rule.groupsTo : rule.at, total);
  if (step < total)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(placeOf(program, statement), "it comes after step ", step,
                                                 ", and the run ends with step ", total,
                                                 ": name a step before ", total));
}

/// The heads of a file as sites of the plan.
absl::Status readPlanned(const Statement &statement, const std::string &folder,
                         rt::FreezeProgress &progress) {
  std::filesystem::path path = statement.rule->file;
  if (path.is_relative() && !std::filesystem::exists(path))
    path = std::filesystem::path(folder) / path;
  absl::StatusOr<std::vector<rt::NamedHead>> heads = rt::readHeads(path.string());
  if (!heads.ok())
    return heads.status();
  for (rt::NamedHead &head : *heads) {
    const lang::HeadSite *site = nullptr;
    for (const lang::HeadSite &known : statement.plan->sites)
      if (head.site.empty() ? rt::layerOf(known.path) == head.layer : known.path == head.site)
        site = &known;
    const std::string place = head.site.empty() ? absl::StrCat("layer ", head.layer) : head.site;
    if (!site || head.head < 0 || head.head >= site->heads)
      return absl::InvalidArgumentError(absl::StrCat(
          "plan ", statement.plan->name, ": '", path.string(), "' names head ", head.head, " of ", place,
          site ? absl::StrCat(", which has ", site->heads, " heads") : ", which the model has not",
          "; is it of another model?"));
    head.site = site->path;
  }
  if (heads->empty())
    return absl::InvalidArgumentError(
        absl::StrCat("plan ", statement.plan->name, ": '", path.string(), "' names no chosen head"));
  progress.planned = *std::move(heads);
  return absl::OkStatus();
}

/// `structured` deals patterns among several heads.
absl::Status checkDealt(const Program &program, const Statement &statement,
                        const rt::FreezeProgress &progress) {
  const Rule &rule = *statement.rule;
  if (rule.prune || rule.pattern != "structured")
    return absl::OkStatus();
  const auto known = rule.amount == Rule::Amount::Named   ? static_cast<int64_t>(rule.heads.size())
                     : rule.amount == Rule::Amount::Count ? rule.count
                     : rule.amount == Rule::Amount::File  ? static_cast<int64_t>(progress.planned.size())
                                                          : 2;
  if (known >= 2)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(placeOf(program, statement), "pattern = structured gives a head another chosen head's ",
                   "pattern, and it takes one head alone: name two or more, or say pattern = mean"));
}

} // namespace

std::vector<Statement> weft::statementsOf(const Program &program) {
  std::vector<Statement> statements;
  for (const lang::Plan &plan : program.plans)
    for (size_t n = 0; n < plan.freezes.size(); ++n)
      statements.push_back({absl::StrCat(plan.name, "/", n), &plan, &plan.freezes[n]});
  return statements;
}

bool weft::needsCalibration(const Rule &rule) {
  const bool given = rule.amount == Rule::Amount::Named || rule.amount == Rule::Amount::File;
  const bool known =
      rule.prune || rule.pattern == "file" || rule.pattern == "uniform" || rule.pattern == "zero";
  return !given || !known;
}

CalibrationNeed weft::calibrationNeed(const Program &program) {
  CalibrationNeed need;
  for (const Statement &statement : statementsOf(program)) {
    if (needsCalibration(*statement.rule))
      need.rows = std::max(need.rows, statement.rule->calibrateRows);
    need.budget |= statement.rule->schedule == Rule::Schedule::Budget;
  }
  if (need.budget)
    need.rows = std::max<int64_t>(need.rows, 16);
  return need;
}

absl::Status weft::prepareFreezing(const Program &program, const std::string &folder,
                                   std::optional<int64_t> totalSteps, rt::FreezeRecord &record) {
  for (const Statement &statement : statementsOf(program)) {
    rt::FreezeProgress &progress = record.statements[statement.name];
    if (progress.done)
      continue;
    if (totalSteps)
      if (absl::Status status = checkReached(program, statement, *totalSteps); !status.ok())
        return status;
    if (statement.rule->amount == Rule::Amount::File && progress.planned.empty())
      if (absl::Status status = readPlanned(statement, folder, progress); !status.ok())
        return status;
    if (absl::Status status = checkDealt(program, statement, progress); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

bool weft::hasBegun(const rt::FreezeProgress &progress) {
  return progress.done || progress.installed > 0 || progress.tried > 0 || progress.due >= 0 ||
         !progress.planned.empty() || !progress.trigger.is_null();
}

absl::Status weft::refuseUndecided(const Program &program) {
  for (const Statement &statement : statementsOf(program))
    if (!program.freeze.statements.contains(statement.name))
      return absl::InvalidArgumentError(absl::StrCat(
          placeOf(program, statement),
          "which heads leave is decided while a run trains, and how the model is ",
          "without them is not known here: train with the plan and name the run, or carry the plan out on a ",
          "run with `weft plan apply RUN PLAN --out DIR`"));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Program>> weft::loadDecided(const Request &request) {
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!program.ok())
    return program;
  absl::Status status = refuseUndecided(**program);
  return status.ok() ? std::move(program) : absl::StatusOr<std::unique_ptr<Program>>(status);
}

std::optional<FreezeEvent> weft::nextEvent(const Program &program, const rt::FreezeRecord &record,
                                           int64_t totalSteps) {
  std::optional<FreezeEvent> next;
  for (const Statement &statement : statementsOf(program)) {
    auto found = record.statements.find(statement.name);
    const rt::FreezeProgress progress =
        found == record.statements.end() ? rt::FreezeProgress() : found->second;
    std::optional<int64_t> step = nextStep(*statement.rule, progress, totalSteps);
    if (step && (!next || *step < next->step))
      next = FreezeEvent{statement, *step};
  }
  return next;
}

rt::LossTrigger weft::lossTrigger(const Rule &rule, int64_t totalSteps) {
  return rt::LossTrigger(std::max<int64_t>(1, floorOf(kTriggerSpan, totalSteps)), rule.limit);
}

rt::OrderedJson weft::headsFile(const rt::FreezeRecord &record) {
  std::map<std::string, const rt::Json *> last; // by statement
  std::vector<std::string> order;
  for (const rt::Json &event : record.events) {
    const std::string name = event.value("statement", std::string());
    if (event.value("heads", rt::Json::array()).empty())
      continue;
    if (!last.contains(name))
      order.push_back(name);
    last[name] = &event["heads"];
  }
  rt::OrderedJson heads = rt::OrderedJson::array();
  for (const std::string &name : order)
    for (const rt::Json &head : *last[name])
      heads.push_back(rt::OrderedJson(head));
  return {{"heads", heads}};
}

std::vector<rt::NamedHead> weft::groupOf(const Rule &rule, const rt::FreezeProgress &progress) {
  const auto count = static_cast<int64_t>(progress.planned.size());
  const int64_t groups = rule.schedule == Rule::Schedule::Groups ? rule.groups
                         : rule.schedule == Rule::Schedule::Budget
                             ? std::min(kBudgetGroups, std::max<int64_t>(count, 1))
                             : 1;
  // Of a schedule that was edited since, more may be installed than it has groups.
  const int64_t installed = std::clamp<int64_t>(progress.installed, 0, groups);
  const auto begin = progress.planned.begin();
  return {begin + count * installed / groups, begin + count * std::min(installed + 1, groups) / groups};
}

bool weft::isLastGroup(const Rule &rule, const rt::FreezeProgress &progress) {
  const auto count = static_cast<int64_t>(progress.planned.size());
  if (rule.schedule == Rule::Schedule::Groups)
    return progress.installed >= rule.groups;
  if (rule.schedule == Rule::Schedule::Budget)
    return progress.installed >= std::min(kBudgetGroups, count);
  return true;
}

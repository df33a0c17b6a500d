//===- FreezeDrawn.cpp - Plans that are timed before they are decided ------===//

#include "tools/weft/Freeze.h"
#include "tools/weft/FreezeTables.h"

#include "runtime/core/Philox.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

using namespace weft;
using Rule = lang::FreezeRule;

namespace {

/// Takes the heads of one statement as the dice fall.
class Drawer {
public:
  Drawer(const Program &program, const Statement &statement, rt::FreezeRecord &record)
      : name(statement.name), rule(*statement.rule), plan(*statement.plan), record(record),
        philox(rule.seed.value_or(program.recipe ? program.recipe->seed : 0), "freeze/drawn") {}

  /// The number of heads that leave.
  absl::StatusOr<int64_t> go();

private:
  std::pair<const lang::HeadSite *, int64_t> placeOf(int64_t number) const {
    auto after = std::upper_bound(plan.firstHead.begin(), plan.firstHead.end(), number);
    const auto site = static_cast<size_t>(after - plan.firstHead.begin()) - 1;
    return {&plan.sites[site], number - plan.firstHead[site]};
  }
  std::vector<int64_t> drawn() const;
  std::vector<int64_t> planned() const;
  absl::Status take(int64_t number);

  const std::string &name;
  const Rule &rule;
  const lang::Plan &plan;
  rt::FreezeRecord &record;
  rt::Philox philox;
};

/// The addressed heads that are left, in a drawn order, as many as the statement takes.
std::vector<int64_t> Drawer::drawn() const {
  std::vector<std::pair<double, int64_t>> order;
  for (int64_t number : rule.heads)
    if (auto [site, head] = placeOf(number); record.isLive(site->path, head))
      order.emplace_back(philox.uniform(static_cast<uint64_t>(number)), number);
  std::sort(order.begin(), order.end());
  const auto all = static_cast<int64_t>(order.size());
  const int64_t wanted = rule.amount == Rule::Amount::Share
                             ? std::llrint(rule.share * static_cast<double>(all))
                         : rule.amount == Rule::Amount::Count ? rule.count
                                                              : all;
  std::map<const lang::HeadSite *, int64_t> taken;
  std::vector<int64_t> numbers;
  for (auto [value, number] : order) {
    int64_t &before = rule.perLayer ? taken[placeOf(number).first] : taken[nullptr];
    if (before < wanted)
      numbers.push_back(number), ++before;
  }
  return numbers;
}

/// The heads of a file, by number.
std::vector<int64_t> Drawer::planned() const {
  std::vector<int64_t> numbers;
  for (const rt::NamedHead &head : record.statements.at(name).planned)
    for (size_t site = 0; site < plan.sites.size(); ++site)
      if (plan.sites[site].path == head.site)
        numbers.push_back(plan.firstHead[site] + head.head);
  return numbers;
}

absl::Status Drawer::take(int64_t number) {
  auto [site, head] = placeOf(number);
  if (rule.prune || rule.pattern == "zero") {
    std::vector<int64_t> &pruned = record.pruned[site->path];
    pruned.insert(std::upper_bound(pruned.begin(), pruned.end(), head), head);
    return absl::OkStatus();
  }
  auto found = plan.fixedWindows.find(site->path);
  const std::vector<int64_t> &windows = found == plan.fixedWindows.end() ? site->windows : found->second;
  return enterFrozen({site->path, head}, {std::min(windows[static_cast<size_t>(head)], rt::kNoWindow), 0},
                     rule.trained, rule.dense, record);
}

absl::StatusOr<int64_t> Drawer::go() {
  const std::vector<int64_t> numbers = rule.amount == Rule::Amount::File ? planned() : drawn();
  for (int64_t number : numbers)
    if (absl::Status status = take(number); !status.ok())
      return status;
  return static_cast<int64_t>(numbers.size());
}

} // namespace

absl::StatusOr<std::unique_ptr<Program>> weft::loadDrawn(const Request &request) {
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!program.ok())
    return program;
  const std::vector<Statement> statements = statementsOf(**program);
  if (statements.empty() || !(*program)->freeze.statements.empty())
    return loadDecided(request);
  rt::FreezeRecord record = (*program)->freeze;
  const std::string folder = std::filesystem::path(request.path).parent_path().string();
  if (absl::Status status = prepareFreezing(**program, folder, std::nullopt, record); !status.ok())
    return status;
  for (const Statement &statement : statements) {
    absl::StatusOr<int64_t> heads = Drawer(**program, statement, record).go();
    if (!heads.ok())
      return heads.status();
    record.statements[statement.name].done = true;
    llvm::errs() << "weft: remark: plan " << statement.plan->name << ": which heads are "
                 << (statement.rule->prune ? "pruned" : "frozen") << " is decided while a run trains; here "
                 << *heads << " drawn ones are"
                 << (statement.rule->prune ? "" : ", with patterns that weigh all keys alike") << "\n";
  }
  adoptRecord(**program, std::move(record));
  return program;
}

//===- Resume.cpp - Plans of a run that goes on ----------------------------===//

#include "tools/weft/Resume.h"

#include "tools/weft/Freeze.h"

#include "runtime/train/Checkpoint.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>

using namespace weft;

namespace {

constexpr const char *kAdvice =
    "a run keeps what it was trained with: put it back, or begin anew from its weights with "
    "`weft train MODEL.weft --from RUN`";

template <typename Rule>
std::vector<std::string> textsOf(const Program &program, const std::vector<Rule> &rules) {
  std::vector<std::string> texts;
  for (const Rule &rule : rules)
    texts.emplace_back(program.sources.textAt(rule.place));
  return texts;
}

class Comparison {
public:
  Comparison(const Program &before, const Program &now, const rt::CheckpointInfo &info,
             const rt::FreezeRecord &record)
      : before(before), now(now), info(info), record(record) {}

  absl::Status compare(const lang::Plan &old);
  std::vector<std::string> notes;

private:
  static bool same(const std::string &left, const std::string &right) { return sameWords(left, right, ""); }
  absl::Status changed(const std::string &plan, const std::string &statement,
                       const std::string &found) const {
    return absl::FailedPreconditionError(absl::StrCat("plan ", plan, ": `", statement,
                                                      "` was in force at step ", info.step, ", run.weft has ",
                                                      found, ": ", kAdvice));
  }
  absl::Status compareAll(const std::string &plan, const std::vector<std::string> &old,
                          const std::vector<std::string> &given) const;
  absl::Status compareFreezes(const lang::Plan &old, const lang::Plan &given);

  const Program &before, &now;
  const rt::CheckpointInfo &info;
  const rt::FreezeRecord &record;
};

absl::Status Comparison::compareAll(const std::string &plan, const std::vector<std::string> &old,
                                    const std::vector<std::string> &given) const {
  for (size_t n = 0; n < old.size(); ++n)
    if (n >= given.size() || !same(old[n], given[n]))
      return changed(plan, old[n], n < given.size() ? absl::StrCat("`", given[n], "`") : "no such statement");
  if (given.size() > old.size())
    return absl::FailedPreconditionError(absl::StrCat(
        "plan ", plan, ": `", given[old.size()], "` was added to a plan that was in force at step ",
        info.step, ": put it into a plan of its own, and resume with --plan"));
  return absl::OkStatus();
}

absl::Status Comparison::compareFreezes(const lang::Plan &old, const lang::Plan &given) {
  const std::vector<std::string> olds = textsOf(before, old.freezes), news = textsOf(now, given.freezes);
  for (size_t n = 0; n < std::max(olds.size(), news.size()); ++n) {
    const std::string was = n < olds.size() ? olds[n] : "", is = n < news.size() ? news[n] : "";
    if (same(was, is))
      continue;
    auto found = record.statements.find(absl::StrCat(old.name, "/", n));
    if (found != record.statements.end() && hasBegun(found->second))
      return changed(old.name, was, is.empty() ? "no such statement" : absl::StrCat("`", is, "`"));
    notes.push_back(absl::StrCat("plan ", old.name, ": ",
                                 was.empty() ? "added" : absl::StrCat("`", was, "` had not begun and is now"),
                                 " ", is.empty() ? "left out" : absl::StrCat("`", is, "`")));
  }
  return absl::OkStatus();
}

absl::Status Comparison::compare(const lang::Plan &old) {
  auto given = std::ranges::find(now.plans, old.name, &lang::Plan::name);
  if (given == now.plans.end())
    return absl::FailedPreconditionError(absl::StrCat("plan ", old.name, " was in force at step ", info.step,
                                                      ", run.weft has none of that name: ", kAdvice));
  if (absl::Status status = compareAll(old.name, textsOf(before, old.drops), textsOf(now, given->drops));
      !status.ok())
    return status;
  if (absl::Status status = compareAll(old.name, textsOf(before, old.windows), textsOf(now, given->windows));
      !status.ok())
    return status;
  return compareFreezes(old, *given);
}

} // namespace

absl::StatusOr<std::vector<std::string>> weft::checkResumedPlans(const Program &now, const std::string &run) {
  absl::StatusOr<std::string> checkpoint = rt::findCheckpoint(run);
  if (absl::IsNotFound(checkpoint.status()))
    return std::vector<std::string>();
  if (!checkpoint.ok())
    return checkpoint.status();
  absl::StatusOr<rt::CheckpointInfo> info = rt::readCheckpointInfo(*checkpoint);
  if (!info.ok())
    return info.status();
  absl::StatusOr<rt::FreezeRecord> record = rt::readFreezeRecord(info->decisions);
  if (!record.ok())
    return record.status();
  Request request;
  request.path = *checkpoint + "/run.weft";
  request.text = info->source;
  request.fromRun = request.needsRecipe = request.quiet = true;
  absl::StatusOr<std::unique_ptr<Program>> before = loadProgram(request);
  if (!before.ok())
    return before.status();
  Comparison comparison(**before, now, *info, *record);
  for (const lang::Plan &plan : (*before)->plans)
    if (absl::Status status = comparison.compare(plan); !status.ok())
      return status;
  return std::move(comparison.notes);
}

#include "frontend/Plan.h"

#include "frontend/PlanRead.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace weft::lang {
namespace {

/// All statements of a plan and of those that it uses.
struct Statements {
  std::vector<ReadDrop> drops;
  std::vector<ReadWindows> windows;
  std::vector<ReadFreeze> freezes;
  std::string text;
};

class PlanChecker {
public:
  PlanChecker(const ast::File &file, const SourceFiles &sources, const Model &model, Diagnostics &diagnostics)
      : file(file), sources(sources), model(model), diagnostics(diagnostics), reader(sources, diagnostics) {}

  std::optional<Plan> check(std::string_view name);

private:
  void collect(const ast::Plan &plan, std::vector<const ast::Plan *> &open);
  void collectUse(const ast::Clause &clause, std::vector<const ast::Plan *> &open);
  void settleHeads(Plan &plan);
  template <typename Rule> void settle(std::vector<Rule> &rules, const char *verb);
  void checkFreezePrune(const Plan &plan);
  void checkCounts(const Plan &plan);
  void checkListed(const Plan &plan);
  void fillFixed(Plan &plan);
  std::string headName(const Plan &plan, int64_t head) const;
  size_t siteOf(const Plan &plan, int64_t head) const;

  const ast::File &file;
  const SourceFiles &sources;
  const Model &model;
  Diagnostics &diagnostics;
  PlanReader reader;
  Statements all;
  const Plan *current = nullptr; // while heads are settled, to name them
};

size_t PlanChecker::siteOf(const Plan &plan, int64_t head) const {
  auto after = std::upper_bound(plan.firstHead.begin(), plan.firstHead.end(), head);
  return static_cast<size_t>(after - plan.firstHead.begin()) - 1;
}

std::string PlanChecker::headName(const Plan &plan, int64_t head) const {
  size_t site = siteOf(plan, head);
  const std::string &path = plan.sites[site].path;
  return absl::StrCat(path, path.empty() ? "" : ".", "heads[", head - plan.firstHead[site], "]");
}

void PlanChecker::collectUse(const ast::Clause &clause, std::vector<const ast::Plan *> &open) {
  const ast::Term *name = clause.phrases.size() == 1 && clause.phrases[0].terms.size() == 1
                              ? &clause.phrases[0].terms[0]
                              : nullptr;
  if (!name || name->kind != ast::Term::Kind::Word) {
    diagnostics.error(Code::W0404, clause.place, "`use` in a plan expects the name of another plan");
    return;
  }
  std::vector<std::string> names;
  for (const ast::Plan &plan : file.plans)
    names.push_back(plan.name.text);
  const ast::Plan *other = file.findPlan(name->text);
  if (!other) {
    std::string near = nearest(name->text, names);
    diagnostics
        .error(Code::W0401, name->place,
               absl::StrCat("there is no plan `", name->text, "`; there are ", listed(names)))
        .advise(near.empty() ? std::string() : absl::StrCat("did you mean `", near, "`?"));
    return;
  }
  if (std::find(open.begin(), open.end(), other) != open.end()) {
    diagnostics.error(Code::W0416, name->place, absl::StrCat("plan `", name->text, "` uses itself"))
        .note(other->name.place, "it starts here");
    return;
  }
  collect(*other, open);
}

void PlanChecker::collect(const ast::Plan &plan, std::vector<const ast::Plan *> &open) {
  if (plan.model.text != model.name) {
    diagnostics
        .error(Code::W0402, plan.model.place,
               absl::StrCat("plan `", plan.name.text, "` is for model ", plan.model.text,
                            ", and the model is ", model.name))
        .advise("write a plan `for` this model, or name the other model");
    return;
  }
  open.push_back(&plan);
  for (const ast::Clause &clause : plan.clauses) {
    const std::string &verb = clause.verb.text;
    if (verb == "use") {
      collectUse(clause, open);
    } else if (verb == "windows") {
      if (std::optional<ReadWindows> read = reader.windows(clause))
        all.windows.push_back(std::move(*read));
    } else if (verb == "freeze" || verb == "prune") {
      if (std::optional<ReadFreeze> read = reader.freeze(clause, verb == "prune"))
        all.freezes.push_back(std::move(*read));
    } else if (verb == "drop") {
      if (std::optional<ReadDrop> read = reader.drop(clause))
        all.drops.push_back(std::move(*read));
    } else {
      std::vector<std::string> verbs = {"use", "drop", "windows", "freeze", "prune"};
      std::string near = nearest(verb, verbs);
      diagnostics
          .error(Code::W0403, verb.empty() ? clause.place : clause.verb.place,
                 absl::StrCat("a plan has no statement `", verb, "`; its statements are ", listed(verbs)))
          .advise(near.empty() ? std::string() : absl::StrCat("did you mean `", near, "`?"));
    }
  }
  open.pop_back();
  absl::StrAppend(&all.text, all.text.empty() ? "" : "\n\n", std::string(sources.textAt(plan.place)));
}

std::optional<Plan> PlanChecker::check(std::string_view name) {
  int before = diagnostics.errorCount();
  const ast::Plan *tree = file.findPlan(name);
  if (!tree) {
    std::vector<std::string> names;
    for (const ast::Plan &plan : file.plans)
      names.push_back(plan.name.text);
    const std::string near = nearest(name, names);
    diagnostics
        .errorAnywhere(Code::W0401, absl::StrCat("there is no plan `", std::string(name), "`; there are ",
                                                 names.empty() ? std::string("none") : listed(names)))
        .advise(!near.empty()   ? absl::StrCat("did you mean `", near, "`?")
                : names.empty() ? "plans of another file are named FILE:PLAN, such as models/plans.weft:fixed"
                                : "");
    return std::nullopt;
  }
  std::vector<const ast::Plan *> open;
  collect(*tree, open);
  std::set<std::string, std::less<>> dropped;
  std::optional<Model> after = applyDrops(file, sources, model, all.drops, dropped, diagnostics);
  if (!after) // addresses mean the model after dropping: nothing more can be said
    return std::nullopt;
  absl::StatusOr<Outline> outline = outlineOf(*after, dropped);
  if (!outline.ok()) {
    diagnostics.error(
        Code::W0421, tree->place,
        absl::StrCat("the model has no meaning at this depth: ", std::string(outline.status().message())));
    return std::nullopt;
  }
  Plan plan;
  plan.name = tree->name.text;
  plan.model = model.name;
  plan.text = std::move(all.text);
  for (ReadDrop &drop : all.drops) {
    if (drop.rule.newDepth != drop.rule.oldDepth)
      plan.depthSetting = depthSettingOf(model, drop.rule.layer);
    plan.drops.push_back(std::move(drop.rule));
  }
  plan.sites = outline->sites;
  int64_t heads = 0;
  for (const HeadSite &site : plan.sites) {
    plan.firstHead.push_back(heads);
    heads += site.heads;
  }
  AddressResolver resolver(*outline, plan.firstHead, sources, diagnostics);
  for (ReadWindows &read : all.windows)
    if (std::optional<std::vector<int64_t>> found = resolver.heads(read.address, read.rule.place)) {
      read.rule.addressed = std::move(*found);
      plan.windows.push_back(std::move(read.rule));
      if (read.hierarchyGiven) {
        std::vector<int64_t> count(plan.sites.size());
        for (int64_t head : plan.windows.back().addressed)
          ++count[siteOf(plan, head)];
        for (size_t site = 0; site < count.size(); ++site)
          if (count[site] == 1) {
            diagnostics.error(
                Code::W0415, plan.windows.back().place,
                absl::StrCat("`hierarchy` joins heads of a layer, and the address names one head of `",
                             plan.sites[site].path, "`"));
            break;
          }
      }
    }
  for (ReadFreeze &read : all.freezes) {
    // A list from a file names its heads itself.
    if (std::optional<std::vector<int64_t>> found = resolver.heads(read.address, read.rule.place)) {
      if (read.rule.amount != FreezeRule::Amount::File)
        read.rule.addressed = std::move(*found);
      plan.freezes.push_back(std::move(read.rule));
    }
  }
  settleHeads(plan);
  if (diagnostics.errorCount() > before)
    return std::nullopt;
  fillFixed(plan);
  return plan;
}

template <typename Rule> void PlanChecker::settle(std::vector<Rule> &rules, const char *verb) {
  for (Rule &rule : rules)
    rule.heads = rule.addressed;
  for (size_t i = 0; i < rules.size(); ++i)
    for (size_t j = i + 1; j < rules.size(); ++j) {
      const std::vector<int64_t> &a = rules[i].addressed, &b = rules[j].addressed;
      std::vector<int64_t> both;
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
      if (both.empty())
        continue;
      bool first = both.size() == a.size(), second = both.size() == b.size();
      if (first == second) {
        diagnostics
            .error(Code::W0411, rules[j].place,
                   absl::StrCat("two `", verb, "` statements take ", headName(*current, both[0]),
                                first ? ", and both name the same heads"
                                      : ", and neither address lies inside the other"))
            .note(rules[i].place, "the other one is here")
            .advise("narrow one of them: the narrower address wins");
        continue;
      }
      std::vector<int64_t> &wide = first ? rules[j].heads : rules[i].heads, rest;
      std::set_difference(wide.begin(), wide.end(), both.begin(), both.end(), std::back_inserter(rest));
      wide = std::move(rest);
    }
}

void PlanChecker::checkFreezePrune(const Plan &plan) {
  for (const FreezeRule &freeze : plan.freezes)
    for (const FreezeRule &prune : plan.freezes) {
      if (freeze.prune || !prune.prune)
        continue;
      std::vector<int64_t> both;
      std::set_intersection(freeze.addressed.begin(), freeze.addressed.end(), prune.addressed.begin(),
                            prune.addressed.end(), std::back_inserter(both));
      if (!both.empty())
        diagnostics
            .error(Code::W0412, prune.place,
                   absl::StrCat("`prune` and `freeze` both take ", headName(plan, both[0]), " (", both.size(),
                                both.size() == 1 ? " head)" : " heads)"))
            .note(freeze.place, "`freeze` is here")
            .advise("give the two statements addresses that share no head");
    }
}

void PlanChecker::checkCounts(const Plan &plan) {
  for (const FreezeRule &rule : plan.freezes)
    if (rule.amount == FreezeRule::Amount::Count && rule.count > static_cast<int64_t>(rule.heads.size()))
      diagnostics.error(Code::W0420, rule.place,
                        absl::StrCat("`", rule.prune ? "prune" : "freeze", "` asks for ", rule.count,
                                     " heads of ", rule.heads.size()));
}

void PlanChecker::checkListed(const Plan &plan) {
  for (const WindowsRule &rule : plan.windows) {
    if (rule.kind != WindowsRule::Kind::Listed)
      continue;
    std::vector<int64_t> count(plan.sites.size());
    for (int64_t head : rule.addressed)
      ++count[siteOf(plan, head)];
    for (size_t site = 0; site < count.size(); ++site)
      if (count[site] && count[site] != static_cast<int64_t>(rule.windows.size())) {
        diagnostics
            .error(Code::W0414, rule.place,
                   absl::StrCat("the list has ", rule.windows.size(), " windows, and the address names ",
                                count[site], " heads of `", plan.sites[site].path, "`"))
            .advise("write one window a head");
        break;
      }
  }
}

void PlanChecker::settleHeads(Plan &plan) {
  current = &plan;
  settle(plan.windows, "windows");
  std::vector<FreezeRule> kinds[2];
  for (FreezeRule &rule : plan.freezes)
    kinds[rule.prune].push_back(std::move(rule));
  settle(kinds[0], "freeze");
  settle(kinds[1], "prune");
  plan.freezes = std::move(kinds[0]);
  for (FreezeRule &rule : kinds[1])
    plan.freezes.push_back(std::move(rule));
  checkFreezePrune(plan);
  checkCounts(plan);
  checkListed(plan);
}

void PlanChecker::fillFixed(Plan &plan) {
  for (const WindowsRule &rule : plan.windows) {
    std::vector<int64_t> taken(plan.sites.size()); // heads of the address met so far, by site
    std::set<int64_t> inForce(rule.heads.begin(), rule.heads.end());
    for (int64_t head : rule.addressed) {
      size_t site = siteOf(plan, head);
      std::vector<int64_t> &windows = plan.fixedWindows[plan.sites[site].path];
      if (windows.empty())
        windows = plan.sites[site].windows;
      size_t place = static_cast<size_t>(taken[site]++);
      if (!inForce.count(head) || rule.from.amount > 0)
        continue;
      size_t slot = static_cast<size_t>(head - plan.firstHead[site]);
      if (rule.kind == WindowsRule::Kind::Fixed)
        windows[slot] = rule.windows[0];
      else if (rule.kind == WindowsRule::Kind::Listed)
        windows[slot] = rule.windows[place];
    }
  }
}

} // namespace

std::optional<Plan> checkPlan(const ast::File &file, const SourceFiles &sources, std::string_view name,
                              const Model &model, Diagnostics &diagnostics) {
  return PlanChecker(file, sources, model, diagnostics).check(name);
}

void checkPlanAgainst(const Plan &plan, int64_t positions, int64_t microBatches, Diagnostics &diagnostics) {
  for (const WindowsRule &rule : plan.windows) {
    for (int64_t window : rule.windows)
      if (window != kFullWindow && window > positions) {
        diagnostics.warning(Code::W0424, rule.place,
                            absl::StrCat("the window ", window, " is longer than a row of ", positions,
                                         " positions and acts as full"));
        break;
      }
    if (rule.kind == WindowsRule::Kind::Adaptive && rule.adaptive.applySame && microBatches > 1)
      diagnostics
          .error(Code::W0423, rule.place,
                 absl::StrCat("`apply = same` decides from the rows that it applies to, and the recipe has ",
                              microBatches, " micro-batches a step"))
          .advise("use `apply = next`, or a batch in one piece");
  }
  for (const FreezeRule &rule : plan.freezes)
    if (rule.dense && positions > 2048)
      diagnostics
          .error(Code::W0422, rule.place,
                 absl::StrCat("dense patterns hold a square of positions a head: at most 2048, found ",
                              positions, ", which is ", positions * positions * 4, " bytes a head"))
          .advise(rule.pattern == "resample" || rule.pattern == "gaussian" || rule.pattern == "dirichlet"
                      ? "use rows of at most 2048 positions, or `pattern = mean`"
                      : "use `form = compact`");
}

} // namespace weft::lang

#include "frontend/PlanRead.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

namespace weft::lang {

using ast::Term;

namespace {

/// The only positional argument of `call`, when it is one term.
const Term *onlyArgument(const Term &call) {
  if (call.arguments.size() != 1 || !call.arguments[0].key.text.empty() ||
      call.arguments[0].value.terms.size() != 1)
    return nullptr;
  return &call.arguments[0].value.terms[0];
}

const Term *onlyTerm(const ast::Argument &argument) {
  return argument.value.terms.size() == 1 ? &argument.value.terms[0] : nullptr;
}

bool isPercent(const Term *term) {
  return term && term->kind == Term::Kind::Percent && term->number >= 0 && term->number <= 100;
}

} // namespace

double PlanReader::average(OptionReader &options, std::string_view key, double byDefault, double high) {
  const Term *term = options.term(key, "`average(SHARE)` or `latest`");
  if (!term)
    return byDefault;
  if (isWord(*term, "latest"))
    return 0;
  const Term *share =
      term->kind == Term::Kind::Call && term->text == "average" ? onlyArgument(*term) : nullptr;
  if (!share || share->kind != Term::Kind::Number) {
    options.bad(term->place, key, "`average(SHARE)` or `latest`");
    return byDefault;
  }
  Bounds bounds{0, high};
  if (!bounds.contain(share->number)) {
    options.outside(share->place, key, bounds, share->number);
    return byDefault;
  }
  return share->number;
}

std::vector<int64_t> PlanReader::wholeList(OptionReader &options, std::string_view key,
                                           std::vector<int64_t> byDefault, int64_t low, size_t count) {
  std::string expected =
      count ? absl::StrCat("a list of ", count, " whole numbers") : "a list of whole numbers";
  const Term *term = options.term(key, expected);
  if (!term)
    return byDefault;
  std::vector<int64_t> values;
  bool fits = term->kind == Term::Kind::List && !term->arguments.empty();
  if (fits)
    for (const ast::Argument &argument : term->arguments) {
      const Term *item = onlyTerm(argument);
      fits = fits && item && item->kind == Term::Kind::Number && isWhole(item->number);
      values.push_back(fits ? static_cast<int64_t>(item->number) : 0);
    }
  if (!fits || (count && values.size() != count)) {
    options.bad(term->place, key, expected);
    return byDefault;
  }
  for (int64_t value : values)
    if (value < low) {
      options.outside(term->place, key, {static_cast<double>(low)}, static_cast<double>(value));
      return byDefault;
    }
  return values;
}

/// The average over time runs over places in the list of candidates.
void PlanReader::startOption(OptionReader &options, const Term &start, WindowsRule &rule) {
  rule.adaptive.start = options.whole("start", kFullWindow, 1);
  const std::vector<int64_t> &candidates = rule.windows;
  if (rule.adaptive.start == kFullWindow ||
      std::find(candidates.begin(), candidates.end(), rule.adaptive.start) != candidates.end())
    return;
  std::string list;
  for (int64_t window : candidates)
    absl::StrAppend(&list, list.empty() ? "" : ", ",
                    window == kFullWindow ? std::string("full") : std::to_string(window));
  diagnostics
      .error(Code::W0415, start.place,
             absl::StrCat("`start` must be one of the candidates, ", list, ", found ", rule.adaptive.start))
      .advise("name one of them, or add it to the list");
}

void PlanReader::adaptiveOptions(const ast::Clause &clause, ReadWindows &read) {
  AdaptiveOptions &adaptive = read.rule.adaptive;
  OptionReader options("windows adaptive", clause.options, sources, diagnostics, kPlanCodes);
  adaptive.every = options.counted("every", "steps", 5, 1);
  adaptive.applySame = options.choice("apply", {"next", "same"}) == "same";
  adaptive.control = options.choice("control", {"on", "off"}) == "on";
  if (const Term *start = options.term("start", "`full` or a window"); start && !isWord(*start, "full"))
    startOption(options, *start, read.rule);
  if (const Term *least = options.term("least", "`smallest` or a window");
      least && !isWord(*least, "smallest"))
    adaptive.least = options.whole("least", 0, 1);

  using Grouping = AdaptiveOptions::Grouping;
  std::string grouping = options.choice("grouping", {"features", "none", "random", "index"});
  adaptive.grouping = grouping == "none"     ? Grouping::None
                      : grouping == "random" ? Grouping::Random
                      : grouping == "index"  ? Grouping::Index
                                             : Grouping::Features;
  using Topology = AdaptiveOptions::Topology;
  std::string topology = options.choice("topology", {"refresh", "freeze", "reuse_heads"});
  adaptive.topology = topology == "freeze"        ? Topology::Freeze
                      : topology == "reuse_heads" ? Topology::ReuseHeads
                                                  : Topology::Refresh;
  std::vector<int64_t> levels =
      topology == "freeze" ? std::vector<int64_t>{2} : std::vector<int64_t>{2, 2, 2, 2};
  adaptive.hierarchy = wholeList(options, "hierarchy", std::move(levels), 2, 0);
  const ast::Option *hierarchy = options.find("hierarchy");
  read.hierarchyGiven = hierarchy != nullptr;
  if (hierarchy && adaptive.grouping == Grouping::None)
    diagnostics
        .error(Code::W0415, hierarchy->place,
               "`hierarchy` builds levels above groups, and `grouping = none` makes no groups")
        .advise("leave one of the two out");
  adaptive.capped = options.choice("capped", {"yes", "no"}) == "yes";
  adaptiveScorers(options, adaptive);
  adaptiveTiming(options, adaptive);
  options.finish();
}

void PlanReader::adaptiveScorers(OptionReader &options, AdaptiveOptions &adaptive) {
  adaptive.threshold = options.number("threshold", 0.99, {-1, 1});
  adaptive.penalty = options.number("penalty", 16, {0});
  adaptive.featureKeep = average(options, "features", 0.9, 1);
  adaptive.joint = options.choice("scoring", {"joint", "independent"}) == "joint";
  adaptive.sharedScorers = options.choice("scorers", {"per_layer", "shared"}) == "shared";
  std::vector<int64_t> widths = wholeList(options, "widths", {64, 256}, 1, 2);
  adaptive.baseWidth = widths[0];
  adaptive.jointWidth = widths[1];
  adaptive.relu = options.choice("activation", {"tanh", "relu"}) == "relu";
  adaptive.clampToParent = options.choice("parents", {"clamp", "free"}) == "clamp";
  // Above one half, rounding brings every average back to where it was.
  adaptive.resolutionKeep = average(options, "resolution", 0.15, 0.5);
  adaptive.shuffle = options.choice("shuffle", {"no", "yes"}) == "yes";
  adaptive.kvGroups = options.choice("unit", {"head", "kv_group"}) == "kv_group";
  adaptive.seed = options.seed("seed");
}

void PlanReader::adaptiveTiming(OptionReader &options, AdaptiveOptions &adaptive) {
  const char *keptText = "`warmup` or `update N`";
  if (const ast::Phrase *kept = options.phrase("kept", keptText)) {
    const std::vector<Term> &terms = kept->terms;
    if (terms.size() == 2 && isWord(terms[0], "update") && terms[1].kind == Term::Kind::Number &&
        isWhole(terms[1].number) && terms[1].number >= 1)
      adaptive.keptUpdate = static_cast<int64_t>(terms[1].number);
    else if (terms.size() != 1 || !isWord(terms[0], "warmup"))
      options.bad(kept->place, "kept", keptText);
  }
  const char *rampText = "`none` or a range of steps such as `100..500`";
  if (const Term *ramp = options.term("ramp", rampText); ramp && !isWord(*ramp, "none")) {
    if (ramp->kind != Term::Kind::Range || !ramp->low || !ramp->high)
      options.bad(ramp->place, "ramp", rampText);
    else if (*ramp->high <= *ramp->low)
      diagnostics.error(Code::W0410, ramp->place,
                        absl::StrCat("`ramp` must end after it starts, found ", numberText(*ramp->low), "..",
                                     numberText(*ramp->high)));
    else
      adaptive.ramp = {static_cast<int64_t>(*ramp->low), static_cast<int64_t>(*ramp->high)};
  }
  const char *passText = "`never` or `after N steps`";
  if (const ast::Phrase *pass = options.phrase("passthrough", passText)) {
    const std::vector<Term> &terms = pass->terms;
    if (terms.size() == 3 && isWord(terms[0], "after") && terms[1].kind == Term::Kind::Number &&
        isWhole(terms[1].number) && terms[1].number >= 0 && isWord(terms[2], "steps"))
      adaptive.passthrough = static_cast<int64_t>(terms[1].number);
    else if (terms.size() != 1 || !isWord(terms[0], "never"))
      options.bad(pass->place, "passthrough", passText);
  }
  adaptive.live = options.choice("evaluation", {"cached", "live"}) == "live";
}

void PlanReader::randomOptions(const ast::Clause &clause, WindowsRule &rule) {
  bool random = rule.kind == WindowsRule::Kind::Random, file = rule.kind == WindowsRule::Kind::File;
  OptionReader options(random ? "windows random"
                       : file ? "windows file"
                              : "windows",
                       clause.options, sources, diagnostics, kPlanCodes);
  if (file)
    rule.permuted = options.choice("permuted", {"no", "yes"}) == "yes";
  if (!random && !clause.options.empty() && !file) {
    diagnostics.error(
        Code::W0405, clause.options[0].key.place,
        absl::StrCat("windows that are given have no options, found `", clause.options[0].key.text, "`"));
    return;
  }
  if (random) {
    size_t count = rule.windows.size();
    rule.share.assign(count, 1.0 / static_cast<double>(count));
    if (const Term *share = options.term("share", "a list of numbers, one a window")) {
      std::vector<double> shares;
      double sum = 0;
      bool fits = share->kind == Term::Kind::List;
      for (const ast::Argument &argument : share->arguments) {
        const Term *item = onlyTerm(argument);
        fits = fits && item && item->kind == Term::Kind::Number && item->number >= 0;
        shares.push_back(fits ? item->number : 0);
        sum += shares.back();
      }
      if (!fits)
        options.bad(share->place, "share", "a list of numbers, one a window");
      else if (shares.size() != count)
        diagnostics.error(
            Code::W0414, share->place,
            absl::StrCat("`share` needs one number a window: ", count, " windows, found ", shares.size()));
      else if (std::fabs(sum - 1) > 1e-3)
        diagnostics.error(Code::W0407, share->place,
                          absl::StrCat("the numbers of `share` must sum to 1, found ", numberText(sum)));
      else
        rule.share = std::move(shares);
    }
    rule.redraw = options.choice("redraw", {"no", "yes"}) == "yes";
  }
  if (random || file)
    rule.seed = options.seed("seed");
  options.finish();
}

void PlanReader::freezeOptions(const ast::Clause &clause, FreezeRule &rule) {
  OptionReader options(rule.prune ? "prune" : "freeze", clause.options, sources, diagnostics, kPlanCodes);
  std::vector<std::string> scores = {"variance", "forward_kl",    "residual_cosine", "qk_gradient",
                                     "rank_sum", "gradient_veto", "gate_taylor"};
  if (rule.prune)
    std::swap(scores[0], scores[6]);
  rule.by = scores[0];
  const Term *by = options.term("by", "a score");
  if (by && by->kind == Term::Kind::Call && by->text == "random") {
    const Term *kind = onlyArgument(*by);
    if (kind && (isWord(*kind, "matched") || isWord(*kind, "unmatched")))
      rule.by = absl::StrCat("random(", kind->text, ")");
    else
      options.bad(by->place, "by", "random(matched) or random(unmatched)");
  } else if (by) {
    std::vector<std::string> all = scores;
    all.insert(all.end(), {"random(matched)", "random(unmatched)"});
    rule.by = options.choice("by", all);
  }
  rule.highest = options.choice("order", {"lowest", "highest"}) == "highest";
  rule.perLayer = options.choice("scope", {"global", "layer"}) == "layer";
  rule.kvGroups = options.choice("unit", {"head", "kv_group"}) == "kv_group";
  rule.calibrateRows = options.counted("calibrate", "rows", 16, 16);
  freezeSchedule(options, rule);
  rule.seed = options.seed("seed");
  if (!rule.prune)
    freezePattern(options, rule);
  options.finish();
}

void PlanReader::freezePattern(OptionReader &options, FreezeRule &rule) {
  std::vector<std::string> words = {"mean", "sharp", "uniform", "resample", "gaussian", "structured", "zero"};
  const Term *pattern = options.term("pattern", "a pattern");
  if (pattern && pattern->kind == Term::Kind::Call && pattern->text == "dirichlet") {
    const Term *concentration = onlyArgument(*pattern);
    if (concentration && concentration->kind == Term::Kind::Number && concentration->number > 0) {
      rule.pattern = "dirichlet";
      rule.dirichlet = concentration->number;
    } else {
      options.bad(pattern->place, "pattern", "dirichlet(A) with A above 0");
    }
  } else if (std::optional<std::string> file = pattern ? fileOf(*pattern) : std::nullopt) {
    rule.pattern = "file";
    rule.patternFile = *file;
  } else if (pattern) {
    words.insert(words.end(), {"dirichlet(A)", "file(\"...\")"});
    rule.pattern = options.choice("pattern", words);
  }
  rule.dense = options.choice("form", {"compact", "dense"}) == "dense";
  const bool drawn = rule.pattern == "resample" || rule.pattern == "gaussian" || rule.pattern == "dirichlet";
  if (const ast::Option *form = options.find("form"); drawn && form && !rule.dense)
    options.bad(form->place, "form", absl::StrCat("dense beside pattern = ", rule.pattern));
  rule.dense |= drawn;
  if (const Term *tolerance = options.term("tolerance", "nats a row or `none`");
      tolerance && isWord(*tolerance, "none"))
    rule.tolerance = std::nullopt;
  else
    rule.tolerance = options.number("tolerance", 0.2, {0, std::numeric_limits<double>::infinity(), true});
  rule.rounds = options.whole("rounds", 200, 1);
  rule.stop = options.number("stop", 1e-4, {0, std::numeric_limits<double>::infinity(), true});
  rule.trained = options.choice("patterns", {"fixed", "trained"}) == "trained";
  if (const ast::Option *patterns = options.find("patterns"); rule.trained && rule.dense)
    options.bad(patterns->place, "patterns", "fixed beside dense patterns, which are kept as they are made");
  rule.negligible = options.number("negligible", 0.00048828125, {0, 1});
  rule.cutMiddle = options.choice("cut", {"far", "middle"}) == "middle";
  if (const ast::Option *cut = options.find("cut"); rule.cutMiddle && rule.dense)
    options.bad(cut->place, "cut", "far beside dense patterns, which are not cut");
}

void PlanReader::freezeSchedule(OptionReader &options, FreezeRule &rule) {
  const char *expected = "`once`, `groups(N, from = 25%, to = 75%)`, `budget(1%)` or `trigger(0.5%)`";
  const Term *term = options.term("schedule", expected);
  if (!term || isWord(*term, "once"))
    return;
  using Schedule = FreezeRule::Schedule;
  if (term->kind == Term::Kind::Call && (term->text == "budget" || term->text == "trigger")) {
    if (const Term *limit = onlyArgument(*term); isPercent(limit)) {
      rule.schedule = term->text == "budget" ? Schedule::Budget : Schedule::Trigger;
      rule.limit = limit->number / 100;
      return;
    }
  }
  if (term->kind == Term::Kind::Call && term->text == "groups") {
    rule.groupsFrom = {true, 0.25};
    rule.groupsTo = {true, 0.75};
    bool fits = !term->arguments.empty();
    for (const ast::Argument &argument : term->arguments) {
      const Term *item = onlyTerm(argument);
      if (argument.key.text.empty() && item && item->kind == Term::Kind::Number && isWhole(item->number) &&
          item->number >= 1)
        rule.groups = static_cast<int64_t>(item->number);
      else if (argument.key.text == "from" && isPercent(item))
        rule.groupsFrom.amount = item->number / 100;
      else if (argument.key.text == "to" && isPercent(item))
        rule.groupsTo.amount = item->number / 100;
      else
        fits = false;
    }
    if (fits && rule.groupsFrom.amount < rule.groupsTo.amount) {
      rule.schedule = Schedule::Groups;
      return;
    }
  }
  options.bad(term->place, "schedule", expected);
}

} // namespace weft::lang

#include "frontend/PlanRead.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace weft::lang {
namespace {

using Paths = std::set<std::string, std::less<>>;

//===----------------------------------------------------------------------===//
// Why a branch is not there
//===----------------------------------------------------------------------===//

/// Finds `branch name` in a model's text and the tests around it. The parser
/// bounds how deep a text nests, so recursion is bounded too.
class BranchSearch {
public:
  explicit BranchSearch(std::string name) : name(std::move(name)) {}

  bool inBlock(const ast::Block *block) {
    if (block)
      for (const ast::Stmt &stmt : block->statements)
        if (inExpr(stmt.expr) || inBlock(stmt.body))
          return true;
    return false;
  }
  std::vector<const ast::Expr *> tests; // outermost first

private:
  bool inExpr(const ast::Expr *expr) {
    if (!expr)
      return false;
    if (expr->kind == ast::Expr::Kind::Branch && expr->text == name)
      return true;
    for (const ast::Expr *item : expr->items)
      if (inExpr(item))
        return true;
    for (const ast::Arm &arm : expr->arms) {
      if (arm.test)
        tests.push_back(arm.test);
      if (inBlock(arm.body))
        return true;
      if (arm.test)
        tests.pop_back();
    }
    return inBlock(expr->body);
  }
  std::string name;
};

void namesIn(const ast::Expr &expr, std::vector<std::string> &names) {
  if (expr.kind == ast::Expr::Kind::Name)
    names.push_back(expr.text);
  for (const ast::Expr *item : expr.items)
    namesIn(*item, names);
}

/// `it stands behind "if hidden > 0", and hidden = 0`, or empty.
std::string whyAbsent(const ast::File &file, const SourceFiles &sources, const Model &model,
                      const std::string &branch) {
  const ast::Model *tree = file.findModel(model.name);
  BranchSearch search(branch);
  if (!tree || !search.inBlock(tree->body) || search.tests.empty())
    return {};
  std::string text;
  for (const ast::Expr *test : search.tests) {
    std::vector<std::string> names;
    namesIn(*test, names);
    for (const Setting &setting : model.settings)
      if (std::find(names.begin(), names.end(), setting.name) != names.end())
        absl::StrAppend(&text, text.empty() ? "" : ", ", "it stands inside `if ",
                        std::string(sources.textAt(test->place)), "`, and ", setting.name, " = ",
                        print(*setting.value));
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// Positions that row sums of a causal window see, over all rows of length T.
double pairsOf(int64_t length, int64_t window) {
  double t = static_cast<double>(length), w = static_cast<double>(std::min(window, length));
  return t * w - w * (w - 1) / 2;
}

/// Attention's multiplications a token over T x channels: L h d_h of full rows.
double attentionWeight(const Outline &outline, const DropRule &rule) {
  double sum = 0, t = static_cast<double>(rule.length);
  for (const HeadSite &site : outline.sites)
    for (int64_t window : site.windows) {
      double share = rule.count == "full"     ? 1.0
                     : rule.count == "causal" ? 0.5
                                              : pairsOf(rule.length, window) / (t * t);
      sum += share * static_cast<double>(site.channels);
    }
  return sum;
}

/// What the rule compares, of `model` without `dropped`: weights in layer
/// matrices, or FLOPs a token of training, 3 (2 M + 2 V d + 4 T L h d_h).
absl::StatusOr<double> costOf(const Model &model, const Paths &dropped, const DropRule &rule) {
  double matrices = static_cast<double>(layerMatrixWeights(model, dropped));
  if (rule.match == DropRule::Match::Params)
    return matrices;
  absl::StatusOr<Outline> outline = outlineOf(model, dropped);
  if (!outline.ok())
    return outline.status();
  return 3 * (2 * matrices + 2 * static_cast<double>(headWeights(model)) +
              4 * static_cast<double>(rule.length) * attentionWeight(*outline, rule));
}

Paths branchPaths(const DropRule &rule, int64_t depth) {
  Paths paths;
  for (int64_t i = 0; i < depth; ++i)
    paths.insert(absl::StrCat(rule.layer, ".", i, ".", rule.branch));
  return paths;
}

/// A depth and how far it is from the reference, as a share.
struct Candidate {
  int64_t depth;
  double mismatch;
};

std::string text(const Candidate &candidate) {
  return absl::StrFormat("depth %d (%+.3f%%)", candidate.depth, 100 * candidate.mismatch);
}

/// The deepest model that does not exceed `reference`, and the next one.
absl::StatusOr<std::pair<Candidate, Candidate>> neighbours(const Model &model, const std::string &setting,
                                                           const DropRule &rule, double reference) {
  constexpr int64_t kDeepest = 10'000;
  auto mismatch = [&](int64_t depth) -> absl::StatusOr<double> {
    Model at = withSetting(model, setting, static_cast<double>(depth));
    absl::StatusOr<double> cost = costOf(at, branchPaths(rule, depth), rule);
    if (!cost.ok())
      return cost.status();
    return *cost / reference - 1;
  };
  int64_t low = 1, high = 2;
  while (high < kDeepest) {
    absl::StatusOr<double> at = mismatch(high);
    if (!at.ok())
      return at.status();
    if (*at > 0)
      break;
    low = high;
    high = std::min(2 * high, kDeepest);
  }
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    absl::StatusOr<double> at = mismatch(middle);
    if (!at.ok())
      return at.status();
    (*at > 0 ? high : low) = middle;
  }
  absl::StatusOr<double> below = mismatch(low), above = mismatch(high);
  if (!below.ok() || !above.ok())
    return below.ok() ? above.status() : below.status();
  return std::pair(Candidate{low, *below}, Candidate{high, *above});
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

class Dropper {
public:
  Dropper(const ast::File &file, const SourceFiles &sources, const Model &model, Diagnostics &diagnostics)
      : file(file), sources(sources), model(model), diagnostics(diagnostics) {}

  /// Fills layer, branch, indices and oldDepth.
  bool resolve(ReadDrop &drop, const Outline &outline);
  /// Finds newDepth.
  bool match(DropRule &rule);

private:
  const ast::File &file;
  const SourceFiles &sources;
  const Model &model;
  Diagnostics &diagnostics;
};

bool Dropper::resolve(ReadDrop &drop, const Outline &outline) {
  DropRule &rule = drop.rule;
  const std::vector<ast::Segment> &segments = drop.address->segments;
  std::string written(sources.textAt(drop.address->place));
  if (segments.size() != 2 || segments[0].names.size() != 1 || segments[1].names.size() != 1) {
    diagnostics.error(
        Code::W0404, drop.address->place,
        absl::StrCat("`drop` takes a layer and a branch in it, such as `block[..].ffn`, found `", written,
                     "`"));
    return false;
  }
  rule.layer = segments[0].names[0].text;
  rule.branch = segments[1].names[0].text;
  std::vector<int64_t> none;
  AddressResolver resolver(outline, none, sources, diagnostics);
  std::optional<std::vector<const OutlineScope *>> layers = resolver.scopes(segments, 1);
  if (!layers)
    return false;
  for (const OutlineScope *layer : *layers)
    for (const OutlineScope &child : layer->children)
      if (child.name == rule.branch && child.index < 0)
        rule.indices.push_back(layer->index);
  if (rule.indices.empty()) {
    std::string why = whyAbsent(file, sources, model, rule.branch);
    std::vector<std::string> branches;
    for (const OutlineScope *layer : *layers)
      for (const OutlineScope &child : layer->children)
        if (child.index < 0 && std::ranges::find(branches, child.name) == branches.end())
          branches.push_back(child.name);
    diagnostics
        .error(Code::W0417, segments[1].place,
               absl::StrCat("model ", model.name, " has no branch `", rule.branch, "` in `", rule.layer, "`",
                            why.empty() ? std::string() : absl::StrCat(": ", why)))
        .advise(why.empty() ? absl::StrCat("name a branch that the layer has: ", listed(branches))
                            : "change the setting with --set, or drop nothing");
    return false;
  }
  for (const OutlineScope &child : outline.root.children)
    rule.oldDepth += child.name == rule.layer;
  bool everywhere = static_cast<int64_t>(rule.indices.size()) == rule.oldDepth;
  if (!everywhere && rule.match != DropRule::Match::Depth) {
    diagnostics
        .error(Code::W0421, drop.address->place,
               absl::StrCat("`", written, "` leaves some layers whole, so no depth can match: ",
                            rule.indices.size(), " of ", rule.oldDepth, " layers"))
        .advise(absl::StrCat("drop it from all of them (`", rule.layer, "[..].", rule.branch,
                             "`) or leave the depth as it is (`match depth`)"));
    return false;
  }
  return true;
}

bool Dropper::match(DropRule &rule) {
  if (rule.match == DropRule::Match::Depth) {
    rule.newDepth = rule.oldDepth;
    return true;
  }
  std::string setting = depthSettingOf(model, rule.layer);
  if (setting.empty()) {
    diagnostics
        .error(Code::W0421, rule.place,
               absl::StrCat("the depth of `", rule.layer, "` is no setting of model ", model.name,
                            ", so it cannot be matched"))
        .advise(absl::StrCat("write the layer as `", rule.layer, "[depth]` with a setting `depth`"));
    return false;
  }
  if (rule.match == DropRule::Match::Explicit)
    return true;
  if (rule.match == DropRule::Match::Flops && rule.length == 0) {
    Bindings names = model.bindings();
    auto context = names.find("context");
    if (context == names.end() || context->second.kind != Value::Kind::Number) {
      diagnostics.error(Code::W0404, rule.place, "`match flops` needs `length = N`, the positions of a row")
          .advise("write `drop ... match flops { length = 2048 }`");
      return false;
    }
    rule.length = static_cast<int64_t>(context->second.number);
  }
  absl::StatusOr<double> reference = costOf(model, {}, rule);
  absl::StatusOr<std::pair<Candidate, Candidate>> near =
      reference.ok() ? neighbours(model, setting, rule, *reference) : reference.status();
  if (!near.ok()) {
    diagnostics.error(
        Code::W0421, rule.place,
        absl::StrCat("the model has no meaning at another depth: ", std::string(near.status().message())));
    return false;
  }
  const auto &[below, above] = *near;
  const Candidate &chosen =
      rule.nearest && std::fabs(above.mismatch) < std::fabs(below.mismatch) ? above : below;
  rule.newDepth = chosen.depth;
  rule.mismatch = chosen.mismatch;
  if (std::fabs(chosen.mismatch) <= rule.tolerance)
    return true;
  diagnostics
      .error(Code::W0418, rule.place,
             absl::StrFormat("no depth matches within %g%%: the nearest are %s and %s", 100 * rule.tolerance,
                             text(below), text(above)))
      .advise("allow more with `tolerance = ...`, choose `round = nearest`, or give the depth: `depth N`");
  return false;
}

} // namespace

std::optional<Model> applyDrops(const ast::File &file, const SourceFiles &sources, const Model &model,
                                std::vector<ReadDrop> &drops, Paths &dropped, Diagnostics &diagnostics) {
  absl::StatusOr<Outline> outline = outlineOf(model);
  if (!outline.ok()) {
    diagnostics.error(Code::W0421, model.place, std::string(outline.status().message()));
    return std::nullopt;
  }
  Model result = model;
  bool good = true;
  for (size_t i = 0; i < drops.size(); ++i) {
    Dropper dropper(file, sources, model, diagnostics);
    DropRule &rule = drops[i].rule;
    if (!dropper.resolve(drops[i], *outline) || !dropper.match(rule)) {
      good = false;
      continue;
    }
    for (size_t j = 0; j < i; ++j)
      if (drops[j].rule.layer == rule.layer && drops[j].rule.newDepth != rule.newDepth) {
        diagnostics
            .error(Code::W0415, rule.place,
                   absl::StrCat("two `drop` statements ask for different depths of `", rule.layer,
                                "`: ", drops[j].rule.newDepth, " and ", rule.newDepth))
            .note(drops[j].rule.place, "the other one is here");
        good = false;
      }
    if (rule.newDepth != rule.oldDepth)
      result = withSetting(std::move(result), depthSettingOf(model, rule.layer),
                           static_cast<double>(rule.newDepth));
    if (rule.newDepth == rule.oldDepth)
      for (int64_t index : rule.indices)
        dropped.insert(absl::StrCat(rule.layer, ".", index, ".", rule.branch));
    else
      dropped.merge(branchPaths(rule, rule.newDepth));
  }
  if (!good)
    return std::nullopt;
  return result;
}

Model afterDrops(const Plan &plan, Model model) {
  for (const DropRule &rule : plan.drops) {
    bool deeper = rule.newDepth != rule.oldDepth;
    if (deeper)
      model = withSetting(std::move(model), depthSettingOf(model, rule.layer),
                          static_cast<double>(rule.newDepth));
    Paths paths;
    if (deeper)
      paths = branchPaths(rule, rule.newDepth);
    else
      for (int64_t index : rule.indices)
        paths.insert(absl::StrCat(rule.layer, ".", index, ".", rule.branch));
    model.dropped.merge(paths);
  }
  return model;
}

} // namespace weft::lang

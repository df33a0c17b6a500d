//===- HeadWindows.cpp - Windows of heads under the plans of a file --------===//

#include "tools/lsp/HeadWindows.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <map>

namespace weft::lsp {
namespace {

/// Of heads without a window that is known now.
constexpr int64_t kDecidedLater = 0;

std::string windowText(int64_t window) { return window == lang::kFullWindow ? "full" : absl::StrCat(window); }

/// Whether a site (`block.3.attn`) is the scope `path` (`block`) or lies in it.
bool isUnder(const std::string &site, const std::string &path) {
  std::string plain;
  for (size_t start = 0; start < site.size();) {
    const size_t end = std::min(site.find('.', start), site.size());
    const std::string step = site.substr(start, end - start);
    if (step.find_first_not_of("0123456789") != std::string::npos)
      absl::StrAppend(&plain, plain.empty() ? "" : ".", step);
    start = end + 1;
  }
  return path.empty() || plain == path || plain.starts_with(path + ".");
}

/// How many heads go with each text, in order of windows, and their pairs.
class Tally {
public:
  explicit Tally(int64_t positions) : positions(positions) {}

  void add(int64_t window, const std::string &text) {
    ++heads[{window == kDecidedLater ? lang::kFullWindow : window, text}];
    ++count;
    known += window != kDecidedLater;
    pairs += lang::pairsOf(positions, window == kDecidedLater ? positions : window);
  }

  std::string text() const {
    std::vector<std::string> parts;
    for (const auto &[key, number] : heads)
      parts.push_back(absl::StrCat(key.second, " (", number, number == 1 ? " head)" : " heads)"));
    std::string all = absl::StrJoin(parts, ", ");
    const double full = static_cast<double>(count) * lang::pairsOf(positions, positions);
    if (known == count && pairs < full)
      absl::StrAppend(&all, "; ", static_cast<int64_t>(1000 * pairs / full + 0.5) / 10.0,
                      "% of the pairs of full attention over ", positions, " positions");
    return all;
  }

  bool empty() const { return count == 0; }

private:
  int64_t positions, count = 0, known = 0;
  double pairs = 0;
  std::map<std::pair<int64_t, std::string>, int64_t> heads;
};

std::string sourceLine(const Analysis &analysis, const lang::Place &place) {
  const std::string_view text = analysis.sources.textAt(place);
  const std::string_view line = text.substr(0, std::min(text.find_first_of("{\r\n"), text.size()));
  return std::string(line.substr(0, line.find_last_not_of(' ') + 1));
}

/// What a rule says of its heads where their windows are not known now.
std::string laterText(const lang::WindowsRule &rule) {
  std::vector<std::string> windows;
  for (int64_t window : rule.windows)
    windows.push_back(windowText(window));
  const std::string list = absl::StrJoin(windows, ", ");
  switch (rule.kind) {
  case lang::WindowsRule::Kind::Random:
    return absl::StrCat("drawn from ", list);
  case lang::WindowsRule::Kind::File:
    return absl::StrCat("as ", rule.file, " says");
  case lang::WindowsRule::Kind::Adaptive:
    return absl::StrCat("chosen in training from ", list);
  case lang::WindowsRule::Kind::Fixed:
  case lang::WindowsRule::Kind::Listed:
    break;
  }
  return absl::StrCat("later ", list);
}

} // namespace

std::string planLines(const Analysis &analysis, const lang::Plan &plan, const std::string &path) {
  std::map<int64_t, std::string> later; // by head
  for (const lang::WindowsRule &rule : plan.windows) {
    const bool known =
        rule.kind == lang::WindowsRule::Kind::Fixed || rule.kind == lang::WindowsRule::Kind::Listed;
    if (!known || rule.from.amount > 0)
      for (int64_t head : rule.heads)
        later[head] = laterText(rule);
  }
  Tally tally(analysis.positionsOf(plan.model));
  for (size_t site = 0; site < plan.sites.size(); ++site) {
    const lang::HeadSite &heads = plan.sites[site];
    if (!isUnder(heads.path, path))
      continue;
    auto fixed = plan.fixedWindows.find(heads.path);
    const std::vector<int64_t> &windows = fixed == plan.fixedWindows.end() ? heads.windows : fixed->second;
    for (size_t slot = 0; slot < windows.size(); ++slot) {
      auto decided = later.find(plan.firstHead[site] + static_cast<int64_t>(slot));
      if (decided == later.end())
        tally.add(windows[slot], windowText(windows[slot]));
      else
        tally.add(kDecidedLater, decided->second);
    }
  }
  std::string lines;
  if (!tally.empty())
    absl::StrAppend(&lines, "- plan ", plan.name, ": ", tally.text(), "\n");
  for (const lang::DropRule &drop : plan.drops)
    absl::StrAppend(&lines, "- plan ", plan.name, ": `", sourceLine(analysis, drop.place), "`: ",
                    drop.newDepth == drop.oldDepth
                        ? absl::StrCat(drop.indices.size(), " of ", drop.oldDepth, " layers lose it")
                        : absl::StrCat(drop.oldDepth, " layers become ", drop.newDepth),
                    "\n");
  for (const lang::FreezeRule &freeze : plan.freezes) {
    const bool listed = freeze.amount == lang::FreezeRule::Amount::File;
    absl::StrAppend(&lines, "- plan ", plan.name, ": `", sourceLine(analysis, freeze.place), "`",
                    listed ? "" : absl::StrCat(" among ", freeze.heads.size(), " heads"), "\n");
  }
  return lines;
}

std::string windowLines(const Analysis &analysis, const std::string &model, const std::string &path) {
  auto checked = analysis.statements.checked.find(model);
  if (checked == analysis.statements.checked.end() || !checked->second)
    return "";
  absl::StatusOr<lang::Outline> outline = lang::outlineOf(*checked->second);
  if (!outline.ok())
    return "";
  Tally tally(analysis.positionsOf(model));
  for (const lang::HeadSite &site : outline->sites)
    if (isUnder(site.path, path))
      for (int64_t window : site.windows)
        tally.add(window, windowText(window));
  if (tally.empty())
    return "";
  std::string lines = absl::StrCat("windows of heads:\n- the model: ", tally.text(), "\n");
  for (const lang::Plan &plan : analysis.statements.plansChecked)
    if (plan.model == model)
      absl::StrAppend(&lines, planLines(analysis, plan, path));
  return lines;
}

} // namespace weft::lsp

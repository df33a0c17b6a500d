#include "frontend/Plan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>

namespace weft::lang {
namespace {

std::string windowText(int64_t window) { return window == kFullWindow ? "full" : absl::StrCat(window); }

/// What is known of each head's window before training.
std::vector<std::string> windowCells(const Plan &plan) {
  std::vector<std::string> cells;
  for (const HeadSite &site : plan.sites) {
    auto fixed = plan.fixedWindows.find(site.path);
    for (int64_t window : fixed == plan.fixedWindows.end() ? site.windows : fixed->second)
      cells.push_back(windowText(window));
  }
  for (const WindowsRule &rule : plan.windows) {
    using Kind = WindowsRule::Kind;
    const char *word = rule.kind == Kind::Adaptive ? "adaptive"
                       : rule.kind == Kind::Random ? "random"
                       : rule.kind == Kind::File   ? "file"
                       : rule.from.amount > 0      ? "later"
                                                   : nullptr;
    for (int64_t head : rule.heads)
      if (word)
        cells[static_cast<size_t>(head)] = word;
  }
  return cells;
}

} // namespace

std::string printPlan(const Plan &plan) {
  std::string text;
  for (const DropRule &rule : plan.drops)
    absl::StrAppendFormat(&text, "drop %s[..].%s: depth %d to %d, mismatch %+.3f%%\n", rule.layer,
                          rule.branch, rule.oldDepth, rule.newDepth, 100 * rule.mismatch);
  std::vector<std::string> cells = windowCells(plan);
  for (const FreezeRule &rule : plan.freezes)
    for (int64_t head : rule.heads)
      absl::StrAppend(&cells[static_cast<size_t>(head)],
                      rule.amount == FreezeRule::Amount::Named ? " " : " ?", rule.prune ? "p" : "f");
  size_t width = 4, nameWidth = 4;
  for (const std::string &cell : cells)
    width = std::max(width, cell.size());
  for (const HeadSite &site : plan.sites)
    nameWidth = std::max(nameWidth, site.path.size());
  for (size_t site = 0; site < plan.sites.size(); ++site) {
    absl::StrAppendFormat(&text, "%-*s", static_cast<int>(nameWidth), plan.sites[site].path);
    for (int64_t head = 0; head < plan.sites[site].heads; ++head)
      absl::StrAppendFormat(&text, "  %-*s", static_cast<int>(width),
                            cells[static_cast<size_t>(plan.firstHead[site] + head)]);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  if (!plan.freezes.empty())
    text += "f frozen, p pruned, ? a candidate: training chooses\n";
  for (const FreezeRule &rule : plan.freezes)
    if (rule.cutMiddle)
      text += absl::StrFormat(
          "patterns keep first places of a document and a window: at most %.3g of a row is left out\n",
          rule.negligible);
  return text;
}

} // namespace weft::lang

#include "frontend/PlanRead.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace weft::lang {

bool AddressResolver::inRanges(const ast::Segment &segment, int64_t index) const {
  if (!segment.indexed)
    return true;
  for (const ast::IndexRange &range : segment.indices)
    if (index >= range.low.value_or(0) && index <= range.high.value_or(index))
      return true;
  return false;
}

bool AddressResolver::rangesFit(const ast::Segment &segment, int64_t count, const std::string &what) {
  bool fit = true;
  for (const ast::IndexRange &range : segment.indices) {
    std::string text(sources.textAt(range.place));
    if (!range.name.empty()) {
      diagnostics.error(
          Code::W0404, range.place,
          absl::StrCat("an address of a plan has numbers and ranges as indices, found `", range.name, "`"));
      fit = false;
    } else if (range.low && range.high && *range.high < *range.low) {
      diagnostics.error(Code::W0410, range.place,
                        absl::StrCat("the range `", text, "` ends before it starts"));
      fit = false;
    } else if (range.low.value_or(0) >= count || range.high.value_or(0) >= count) {
      diagnostics
          .error(Code::W0409, range.place,
                 absl::StrCat("`", text, "` is beyond the last of ", what, ": there are ", count,
                              ", counted from 0"))
          .advise(absl::StrCat("the last index is ", count - 1));
      fit = false;
    }
  }
  return fit;
}

std::optional<std::vector<const OutlineScope *>>
AddressResolver::step(const std::vector<const OutlineScope *> &from, const ast::Segment &segment,
                      const std::string &prefix) {
  if (segment.names.size() != 1) {
    diagnostics.error(Code::W0404, segment.place,
                      "an address of a plan names one thing a step, found a group");
    return std::nullopt;
  }
  const std::string &name = segment.names[0].text;
  std::vector<const OutlineScope *> matching;
  std::vector<std::string> others;
  int64_t count = 0;
  for (const OutlineScope *scope : from)
    for (const OutlineScope &child : scope->children) {
      if (child.name == name) {
        matching.push_back(&child);
        count = std::max(count, child.index + 1);
      } else if (std::find(others.begin(), others.end(), child.name) == others.end()) {
        others.push_back(child.name);
      }
    }
  if (matching.empty()) {
    std::string inside = prefix.empty() ? std::string("the model") : absl::StrCat("`", prefix, "`");
    std::string near = nearest(name, others);
    diagnostics
        .error(Code::W0408, segment.place,
               absl::StrCat(inside, " has no layer or branch `", name, "`",
                            others.empty() ? std::string() : absl::StrCat("; it has ", listed(others))))
        .advise(near.empty() ? std::string() : absl::StrCat("did you mean `", near, "`?"));
    return std::nullopt;
  }
  bool layer = matching[0]->index >= 0;
  if (layer != segment.indexed) {
    diagnostics.error(
        Code::W0404, segment.place,
        layer ? absl::StrCat("`", name, "` is a layer and needs indices, such as `", name, "[..]`")
              : absl::StrCat("`", name, "` is a branch and takes no index"));
    return std::nullopt;
  }
  if (layer && !rangesFit(segment, count, absl::StrCat("layers `", name, "`")))
    return std::nullopt;
  std::vector<const OutlineScope *> chosen;
  for (const OutlineScope *scope : matching)
    if (!layer || inRanges(segment, scope->index))
      chosen.push_back(scope);
  return chosen;
}

std::optional<std::vector<const OutlineScope *>>
AddressResolver::scopes(const std::vector<ast::Segment> &segments, size_t count) {
  std::vector<const OutlineScope *> current{&outline.root};
  std::string prefix;
  for (size_t i = 0; i < count; ++i) {
    std::optional<std::vector<const OutlineScope *>> next = step(current, segments[i], prefix);
    if (!next)
      return std::nullopt;
    current = std::move(*next);
    absl::StrAppend(&prefix, i ? "." : "", std::string(sources.textAt(segments[i].place)));
  }
  return current;
}

std::optional<std::vector<int64_t>> AddressResolver::heads(const ast::Term *address, const Place &statement) {
  std::vector<const OutlineScope *> todo{&outline.root};
  const ast::Segment *headSegment = nullptr;
  if (address) {
    size_t count = address->segments.size();
    const ast::Segment &last = address->segments.back();
    if (last.names.size() == 1 && last.names[0].text == "heads") {
      headSegment = &last;
      --count;
    }
    std::optional<std::vector<const OutlineScope *>> found = scopes(address->segments, count);
    if (!found)
      return std::nullopt;
    todo = std::move(*found);
  }
  std::vector<int32_t> sites;
  int64_t most = 0;
  while (!todo.empty()) {
    const OutlineScope *scope = todo.back();
    todo.pop_back();
    for (const OutlineScope &child : scope->children)
      todo.push_back(&child);
    if (scope->site >= 0) {
      sites.push_back(scope->site);
      most = std::max(most, outline.sites[static_cast<size_t>(scope->site)].heads);
    }
  }
  if (sites.empty()) {
    diagnostics
        .error(Code::W0419, address ? address->place : statement,
               address ? absl::StrCat("`", std::string(sources.textAt(address->place)),
                                      "` holds no heads: no attend(...) in it")
                       : std::string("the model has no heads: there is no attend(...) in it"))
        .advise("name a branch with attention in it");
    return std::nullopt;
  }
  if (headSegment && !rangesFit(*headSegment, most, "the heads"))
    return std::nullopt;
  std::sort(sites.begin(), sites.end());
  sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
  std::vector<int64_t> chosen;
  for (int32_t site : sites)
    for (int64_t head = 0; head < outline.sites[static_cast<size_t>(site)].heads; ++head)
      if (!headSegment || inRanges(*headSegment, head))
        chosen.push_back(firstHead[static_cast<size_t>(site)] + head);
  return chosen;
}

} // namespace weft::lang

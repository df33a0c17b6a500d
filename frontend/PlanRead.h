//===- PlanRead.h - Reading plan statements ---------------------*- C++ -*-===//
//
// The inside of the plan checker, shared by its files: statements to rules
// (PlanRead, PlanOptions), addresses to heads (PlanAddress), dropping and the
// depth that matches (PlanDrop). Plan.cpp puts them together.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Plan.h"
#include "frontend/Terms.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft::lang {

/// A rule with the address it was written with (null: every head).
struct ReadWindows {
  WindowsRule rule;
  const ast::Term *address = nullptr;
  bool hierarchyGiven = false;
};
struct ReadFreeze {
  FreezeRule rule;
  const ast::Term *address = nullptr;
};
struct ReadDrop {
  DropRule rule;
  const ast::Term *address = nullptr;
};

constexpr TermCodes kPlanCodes{Code::W0405, Code::W0406, Code::W0407};

/// Walks the terms of a statement.
struct TermCursor {
  const std::vector<ast::Term> &terms;
  size_t at = 0;
  const ast::Term *peek() const { return at < terms.size() ? &terms[at] : nullptr; }
  bool takeWord(std::string_view word) {
    if (!peek() || !isWord(*peek(), word))
      return false;
    ++at;
    return true;
  }
};

/// Statements to rules; nullopt after an error that leaves nothing to go on with.
class PlanReader {
public:
  PlanReader(const SourceFiles &sources, Diagnostics &diagnostics)
      : sources(sources), diagnostics(diagnostics) {}

  std::optional<ReadWindows> windows(const ast::Clause &clause);
  std::optional<ReadFreeze> freeze(const ast::Clause &clause, bool prune);
  std::optional<ReadDrop> drop(const ast::Clause &clause);

private:
  bool singlePhrase(const ast::Clause &clause);
  void misfit(const ast::Clause &clause, const ast::Term *found, std::string_view expected);
  std::optional<When> when(const ast::Clause &clause, TermCursor &cursor);
  /// `[512, 1024, full]`; every window at least 1.
  std::optional<std::vector<int64_t>> windowList(const ast::Term &list);
  bool windowsKind(const ast::Clause &clause, TermCursor &cursor, ReadWindows &read);
  bool increasing(const ast::Term &list, const std::vector<int64_t> &windows);
  bool freezeSubject(const ast::Clause &clause, TermCursor &cursor, ReadFreeze &read);

  void startOption(OptionReader &options, const ast::Term &start, WindowsRule &rule);
  void adaptiveOptions(const ast::Clause &clause, ReadWindows &read);
  void adaptiveScorers(OptionReader &options, AdaptiveOptions &adaptive);
  void adaptiveTiming(OptionReader &options, AdaptiveOptions &adaptive);
  void randomOptions(const ast::Clause &clause, WindowsRule &rule);
  void freezeOptions(const ast::Clause &clause, FreezeRule &rule);
  void freezePattern(OptionReader &options, FreezeRule &rule);
  void freezeSchedule(OptionReader &options, FreezeRule &rule);
  double average(OptionReader &options, std::string_view key, double byDefault, double high);
  std::vector<int64_t> wholeList(OptionReader &options, std::string_view key, std::vector<int64_t> byDefault,
                                 int64_t low, size_t count);

  const SourceFiles &sources;
  Diagnostics &diagnostics;
};

/// `file("x")` to x.
std::optional<std::string> fileOf(const ast::Term &term);

/// Addresses against an outline.
class AddressResolver {
public:
  AddressResolver(const Outline &outline, const std::vector<int64_t> &firstHead, const SourceFiles &sources,
                  Diagnostics &diagnostics)
      : outline(outline), firstHead(firstHead), sources(sources), diagnostics(diagnostics) {}

  /// Sorted heads that `address` (null: all) names; nullopt after an error.
  std::optional<std::vector<int64_t>> heads(const ast::Term *address, const Place &statement);
  /// The scopes that the first `count` segments name.
  std::optional<std::vector<const OutlineScope *>> scopes(const std::vector<ast::Segment> &segments,
                                                          size_t count);

private:
  std::optional<std::vector<const OutlineScope *>>
  step(const std::vector<const OutlineScope *> &from, const ast::Segment &segment, const std::string &prefix);
  bool inRanges(const ast::Segment &segment, int64_t index) const;
  bool rangesFit(const ast::Segment &segment, int64_t count, const std::string &what);

  const Outline &outline;
  const std::vector<int64_t> &firstHead;
  const SourceFiles &sources;
  Diagnostics &diagnostics;
};

/// Resolves `drop` statements and finds the depth that matches. Returns the
/// model as it is afterwards and fills `dropped` with paths of branches.
std::optional<Model> applyDrops(const ast::File &file, const SourceFiles &sources, const Model &model,
                                std::vector<ReadDrop> &drops, std::set<std::string, std::less<>> &dropped,
                                Diagnostics &diagnostics);

} // namespace weft::lang

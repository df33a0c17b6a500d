//===- Terms.h - Reading clauses, options and terms -------------*- C++ -*-===//
//
// What the checkers of plans, recipes and weight tables share: options with a
// type, a range and a default, and the error for each way to get them wrong.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Ast.h"
#include "frontend/Diagnostics.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::lang {

/// Which codes an OptionReader uses.
struct TermCodes {
  Code unknownOption, badValue, outOfRange;
};

/// Bounds of a number, both included unless `openLow`.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool openLow = false;
  bool contain(double value) const { return (openLow ? value > low : value >= low) && value <= high; }
  std::string text() const;
};

/// `6e-4`, `512`: the shortest text that reads back as `number`.
std::string numberText(double number);
/// `a, b, c`.
std::string listed(const std::vector<std::string> &words);
bool isWord(const ast::Term &term, std::string_view word);
bool isWhole(double number);

/// Reads the options of one statement. Each getter makes its key known;
/// `finish` reports the keys that nothing asked for.
class OptionReader {
public:
  OptionReader(std::string owner, const std::vector<ast::Option> &options, const SourceFiles &sources,
               Diagnostics &diagnostics, TermCodes codes)
      : owner(std::move(owner)), options(options), sources(sources), diagnostics(diagnostics), codes(codes) {}

  /// The option named `key`, or null.
  const ast::Option *find(std::string_view key);
  /// Its only term; null when it is absent or (an error naming `expected`) is something else.
  const ast::Term *term(std::string_view key, std::string_view expected);
  /// Its only phrase, likewise.
  const ast::Phrase *phrase(std::string_view key, std::string_view expected);

  /// One of `words`; the first is the default.
  std::string choice(std::string_view key, const std::vector<std::string> &words);
  double number(std::string_view key, double byDefault, Bounds bounds);
  int64_t whole(std::string_view key, int64_t byDefault, int64_t low,
                int64_t high = std::numeric_limits<int64_t>::max());
  /// `25%` as 0.25.
  double share(std::string_view key, double byDefault, Bounds bounds);
  /// `5 steps`, `16 rows`: a whole number with its unit.
  int64_t counted(std::string_view key, std::string_view unit, int64_t byDefault, int64_t low);
  /// `run` (nullopt) or a whole number.
  std::optional<uint64_t> seed(std::string_view key);

  void bad(const Place &place, std::string_view key, std::string_view expected);
  void outside(const Place &place, std::string_view key, const Bounds &bounds, double found);
  void finish();

private:
  std::string owner;
  const std::vector<ast::Option> &options;
  const SourceFiles &sources;
  Diagnostics &diagnostics;
  TermCodes codes;
  std::vector<std::string> known;
};

} // namespace weft::lang

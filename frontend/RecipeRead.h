//===- RecipeRead.h - Reading the values of recipes -------------*- C++ -*-===//
//
// The inside of the recipe checker, shared by its files.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Recipe.h"
#include "frontend/Terms.h"

namespace weft::lang {

constexpr TermCodes kRecipeCodes{Code::W0504, Code::W0505, Code::W0506};

/// One `train` block to a recipe; errors with places in `sources`.
class RecipeReader {
public:
  /// `lengthFromOutside`: a command line says how long training lasts, so that
  /// a shorter run than the schedule was written for is meant.
  RecipeReader(const std::vector<ast::Option> &options, const Place &place, const SourceFiles &sources,
               Diagnostics &diagnostics, bool lengthFromOutside = false)
      : reader("recipe", options, sources, diagnostics, kRecipeCodes), place(place), sources(sources),
        diagnostics(diagnostics), lengthFromOutside(lengthFromOutside) {}

  rt::Recipe read();

private:
  void readData(rt::Recipe &recipe);
  void readBatch(rt::Recipe &recipe);
  void readLength(rt::Recipe &recipe);
  void readRhythm(rt::Recipe &recipe);
  void readReports(rt::Recipe &recipe);
  void readOptimizers(rt::Recipe &recipe);
  void readClip(rt::Recipe &recipe);
  void readDecay(rt::Recipe &recipe);
  void readSchedule(rt::Recipe &recipe);

  std::optional<rt::Optimizer> optimizer(const ast::Phrase &phrase, bool several);
  void optimizerArgument(const ast::Argument &argument, rt::Optimizer &optimizer);
  /// The set that terms from `first` on name, for `key`.
  std::optional<rt::ParameterSet> parameterSet(std::string_view key, const ast::Phrase &phrase, size_t first);
  std::optional<rt::Duration> duration(std::string_view key, const ast::Phrase &phrase);
  /// `every N steps` at the start of `phrase`; 0 after an error.
  int64_t every(std::string_view key, const ast::Phrase &phrase, std::string_view expected);
  std::string written(const Place &at) const { return std::string(sources.textAt(at)); }

  OptionReader reader;
  Place place;
  const SourceFiles &sources;
  Diagnostics &diagnostics;
  bool lengthFromOutside;
};

} // namespace weft::lang

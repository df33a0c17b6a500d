//===- Words.h - The words of the language, to offer and explain -*- C++ -*-===//
//
// What docs/language.md says of each word in a line: editors show it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string_view>
#include <vector>

namespace weft::lang {

/// Where a word may stand.
enum class WordPlace { File, Model, Plan, Recipe, Table, Windows, Freeze, Drop };

struct LanguageWord {
  WordPlace place;
  std::string_view name;
  std::string_view meaning; // one line
  std::string_view values;  // of an option: what may follow `=`
};
/// Keywords of statements and keys of options.
const std::vector<LanguageWord> &languageWords();
/// The word of that name at that place, or null.
const LanguageWord *languageWord(WordPlace place, std::string_view name);

/// A function or operator of models: how it is called, and its value.
struct LanguageFunction {
  std::string_view name, signature, value;
};
const std::vector<LanguageFunction> &languageFunctions();
const LanguageFunction *languageFunction(std::string_view name);

} // namespace weft::lang

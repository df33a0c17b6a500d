//===- IrTexts.h - The IR after each pass, sharing what is equal -*- C++ -*-===//
//
// A line is a template (its text without the numbers of SSA values) at a place of
// the program's text. Every pair of the two is kept once. A pass's text is edits
// against the one before it, and its numbers. So the same line under other numbers
// is no change, and sixteen texts take about as much as two.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/core/Json.h"
#include "tools/weft/inspect/LineDiff.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::inspect {

/// `%12 = weft.add %3, %x` as `% = weft.add %, %x` with 12 and 3. A `%` that a letter,
/// digit or underscore follows in the template stands for itself; every other one is a
/// number's place (-1: none was there).
struct Numbered {
  std::string text;
  std::vector<int64_t> numbers;
};
Numbered withoutNumbers(std::string_view line);
/// The line again.
std::string withNumbers(const Numbered &line);

/// What a text is beside the one before it.
struct TextChange {
  size_t text = 0; // its index; that of the one before where nothing changed
  int64_t lines = 0, added = 0, dropped = 0;
};

class IrTexts {
public:
  /// A place by its key, numbered; 0 is no place.
  int32_t place(const std::string &key, const rt::OrderedJson &value);

  /// Adds a text whose line i stands at placeOfLine[i] (0: none; may be shorter).
  TextChange add(std::string_view text, const std::vector<int32_t> &placeOfLine);

  /// {"templates": [text], "places": [null, value...], "lines": [template, place, ...],
  ///  "texts": [{"edits": [[keep, drop, line...]...], "numbers": [...]}]}
  /// Numbers: the first of a line against the last such one plus 1, others as that
  /// minus themselves, so that equal ops have equal numbers wherever they stand.
  rt::OrderedJson toJson() const;

private:
  int32_t lineOf(const std::string &text, int32_t place);

  std::unordered_map<std::string, int32_t> templateOf, placeOf;
  std::map<std::pair<int32_t, int32_t>, int32_t> numberOf;
  std::vector<const std::string *> templates;
  std::vector<std::pair<int32_t, int32_t>> lines;
  rt::OrderedJson places = rt::OrderedJson::array({nullptr}), texts = rt::OrderedJson::array();
  std::vector<int32_t> last;
  std::string lastText;
};

} // namespace weft::inspect

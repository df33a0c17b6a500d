//===- Formula.h - Compile-time formulas over sizes -------------*- C++ -*-===//
//
// A formula is what a model writes where a number is needed before anything
// runs: a size (`dim / heads`), an initialiser (`0.02 / sqrt(2 * depth)`), a
// test (`i mod 6 is 5`), a window (`if i mod 6 is 5 { full } else { reach }`).
// It is the one piece of the language that lives on inside the rolled IR (as
// `#weft.formula`), so that a pass that changes `depth` reaches every formula.
// This library is a leaf: it includes neither MLIR nor the rest of frontend/.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::lang {

/// A value that a formula can have. Whole numbers stay exact up to 2^53;
/// `full` is the window without a bound; a word is a choice (`gated`).
struct Value {
  enum class Kind { Number, Word, Full, Truth };
  Kind kind = Kind::Number;
  double number = 0; // Number; Truth: 0 or 1
  std::string word;  // Word

  static Value ofNumber(double number) { return {Kind::Number, number, {}}; }
  static Value ofTruth(bool truth) { return {Kind::Truth, truth ? 1.0 : 0.0, {}}; }
  static Value ofWord(std::string word) { return {Kind::Word, 0, std::move(word)}; }
  static Value full() { return {Kind::Full, 0, {}}; }
  bool isWhole() const;
  bool operator==(const Value &) const = default;
  /// As it is written in the language: `768`, `0.02`, `gated`, `full`.
  std::string text() const;
};

struct Formula;
using FormulaRef = std::shared_ptr<const Formula>;

/// A node of a formula. Immutable and shared, so pasting a `def` is cheap.
struct Formula {
  // clang-format off
  enum class Kind {
    Number, Full, Name,                         // leaves; Name: setting, let, layer index or word
    Add, Sub, Mul, Div, Mod, Pow, Neg,          // arithmetic
    Less, LessEqual, Greater, GreaterEqual,     // tests
    Is, IsNot, And, Or, Not,
    Select,                                     // args: test, then, else
    Call,                                       // name: one of formulaFunctions()
  };
  // clang-format on
  Kind kind = Kind::Number;
  double number = 0;
  std::string name; // Name, Call; Number: as written when it has a point (`1.0` divides as a real)
  std::vector<FormulaRef> args;
  /// Where it was written: byte offset and length in its file; -1 when made by a pass.
  int32_t offset = -1, length = 0;
  /// Levels and nodes of the written-out tree, kept by `make`: shared parts can
  /// make it far larger than what lies in memory.
  int32_t depth = 1;
  int64_t size = 1;

  static FormulaRef ofNumber(double number);
  static FormulaRef ofName(std::string name);
  static FormulaRef make(Kind kind, std::vector<FormulaRef> args, std::string name = {});
};

/// Names that a formula can see, innermost scope last written.
using Bindings = std::map<std::string, Value, std::less<>>;

/// Why a formula has no value: one line in the language's words, with the
/// values that were met (`heads / kv = 7 / 8 is not whole`).
struct FormulaError {
  std::string message;
  const Formula *at = nullptr;
};

/// Evaluates `formula`. A name without a binding is a word only on a side of
/// `is` / `is not`; elsewhere it is an error. Division of two whole numbers
/// must be whole unless one came out of sqrt, exp or log, or was written with a
/// point (`1.0 / theta`). Returns nullopt and fills `error`.
std::optional<Value> evaluate(const Formula &formula, const Bindings &names, FormulaError *error = nullptr);

/// The formula has fewer levels and nodes than this wherever it is accepted.
constexpr int32_t kFormulaDepthLimit = 1000;
constexpr int64_t kFormulaSizeLimit = 100'000;

/// A function of formulas: its name and how many arguments it takes.
struct FormulaFunction {
  std::string_view name;
  int least, most;
};
/// sqrt, exp, log, floor, ceil, round, abs (one argument), min, max (two or more).
const std::vector<FormulaFunction> &formulaFunctions();

/// The names that `formula` mentions, each once, in order of appearance.
std::vector<std::string> namesIn(const Formula &formula);

/// Canonical text with the fewest parentheses; `parseFormula(print(f))` is f.
std::string print(const Formula &formula);

/// Parses canonical text (also of `#weft.formula`). Depth is bounded by 200.
/// Returns null and fills `error` with a message and byte offset.
FormulaRef parseFormula(std::string_view text, std::string *error = nullptr);

} // namespace weft::lang

//===- FormulaText.cpp - Printing and parsing formulas --------------------===//

#include "frontend/Formula.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace weft::lang {
namespace {

using Kind = Formula::Kind;

enum Precedence { kAny = 0, kOr, kAnd, kNot, kComparison, kSum, kProduct, kNeg, kPower, kAtom };

struct Operator {
  std::string_view text;
  Kind kind;
  int precedence;
};

// `is not` before `is`, `<=` before `<`, `**` before `*`: the first that fits is taken.
constexpr std::array<Operator, 15> kOperators = {{{"or", Kind::Or, kOr},
                                                  {"and", Kind::And, kAnd},
                                                  {"is not", Kind::IsNot, kComparison},
                                                  {"is", Kind::Is, kComparison},
                                                  {"<=", Kind::LessEqual, kComparison},
                                                  {">=", Kind::GreaterEqual, kComparison},
                                                  {"<", Kind::Less, kComparison},
                                                  {">", Kind::Greater, kComparison},
                                                  {"+", Kind::Add, kSum},
                                                  {"-", Kind::Sub, kSum},
                                                  {"**", Kind::Pow, kPower},
                                                  {"*", Kind::Mul, kProduct},
                                                  {"/", Kind::Div, kProduct},
                                                  {"mod", Kind::Mod, kProduct},
                                                  {"not", Kind::Not, kNot}}};

const Operator *operatorOf(Kind kind) {
  for (const Operator &op : kOperators)
    if (op.kind == kind)
      return &op;
  return nullptr;
}

std::string numberText(double number) {
  std::array<char, 64> buffer{};
  std::to_chars_result result =
      number == std::floor(number) && std::fabs(number) < 1e15
          ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), static_cast<int64_t>(number))
          : std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return {buffer.data(), result.ptr};
}

int precedenceOf(const Formula &f) {
  if (f.kind == Kind::Neg || (f.kind == Kind::Number && std::signbit(f.number) && f.number != 0))
    return kNeg;
  if (f.kind == Kind::Select)
    return kAny; // in parentheses wherever it is an operand
  const Operator *op = operatorOf(f.kind);
  return op ? op->precedence : kAtom;
}

void print(const Formula &f, std::string &out);

void printAt(const Formula &f, int least, std::string &out) {
  bool wrap = precedenceOf(f) < least;
  out += wrap ? "(" : "";
  print(f, out);
  out += wrap ? ")" : "";
}

void print(const Formula &f, std::string &out) {
  switch (f.kind) {
  case Kind::Number:
    out += f.name.empty() ? numberText(f.number) : f.name;
    return;
  case Kind::Full:
    out += "full";
    return;
  case Kind::Name:
    out += f.name;
    return;
  case Kind::Neg:
    out += "-";
    return printAt(*f.args[0], kNeg, out);
  case Kind::Not:
    out += "not ";
    return printAt(*f.args[0], kComparison, out);
  case Kind::Call:
    out += f.name + "(";
    for (size_t i = 0; i < f.args.size(); ++i) {
      out += i ? ", " : "";
      print(*f.args[i], out);
    }
    out += ")";
    return;
  case Kind::Select: {
    const Formula *at = &f;
    for (; at->kind == Kind::Select; at = at->args[2].get()) {
      out += "if ";
      print(*at->args[0], out);
      out += " { ";
      print(*at->args[1], out);
      out += " } else ";
    }
    out += "{ ";
    print(*at, out);
    out += " }";
    return;
  }
  default:
    break;
  }
  const Operator &op = *operatorOf(f.kind);
  bool power = f.kind == Kind::Pow;
  // Comparisons do not chain, powers group to the right and take a sign there.
  printAt(*f.args[0], power || op.precedence == kComparison ? op.precedence + 1 : op.precedence, out);
  out.append(" ").append(op.text).append(" ");
  printAt(*f.args[1], power ? static_cast<int>(kNeg) : op.precedence + 1, out);
}

class FormulaParser {
public:
  FormulaParser(std::string_view text, std::string *error) : text(text), error(error) {}

  FormulaRef parse() {
    FormulaRef result = parseAt(kOr);
    skipSpaces();
    if (result && at != text.size())
      return fail("expected the end of the formula");
    return result;
  }

private:
  FormulaRef fail(std::string message) {
    if (error && error->empty())
      *error = message + " at byte " + std::to_string(at) + " of `" + std::string(text.substr(0, 200)) + "`";
    return nullptr;
  }

  void skipSpaces() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t'))
      ++at;
  }
  static bool isWordPart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  static bool isDigit(char c) { return c >= '0' && c <= '9'; }

  /// Takes `wanted` when it stands here, words only as whole words.
  bool accept(std::string_view wanted) {
    skipSpaces();
    if (text.substr(at, wanted.size()) != wanted)
      return false;
    size_t end = at + wanted.size();
    if (isWordPart(wanted.back()) && end < text.size() && isWordPart(text[end]))
      return false;
    at = end;
    return true;
  }
  bool expect(std::string_view wanted) {
    if (accept(wanted))
      return true;
    fail("expected `" + std::string(wanted) + "`");
    return false;
  }

  FormulaRef parseAt(int least) {
    FormulaRef left = parseUnary();
    while (left) {
      const Operator *op = nullptr;
      size_t before = at;
      for (const Operator &candidate : kOperators) {
        if (candidate.kind != Kind::Not && candidate.kind != Kind::Pow && accept(candidate.text)) {
          op = &candidate;
          break;
        }
      }
      if (!op || op->precedence < least) {
        at = before;
        return left;
      }
      FormulaRef right = parseAt(op->precedence + 1);
      if (!right)
        return nullptr;
      left = Formula::make(op->kind, {left, right});
      if (left->depth > kFormulaDepthLimit)
        return fail("more than 1000 levels");
    }
    return nullptr;
  }

  FormulaRef parseUnary() {
    struct Level {
      explicit Level(int &depth) : depth(++depth) {}
      ~Level() { --depth; }
      int &depth;
    } level(depth);
    if (depth > 200)
      return fail("nested more than 200 levels deep");
    bool negates = accept("-");
    if (!negates && !accept("not"))
      return parsePower();
    FormulaRef operand = negates ? parseUnary() : parseAt(kComparison);
    if (!operand)
      return nullptr;
    if (negates && operand->kind == Kind::Number && operand->name.empty() && operand->number > 0)
      return Formula::ofNumber(-operand->number);
    return Formula::make(negates ? Kind::Neg : Kind::Not, {operand});
  }

  FormulaRef parsePower() {
    FormulaRef base = parsePrimary();
    if (!base || !accept("**"))
      return base;
    FormulaRef exponent = parseUnary();
    return exponent ? Formula::make(Kind::Pow, {base, exponent}) : nullptr;
  }

  FormulaRef parsePrimary() {
    skipSpaces();
    if (at == text.size())
      return fail("expected a value");
    if (accept("(")) {
      FormulaRef inner = parseAt(kOr);
      return inner && expect(")") ? inner : nullptr;
    }
    if (isDigit(text[at]))
      return parseNumber();
    size_t start = at;
    while (at < text.size() && isWordPart(text[at]))
      ++at;
    std::string word(text.substr(start, at - start));
    if (word.empty())
      return fail("expected a value");
    if (word == "if")
      return parseSelect();
    if (word == "full")
      return Formula::make(Kind::Full, {});
    return accept("(") ? parseCall(std::move(word)) : Formula::ofName(std::move(word));
  }

  FormulaRef parseNumber() {
    double value = 0;
    std::from_chars_result result = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (result.ec != std::errc() || !std::isfinite(value))
      return fail("expected a number");
    std::string_view written = text.substr(at, static_cast<size_t>(result.ptr - (text.data() + at)));
    at += written.size();
    auto formula = std::make_shared<Formula>();
    formula->number = value;
    if (written.find('.') != std::string_view::npos && value == std::floor(value))
      formula->name = std::string(written);
    return formula;
  }

  FormulaRef parseCall(std::string name) {
    auto known = std::find_if(formulaFunctions().begin(), formulaFunctions().end(),
                              [&](const FormulaFunction &function) { return function.name == name; });
    if (known == formulaFunctions().end())
      return fail("unknown function " + name);
    std::vector<FormulaRef> args;
    do {
      args.push_back(parseAt(kOr));
      if (!args.back())
        return nullptr;
    } while (accept(","));
    if (!expect(")"))
      return nullptr;
    int count = static_cast<int>(args.size());
    if (count < known->least || count > known->most)
      return fail(name + " takes another number of arguments");
    return Formula::make(Kind::Call, std::move(args), std::move(name));
  }

  FormulaRef parseSelect() {
    std::vector<std::pair<FormulaRef, FormulaRef>> arms;
    FormulaRef last;
    do {
      FormulaRef test = parseAt(kOr);
      FormulaRef value = test && expect("{") ? parseAt(kOr) : nullptr;
      if (!value || !expect("}") || !expect("else"))
        return nullptr;
      arms.emplace_back(std::move(test), std::move(value));
      if (arms.size() > static_cast<size_t>(kFormulaDepthLimit))
        return fail("more than 1000 levels");
    } while (accept("if"));
    last = expect("{") ? parseAt(kOr) : nullptr;
    if (!last || !expect("}"))
      return nullptr;
    for (auto arm = arms.rbegin(); arm != arms.rend(); ++arm)
      last = Formula::make(Kind::Select, {arm->first, arm->second, last});
    return last;
  }

  std::string_view text;
  std::string *error;
  size_t at = 0;
  int depth = 0;
};

} // namespace

std::string Value::text() const {
  switch (kind) {
  case Kind::Number:
    return numberText(number);
  case Kind::Word:
    return word;
  case Kind::Truth:
    return number != 0 ? "yes" : "no";
  case Kind::Full:
    break;
  }
  return "full";
}

std::string print(const Formula &formula) {
  std::string out;
  print(formula, out);
  return out;
}

FormulaRef parseFormula(std::string_view text, std::string *error) {
  std::string message;
  FormulaRef result = FormulaParser(text, &message).parse();
  if (error)
    *error = message;
  return result;
}

} // namespace weft::lang

//===- Formula.cpp - Making and evaluating formulas -----------------------===//

#include "frontend/Formula.h"

#include <algorithm>
#include <cmath>

namespace weft::lang {
namespace {

using Kind = Formula::Kind;

constexpr double kWholeLimit = 9007199254740992.0; // 2^53

/// A value and whether it counts as a size: quotients of sizes must be whole.
struct Result {
  Value value;
  bool exact = true;
};

class Evaluator {
public:
  Evaluator(const Bindings &names, FormulaError *error) : names(names), error(error) {}

  std::optional<Result> evaluate(const Formula &f) {
    switch (f.kind) {
    case Kind::Number:
      return Result{Value::ofNumber(f.number), f.name.empty()};
    case Kind::Full:
      return Result{Value::full()};
    case Kind::Name:
      return lookUp(f);
    case Kind::Is:
    case Kind::IsNot:
      return compareEqual(f);
    case Kind::And:
    case Kind::Or:
    case Kind::Not:
      return logic(f);
    case Kind::Select:
      return select(f);
    case Kind::Call:
      return call(f);
    default:
      return arithmetic(f);
    }
  }

private:
  std::optional<Result> fail(const Formula &f, std::string message) {
    if (error)
      *error = {std::move(message), &f};
    return std::nullopt;
  }

  std::optional<Result> lookUp(const Formula &f) {
    auto found = names.find(f.name);
    if (found == names.end())
      return fail(f, f.name + " has no value here");
    const Value &value = found->second;
    return Result{value, value.isWhole()};
  }

  /// A side of `is`: a name without a value is a word.
  std::optional<Result> side(const Formula &f) {
    if (f.kind == Kind::Name && !names.contains(f.name))
      return Result{Value::ofWord(f.name)};
    return evaluate(f);
  }

  std::optional<Result> compareEqual(const Formula &f) {
    std::optional<Result> a = side(*f.args[0]), b = a ? side(*f.args[1]) : std::nullopt;
    if (!b)
      return std::nullopt;
    using VK = Value::Kind;
    bool aNumeric = a->value.kind == VK::Number || a->value.kind == VK::Full;
    bool bNumeric = b->value.kind == VK::Number || b->value.kind == VK::Full;
    if (a->value.kind != b->value.kind && !(aNumeric && bNumeric))
      return fail(f, print(f) + " compares " + describe(a->value) + " with " + describe(b->value));
    return Result{Value::ofTruth((a->value == b->value) == (f.kind == Kind::Is))};
  }

  static std::string describe(const Value &value) {
    switch (value.kind) {
    case Value::Kind::Number:
      return "the number " + value.text();
    case Value::Kind::Word:
      return "the word " + value.text();
    case Value::Kind::Truth:
      return "a test";
    case Value::Kind::Full:
      break;
    }
    return "full";
  }

  std::optional<bool> truth(const Formula &f) {
    std::optional<Result> result = evaluate(f);
    if (!result)
      return std::nullopt;
    if (result->value.kind != Value::Kind::Truth) {
      fail(f, print(f) + " is " + describe(result->value) + ", expected a test");
      return std::nullopt;
    }
    return result->value.number != 0;
  }

  std::optional<Result> logic(const Formula &f) {
    std::optional<bool> a = truth(*f.args[0]);
    if (!a)
      return std::nullopt;
    if (f.kind == Kind::Not)
      return Result{Value::ofTruth(!*a)};
    if (*a == (f.kind == Kind::Or))
      return Result{Value::ofTruth(*a)};
    std::optional<bool> b = truth(*f.args[1]);
    if (!b)
      return std::nullopt;
    return Result{Value::ofTruth(*b)};
  }

  std::optional<Result> select(const Formula &f) {
    // A chain of `else if` lies in the last argument: walked, not recursed into.
    const Formula *at = &f;
    while (at->kind == Kind::Select) {
      std::optional<bool> test = truth(*at->args[0]);
      if (!test)
        return std::nullopt;
      if (*test)
        return evaluate(*at->args[1]);
      at = at->args[2].get();
    }
    return evaluate(*at);
  }

  /// The operands of an arithmetic formula as numbers.
  std::optional<std::vector<Result>> numbers(const Formula &f) {
    std::vector<Result> values;
    for (const FormulaRef &arg : f.args) {
      std::optional<Result> value = evaluate(*arg);
      if (!value)
        return std::nullopt;
      if (value->value.kind != Value::Kind::Number) {
        fail(*arg, print(*arg) + " is " + describe(value->value) + ", expected a number in " + print(f));
        return std::nullopt;
      }
      values.push_back(*value);
    }
    return values;
  }

  /// `heads / kv = 7 / 8`: the formula, and itself with its operands' values.
  std::string shown(const Formula &f, const std::vector<Result> &values) {
    std::vector<FormulaRef> args;
    for (const Result &value : values)
      args.push_back(Formula::ofNumber(value.value.number));
    std::string written = print(f), met = print(*Formula::make(f.kind, std::move(args), f.name));
    return written == met ? written : written + " = " + met;
  }

  std::optional<Result> finish(const Formula &f, const std::vector<Result> &values, double number,
                               bool exact) {
    if (!std::isfinite(number))
      return fail(f, shown(f, values) + " has no finite value");
    if (exact && number == std::floor(number) && std::fabs(number) > kWholeLimit)
      return fail(f, shown(f, values) + " is larger than 2 ** 53");
    return Result{Value::ofNumber(number == 0 ? 0 : number), exact};
  }

  std::optional<Result> arithmetic(const Formula &f) {
    std::optional<std::vector<Result>> values = numbers(f);
    if (!values)
      return std::nullopt;
    double a = (*values)[0].value.number, b = values->size() > 1 ? (*values)[1].value.number : 0;
    bool exact = std::all_of(values->begin(), values->end(), [](const Result &r) { return r.exact; });
    switch (f.kind) {
    case Kind::Add:
      return finish(f, *values, a + b, exact);
    case Kind::Sub:
      return finish(f, *values, a - b, exact);
    case Kind::Mul:
      return finish(f, *values, a * b, exact);
    case Kind::Neg:
      return finish(f, *values, -a, exact);
    case Kind::Pow:
      return finish(f, *values, std::pow(a, b), exact && b >= 0);
    case Kind::Div:
      return divide(f, *values, a, b);
    case Kind::Mod:
      if (!(*values)[0].value.isWhole() || !(*values)[1].value.isWhole() || b <= 0)
        return fail(f, shown(f, *values) + " needs whole numbers and a divisor above 0");
      return finish(f, *values, a - b * std::floor(a / b), true);
    case Kind::Less:
      return Result{Value::ofTruth(a < b)};
    case Kind::LessEqual:
      return Result{Value::ofTruth(a <= b)};
    case Kind::Greater:
      return Result{Value::ofTruth(a > b)};
    default:
      return Result{Value::ofTruth(a >= b)};
    }
  }

  std::optional<Result> divide(const Formula &f, const std::vector<Result> &values, double a, double b) {
    if (b == 0)
      return fail(f, shown(f, values) + " divides by 0");
    bool sizes = values[0].exact && values[1].exact && values[0].value.isWhole() && values[1].value.isWhole();
    if (sizes && a / b != std::floor(a / b))
      return fail(f, shown(f, values) + " is not whole");
    return finish(f, values, a / b, sizes);
  }

  std::optional<Result> call(const Formula &f) {
    std::optional<std::vector<Result>> values = numbers(f);
    if (!values)
      return std::nullopt;
    double a = (*values)[0].value.number;
    bool exact = std::all_of(values->begin(), values->end(), [](const Result &r) { return r.exact; });
    if (f.name == "sqrt")
      return finish(f, *values, std::sqrt(a), false);
    if (f.name == "exp")
      return finish(f, *values, std::exp(a), false);
    if (f.name == "log")
      return finish(f, *values, std::log(a), false);
    if (f.name == "floor")
      return finish(f, *values, std::floor(a), true);
    if (f.name == "ceil")
      return finish(f, *values, std::ceil(a), true);
    if (f.name == "round")
      return finish(f, *values, std::round(a), true);
    if (f.name == "abs")
      return finish(f, *values, std::fabs(a), exact);
    for (const Result &value : *values)
      a = f.name == "min" ? std::min(a, value.value.number) : std::max(a, value.value.number);
    return finish(f, *values, a, exact);
  }

  const Bindings &names;
  FormulaError *error;
};

} // namespace

bool Value::isWhole() const {
  return kind == Kind::Number && number == std::floor(number) && std::fabs(number) <= kWholeLimit;
}

FormulaRef Formula::ofNumber(double number) {
  auto formula = std::make_shared<Formula>();
  formula->number = number;
  return formula;
}

FormulaRef Formula::ofName(std::string name) { return make(Kind::Name, {}, std::move(name)); }

FormulaRef Formula::make(Kind kind, std::vector<FormulaRef> args, std::string name) {
  auto formula = std::make_shared<Formula>();
  formula->kind = kind;
  formula->name = std::move(name);
  for (const FormulaRef &arg : args) {
    formula->depth = std::max(formula->depth, arg->depth + 1);
    formula->size = std::min(formula->size + arg->size, int64_t{1} << 40);
  }
  formula->args = std::move(args);
  return formula;
}

const std::vector<FormulaFunction> &formulaFunctions() {
  static const std::vector<FormulaFunction> functions = {{"sqrt", 1, 1},  {"exp", 1, 1},  {"log", 1, 1},
                                                         {"floor", 1, 1}, {"ceil", 1, 1}, {"round", 1, 1},
                                                         {"abs", 1, 1},   {"min", 2, 64}, {"max", 2, 64}};
  return functions;
}

std::optional<Value> evaluate(const Formula &formula, const Bindings &names, FormulaError *error) {
  std::optional<Result> result = Evaluator(names, error).evaluate(formula);
  if (!result)
    return std::nullopt;
  return result->value;
}

std::vector<std::string> namesIn(const Formula &formula) {
  std::vector<std::string> names;
  std::vector<const Formula *> pending = {&formula};
  while (!pending.empty()) {
    const Formula *next = pending.back();
    pending.pop_back();
    if (next->kind == Kind::Name && std::find(names.begin(), names.end(), next->name) == names.end())
      names.push_back(next->name);
    for (auto arg = next->args.rbegin(); arg != next->args.rend(); ++arg)
      pending.push_back(arg->get());
  }
  return names;
}

} // namespace weft::lang

//===- CheckCalls.cpp - Defs, builtins and their arguments ----------------===//

#include "frontend/CheckerImpl.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <array>

namespace weft::lang {
namespace {

constexpr std::array<std::string_view, 10> kUnary = {"sqrt", "exp",  "log",       "tanh", "sigmoid",
                                                     "silu", "gelu", "gelu_tanh", "relu", "neg"};
constexpr std::array<std::string_view, 7> kOther = {"layer_norm", "rms_norm", "softmax",      "rope",
                                                    "attend",     "dropout",  "cross_entropy"};

bool isUnary(std::string_view name) {
  return name != "neg" && std::find(kUnary.begin(), kUnary.end(), name) != kUnary.end();
}

FormulaRef number(double value) { return Formula::ofNumber(value); }

} // namespace

Item ModelChecker::checkCall(const ast::Expr &expr) {
  Found found = lookUp(expr.text);
  const bool isDef = found.symbol && found.symbol->kind == Symbol::Kind::Def;
  const Place name = wordIn(expr.place, expr.text);
  if (isDef)
    indexUse(name, expr.text, *found.symbol, Item::nothing());
  Item item = isDef ? pasteDef(expr, found) : checkBuiltin(expr);
  if (isDef && index)
    index->setType(name, typeText(item), expr.place);
  else
    indexTerm(NameKind::Function, name, expr.text, item, expr.place);
  return item;
}

/// Apart from checkCall: chains of defs recurse through that one.
Item ModelChecker::checkBuiltin(const ast::Expr &expr) {
  const std::string &name = expr.text;
  if (name == "layer_norm")
    return checkRowFunction(expr, NodeKind::LayerNorm, {name, 1, 1, {{"eps", number(1e-5)}}});
  if (name == "rms_norm")
    return checkRowFunction(expr, NodeKind::RmsNorm, {name, 1, 1, {{"eps", number(1e-6)}}});
  if (name == "softmax")
    return checkRowFunction(expr, NodeKind::Softmax, {name, 1, 1, {}});
  if (name == "rope")
    return checkRowFunction(expr, NodeKind::Rope, {name, 1, 1, {{"base", number(1e4)}}});
  if (name == "attend")
    return checkAttend(expr);
  if (name == "dropout")
    return checkDropout(expr);
  if (name == "cross_entropy")
    return checkCrossEntropy(expr);
  if (std::optional<Item> item = checkFormulaCall(expr))
    return *item;
  if (isUnary(name))
    return checkUnary(expr);
  reportUnknownFunction(expr);
  return Item::poison();
}

void ModelChecker::reportUnknownFunction(const ast::Expr &expr) {
  std::vector<std::string> known(kOther.begin(), kOther.end());
  for (std::string_view name : kUnary)
    if (name != "neg")
      known.emplace_back(name);
  for (const FormulaFunction &function : formulaFunctions())
    known.emplace_back(function.name);
  for (const Scope *at = scope; at; at = at->parent)
    for (const auto &[name, symbol] : at->symbols)
      if (symbol.kind == Symbol::Kind::Def)
        known.push_back(name);
  std::string close = nearest(expr.text, known);
  error(Code::W0203, expr.place, absl::StrCat("there is no function or def ", expr.text, " here"))
      .advise(close.empty() ? "" : absl::StrCat("did you mean ", close, "?"));
}

//===----------------------------------------------------------------------===//
// Defs
//===----------------------------------------------------------------------===//

Item ModelChecker::pasteDef(const ast::Expr &expr, const Found &found) {
  const ast::Stmt *def = found.symbol->def;
  auto running =
      std::find_if(calls.begin(), calls.end(), [&](const PastedCall &call) { return call.def == def; });
  if (running != calls.end()) {
    std::string chain;
    for (; running != calls.end(); ++running)
      absl::StrAppend(&chain, running->def->names[0].text, " -> ");
    error(Code::W0204, expr.place, absl::StrCat("def ", expr.text, " calls itself: ", chain, expr.text))
        .advise("a def is pasted where it is called; repeat with a layer");
    return Item::poison();
  }
  for (const ast::Name &key : expr.keys)
    if (!key.text.empty()) {
      error(Code::W0207, key.place,
            absl::StrCat("def ", expr.text, " takes its arguments by position, found ", key.text, " = ..."))
          .note(found.symbol->place, absl::StrCat(expr.text, " is declared here"));
      return Item::poison();
    }
  if (expr.items.size() != def->parameters.size()) {
    error(Code::W0206, expr.place,
          absl::StrCat("def ", expr.text, " takes ", def->parameters.size(),
                       def->parameters.size() == 1 ? " argument" : " arguments", ", found ",
                       expr.items.size()))
        .note(found.symbol->place, absl::StrCat(expr.text, " is declared here"));
    return Item::poison();
  }
  std::vector<Item> arguments;
  bool poisoned = false;
  for (const ast::Expr *item : expr.items) {
    arguments.push_back(checkExpr(*item));
    poisoned = poisoned || arguments.back().isPoison();
  }
  // Defs that call defs twice double at every level, with or without operations.
  if (++pastedCalls > kPastedCallLimit)
    reportTooMany(expr.place);
  if (poisoned || reportedNodes)
    return Item::poison();
  return pasteBody(expr, found, std::move(arguments));
}

/// The body with its arguments bound. It sees the names of the place where the
/// def is written; what it emits and declares belongs to the caller.
Item ModelChecker::pasteBody(const ast::Expr &expr, const Found &found, std::vector<Item> arguments) {
  const ast::Stmt *def = found.symbol->def;
  Scope inner{Scope::Kind::Def, expr.text, found.scope, {}, {}};
  Scope *outer = scope;
  calls.push_back({def, expr.place});
  scope = &inner;
  for (size_t i = 0; i < arguments.size(); ++i)
    declare(def->parameters[i],
            {Symbol::Kind::Argument, def->parameters[i].place, std::move(arguments[i]), nullptr});
  Item item = def->body ? checkBlock(*def->body, true) : checkExpr(*def->expr);
  if (item.kind == Item::Kind::Nothing) {
    error(Code::W0317, def->names[0].place, absl::StrCat("def ", expr.text, " has no value"))
        .advise("its last statement must be an expression: the value of the call");
    item = Item::poison();
  }
  scope = outer;
  calls.pop_back();
  return item;
}

//===----------------------------------------------------------------------===//
// Arguments of builtins
//===----------------------------------------------------------------------===//

void ModelChecker::takeOption(const ast::Expr &expr, const Signature &signature, size_t index, size_t option,
                              Arguments &arguments) {
  std::string name(signature.options[option].name);
  FormulaRef value = formulaOf(*expr.items[index], absl::StrCat(name, " of ", expr.text));
  if (arguments.named.contains(name)) {
    error(Code::W0109, expr.keys[index].text.empty() ? expr.items[index]->place : expr.keys[index].place,
          absl::StrCat(expr.text, " gets ", name, " twice"));
    value = nullptr;
  }
  arguments.ok = arguments.ok && value;
  arguments.named[name] = value;
}

ModelChecker::Arguments ModelChecker::checkArguments(const ast::Expr &expr, const Signature &signature) {
  Arguments arguments;
  std::vector<std::string> names;
  for (const Signature::Option &option : signature.options)
    names.emplace_back(option.name);
  size_t position = 0;
  for (size_t i = 0; i < expr.items.size(); ++i) {
    const ast::Name &key = expr.keys[i];
    auto named = std::find(names.begin(), names.end(), key.text);
    if (named != names.end()) {
      takeOption(expr, signature, i, static_cast<size_t>(named - names.begin()), arguments);
    } else if (!key.text.empty()) {
      std::string close = nearest(key.text, names);
      error(Code::W0207, key.place,
            absl::StrCat(expr.text, " has no argument ", key.text,
                         names.empty() ? ", it has none with a name"
                                       : absl::StrCat(", it has ", absl::StrJoin(names, ", "))))
          .advise(close.empty() ? "" : absl::StrCat("did you mean ", close, "?"));
      arguments.ok = false;
    } else if (position < signature.most) {
      arguments.items.push_back(checkExpr(*expr.items[i]));
      arguments.ok = arguments.ok && !arguments.items.back().isPoison();
      ++position;
    } else if (position < signature.most + names.size()) {
      takeOption(expr, signature, i, position - signature.most, arguments);
      ++position;
    } else {
      ++position;
    }
  }
  bool required = !names.empty() && !signature.options[0].standard;
  size_t most = signature.most + names.size();
  bool missing = required && !arguments.named.contains(names[0]);
  if (arguments.items.size() < signature.least || position > most || missing) {
    error(Code::W0206, expr.place,
          absl::StrCat(expr.text, " takes ",
                       signature.least == signature.most ? "" : absl::StrCat(signature.least, " or "),
                       signature.most, signature.most == 1 ? " tensor" : " tensors",
                       names.empty() ? "" : absl::StrCat(" and ", absl::StrJoin(names, ", ")), ", found ",
                       expr.items.size(), expr.items.size() == 1 ? " argument" : " arguments"));
    arguments.ok = false;
  }
  for (const Signature::Option &option : signature.options)
    arguments.named.emplace(std::string(option.name), option.standard);
  return arguments;
}

/// sqrt, exp, log, min, ... of numbers alone give a number; nullopt when the
/// call is none of those.
std::optional<Item> ModelChecker::checkFormulaCall(const ast::Expr &expr) {
  auto function = std::find_if(formulaFunctions().begin(), formulaFunctions().end(),
                               [&](const FormulaFunction &known) { return known.name == expr.text; });
  if (function == formulaFunctions().end() || isUnary(expr.text))
    return std::nullopt;
  int count = static_cast<int>(expr.items.size());
  if (count < function->least || count > function->most) {
    error(Code::W0206, expr.place,
          absl::StrCat(expr.text, " takes ", function->least == function->most ? "" : "at least ",
                       function->least, function->least == 1 ? " number" : " numbers", ", found ", count));
    return Item::poison();
  }
  std::vector<FormulaRef> values;
  for (size_t i = 0; i < expr.items.size(); ++i) {
    if (!expr.keys[i].text.empty()) {
      error(Code::W0207, expr.keys[i].place, absl::StrCat(expr.text, " has no argument ", expr.keys[i].text));
      return Item::poison();
    }
    values.push_back(formulaOf(*expr.items[i], expr.text));
    if (!values.back())
      return Item::poison();
  }
  FormulaRef formula = makeFormula(Formula::Kind::Call, std::move(values), expr.place, expr.text);
  return formula ? Item::of(formula) : Item::poison();
}

//===----------------------------------------------------------------------===//
// Builtins
//===----------------------------------------------------------------------===//

Item ModelChecker::checkUnary(const ast::Expr &expr) {
  Arguments arguments = checkArguments(expr, {expr.text, 1, 1, {}});
  if (!arguments.ok)
    return Item::poison();
  bool ofNumbers = expr.text == "sqrt" || expr.text == "exp" || expr.text == "log";
  if (ofNumbers && arguments.items[0].isFormula()) {
    FormulaRef formula =
        makeFormula(Formula::Kind::Call, {arguments.items[0].formula}, expr.place, expr.text);
    return formula ? Item::of(formula) : Item::poison();
  }
  std::optional<ValueId> value = tensorOf(arguments.items[0], expr.place, expr.text);
  if (!value || !needsFloat(*value, expr.place, expr.text))
    return Item::poison();
  return emitValue(NodeKind::Unary, expr.place, {*value}, typeOf(*value), expr.text);
}

Item ModelChecker::checkRowFunction(const ast::Expr &expr, NodeKind kind, const Signature &signature) {
  Arguments arguments = checkArguments(expr, signature);
  if (!arguments.ok)
    return Item::poison();
  std::optional<ValueId> value = tensorOf(arguments.items[0], expr.place, expr.text);
  if (!value || !needsFloat(*value, expr.place, expr.text))
    return Item::poison();
  const TensorType type = typeOf(*value);
  bool hasRow = !type.axes.empty() && !isData(type.axes.back());
  bool hasPos = std::find(type.axes.begin(), type.axes.end(), "pos") != type.axes.end();
  if (!hasRow || (kind == NodeKind::Rope && !hasPos)) {
    Diagnostic &entry = error(Code::W0303, expr.place,
                              absl::StrCat(expr.text, " works on the last axis, expected ",
                                           kind == NodeKind::Rope ? "[batch, pos, ..., channel]"
                                                                  : "one that is no axis of the data",
                                           ", found ", shapeText(type)));
    noteDeclaration(entry, *value);
    return Item::poison();
  }
  return emitValue(kind, expr.place, {*value}, type, {}, std::move(arguments.named));
}

Item ModelChecker::checkAttend(const ast::Expr &expr) {
  FormulaRef scale = number(0); // replaced below: it asks for q's last axis
  Arguments arguments = checkArguments(
      expr, {expr.text, 3, 3, {{"window", Formula::make(Formula::Kind::Full, {})}, {"scale", scale}}});
  if (!arguments.ok)
    return Item::poison();
  std::vector<ValueId> operands;
  for (size_t i = 0; i < 3; ++i) {
    std::optional<ValueId> value = tensorOf(arguments.items[i], expr.place, "attend");
    if (!value || !needsFloat(*value, expr.place, "attend"))
      return Item::poison();
    operands.push_back(*value);
  }
  TensorType type;
  const TensorType q = typeOf(operands[0]), k = typeOf(operands[1]), v = typeOf(operands[2]);
  if (!attendAxes(q, k, v, expr.place, type.axes))
    return Item::poison();
  if (arguments.named["scale"] == scale)
    arguments.named["scale"] =
        Formula::make(Formula::Kind::Pow, {Formula::ofName(q.axes.back()), number(-0.5)});
  return emitValue(NodeKind::Attend, expr.place, std::move(operands), type, {}, std::move(arguments.named));
}

Item ModelChecker::checkDropout(const ast::Expr &expr) {
  Arguments arguments = checkArguments(expr, {expr.text, 1, 1, {{"rate", nullptr}}});
  if (!arguments.ok)
    return Item::poison();
  std::optional<ValueId> value = tensorOf(arguments.items[0], expr.place, expr.text);
  if (!value || !needsFloat(*value, expr.place, expr.text))
    return Item::poison();
  return emitValue(NodeKind::Dropout, expr.place, {*value}, typeOf(*value), {}, std::move(arguments.named));
}

Item ModelChecker::checkCrossEntropy(const ast::Expr &expr) {
  Arguments arguments = checkArguments(expr, {expr.text, 2, 3, {{"z", number(0)}, {"smoothing", number(0)}}});
  if (!arguments.ok)
    return Item::poison();
  std::vector<ValueId> operands;
  for (const Item &item : arguments.items) {
    std::optional<ValueId> value = tensorOf(item, expr.place, expr.text);
    if (!value)
      return Item::poison();
    operands.push_back(*value);
  }
  const TensorType logits = typeOf(operands[0]), targets = typeOf(operands[1]);
  std::vector<std::string> rows(logits.axes.begin(),
                                logits.axes.empty() ? logits.axes.end() : logits.axes.end() - 1);
  bool ok = logits.element == TensorType::Element::Float && !logits.axes.empty() &&
            !isData(logits.axes.back()) && targets.element == TensorType::Element::Int &&
            targets.axes == rows;
  std::string found = absl::StrCat("logits ", shapeText(logits), " and targets ", shapeText(targets));
  if (operands.size() == 3) {
    const TensorType weight = typeOf(operands[2]);
    ok = ok && weight.element == TensorType::Element::Float && weight.axes == rows;
    absl::StrAppend(&found, " and weight ", shapeText(weight));
  }
  if (!ok) {
    Diagnostic &entry =
        error(Code::W0313, expr.place,
              absl::StrCat("expected logits [batch, pos, classes], targets int[batch, pos] and, if "
                           "given, weight [batch, pos], found ",
                           found));
    for (ValueId value : operands)
      noteDeclaration(entry, value);
    return Item::poison();
  }
  return emitValue(NodeKind::CrossEntropy, expr.place, std::move(operands), TensorType{}, {},
                   std::move(arguments.named));
}

/// `embed[tokens]`: the table's first axis is looked up; the index's axes come
/// first, then what is left of the table's.
Item ModelChecker::checkIndex(const ast::Expr &expr) {
  Item table = checkExpr(*expr.items[0]), index = checkExpr(*expr.items[1]);
  if (table.isPoison() || index.isPoison())
    return Item::poison();
  auto text = [&](const Item &item) {
    return item.isFormula() ? print(*item.formula) : shapeText(typeOf(item.value));
  };
  bool ok = table.isTensor() && index.isTensor() &&
            typeOf(table.value).element == TensorType::Element::Float &&
            typeOf(index.value).element == TensorType::Element::Int && !typeOf(table.value).axes.empty() &&
            !isData(typeOf(table.value).axes[0]);
  if (!ok) {
    error(Code::W0312, expr.place,
          absl::StrCat("expected a table of floats and an index of whole numbers, found ", text(table),
                       " and ", text(index)))
        .advise("`embed[tokens]` looks up the first axis of embed");
    return Item::poison();
  }
  const TensorType &tableType = typeOf(table.value);
  TensorType type{TensorType::Element::Float, typeOf(index.value).axes};
  type.axes.insert(type.axes.end(), tableType.axes.begin() + 1, tableType.axes.end());
  if (repeatsAxis(type.axes, expr.place, "this look-up"))
    return Item::poison();
  return emitValue(NodeKind::Gather, expr.place, {table.value, index.value}, type);
}

} // namespace weft::lang

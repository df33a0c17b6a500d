//===- CheckAxes.cpp - How axes line up -----------------------------------===//

#include "frontend/CheckerImpl.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace weft::lang {
namespace {

bool contains(const std::vector<std::string> &axes, const std::string &axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Whether every axis of `inner` is one of `outer`.
bool holds(const std::vector<std::string> &outer, const std::vector<std::string> &inner) {
  return std::all_of(inner.begin(), inner.end(),
                     [&](const std::string &axis) { return contains(outer, axis); });
}

/// Whether `inner` is `outer` with axes left out.
bool isSubsequence(const std::vector<std::string> &outer, const std::vector<std::string> &inner) {
  size_t at = 0;
  for (const std::string &axis : outer)
    at += at < inner.size() && inner[at] == axis ? 1 : 0;
  return at == inner.size();
}

} // namespace

/// `[batch, pos, dim = 768]`; `int` in front of whole numbers.
std::string ModelChecker::shapeText(const TensorType &type) const {
  std::string text = type.element == TensorType::Element::Int ? "int[" : "[";
  for (size_t i = 0; i < type.axes.size(); ++i) {
    absl::StrAppend(&text, i ? ", " : "", type.axes[i]);
    auto size = statics.find(type.axes[i]);
    if (size != statics.end() && size->second.kind == Value::Kind::Number)
      absl::StrAppend(&text, " = ", size->second.text());
  }
  return text + "]";
}

ValueId ModelChecker::newValue(TensorType type) {
  model.values.push_back(std::move(type));
  model.valueNames.emplace_back();
  valuePlaces.emplace_back();
  return static_cast<ValueId>(model.values.size() - 1);
}

void ModelChecker::reportTooMany(const Place &place) {
  if (reportedNodes)
    return;
  reportedNodes = true;
  error(Code::W0324, place,
        absl::StrCat("more than ", kWrittenNodeLimit, " operations or ", kPastedCallLimit,
                     " calls once defs are pasted, before layers repeat"))
      .advise("repeat parts with a layer instead of pasting defs");
}

Node &ModelChecker::emit(NodeKind kind, const Place &place, std::vector<ValueId> operands) {
  Node &node = block->nodes.emplace_back();
  node.kind = kind;
  node.place = place;
  node.operands = std::move(operands);
  if (++nodeCount > kWrittenNodeLimit)
    reportTooMany(place);
  return node;
}

Item ModelChecker::emitValue(NodeKind kind, const Place &place, std::vector<ValueId> operands,
                             TensorType type, std::string name, std::map<std::string, FormulaRef> formulas) {
  ValueId result = newValue(std::move(type));
  valuePlaces[static_cast<size_t>(result)] = place;
  Node &node = emit(kind, place, std::move(operands));
  node.name = std::move(name);
  node.formulas = std::move(formulas);
  node.results = {result};
  // Past the limit nothing more is made: pasted defs can double at every level.
  return reportedNodes ? Item::poison() : Item::of(result);
}

/// The item as a tensor: a number known before anything runs becomes a constant.
std::optional<ValueId> ModelChecker::tensorOf(const Item &item, const Place &place, std::string_view what) {
  if (item.isTensor())
    return item.value;
  if (!item.isFormula())
    return std::nullopt;
  if (!isSymbolic(*item.formula)) {
    std::optional<Value> value = evaluateNow(*item.formula, place);
    if (!value)
      return std::nullopt;
    if (value->kind != Value::Kind::Number) {
      error(Code::W0326, place,
            absl::StrCat("expected a tensor or a number in ", std::string(what), ", found ", value->text()));
      return std::nullopt;
    }
  }
  Item constant = emitValue(NodeKind::Constant, place, {}, TensorType{}, {}, {{"value", item.formula}});
  return constant.isTensor() ? std::optional(constant.value) : std::nullopt;
}

bool ModelChecker::needsFloat(ValueId value, const Place &place, std::string_view what) {
  if (typeOf(value).element == TensorType::Element::Float)
    return true;
  Diagnostic &entry =
      error(Code::W0306, place,
            absl::StrCat("expected floats in ", std::string(what), ", found ", shapeText(typeOf(value))));
  noteDeclaration(entry, value);
  entry.advise("whole numbers only look up (`embed[tokens]`) or are targets of cross_entropy");
  return false;
}

void ModelChecker::noteDeclaration(Diagnostic &diagnostic, ValueId value) {
  const std::string &name = model.valueNames[static_cast<size_t>(value)];
  if (!name.empty())
    diagnostic.note(valuePlaces[static_cast<size_t>(value)],
                    absl::StrCat(name, " : ", shapeText(typeOf(value)), " comes from here"));
}

/// Reports an axis name that stands twice.
bool ModelChecker::repeatsAxis(const std::vector<std::string> &axes, const Place &place,
                               std::string_view what) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) ==
        axes.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    error(Code::W0305, place,
          absl::StrCat("the axis ", axes[i], " would stand twice in ", std::string(what), ", ",
                       shapeText({TensorType::Element::Float, axes})))
        .advise(absl::StrCat("give one of them its own name: `let ", axes[i], "2 = ", axes[i], "`"));
    return true;
  }
  return false;
}

/// Whether every axis of a value that leaves a block has a size out here.
bool ModelChecker::axesKnown(ValueId value, std::string_view what) {
  for (const std::string &axis : typeOf(value).axes) {
    if (isData(axis) || statics.contains(axis) || activeLets.contains(axis))
      continue;
    Diagnostic &entry = error(Code::W0309, valuePlaces[static_cast<size_t>(value)],
                              absl::StrCat(std::string(what), ", ", shapeText(typeOf(value)),
                                           ", has the axis ", axis, ", which is known inside of it only"));
    if (letPlaces.contains(axis))
      entry.note(letPlaces.at(axis), absl::StrCat(axis, " is declared here"));
    entry.advise(absl::StrCat("declare ", axis, " outside of it"));
    return false;
  }
  return true;
}

/// + - * / **: one side holds all axes of the other, and its order is the result's.
Item ModelChecker::alignedBinary(const std::string &op, ValueId a, ValueId b, const Place &place) {
  if (!needsFloat(a, place, "arithmetic") || !needsFloat(b, place, "arithmetic"))
    return Item::poison();
  const TensorType left = typeOf(a), right = typeOf(b);
  static const std::map<std::string, std::string> names = {
      {"+", "add"}, {"-", "sub"}, {"*", "mul"}, {"/", "div"}, {"**", "pow"}};
  if (holds(left.axes, right.axes))
    return emitValue(NodeKind::Binary, place, {a, b}, left, names.at(op));
  if (holds(right.axes, left.axes))
    return emitValue(NodeKind::Binary, place, {a, b}, right, names.at(op));
  std::string missing;
  for (const std::string &axis : right.axes)
    if (!contains(left.axes, axis))
      absl::StrAppend(&missing, missing.empty() ? "" : ", ", axis);
  std::string other;
  for (const std::string &axis : left.axes)
    if (!contains(right.axes, axis))
      absl::StrAppend(&other, other.empty() ? "" : ", ", axis);
  Diagnostic &entry = error(Code::W0301, place,
                            absl::StrCat("the axes of `", op, "` do not line up: ", shapeText(left), " ", op,
                                         " ", shapeText(right), "; the left side lacks ", missing,
                                         ", the right side lacks ", other));
  noteDeclaration(entry, a);
  noteDeclaration(entry, b);
  entry.advise("one side must hold all axes of the other");
  return Item::poison();
}

/// `@`: sums the axes both sides share, data axes excepted.
Item ModelChecker::contract(ValueId a, ValueId b, const Place &place) {
  if (!needsFloat(a, place, "a product") || !needsFloat(b, place, "a product"))
    return Item::poison();
  const TensorType left = typeOf(a), right = typeOf(b);
  std::vector<std::string> axes;
  bool sums = false;
  for (const std::string &axis : left.axes) {
    bool summed = contains(right.axes, axis) && !isData(axis);
    sums = sums || summed;
    if (!summed)
      axes.push_back(axis);
  }
  for (const std::string &axis : right.axes)
    if (!contains(left.axes, axis))
      axes.push_back(axis);
  if (!sums) {
    Diagnostic &entry = error(Code::W0302, place,
                              absl::StrCat("`@` finds no axis to sum: ", shapeText(left), " @ ",
                                           shapeText(right), " share no axis besides those of the data"));
    noteDeclaration(entry, a);
    noteDeclaration(entry, b);
    entry.advise("`@` sums the axes that both sides share; `*` multiplies without summing");
    return Item::poison();
  }
  return emitValue(NodeKind::Contract, place, {a, b}, {TensorType::Element::Float, std::move(axes)});
}

/// The axes of attend's result; reports what does not fit.
bool ModelChecker::attendAxes(const TensorType &q, const TensorType &k, const TensorType &v,
                              const Place &place, std::vector<std::string> &axes) {
  auto refuse = [&](std::string why) {
    error(Code::W0304, place,
          absl::StrCat(why, ": q ", shapeText(q), ", k ", shapeText(k), ", v ", shapeText(v)))
        .advise("q is [batch, pos, heads ..., channel]; k and v have the same axes or fewer between pos and "
                "the last");
    return false;
  };
  for (const TensorType *type : {&q, &k, &v})
    if (type->axes.size() < 3 || type->axes[0] != "batch" || type->axes[1] != "pos" ||
        isData(type->axes.back()))
      return refuse("expected [batch, pos, ..., channel]");
  if (q.axes.back() != k.axes.back())
    return refuse(
        absl::StrCat("q and k must share their last axis, found ", q.axes.back(), " and ", k.axes.back()));
  auto middle = [](const TensorType &type) {
    return std::vector<std::string>(type.axes.begin() + 2, type.axes.end() - 1);
  };
  if (middle(k) != middle(v))
    return refuse("k and v must have the same axes between pos and the last");
  if (!isSubsequence(middle(q), middle(k)))
    return refuse("k has an axis between pos and the last that q lacks, or in another order");
  axes = q.axes;
  axes.back() = v.axes.back();
  return !repeatsAxis(axes, place, "the result of attend");
}

} // namespace weft::lang

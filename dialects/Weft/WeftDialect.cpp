//===- WeftDialect.cpp - Registration, attributes, axes -------------------===//

#include "dialects/Weft/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/Weft/WeftDialect.cpp.inc"
#include "dialects/Weft/WeftEnums.cpp.inc"
#include "dialects/Weft/WeftInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Weft/WeftAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Weft/WeftOps.cpp.inc"

using namespace mlir;
using namespace weft;

void WeftDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Weft/WeftAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Weft/WeftOps.cpp.inc"
      >();
}

void weft::registerWeftDialects(DialectRegistry &registry) {
  registry.insert<WeftDialect, func::FuncDialect>();
}

//===----------------------------------------------------------------------===//
// #weft.axes
//===----------------------------------------------------------------------===//

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  auto parseName = [&]() -> ParseResult {
    std::string name;
    if (succeeded(parser.parseOptionalKeywordOrString(&name))) {
      names.push_back(StringAttr::get(parser.getContext(), name));
      return success();
    }
    return parser.emitError(parser.getCurrentLocation(), "expected the name of an axis");
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseName))
    return {};
  return getChecked([&] { return parser.emitError(parser.getNameLoc()); }, parser.getContext(), names);
}

void AxesAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getNames(), printer,
                        [&](StringAttr name) { printer.printKeywordOrString(name.getValue()); });
  printer << ">";
}

LogicalResult AxesAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<StringAttr> names) {
  llvm::SmallPtrSet<Attribute, 8> seen;
  for (StringAttr name : names)
    if (!seen.insert(name).second) // C2
      return emitError() << "axis '" << name.getValue() << "' stands twice; a tensor has each axis name once";
  return success();
}

LogicalResult AxesAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() == getNames().size()) // C1
    return success();
  return emitError() << "expects one name an axis, but got " << getNames().size() << " names for "
                     << shape.size() << " axes";
}

//===----------------------------------------------------------------------===//
// #weft.formula
//===----------------------------------------------------------------------===//

FormulaAttr FormulaAttr::get(MLIRContext *context, const lang::Formula &formula) {
  return get(context, StringAttr::get(context, lang::print(formula)));
}

lang::FormulaRef FormulaAttr::formula() const { return lang::parseFormula(getText().getValue()); }

LogicalResult FormulaAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr text) {
  std::string error;
  if (!lang::parseFormula(text.getValue(), &error)) // C1
    return emitError() << "'" << text.getValue() << "' is not a formula: " << error;
  return success();
}

//===----------------------------------------------------------------------===//
// #weft.slices
//===----------------------------------------------------------------------===//

LogicalResult SlicesAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> fullShape,
                                 int64_t firstAxis, int64_t axisCount, ArrayRef<int64_t> kept) {
  auto rank = static_cast<int64_t>(fullShape.size());
  if (firstAxis < 0 || axisCount < 1 || firstAxis + axisCount > rank) // C1
    return emitError() << "expects axes of a tensor of " << rank << ", but got " << firstAxis << " + "
                       << axisCount;
  int64_t places = 1, last = -1;
  for (int64_t size : fullShape.slice(static_cast<size_t>(firstAxis), static_cast<size_t>(axisCount)))
    places *= size;
  for (int64_t place : kept)
    if (place <= std::exchange(last, place) || place >= places) // C2
      return emitError() << "expects places below " << places << " that increase, but got " << place;
  return success();
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

ArrayRef<StringAttr> weft::axesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto axes = tensor ? dyn_cast_or_null<AxesAttr>(tensor.getEncoding()) : AxesAttr();
  return axes ? axes.getNames() : ArrayRef<StringAttr>();
}

int64_t weft::axisIndex(Type type, StringAttr name) {
  ArrayRef<StringAttr> names = axesOf(type);
  const StringAttr *found = llvm::find(names, name);
  return found == names.end() ? -1 : found - names.begin();
}

RankedTensorType weft::namedTensor(ArrayRef<StringAttr> names, ArrayRef<int64_t> sizes, Type element) {
  if (names.empty())
    return RankedTensorType::get(sizes, element);
  return RankedTensorType::get(sizes, element, AxesAttr::get(element.getContext(), names));
}

RankedTensorType weft::withElement(RankedTensorType type, Type element) {
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}

int64_t weft::headCount(RankedTensorType q) {
  int64_t heads = 1;
  for (int64_t axis = 2; axis + 1 < q.getRank(); ++axis)
    heads *= q.getDimSize(axis);
  return heads;
}

double weft::numberOf(Attribute attribute) { return cast<FloatAttr>(attribute).getValueAsDouble(); }

Value weft::constantOf(OpBuilder &builder, Location loc, RankedTensorType type, double value) {
  return ConstantOp::create(builder, loc, type, builder.getF64FloatAttr(value));
}

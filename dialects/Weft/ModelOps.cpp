//===- ModelOps.cpp - Rolled models and state -----------------------------===//

#include "dialects/Weft/Constraints.h"

using namespace mlir;
using namespace weft;

// The implicit end of a region: yields nothing.
void YieldOp::build(OpBuilder &, OperationState &) {}

//===----------------------------------------------------------------------===//
// weft.model
//===----------------------------------------------------------------------===//

/// `weft.model @gpt2 {dim = "768", head = "dim / heads"} { ... }`
ParseResult ModelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr symbol;
  if (parser.parseSymbolName(symbol, SymbolTable::getSymbolAttrName(), result.attributes))
    return failure();
  SmallVector<Attribute> names, formulas;
  auto parseSetting = [&]() -> ParseResult {
    std::string name, text;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() || parser.parseString(&text))
      return failure();
    auto formula = FormulaAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                           parser.getBuilder().getStringAttr(text));
    if (!formula)
      return failure();
    names.push_back(parser.getBuilder().getStringAttr(name));
    formulas.push_back(formula);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseSetting) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseRegion(*result.addRegion()))
    return failure();
  if (result.regions.front()->empty())
    result.regions.front()->emplaceBlock();
  result.addAttribute("names", parser.getBuilder().getArrayAttr(names));
  result.addAttribute("formulas", parser.getBuilder().getArrayAttr(formulas));
  return success();
}

void ModelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " {";
  llvm::interleaveComma(llvm::zip(getNames(), getFormulas()), printer, [&](auto pair) {
    printer.printKeywordOrString(cast<StringAttr>(std::get<0>(pair)).getValue());
    printer << " = ";
    printer.printAttributeWithoutType(cast<FormulaAttr>(std::get<1>(pair)).getText());
  });
  printer << "}";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {SymbolTable::getSymbolAttrName(), "names", "formulas"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult ModelOp::verify() {
  if (getNames().size() != getFormulas().size()) // model_c1
    return emitOpError("expects one formula a name, but got ")
           << getNames().size() << " names and " << getFormulas().size() << " formulas";
  for (Attribute formula : getFormulas())
    if (!isa<FormulaAttr>(formula)) // model_c1
      return emitOpError("expects formulas, but got ") << formula;
  return success();
}

//===----------------------------------------------------------------------===//
// weft.layer
//===----------------------------------------------------------------------===//

/// `%r = weft.layer "block" [i < "depth"] (%x = %0) { ... } : tensor<...>`
ParseResult LayerOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  std::string index, count;
  if (parser.parseAttribute(name, "name", result.attributes) || parser.parseLSquare())
    return failure();
  if (succeeded(parser.parseOptionalKeywordOrString(&index)) && parser.parseLess())
    return failure();
  StringAttr text;
  if (parser.parseLess() || parser.parseAttribute(text) || parser.parseGreater() || parser.parseRSquare())
    return failure();
  result.addAttribute("index", parser.getBuilder().getStringAttr(index));
  result.addAttribute("count", FormulaAttr::get(parser.getContext(), text));
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  if (parser.parseAssignmentList(arguments, operands) || parser.parseColon())
    return failure();
  if (operands.empty() ? failed(parser.parseLParen()) || failed(parser.parseRParen())
                       : failed(parser.parseTypeList(types)))
    return failure();
  if (types.size() != operands.size())
    return parser.emitError(parser.getNameLoc(), "expects one type a carried value");
  for (auto [argument, type] : llvm::zip(arguments, types))
    argument.type = type;
  if (parser.parseRegion(*result.addRegion(), arguments) ||
      parser.resolveOperands(operands, types, parser.getNameLoc(), result.operands) ||
      parser.parseOptionalAttrDict(result.attributes))
    return failure();
  result.addTypes(types);
  ensureTerminator(*result.regions.front(), parser.getBuilder(), result.location);
  return success();
}

void LayerOp::print(OpAsmPrinter &printer) {
  printer << " " << getNameAttr() << " [";
  if (!getIndex().empty()) {
    printer.printKeywordOrString(getIndex());
    printer << " < ";
  }
  printer << "<" << getCount().getText() << ">] (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getCarried()), printer,
                        [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
  printer << ") : ";
  if (getCarried().empty())
    printer << "()";
  llvm::interleaveComma(getCarried().getTypes(), printer);
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  printer.printOptionalAttrDict((*this)->getAttrs(), {"name", "index", "count"});
}

LogicalResult LayerOp::verify() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  TypeRange carried = getCarried().getTypes();
  if (carried == getResultTypes() && carried == TypeRange(getBody().getArgumentTypes()) &&
      carried == TypeRange(yield.getValues().getTypes())) // layer_c1
    return success();
  InFlightDiagnostic diag =
      emitOpError("expects carried values, block arguments, yielded values and results to agree");
  diag.attachNote(yield.getLoc()) << "yields " << yield.getValues().getTypes() << " for " << carried;
  return diag;
}

LogicalResult BranchOp::verify() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  // branch_c1
  if (yield.getValues().size() == 1 && yield.getValues()[0].getType() == getType())
    return success();
  return emitOpError("expects its region to yield one value of type ")
         << getType() << ", but it yields (" << yield.getValues().getTypes() << ")";
}

LogicalResult IfOp::verify() {
  for (Region *region : {&getThenRegion(), &getElseRegion()})
    if (TypeRange yields = region->front().getTerminator()->getOperandTypes();
        yields != getResultTypes()) // if_c1
      return emitOpError("expects both regions to yield (")
             << getResultTypes() << "), but one yields (" << yields << ")";
  return success();
}

LogicalResult LossOp::verify() {
  if (tensorOf(getValue()).getRank() == 0) // loss_c1
    return success();
  return emitOpError("expects a single number, summed over every axis, but got ") << getValue().getType();
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

LogicalResult StateOp::verify() {
  if (!getSlices())
    return success();
  SmallVector<int64_t> shape(getSlices()->getFullShape());
  auto *first = shape.begin() + getSlices()->getFirstAxis();
  *first = static_cast<int64_t>(getSlices()->getKept().size());
  shape.erase(first + 1, first + getSlices()->getAxisCount());
  if (ArrayRef(shape) == getTensorType().getShape()) // state_c1
    return success();
  return emitOpError("expects the shape of ") << *getSlices() << ", but got " << getTensorType();
}

static LogicalResult verifyState(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name,
                                 Type type) {
  auto state = symbols.lookupNearestSymbolFrom<StateOp>(op, name);
  if (!state)
    return op->emitOpError("names no state entry: ") << name;
  if (state.getType() == type) // get_c1, set_c1
    return success();
  InFlightDiagnostic diag = op->emitOpError("expects the state's type ")
                            << state.getType() << ", but got " << type;
  diag.attachNote(state.getLoc()) << "state entry declared here";
  return diag;
}

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyState(*this, symbols, getStateAttr(), getType());
}
LogicalResult SetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyState(*this, symbols, getStateAttr(), getValue().getType());
}

static LogicalResult verifyFlat(Operation *op, SymbolTableCollection &symbols, ArrayAttr names, Type type) {
  auto vector = cast<RankedTensorType>(type);
  int64_t elements = 0;
  for (auto name : names.getAsRange<FlatSymbolRefAttr>()) {
    auto state = symbols.lookupNearestSymbolFrom<StateOp>(op, name);
    if (!state) // get_flat_c1, set_flat_c1
      return op->emitOpError("names no state entry: ") << name;
    if (state.getTensorType().getElementType() != vector.getElementType()) // get_flat_c2, set_flat_c2
      return op->emitOpError("expects entries of ")
             << vector.getElementType() << ", but " << name << " is " << state.getType();
    elements += state.getTensorType().getNumElements();
  }
  if (vector.getRank() == 1 && vector.getDimSize(0) == elements) // get_flat_c2, set_flat_c2
    return success();
  return op->emitOpError("expects a vector of the entries' ") << elements << " elements, but got " << vector;
}

LogicalResult GetFlatOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyFlat(*this, symbols, getStates(), getType());
}
LogicalResult SetFlatOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyFlat(*this, symbols, getStates(), getValue().getType());
}

//===- ScheduleOps.cpp - Fused regions, kernels and calls -----------------===//

#include "dialects/Weft/Weft.h"

#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace weft;

//===----------------------------------------------------------------------===//
// weft.fused
//===----------------------------------------------------------------------===//

static ParseResult parseRowsAndChunks(OpAsmParser &parser, NamedAttrList &attributes) {
  ArrayAttr rows;
  int64_t chunks = 0;
  if (parser.parseKeyword("rows") || parser.parseAttribute(rows, "rows", attributes) ||
      parser.parseKeyword("chunks") || parser.parseInteger(chunks))
    return failure();
  attributes.set("chunks", parser.getBuilder().getI64IntegerAttr(chunks));
  return success();
}

/// `%y = weft.fused rows ["batch", "pos"] chunks 16 (%a = %x) : (types) -> types { ... }`
ParseResult FusedOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  if (parseRowsAndChunks(parser, result.attributes) || parser.parseAssignmentList(arguments, operands) ||
      parser.parseColonType(type))
    return failure();
  if (type.getNumInputs() != operands.size())
    return parser.emitError(parser.getNameLoc(), "expects one type an operand");
  for (auto [argument, input] : llvm::zip(arguments, type.getInputs()))
    argument.type = input;
  if (parser.parseRegion(*result.addRegion(), arguments) ||
      parser.resolveOperands(operands, type.getInputs(), parser.getNameLoc(), result.operands) ||
      parser.parseOptionalAttrDict(result.attributes))
    return failure();
  result.addTypes(type.getResults());
  return success();
}

void FusedOp::print(OpAsmPrinter &printer) {
  printer << " rows " << getRows() << " chunks " << getChunks() << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getOperands()), printer,
                        [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
  printer << ") : " << FunctionType::get(getContext(), getOperandTypes(), getResultTypes()) << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  printer.printOptionalAttrDict((*this)->getAttrs(), {"rows", "chunks"});
}

//===----------------------------------------------------------------------===//
// weft.kernel
//===----------------------------------------------------------------------===//

/// `weft.kernel @k_1a2b rows [] chunks 8 (%x: type) -> (type) { ... }`
ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr symbol;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> results;
  if (parser.parseSymbolName(symbol, SymbolTable::getSymbolAttrName(), result.attributes) ||
      parseRowsAndChunks(parser, result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
      parser.parseArrowTypeList(results) || parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  SmallVector<Type> inputs = llvm::map_to_vector(arguments, [](auto &argument) { return argument.type; });
  result.addAttribute("function_type", TypeAttr::get(parser.getBuilder().getFunctionType(inputs, results)));
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " rows " << getRows() << " chunks " << getChunks() << " (";
  llvm::interleaveComma(getBody().getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") -> (" << getFunctionType().getResults() << ") ";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {SymbolTable::getSymbolAttrName(), "rows", "chunks", "function_type"});
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("names no kernel: ") << getKernelAttr();
  auto type = FunctionType::get(getContext(), getOperandTypes(), getResultTypes());
  if (kernel.getFunctionType() != type)
    return emitOpError("expects the kernel's type ") << kernel.getFunctionType() << ", but got " << type;
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("names no kernel: ") << getKernelAttr();
  if (TypeRange(kernel.getFunctionType().getInputs()) == getIns().getTypes() &&
      TypeRange(kernel.getFunctionType().getResults()) == getOuts().getTypes())
    return success();
  return emitOpError("expects operands of the kernel's type ")
         << kernel.getFunctionType() << ", but got " << getIns().getTypes() << " and " << getOuts().getTypes();
}

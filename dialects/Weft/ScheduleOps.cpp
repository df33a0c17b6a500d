//===- ScheduleOps.cpp - Fused regions, kernels and calls -----------------===//

#include "dialects/Weft/Constraints.h"

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

static LogicalResult verifyChunks(Operation *op, uint64_t chunks) {
  if (static_cast<int64_t>(chunks) >= 1)
    return success();
  return op->emitOpError("expects at least one chunk, but got ") << static_cast<int64_t>(chunks);
}

static LogicalResult verifyYield(Operation *op, Block &body, TypeRange results) {
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield)
    return op->emitOpError("expects a body that ends with weft.yield");
  if (TypeRange(yield.getValues().getTypes()) == results)
    return success();
  return op->emitOpError("expects its body to yield (")
         << results << "), but it yields (" << yield.getValues().getTypes() << ")";
}

LogicalResult FusedOp::verify() {
  TypeRange arguments = getBody().getArgumentTypes();
  if (arguments != getOperandTypes()) // fused_c1
    return emitOpError("expects one block argument an operand, (")
           << getOperandTypes() << "), but got (" << arguments << ")";
  if (failed(verifyYield(*this, getBody().front(), getResultTypes())) || // fused_c2
      failed(verifyChunks(*this, getChunks())))                          // fused_c3
    return failure();
  ArrayRef<Attribute> rows = getRows().getValue();
  SmallVector<Type> types(getOperandTypes());
  llvm::append_range(types, getResultTypes());
  for (Type type : types) {
    ArrayRef<StringAttr> axes = axesOf(type);
    bool starts = axes.size() >= rows.size() && llvm::equal(axes.take_front(rows.size()), rows);
    if (!starts &&
        llvm::any_of(axes, [&](StringAttr name) { return llvm::is_contained(rows, name); })) // fused_c4
      return emitOpError("expects a tensor that has an axis of its rows ")
             << getRows() << " to start with all of them, but got " << type;
  }
  return success();
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
  printer << ") -> (" << getFunctionType().getResults() << ")";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {SymbolTable::getSymbolAttrName(), "rows", "chunks", "function_type"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  // kernel_c1 is the function interface's.
  if (failed(verifyYield(*this, getBody().front(), getFunctionType().getResults()))) // kernel_c2
    return failure();
  return verifyChunks(*this, getChunks()); // kernel_c3
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel) // launch_c1
    return emitOpError("names no kernel: ") << getKernelAttr();
  auto type = FunctionType::get(getContext(), getOperandTypes(), getResultTypes());
  if (kernel.getFunctionType() != type) // launch_c2
    return emitOpError("expects the kernel's type ") << kernel.getFunctionType() << ", but got " << type;
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel) // call_c1
    return emitOpError("names no kernel: ") << getKernelAttr();
  if (static_cast<int64_t>(getGrid()) < 1) // call_c3
    return emitOpError("expects a grid of at least 1, but got ") << static_cast<int64_t>(getGrid());
  // call_c2
  if (TypeRange(kernel.getFunctionType().getInputs()) == getIns().getTypes() &&
      TypeRange(kernel.getFunctionType().getResults()) == getOuts().getTypes())
    return success();
  return emitOpError("expects operands of the kernel's type ")
         << kernel.getFunctionType() << ", but got (" << getIns().getTypes() << ") and ("
         << getOuts().getTypes() << ")";
}

//===----------------------------------------------------------------------===//
// weft.program and what stands in it
//===----------------------------------------------------------------------===//

/// A buffer of a port has its number and type.
static LogicalResult verifyPort(ProgramOp program, BufferOp buffer) {
  if (buffer.getSpace() != BufferSpace::Input && buffer.getSpace() != BufferSpace::Result)
    return success();
  // This runs before what a buffer says of itself was checked.
  const int64_t offset = static_cast<int64_t>(buffer.getOffset().value_or(UINT64_MAX));
  if (offset < 0)
    return success();
  ArrayAttr types =
      buffer.getSpace() == BufferSpace::Input ? program.getInputTypes() : program.getResultTypes();
  if (offset < static_cast<int64_t>(types.size()) &&
      cast<TypeAttr>(types[static_cast<unsigned>(offset)]).getValue() == buffer.getType()) // program_c3
    return success();
  return buffer.emitOpError("expects number and type of a port of ")
         << types << ", but got number " << offset << " and " << buffer.getType();
}

LogicalResult ProgramOp::verify() {
  if (getInputs().size() != getInputTypes().size() ||
      getResults().size() != getResultTypes().size()) // program_c1
    return emitOpError("expects one type a port, but got inputs ")
           << getInputs() << " of " << getInputTypes() << " and results " << getResults() << " of "
           << getResultTypes();
  for (Operation &op : getBody().front()) {
    if (!isa<BufferOp, ViewOp, CallOp, FillOp, CopyOp>(op)) // program_c2
      return op.emitOpError("can't stand in a program, which holds buffers, views, calls, fills and copies");
    if (auto buffer = dyn_cast<BufferOp>(op); buffer && failed(verifyPort(*this, buffer)))
      return failure();
  }
  return success();
}

LogicalResult BufferOp::verify() {
  if (getSpace() == BufferSpace::Arena && !getOffset())
    return success();
  if (getOffset() && static_cast<int64_t>(*getOffset()) >= 0) // buffer_c1
    return success();
  return emitOpError("expects an offset of at least 0 in the space '")
         << stringifyBufferSpace(getSpace()) << "'";
}

LogicalResult ViewOp::verify() {
  RankedTensorType whole = tensorOf(getBuffer()), part = getType();
  auto start = static_cast<int64_t>(getStart());
  if (start < 0 || start + part.getNumElements() > whole.getNumElements()) // view_c1
    return emitOpError("expects a part of ")
           << whole << ", but " << part << " from " << start << " on ends outside";
  if (part.getElementType() != whole.getElementType()) // view_c2
    return emitOpError("expects elements of ") << whole << ", but got " << part;
  return success();
}

LogicalResult CopyOp::verify() {
  RankedTensorType from = tensorOf(getFrom()), to = tensorOf(getTo());
  if (from.getElementType() == to.getElementType() && from.getNumElements() == to.getNumElements()) // copy_c1
    return success();
  return emitOpError("expects two buffers of one size and element type, but got ") << from << " and " << to;
}

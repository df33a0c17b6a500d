//===- TileDialect.cpp - Registration and types ---------------------------===//

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/Tile/TileDialect.cpp.inc"
#include "dialects/Tile/TileEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/TileTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Tile/TileOps.cpp.inc"

using namespace mlir;
using namespace weft::tile;

using EmitError = function_ref<InFlightDiagnostic()>;

void TileDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Tile/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tile/TileOps.cpp.inc"
      >();
}

void weft::tile::registerTileDialects(DialectRegistry &registry) {
  registry.insert<TileDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
}

Type weft::tile::elementOf(Type type) {
  return TypeSwitch<Type, Type>(type)
      .Case<FragType, RowsType, ColsType>([](auto shaped) { return shaped.getElement(); })
      .Default([](Type scalar) { return scalar; });
}

//===----------------------------------------------------------------------===//
// Reading and writing of types
//===----------------------------------------------------------------------===//

/// `<2x64x128xbf16` with exactly `count` sizes; what follows is the caller's.
static ParseResult parseShape(AsmParser &parser, size_t count, SmallVectorImpl<int64_t> &sizes,
                              Type &element) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(sizes, /*allowDynamic=*/false) ||
      parser.parseType(element))
    return failure();
  if (sizes.size() != count)
    return parser.emitError(loc, "expects ") << count << " sizes, but got " << sizes.size();
  return success();
}

Type SmemType::parse(AsmParser &parser) {
  SmallVector<int64_t> sizes;
  Type element;
  if (parseShape(parser, 3, sizes, element))
    return {};
  int64_t swizzle = 0, panels = 1, pitch = sizes[1];
  while (succeeded(parser.parseOptionalComma())) {
    StringRef word;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return {};
    int64_t *number = word == "swizzle"  ? &swizzle
                      : word == "panels" ? &panels
                      : word == "pitch"  ? &pitch
                                         : nullptr;
    if (!number) {
      parser.emitError(loc, "expects `swizzle`, `panels` or `pitch`, but got `") << word << "`";
      return {};
    }
    if (parser.parseInteger(*number))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<SmemType>(parser.getContext(), sizes[0], sizes[1], sizes[2], element, swizzle,
                                     panels, pitch);
}

void SmemType::print(AsmPrinter &printer) const {
  printer << "<" << getStages() << "x" << getRows() << "x" << getColumns() << "x" << getElement();
  if (getSwizzle())
    printer << ", swizzle " << getSwizzle();
  if (getPanels() != 1)
    printer << ", panels " << getPanels();
  if (getPitch() != getRows())
    printer << ", pitch " << getPitch();
  printer << ">";
}

Type FragType::parse(AsmParser &parser) {
  SmallVector<int64_t> sizes;
  Type element;
  if (parseShape(parser, 2, sizes, element) || parser.parseGreater())
    return {};
  return parser.getChecked<FragType>(parser.getContext(), sizes[0], sizes[1], element);
}

void FragType::print(AsmPrinter &printer) const {
  printer << "<" << getRows() << "x" << getColumns() << "x" << getElement() << ">";
}

Type RowsType::parse(AsmParser &parser) {
  SmallVector<int64_t> sizes;
  Type element;
  if (parseShape(parser, 1, sizes, element) || parser.parseGreater())
    return {};
  return parser.getChecked<RowsType>(parser.getContext(), sizes[0], element);
}

void RowsType::print(AsmPrinter &printer) const { printer << "<" << getRows() << "x" << getElement() << ">"; }

Type ColsType::parse(AsmParser &parser) {
  SmallVector<int64_t> sizes;
  Type element;
  if (parseShape(parser, 1, sizes, element) || parser.parseGreater())
    return {};
  return parser.getChecked<ColsType>(parser.getContext(), sizes[0], element);
}

void ColsType::print(AsmPrinter &printer) const {
  printer << "<" << getColumns() << "x" << getElement() << ">";
}

//===----------------------------------------------------------------------===//
// Rules of types
//===----------------------------------------------------------------------===//

LogicalResult SmemType::verify(EmitError emitError, int64_t stages, int64_t rows, int64_t columns,
                               Type element, int64_t swizzle, int64_t panels, int64_t pitch) {
  if (!element.isBF16() && !element.isF32())
    return emitError() << "expects elements of bf16 or f32 in shared memory, but got " << element;
  if (stages < 1 || rows < 1 || columns < 1 || panels < 1)
    return emitError() << "expects at least one stage, row, column and panel, but got " << stages << " x "
                       << rows << " x " << columns << " in " << panels << " panels";
  if (columns % panels != 0)
    return emitError() << "expects panels that divide the columns, but got " << panels << " panels for "
                       << columns << " columns";
  bool overlaps = pitch == 8 && columns == 8 * panels && swizzle == 0; // tile.hankel
  if (pitch < rows && !overlaps)
    return emitError() << "expects a pitch of at least the rows, " << rows << ", but got " << pitch;
  if (swizzle == 0)
    return success();
  if (swizzle != 32 && swizzle != 64 && swizzle != 128)
    return emitError() << "expects a swizzle of 0, 32, 64 or 128 bytes, but got " << swizzle;
  int64_t rowBytes = columns / panels * (element.getIntOrFloatBitWidth() / 8);
  if (rowBytes != swizzle)
    return emitError() << "expects a panel's row as wide as the swizzle of " << swizzle << " bytes, but got "
                       << rowBytes << " bytes: use panels";
  if (rows % 8 != 0 || pitch % 8 != 0)
    return emitError() << "expects a multiple of 8 rows under a swizzle, but got " << rows << " rows, pitch "
                       << pitch;
  return success();
}

SmemType SmemType::oneStage() const { return withRows(getRows()); }

SmemType SmemType::withRows(int64_t count) const {
  return get(getContext(), 1, count, getColumns(), getElement(), getSwizzle(), getPanels(), getPitch());
}

SmemType SmemType::onePanel() const {
  return get(getContext(), 1, getRows(), panelColumns(), getElement(), getSwizzle(), 1, getRows());
}

static LogicalResult verifyWidth(EmitError emitError, int64_t columns, int64_t step) {
  if (columns < 1 || columns % step != 0 || columns > 256)
    return emitError() << "expects a multiple of " << step << " columns, at most 256, but got " << columns;
  return success();
}

LogicalResult FragType::verify(EmitError emitError, int64_t rows, int64_t columns, Type element) {
  if (!element.isBF16() && !element.isF32())
    return emitError() << "expects a fragment of bf16 or f32, but got " << element;
  if (rows != kFragRows)
    return emitError() << "expects a fragment of " << kFragRows << " rows, but got " << rows;
  return verifyWidth(emitError, columns, element.isBF16() ? 16 : 8);
}

static LogicalResult verifyValue(EmitError emitError, Type element) {
  if (!element.isF32() && !element.isInteger(32))
    return emitError() << "expects values of f32 or i32, but got " << element;
  return success();
}

LogicalResult RowsType::verify(EmitError emitError, int64_t rows, Type element) {
  if (rows != FragType::kFragRows)
    return emitError() << "expects " << FragType::kFragRows << " rows, but got " << rows;
  return verifyValue(emitError, element);
}

LogicalResult ColsType::verify(EmitError emitError, int64_t columns, Type element) {
  if (failed(verifyWidth(emitError, columns, 8)))
    return failure();
  return verifyValue(emitError, element);
}

LogicalResult BarriersType::verify(EmitError emitError, int64_t count) {
  if (count < 1 || count > 128)
    return emitError() << "expects 1 to 128 barriers, but got " << count;
  return success();
}

LogicalResult CellsType::verify(EmitError emitError, int64_t count) {
  if (count < 1 || count > 256)
    return emitError() << "expects 1 to 256 cells, but got " << count;
  return success();
}

LogicalResult GlobalType::verify(EmitError emitError, Type element) {
  if (!element.isBF16() && !element.isF32() && !element.isInteger(32))
    return emitError() << "expects elements of bf16, f32 or i32, but got " << element;
  return success();
}

//===- ComputeOps.cpp - Rules of products and fragments -------------------===//

#include "dialects/Tile/Constraints.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace weft::tile;

bool weft::tile::isSingleThreadOp(Operation *op) {
  return isa<ElectOp, EndOp, InitBarrierOp, FenceInitOp, ExpectOp, ArriveOp, WaitOp, FenceAsyncOp, LoadTileOp,
             LoadBulkOp, LoadOp, StoreOp, StageOp, SliceOp, PanelOp, HankelOp, CtaOp, GridSizeOp, WarpgroupOp,
             NextItemOp, WriteOp>(op) ||
         isa<arith::ArithDialect, math::MathDialect, scf::SCFDialect>(op->getDialect());
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The rules that both kinds of product share: C2, C3, and the types of C1. Columns of the result are a
/// multiple of `step`.
template <typename AnyProduct> static LogicalResult verifyProduct(AnyProduct op, int64_t step) {
  auto b = cast<SmemType>(op.getB().getType());
  FragType result = op.getType();
  int64_t k = 0, rows = 0;
  bool left = false;
  if (auto smem = dyn_cast<SmemType>(op.getA().getType())) {
    k = smem.getColumns(), rows = smem.getRows(), left = isTile(smem);
  } else {
    auto frag = cast<FragType>(op.getA().getType());
    k = frag.getColumns(), rows = frag.getRows(), left = frag.getElement().isBF16();
  }
  if (!left || rows != FragType::kFragRows || !isTile(b)) // C1
    return op.emitOpError() << "expects operands of bf16, one stage each, with 64 rows on the left, but got "
                            << op.getA().getType() << " and " << b;
  int64_t bK = op.getTransB() ? b.getRows() : b.getColumns();
  int64_t bN = op.getTransB() ? b.getColumns() : b.getRows();
  if (k != bK || k % 16 != 0) // C2
    return op.emitOpError() << "expects one number of summed elements, a multiple of 16, but got " << k
                            << " on the left and " << bK << " on the right";
  if (bN != result.getColumns() || bN % step != 0 || bN > 256 || !result.getElement().isF32() ||
      (op.getInit() && op.getInit().getType() != result)) // C3
    return op.emitOpError() << "expects a result (and init) of 64 x " << bN << " f32, columns a multiple of "
                            << step << " and at most 256, but got " << result;
  return success();
}

/// An op that hands a value on under another name.
static bool handsOn(Operation *user) {
  return user->hasTrait<OpTrait::IsTerminator>() || isa<scf::ForOp, scf::WhileOp, WaitProductsOp>(user);
}

/// Registers of `product` have no other use before a wait: C4. What loops carry is the interpreter's to judge.
static LogicalResult verifyInFlight(ProductOp product) {
  bool waits = false;
  for (OpOperand &use : product.getResult().getUses()) {
    auto next = dyn_cast<ProductOp>(use.getOwner());
    bool goesOn = next && use.get() == next.getInit() && use.get() != next.getA();
    waits |= goesOn || handsOn(use.getOwner());
    if (!goesOn && !handsOn(use.getOwner()))
      return use.getOwner()->emitOpError()
             << "uses the result of tile.product, which is under way: use the result of tile.wait_products";
  }
  if (!waits)
    return product.emitOpError() << "has a result that no tile.wait_products ends";
  if (!isa<FragType>(product.getA().getType()))
    return success();
  waits = false;
  for (Operation *user : product.getA().getUsers()) {
    waits |= handsOn(user);
    bool later = user->getBlock() == product->getBlock() && product->isBeforeInBlock(user);
    if (later && !handsOn(user) && !isa<ProductOp>(user))
      return user->emitOpError()
             << "uses the left fragment of tile.product, which is under way: use the result of "
                "tile.wait_products";
  }
  if (!waits)
    return product.emitOpError() << "has a left fragment that no tile.wait_products gives back";
  return success();
}

LogicalResult ProductOp::verify() {
  if (failed(verifyProduct(*this, 8)))
    return failure();
  return verifyInFlight(*this);
}

LogicalResult ProductSyncOp::verify() { return verifyProduct(*this, 16); }

void WaitProductsOp::build(OpBuilder &builder, OperationState &state, int64_t pending, ValueRange frags) {
  build(builder, state, frags.getTypes(), static_cast<uint64_t>(pending), frags);
}

LogicalResult WaitProductsOp::verify() {
  if (getFrags().getTypes() != getResults().getTypes()) // C1
    return emitOpError() << "expects results of the operands' types";
  auto pending = static_cast<int64_t>(getPending());
  if (pending < 0 || pending > 7) // C2
    return emitOpError() << "expects 0 to 7 groups under way, but got " << pending;
  return success();
}

//===----------------------------------------------------------------------===//
// tile.map
//===----------------------------------------------------------------------===//

/// Rows and columns of a fragment's shape; 0 for the one that it lacks.
static std::pair<int64_t, int64_t> shapeOf(Type type) {
  if (auto frag = dyn_cast<FragType>(type))
    return {frag.getRows(), frag.getColumns()};
  if (auto rows = dyn_cast<RowsType>(type))
    return {rows.getRows(), 0};
  if (auto cols = dyn_cast<ColsType>(type))
    return {0, cols.getColumns()};
  return {0, 0};
}

static LogicalResult verifyMapTypes(MapOp op) {
  Block &block = op.getBody().front();
  SmallVector<Type> expected;
  for (Type input : op.getInputs().getTypes())
    expected.push_back(elementOf(input));
  if (op.getCoordinates())
    expected.append(2, IntegerType::get(op.getContext(), 32));
  if (TypeRange(block.getArgumentTypes()) != TypeRange(expected)) // C1
    return op.emitOpError() << "expects block arguments (" << expected << "), but got ("
                            << block.getArgumentTypes() << ")";
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  SmallVector<Type> results;
  for (Type result : op.getResultTypes())
    results.push_back(elementOf(result));
  if (!yield || yield.getOperandTypes() != TypeRange(results)) // C2
    return op.emitOpError() << "expects tile.yield of (" << results << ")";
  return success();
}

LogicalResult MapOp::verify() {
  if (failed(verifyMapTypes(*this)))
    return failure();
  if (getNumResults() == 0)
    return emitOpError() << "expects at least one result";
  auto [rows, columns] = shapeOf(getResultTypes().front());
  for (Type result : getResultTypes())
    if (shapeOf(result) != shapeOf(getResultTypes().front())) // C3
      return emitOpError() << "expects results of one shape, but got " << getResultTypes().front() << " and "
                           << result;
  for (Type input : getInputs().getTypes()) {
    auto [inputRows, inputColumns] = shapeOf(input);
    if ((inputRows && inputRows != rows) || (inputColumns && inputColumns != columns)) // C3
      return emitOpError() << "expects inputs that repeat to " << getResultTypes().front() << ", but got "
                           << input;
  }
  for (Operation &op : getBody().front())
    if (op.getNumRegions() != 0 || !(isa<YieldOp, Exp2Op, CallOp>(op) ||
                                     isa<arith::ArithDialect, math::MathDialect>(op.getDialect()))) // C4
      return op.emitOpError() << "stands in tile.map, which holds arith, math, tile.exp2 and tile.call";
  return success();
}

LogicalResult CallOp::verify() {
  if (!isa<MapOp>((*this)->getParentOp())) // C1
    return emitOpError() << "expects to stand in tile.map, where values are a thread's own";
  return success();
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  if (!getFrag().getType().getElement().isF32() || !getType().getElement().isF32()) // C1
    return emitOpError() << "expects f32, but got " << getFrag().getType() << " and " << getType();
  return success();
}

LogicalResult QuadOp::verify() {
  if (getRows().getType() != getType() || !getType().getElement().isF32()) // C1
    return emitOpError() << "expects a result of the operand's type, f32, but got " << getRows().getType()
                         << " and " << getType();
  return success();
}

LogicalResult CastOp::verify() {
  FragType from = getFrag().getType(), to = getType();
  if (from.getElement() == to.getElement() || from.getColumns() != to.getColumns()) // C1
    return emitOpError() << "expects f32 to bf16 or bf16 to f32, of one shape, but got " << from << " and "
                         << to;
  return success();
}

LogicalResult ColumnsOp::verify() {
  FragType from = getFrag().getType(), to = getType();
  if (from.getElement() != to.getElement()) // C1
    return emitOpError() << "expects one type of elements, but got " << from << " and " << to;
  auto first = static_cast<int64_t>(getFirst());
  const int64_t step = from.getElement().isBF16() ? 16 : 8;
  if (first < 0 || first % step != 0 || first + to.getColumns() > from.getColumns()) // C2
    return emitOpError() << "expects a multiple of " << step << " with " << to.getColumns()
                         << " columns from there on in " << from << ", but got " << first;
  return success();
}

LogicalResult SplatOp::verify() {
  if (elementOf(getType()) != getValue().getType()) // C1
    return emitOpError() << "expects a value of " << elementOf(getType()) << ", but got "
                         << getValue().getType();
  return success();
}

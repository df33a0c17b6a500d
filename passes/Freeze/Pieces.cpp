//===- Pieces.cpp - A value of all heads as parts of some heads ------------===//
#include "passes/Freeze/Pieces.h"

using namespace mlir;

namespace weft {
namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Whether `contract` sums `whole` over all axes of the slices against its other side.
bool sumsOver(ContractOp contract, Value whole, const Slices &all) {
  Value other = contract.getA() == whole ? contract.getB() : contract.getA();
  return (contract.getA() == whole) != (contract.getB() == whole) && contract.getInit() != whole &&
         llvm::all_of(all.axes,
                      [&](StringAttr name) {
                        return axisIndex(contract.getType(), name) < 0 &&
                               axisIndex(other.getType(), name) >= 0;
                      }) &&
         all.fit(typeOf(other));
}

/// One product a piece, each adding to the one before.
Value sumOfProducts(ContractOp contract, Value whole, ArrayRef<Piece> pieces) {
  OpBuilder builder(contract);
  Value sum = contract.getInit();
  for (const Piece &piece : pieces) {
    bool left = contract.getA() == whole;
    Value other = takeOf(left ? contract.getB() : contract.getA(), piece.slices);
    sum = ContractOp::create(builder, contract.getLoc(), contract.getType(), left ? piece.value : other,
                             left ? other : piece.value, sum);
  }
  return sum ? sum : constantOf(builder, contract.getLoc(), contract.getType(), 0.0);
}

bool keepsZero(UnaryFn fn) { return fn != UnaryFn::Exp && fn != UnaryFn::Log && fn != UnaryFn::Sigmoid; }

/// Whether `op` of `whole` is, slice by slice, `op` of slices, and zero where those are.
bool worksOnPieces(Operation *op, Value whole, const Slices &all) {
  if (op->getNumResults() != 1 || op->getResult(0).getType() != whole.getType())
    return false;
  if (auto unary = dyn_cast<UnaryOp>(op))
    return keepsZero(unary.getFn());
  if (isa<RmsNormOp, LayerNormOp>(op))
    return !llvm::is_contained(all.axes, axesOf(whole).back());
  auto binary = dyn_cast<BinaryOp>(op);
  if (!binary || binary.getX() == binary.getY())
    return false;
  bool first = binary.getX() == whole;
  bool factor = binary.getFn() == BinaryFn::Mul || (binary.getFn() == BinaryFn::Div && first);
  return factor && all.fit(typeOf(first ? binary.getY() : binary.getX()));
}

Piece pieceOf(Operation *op, Value whole, const Piece &piece) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, operand == whole ? piece.value : takeOf(operand, piece.slices));
  OpBuilder builder(op);
  Operation *clone = builder.clone(*op, mapping);
  clone->getResult(0).setType(piece.value.getType());
  return {clone->getResult(0), piece.slices};
}

/// The pieces in their places and zeros between them.
Value together(Operation *user, Value whole, ArrayRef<Piece> pieces) {
  OpBuilder builder(user);
  user->emitRemark() << "heads are put together for " << user->getName()
                     << ": it works on all of them at once";
  Value sum;
  for (const Piece &piece : pieces) {
    Value put = PutOp::create(builder, whole.getLoc(), whole.getType(), piece.value, piece.slices.axesAttr(),
                              piece.slices.axis, builder.getDenseI64ArrayAttr(piece.slices.indices));
    sum = sum ? BinaryOp::create(builder, whole.getLoc(), BinaryFn::Add, sum, put).getResult() : put;
  }
  return sum ? sum : constantOf(builder, whole.getLoc(), typeOf(whole), 0.0);
}

} // namespace

void usePieces(Value whole, ArrayRef<Piece> pieces, const Slices &all) {
  for (OpOperand &use : llvm::make_early_inc_range(whole.getUses())) {
    Operation *user = use.getOwner();
    if (auto contract = dyn_cast<ContractOp>(user); contract && sumsOver(contract, whole, all)) {
      contract.getResult().replaceAllUsesWith(sumOfProducts(contract, whole, pieces));
    } else if (worksOnPieces(user, whole, all)) {
      SmallVector<Piece> next;
      for (const Piece &piece : pieces)
        next.push_back(pieceOf(user, whole, piece));
      usePieces(user->getResult(0), next, all);
    } else {
      use.set(together(user, whole, pieces));
    }
  }
}

} // namespace weft

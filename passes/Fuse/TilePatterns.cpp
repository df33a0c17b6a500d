//===- TilePatterns.cpp - Fixed patterns as tables, scales and products ---===//

#include "passes/Codegen/Gpu/Pattern.h"
#include "passes/Fuse/Passes.h"

namespace weft {
#define GEN_PASS_DEF_TILEPATTERNSPASS
#include "passes/Fuse/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

struct TilePatterns : weft::impl::TilePatternsPassBase<TilePatterns> {
  using TilePatternsPassBase::TilePatternsPassBase;

  void runOnOperation() override {
    SmallVector<MixGradValueOp> gradients;
    SmallVector<MixOp> mixes;
    getOperation().walk([&](Operation *op) {
      if (auto gradient = dyn_cast<MixGradValueOp>(op); gradient && fits(gradient.getDv()))
        gradients.push_back(gradient);
      if (auto mix = dyn_cast<MixOp>(op); mix && !mix.getOffset() && fits(mix.getV()))
        mixes.push_back(mix);
    });
    for (MixGradValueOp gradient : gradients)
      rewrite(gradient);
    for (MixOp mix : mixes)
      rewrite(mix);
  }

private:
  bool fits(Value values) { return hasPatternTiles(chip, tensor(values).getShape().back()); }

  /// Equal ones become one by common subexpression elimination.
  template <typename Op> MixTableOp tableOf(OpBuilder &builder, Op op) {
    RankedTensorType a = tensor(op.getA());
    int64_t tables = tensor(op.getWindows()).getDimSize(0) / a.getDimSize(0);
    int64_t cells = MixTableOp::kCore * MixTableOp::kCore * tables;
    RankedTensorType table =
        namedTensor({axesOf(a)[0], builder.getStringAttr("cell")},
                    {a.getDimSize(0), cells * MixTableOp::coresOf(a.getDimSize(1))}, a.getElementType());
    return MixTableOp::create(builder, op.getLoc(), table, table, a, a, a, op.getA(), op.getR(),
                              op.getWindows());
  }

  void rewrite(MixOp mix) {
    OpBuilder builder(mix);
    Location loc = mix.getLoc();
    MixTableOp table = tableOf(builder, mix);
    RankedTensorType type = tensor(mix.getOut());
    Value scaled = MixScaleOp::create(builder, loc, type, mix.getV(), table.getWeights(), mix.getDocStart(),
                                      mix.getKvOf());
    bool rows = !mix.getLse().use_empty();
    auto product =
        MixProductOp::create(builder, loc, type, rows ? mix.getLse().getType() : Type(), scaled,
                             table.getAhead(), table.getInverses(), mix.getWindows(), mix.getDocStart(),
                             rows ? table.getLse() : Value(), Value(), /*back=*/false);
    mix.getOut().replaceAllUsesWith(product.getY());
    if (rows)
      mix.getLse().replaceAllUsesWith(product.getRowLse());
    mix.erase();
  }

  void rewrite(MixGradValueOp op) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    MixTableOp table = tableOf(builder, op);
    Value scaled = MixScaleOp::create(builder, loc, op.getDout().getType(), op.getDout(), table.getInverses(),
                                      op.getDocStart(), Value());
    auto product = MixProductOp::create(builder, loc, op.getDv().getType(), Type(), scaled, table.getBack(),
                                        table.getWeights(), op.getWindows(), op.getDocStart(), Value(),
                                        op.getKvOf(), /*back=*/true);
    op.getDv().replaceAllUsesWith(product.getY());
    op.erase();
  }
};

} // namespace

//===- DropFfn.cpp - Make dropped branches zero ---------------------------===//

#include "passes/Drop/Passes.h"

#include "dialects/Weft/Weft.h"
#include "frontend/Formula.h"

namespace weft {
#define GEN_PASS_DEF_DROPFFNPASS
#include "passes/Drop/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// One entry of `weft.drop`.
struct Entry {
  StringAttr layer, branch, setting;
  IntegerAttr depth;
  DenseI64ArrayAttr indices; // null: every repeat
};

FailureOr<Entry> readEntry(ModuleOp module, Attribute attribute) {
  auto fields = dyn_cast<DictionaryAttr>(attribute);
  Entry entry;
  if (fields)
    entry = {fields.getAs<StringAttr>("layer"), fields.getAs<StringAttr>("branch"),
             fields.getAs<StringAttr>("setting"), fields.getAs<IntegerAttr>("depth"),
             fields.getAs<DenseI64ArrayAttr>("indices")};
  if (!entry.layer || !entry.branch || !entry.setting != !entry.depth)
    return module.emitError() << "weft.drop holds " << attribute
                              << ": expected {layer, branch : string}, and both or none of setting and depth";
  return entry;
}

/// The branches called `name` that stand in `layer`, inside ifs or not, but in no other scope.
SmallVector<BranchOp> branchesOf(LayerOp layer, StringRef name) {
  SmallVector<BranchOp> found;
  layer.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto branch = dyn_cast<BranchOp>(op); branch && branch.getName() == name)
      found.push_back(branch);
    return isa<BranchOp, LayerOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
  return found;
}

class Dropper {
public:
  explicit Dropper(ModelOp model) : model(model), builder(model.getContext()) {}

  LogicalResult drop(const Entry &entry);

private:
  LogicalResult setDepth(const Entry &entry);
  Value zero(BranchOp branch) {
    return ConstantOp::create(builder, branch.getLoc(), branch.getType(), builder.getF64FloatAttr(0));
  }
  /// The name of the layer's index; gives it one that no formula can mean.
  StringRef indexOf(LayerOp layer) {
    if (layer.getIndex().empty())
      layer.setIndex("layer_index");
    return layer.getIndex();
  }
  void dropEverywhere(BranchOp branch);
  void dropAt(BranchOp branch, StringRef index, ArrayRef<int64_t> indices);

  ModelOp model;
  OpBuilder builder;
};

/// `x + 0` is x where their types agree.
void dropSum(Value zero) {
  for (Operation *user : llvm::make_early_inc_range(zero.getUsers())) {
    auto sum = dyn_cast<BinaryOp>(user);
    if (!sum || sum.getFn() != BinaryFn::Add)
      continue;
    Value other = sum.getX() == zero ? sum.getY() : sum.getX();
    if (other.getType() != sum.getType())
      continue;
    sum.getZ().replaceAllUsesWith(other);
    sum.erase();
  }
}

LogicalResult Dropper::setDepth(const Entry &entry) {
  SmallVector<Attribute> formulas(model.getFormulas().begin(), model.getFormulas().end());
  for (auto [name, formula] : llvm::zip(model.getNames(), formulas))
    if (name == entry.setting) {
      formula = FormulaAttr::get(builder.getContext(),
                                 *lang::Formula::ofNumber(static_cast<double>(entry.depth.getInt())));
      model.setFormulasAttr(builder.getArrayAttr(formulas));
      return success();
    }
  return model.emitError() << "weft.drop sets " << entry.setting << ", which is no setting of the model";
}

void Dropper::dropEverywhere(BranchOp branch) {
  builder.setInsertionPoint(branch);
  Value nothing = zero(branch);
  branch.getResult().replaceAllUsesWith(nothing);
  branch.erase();
  dropSum(nothing);
  if (nothing.use_empty())
    nothing.getDefiningOp()->erase();
}

/// The branch stays behind a test of the layer's index: `i is 0 or i is 3`.
void Dropper::dropAt(BranchOp branch, StringRef index, ArrayRef<int64_t> indices) {
  using Kind = lang::Formula::Kind;
  lang::FormulaRef test;
  for (int64_t number : indices) {
    lang::FormulaRef here = lang::Formula::make(
        Kind::Is, {lang::Formula::ofName(index.str()), lang::Formula::ofNumber(static_cast<double>(number))});
    test = test ? lang::Formula::make(Kind::Or, {test, here}) : here;
  }
  builder.setInsertionPoint(branch);
  auto choice = IfOp::create(builder, branch.getLoc(), branch->getResultTypes(),
                             FormulaAttr::get(builder.getContext(), *test));
  branch.getResult().replaceAllUsesWith(choice.getResult(0));
  builder.setInsertionPointToEnd(&choice.getThenRegion().emplaceBlock());
  YieldOp::create(builder, branch.getLoc(), zero(branch));
  Block &kept = choice.getElseRegion().emplaceBlock();
  branch->moveBefore(&kept, kept.end());
  builder.setInsertionPointToEnd(&kept);
  YieldOp::create(builder, branch.getLoc(), branch.getResult());
}

LogicalResult Dropper::drop(const Entry &entry) {
  size_t dropped = 0;
  for (LayerOp layer : model.getBody().getOps<LayerOp>()) {
    if (layer.getNameAttr() != entry.layer)
      continue;
    for (BranchOp branch : branchesOf(layer, entry.branch)) {
      ++dropped;
      if (entry.indices)
        dropAt(branch, indexOf(layer), entry.indices);
      else
        dropEverywhere(branch);
    }
  }
  if (!dropped)
    return model.emitError() << "weft.drop names the branch " << entry.branch << " of the layer "
                             << entry.layer << ": the model has none";
  return entry.setting ? setDepth(entry) : success();
}

struct DropFfn : weft::impl::DropFfnPassBase<DropFfn> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto entries = module->getAttrOfType<ArrayAttr>("weft.drop");
    if (!entries)
      return;
    for (ModelOp model : module.getOps<ModelOp>())
      for (Attribute attribute : entries) {
        FailureOr<Entry> entry = readEntry(module, attribute);
        if (failed(entry) || failed(Dropper(model).drop(*entry)))
          return signalPassFailure();
      }
    module->removeAttr("weft.drop");
  }
};

} // namespace

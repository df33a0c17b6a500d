//===- CheckStaticShapes.cpp - Every tensor has its sizes -----------------===//

#include "passes/Check/Passes.h"

#include "dialects/Weft/Weft.h"

namespace weft {
#define GEN_PASS_DEF_CHECKSTATICSHAPESPASS
#include "passes/Check/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static bool isDynamic(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.hasStaticShape();
}

/// Reports what of `op` has no size yet; false when something was found.
static bool checkTypes(Operation *op) {
  SmallVector<Type> types(op->getResultTypes());
  for (Region &region : op->getRegions())
    for (Block &block : region)
      llvm::append_range(types, block.getArgumentTypes());
  for (NamedAttribute attribute : op->getAttrs())
    if (auto type = dyn_cast<TypeAttr>(attribute.getValue()))
      types.push_back(type.getValue());
  const Type *found = llvm::find_if(types, isDynamic);
  if (found == types.end())
    return true;
  op->emitOpError("expects static sizes here, but got ") << *found << "; run weft-unroll-layers first";
  return false;
}

/// Reports the first attribute of `op` that holds a formula; false when there is one.
static bool checkNumbers(Operation *op) {
  for (NamedAttribute attribute : op->getAttrs()) {
    FormulaAttr formula;
    attribute.getValue().walk([&](FormulaAttr inner) { formula = inner; });
    if (!formula)
      continue;
    op->emitOpError("expects a number for '")
        << attribute.getName().getValue() << "' here, but got the formula " << formula.getText()
        << "; run weft-unroll-layers first";
    return false;
  }
  return true;
}

namespace {
struct CheckStaticShapes : weft::impl::CheckStaticShapesPassBase<CheckStaticShapes> {
  void runOnOperation() override {
    bool fine = true;
    getOperation().walk([&](Operation *op) { fine &= checkTypes(op) && checkNumbers(op); });
    if (!fine)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

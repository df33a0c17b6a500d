//===- Projections.cpp - The weights behind a head's scores ---------------===//

#include "tools/weft/Projections.h"

#include "dialects/Weft/Weft.h"
#include "passes/Unroll/Scope.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace weft;

namespace {

/// Where the axes `heads` stand side by side in `type`, or -1.
int64_t placeOf(ArrayRef<StringAttr> heads, ArrayRef<StringAttr> axes) {
  for (size_t first = 0; first + heads.size() <= axes.size(); ++first)
    if (axes.slice(first, heads.size()) == heads)
      return static_cast<int64_t>(first);
  return -1;
}

std::vector<Projection> projectionsBehind(Value value) {
  ArrayRef<StringAttr> axes = axesOf(cast<RankedTensorType>(value.getType()));
  ArrayRef<StringAttr> heads = axes.drop_front(2).drop_back();
  std::vector<Projection> found;
  if (heads.empty()) // one key head for all: it belongs to none of them
    return found;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    auto type = dyn_cast<RankedTensorType>(next.getType());
    Operation *op = next.getDefiningOp();
    if (!op || !type || !seen.insert(next).second)
      continue;
    if (auto get = dyn_cast<GetOp>(op)) {
      const int64_t first = placeOf(heads, axesOf(type));
      if (first >= 0 && type.getRank() > static_cast<int64_t>(heads.size()) + 1)
        found.push_back({get.getState().str(), first, static_cast<int64_t>(heads.size())});
      continue;
    }
    // Values of whole heads only: the stream itself belongs to no head.
    for (Value operand : op->getOperands()) {
      auto operandType = dyn_cast<RankedTensorType>(operand.getType());
      if (operandType && placeOf(heads, axesOf(operandType)) >= 0)
        work.push_back(operand);
    }
  }
  return found;
}

} // namespace

absl::StatusOr<std::map<std::string, SiteProjections>> weft::projectionsOf(const Program &program) {
  std::shared_ptr<MLIRContext> context = makeContext();
  PipelineOptions options = shapesOf(*program.recipe);
  options.batch = 1;
  options.stage = Stage::Programs;
  options.programs = {"eval"}; // the last attend of `calibrate` is dead
  absl::StatusOr<OwningOpRef<ModuleOp>> module = lower(program, options, {}, *context);
  if (!module.ok())
    return module.status();
  std::map<std::string, SiteProjections> result;
  auto function = (*module)->lookupSymbol<func::FuncOp>("eval");
  function.walk([&](AttendOp attend) {
    SmallVector<StringRef> scopes = scopesOf(attend.getLoc());
    result[scopes.empty() ? "" : scopes.front().str()] = {projectionsBehind(attend.getQ()),
                                                          projectionsBehind(attend.getK())};
  });
  return result;
}

//===- Windows.cpp - Windows that a plan gives ----------------------------===//
#include "passes/Unroll/Windows.h"

using namespace mlir;

namespace weft {

FailureOr<SmallVector<int32_t>> plannedWindows(AttendOp op, StringRef path, int64_t heads, int32_t own) {
  auto plan = op->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>("weft.windows");
  auto given = plan ? plan.getAs<DenseI32ArrayAttr>(path) : DenseI32ArrayAttr();
  if (!given)
    return SmallVector<int32_t>(static_cast<size_t>(heads), own);
  if (given.size() != heads)
    return op.emitError("expects one window a head, ")
           << heads << " in " << path << ", but the plan gives " << given.size();
  for (auto [head, keys] : llvm::enumerate(given.asArrayRef()))
    if (keys < 1)
      return op.emitError("expects windows of at least 1 key, the query's own, but the plan gives ")
             << keys << " to head " << head << " of " << path;
  return SmallVector<int32_t>(given.asArrayRef());
}

bool readsWindows(ModuleOp module, StringRef path) {
  auto sites = module->getAttrOfType<ArrayAttr>("weft.window_state");
  return sites && llvm::is_contained(sites, StringAttr::get(module.getContext(), path));
}

} // namespace weft

//===- BucketHeads.cpp - Work on heads with wide windows first ------------===//

#include "passes/Bucket/Passes.h"

#include "dialects/Weft/Weft.h"

namespace weft {
#define GEN_PASS_DEF_BUCKETHEADSPASS
#include "passes/Bucket/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// Numbers of `work`, most work first, equal ones in order; null if that is
/// their order already.
DenseI32ArrayAttr orderOf(MLIRContext *context, ArrayRef<int64_t> work) {
  SmallVector<int32_t> order = llvm::to_vector(llvm::seq<int32_t>(0, static_cast<int32_t>(work.size())));
  llvm::stable_sort(order, [&](int32_t a, int32_t b) { return work[a] > work[b]; });
  return llvm::is_sorted(order) ? DenseI32ArrayAttr() : DenseI32ArrayAttr::get(context, order);
}

/// Keys that a query at the end of a row sees, for each head; none unless constant.
SmallVector<int64_t> reaches(Value windows, Value k) {
  SmallVector<int64_t> reach;
  int64_t keys = cast<RankedTensorType>(k.getType()).getDimSize(1);
  if (auto constant = windows ? windows.getDefiningOp<IntegersOp>() : IntegersOp())
    for (int32_t window : constant.getValues())
      reach.push_back(std::min<int64_t>(window, keys));
  return reach;
}

/// Key-value head of each query head, by the names of axes; nothing with a table.
SmallVector<int64_t> kvHeads(AttendGradKeyValueOp op) {
  auto q = cast<RankedTensorType>(op.getQ().getType()), k = cast<RankedTensorType>(op.getK().getType());
  SmallVector<int64_t> found;
  for (int64_t head = 0; !op.getKvOf() && head < headCount(q); ++head) {
    int64_t rest = head, kv = 0, stride = 1;
    for (int64_t axis = q.getRank() - 2; axis > 1; --axis) {
      int64_t there = axisIndex(k, axesOf(q)[static_cast<size_t>(axis)]), at = rest % q.getDimSize(axis);
      rest /= q.getDimSize(axis);
      if (there < 0)
        continue;
      kv += at * stride;
      stride *= k.getDimSize(there);
    }
    found.push_back(kv);
  }
  return found;
}

struct BucketHeads : weft::impl::BucketHeadsPassBase<BucketHeads> {
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (auto attend = dyn_cast<AttendOp>(op))
        order(attend);
      else if (auto query = dyn_cast<AttendGradQueryOp>(op))
        order(query);
      else if (auto keyValue = dyn_cast<AttendGradKeyValueOp>(op))
        orderKeyValue(keyValue);
    });
  }

  template <typename Op> void order(Op op) {
    if (DenseI32ArrayAttr order = orderOf(&getContext(), reaches(op.getWindows(), op.getK())))
      op.setOrderAttr(order);
  }

  void orderKeyValue(AttendGradKeyValueOp op) {
    SmallVector<int64_t> reach = reaches(op.getWindows(), op.getK()), kv = kvHeads(op);
    if (reach.empty() || kv.empty())
      return;
    SmallVector<int64_t> work(headCount(cast<RankedTensorType>(op.getK().getType())), 0);
    for (auto [head, keys] : llvm::enumerate(reach))
      work[kv[head]] += keys;
    if (DenseI32ArrayAttr order = orderOf(&getContext(), work))
      op.setOrderAttr(order);
  }
};

} // namespace

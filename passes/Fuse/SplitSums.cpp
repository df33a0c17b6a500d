//===- SplitSums.cpp - Sums over rows in parts of fixed size --------------===//

#include "passes/Fuse/Passes.h"
#include "passes/Fuse/Regions.h"

namespace weft {
#define GEN_PASS_DEF_SPLITSUMSPASS
#include "passes/Fuse/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

/// Replaces `sum` by a partial sum over the rows and a sum of the parts.
static void split(SumToOp sum, ArrayRef<StringAttr> rows, int64_t chunks) {
  OpBuilder builder(sum);
  auto x = cast<RankedTensorType>(sum.getX().getType());
  Domain domain;
  domain.rows.assign(rows.begin(), rows.end());
  domain.sizes.assign(x.getShape().begin(), x.getShape().begin() + static_cast<int64_t>(rows.size()));
  SmallVector<StringAttr> names{builder.getStringAttr("chunk")};
  SmallVector<int64_t> sizes{chunksOf(domain, chunks)};
  llvm::append_range(names, axesOf(sum.getType()));
  llvm::append_range(sizes, sum.getType().getShape());
  auto rowNames = builder.getArrayAttr(SmallVector<Attribute>(rows.begin(), rows.end()));
  Value parts = PartialSumOp::create(builder, sum.getLoc(), namedTensor(names, sizes, x.getElementType()),
                                     sum.getX(), rowNames);
  Value total = SumToOp::create(builder, sum.getLoc(), sum.getType(), parts, sum.getInit());
  sum.replaceAllUsesWith(total);
  sum.erase();
}

namespace {
struct SplitSums : weft::impl::SplitSumsPassBase<SplitSums> {
  using SplitSumsPassBase::SplitSumsPassBase;
  void runOnOperation() override {
    SmallVector<SumToOp> sums;
    getOperation().walk([&](SumToOp sum) { sums.push_back(sum); });
    for (SumToOp sum : sums) {
      SmallVector<StringAttr> rows = leadingRows(cast<RankedTensorType>(sum.getX().getType()));
      bool removed = llvm::none_of(rows, [&](StringAttr row) { return axisIndex(sum.getType(), row) >= 0; });
      if (!rows.empty() && removed)
        split(sum, rows, chunks);
    }
  }
};
} // namespace

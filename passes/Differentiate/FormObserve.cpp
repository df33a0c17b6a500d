//===- FormObserve.cpp - The program of a control step --------------------===//
//
// @observe is @micro after differentiation, where each attend whose windows are
// read from state gives its rows' entropies too, and statistics of its heads are
// added to the state. Nothing that @micro computes changes: its gradients are
// equal bit for bit. Statistics are complete at the end of the forward pass, so that
// windows can be decided beside the backward pass.
//
//===----------------------------------------------------------------------===//
#include "passes/Differentiate/Passes.h"
#include "passes/Differentiate/Programs.h"

#include "dialects/Weft/Gradients.h"
#include "passes/Unroll/Scope.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_FORMOBSERVE
#include "passes/Differentiate/Passes.h.inc"

namespace {

/// An attend whose windows a plan owns: the place that they are read from, and
/// which of its heads are left (empty: all).
struct Site {
  AttendOp attend;
  std::string path;
  SmallVector<int64_t> heads;
};

std::optional<Site> siteOf(AttendOp attend) {
  if (!attend.getWindows())
    return std::nullopt;
  Site site{attend, "", {}};
  Operation *source = attend.getWindows().getDefiningOp();
  if (auto take = dyn_cast_or_null<TakeOp>(source)) {
    site.heads.assign(take.getIndices().begin(), take.getIndices().end());
    source = take.getX().getDefiningOp();
  }
  auto get = dyn_cast_or_null<GetOp>(source);
  StringRef name = get ? get.getState() : StringRef();
  if (!name.consume_front(kControlWindows))
    return std::nullopt;
  site.path = name.str();
  return site;
}

AttendOp withEntropies(AttendOp attend) {
  OpBuilder builder(attend);
  auto made = AttendOp::create(builder, attend.getLoc(), attend.getQ(), attend.getK(), attend.getV(),
                               attend.getWindows(), attend.getDocStart(), attend.getOffset(),
                               attend.getKvOf(), attend.getScaleAttr(), attend.getWindowAttr(),
                               attend.getOrderAttr(), builder.getUnitAttr());
  attend->replaceAllUsesWith(ValueRange{made.getOut(), made.getLse()});
  attend.erase();
  return made;
}

struct FormObserve : impl::FormObserveBase<FormObserve> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto micro = module.lookupSymbol<func::FuncOp>("micro");
    if (!micro || micro.isExternal()) {
      module.emitError("form-observe found no program @micro: form it, and differentiate, first");
      return signalPassFailure();
    }
    func::FuncOp observe = cloneProgram(micro, "observe", [](unsigned) { return true; });
    for (auto attend : llvm::to_vector(bodyOf(observe).getOps<AttendOp>()))
      if (std::optional<Site> site = siteOf(attend))
        addStatistics(observe, *site);
  }

  void addStatistics(func::FuncOp observe, const Site &site) {
    AttendOp attend = withEntropies(site.attend);
    RankedTensorType q = tensorType(attend.getQ());
    auto windows = getOperation().lookupSymbol<StateOp>((kControlWindows + site.path).str());
    int64_t all = windows.getTensorType().getDimSize(0);
    Builder names(&getContext());
    StringAttr own = names.getStringAttr("live_head"), whole = names.getStringAttr("head_number"),
               statistic = names.getStringAttr("statistic");
    auto typeOf = [&](StringAttr axis, int64_t heads) {
      return namedTensor({axis, statistic}, {heads, kHeadStatistics}, q.getElementType());
    };
    Location loc = namedLocation("observe", attend.getLoc());
    RankedTensorType type = typeOf(whole, all);
    std::string name = "control/statistics/" + site.path;
    if (!getOperation().lookupSymbol(name))
      addZeroState(getOperation(), name, Role::Control, type, loc);
    // Right behind the attend: nothing that it reads or writes has to live longer for it.
    OpBuilder builder(attend->getContext());
    builder.setInsertionPointAfter(attend);
    Value found = HeadStatisticsOp::create(
        builder, loc, site.heads.empty() ? type : typeOf(own, headCount(q)), attend.getQ(), attend.getK(),
        attend.getV(), attend.getOut(), attend.getEntropy(), attend.getWindows(), attend.getDocStart(),
        attend.getKvOf(), argumentCalled(observe, "targets"));
    if (!site.heads.empty())
      found = PutOp::create(builder, loc, type, found, builder.getArrayAttr({whole}), own,
                            builder.getDenseI64ArrayAttr(site.heads));
    Value before = GetOp::create(builder, loc, type, name);
    SetOp::create(builder, loc, name, binary(builder, loc, BinaryFn::Add, before, found));
  }
};

} // namespace
} // namespace weft

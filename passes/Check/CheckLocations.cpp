//===- CheckLocations.cpp - Every op says where it comes from -------------===//

#include "passes/Check/Passes.h"

#include "dialects/Weft/Weft.h"

namespace weft {
#define GEN_PASS_DEF_CHECKLOCATIONSPASS
#include "passes/Check/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

/// Whether `loc`, or a part of it, is unknown.
static bool isUnknown(Location loc) {
  return loc
      ->walk([](Location part) {
        return isa<UnknownLoc>(part) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Reports `op` itself and the arguments of its blocks; false when one has no location.
static bool check(Operation *op) {
  bool known = true;
  if (isUnknown(op->getLoc())) {
    op->emitOpError("has no known location; build it at the location of the op that it comes from: ") << *op;
    known = false;
  }
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (BlockArgument argument : block.getArguments())
        if (isUnknown(argument.getLoc())) {
          op->emitOpError("has a block argument without a known location: number ")
              << argument.getArgNumber() << " of type " << argument.getType()
              << "; give it the location of the value that it stands for";
          known = false;
        }
  return known;
}

namespace {
struct CheckLocations : weft::impl::CheckLocationsPassBase<CheckLocations> {
  void runOnOperation() override {
    bool known = true;
    getOperation().walk([&](Operation *op) { known &= op == getOperation() || check(op); });
    if (!known)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

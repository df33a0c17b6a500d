//===- LayOutParams.cpp - Give every state entry its place ----------------===//

#include "passes/Schedule/Passes.h"

#include "dialects/Weft/Weft.h"

#include "llvm/ADT/StringSet.h"

namespace weft {
#define GEN_PASS_DEF_LAYOUTPARAMSPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

int64_t bytesOf(StateOp state) {
  RankedTensorType type = state.getTensorType();
  return type.getNumElements() * static_cast<int64_t>(type.getElementTypeBitWidth() / 8);
}

/// The part of a name that says whose it is: `grad/embed` is embed's.
StringRef ownerOf(StateOp state) {
  bool derived = state.getRole() == Role::Gradient || state.getRole() == Role::Moment;
  return derived ? state.getSymName().split('/').second : state.getSymName();
}

/// Entries of one kind stand together: parameters, gradients, each moment, the rest alone.
StringRef kindOf(StateOp state) {
  bool derived = state.getRole() == Role::Gradient || state.getRole() == Role::Moment;
  return derived                              ? state.getSymName().split('/').first
         : state.getRole() == Role::Parameter ? ""
                                              : state.getSymName();
}

struct LayOutParams : weft::impl::LayOutParamsPassBase<LayOutParams> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<int64_t> rank = ranks(module);
    SmallVector<StateOp> states(module.getOps<StateOp>());
    llvm::MapVector<StringRef, SmallVector<StateOp>> kinds;
    for (StateOp state : states)
      kinds[kindOf(state)].push_back(state);
    int64_t offset = 0;
    Builder builder(module.getContext());
    llvm::StringMap<int64_t> place;
    for (auto &[kind, members] : kinds) {
      llvm::stable_sort(
          members, [&](StateOp a, StateOp b) { return rank.lookup(ownerOf(a)) < rank.lookup(ownerOf(b)); });
      offset = static_cast<int64_t>(llvm::alignTo(offset, 64));
      for (StateOp state : members) {
        state.setOffset(offset);
        place[state.getSymName()] = offset;
        offset += bytesOf(state);
      }
    }
    module->setAttr("weft.state_bytes",
                    builder.getI64IntegerAttr(static_cast<int64_t>(llvm::alignTo(offset, 64))));
    reorderNorms(module, place);
  }

  /// Place of each parameter in the order of the optimiser's groups; those that the
  /// optimiser does not step stand before them, since a group must be one vector.
  llvm::StringMap<int64_t> ranks(ModuleOp module) {
    llvm::StringMap<int64_t> rank;
    llvm::StringSet<> trained;
    for (StateOp state : module.getOps<StateOp>())
      if (state.getRole() == Role::Gradient)
        trained.insert(ownerOf(state));
    int64_t next = 1;
    if (auto groups = module->getAttrOfType<ArrayAttr>("weft.groups"))
      for (auto group : groups.getAsRange<DictionaryAttr>())
        for (auto name : group.getAs<ArrayAttr>("params").getAsRange<StringAttr>())
          if (trained.empty() || trained.contains(name.getValue()))
            rank[name.getValue()] = next++;
    return rank;
  }

  /// A norm does not ask for an order, and neither does one number in every
  /// element: storage order makes each one vector.
  void reorderNorms(ModuleOp module, const llvm::StringMap<int64_t> &place) {
    auto ordered = [&](ArrayAttr states) {
      SmallVector<Attribute> names(states.begin(), states.end());
      llvm::stable_sort(names, [&](Attribute a, Attribute b) {
        return place.lookup(cast<FlatSymbolRefAttr>(a).getValue()) <
               place.lookup(cast<FlatSymbolRefAttr>(b).getValue());
      });
      return ArrayAttr::get(module.getContext(), names);
    };
    module.walk([&](Operation *op) {
      if (auto set = dyn_cast<SetFlatOp>(op); set && set.getValue().getDefiningOp<ConstantOp>())
        set.setStatesAttr(ordered(set.getStates()));
      auto get = dyn_cast<GetFlatOp>(op);
      if (get && llvm::all_of(get->getUsers(), [](Operation *user) { return isa<NormOp>(user); }))
        get.setStatesAttr(ordered(get.getStates()));
    });
  }
};

} // namespace

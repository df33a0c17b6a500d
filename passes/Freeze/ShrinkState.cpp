//===- ShrinkState.cpp - State without what heads no longer need -----------===//
#include "passes/Freeze/ShrinkState.h"

#include "passes/Differentiate/Programs.h"

using namespace mlir;

namespace weft {

StateUses::StateUses(ModuleOp module) {
  module.walk([&](GetOp get) { read.insert(get.getState()); });
}

namespace {

/// All takes of an entry, when it has no other use and they agree on the axes.
std::optional<SmallVector<TakeOp>> takesOf(ArrayRef<GetOp> gets) {
  SmallVector<TakeOp> takes;
  for (GetOp get : gets)
    for (Operation *user : get->getUsers()) {
      auto take = dyn_cast<TakeOp>(user);
      if (!take || (!takes.empty() && take.getAxes() != takes[0].getAxes()))
        return std::nullopt;
      takes.push_back(take);
    }
  return takes;
}

/// The places that any of `takes` names, increasing.
SmallVector<int64_t> placesOf(ArrayRef<TakeOp> takes) {
  SmallVector<int64_t> kept;
  for (TakeOp take : takes)
    llvm::append_range(kept, take.getIndices());
  llvm::sort(kept);
  kept.erase(llvm::unique(kept), kept.end());
  return kept;
}

/// The axis of the smaller entry: that of the takes, when each takes all of it.
StringAttr axisOf(ArrayRef<TakeOp> takes, ArrayRef<int64_t> kept) {
  for (TakeOp take : takes)
    if (take.getAxisAttr() != TakeOp(takes[0]).getAxisAttr() || take.getIndices() != kept)
      return StringAttr::get(take.getContext(), "kept");
  return TakeOp(takes[0]).getAxisAttr();
}

/// The attribute that says what is left of `type`, and the type of that.
std::pair<SlicesAttr, RankedTensorType> smaller(RankedTensorType type, TakeOp take, ArrayRef<int64_t> kept,
                                                StringAttr axis) {
  int64_t first = axisIndex(type, cast<StringAttr>(take.getAxes()[0]));
  auto count = static_cast<int64_t>(take.getAxes().size());
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<StringAttr> names(axesOf(type));
  shape[static_cast<size_t>(first)] = static_cast<int64_t>(kept.size());
  shape.erase(shape.begin() + first + 1, shape.begin() + first + count);
  names[static_cast<size_t>(first)] = axis;
  names.erase(names.begin() + first + 1, names.begin() + first + count);
  return {SlicesAttr::get(type.getContext(), type.getShape(), first, count, kept),
          namedTensor(names, shape, type.getElementType())};
}

void shrink(StateOp state, ArrayRef<GetOp> gets) {
  std::optional<SmallVector<TakeOp>> takes = takesOf(gets);
  if (!takes || takes->empty() || state.getSlices())
    return;
  SmallVector<int64_t> kept = placesOf(*takes);
  StringAttr axis = axisOf(*takes, kept);
  auto [slices, type] = smaller(state.getTensorType(), takes->front(), kept, axis);
  if (type.getNumElements() == state.getTensorType().getNumElements())
    return;
  state.setSlicesAttr(slices);
  state.setType(type);
  for (GetOp get : gets)
    get.getResult().setType(type);
  for (TakeOp take : *takes) {
    if (axis == take.getAxisAttr() && take.getIndices() == ArrayRef(kept)) {
      take.getY().replaceAllUsesWith(take.getX());
      take.erase();
      continue;
    }
    SmallVector<int64_t> places;
    for (int64_t index : take.getIndices())
      places.push_back(llvm::lower_bound(kept, index) - kept.begin());
    OpBuilder builder(take);
    take.setIndices(places);
    take.setAxesAttr(builder.getArrayAttr({axis}));
  }
}

/// Groups without the names that are gone.
void updateGroups(ModuleOp module) {
  auto groups = module->getAttrOfType<ArrayAttr>("weft.groups");
  if (!groups)
    return;
  SmallVector<Attribute> result;
  Builder builder(module.getContext());
  for (auto group : groups.getAsRange<DictionaryAttr>()) {
    SmallVector<Attribute> names;
    for (auto name : group.getAs<ArrayAttr>("params").getAsRange<StringAttr>())
      if (module.lookupSymbol(name.getValue()))
        names.push_back(name);
    NamedAttrList fields(group);
    fields.set("params", builder.getArrayAttr(names));
    result.push_back(fields.getDictionary(module.getContext()));
  }
  module->setAttr("weft.groups", builder.getArrayAttr(result));
}

} // namespace

void shrinkState(ModuleOp module, const StateUses &before) {
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      eraseDeadOps(bodyOf(function));
  llvm::StringMap<SmallVector<GetOp>> gets;
  module.walk([&](GetOp get) { gets[get.getState()].push_back(get); });
  for (StateOp state : llvm::make_early_inc_range(module.getOps<StateOp>())) {
    auto found = gets.find(state.getSymName());
    if (found != gets.end() && state.getRole() == Role::Parameter)
      shrink(state, found->second);
    else if (found == gets.end() && before.read.contains(state.getSymName()))
      state.erase();
  }
  updateGroups(module);
}

} // namespace weft

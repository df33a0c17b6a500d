//===- HeadDecisions.cpp - Which heads are frozen or pruned ----------------===//
#include "passes/Freeze/HeadDecisions.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace weft {

std::string patternKeyName(const std::string &site) { return "pattern/" + site + "/a"; }
std::string patternDistanceName(const std::string &site) { return "pattern/" + site + "/r"; }
std::string wholePatternName(const std::string &site) { return "pattern/" + site + "/p"; }

void setHeadDecisions(ModuleOp module, const HeadDecisions &decisions) {
  Builder builder(module.getContext());
  NamedAttrList frozen, pruned;
  for (const auto &[site, heads] : decisions.frozen) {
    if (heads.heads.empty())
      continue;
    NamedAttrList fields;
    fields.set("heads", builder.getDenseI64ArrayAttr(heads.heads));
    fields.set("windows", builder.getDenseI32ArrayAttr(heads.windows));
    fields.set("trained", builder.getBoolAttr(heads.trained));
    if (heads.length > 0)
      fields.set("length", builder.getI64IntegerAttr(heads.length));
    if (heads.dense)
      fields.set("dense", builder.getBoolAttr(true));
    if (llvm::any_of(heads.firstPlaces, [](int32_t places) { return places > 0; }))
      fields.set("first_places", builder.getDenseI32ArrayAttr(heads.firstPlaces));
    frozen.set(site, fields.getDictionary(module.getContext()));
  }
  for (const auto &[site, heads] : decisions.pruned)
    if (!heads.empty())
      pruned.set(site, builder.getDenseI64ArrayAttr(heads));
  if (!frozen.empty())
    module->setAttr("weft.frozen", frozen.getDictionary(module.getContext()));
  if (!pruned.empty())
    module->setAttr("weft.pruned", pruned.getDictionary(module.getContext()));
}

/// First places are whole blocks of the kernels' tiles.
constexpr int32_t kGrain = 64;

static FailureOr<FrozenHeads> readFrozen(ModuleOp module, NamedAttribute entry) {
  auto fields = dyn_cast<DictionaryAttr>(entry.getValue());
  auto heads = fields ? fields.getAs<DenseI64ArrayAttr>("heads") : DenseI64ArrayAttr();
  auto windows = fields ? fields.getAs<DenseI32ArrayAttr>("windows") : DenseI32ArrayAttr();
  auto trained = fields ? fields.getAs<BoolAttr>("trained") : BoolAttr();
  if (!heads || !windows || !trained || heads.size() != windows.size())
    return module.emitError()
           << "weft.frozen holds " << entry.getValue() << " for '" << entry.getName().getValue()
           << "': expected {heads = array<i64: ...>, windows = array<i32: ...> of as many, "
              "trained = true or false}";
  auto length = fields.getAs<IntegerAttr>("length");
  auto dense = fields.getAs<BoolAttr>("dense");
  if (dense && dense.getValue() && trained.getValue())
    return module.emitError() << "weft.frozen holds dense and trained patterns for '"
                              << entry.getName().getValue() << "': expected one of the two";
  auto first = fields.getAs<DenseI32ArrayAttr>("first_places");
  auto isGood = [](int32_t places) { return places >= 0 && places % kGrain == 0; };
  if (first && (first.size() != heads.size() || !llvm::all_of(first.asArrayRef(), isGood)))
    return module.emitError() << "weft.frozen holds first_places = " << first << " for '"
                              << entry.getName().getValue() << "': expected a multiple of " << kGrain
                              << " for each of its " << heads.size() << " heads";
  ArrayRef<int32_t> places = first ? first.asArrayRef() : ArrayRef<int32_t>();
  return FrozenHeads{{heads.asArrayRef().begin(), heads.asArrayRef().end()},
                     {windows.asArrayRef().begin(), windows.asArrayRef().end()},
                     trained.getValue(),
                     length ? length.getInt() : 0,
                     dense && dense.getValue(),
                     {places.begin(), places.end()}};
}

FailureOr<HeadDecisions> readHeadDecisions(ModuleOp module) {
  HeadDecisions decisions;
  if (auto frozen = module->getAttrOfType<DictionaryAttr>("weft.frozen"))
    for (NamedAttribute entry : frozen) {
      FailureOr<FrozenHeads> heads = readFrozen(module, entry);
      if (failed(heads))
        return failure();
      decisions.frozen.emplace(entry.getName().str(), std::move(*heads));
    }
  if (auto pruned = module->getAttrOfType<DictionaryAttr>("weft.pruned"))
    for (NamedAttribute entry : pruned) {
      auto heads = dyn_cast<DenseI64ArrayAttr>(entry.getValue());
      if (!heads)
        return module.emitError() << "weft.pruned holds " << entry.getValue() << " for '"
                                  << entry.getName().getValue() << "': expected array<i64: ...>";
      decisions.pruned[entry.getName().str()].assign(heads.asArrayRef().begin(), heads.asArrayRef().end());
    }
  return decisions;
}

} // namespace weft

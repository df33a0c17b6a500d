//===- FormUpdate.cpp - One step of the optimiser -------------------------===//
#include "passes/Differentiate/Muon.h"
#include "passes/Differentiate/Programs.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace weft {
namespace {

/// One entry of `weft.groups`.
struct Group {
  bool muon = false;
  FloatAttr beta1, beta2, eps, decay; // AdamW; Muon has decay alone of these
  MuonOptions options;                // Muon
  SmallVector<StateOp> parameters;    // in the order of the module
};

LogicalResult readNumbers(DictionaryAttr fields, Group &group) {
  auto kind = fields.getAs<StringAttr>("kind");
  group.muon = kind && kind.getValue() == "muon";
  group.decay = fields.getAs<FloatAttr>("decay");
  if (group.muon) {
    auto momentum = fields.getAs<FloatAttr>("momentum");
    auto nesterov = fields.getAs<BoolAttr>("nesterov");
    auto iterations = fields.getAs<IntegerAttr>("iterations");
    if (!momentum || !nesterov || !iterations || !group.decay)
      return failure();
    group.options = {momentum.getValueAsDouble(), group.decay.getValueAsDouble(), nesterov.getValue(),
                     iterations.getInt()};
    return success();
  }
  group.beta1 = fields.getAs<FloatAttr>("beta1");
  group.beta2 = fields.getAs<FloatAttr>("beta2");
  group.eps = fields.getAs<FloatAttr>("eps");
  return success(!kind && group.beta1 && group.beta2 && group.eps && group.decay);
}

FailureOr<Group> readGroup(ModuleOp module, Attribute attribute, ArrayRef<StateOp> trained) {
  auto fields = dyn_cast<DictionaryAttr>(attribute);
  auto paths = fields ? fields.getAs<ArrayAttr>("params") : ArrayAttr();
  Group group;
  if (!paths || failed(readNumbers(fields, group)))
    return module.emitError() << "weft.groups holds " << attribute
                              << ": expected {beta1, beta2, eps, decay : f64, params = [\"path\", ...]}, or "
                                 "{kind = \"muon\", momentum, decay : f64, nesterov : i1, iterations : i64, "
                                 "params = [...]}";
  llvm::StringSet<> named;
  for (Attribute path : paths) {
    auto text = dyn_cast<StringAttr>(path);
    if (!text || !module.lookupSymbol<StateOp>(text.getValue()))
      return module.emitError() << "weft.groups names " << path << ": no parameter has this address";
    named.insert(text.getValue());
  }
  for (StateOp state : trained)
    if (named.contains(state.getSymName()))
      group.parameters.push_back(state);
  return group;
}

/// Each group of `weft.groups`; no parameter stands in two.
FailureOr<SmallVector<Group>> readGroups(ModuleOp module, ArrayRef<StateOp> trained) {
  auto attribute = module->getAttrOfType<ArrayAttr>("weft.groups");
  if (!attribute)
    return module.emitError("@update needs the module's attribute weft.groups: found none");
  SmallVector<Group> groups;
  llvm::DenseSet<Operation *> seen;
  for (Attribute entry : attribute) {
    FailureOr<Group> group = readGroup(module, entry, trained);
    if (failed(group))
      return failure();
    for (StateOp state : group->parameters)
      if (!seen.insert(state).second)
        return module.emitError() << "weft.groups names '" << state.getSymName()
                                  << "' twice: expected each parameter in one group";
    groups.push_back(*group);
  }
  return groups;
}

class UpdateBuilder {
public:
  UpdateBuilder(ModuleOp module, ArrayRef<StateOp> trained)
      : module(module), trained(trained), builder(module.getContext()),
        loc(namedLocation("update", module.getLoc())),
        element(StateOp(trained[0]).getTensorType().getElementType()) {}

  LogicalResult build(ArrayRef<Group> groups) {
    builder.setInsertionPointToEnd(module.getBody());
    RankedTensorType scalar = RankedTensorType::get({}, element);
    function = func::FuncOp::create(builder, loc, "update", builder.getFunctionType({}, {scalar}));
    function.setResultAttr(0, kNameAttr, builder.getStringAttr("grad_norm"));
    builder.setInsertionPointToStart(function.addEntryBlock());
    Value factor = addArgument(function, "inverse_count", scalar);
    Value all = getFlat(trained, gradientName);
    Value norm = NormOp::create(builder, loc, scalar, all, factor);
    Value scale = ClipScaleOp::create(builder, loc, scalar, norm, factor, clip());
    for (auto [index, group] : llvm::enumerate(groups)) {
      // A group keeps its number even when nothing of it is trained.
      RankedTensorType numbers = group.muon ? scalar : RankedTensorType::get({3}, element);
      Value hyper = addArgument(function, "hyper." + std::to_string(index), numbers);
      if (group.muon) {
        for (StateOp state : group.parameters)
          if (failed(stepMatrix(state, group.options, hyper, scale)))
            return failure();
      } else if (!group.parameters.empty()) {
        step(group, hyper, scale);
      }
    }
    Value zero = constantOf(builder, loc, cast<RankedTensorType>(all.getType()), 0.0);
    setFlat(trained, gradientName, zero);
    func::ReturnOp::create(builder, loc, norm);
    return success();
  }

private:
  using Naming = llvm::function_ref<std::string(StringRef)>;

  FloatAttr clip() {
    auto attribute = module->getAttrOfType<FloatAttr>("weft.clip");
    return builder.getF64FloatAttr(attribute ? attribute.getValueAsDouble() : 0.0);
  }

  ArrayAttr names(ArrayRef<StateOp> states, Naming naming) {
    SmallVector<Attribute> symbols;
    for (StateOp state : states)
      symbols.push_back(FlatSymbolRefAttr::get(module.getContext(), naming(StateOp(state).getSymName())));
    return builder.getArrayAttr(symbols);
  }

  Value getFlat(ArrayRef<StateOp> states, Naming naming) {
    int64_t size = 0;
    for (StateOp state : states)
      size += state.getTensorType().getNumElements();
    return GetFlatOp::create(builder, loc, RankedTensorType::get({size}, element), names(states, naming));
  }

  void setFlat(ArrayRef<StateOp> states, Naming naming, Value value) {
    SetFlatOp::create(builder, loc, names(states, naming), value);
  }

  void step(const Group &group, Value hyper, Value scale) {
    auto same = [](StringRef path) { return path.str(); };
    Value p = getFlat(group.parameters, same), m = getFlat(group.parameters, firstMomentName),
          v = getFlat(group.parameters, secondMomentName), grad = getFlat(group.parameters, gradientName);
    auto adamw = AdamWOp::create(builder, loc, p.getType(), m.getType(), v.getType(), p, m, v, grad, hyper,
                                 scale, group.beta1, group.beta2, group.eps, group.decay);
    setFlat(group.parameters, same, adamw.getNewP());
    setFlat(group.parameters, firstMomentName, adamw.getNewM());
    setFlat(group.parameters, secondMomentName, adamw.getNewV());
  }

  /// Muon steps each matrix on its own: its direction is that of the whole matrix.
  LogicalResult stepMatrix(StateOp state, const MuonOptions &options, Value rate, Value scale) {
    FailureOr<MuonMatrix> matrix = muonMatrixOf(state, module.lookupSymbol<func::FuncOp>("forward"));
    if (failed(matrix))
      return failure();
    StringRef path = state.getSymName();
    Location at = namedLocation("update", state.getLoc());
    auto symbol = [&](StringRef name) { return FlatSymbolRefAttr::get(module.getContext(), name); };
    auto get = [&](StringRef name) -> Value {
      return GetOp::create(builder, at, state.getTensorType(), symbol(name));
    };
    MuonStep step = buildMuonStep(builder, at, get(path), get(momentumName(path)), get(gradientName(path)),
                                  rate, scale, *matrix, options);
    SetOp::create(builder, at, symbol(path), step.parameter);
    SetOp::create(builder, at, symbol(momentumName(path)), step.momentum);
    return success();
  }

  ModuleOp module;
  ArrayRef<StateOp> trained;
  OpBuilder builder;
  Location loc;
  Type element;
  func::FuncOp function;
};

} // namespace

LogicalResult formUpdate(ModuleOp module, ArrayRef<StateOp> trained) {
  FailureOr<SmallVector<Group>> groups = readGroups(module, trained);
  if (failed(groups))
    return failure();
  if (trained.empty())
    return module.emitError(
        "@update found no parameter to train: the loss depends on none that a group names");
  return UpdateBuilder(module, trained).build(*groups);
}

} // namespace weft

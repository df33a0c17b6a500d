//===- FormUpdate.cpp - One step of the optimiser -------------------------===//
#include "passes/Differentiate/Muon.h"
#include "passes/Differentiate/Programs.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace weft {
namespace {

/// Matrices that Muon steps together.
struct Matrices {
  MuonMatrix shape;
  SmallVector<StateOp> parameters;
};

/// One entry of `weft.groups`.
struct Group {
  bool muon = false;
  FloatAttr beta1, beta2, eps, decay; // AdamW; Muon has decay alone of these
  MuonOptions options;                // Muon
  SmallVector<StateOp> parameters;    // in the order of the module
  SmallVector<Matrices> shapes;       // Muon: the same by shape
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

LogicalResult sortByShape(ModuleOp module, Group &group) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  for (StateOp state : group.parameters) {
    FailureOr<MuonMatrix> shape = muonMatrixOf(state, forward);
    if (failed(shape))
      return failure();
    auto *found = llvm::find_if(group.shapes, [&](const Matrices &other) { return other.shape == *shape; });
    if (found == group.shapes.end())
      found = group.shapes.insert(found, Matrices{*shape, {}});
    found->parameters.push_back(state);
  }
  return success();
}

/// `weft.groups` gives the order in storage: those that step together stand together.
void orderGroups(ModuleOp module, ArrayRef<Group> groups) {
  Builder builder(module.getContext());
  SmallVector<Attribute> entries(module->getAttrOfType<ArrayAttr>("weft.groups").getValue());
  for (auto [entry, group] : llvm::zip(entries, groups)) {
    if (!group.muon)
      continue;
    llvm::SetVector<Attribute> paths;
    for (const Matrices &matrices : group.shapes)
      for (StateOp state : matrices.parameters)
        paths.insert(StringAttr::get(module.getContext(), StateOp(state).getSymName()));
    NamedAttrList fields(cast<DictionaryAttr>(entry));
    auto all = cast<ArrayAttr>(fields.get("params"));
    paths.insert(all.begin(), all.end());
    fields.set("params", builder.getArrayAttr(paths.getArrayRef()));
    entry = fields.getDictionary(module.getContext());
  }
  module->setAttr("weft.groups", builder.getArrayAttr(entries));
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
        for (const Matrices &matrices : group.shapes)
          stepMatrices(matrices, group.options, hyper, scale);
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

  RankedTensorType flatType(ArrayRef<StateOp> states) {
    int64_t size = 0;
    for (StateOp state : states)
      size += state.getTensorType().getNumElements();
    return RankedTensorType::get({size}, element);
  }

  Value getFlat(ArrayRef<StateOp> states, Naming naming) {
    return GetFlatOp::create(builder, loc, flatType(states), names(states, naming));
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

  /// Matrices of one shape are one vector, and their products one product of many.
  void stepMatrices(const Matrices &matrices, const MuonOptions &options, Value rate, Value scale) {
    auto same = [](StringRef path) { return path.str(); };
    ArrayRef<StateOp> states = matrices.parameters;
    // Elementwise ops go by the names of axes.
    auto type = namedTensor({builder.getStringAttr("muon.element")}, flatType(states).getShape(), element);
    auto get = [&](Naming naming) -> Value {
      return GetFlatOp::create(builder, loc, type, names(states, naming));
    };
    Value p = get(same), m = get(momentumName), grad = get(gradientName);
    MuonStep step = buildMuonStep(builder, loc, p, m, grad, rate, scale, matrices.shape, options);
    setFlat(states, same, step.parameter);
    setFlat(states, momentumName, step.momentum);
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
  for (Group &group : *groups)
    if (group.muon && failed(sortByShape(module, group)))
      return failure();
  orderGroups(module, *groups);
  return UpdateBuilder(module, trained).build(*groups);
}

} // namespace weft

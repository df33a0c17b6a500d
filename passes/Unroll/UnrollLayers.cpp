//===- UnrollLayers.cpp - Write layers out and fix sizes ------------------===//
//
// 1. Evaluate the model's names in order.
// 2. Walk its body with the names in force and the path of the scopes around:
//    a layer's body once an index, a branch's body in its place, the side of an
//    `if` that its test chooses.
// 3. Clone every other op with its attributes evaluated and its types sized.
//
// Windows that a plan gives stand in the module's attribute `weft.windows`,
// {path of the branch = array of one window a head}; the paths in
// `weft.window_state` read theirs from state, `control/windows/PATH`.
//
//===----------------------------------------------------------------------===//

#include "passes/Unroll/Passes.h"
#include "passes/Unroll/Scope.h"
#include "passes/Unroll/Windows.h"

#include "dialects/Weft/Weft.h"

#include <set>

namespace weft {
#define GEN_PASS_DEF_UNROLLLAYERSPASS
#include "passes/Unroll/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

class Unroller {
public:
  Unroller(ModuleOp module, ModelOp model, int64_t batch, int64_t positions, Type element)
      : module(module), model(model), builder(module.getContext()), positions(positions), element(element) {
    names["batch"] = lang::Value::ofNumber(static_cast<double>(batch));
    names["pos"] = lang::Value::ofNumber(static_cast<double>(positions));
  }

  LogicalResult run();

private:
  LogicalResult bindSettings();
  LogicalResult unrollBlock(Block &block, IRMapping &mapping);
  LogicalResult unrollOp(Operation &op, IRMapping &mapping);
  LogicalResult unrollLayer(LayerOp layer, IRMapping &mapping);
  LogicalResult unrollIf(IfOp op, IRMapping &mapping);
  LogicalResult unrollBranch(BranchOp op, IRMapping &mapping);
  LogicalResult unrollParam(ParamOp op, IRMapping &mapping);
  LogicalResult unrollAttend(AttendOp op, IRMapping &mapping);
  Value windowState(Location loc, RankedTensorType type);
  LogicalResult unrollRope(RopeOp op, IRMapping &mapping);
  FailureOr<Operation *> cloneSized(Operation &op, IRMapping &mapping);

  std::optional<lang::Value> evaluate(Operation *op, FormulaAttr formula);
  FailureOr<Attribute> numberAttr(Operation *op, Attribute attribute);
  FailureOr<RankedTensorType> sized(Operation *op, Type type);
  std::string pathOf(StringRef name) { return path.empty() ? name.str() : path + "." + name.str(); }
  Value read(Location loc, StringRef name, RankedTensorType type) {
    return GetOp::create(builder, loc, type, FlatSymbolRefAttr::get(builder.getContext(), name));
  }
  void finish(func::FuncOp function, Location loc);

  ModuleOp module;
  ModelOp model;
  OpBuilder builder;
  int64_t positions;
  Type element;
  lang::Bindings names;
  std::string path;
  func::FuncOp function;
  std::map<std::string, Value> inputs;
  std::vector<std::pair<std::string, Value>> outputs;
  Value loss;
  Operation *lastState = nullptr;
  std::set<std::string> tables;
};

} // namespace

std::optional<lang::Value> Unroller::evaluate(Operation *op, FormulaAttr formula) {
  lang::FormulaError error;
  lang::FormulaRef parsed = formula.formula();
  // A setting that is a word stands as its own name.
  if (parsed->kind == lang::Formula::Kind::Name && !names.contains(parsed->name))
    return lang::Value::ofWord(parsed->name);
  std::optional<lang::Value> value = lang::evaluate(*parsed, names, &error);
  if (!value)
    op->emitError("can't evaluate '") << formula.getText().getValue() << "': " << error.message;
  return value;
}

FailureOr<Attribute> Unroller::numberAttr(Operation *op, Attribute attribute) {
  auto formula = dyn_cast_or_null<FormulaAttr>(attribute);
  if (!formula)
    return attribute;
  std::optional<lang::Value> value = evaluate(op, formula);
  if (!value)
    return failure();
  return Attribute(builder.getF64FloatAttr(value->number));
}

FailureOr<RankedTensorType> Unroller::sized(Operation *op, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> sizes;
  for (StringAttr name : axesOf(tensor)) {
    auto found = names.find(name.getValue());
    if (found == names.end() || !found->second.isWhole() || found->second.number < 1)
      return op->emitError("expects a whole size of at least 1 for the axis '")
             << name.getValue() << "', but found " << (found == names.end() ? "none" : found->second.text());
    sizes.push_back(static_cast<int64_t>(found->second.number));
  }
  return namedTensor(axesOf(tensor), sizes,
                     isa<FloatType>(tensor.getElementType()) ? element : tensor.getElementType());
}

LogicalResult Unroller::bindSettings() {
  for (auto [name, formula] : llvm::zip(model.getNames(), model.getFormulas())) {
    std::optional<lang::Value> value = evaluate(model, cast<FormulaAttr>(formula));
    if (!value)
      return failure();
    names[cast<StringAttr>(name).getValue().str()] = *value;
  }
  return success();
}

LogicalResult Unroller::unrollBlock(Block &block, IRMapping &mapping) {
  for (Operation &op : block.without_terminator())
    if (failed(unrollOp(op, mapping)))
      return failure();
  return success();
}

LogicalResult Unroller::unrollLayer(LayerOp layer, IRMapping &mapping) {
  std::optional<lang::Value> count = evaluate(layer, layer.getCount());
  if (!count)
    return failure();
  if (!count->isWhole() || count->number < 0)
    return layer.emitError("expects a whole count of repeats, but got ") << count->text();
  SmallVector<Value> carried;
  for (Value value : layer.getCarried())
    carried.push_back(mapping.lookup(value));
  std::string outer = path;
  lang::Bindings outerNames = names;
  auto yield = cast<YieldOp>(layer.getBody().front().getTerminator());
  for (int64_t index = 0; index < static_cast<int64_t>(count->number); ++index) {
    path = (outer.empty() ? "" : outer + ".") + layer.getName().str() + "." + std::to_string(index);
    names = outerNames;
    if (!layer.getIndex().empty())
      names[layer.getIndex().str()] = lang::Value::ofNumber(static_cast<double>(index));
    for (auto [argument, value] : llvm::zip(layer.getBody().getArguments(), carried))
      mapping.map(argument, value);
    if (failed(unrollBlock(layer.getBody().front(), mapping)))
      return failure();
    for (auto [value, next] : llvm::zip(carried, yield.getValues()))
      value = mapping.lookup(next);
  }
  path = outer;
  names = outerNames;
  mapping.map(layer.getResults(), carried);
  return success();
}

LogicalResult Unroller::unrollIf(IfOp op, IRMapping &mapping) {
  std::optional<lang::Value> test = evaluate(op, op.getTest());
  if (!test)
    return failure();
  Block &chosen = test->number != 0 ? op.getThenRegion().front() : op.getElseRegion().front();
  if (failed(unrollBlock(chosen, mapping)))
    return failure();
  for (auto [result, value] : llvm::zip(op.getResults(), chosen.getTerminator()->getOperands()))
    mapping.map(result, mapping.lookup(value));
  return success();
}

LogicalResult Unroller::unrollBranch(BranchOp op, IRMapping &mapping) {
  std::string outer = path;
  lang::Bindings outerNames = names;
  path = pathOf(op.getName());
  LogicalResult result = unrollBlock(op.getBody().front(), mapping);
  path = outer;
  names = outerNames;
  mapping.map(op.getResult(), mapping.lookupOrNull(op.getBody().front().getTerminator()->getOperand(0)));
  return result;
}

LogicalResult Unroller::unrollParam(ParamOp op, IRMapping &mapping) {
  FailureOr<RankedTensorType> type = sized(op, op.getType());
  FailureOr<Attribute> a = numberAttr(op, op.getInit().getA()), b = numberAttr(op, op.getInit().getB());
  if (failed(type) || failed(a) || failed(b))
    return failure();
  std::string name = pathOf(op.getName());
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(lastState ? lastState : model);
    auto init = InitAttr::get(builder.getContext(), op.getInit().getKind(), *a, *b);
    lastState = StateOp::create(builder, inScope(path, op.getLoc()), name, Role::Parameter, *type, init,
                                IntegerAttr());
  }
  mapping.map(op.getResult(), read(inScope(path, op.getLoc()), name, *type));
  return success();
}

/// The windows of this path as state, without bound until a plan sets them.
Value Unroller::windowState(Location loc, RankedTensorType type) {
  std::string name = (kControlWindows + path).str();
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(lastState ? lastState : model);
    auto init =
        InitAttr::get(builder.getContext(), InitKind::Constant, builder.getF64FloatAttr(kFullWindow), {});
    lastState = StateOp::create(builder, loc, name, Role::Control, type, init, IntegerAttr());
  }
  return read(loc, name, type);
}

LogicalResult Unroller::unrollAttend(AttendOp op, IRMapping &mapping) {
  Value q = mapping.lookup(op.getQ());
  int64_t heads = headCount(cast<RankedTensorType>(q.getType()));
  std::optional<lang::Value> window = evaluate(op, *op.getWindow());
  FailureOr<Attribute> scale = numberAttr(op, op.getScale());
  if (!window || failed(scale))
    return failure();
  bool full = window->kind == lang::Value::Kind::Full || window->number >= kFullWindow;
  if (!full && (!window->isWhole() || window->number < 1))
    return op.emitError("expects a window of at least 1 key, the query's own, but got ")
           << window->text() << " in " << path;
  FailureOr<SmallVector<int32_t>> windows =
      plannedWindows(op, path, heads, full ? kFullWindow : static_cast<int32_t>(window->number));
  if (failed(windows))
    return failure();
  Location loc = inScope(path, op.getLoc());
  auto listType = RankedTensorType::get({heads}, builder.getI32Type());
  Value list = readsWindows(module, path) ? windowState(loc, listType)
                                          : Value(IntegersOp::create(builder, loc, listType, *windows));
  auto sizedOp = AttendOp::create(builder, loc, q, mapping.lookup(op.getK()), mapping.lookup(op.getV()), list,
                                  mapping.lookup(op.getDocStart()), Value(), Value(), *scale, FormulaAttr(),
                                  DenseI32ArrayAttr());
  mapping.map(op.getResults(), sizedOp.getResults());
  return success();
}

LogicalResult Unroller::unrollRope(RopeOp op, IRMapping &mapping) {
  FailureOr<Attribute> base = numberAttr(op, op.getBase());
  if (failed(base))
    return failure();
  Value x = mapping.lookup(op.getX());
  int64_t half = cast<RankedTensorType>(x.getType()).getShape().back() / 2;
  auto type = RankedTensorType::get({positions, half, 2}, element);
  std::string name =
      "table/rope." + lang::Value::ofNumber(numberOf(*base)).text() + "." + std::to_string(half);
  if (tables.insert(name).second) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(lastState ? lastState : model);
    auto init = InitAttr::get(builder.getContext(), InitKind::RopeTable, *base, Attribute());
    lastState = StateOp::create(builder, op.getLoc(), name, Role::Table, type, init, IntegerAttr());
  }
  Location loc = inScope(path, op.getLoc());
  Value table = read(loc, name, type);
  mapping.map(op.getResult(),
              RopeOp::create(builder, loc, x, mapping.lookup(op.getPosition()), table, *base, op.getInverse())
                  .getResult());
  return success();
}

FailureOr<Operation *> Unroller::cloneSized(Operation &op, IRMapping &mapping) {
  Operation *clone = op.clone(mapping);
  clone->setLoc(inScope(path, op.getLoc()));
  for (NamedAttribute attribute : llvm::to_vector(clone->getAttrs())) {
    FailureOr<Attribute> number = numberAttr(&op, attribute.getValue());
    if (failed(number)) {
      clone->destroy();
      return failure();
    }
    clone->setAttr(attribute.getName(), *number);
  }
  for (OpResult result : clone->getResults()) {
    FailureOr<RankedTensorType> type = sized(&op, result.getType());
    if (failed(type)) {
      clone->destroy();
      return failure();
    }
    result.setType(*type);
  }
  return builder.insert(clone);
}

LogicalResult Unroller::unrollOp(Operation &op, IRMapping &mapping) {
  if (auto layer = dyn_cast<LayerOp>(op))
    return unrollLayer(layer, mapping);
  if (auto choice = dyn_cast<IfOp>(op))
    return unrollIf(choice, mapping);
  if (auto branch = dyn_cast<BranchOp>(op))
    return unrollBranch(branch, mapping);
  if (auto param = dyn_cast<ParamOp>(op))
    return unrollParam(param, mapping);
  if (auto attend = dyn_cast<AttendOp>(op))
    return unrollAttend(attend, mapping);
  if (auto rope = dyn_cast<RopeOp>(op))
    return unrollRope(rope, mapping);
  if (auto input = dyn_cast<InputOp>(op)) {
    mapping.map(input.getResult(), inputs.at(input.getName().str()));
    return success();
  }
  if (auto let = dyn_cast<LetOp>(op)) {
    std::optional<lang::Value> value = evaluate(let, let.getValue());
    if (value)
      names[let.getName().str()] = *value;
    return success(value.has_value());
  }
  if (auto output = dyn_cast<OutputOp>(op)) {
    outputs.emplace_back(pathOf(output.getName()), mapping.lookup(output.getValue()));
    return success();
  }
  if (auto lossOp = dyn_cast<LossOp>(op)) {
    loss = mapping.lookup(lossOp.getValue());
    return success();
  }
  if (auto dropout = dyn_cast<DropoutOp>(op)) {
    FailureOr<Attribute> rate = numberAttr(&op, dropout.getRate());
    if (failed(rate))
      return failure();
    if (numberOf(*rate) == 0) {
      mapping.map(dropout.getY(), mapping.lookup(dropout.getX()));
      return success();
    }
  }
  FailureOr<Operation *> clone = cloneSized(op, mapping);
  if (failed(clone))
    return failure();
  if (auto dropout = dyn_cast<DropoutOp>(*clone))
    dropout.setStream(pathOf("dropout"));
  return success();
}

/// Returns loss and outputs, under their names.
void Unroller::finish(func::FuncOp function, Location loc) {
  SmallVector<Value> results;
  SmallVector<Attribute> names;
  auto add = [&](StringRef name, Value value) {
    results.push_back(value);
    names.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr("weft.name", builder.getStringAttr(name))));
  };
  if (loss)
    add("loss", loss);
  for (auto &[name, value] : outputs)
    add(name, value);
  func::ReturnOp::create(builder, loc, results);
  SmallVector<Type> types = llvm::map_to_vector(results, [](Value value) { return value.getType(); });
  function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(), types));
  function.setAllResultAttrs(names);
}

LogicalResult Unroller::run() {
  if (failed(bindSettings()))
    return failure();
  SmallVector<InputOp> found(model.getBody().getOps<InputOp>());
  // doc_start was emitted first; callers expect the model's own inputs before it.
  llvm::stable_sort(found, [](InputOp a, InputOp b) {
    return (a.getName() == "doc_start") < (b.getName() == "doc_start");
  });
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  for (InputOp input : found) {
    FailureOr<RankedTensorType> type = sized(input, input.getType());
    if (failed(type))
      return failure();
    types.push_back(*type);
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr("weft.name", input.getNameAttr())));
  }
  builder.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(builder, model.getLoc(), "forward", builder.getFunctionType(types, {}));
  function.setAllArgAttrs(attributes);
  builder.setInsertionPointToEnd(function.addEntryBlock());
  for (auto [input, argument] : llvm::zip(found, function.getArguments())) {
    argument.setLoc(input.getLoc());
    inputs[input.getName().str()] = argument;
  }
  IRMapping mapping;
  if (failed(unrollBlock(model.getBody().front(), mapping)))
    return failure();
  finish(function, model.getLoc());
  model.erase();
  return success();
}

namespace {
struct UnrollLayers : weft::impl::UnrollLayersPassBase<UnrollLayers> {
  using UnrollLayersPassBase::UnrollLayersPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(module.getContext());
    for (ModelOp model : llvm::make_early_inc_range(module.getOps<ModelOp>())) {
      Type element = double_ ? Type(builder.getF64Type()) : builder.getF32Type();
      if (failed(Unroller(module, model, batch, positions, element).run()))
        return signalPassFailure();
    }
  }
};
} // namespace

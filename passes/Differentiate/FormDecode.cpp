//===- FormDecode.cpp - One token at a time, with caches ------------------===//
#include "passes/Differentiate/Programs.h"

using namespace mlir;

namespace weft {
namespace {

class DecodeBuilder {
public:
  DecodeBuilder(func::FuncOp program, int64_t cacheLength)
      : program(program), module(program->getParentOfType<ModuleOp>()), cacheLength(cacheLength) {}

  LogicalResult build() {
    Value tokens = argumentCalled(program, "tokens");
    if (!tokens || axesOf(tokens).size() != 2)
      return program.emitError("@decode needs an input 'tokens' over batch and positions");
    batch = axesOf(tokens)[0];
    pos = axesOf(tokens)[1];
    if (cacheLength == 0)
      cacheLength = cast<RankedTensorType>(tokens.getType()).getDimSize(1);
    if (failed(check()))
      return failure();
    retype();
    growTables();
    offset =
        addArgument(program, "offset", RankedTensorType::get({}, IntegerType::get(program.getContext(), 32)));
    for (auto position : llvm::to_vector(bodyOf(program).getOps<PositionOp>()))
      position.getOffsetMutable().assign(offset);
    for (auto attend : llvm::to_vector(bodyOf(program).getOps<AttendOp>()))
      useCaches(attend);
    for (auto mix : llvm::to_vector(bodyOf(program).getOps<MixOp>()))
      if (failed(useCache(mix, mix.getA())))
        return failure();
    for (auto mix : llvm::to_vector(bodyOf(program).getOps<MixDenseOp>()))
      if (failed(useCache(mix, mix.getP())))
        return failure();
    return success();
  }

private:
  /// Every op must act on each row and position alone, but for attend.
  LogicalResult check() {
    for (Operation &op : bodyOf(program)) {
      if (auto get = dyn_cast<GetOp>(op); get && holdsData(get.getResult()))
        return refuse(op, "a state entry has the axis of positions or rows");
      if (isa<SoftmaxOp, LayerNormOp, RmsNormOp>(op) && holdsData(axesOf(op.getOperand(0)).back()))
        return refuse(op, "it mixes positions or rows");
      if (isa<SumToOp, ContractOp>(op))
        for (Value operand : op.getOperands())
          for (StringAttr name : axesOf(operand))
            if (holdsData(name) && axisIndex(op.getResult(0).getType(), name) < 0)
              return refuse(op, "it sums over positions or rows");
    }
    return success();
  }

  bool holdsData(StringAttr name) const { return name == batch || name == pos; }
  bool holdsData(Value value) const {
    return llvm::any_of(axesOf(value), [&](StringAttr name) { return holdsData(name); });
  }

  LogicalResult refuse(Operation &op, const char *why) {
    return op.emitError() << "a token can't be decoded alone: " << why << ", in " << op.getName();
  }

  /// Sets the sizes of rows and positions to 1 everywhere: names say where.
  void retype() {
    auto change = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || !holdsData(value))
        return;
      SmallVector<int64_t> sizes(type.getShape());
      for (auto [name, size] : llvm::zip(axesOf(type), sizes))
        if (holdsData(name))
          size = 1;
      value.setType(namedTensor(axesOf(type), sizes, type.getElementType()));
    };
    for (BlockArgument argument : program.getArguments())
      change(argument);
    for (Operation &op : bodyOf(program))
      llvm::for_each(op.getResults(), change);
    program.setFunctionType(FunctionType::get(program.getContext(), bodyOf(program).getArgumentTypes(),
                                              bodyOf(program).getTerminator()->getOperandTypes()));
  }

  void useCaches(AttendOp attend) {
    OpBuilder builder(attend);
    std::string name = cacheName(attend.getK());
    attend.getKMutable().assign(throughCache(builder, attend.getLoc(), attend.getK(), name + ".k"));
    attend.getVMutable().assign(throughCache(builder, attend.getLoc(), attend.getV(), name + ".v"));
    attend.getOffsetMutable().assign(offset);
  }

  /// Frozen heads need values alone; those that live heads read are cached already.
  template <typename Mix> LogicalResult useCache(Mix mix, Value patterns) {
    auto pattern = cast<RankedTensorType>(patterns.getType());
    if (pattern.getDimSize(1) < cacheLength)
      return mix.emitError() << "a cache of " << cacheLength
                             << " places is longer than the patterns of frozen "
                             << "heads, fitted for " << pattern.getDimSize(1) << " positions: use at most "
                             << pattern.getDimSize(1);
    OpBuilder builder(mix);
    std::string name = cacheName(mix.getV());
    mix.getVMutable().assign(throughCache(builder, mix.getLoc(), mix.getV(), name + ".v"));
    mix.getOffsetMutable().assign(offset);
    return success();
  }

  /// The scope of the parameter nearest to the keys or values, or a number.
  std::string cacheName(Value of) {
    std::string number = std::to_string(count++);
    StringRef scope = scopeOf(of);
    std::string name = "cache/" + (scope.empty() ? number : scope.str());
    return module.lookupSymbol(name + ".k") || module.lookupSymbol(name + ".v") ? name + "." + number : name;
  }

  /// `block.3.attn` when the nearest parameter that `value` is made of is `block.3.attn.wk`.
  StringRef scopeOf(Value value) {
    SmallVector<Value> work{value};
    llvm::DenseSet<Value> seen;
    for (size_t i = 0; i < work.size(); ++i) {
      Operation *op = work[i].getDefiningOp();
      auto get = dyn_cast_or_null<GetOp>(op);
      auto state = get ? module.lookupSymbol<StateOp>(get.getState()) : StateOp();
      if (state && state.getRole() == Role::Parameter)
        return state.getSymName().rsplit('.').second.empty() ? StringRef()
                                                             : state.getSymName().rsplit('.').first;
      if (op && !get)
        for (Value operand : op->getOperands())
          if (seen.insert(operand).second)
            work.push_back(operand);
    }
    return {};
  }

  /// Rope tables get a row for each position that a cache holds.
  void growTables() {
    llvm::StringMap<RankedTensorType> grown;
    for (StateOp state : statesOf(module, Role::Table)) {
      RankedTensorType type = state.getTensorType();
      if (state.getInit().getKind() != InitKind::RopeTable || type.getDimSize(0) >= cacheLength)
        continue;
      SmallVector<int64_t> sizes(type.getShape());
      sizes[0] = cacheLength;
      auto larger = RankedTensorType::get(sizes, type.getElementType(), type.getEncoding());
      state.setType(larger);
      grown[state.getSymName()] = larger;
    }
    module.walk([&](GetOp get) {
      if (auto found = grown.find(get.getState()); found != grown.end())
        get.getResult().setType(found->second);
    });
  }

  /// Writes `value` at the place `offset` of its cache and gives the whole of it;
  /// what several ops attend to is held once.
  Value throughCache(OpBuilder &builder, Location loc, Value value, const std::string &name) {
    if (Value known = caches.lookup(value))
      return known;
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<StringAttr> names(axesOf(type));
    SmallVector<int64_t> sizes(type.getShape());
    names[1] = builder.getStringAttr("cache");
    sizes[1] = cacheLength;
    RankedTensorType cacheType = namedTensor(names, sizes, type.getElementType());
    addZeroState(module, name, Role::Cache, cacheType, loc);
    Value old = GetOp::create(builder, loc, cacheType, name);
    Value updated = CacheUpdateOp::create(builder, loc, cacheType, old, value, offset);
    OpBuilder atEnd(bodyOf(program).getTerminator());
    SetOp::create(atEnd, loc, name, updated);
    return caches[value] = updated;
  }

  func::FuncOp program;
  ModuleOp module;
  int64_t cacheLength;
  StringAttr batch, pos;
  Value offset;
  llvm::DenseMap<Value, Value> caches;
  int count = 0;
};

} // namespace

LogicalResult formDecode(func::FuncOp forward, int64_t cacheLength) {
  if (!resultCalled(forward, "logits"))
    return forward.emitError(
        "@decode needs an output called 'logits': the model has none; write `output logits "
        "= ...` in it");
  func::FuncOp program =
      cloneProgram(forward, "decode", [&](unsigned i) { return resultName(forward, i) == "logits"; });
  for (auto dropout : llvm::make_early_inc_range(bodyOf(program).getOps<DropoutOp>())) {
    dropout.getY().replaceAllUsesWith(dropout.getX());
    dropout.erase();
  }
  eraseUnusedArguments(program, {"noise", "targets"});
  return DecodeBuilder(program, cacheLength).build();
}

} // namespace weft

//===- Programs.cpp - Functions whose ports have names --------------------===//
#include "passes/Differentiate/Programs.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace weft {

StringRef argumentName(func::FuncOp function, unsigned index) {
  auto name = function.getArgAttrOfType<StringAttr>(index, kNameAttr);
  return name ? name.getValue() : StringRef();
}

StringRef resultName(func::FuncOp function, unsigned index) {
  auto name = function.getResultAttrOfType<StringAttr>(index, kNameAttr);
  return name ? name.getValue() : StringRef();
}

Value argumentCalled(func::FuncOp function, StringRef name) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (argumentName(function, i) == name)
      return function.getArgument(i);
  return {};
}

Value resultCalled(func::FuncOp function, StringRef name) {
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (resultName(function, i) == name)
      return bodyOf(function).getTerminator()->getOperand(i);
  return {};
}

void eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

bool dependsOn(Value value, Value source) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (next == source)
      return true;
    if (Operation *op = next.getDefiningOp(); op && seen.insert(next).second)
      llvm::append_range(work, op->getOperands());
  }
  return false;
}

Location namedLocation(StringRef name, Location loc) {
  return NameLoc::get(StringAttr::get(loc.getContext(), name), loc);
}

Value addArgument(func::FuncOp function, StringRef name, Type type) {
  unsigned index = function.getNumArguments();
  auto attributes = DictionaryAttr::get(function.getContext(),
                                        {NamedAttribute(StringAttr::get(function.getContext(), kNameAttr),
                                                        StringAttr::get(function.getContext(), name))});
  (void)function.insertArgument(index, type, attributes, namedLocation(name, function.getLoc()));
  return function.getArgument(index);
}

func::FuncOp cloneProgram(func::FuncOp forward, StringRef name, llvm::function_ref<bool(unsigned)> keeps) {
  func::FuncOp program = forward.clone();
  program.setSymName(name);
  forward->getBlock()->push_back(program);
  llvm::BitVector dropped(program.getNumResults());
  SmallVector<Value> kept;
  Operation *terminator = bodyOf(program).getTerminator();
  for (unsigned i = 0; i < program.getNumResults(); ++i) {
    if (keeps(i))
      kept.push_back(terminator->getOperand(i));
    else
      dropped.set(i);
  }
  terminator->setOperands(kept);
  (void)program.eraseResults(dropped);
  eraseDeadOps(bodyOf(program));
  return program;
}

void eraseUnusedArguments(func::FuncOp function, ArrayRef<StringRef> names) {
  llvm::BitVector dropped(function.getNumArguments());
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (llvm::is_contained(names, argumentName(function, i)) && function.getArgument(i).use_empty())
      dropped.set(i);
  (void)function.eraseArguments(dropped);
}

void removeDropout(func::FuncOp program) {
  for (auto dropout : llvm::make_early_inc_range(bodyOf(program).getOps<DropoutOp>())) {
    dropout.getY().replaceAllUsesWith(dropout.getX());
    dropout.erase();
  }
  eraseUnusedArguments(program, {"noise"});
}

std::optional<double> constantNumber(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !isa<FloatAttr>(constant.getValue()))
    return std::nullopt;
  return numberOf(constant.getValue());
}

StateOp addZeroState(ModuleOp module, StringRef name, Role role, RankedTensorType type, Location loc,
                     SlicesAttr slices) {
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToStart(module.getBody());
  for (StateOp state : module.getOps<StateOp>())
    builder.setInsertionPointAfter(state);
  auto zero =
      InitAttr::get(module.getContext(), InitKind::Constant, builder.getF64FloatAttr(0.0), Attribute());
  return StateOp::create(builder, loc, builder.getStringAttr(name), RoleAttr::get(module.getContext(), role),
                         TypeAttr::get(type), zero, IntegerAttr(), slices);
}

SmallVector<StateOp> statesOf(ModuleOp module, Role role) {
  return llvm::to_vector(llvm::make_filter_range(module.getOps<StateOp>(),
                                                 [&](StateOp state) { return state.getRole() == role; }));
}

std::string gradientName(StringRef path) { return ("grad/" + path).str(); }
std::string momentumName(StringRef path) { return ("muon.m/" + path).str(); }
std::string firstMomentName(StringRef path) { return ("adamw.m/" + path).str(); }
std::string secondMomentName(StringRef path) { return ("adamw.v/" + path).str(); }

} // namespace weft

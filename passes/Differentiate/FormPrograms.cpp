//===- FormPrograms.cpp - The programs that a command runs ----------------===//
#include "passes/Differentiate/Passes.h"
#include "passes/Differentiate/Programs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_FORMPROGRAMS
#include "passes/Differentiate/Passes.h.inc"

namespace {

constexpr llvm::StringLiteral kProgramNames[] = {"micro",
                                                 "update",
                                                 "eval",
                                                 "prefill",
                                                 "decode",
                                                 "calibrate",
                                                 "calibrate_branch",
                                                 "calibrate_gradient",
                                                 "calibrate_statistics",
                                                 "observe"};

/// Gives each dropout that has none the noise of the micro-step.
void addNoise(func::FuncOp micro) {
  Value noise = argumentCalled(micro, "noise");
  for (auto dropout : bodyOf(micro).getOps<DropoutOp>()) {
    if (dropout.getNoise())
      continue;
    if (!noise)
      noise =
          addArgument(micro, "noise", RankedTensorType::get({}, IntegerType::get(micro.getContext(), 32)));
    dropout.getNoiseMutable().assign(noise);
  }
}

/// Addresses of the parameters that `loss` depends on through floats.
llvm::StringSet<> reachedParameters(Value loss) {
  llvm::StringSet<> reached;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work{loss};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!isa<FloatType>(getElementTypeOrSelf(value)) || !seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (auto get = dyn_cast_or_null<GetOp>(op))
      reached.insert(get.getState());
    else if (op)
      llvm::append_range(work, op->getOperands());
  }
  return reached;
}

bool isKind(DictionaryAttr group, StringRef kind) {
  auto own = group.getAs<StringAttr>("kind");
  return kind.empty() || (own && own.getValue() == kind);
}

/// Addresses that the groups name (of one kind, where `kind` is given), or none
/// if the module has no groups.
std::optional<llvm::StringSet<>> groupedParameters(ModuleOp module, StringRef kind = {}) {
  auto groups = module->getAttrOfType<ArrayAttr>("weft.groups");
  if (!groups)
    return std::nullopt;
  llvm::StringSet<> grouped;
  for (Attribute group : groups)
    if (auto fields = dyn_cast<DictionaryAttr>(group); fields && isKind(fields, kind))
      if (auto params = fields.getAs<ArrayAttr>("params"))
        for (Attribute path : params)
          if (auto text = dyn_cast<StringAttr>(path))
            grouped.insert(text.getValue());
  return grouped;
}

struct FormPrograms : impl::FormProgramsBase<FormPrograms> {
  using FormProgramsBase::FormProgramsBase;

  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    if (!forward || forward.isExternal()) {
      getOperation().emitError("form-programs found no function @forward: unroll layers first");
      return signalPassFailure();
    }
    for (const std::string &name : programs)
      if (!llvm::is_contained(kProgramNames, name)) {
        getOperation().emitError() << "no program is called '" << name << "': expected one of "
                                   << llvm::join(ArrayRef<llvm::StringLiteral>(kProgramNames), ", ");
        return signalPassFailure();
      }
    // One fixed order, whatever that of the option: outputs don't depend on spelling.
    for (StringRef name : kProgramNames)
      if (llvm::is_contained(programs, name) && failed(form(forward, name)))
        return signalPassFailure();
    forward.erase();
  }

  LogicalResult form(func::FuncOp forward, StringRef name) {
    if (name == "observe") // of the differentiated @micro, by form-observe
      return success();
    if (name == "decode")
      return formDecode(forward, cacheLength);
    if (name == "prefill")
      return formPrefill(forward);
    if (name == "calibrate")
      return formCalibrate(forward, false);
    if (name == "calibrate_statistics")
      return formStatistics(forward);
    if (name == "calibrate_branch")
      return formBranches(forward);
    Value loss = resultCalled(forward, "loss");
    if (!loss)
      return forward.emitError() << "@" << name << " needs a result called 'loss': the model has none; write "
                                 << "`loss = ...` in it";
    if (name == "eval" || name == "micro")
      formLoss(forward, name);
    if (name == "calibrate_gradient" && failed(formCalibrate(forward, true)))
      return failure();
    if (name == "micro" || name == "update" || name == "calibrate_gradient")
      addTrainingState(loss);
    return name == "update" ? formUpdate(getOperation(), trained) : success();
  }

  void formLoss(func::FuncOp forward, StringRef name) {
    func::FuncOp program =
        cloneProgram(forward, name, [&](unsigned i) { return resultName(forward, i) == "loss"; });
    program.setResultAttr(0, kNameAttr, StringAttr::get(&getContext(), "loss_sum"));
    if (name == "micro")
      addNoise(program);
    else
      removeDropout(program);
  }

  LogicalResult formPrefill(func::FuncOp forward) {
    Value targets = argumentCalled(forward, "targets");
    Operation *terminator = bodyOf(forward).getTerminator();
    func::FuncOp program = cloneProgram(forward, "prefill", [&](unsigned i) {
      bool needsTargets = targets && dependsOn(terminator->getOperand(i), targets);
      if (needsTargets && resultName(forward, i) != "loss")
        forward.emitRemark() << "prefill leaves out the output '" << resultName(forward, i)
                             << "': it depends on targets";
      return resultName(forward, i) != "loss" && !needsTargets;
    });
    if (program.getNumResults() == 0)
      return forward.emitError(
          "@prefill needs an output that does not depend on targets: the model has none; "
          "write `output logits = ...` in it");
    removeDropout(program);
    eraseUnusedArguments(program, {"targets"});
    return lastPosition ? keepLastPosition(program) : success();
  }

  /// State for gradients and moments of the parameters that are trained, once.
  void addTrainingState(Value loss) {
    if (!trained.empty())
      return;
    llvm::StringSet<> reached = reachedParameters(loss);
    std::optional<llvm::StringSet<>> grouped = groupedParameters(getOperation());
    for (StateOp state : statesOf(getOperation(), Role::Parameter)) {
      if (!reached.contains(state.getSymName()))
        state.emitRemark() << "parameter '" << state.getSymName()
                           << "' is not trained: the loss does not depend on it";
      else if (!grouped || grouped->contains(state.getSymName()))
        trained.push_back(state);
    }
    for (StateOp state : trained)
      addState(state, gradientName(state.getSymName()), Role::Gradient);
    if (!llvm::is_contained(programs, "update"))
      return;
    std::optional<llvm::StringSet<>> muon = groupedParameters(getOperation(), "muon");
    auto addMoments = [&](bool ofMuon, auto naming) {
      for (StateOp state : trained)
        if ((muon && muon->contains(state.getSymName())) == ofMuon)
          addState(state, naming(state.getSymName()), Role::Moment);
    };
    addMoments(false, firstMomentName);
    addMoments(false, secondMomentName);
    addMoments(true, momentumName);
  }

  void addState(StateOp parameter, StringRef name, Role role) {
    addZeroState(getOperation(), name, role, parameter.getTensorType(),
                 namedLocation(role == Role::Gradient ? "grad" : "moment", parameter.getLoc()),
                 parameter.getSlicesAttr());
  }

  SmallVector<StateOp> trained;
};

} // namespace
} // namespace weft

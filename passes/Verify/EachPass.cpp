//===- EachPass.cpp - Watching a pass manager ------------------------------===//
#include "passes/Verify/Verify.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace weft {

std::string PassVerdict::text() const {
  if (kind == Kind::Idle)
    return pass + ": changed nothing";
  if (kind == Kind::Lossy)
    return pass + ": skipped, it changes numbers on purpose";
  if (kind == Kind::Same)
    return llvm::formatv("{0}: {1} tensors, largest error {2:e2}", pass, compared, worst.error).str();
  return llvm::formatv("{0}: changed {1} of @{2}: relative error {3:e2} at {4}", pass, worst.result,
                       worst.program, worst.error, worst.place)
      .str();
}

const PassVerdict *VerifyReport::firstFault() const {
  for (const PassVerdict &verdict : passes)
    if (verdict.kind == PassVerdict::Kind::Changed)
      return &verdict;
  return nullptr;
}

namespace {

class EachPass : public PassInstrumentation {
public:
  EachPass(VerifyReport &report, VerifyOptions options)
      : report(report), options(std::move(options)), inputs(this->options.seed) {}

  void runBeforePass(Pass *, Operation *op) override {
    auto module = llvm::dyn_cast<ModuleOp>(op);
    if (!module || observed)
      return;
    inputs.learn(module);
    before = observe(module, inputs);
    print.emplace(module);
    observed = true;
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    auto module = llvm::dyn_cast<ModuleOp>(op);
    if (!module)
      return;
    PassVerdict verdict;
    verdict.pass = (pass->getArgument().empty() ? pass->getName() : pass->getArgument()).str();
    OperationFingerPrint now(module);
    if (print && *print == now) {
      verdict.kind = PassVerdict::Kind::Idle;
    } else {
      inputs.learn(module);
      Observation after = observe(module, inputs);
      judge(verdict, module, after);
      before = std::move(after);
      print.emplace(module);
    }
    report.passes.push_back(std::move(verdict));
  }

  void runAfterPassFailed(Pass *, Operation *) override { observed = false; }

private:
  void judge(PassVerdict &verdict, ModuleOp module, Observation &after) {
    double tolerance = options.tolerance;
    if (auto found = options.rounding.find(verdict.pass); found != options.rounding.end())
      tolerance = found->second;
    if (llvm::is_contained(options.lossy, verdict.pass)) {
      verdict.kind = PassVerdict::Kind::Lossy;
      return;
    }
    if (verdict.pass == "differentiate") {
      forgetGradients();
      verdict.worst = checkGradients(module, inputs, verdict.compared);
      tolerance = options.gradientTolerance;
      if (verdict.worst.error > tolerance) {
        verdict.kind = PassVerdict::Kind::Changed;
        return;
      }
      tolerance = options.tolerance;
    }
    Difference worst = compare(before, after, verdict.compared);
    if (verdict.pass != "differentiate" || worst.error > tolerance)
      verdict.worst = std::move(worst);
    verdict.kind = verdict.worst.error > tolerance && worstIsFault(verdict, tolerance)
                       ? PassVerdict::Kind::Changed
                       : PassVerdict::Kind::Same;
  }

  /// After `differentiate` the worst may be a central difference, judged already.
  static bool worstIsFault(const PassVerdict &verdict, double tolerance) {
    return verdict.worst.place != "along a random direction" && verdict.worst.error > tolerance;
  }

  /// Before `differentiate` @micro leaves gradients as they were.
  void forgetGradients() {
    auto micro = before.find("micro");
    if (micro == before.end())
      return;
    std::erase_if(micro->second.state,
                  [](const auto &entry) { return StringRef(entry.first).starts_with("grad/"); });
  }

  VerifyReport &report;
  VerifyOptions options;
  Inputs inputs;
  Observation before;
  std::optional<OperationFingerPrint> print;
  bool observed = false;
};

} // namespace

void verifyEachPass(PassManager &manager, VerifyReport &report, VerifyOptions options) {
  manager.addInstrumentation(std::make_unique<EachPass>(report, std::move(options)));
}

} // namespace weft

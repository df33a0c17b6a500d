//===- verify-test.cpp - Passes that change a module are named -------------===//
#include "passes/Verify/Verify.h"
#include "test/dialects/Weft/Interpret/Fixture.h"

#include "mlir/Pass/Pass.h"

using namespace weft;
using namespace weft::test;

namespace {

/// A forward function with a residual around grouped attention with windows.
std::string forward() {
  std::string x = tensor({{"batch", 2}, {"pos", 6}, {"dim", 4}}),
              t = tensor({{"batch", 2}, {"pos", 6}}, "i32");
  std::string e = tensor({{"vocab", 9}, {"dim", 4}}), l = tensor({{"batch", 2}, {"pos", 6}, {"vocab", 9}});
  std::string wq = tensor({{"dim", 4}, {"kv", 2}, {"group", 2}, {"channel", 3}});
  std::string wk = tensor({{"dim", 4}, {"kv", 2}, {"channel", 3}}),
              wo = tensor({{"kv", 2}, {"group", 2}, {"channel", 3}, {"dim", 4}});
  std::string q = tensor({{"batch", 2}, {"pos", 6}, {"kv", 2}, {"group", 2}, {"channel", 3}});
  std::string k = tensor({{"batch", 2}, {"pos", 6}, {"kv", 2}, {"channel", 3}});
  std::string lse = tensor({{"batch", 2}, {"pos", 6}, {"kv", 2}, {"group", 2}}),
              w = tensor({{"heads", 4}}, "i32");
  auto state = [](const std::string &name, const std::string &type) {
    return "weft.state parameter @" + name + " <normal, 0.02 : f64> : " + type + "\n";
  };
  auto product = [](const std::string &r, const std::string &a, const std::string &b, const std::string &ta,
                    const std::string &tb, const std::string &tr) {
    return "%" + r + " = weft.contract %" + a + ", %" + b + " : (" + ta + ", " + tb + ") -> " + tr + "\n";
  };
  return state("embed", e) + state("wq", wq) + state("wk", wk) + state("wo", wo) +
         "func.func @forward(%tokens: " + t + " {weft.name = \"tokens\"}, %targets: " + t +
         " {weft.name = \"targets\"}, " + "%doc_start: " + t +
         " {weft.name = \"doc_start\"}) -> (tensor<f64> {weft.name = \"loss\"}) {\n" +
         "%e = weft.get @embed : " + e + "\n%wq = weft.get @wq : " + wq + "\n%wk = weft.get @wk : " + wk +
         "\n%wo = weft.get @wo : " + wo + "\n%x = weft.gather %e, %tokens : (" + e + ", " + t + ") -> " + x +
         "\n" + product("q", "x", "wq", x, wq, q) + product("k", "x", "wk", x, wk, k) +
         "%w = weft.integers [1, 2, 4, 2147483647] : " + w +
         "\n%o:2 = weft.attend %q, %k, %k windows %w documents %doc_start {scale = 0.5 : f64} : (" + q +
         ", " + k + ", " + k + ", " + w + ", " + t + ") -> (" + q + ", " + lse + ")\n" +
         product("a", "o#0", "wo", q, wo, x) + "%y = weft.binary add %x, %a : (" + x + ", " + x + ") -> " +
         x + "\n" + product("l", "y", "e", x, e, l) +
         "%loss = weft.cross_entropy %l, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (" + l + ", " + t +
         ") -> tensor<f64>\nreturn %loss : tensor<f64>\n}\n";
}

/// A module pass from a function.
class Pass : public mlir::PassWrapper<Pass, mlir::OperationPass<mlir::ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Pass)
  Pass(std::string name, std::function<void(mlir::ModuleOp)> change)
      : name(std::move(name)), change(std::move(change)) {}
  llvm::StringRef getArgument() const override { return name; }
  void runOnOperation() override { change(getOperation()); }

private:
  std::string name;
  std::function<void(mlir::ModuleOp)> change;
};

std::unique_ptr<mlir::Pass> makePass(const std::string &name, std::function<void(mlir::ModuleOp)> change) {
  return std::make_unique<Pass>(name, std::move(change));
}

/// Changes that keep what is computed, around the one under test.
void commuteAdds(mlir::ModuleOp module) {
  module.walk([](BinaryOp op) {
    if (op.getFn() != BinaryFn::Add || op.getX().getType() != op.getY().getType())
      return;
    mlir::Value x = op.getX(), y = op.getY();
    op.getXMutable().assign(y);
    op.getYMutable().assign(x);
  });
}

struct Verify : ::testing::Test {
  VerifyReport run(const std::string &text, std::vector<std::unique_ptr<mlir::Pass>> passes,
                   VerifyOptions options = {}) {
    auto module = fixture.parse(text);
    VerifyReport report;
    mlir::PassManager manager(&fixture.context);
    verifyEachPass(manager, report, options);
    for (auto &pass : passes)
      manager.addPass(std::move(pass));
    ran = module && mlir::succeeded(manager.run(*module));
    return report;
  }
  VerifyReport plant(const std::string &text, const std::string &fault) {
    std::vector<std::unique_ptr<mlir::Pass>> passes;
    passes.push_back(makePass("commute", commuteAdds));
    passes.push_back(createPlantPass(fault));
    passes.push_back(makePass("idle", [](mlir::ModuleOp) {}));
    return run(text, std::move(passes));
  }
  void expectNamed(const VerifyReport &report, const std::string &fault) {
    EXPECT_TRUE(ran) << fault << fixture.messages;
    ASSERT_TRUE(report.firstFault()) << fault;
    EXPECT_EQ(report.firstFault()->pass, "plant-" + fault);
  }
  Fixture fixture;
  bool ran = false;
};

TEST_F(Verify, FaultsAreFoundByTheNameOfTheirPass) {
  for (std::string fault : {"dropped-residual", "swapped-heads", "window-off-by-one", "wrong-kv-group"}) {
    VerifyReport report = plant(forward(), fault);
    expectNamed(report, fault);
    EXPECT_EQ(report.passes.front().kind, PassVerdict::Kind::Same) << report.passes.front().text();
    EXPECT_EQ(report.passes.back().kind, PassVerdict::Kind::Idle);
    EXPECT_EQ(report.firstFault()->worst.program, "forward");
    EXPECT_EQ(report.firstFault()->worst.result, "loss");
  }
}

TEST_F(Verify, OverlappingBuffersAreFound) {
  const std::string v = "tensor<3xf32, #weft.axes<dim>>", pair = "(" + v + ", " + v + ") -> " + v;
  std::string text = "weft.kernel @add rows [] chunks 1 (%x: " + v + ", %y: " + v + ") -> " + v +
                     " {\n%z = weft.binary add %x, %y : " + pair + "\nweft.yield %z : " + v + "\n}\n" +
                     "weft.program @p inputs [\"x\"] [" + v + "] results [\"y\"] [" + v + "] arena 128 {\n" +
                     "%x = weft.buffer input at 0 : " + v + "\n%y = weft.buffer result at 0 : " + v +
                     "\n%a = weft.buffer arena at 0 : " + v + "\n%b = weft.buffer arena at 64 : " + v + "\n";
  auto call = [&](const std::string &ins, const std::string &out) {
    return "weft.call @add ins(" + ins + " : " + v + ", " + v + ") outs(" + out + " : " + v + ") grid 1\n";
  };
  text += call("%x, %x", "%a") + call("%a, %x", "%b") + call("%a, %b", "%y") + "}\n";
  expectNamed(plant(text, "overlapping-buffers"), "overlapping-buffers");
}

TEST_F(Verify, AFaultThatFindsNothingFails) {
  plant("func.func @forward() { return }", "dropped-residual");
  EXPECT_FALSE(ran);
  EXPECT_EQ(createPlantPass("no-such-fault"), nullptr);
}

// Catches: a comparison that skips state.
TEST_F(Verify, StateIsCompared) {
  const std::string v = "tensor<3xf64, #weft.axes<dim>>";
  std::string text = "weft.state parameter @w <constant, 1.0 : f64> : " + v +
                     "\nfunc.func @update() {\n%w = weft.get @w : " + v +
                     "\n%y = weft.binary add %w, %w : (" + v + ", " + v + ") -> " + v +
                     "\nweft.set @w, %y : " + v + "\nreturn\n}\n";
  std::vector<std::unique_ptr<mlir::Pass>> passes;
  passes.push_back(
      makePass("forget", [](mlir::ModuleOp module) { module.walk([](SetOp op) { op.erase(); }); }));
  VerifyReport report = run(text, std::move(passes));
  ASSERT_TRUE(report.firstFault());
  EXPECT_EQ(report.firstFault()->worst.result, "state @w");
}

TEST_F(Verify, LossyPassesAreSkippedByName) {
  VerifyOptions options;
  options.lossy = {"plant-dropped-residual"};
  std::vector<std::unique_ptr<mlir::Pass>> passes;
  passes.push_back(createPlantPass("dropped-residual"));
  VerifyReport report = run(forward(), std::move(passes), options);
  EXPECT_FALSE(report.firstFault());
  EXPECT_EQ(report.passes.front().kind, PassVerdict::Kind::Lossy);
}

// A pass after which the program can't run any more is at fault.
TEST_F(Verify, WhatNoLongerRunsIsAFault) {
  std::vector<std::unique_ptr<mlir::Pass>> passes;
  passes.push_back(makePass("no-window", [](mlir::ModuleOp module) {
    module.walk([](IntegersOp op) { op.setValues({0, 1, 1, 1}); });
  }));
  VerifyReport report = run(forward(), std::move(passes));
  ASSERT_TRUE(report.firstFault());
  EXPECT_NE(report.firstFault()->text().find("window of head 0"), std::string::npos)
      << report.firstFault()->text();
}

// Gradients that `differentiate` leaves are held against differences of the loss.
TEST_F(Verify, WrongGradientsOfDifferentiateAreFound) {
  const std::string v = "tensor<3xf64, #weft.axes<dim>>", s = "tensor<f64>";
  auto micro = [&](const std::string &gradient) {
    return "weft.state parameter @w <constant, 1.0 : f64> : " + v + "\nweft.state gradient @\"grad/w\" " +
           "<constant, 0.0 : f64> : " + v + "\nfunc.func @micro() -> (" + s +
           " {weft.name = \"loss_sum\"}) {\n" + "%w = weft.get @w : " + v +
           "\n%g = weft.get @\"grad/w\" : " + v + "\n%y = weft.unary exp %w : (" + v + ") -> " + v +
           "\n%s = weft.sum_to %y : (" + v + ") -> " + s + "\n%n = weft.binary add %g, %" + gradient +
           " : (" + v + ", " + v + ") -> " + v + "\nweft.set @\"grad/w\", %n : " + v + "\nreturn %s : " + s +
           "\n}\n";
  };
  for (auto [gradient, right] : {std::pair{"y", true}, std::pair{"w", false}}) {
    std::vector<std::unique_ptr<mlir::Pass>> passes;
    passes.push_back(makePass("differentiate", [](mlir::ModuleOp module) {
      module->setAttr("weft.changed", mlir::UnitAttr::get(module.getContext()));
    }));
    VerifyReport report = run(micro(gradient), std::move(passes));
    EXPECT_EQ(report.firstFault() == nullptr, right) << gradient;
    EXPECT_TRUE(ran) << fixture.messages;
  }
}

} // namespace

//===- windows-as-data-test.cpp - One executable, many windows ------------===//
//
// A model whose windows are state (`weft.window_state`) is compiled once for
// the CPU. For each assignment that is written into the state, loss, gradients
// and statistics are compared with the float64 interpreter, and decoding with
// prefill.
//
//===----------------------------------------------------------------------===//
#include "dialects/Weft/Interpret/Interpret.h"
#include "passes/Pipelines.h"
#include "passes/Schedule/ToExecutable.h"
#include "runtime/Machine.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;

namespace weft {
namespace {

constexpr int32_t kFull = 2147483647;
constexpr int64_t kRows = 2, kVocab = 11, kHeads = 4;

// Two layers; two groups of two heads share keys.
constexpr const char *kModel = R"mlir(
!ids = tensor<?x?xi32, #weft.axes<batch, pos>>
!x = tensor<?x?x?xf32, #weft.axes<batch, pos, dim>>
!e = tensor<?x?xf32, #weft.axes<vocab, dim>>
!wq = tensor<?x?x?x?xf32, #weft.axes<dim, kv, group, head>>
!wk = tensor<?x?x?xf32, #weft.axes<dim, kv, head>>
!wo = tensor<?x?x?x?xf32, #weft.axes<kv, group, head, dim>>
!q = tensor<?x?x?x?x?xf32, #weft.axes<batch, pos, kv, group, head>>
!k = tensor<?x?x?x?xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<?x?x?x?xf32, #weft.axes<batch, pos, kv, group>>
!l = tensor<?x?x?xf32, #weft.axes<batch, pos, vocab>>
module attributes {weft.window_state = ["block.0.attn", "block.1.attn"]} {
  weft.model @m {vocab = "11", dim = "8", kv = "2", group = "2", head = "6"} {
    %doc = weft.input "doc_start" : !ids
    %tokens = weft.input "tokens" : !ids
    %targets = weft.input "targets" : !ids
    %e = weft.param "embed" <normal, 1.0 : f64> : !e
    %x = weft.gather %e, %tokens : (!e, !ids) -> !x
    %y = weft.layer "block" [i < <"2">] (%in = %x) : !x {
      %b = weft.branch "attn" {
        %wq = weft.param "wq" <normal, 1.0 : f64> : !wq
        %wk = weft.param "wk" <normal, 1.0 : f64> : !wk
        %wv = weft.param "wv" <normal, 1.0 : f64> : !wk
        %wo = weft.param "wo" <normal, 1.0 : f64> : !wo
        %q = weft.contract %in, %wq : (!x, !wq) -> !q
        %k = weft.contract %in, %wk : (!x, !wk) -> !k
        %v = weft.contract %in, %wv : (!x, !wk) -> !k
        %a, %lse = weft.attend %q, %k, %v documents %doc window <"full"> {scale = 0.4 : f64} : (!q, !k, !k, !ids) -> (!q, !lse)
        %o = weft.contract %a, %wo : (!q, !wo) -> !x
        weft.yield %o : !x
      } : !x
      %s = weft.binary add %in, %b : (!x, !x) -> !x
      weft.yield %s : !x
    }
    %l = weft.contract %y, %e : (!x, !e) -> !l
    weft.output "logits" %l : !l
    %loss = weft.cross_entropy %l, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (!l, !ids) -> tensor<f32>
    weft.loss %loss : tensor<f32>
  }
}
)mlir";

struct WindowsAsData : ::testing::Test {
  WindowsAsData() {
    DialectRegistry registry;
    registerWeftDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        ADD_FAILURE() << diagnostic.str();
      return success();
    });
  }

  OwningOpRef<ModuleOp> compile(bool float64) {
    auto module = parseSourceString<ModuleOp>(kModel, &context);
    PipelineOptions options;
    options.batch = kRows, options.positions = positions, options.float64 = float64;
    options.programs = {"micro", "observe", "eval", "prefill", "decode"};
    options.stage = float64 ? Stage::Programs : Stage::Schedule;
    PassManager manager(&context, ModuleOp::getOperationName());
    buildPipeline(manager, options);
    EXPECT_TRUE(module && succeeded(manager.run(*module)));
    return module;
  }

  void build(int64_t length, std::vector<int32_t> starts) {
    positions = length;
    reference = compile(true);
    ExecutableOptions options{hostTarget(), "", 2};
    OwningOpRef<ModuleOp> scheduled = compile(false);
    FailureOr<rt::Executable> executable = toExecutable(*scheduled, options);
    ASSERT_TRUE(succeeded(executable));
    auto made = rt::makeCpuMachine(std::move(*executable), 2);
    ASSERT_TRUE(made.ok()) << made.status();
    machine = std::move(*made);
    for (auto *input : {&tokens, &targets, &docStart})
      *input = rt::Tensor(rt::ElementType::I32, {kRows, positions});
    std::vector<double> drawn = drawUniform(3, "tokens", static_cast<size_t>(kRows * positions), 0, kVocab);
    for (size_t i = 0; i < drawn.size(); ++i) {
      auto place = static_cast<int32_t>(i % static_cast<size_t>(positions));
      tokens.as<int32_t>()[i] = static_cast<int32_t>(drawn[i]);
      for (int32_t start : starts)
        if (start <= place)
          docStart.as<int32_t>()[i] = start;
      // Nothing counts in the last document: it is padding, if there is another.
      bool padding = starts.size() > 1 && place >= starts.back();
      targets.as<int32_t>()[i] = padding ? -1 : static_cast<int32_t>(drawn[i] * 7) % kVocab;
    }
  }

  void fill(const std::vector<int32_t> &windows) {
    states.clear();
    for (const rt::StateEntry &entry : machine->executable().states) {
      rt::Tensor value(entry.type, entry.shape);
      Array array(ArrayRef<int64_t>(entry.shape),
                  std::vector<double>(static_cast<size_t>(value.elements()), 0));
      if (entry.role == rt::StateEntry::Role::Parameter)
        array.data = drawUniform(5, entry.name, array.data.size(), -0.6, 0.6);
      bool ofWindows = entry.name.rfind("control/windows/", 0) == 0;
      size_t layer = entry.name.find("block.1") != std::string::npos;
      for (size_t i = 0; i < array.data.size(); ++i) {
        if (ofWindows) // another order in the second layer
          array.data[i] = windows[(i + layer) % windows.size()];
        if (entry.type == rt::ElementType::I32)
          value.as<int32_t>()[i] = static_cast<int32_t>(array.data[i]);
        else
          array.data[i] = value.as<float>()[i] = static_cast<float>(array.data[i]);
      }
      ASSERT_TRUE(machine->writeState(entry.name, value).ok()) << entry.name;
      states[entry.name] = std::move(array);
    }
  }

  std::vector<rt::Tensor> run(const std::string &name, const std::map<std::string, rt::Tensor> &inputs) {
    std::vector<rt::Tensor> in, out;
    for (const rt::Program &program : machine->executable().programs)
      if (program.name == name) {
        for (const rt::Port &port : program.inputs)
          in.push_back(inputs.at(port.name));
        for (const rt::Port &port : program.results)
          out.emplace_back(port.type, port.shape);
      }
    absl::Status status = machine->run(name, in, out);
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }
  std::vector<rt::Tensor> run(const std::string &name) {
    return run(name, {{"tokens", tokens}, {"targets", targets}, {"doc_start", docStart}});
  }

  /// The interpreter's results of @name; assigns `states`.
  SmallVector<Array> judge(const std::string &name) {
    auto function = reference->lookupSymbol<func::FuncOp>(name);
    SmallVector<Array> inputs;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      StringRef port = function.getArgAttrOfType<StringAttr>(i, "weft.name").getValue();
      const rt::Tensor &tensor = port == "tokens" ? tokens : port == "targets" ? targets : docStart;
      auto data = tensor.as<int32_t>();
      inputs.emplace_back(ArrayRef<int64_t>(tensor.shape), std::vector<double>(data.begin(), data.end()));
    }
    auto results = interpret(cast<FunctionOpInterface>(function.getOperation()), inputs, states);
    EXPECT_TRUE(succeeded(results));
    return succeeded(results) ? std::move(*results) : SmallVector<Array>();
  }

  static void expectNear(const rt::Tensor &found, const Array &expected, double tolerance,
                         const std::string &what) {
    double greatest = 1;
    for (double value : expected.data)
      greatest = std::max(greatest, std::abs(value));
    ASSERT_EQ(found.as<float>().size(), expected.data.size()) << what;
    for (size_t i = 0; i < expected.data.size(); ++i)
      ASSERT_NEAR(found.as<float>()[i], expected.data[i], tolerance * greatest) << what << " element " << i;
  }

  void check(const std::vector<int32_t> &windows) {
    fill(windows);
    auto loss = run("micro");
    std::map<std::string, rt::Tensor> gradients;
    for (const rt::StateEntry &entry : machine->executable().states)
      if (entry.role == rt::StateEntry::Role::Gradient)
        gradients[entry.name] = *machine->readState(entry.name);
    fill(windows);
    auto observed = run("observe");
    EXPECT_EQ(loss[0].bytes, observed[0].bytes);
    for (const auto &[name, gradient] : gradients)
      EXPECT_EQ(machine->readState(name)->bytes, gradient.bytes) << name;
    expectNear(loss[0], judge("observe")[0], 1e-5, "loss");
    for (const auto &[name, expected] : states)
      if (gradients.contains(name) || name.rfind("control/statistics/", 0) == 0)
        expectNear(*machine->readState(name), expected, 1e-4, name);
    EXPECT_NEAR(run("eval")[0].as<float>()[0], loss[0].as<float>()[0], 1e-4);
    auto logits = run("prefill");
    expectNear(logits[0], judge("prefill")[0], 1e-4, "logits");
    decode(logits[0]);
  }

  /// Row 0 token by token through the caches.
  void decode(const rt::Tensor &logits) {
    rt::Tensor token(rt::ElementType::I32, {1, 1}), start(rt::ElementType::I32, {1, 1});
    rt::Tensor offset(rt::ElementType::I32, {});
    for (int64_t i = 0; i < positions; ++i) {
      auto at = static_cast<size_t>(i);
      token.as<int32_t>()[0] = tokens.as<int32_t>()[at];
      start.as<int32_t>()[0] = docStart.as<int32_t>()[at];
      offset.as<int32_t>()[0] = static_cast<int32_t>(i);
      auto next = run("decode", {{"tokens", token}, {"doc_start", start}, {"offset", offset}});
      for (size_t c = 0; c < kVocab; ++c)
        ASSERT_NEAR(next[0].as<float>()[c], logits.as<float>()[at * kVocab + c], 1e-4) << "place " << i;
    }
  }

  MLIRContext context;
  int64_t positions = 0;
  OwningOpRef<ModuleOp> reference;
  std::unique_ptr<rt::Machine> machine;
  rt::Tensor tokens, targets, docStart;
  States states;
};

// Catches: a window compiled in, windows of another layer or head, statistics of
// padding, a gradient that the statistics change, a cache read past its window.
TEST_F(WindowsAsData, oneExecutable) {
  for (auto [length, starts] :
       {std::pair<int64_t, std::vector<int32_t>>{5, {0}}, {37, {0, 9, 10, 31}}, {70, {0, 33, 66}}}) {
    SCOPED_TRACE("T = " + std::to_string(length));
    build(length, starts);
    if (HasFatalFailure())
      return;
    auto last = static_cast<int32_t>(length);
    for (const std::vector<int32_t> &windows :
         {std::vector<int32_t>{1, 3, last, kFull}, {kFull, 2, 1, last - 1}, {last + 5, 4, 4, 1}}) {
      check(windows);
      if (HasFatalFailure())
        return;
    }
  }
}

} // namespace
} // namespace weft

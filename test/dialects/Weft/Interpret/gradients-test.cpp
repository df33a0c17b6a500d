//===- gradients-test.cpp - buildGradient against central differences ------===//
//
// For one op and random weights w: S = sum over results of result * w. The op
// builds dS/doperand from the gradients w; the interpreter runs that and the op.
//
//===----------------------------------------------------------------------===//
#include "test/dialects/Weft/Interpret/Fixture.h"

using namespace weft;
using namespace weft::test;

namespace {

struct Operand {
  std::string name;
  Axes axes;
  std::vector<double> integers = {}; // not empty: int32 with these values
  bool kept = false;                 // has no gradient, though its numbers are floats
};
struct Case {
  std::string text; // one op, %name for operands
  std::vector<Operand> operands;
  std::vector<Axes> results;
  size_t differentiated = 1; // results that have gradients, from the first
  double low = -1, high = 1;
};

std::string typeOf(const Operand &operand) {
  return tensor(operand.axes, operand.integers.empty() ? "f64" : "i32");
}

std::string moduleOf(const Case &c) {
  std::string arguments, in, out, values;
  for (const Operand &operand : c.operands) {
    arguments += (arguments.empty() ? "%" : ", %") + operand.name + ": " + typeOf(operand);
    in += (in.empty() ? "" : ", ") + typeOf(operand);
  }
  for (size_t i = 0; i < c.results.size(); ++i) {
    out += (i ? ", " : "") + tensor(c.results[i]);
    values += (i ? ", %r#" : "%r#") + std::to_string(i);
  }
  return "func.func @f(" + arguments + ") -> (" + out + ") {\n  %r:" + std::to_string(c.results.size()) +
         " = " + c.text + " : (" + in + ") -> (" + out + ")\n  return " + values + " : " + out + "\n}";
}

class Checker {
public:
  explicit Checker(const Case &c) : c(c), module(fixture.parse(moduleOf(c))) {}

  void check() {
    ASSERT_TRUE(module);
    auto function = module->lookupSymbol<mlir::func::FuncOp>("f");
    for (size_t i = 0; i < c.operands.size(); ++i) {
      inputs.push_back(
          randomArray(function.getArgument(i).getType(), c.text + c.operands[i].name, c.low, c.high));
      if (!c.operands[i].integers.empty())
        inputs.back().data = c.operands[i].integers;
    }
    for (size_t k = 0; k < c.differentiated; ++k)
      weights.push_back(randomArray(function.getResultTypes()[k], c.text + "weight" + std::to_string(k)));
    buildGradientFunction(function);
    ASSERT_TRUE(mlir::succeeded(module->verify())) << fixture.messages;
    llvm::SmallVector<Array> all = inputs;
    all.append(weights.begin(), weights.end());
    auto analytic = fixture.run(*module, all, "g");
    ASSERT_TRUE(analytic) << fixture.messages;
    for (auto [operand, gradient] : llvm::zip(differentiable, *analytic))
      compare(operand, gradient);
  }

private:
  /// @g(operands, weights) -> the gradients of the operands that have one.
  void buildGradientFunction(mlir::func::FuncOp function) {
    mlir::OpBuilder builder(&fixture.context);
    builder.setInsertionPointAfter(function);
    auto g = llvm::cast<mlir::func::FuncOp>(builder.clone(*function.getOperation()));
    g.setName("g");
    mlir::Block &block = g.getBody().front();
    mlir::Operation *op = &block.front();
    llvm::SmallVector<mlir::Value> upstream(op->getNumResults());
    for (size_t k = 0; k < weights.size(); ++k)
      upstream[k] = block.addArgument(op->getResult(k).getType(), g.getLoc());
    builder.setInsertionPointAfter(op);
    auto gradients = llvm::cast<DifferentiableOpInterface>(op).buildGradient(builder, upstream);
    ASSERT_EQ(gradients.size(), op->getNumOperands()) << c.text << fixture.messages;
    llvm::SmallVector<mlir::Value> found;
    for (auto [i, gradient] : llvm::enumerate(gradients)) {
      EXPECT_EQ(bool(gradient), c.operands[i].integers.empty() && !c.operands[i].kept)
          << c.text << " operand " << c.operands[i].name;
      if (!gradient)
        continue;
      EXPECT_EQ(gradient.getType(), op->getOperand(i).getType()) << c.text;
      differentiable.push_back(i), found.push_back(gradient);
    }
    block.getTerminator()->setOperands(found);
    llvm::SmallVector<mlir::Type> types;
    for (mlir::Value value : found)
      types.push_back(value.getType());
    g.setFunctionType(mlir::FunctionType::get(&fixture.context, block.getArgumentTypes(), types));
  }

  double sum() {
    auto results = fixture.run(*module, inputs);
    double total = 0;
    for (size_t k = 0; results && k < weights.size(); ++k)
      for (size_t i = 0; i < weights[k].data.size(); ++i)
        total += weights[k].data[i] * (*results)[k].data[i];
    return total;
  }

  void compare(size_t operand, const Array &gradient) {
    constexpr double kStep = 1e-5, kTolerance = 2e-8;
    double scale = 1;
    for (double value : gradient.data)
      scale = std::max(scale, std::abs(value));
    for (size_t i = 0; i < gradient.data.size(); ++i) {
      double saved = inputs[operand].data[i];
      inputs[operand].data[i] = saved + kStep;
      double above = sum();
      inputs[operand].data[i] = saved - kStep;
      double numeric = (above - sum()) / (2 * kStep);
      inputs[operand].data[i] = saved;
      ASSERT_NEAR(gradient.data[i], numeric, kTolerance * scale)
          << c.text << ", operand " << c.operands[operand].name << ", element " << i;
    }
  }

  const Case &c;
  Fixture fixture;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::SmallVector<Array> inputs, weights;
  std::vector<size_t> differentiable;
};

void check(const Case &c) { Checker(c).check(); }

const Axes kRows = {{"batch", 2}, {"pos", 3}, {"dim", 4}};
const Axes kPlaces = {{"batch", 2}, {"pos", 3}};

TEST(Gradients, Elementwise) {
  for (std::string fn :
       {"neg", "exp", "log", "sqrt", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "relu"}) {
    bool positive = fn == "log" || fn == "sqrt";
    check({"weft.unary " + fn + " %x", {{"x", kRows}}, {kRows}, 1, positive ? 0.2 : -2, 2});
  }
  for (std::string fn : {"add", "sub", "mul", "div", "pow"})
    for (const Axes &other : std::vector<Axes>{kRows, {{"dim", 4}}, {}, {{"dim", 4}, {"batch", 2}}}) {
      check({"weft.binary " + fn + " %x, %y", {{"x", kRows}, {"y", other}}, {kRows}, 1, 0.5, 2});
      check({"weft.binary " + fn + " %x, %y", {{"x", other}, {"y", kRows}}, {kRows}, 1, 0.5, 2});
    }
  check(
      {"weft.dropout %x noise %noise \"a\" {rate = 0.3 : f64}", {{"x", kRows}, {"noise", {}, {5}}}, {kRows}});
}

TEST(Gradients, Rows) {
  for (std::string eps : {"1.0e-5", "0.5"}) {
    check({"weft.layer_norm %x {eps = " + eps + " : f64}", {{"x", kRows}}, {kRows}});
    check({"weft.rms_norm %x {eps = " + eps + " : f64}", {{"x", kRows}}, {kRows}});
  }
  check({"weft.softmax %x", {{"x", kRows}}, {kRows}});
  for (std::string inverse : {"", "inverse "})
    check({"weft.rope %x, %p " + inverse + "{base = 100.0 : f64}",
           {{"x", kRows}, {"p", kPlaces, {0, 1, 2, 0, 0, 9}}},
           {kRows}});
}

TEST(Gradients, Products) {
  auto contraction = [&](Axes a, Axes b, Axes r) {
    check({"weft.contract %a, %b", {{"a", a}, {"b", b}}, {r}});
  };
  contraction(kRows, {{"dim", 4}, {"out", 5}}, {{"batch", 2}, {"pos", 3}, {"out", 5}});
  contraction(kRows, {{"out", 5}, {"dim", 4}}, {{"out", 5}, {"batch", 2}, {"pos", 3}});
  contraction(kRows, {{"batch", 2}, {"pos", 3}, {"out", 5}}, {{"out", 5}, {"dim", 4}});
  contraction({{"head", 3}, {"pos", 2}, {"dim", 4}}, {{"dim", 4}, {"head", 3}, {"out", 5}},
              {{"pos", 2}, {"out", 5}, {"head", 3}});
  contraction({{"m", 3}}, {{"n", 4}}, {{"n", 4}, {"m", 3}});
  check({"weft.gather %table, %index",
         {{"table", {{"vocab", 5}, {"dim", 4}}}, {"index", kPlaces, {4, 0, 4, 1, 0, 4}}},
         {kRows}});
}

constexpr int64_t kLength = 5;

void checkAttend(const Axes &heads, const Axes &kv, std::vector<double> windows,
                 const std::vector<double> &documents, const std::vector<double> &kvOf = {}) {
  auto with = [&](const Axes &inner, Axes last) {
    Axes axes = {{"batch", 2}, {"pos", kLength}};
    axes.insert(axes.end(), inner.begin(), inner.end());
    axes.insert(axes.end(), last.begin(), last.end());
    return axes;
  };
  Axes windowAxes = {{"heads", static_cast<int64_t>(windows.size())}};
  std::vector<Operand> inputs = {{"q", with(heads, {{"channel", 2}})},
                                 {"k", with(kv, {{"channel", 2}})},
                                 {"v", with(kv, {{"value", 3}})},
                                 {"w", windowAxes, windows},
                                 {"d", with({}, {}), documents}};
  if (!kvOf.empty())
    inputs.push_back({"t", windowAxes, kvOf});
  std::string table = kvOf.empty() ? "" : " kv_of %t";
  check({"weft.attend %q, %k, %v windows %w documents %d" + table + " {scale = 0.6 : f64}",
         inputs,
         {with(heads, {{"value", 3}}), with(heads, {})}});
}

// Catches: dk or dv not summed over the group (S1), a bound of the backward that
// differs from the forward's, delta of another head.
TEST(Gradients, Attend) {
  std::vector<double> one(2 * kLength, 0.0), documents = {0, 1, 1, 1, 4, 0, 0, 2, 2, 2};
  for (const auto &d : {one, documents}) {
    checkAttend({{"head", 6}}, {{"head", 6}}, {1, 2, 3, kLength - 1, kLength, 2147483647}, d);
    checkAttend({{"head", 3}}, {}, {2, 3, 100}, d);
    checkAttend({{"kv", 2}, {"group", 3}}, {{"kv", 2}}, {1, 2, 3, 4, 5, 6}, d);
    checkAttend({{"group", 3}, {"kv", 2}}, {{"kv", 2}}, {1, 2, 3, 4, 5, 6}, d);
    checkAttend({{"live", 4}}, {{"kv", 3}}, {1, 2, 3, 100}, d, {2, 0, 2, 2}); // nothing reads head 1
  }
}

// Catches: a table indexed by the row's place instead of the document's (a), by the
// key instead of the distance (r), heads of one value head not summed, 1 / Z left
// out of a gradient.
TEST(Gradients, Mix) {
  std::vector<double> documents = {0, 1, 1, 1, 4, 0, 0, 2, 2, 2};
  for (const std::vector<double> &windows : {std::vector<double>{1, 2, 100}, {5, 4, 3}})
    check({"weft.mix %v, %a, %distance windows %w documents %d kv_of %kv",
           {{"v", {{"batch", 2}, {"pos", kLength}, {"kv", 2}, {"channel", 3}}},
            {"a", {{"frozen", 3}, {"place", kLength + 2}}},
            {"distance", {{"frozen", 3}, {"place", kLength + 2}}},
            {"w", {{"heads", 3}}, windows},
            {"d", {{"batch", 2}, {"pos", kLength}}, documents},
            {"kv", {{"heads", 3}}, {1, 0, 1}}},
           {{{"batch", 2}, {"pos", kLength}, {"frozen", 3}, {"channel", 3}},
            {{"batch", 2}, {"pos", kLength}, {"frozen", 3}}}});
}

// Catches: a weight of the row's place in place of
// the document's, keys after the query, readers of one value head not summed.
TEST(Gradients, MixDense) {
  check({"weft.mix_dense %v, %p documents %d kv_of %kv",
         {{"v", {{"batch", 2}, {"pos", kLength}, {"kv", 2}, {"channel", 3}}},
          {"p", {{"frozen", 3}, {"row", kLength + 2}, {"place", kLength + 2}}, {}, true},
          {"d", {{"batch", 2}, {"pos", kLength}}, {0, 1, 1, 1, 4, 0, 0, 2, 2, 2}},
          {"kv", {{"heads", 3}}, {1, 0, 1}}},
         {{{"batch", 2}, {"pos", kLength}, {"frozen", 3}, {"channel", 3}}}});
}

// Catches: put that overwrites a place named twice.
TEST(Gradients, Slices) {
  check({"weft.take %x [\"kv\", \"group\"] as \"live\" at [5, 0, 5]",
         {{"x", {{"dim", 2}, {"kv", 2}, {"group", 3}, {"head", 2}}}},
         {{{"dim", 2}, {"live", 3}, {"head", 2}}}});
  check({"weft.put %y from \"live\" to [\"kv\", \"group\"] at [5, 0, 5]",
         {{"y", {{"dim", 2}, {"live", 3}, {"head", 2}}}},
         {{{"dim", 2}, {"kv", 2}, {"group", 3}, {"head", 2}}}});
}

TEST(Gradients, Losses) {
  std::vector<double> targets = {4, -1, 0, 2, 3, -1};
  for (std::string settings :
       {"{z = 0.0 : f64, smoothing = 0.0 : f64}", "{z = 0.01 : f64, smoothing = 0.1 : f64}"})
    for (bool weighted : {false, true}) {
      std::string weight = weighted ? " weight %weight " : " ";
      Case plain{"weft.cross_entropy %x, %t" + weight + settings,
                 {{"x", {{"batch", 2}, {"pos", 3}, {"vocab", 5}}}, {"t", kPlaces, targets}},
                 {{}}};
      if (weighted)
        plain.operands.push_back({"weight", kPlaces});
      check(plain);
      for (Axes table : {Axes{{"vocab", 5}, {"dim", 4}}, Axes{{"dim", 4}, {"vocab", 5}}}) {
        Case head{"weft.loss_head %x, %table, %t" + weight + settings,
                  {{"x", kRows}, {"table", table}, {"t", kPlaces, targets}},
                  {{}}};
        if (weighted)
          head.operands.push_back({"weight", kPlaces});
        check(head);
      }
    }
}

} // namespace

//===- models-test.cpp - Whole models with frozen and pruned heads ---------===//
//
// Three judges. A head of the uniform pattern is attention whose queries are
// zero, and a pruned head one whose output weights are zero: the model as written,
// with those weights, must have the same loss and gradients (methods: M1's flat
// probe, for whole models). Machine code is compared with the interpreter. Sizes of
// the state are compared with arithmetic.
//
//===----------------------------------------------------------------------===//
#include "dialects/Weft/Interpret/Interpret.h"
#include "frontend/Checker.h"
#include "frontend/Emit/Emit.h"
#include "frontend/Parser.h"
#include "passes/Freeze/HeadDecisions.h"
#include "passes/Pipelines.h"
#include "passes/Schedule/ToExecutable.h"
#include "passes/Verify/Verify.h"
#include "runtime/Machine.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

using namespace mlir;

namespace weft {
namespace {

constexpr int32_t kFull = 2147483647;
constexpr int64_t kBatch = 2;

/// A model of the shipped texts, at sizes of its own.
struct Written {
  std::string file, name;
  lang::Overrides sizes;
  int64_t positions;
};

const Written kNano{"nano", "nano", {}, 20};
const Written kTiny{"tiny", "tiny", {{"depth", "2"}}, 70};
const Written kSan{
    "san",
    "san",
    {{"vocab", "40"}, {"dim", "24"}, {"depth", "2"}, {"heads", "6"}, {"kv", "2"}, {"head", "6"}},
    19};

/// A compiled module and the state that it starts from.
struct Built {
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  States states;

  std::optional<SmallVector<Array>> run(StringRef program, ArrayRef<Array> inputs) {
    auto function = module->lookupSymbol<func::FuncOp>(program);
    auto results = interpret(cast<FunctionOpInterface>(function.getOperation()), inputs, states);
    if (failed(results))
      return std::nullopt;
    return std::move(*results);
  }
};

using Attach = std::function<void(PassManager &)>;

Built build(const Written &written, const HeadDecisions &decisions, PipelineOptions options,
            const std::map<std::string, std::vector<int32_t>> &windows = {}, const Attach &attach = {}) {
  lang::SourceFiles sources;
  lang::Diagnostics diagnostics;
  std::string path = std::string(WEFT_SOURCE_DIR) + "/models/" + written.file + ".weft";
  lang::ast::File file = lang::parseFile(path, sources, diagnostics);
  auto model = lang::checkModel(file, sources, written.name, written.sizes, diagnostics);
  EXPECT_TRUE(model) << diagnostics.render(sources);
  DialectRegistry registry;
  registerWeftDialects(registry);
  Built built;
  built.context = std::make_unique<MLIRContext>(registry);
  built.context->loadAllAvailableDialects();
  built.module = emitModel(*model, sources, *built.context);
  setHeadDecisions(*built.module, decisions);
  Builder builder(built.context.get());
  NamedAttrList given;
  for (const auto &[site, heads] : windows)
    given.set(site, builder.getDenseI32ArrayAttr(heads));
  if (!windows.empty())
    (*built.module)->setAttr("weft.windows", given.getDictionary(built.context.get()));
  options.batch = kBatch;
  options.positions = written.positions;
  PassManager manager(built.context.get(), ModuleOp::getOperationName());
  if (attach)
    attach(manager);
  buildPipeline(manager, options);
  EXPECT_TRUE(succeeded(manager.run(*built.module)));
  EXPECT_TRUE(succeeded(initialize(built.states, *built.module, 3)));
  return built;
}

PipelineOptions interpreted(std::vector<std::string> programs) {
  PipelineOptions options;
  options.float64 = true;
  options.stage = Stage::Programs;
  options.programs = std::move(programs);
  return options;
}

/// Numbers of the arguments of @micro and @eval by name.
SmallVector<Array> inputsOf(func::FuncOp function, int64_t vocab) {
  SmallVector<Array> inputs;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    Array array(function.getArgumentTypes()[i]);
    StringRef name = cast<StringAttr>(function.getArgAttr(i, "weft.name")).getValue();
    std::vector<double> numbers = drawUniform(11, name, array.data.size(), 0, static_cast<double>(vocab));
    for (size_t n = 0; n < array.data.size(); ++n) {
      auto place = static_cast<int64_t>(n) % array.shape.back();
      array.data[n] = name != "doc_start" ? std::floor(numbers[n]) : place >= 12 ? 12 : place >= 5 ? 5 : 0;
    }
    inputs.push_back(std::move(array));
  }
  return inputs;
}

/// The slices of `whole` that `entry` holds.
Array partOf(const Array &whole, StateOp entry) {
  if (!entry.getSlices())
    return whole;
  SlicesAttr slices = *entry.getSlices();
  auto first = static_cast<size_t>(slices.getFirstAxis()), count = static_cast<size_t>(slices.getAxisCount());
  ArrayRef<int64_t> shape = slices.getFullShape();
  auto product = [](ArrayRef<int64_t> sizes) {
    int64_t elements = 1;
    for (int64_t size : sizes)
      elements *= size;
    return elements;
  };
  int64_t places = product(shape.slice(first, count)), inner = product(shape.drop_front(first + count));
  Array part(entry.getTensorType());
  part.data.clear();
  for (int64_t o = 0; o < product(shape.take_front(first)); ++o)
    for (int64_t place : slices.getKept())
      for (int64_t i = 0; i < inner; ++i)
        part.data.push_back(whole.data[static_cast<size_t>((o * places + place) * inner + i)]);
  return part;
}

/// Zeros the slices of `heads` over `count` axes from `first` on.
void zeroHeads(Array &array, int64_t first, int64_t count, ArrayRef<int64_t> heads) {
  int64_t inner = 1, places = 1;
  for (int64_t axis = first; axis < static_cast<int64_t>(array.shape.size()); ++axis)
    (axis < first + count ? places : inner) *= array.shape[static_cast<size_t>(axis)];
  for (size_t i = 0; i < array.data.size(); ++i)
    if (llvm::is_contained(heads, static_cast<int64_t>(i) / inner % places))
      array.data[i] = 0;
}

double worstOf(const Array &found, const Array &expected) {
  double greatest = 1e-6, worst = found.shape == expected.shape ? 0 : INFINITY;
  for (double value : expected.data)
    greatest = std::max(greatest, std::abs(value));
  for (size_t i = 0; std::isfinite(worst) && i < found.data.size(); ++i)
    worst = std::max(worst, std::abs(found.data[i] - expected.data[i]) / greatest);
  return worst;
}

/// Frozen heads with the uniform pattern, and pruned ones, against the model as written with zero weights.
void checkAgainstWritten(const Written &written, const HeadDecisions &decisions, int64_t headAxes,
                         int64_t vocab) {
  std::map<std::string, std::vector<int32_t>> windows;
  for (const auto &[site, frozen] : decisions.frozen) {
    windows[site].assign(headAxes == 2 ? 6 : 4, kFull); // of kSan, of kTiny
    for (size_t i = 0; i < frozen.heads.size(); ++i)
      windows[site][static_cast<size_t>(frozen.heads[i])] = frozen.windows[i];
  }
  Built whole = build(written, {}, interpreted({"micro"}), windows);
  Built frozen = build(written, decisions, interpreted({"micro"}));
  for (const auto &[site, heads] : decisions.frozen)
    zeroHeads(whole.states.at(site + ".wq"), 1, headAxes, heads.heads);
  for (const auto &[site, heads] : decisions.pruned)
    zeroHeads(whole.states.at(site + ".wo"), 0, headAxes, heads);
  auto inputs = inputsOf(whole.module->lookupSymbol<func::FuncOp>("micro"), vocab);
  auto expected = whole.run("micro", inputs), found = frozen.run("micro", inputs);
  ASSERT_TRUE(expected && found);
  EXPECT_NEAR((*found)[0].data[0], (*expected)[0].data[0], 1e-9);
  int compared = 0;
  for (StateOp entry : frozen.module->getOps<StateOp>()) {
    std::string name = entry.getSymName().str();
    auto there = whole.states.find(name);
    if (entry.getRole() != Role::Gradient || there == whole.states.end())
      continue;
    EXPECT_LT(worstOf(frozen.states.at(name), partOf(there->second, entry)), 1e-9) << name;
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

// Catches: heads taken in another order, a slice of wo of another head, the first
// product's result not added to, k of a group that a live head needs gone, windows of
// frozen heads mixed up, documents not seen by a pattern.
TEST(Frozen, UniformPatternsAreAttentionWithoutQueries) {
  HeadDecisions ragged;
  ragged.frozen["block.0.attn"] = {{1}, {5}};
  ragged.pruned["block.0.attn"] = {2};
  ragged.frozen["block.1.attn"] = {{0, 3, 4, 5}, {kFull, 4, 1, 9}};
  checkAgainstWritten(kSan, ragged, 2, 40);
  HeadDecisions own;
  own.frozen["block.0.attn"] = {{0, 3}, {3, kFull}};
  own.frozen["block.1.attn"] = {{0, 1, 2, 3}, {kFull, 7, 2, 70}};
  checkAgainstWritten(kTiny, own, 1, 256);
  HeadDecisions pruned;
  pruned.pruned["block.0.attn"] = {0, 1, 2};
  pruned.frozen["block.0.attn"] = {{3, 5}, {kFull, kFull}};
  checkAgainstWritten(kSan, pruned, 2, 40);
}

// All heads of a site pruned: the branch gives zero and trains nothing.
TEST(Frozen, ASiteWithoutHeads) {
  HeadDecisions none;
  none.pruned["block.0.attn"] = {0, 1};
  Built built = build(kNano, none, interpreted({"micro", "eval"}));
  EXPECT_FALSE(built.module->lookupSymbol("block.0.attn.wq"));
  EXPECT_FALSE(built.module->lookupSymbol("block.0.attn.gain"));
  EXPECT_TRUE(built.module->lookupSymbol("block.1.attn.wq"));
  auto inputs = inputsOf(built.module->lookupSymbol<func::FuncOp>("micro"), 256);
  EXPECT_TRUE(built.run("micro", inputs));
}

llvm::json::Value jsonOf(const Array &array) {
  return llvm::json::Object{{"shape", llvm::json::Array(array.shape)},
                            {"data", llvm::json::Array(array.data)}};
}

/// What test/numpy/frozen_san.py reads: the model with its decisions, and what the interpreter found.
llvm::json::Object caseOf(Built &built, const HeadDecisions &decisions, ArrayRef<Array> inputs, double loss) {
  llvm::json::Object named, states, slices, frozen, pruned, gradients;
  auto micro = built.module->lookupSymbol<func::FuncOp>("micro");
  for (auto [i, array] : llvm::enumerate(inputs))
    named[cast<StringAttr>(micro.getArgAttr(static_cast<unsigned>(i), "weft.name")).getValue()] =
        jsonOf(array);
  for (StateOp entry : built.module->getOps<StateOp>()) {
    std::string name = entry.getSymName().str();
    if (entry.getRole() == Role::Gradient)
      gradients[name.substr(5)] = jsonOf(built.states.at(name));
    if (entry.getRole() != Role::Parameter)
      continue;
    states[name] = jsonOf(built.states.at(name));
    if (std::optional<SlicesAttr> part = entry.getSlices())
      slices[name] = llvm::json::Object{{"full", llvm::json::Array(part->getFullShape())},
                                        {"first", part->getFirstAxis()},
                                        {"count", part->getAxisCount()},
                                        {"kept", llvm::json::Array(part->getKept())}};
  }
  for (const auto &[site, heads] : decisions.frozen)
    frozen[site] = llvm::json::Object{{"heads", llvm::json::Array(heads.heads)},
                                      {"windows", llvm::json::Array(heads.windows)}};
  for (const auto &[site, heads] : decisions.pruned)
    pruned[site] = llvm::json::Array(heads);
  return llvm::json::Object{{"inputs", std::move(named)},
                            {"states", std::move(states)},
                            {"slices", std::move(slices)},
                            {"frozen", std::move(frozen)},
                            {"pruned", std::move(pruned)},
                            {"gradients", std::move(gradients)},
                            {"loss", loss},
                            {"depth", 2}};
}

// A third opinion, for patterns of any numbers: dense matrices in PyTorch.
// Catches: a and r exchanged, an index of the row and not of the document, the
// gradient of a pattern that is a part of an entry.
TEST(Frozen, AgreesWithPyTorch) {
  HeadDecisions decisions;
  decisions.frozen["block.0.attn"] = {{0, 3, 4, 5}, {kFull, 4, 9, 3}, true};
  decisions.frozen["block.1.attn"] = {{1}, {6}, true};
  decisions.pruned["block.1.attn"] = {2};
  Built built = build(kSan, decisions, interpreted({"micro"}));
  for (auto &[name, array] : built.states)
    if (!StringRef(name).starts_with("grad/") && !StringRef(name).starts_with("table/"))
      array.data = drawUniform(5, name, array.data.size(), -0.5, 0.5);
  auto inputs = inputsOf(built.module->lookupSymbol<func::FuncOp>("micro"), 40);
  auto results = built.run("micro", inputs);
  ASSERT_TRUE(results);
  std::string path = std::string(WEFT_BINARY_DIR) + "/frozen-san.json", text;
  llvm::raw_string_ostream(text) << llvm::formatv(
      "{0}", llvm::json::Value(caseOf(built, decisions, inputs, (*results)[0].data[0])));
  std::ofstream(path) << text;
  std::string command = "/usr/bin/python3 " WEFT_SOURCE_DIR "/test/numpy/frozen_san.py " + path;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

rt::Tensor toTensor(const Array &array, rt::ElementType type) {
  rt::Tensor tensor(type, {array.shape.begin(), array.shape.end()});
  for (size_t i = 0; i < array.data.size(); ++i)
    if (type == rt::ElementType::F32)
      tensor.as<float>()[i] = static_cast<float>(array.data[i]);
    else
      tensor.as<int32_t>()[i] = static_cast<int32_t>(array.data[i]);
  return tensor;
}

/// Loss and gradients of machine code against the interpreter, patterns drawn.
void checkOnCpu(const Written &written, const HeadDecisions &decisions, int64_t vocab) {
  Built judge = build(written, decisions, interpreted({"micro"}));
  PipelineOptions options;
  options.programs = {"micro"};
  Built compiled = build(written, decisions, options);
  for (auto &[name, array] : judge.states)
    if (StringRef(name).starts_with("pattern/"))
      array.data = drawUniform(5, name, array.data.size(), -4, 0);
  auto executable = toExecutable(*compiled.module, {hostTarget(), "", 2});
  ASSERT_TRUE(succeeded(executable));
  auto machine = rt::makeCpuMachine(std::move(*executable), 2);
  ASSERT_TRUE(machine.ok()) << machine.status();
  for (const rt::StateEntry &entry : (*machine)->executable().states)
    ASSERT_TRUE((*machine)->writeState(entry.name, toTensor(judge.states.at(entry.name), entry.type)).ok());
  auto inputs = inputsOf(judge.module->lookupSymbol<func::FuncOp>("micro"), vocab);
  auto expected = judge.run("micro", inputs);
  ASSERT_TRUE(expected);
  std::vector<rt::Tensor> arguments, results;
  for (const rt::Program &program : (*machine)->executable().programs) {
    for (size_t i = 0; i < program.inputs.size(); ++i)
      arguments.push_back(toTensor(inputs[i], program.inputs[i].type));
    for (const rt::Port &port : program.results)
      results.emplace_back(port.type, port.shape);
  }
  ASSERT_TRUE((*machine)->run("micro", arguments, results).ok());
  EXPECT_NEAR(results[0].as<float>()[0] / (*expected)[0].data[0], 1, 1e-6);
  for (const rt::StateEntry &entry : (*machine)->executable().states) {
    if (entry.role != rt::StateEntry::Role::Gradient)
      continue;
    auto value = (*machine)->readState(entry.name);
    Array found = judge.states.at(entry.name);
    for (size_t i = 0; i < found.data.size(); ++i)
      found.data[i] = value->as<float>()[i];
    EXPECT_LT(worstOf(found, judge.states.at(entry.name)), 1e-4) << entry.name;
  }
}

HeadDecisions share(const std::vector<int64_t> &frozen, const std::vector<int64_t> &pruned, bool trained,
                    bool dense = false) {
  HeadDecisions decisions;
  for (std::string site : {"block.0.attn", "block.1.attn"}) {
    if (!frozen.empty())
      decisions.frozen[site] = {frozen, std::vector<int32_t>(frozen.size(), kFull), trained, 0, dense};
    if (!pruned.empty())
      decisions.pruned[site] = pruned;
  }
  return decisions;
}

TEST(Frozen, MachineCodeAgreesWithTheInterpreter) {
  checkOnCpu(kNano, share({1}, {}, false), 256);
  checkOnCpu(kTiny, share({2}, {}, false), 256);
  checkOnCpu(kTiny, share({0, 1, 2, 3}, {}, true), 256);
  checkOnCpu(kTiny, share({3}, {0, 1}, true), 256);
  checkOnCpu(kSan, share({0, 3, 4, 5}, {}, true), 40);
  checkOnCpu(kSan, share({1}, {0}, false), 40);
  checkOnCpu(kTiny, share({0, 3}, {1}, false, true), 256);
  checkOnCpu(kSan, share({0, 3, 4, 5}, {}, false, true), 40);
}

/// P[i, j] of one head, [T, T], from its tables.
std::vector<double> squareOf(const double *a, const double *r, int64_t places, int64_t window) {
  std::vector<double> square(static_cast<size_t>(places * places));
  for (int64_t i = 0; i < places; ++i) {
    double sum = 0;
    for (int64_t j = std::max<int64_t>(0, i - window + 1); j <= i; ++j)
      sum += square[static_cast<size_t>(i * places + j)] = std::exp(a[j] + r[i - j]);
    for (int64_t j = 0; j <= i; ++j)
      square[static_cast<size_t>(i * places + j)] /= sum;
  }
  return square;
}

// A dense pattern whose numbers are those of a compact one is the same model. Catches: squares in
// another order than their heads, a document that reads the rows of the whole, a value head of
// another group, a gradient that misses readers.
TEST(Frozen, DensePatternsAreThoseOfTheirTables) {
  HeadDecisions compact, dense;
  compact.frozen["block.0.attn"] = {{0, 3, 4, 5}, {kFull, 4, 9, 3}};
  compact.frozen["block.1.attn"] = {{1}, {6}};
  dense = compact;
  for (auto &[site, frozen] : dense.frozen)
    frozen.dense = true;
  Built small = build(kSan, compact, interpreted({"micro"})),
        whole = build(kSan, dense, interpreted({"micro"}));
  for (auto &[site, frozen] : compact.frozen) {
    Array &a = small.states.at(patternKeyName(site)), &r = small.states.at(patternDistanceName(site)),
          &p = whole.states.at(wholePatternName(site));
    a.data = drawUniform(5, site + "a", a.data.size(), -3, 0);
    r.data = drawUniform(5, site + "r", r.data.size(), -3, 0);
    p.data.clear();
    for (size_t n = 0; n < frozen.heads.size(); ++n) {
      auto row = static_cast<int64_t>(n) * a.shape[1];
      llvm::append_range(p.data, squareOf(&a.data[static_cast<size_t>(row)],
                                          &r.data[static_cast<size_t>(row)], a.shape[1], frozen.windows[n]));
    }
  }
  auto inputs = inputsOf(small.module->lookupSymbol<func::FuncOp>("micro"), 40);
  auto expected = small.run("micro", inputs), found = whole.run("micro", inputs);
  ASSERT_TRUE(expected && found);
  EXPECT_NEAR((*found)[0].data[0], (*expected)[0].data[0], 1e-9);
  int compared = 0;
  for (StateOp entry : whole.module->getOps<StateOp>())
    if (std::string name = entry.getSymName().str(); entry.getRole() == Role::Gradient) {
      EXPECT_LT(worstOf(whole.states.at(name), small.states.at(name)), 1e-9) << name;
      ++compared;
    }
  EXPECT_GT(compared, 10);
}

// Passes behind freeze-heads keep what it made, and gradients of trained patterns
// are those of central differences. Catches: a pattern's gradient that does not arrive.
TEST(Frozen, EveryPassBehindKeepsTheModel) {
  VerifyReport report;
  PipelineOptions options = interpreted({"micro", "eval", "decode"});
  options.stage = Stage::Kernels;
  build(kSan, share({0, 3, 4, 5}, {}, true), options, {},
        [&](PassManager &manager) { verifyEachPass(manager, report); });
  const PassVerdict *fault = report.firstFault();
  EXPECT_FALSE(fault) << fault->text();
  auto verdict = llvm::find_if(report.passes, [](auto &pass) { return pass.pass == "weft-freeze-heads"; });
  ASSERT_NE(verdict, report.passes.end());
  EXPECT_EQ(verdict->kind, PassVerdict::Kind::Lossy);
}

// One token of the first row at a time: a frozen head caches values alone.
class Decoding : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Forms, Decoding, testing::Bool());

TEST_P(Decoding, EqualsPrefill) {
  Built built = build(kSan, share({0, 3, 4, 5}, {}, false, GetParam()), interpreted({"prefill", "decode"}));
  for (auto &[name, array] : built.states)
    if (StringRef(name).starts_with("pattern/"))
      array.data = drawUniform(5, name, array.data.size(), -4, 0);
  for (StringRef name : {"cache/block.0.attn.k", "cache/block.0.attn.v"})
    EXPECT_TRUE(built.module->lookupSymbol(name)) << name.str();
  auto prefill = built.module->lookupSymbol<func::FuncOp>("prefill");
  auto inputs = inputsOf(prefill, 40);
  for (auto [i, array] : llvm::enumerate(inputs))
    if (cast<StringAttr>(prefill.getArgAttr(static_cast<unsigned>(i), "weft.name")) == "doc_start")
      std::ranges::fill(array.data, 0);
  auto whole = built.run("prefill", inputs);
  ASSERT_TRUE(whole);
  auto decode = built.module->lookupSymbol<func::FuncOp>("decode");
  for (int64_t place = 0; place < kSan.positions; ++place) {
    SmallVector<Array> one;
    for (unsigned i = 0; i < decode.getNumArguments(); ++i) {
      StringRef name = cast<StringAttr>(decode.getArgAttr(i, "weft.name")).getValue();
      Array array(decode.getArgumentTypes()[i]);
      if (name == "offset")
        array.data = {static_cast<double>(place)};
      for (unsigned from = 0; from < prefill.getNumArguments(); ++from)
        if (cast<StringAttr>(prefill.getArgAttr(from, "weft.name")).getValue() == name)
          array.data = {inputs[from].data[static_cast<size_t>(place)]};
      one.push_back(std::move(array));
    }
    auto step = built.run("decode", one);
    ASSERT_TRUE(step);
    for (size_t word = 0; word < 40; ++word)
      EXPECT_NEAR((*step)[0].data[word], (*whole)[0].data[static_cast<size_t>(place) * 40 + word], 1e-9);
  }
}

/// Elements of all entries of a role whose name starts so.
int64_t elementsOf(ModuleOp module, Role role, StringRef prefix = "") {
  int64_t elements = 0;
  for (StateOp state : module.getOps<StateOp>())
    if (state.getRole() == role && state.getSymName().starts_with(prefix))
      elements += state.getTensorType().getNumElements();
  return elements;
}

// Ledger: one of nano's two heads a layer frozen leaves half of wq and wk (2 of
// 32 x 2 x 16 a layer, 2 layers): 2,048 parameters, gradients and twice as many moments.
TEST(Frozen, StateShrinksByWhatLeft) {
  Built whole = build(kNano, {}, interpreted({"micro", "eval"}));
  Built frozen = build(kNano, share({1}, {}, false), interpreted({"micro", "eval"}));
  EXPECT_EQ(elementsOf(*whole.module, Role::Parameter), 24'736);
  EXPECT_EQ(elementsOf(*frozen.module, Role::Parameter), 24'736 - 2'048);
  EXPECT_EQ(elementsOf(*frozen.module, Role::Gradient), 24'736 - 2'048);
  EXPECT_EQ(elementsOf(*frozen.module, Role::Control), 2 * 2 * kNano.positions);
  // Pruning one takes its halves of wv and wo as well.
  Built pruned = build(kNano, share({}, {1}, false), interpreted({"micro", "eval"}));
  EXPECT_EQ(elementsOf(*pruned.module, Role::Parameter), 24'736 - 4'096);
  EXPECT_EQ(elementsOf(*pruned.module, Role::Control), 0);
  Built all = build(kNano, share({0, 1}, {}, true), interpreted({"micro", "eval"}));
  EXPECT_EQ(elementsOf(*all.module, Role::Parameter), 24'736 - 4'096 + 2 * 2 * 2 * kNano.positions);
  EXPECT_EQ(elementsOf(*all.module, Role::Table), 0);
}

/// Enough positions that activations outweigh weights.
const Written kLong{"nano", "nano", {}, 512};

/// Bytes of the state and of the arena of @micro.
std::pair<int64_t, int64_t> memoryOf(const HeadDecisions &decisions) {
  PipelineOptions options;
  options.programs = {"micro"};
  Built built = build(kLong, decisions, options);
  auto micro = built.module->lookupSymbol<ProgramOp>("micro");
  return {(*built.module)->getAttrOfType<IntegerAttr>("weft.state_bytes").getInt(),
          static_cast<int64_t>(micro.getArena().value_or(0))};
}

// 2,048 parameters and gradients of 4 bytes leave; four patterns of 512 places come.
// Of the arena the frozen heads' q and k leave.
TEST(Frozen, MemoryShrinks) {
  auto [state, arena] = memoryOf({});
  auto [frozenState, frozenArena] = memoryOf(share({1}, {}, false));
  EXPECT_EQ(state - frozenState, 2 * 2'048 * 4 - 4 * 512 * 4);
  EXPECT_LT(frozenArena, arena);
}

// Slices start as they do in the whole. Catches: numbers drawn for the smaller shape.
TEST(Frozen, WhatIsLeftStartsAlike) {
  Built whole = build(kSan, {}, interpreted({"eval"}));
  Built frozen = build(kSan, share({1}, {2}, false), interpreted({"eval"}));
  for (StateOp entry : frozen.module->getOps<StateOp>())
    if (entry.getRole() == Role::Parameter) {
      std::string name = entry.getSymName().str();
      EXPECT_EQ(frozen.states.at(name), partOf(whole.states.at(name), entry)) << name;
    }
}

} // namespace
} // namespace weft

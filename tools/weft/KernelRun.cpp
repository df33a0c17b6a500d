//===- KernelRun.cpp - One kernel on a device -----------------------------===//

#include "tools/weft/KernelRun.h"
#include "tools/weft/Device.h"
#include "tools/weft/KernelInputs.h"

#include "passes/Codegen/Gpu/Attend.h"
#include "passes/Schedule/Passes.h"
#include "runtime/core/Floats.h"
#include "runtime/core/Json.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

#include <chrono>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace weft;

namespace {

/// A module with a copy of `kernel`, its operations to be added.
OwningOpRef<ModuleOp> moduleOf(KernelOp kernel) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  OpBuilder::atBlockEnd(module->getBody()).clone(*kernel);
  return module;
}

/// A program `run` that calls the kernel on its ports.
void addRun(ModuleOp module, KernelOp kernel) {
  Location loc = kernel.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto type = builder.getFunctionType(kernel.getArgumentTypes(), kernel.getResultTypes());
  auto function = func::FuncOp::create(builder, loc, "run", type);
  for (unsigned i = 0; i < type.getNumInputs(); ++i)
    function.setArgAttr(i, "weft.name", builder.getStringAttr("in" + Twine(i)));
  for (unsigned i = 0; i < type.getNumResults(); ++i)
    function.setResultAttr(i, "weft.name", builder.getStringAttr("out" + Twine(i)));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  auto launch =
      LaunchOp::create(builder, loc, kernel.getResultTypes(), kernel.getSymName(), body->getArguments());
  func::ReturnOp::create(builder, loc, launch.getResults());
}

std::string stateOf(StringRef kind, unsigned number) { return (kind + Twine(number)).str(); }

/// State entries in0 ... and out0 ... for the kernel's operands, so that runs copy nothing.
void addStates(ModuleOp module, KernelOp kernel) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto zero = InitAttr::get(module.getContext(), InitKind::Constant, builder.getF64FloatAttr(0), Attribute());
  auto add = [&](StringRef kind, TypeRange types) {
    for (auto [i, type] : llvm::enumerate(types))
      StateOp::create(builder, kernel.getLoc(), stateOf(kind, static_cast<unsigned>(i)), Role::Control, type,
                      zero, IntegerAttr());
  };
  add("in", kernel.getArgumentTypes());
  add("out", kernel.getResultTypes());
}

/// A program that calls the kernel `calls` times on the state.
void addCalls(ModuleOp module, KernelOp kernel, StringRef name, int calls) {
  Location loc = kernel.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(function.addEntryBlock());
  SmallVector<Value> inputs;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes()))
    inputs.push_back(GetOp::create(builder, loc, type, stateOf("in", static_cast<unsigned>(i))));
  LaunchOp launch;
  for (int i = 0; i < calls; ++i)
    launch = LaunchOp::create(builder, loc, kernel.getResultTypes(), kernel.getSymName(), inputs);
  for (auto [i, result] : llvm::enumerate(launch.getResults()))
    SetOp::create(builder, loc, stateOf("out", static_cast<unsigned>(i)), result);
  func::ReturnOp::create(builder, loc);
}

/// Changes what a kernel computes a little: a sum for a difference, a scale 5% off, a larger eps.
bool plantFault(KernelOp kernel) {
  for (Operation &op : kernel.getBody().front()) {
    if (auto rope = dyn_cast<RopeOp>(op)) { // turns the other way
      rope.setInverse(!rope.getInverse());
      return true;
    }
    if (auto binary = dyn_cast<BinaryOp>(op)) {
      binary.setFn(binary.getFn() == BinaryFn::Add ? BinaryFn::Sub : BinaryFn::Add);
      return true;
    }
    for (StringRef name : {"scale", "eps", "beta1", "smoothing"})
      if (auto number = op.getAttrOfType<FloatAttr>(name)) {
        op.setAttr(name, FloatAttr::get(number.getType(), 1.05 * number.getValueAsDouble() + 0.05));
        return true;
      }
  }
  return false;
}

absl::StatusOr<std::unique_ptr<rt::Machine>> machineFor(ModuleOp module, const KernelRun &run) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  SchedulePassOptions schedule;
  schedule.chip = run.target.chip;
  manager.addPass(createLayOutParamsPass());
  manager.addPass(createSchedulePass(schedule));
  manager.addPass(createPlanMemoryPass());
  if (failed(manager.run(module)))
    return absl::InternalError("the kernel can't be scheduled (see above)");
  ExecutableOptions options{hostTarget(), "", 1, run.target};
  FailureOr<rt::Executable> executable = toExecutable(module, options);
  if (failed(executable))
    return absl::InternalError("the kernel can't be compiled (see above)");
  executable->model = "kernel";
  return openMachine(std::move(*executable), run.request);
}

void put(rt::Tensor &tensor, const Array &array) {
  for (size_t i = 0; i < array.data.size(); ++i) {
    auto value = static_cast<float>(array.data[i]);
    if (tensor.type == rt::ElementType::I32) {
      tensor.as<int32_t>()[i] = static_cast<int32_t>(array.data[i]);
    } else if (tensor.type == rt::ElementType::BF16) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits)); // already rounded
      tensor.as<uint16_t>()[i] = static_cast<uint16_t>(bits >> 16);
    } else {
      tensor.as<float>()[i] = value;
    }
  }
}

struct Ports {
  std::vector<rt::Tensor> inputs, results;
};

Ports portsOf(const rt::Machine &machine, ArrayRef<Array> arrays) {
  Ports ports;
  const rt::Program &program = machine.executable().programs.front();
  for (auto [port, array] : llvm::zip(program.inputs, arrays)) {
    ports.inputs.emplace_back(port.type, port.shape);
    put(ports.inputs.back(), array);
  }
  for (const rt::Port &port : program.results)
    ports.results.emplace_back(port.type, port.shape);
  return ports;
}

/// Half of what a rounding to this type can do to a number of norm 1, with room for sums.
double boundFor(rt::ElementType type, bool readsBf16) {
  if (type == rt::ElementType::I32)
    return 0;
  return type == rt::ElementType::BF16 ? 6e-3 : readsBf16 ? 4e-3 : 2e-5;
}

std::string hashOf(const rt::Tensor &tensor) {
  StringRef bytes(reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
  return llvm::utohexstr(llvm::xxh3_64bits(bytes), /*LowerCase=*/true, 16);
}

KernelVerdict::Result compare(const rt::Tensor &found, const Array &expected, double bound) {
  constexpr size_t kBlock = 4096;
  double difference = 0, norm = 0, worst = 0, largest = 0;
  for (size_t start = 0; start < expected.data.size(); start += kBlock) {
    double blockDifference = 0, blockNorm = 0;
    for (size_t i = start; i < std::min(start + kBlock, expected.data.size()); ++i) {
      double want = expected.data[i], have = rt::floatAt(found, static_cast<int64_t>(i));
      double off = have - want;
      if (std::isnan(have) != std::isnan(want) || std::isinf(have) != std::isinf(want))
        off = INFINITY;
      else if (std::isnan(want) || std::isinf(want))
        continue;
      blockDifference += off * off;
      blockNorm += want * want;
    }
    difference += blockDifference;
    norm += blockNorm;
    worst = std::max(worst, blockDifference);
    largest = std::max(largest, blockNorm);
  }
  // Numbers that are all but 0 (the entropy of one key) are what sums of numbers about 1 leave.
  constexpr double kRounding = 1e-4;
  auto ratio = [](double off, double of, size_t count) {
    double least = kRounding * kRounding * static_cast<double>(count);
    return off == 0 ? 0 : std::sqrt(off / std::max(of, least));
  };
  size_t count = expected.data.size();
  return {ratio(difference, norm, count), ratio(worst, largest, std::min(count, kBlock)), bound,
          hashOf(found)};
}

} // namespace

std::string weft::nameOf(KernelOp kernel) {
  auto form = kernel->getAttrOfType<StringAttr>(kFormAttr);
  return kernel.getSymName().str() + (form ? " " + form.str() : "");
}

absl::StatusOr<KernelVerdict> KernelRun::check(KernelOp kernel, uint64_t seed, PlantedFault plant) const {
  OwningOpRef<ModuleOp> module = moduleOf(kernel);
  addRun(*module, kernel);
  if (plant == PlantedFault::Body && !plantFault(*module->getOps<KernelOp>().begin()))
    return absl::UnimplementedError("no fault is known for this kernel");
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = machineFor(*module, *this);
  if (!machine.ok())
    return machine.status();
  SmallVector<Array> arrays = kernelInputs(kernel, seed);
  SmallVector<Array> given = arrays;
  if (plant == PlantedFault::Documents && !hideDocuments(kernel, given))
    return absl::UnimplementedError("no fault is known for this kernel: no document to hide was drawn");
  Ports ports = portsOf(**machine, given);
  if (absl::Status status = (*machine)->run("run", ports.inputs, ports.results); !status.ok())
    return status;
  States states;
  auto expected = interpret(cast<FunctionOpInterface>(kernel.getOperation()), arrays, states);
  if (failed(expected))
    return absl::InternalError("the interpreter refuses the kernel (see above)");
  bool readsBf16 = llvm::any_of(kernel.getArgumentTypes(), [](Type type) {
    return cast<RankedTensorType>(type).getElementType().isBF16();
  });
  KernelVerdict verdict;
  verdict.kernel = nameOf(kernel);
  for (auto [found, want] : llvm::zip(ports.results, *expected)) {
    verdict.results.push_back(compare(found, want, boundFor(found.type, readsBf16)));
    const KernelVerdict::Result &result = verdict.results.back();
    if (!(result.error <= result.bound && result.worst <= 2 * result.bound))
      verdict.problem = "differs from the interpreter";
  }
  return verdict;
}

/// Median seconds of five runs.
static absl::StatusOr<double> medianSeconds(rt::Machine &machine, std::string_view program) {
  std::vector<double> seconds;
  for (int i = 0; i < 8; ++i) {
    auto start = std::chrono::steady_clock::now();
    if (absl::Status status = machine.run(program, {}, {}); !status.ok())
      return status;
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  seconds.erase(seconds.begin(), seconds.begin() + 3); // code is loaded, the graph is made
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

absl::StatusOr<KernelVerdict> KernelRun::time(KernelOp kernel, ArrayRef<Array> inputs, int repeats) const {
  KernelVerdict verdict;
  verdict.kernel = nameOf(kernel);
  OwningOpRef<ModuleOp> module = moduleOf(kernel);
  addStates(*module, kernel);
  addCalls(*module, kernel, "once", 1);
  addCalls(*module, kernel, "often", 1 + repeats);
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = machineFor(*module, *this);
  if (!machine.ok())
    return machine.status();
  for (const rt::StateEntry &entry : (*machine)->executable().states) {
    StringRef number = entry.name;
    unsigned place = 0;
    if (!number.consume_front("in") || number.getAsInteger(10, place))
      continue;
    rt::Tensor tensor(entry.type, entry.shape);
    put(tensor, inputs[place]);
    if (absl::Status status = (*machine)->writeState(entry.name, tensor); !status.ok())
      return status;
  }
  absl::StatusOr<double> once = medianSeconds(**machine, "once"), often = medianSeconds(**machine, "often");
  if (!once.ok() || !often.ok())
    return once.ok() ? often.status() : once.status();
  verdict.seconds = (*often - *once) / repeats;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    verdict.bytes += static_cast<double>(tensor.getNumElements()) * tensor.getElementTypeBitWidth() / 8;
  }
  for (Operation &op : kernel.getBody().front())
    if (auto priced = dyn_cast<CostOpInterface>(op))
      verdict.flops += priced.getCost().productFlops;
  return verdict;
}

std::string KernelVerdict::text() const {
  std::string line = llvm::formatv("{0} {1,-44}", problem.empty() ? "ok  " : "FAIL", kernel);
  for (const Result &result : results)
    line += llvm::formatv(" {0:e2} (worst {1:e2}, bound {2:e1})", result.error, result.worst, result.bound);
  if (seconds > 0)
    line += llvm::formatv(" {0,9:F1} us {1,7:F0} GB/s {2,7:F1} TFLOP/s", seconds * 1e6, bytes / seconds / 1e9,
                          flops / seconds / 1e12);
  return problem.empty() ? line : line + "  " + problem;
}

std::string KernelVerdict::json() const {
  rt::OrderedJson object{{"kernel", kernel}, {"ok", problem.empty()}};
  if (!problem.empty())
    object["problem"] = problem;
  for (const Result &result : results)
    object["results"].push_back(
        {{"error", result.error}, {"worst", result.worst}, {"bound", result.bound}, {"hash", result.hash}});
  if (seconds > 0) {
    object["seconds"] = seconds;
    object["bytes"] = bytes;
    object["flops"] = flops;
  }
  return rt::dumpJson(object);
}

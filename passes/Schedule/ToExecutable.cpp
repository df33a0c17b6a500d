//===- ToExecutable.cpp - A planned schedule as an executable -------------===//

#include "passes/Schedule/ToExecutable.h"

#include "passes/Codegen/Gpu/Gpu.h"
#include "passes/Schedule/Buffers.h"
#include "passes/Schedule/KernelCache.h"

#include <atomic>
#include <thread>

using namespace mlir;
using namespace weft;

rt::ElementType weft::toElementType(Type element) {
  if (element.isF64())
    return rt::ElementType::F64;
  if (element.isBF16())
    return rt::ElementType::BF16;
  if (element.isInteger(32))
    return rt::ElementType::I32;
  return rt::ElementType::F32;
}

rt::StateEntry weft::toStateEntry(StateOp state) {
  rt::StateEntry entry;
  entry.name = state.getSymName().str();
  entry.role = static_cast<rt::StateEntry::Role>(state.getRole());
  RankedTensorType type = state.getTensorType();
  entry.type = toElementType(type.getElementType());
  entry.shape.assign(type.getShape().begin(), type.getShape().end());
  for (StringAttr axis : axesOf(type))
    entry.axes.push_back(axis.getValue().str());
  entry.offset = state.getOffset().value_or(0);
  entry.init.kind = static_cast<rt::InitRule::Kind>(state.getInit().getKind());
  entry.init.a = numberOf(state.getInit().getA());
  entry.init.b = state.getInit().getB() ? numberOf(state.getInit().getB()) : 0;
  if (std::optional<SlicesAttr> slices = state.getSlices()) {
    entry.fullShape.assign(slices->getFullShape().begin(), slices->getFullShape().end());
    entry.firstAxis = slices->getFirstAxis();
    entry.axisCount = slices->getAxisCount();
    entry.kept.assign(slices->getKept().begin(), slices->getKept().end());
  }
  return entry;
}

static rt::Port toPort(Attribute name, Attribute type) {
  auto tensor = cast<RankedTensorType>(cast<TypeAttr>(type).getValue());
  rt::Port port;
  port.name = cast<StringAttr>(name).getValue().str();
  port.type = toElementType(tensor.getElementType());
  port.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  return port;
}

namespace {

class Writer {
public:
  explicit Writer(rt::Executable &executable) : executable(executable) {}

  void addKernel(KernelOp op, rt::Kernel kernel) {
    index[op.getSymName()] = static_cast<uint32_t>(executable.kernels.size());
    kernel.name = op.getSymName().str();
    kernel.flops = 0;
    op.walk([&](CostOpInterface priced) { kernel.flops += priced.getCost().productFlops; });
    executable.kernels.push_back(std::move(kernel));
  }
  void addProgram(ProgramOp op);

private:
  rt::Operand operandOf(Value value);
  uint32_t builtin(rt::Kernel::Kind kind, StringRef name);

  rt::Executable &executable;
  llvm::StringMap<uint32_t> index;
};

} // namespace

rt::Operand Writer::operandOf(Value value) {
  rt::Operand operand;
  operand.bytes = static_cast<uint64_t>(bytesOf(value.getType()));
  uint64_t start = 0;
  while (auto view = value.getDefiningOp<ViewOp>()) {
    auto type = cast<RankedTensorType>(view.getType());
    start += view.getStart() * (type.getElementTypeBitWidth() / 8);
    value = view.getBuffer();
  }
  auto buffer = value.getDefiningOp<BufferOp>();
  operand.space = static_cast<rt::Space>(buffer.getSpace());
  operand.offset = buffer.getOffset().value_or(0);
  bool port = operand.space == rt::Space::Input || operand.space == rt::Space::Result;
  (port ? operand.start : operand.offset) += start;
  return operand;
}

uint32_t Writer::builtin(rt::Kernel::Kind kind, StringRef name) {
  auto [entry, isNew] = index.try_emplace(name, static_cast<uint32_t>(executable.kernels.size()));
  if (isNew) {
    rt::Kernel kernel;
    kernel.name = name.str();
    kernel.kind = kind;
    executable.kernels.push_back(std::move(kernel));
  }
  return entry->second;
}

/// Operands from here on are written.
static size_t firstWritten(Operation &call) {
  if (auto launch = dyn_cast<CallOp>(call))
    return launch.getIns().size();
  return isa<CopyOp>(call) ? 1 : 0;
}

void Writer::addProgram(ProgramOp op) {
  rt::Program program;
  program.name = op.getSymName().str();
  for (auto [name, type] : llvm::zip(op.getInputs(), op.getInputTypes()))
    program.inputs.push_back(toPort(name, type));
  for (auto [name, type] : llvm::zip(op.getResults(), op.getResultTypes()))
    program.results.push_back(toPort(name, type));
  for (Operation &inner : op.getBody().front()) {
    rt::Call call;
    if (auto launch = dyn_cast<CallOp>(inner)) {
      call.kernel = index.lookup(launch.getKernel());
      call.grid = static_cast<int64_t>(launch.getGrid());
    } else if (isa<FillOp>(inner)) {
      call.kernel = builtin(rt::Kernel::Kind::Zero, "fill");
    } else if (isa<CopyOp>(inner)) {
      call.kernel = builtin(rt::Kernel::Kind::Copy, "copy");
    } else {
      continue;
    }
    for (Value operand : inner.getOperands())
      call.operands.push_back(operandOf(operand));
    for (size_t i = firstWritten(inner); i < call.operands.size(); ++i)
      call.operands[i].written = true;
    call.beside = inner.hasAttr(kBesideAttr);
    // On the CPU a product takes A, B and C; what it adds to is C itself.
    const rt::Gemm &gemm = executable.kernels[call.kernel].gemm;
    if (gemm.accumulate && !gemm.separate && call.operands.size() == 4)
      call.operands.erase(call.operands.begin() + 2);
    // The auxiliary that it reads stands last.
    if (gemm.epilogue == rt::Gemm::Epilogue::GeluGrad)
      std::swap(call.operands[2], call.operands[3]);
    program.calls.push_back(std::move(call));
  }
  executable.arenaBytes = std::max(executable.arenaBytes, static_cast<uint64_t>(op.getArena().value_or(0)));
  executable.programs.push_back(std::move(program));
}

/// Compiles on `threads` threads; kernels take very unlike times, so each takes the next.
static bool compileAll(ArrayRef<KernelOp> kernels, std::vector<rt::Kernel> &compiled,
                       const ExecutableOptions &options, CompileReport &report) {
  KernelCache cache = options.gpu ? KernelCache(options.cacheFolder, *options.gpu)
                                  : KernelCache(options.cacheFolder, options.target);
  std::atomic<size_t> next = 0;
  std::atomic<int> fromCache = 0;
  std::atomic<bool> failed = false;
  auto work = [&] {
    for (size_t i = next++; i < kernels.size(); i = next++) {
      if (std::optional<rt::Kernel> known = cache.find(structuralHash(kernels[i]))) {
        compiled[i] = std::move(*known);
        ++fromCache;
        continue;
      }
      FailureOr<rt::Kernel> kernel = options.gpu ? compileGpuKernel(kernels[i], *options.gpu)
                                                 : compileKernel(kernels[i], options.target);
      if (mlir::failed(kernel)) {
        failed = true;
        continue;
      }
      cache.store(*kernel);
      compiled[i] = std::move(*kernel);
    }
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < options.threads; ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  report.kernels = static_cast<int>(kernels.size());
  report.fromCache = fromCache;
  report.compiled = report.kernels - fromCache;
  return !failed;
}

FailureOr<rt::Executable> weft::toExecutable(ModuleOp module, const ExecutableOptions &options,
                                             CompileReport *report) {
  rt::Executable executable;
  executable.target =
      options.gpu ? options.gpu->chip : "cpu:" + options.target.triple + "," + options.target.cpu;
  executable.build = buildStamp();
  for (StateOp state : module.getOps<StateOp>())
    executable.states.push_back(toStateEntry(state));
  if (auto bytes = module->getAttrOfType<IntegerAttr>("weft.state_bytes"))
    executable.stateBytes = static_cast<uint64_t>(bytes.getInt());
  SmallVector<KernelOp> kernels(module.getOps<KernelOp>());
  std::vector<rt::Kernel> compiled(kernels.size());
  CompileReport counts;
  if (!compileAll(kernels, compiled, options, counts))
    return failure();
  if (report)
    *report = counts;
  Writer writer(executable);
  for (auto [op, kernel] : llvm::zip(kernels, compiled))
    writer.addKernel(op, std::move(kernel));
  for (ProgramOp program : module.getOps<ProgramOp>())
    writer.addProgram(program);
  return executable;
}

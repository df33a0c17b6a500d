//===- Parts.cpp - Kernels and memory of a planned schedule ---------------===//

#include "tools/weft/inspect/Parts.h"

#include "tools/weft/Costs.h"
#include "tools/weft/inspect/PassTrail.h"

#include "passes/Codegen/Codegen.h"
#include "passes/Codegen/Gpu/Gpu.h"
#include "passes/Schedule/Buffers.h"
#include "passes/Tile/Ptxas.h"
#include "runtime/cpu/Profile.h"

#include "absl/strings/str_cat.h"

#include <atomic>
#include <map>
#include <thread>

using namespace mlir;
using namespace weft;
using namespace weft::inspect;

namespace {

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

std::string classOf(KernelOp kernel, bool gpu) {
  rt::Kernel named;
  named.name = kernel.getSymName().str();
  named.kind = (gpu ? gpuGemmOf(kernel) : gemmOf(kernel)) ? rt::Kernel::Kind::Gemm : rt::Kernel::Kind::Code;
  return rt::kindOf(named);
}

/// What ptxas says of one kernel, into `json`.
void assembleOne(KernelOp kernel, const GpuTarget &target, rt::OrderedJson &json) {
  FailureOr<rt::Kernel> compiled = compileGpuKernel(kernel, target);
  if (failed(compiled)) {
    json["note"] = "does not compile";
    return;
  }
  if (compiled->kind != rt::Kernel::Kind::Code) {
    json["note"] = "a product through cuBLASLt";
    return;
  }
  json["threads"] = compiled->launch.threads;
  json["scratch"] = compiled->scratchBytes;
  absl::StatusOr<PtxasReport> report = assemble(compiled->object, target.chip);
  if (!report.ok()) {
    json["note"] = std::string(report.status().message());
    return;
  }
  json["registers"] = report->registers;
  json["shared"] = static_cast<uint64_t>(report->sharedBytes) + compiled->launch.sharedBytes;
  json["spill"] = report->spillStoreBytes + report->spillLoadBytes;
}

void assembleAll(ArrayRef<KernelOp> kernels, const std::string &chip, rt::OrderedJson &list) {
  const GpuTarget target{chip};
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < kernels.size(); i = next++)
      assembleOne(kernels[i], target, list[i]);
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

BufferOp baseOf(Value value) {
  while (auto view = value.getDefiningOp<ViewOp>())
    value = view.getBuffer();
  return value.getDefiningOp<BufferOp>();
}

std::string typeText(Type type) {
  std::string text;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return text;
  llvm::raw_string_ostream stream(text);
  stream << tensor.getElementType() << " [";
  ArrayRef<StringAttr> axes = axesOf(type);
  for (int64_t i = 0; i < tensor.getRank(); ++i) {
    stream << (i ? ", " : "");
    if (static_cast<size_t>(i) < axes.size())
      stream << axes[static_cast<size_t>(i)].getValue() << " ";
    stream << tensor.getDimSize(i);
  }
  stream << "]";
  return text;
}

/// Number of each distinct text, in order of its first use.
class Numbering {
public:
  int64_t operator()(const std::string &text) {
    auto [found, isNew] = numbers.try_emplace(text, static_cast<int64_t>(list.size()));
    if (isNew)
      list.push_back(text);
    return found->second;
  }
  rt::OrderedJson list = rt::OrderedJson::array();

private:
  std::map<std::string, int64_t> numbers;
};

std::string calledBy(Operation &op) {
  if (auto call = dyn_cast<CallOp>(op))
    return call.getKernel().str();
  return isa<FillOp>(op) ? "fill" : "copy";
}

/// Whether `op` writes its operand number `i`.
bool writes(Operation &op, unsigned i) {
  if (auto call = dyn_cast<CallOp>(op))
    return i >= call.getIns().size();
  return isa<FillOp>(op) || i == 1;
}

rt::OrderedJson programPlan(ProgramOp program) {
  Numbering kernel, type;
  rt::OrderedJson calls = rt::OrderedJson::array();
  struct Life {
    int64_t first = 0, last = 0, writer = -1;
  };
  llvm::MapVector<Operation *, Life> lives;
  int64_t time = 0, ports = 0;
  for (Operation &op : program.getBody().front()) {
    if (isa<BufferOp, ViewOp>(op))
      continue;
    const int64_t number = kernel(calledBy(op));
    calls.push_back(number);
    for (OpOperand &operand : op.getOpOperands()) {
      BufferOp buffer = baseOf(operand.get());
      if (!buffer || buffer.getSpace() != BufferSpace::Arena)
        continue;
      auto [entry, isNew] = lives.insert({buffer, {time, time, -1}});
      entry->second.last = time;
      if (entry->second.writer < 0 && writes(op, operand.getOperandNumber()))
        entry->second.writer = number;
    }
    ++time;
  }
  rt::OrderedJson buffers = rt::OrderedJson::array();
  for (const auto &[op, life] : lives) {
    auto buffer = cast<BufferOp>(op);
    buffers.push_back({life.first, life.last, bytesOf(buffer.getType()), buffer.getOffset().value_or(0),
                       type(typeText(buffer.getType())), life.writer});
  }
  for (ArrayAttr types : {program.getInputTypes(), program.getResultTypes()})
    for (Attribute attribute : types)
      ports += bytesOf(cast<TypeAttr>(attribute).getValue());
  return {{"name", program.getSymName().str()},
          {"arena", program.getArena().value_or(0)},
          {"ports", ports},
          {"kernels", kernel.list},
          {"calls", calls},
          {"types", type.list},
          {"buffers", buffers}};
}

} // namespace

rt::OrderedJson weft::inspect::kernelList(ModuleOp schedule, const std::string &chip, bool assemble,
                                          const Say &say) {
  std::map<std::string, std::map<std::string, int64_t>> calls; // by kernel and program
  for (ProgramOp program : schedule.getOps<ProgramOp>())
    for (CallOp call : program.getOps<CallOp>())
      ++calls[call.getKernel().str()][program.getSymName().str()];
  rt::OrderedJson list = rt::OrderedJson::array();
  SmallVector<KernelOp> kernels;
  for (KernelOp kernel : schedule.getOps<KernelOp>()) {
    const std::string name = kernel.getSymName().str();
    const auto counted = calls.find(name);
    if (counted == calls.end())
      continue;
    const Cost cost = costOf(kernel.getBody());
    kernels.push_back(kernel);
    list.push_back({{"name", name},
                    {"class", classOf(kernel, !chip.empty())},
                    {"calls", counted->second},
                    {"bytes", bytesIn(kernel.getArgumentTypes()) + bytesIn(kernel.getResultTypes())},
                    {"flops", cost.productFlops},
                    {"other", cost.otherFlops},
                    {"ops", opsOf(kernel.getBody())}});
  }
  if (!assemble || chip.empty())
    return list;
  if (absl::StatusOr<std::string> ptxas = findPtxas(); !ptxas.ok()) {
    say("no ptxas here: registers and shared memory are left out");
    return list;
  }
  say(absl::StrCat("assembling ", kernels.size(), " kernels for ", chip));
  assembleAll(kernels, chip, list);
  return list;
}

rt::OrderedJson weft::inspect::memoryPlan(ModuleOp schedule) {
  rt::OrderedJson entries = rt::OrderedJson::array(), programs = rt::OrderedJson::array();
  for (StateOp state : schedule.getOps<StateOp>())
    entries.push_back({state.getSymName().str(), stringifyRole(state.getRole()).str(),
                       typeText(state.getTensorType()), state.getOffset().value_or(0),
                       bytesOf(state.getTensorType())});
  for (ProgramOp program : schedule.getOps<ProgramOp>())
    programs.push_back(programPlan(program));
  int64_t bytes = 0;
  if (auto total = schedule->getAttrOfType<IntegerAttr>("weft.state_bytes"))
    bytes = total.getInt();
  return {{"state", {{"bytes", bytes}, {"entries", entries}}}, {"programs", programs}};
}

//===- CudaPrepare.cpp - Loading an executable on the GPU -----------------===//
#include "runtime/cuda/CudaMachine.h"

#include "runtime/core/ExecutableCheck.h"
#include "runtime/cpu/Memory.h"
#include "runtime/cuda/TensorMaps.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_cat.h"

namespace weft::rt::cuda {
namespace {

constexpr uint64_t kPortAlignment = 256; // bytes, as cuMemAlloc's
constexpr uint64_t kRuns = 8, kRingBytes = 64 << 20, kSmallestRing = 256 << 10;
constexpr unsigned char kPoison = 0xFF; // all ones: NaN in F32, F64 and BF16

uint64_t alignUp(uint64_t bytes) { return (bytes + kPortAlignment - 1) / kPortAlignment * kPortAlignment; }

std::string profilePath() {
  const char *path = std::getenv("WEFT_PROFILE");
  return path ? path : "";
}

bool tunesProducts() {
  const char *word = std::getenv("WEFT_CUDA_TUNE");
  return !word || std::string_view(word) != "0";
}

} // namespace

CudaMachine::CudaMachine(Executable executable, const CudaOptions &options, std::unique_ptr<Gpu> gpu)
    : exe(std::move(executable)), options(options), gpu(std::move(gpu)), modules(*this->gpu),
      products(*this->gpu), profile(exe, profilePath()) {
  if (options.synchronous)
    this->options.graphs = false;
}

absl::StatusOr<std::unique_ptr<CudaMachine>> CudaMachine::make(Executable executable,
                                                               const CudaOptions &options) {
  if (absl::Status status = checkExecutable(executable); !status.ok())
    return status;
  absl::StatusOr<std::unique_ptr<Gpu>> gpu = Gpu::open(options.device);
  if (!gpu.ok())
    return gpu.status();
  std::unique_ptr<CudaMachine> machine(new CudaMachine(std::move(executable), options, std::move(*gpu)));
  if (absl::Status status = machine->load(); !status.ok())
    return status;
  return machine;
}

absl::Status CudaMachine::load() {
  placePorts();
  absl::StatusOr<uint64_t> free = gpu->freeBytes();
  if (!free.ok())
    return free.status();
  freeAtStart = *free;
  // What can't fit is refused before minutes of compiling; scratch is known after.
  if (absl::Status status = checkRoom(0); !status.ok())
    return status;
  if (absl::Status status = modules.load(exe, options); !status.ok())
    return status;
  scratchAll = scratchBytes();
  if (absl::Status status = checkRoom(scratchAll); !status.ok())
    return status;
  if (absl::Status status = allocate(); !status.ok())
    return status;
  if (absl::Status status = makeEvents(); !status.ok())
    return status;
  for (auto &[name, prepared] : programs)
    if (absl::Status status = prepare(prepared); !status.ok())
      return status;
  if (tunesProducts())
    if (absl::Status status = tuneProducts(); !status.ok())
      return status;
  for (size_t i = 0; i < exe.states.size(); ++i)
    stateNumbers.emplace(exe.states[i].name, i);
  return profile.on() ? timeKernels() : absl::OkStatus();
}

absl::Status CudaMachine::tuneProducts() {
  absl::StatusOr<std::string> remark = products.tune(arena, exe.arenaBytes, options.cacheFolder);
  if (remark.ok() && !remark->empty())
    std::fprintf(stderr, "remark: %s\n", remark->c_str());
  return remark.status();
}

void CudaMachine::placePorts() {
  for (const Program &program : exe.programs) {
    Prepared &prepared = programs[program.name];
    prepared.program = &program;
    if (program.name == "prepare")
      preparation = &prepared;
    uint64_t end = 0;
    auto place = [&](const std::vector<Port> &list, std::vector<uint64_t> &places) {
      for (const Port &port : list) {
        places.push_back(end);
        end = alignUp(end + *denseBytes(port.type, port.shape));
      }
    };
    place(program.inputs, prepared.inputs);
    prepared.inputBytes = end;
    place(program.results, prepared.results);
    prepared.endBytes = end;
    portBytes = std::max(portBytes, end); // programs run one after the other
    placeEarly(prepared);
    ringBytes = std::max(ringBytes, prepared.pinnedBytes);
  }
  // Room for the largest, and for several small ones at once.
  ringBytes = std::max({ringBytes, std::min(kRuns * portBytes, kRingBytes), kSmallestRing});
}

/// Entries next to each other come in one copy.
void CudaMachine::placeEarly(Prepared &prepared) const {
  const Program &program = *prepared.program;
  prepared.pinnedBytes = prepared.endBytes;
  for (const StateEntry &entry : exe.states) {
    const uint64_t begin = entry.offset, end = begin + *denseBytes(entry.type, entry.shape);
    if (entry.role != StateEntry::Role::Control || end - begin > kMovedLater || &prepared == preparation)
      continue;
    auto writes = [&](const Call &call) {
      return std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand &operand) {
        return operand.written && operand.space == Space::State && operand.offset < end &&
               begin < operand.offset + operand.bytes;
      });
    };
    auto last = std::find_if(program.calls.rbegin(), program.calls.rend(), writes);
    if (last == program.calls.rend())
      continue;
    prepared.earlyBehind = std::max(prepared.earlyBehind, static_cast<size_t>(program.calls.rend() - last));
    if (prepared.early.empty() || begin < prepared.early.back().state ||
        begin > prepared.early.back().state + prepared.early.back().bytes + kPortAlignment)
      prepared.early.push_back({begin, end - begin, 0});
    else
      prepared.early.back().bytes = std::max(prepared.early.back().bytes, end - prepared.early.back().state);
  }
  for (Early &early : prepared.early) {
    early.place = prepared.pinnedBytes;
    prepared.pinnedBytes = alignUp(prepared.pinnedBytes + early.bytes);
  }
}

uint64_t CudaMachine::workspaceBytes() const {
  bool products = std::any_of(exe.kernels.begin(), exe.kernels.end(),
                              [](const Kernel &kernel) { return kernel.kind == Kernel::Kind::Gemm; });
  return products ? Products::kWorkspaceBytes : 0;
}

/// Blocks that `call` starts.
unsigned CudaMachine::blocksOf(const Call &call) const {
  const LoadedKernel &kernel = modules.kernel(call.kernel);
  int64_t fit = int64_t{gpu->facts.multiprocessors} * kernel.blocksPerMultiprocessor;
  int64_t most = options.grid > 0 ? options.grid : fit;
  return static_cast<unsigned>(std::min<int64_t>({call.grid, most, std::numeric_limits<int32_t>::max()}));
}

uint64_t CudaMachine::scratchBytes() const {
  uint64_t most = 0;
  for (const Program &program : exe.programs)
    for (const Call &call : program.calls)
      if (const Kernel &kernel = exe.kernels[call.kernel]; kernel.kind == Kernel::Kind::Code)
        most = std::max(most, kernel.scratchBytes * blocksOf(call));
  return most;
}

absl::Status CudaMachine::checkRoom(uint64_t scratchNow) {
  absl::StatusOr<uint64_t> free = gpu->freeBytes();
  if (!free.ok())
    return free.status();
  absl::Status status = checkMemory(exe, portBytes + scratchNow + workspaceBytes(), *free);
  if (status.ok())
    return status;
  return absl::ResourceExhaustedError(
      absl::StrCat("cuda:", gpu->facts.index, " (", gpu->facts.name, "): ", std::string(status.message())));
}

absl::Status CudaMachine::allocate() {
  DevicePointer workspace = 0;
  struct Wanted {
    DevicePointer *base;
    uint64_t bytes;
    const char *name;
  };
  for (const Wanted &block :
       {Wanted{&state, exe.stateBytes, "state"}, Wanted{&arena, exe.arenaBytes, "arena"},
        Wanted{&ports, portBytes, "inputs and results"}, Wanted{&scratch, scratchAll, "scratch of kernels"},
        Wanted{&workspace, workspaceBytes(), "workspace of products"}}) {
    absl::StatusOr<DevicePointer> base = gpu->allocate(block.bytes, block.name, options.guard);
    if (!base.ok())
      return base.status();
    *block.base = *base;
  }
  absl::StatusOr<std::byte *> host = gpu->allocatePinned(ringBytes, "inputs and results");
  if (!host.ok())
    return host.status();
  pinned = *host;
  if (workspace)
    if (absl::Status status = products.start(workspace); !status.ok())
      return status;
  // State starts at zero; the other blocks hold whatever was there, or the poison.
  if (absl::Status status = gpu->fill(state, exe.stateBytes, 0); !status.ok())
    return status;
  if (options.poison)
    if (absl::Status status = gpu->fill(scratch, scratchAll, kPoison); !status.ok())
      return status;
  return gpu->wait("filling state with zeros");
}

DevicePointer CudaMachine::addressOf(const Operand &operand, const Prepared &prepared) const {
  switch (operand.space) {
  case Space::State:
    return state + operand.offset;
  case Space::Arena:
    return arena + operand.offset;
  case Space::Input:
    return ports + prepared.inputs[operand.offset] + operand.start;
  case Space::Result:
    return ports + prepared.results[operand.offset] + operand.start;
  }
  return 0;
}

absl::StatusOr<CudaMachine::Step> CudaMachine::prepareStep(const Call &call, const Prepared &prepared) {
  const Kernel &kernel = exe.kernels[call.kernel];
  Step step;
  step.kernel = call.kernel;
  step.bytes = call.operands.empty() ? 0 : call.operands[0].bytes;
  for (const Operand &operand : call.operands) {
    step.operands.push_back(addressOf(operand, prepared));
    step.moved += static_cast<double>(operand.bytes);
  }
  if (kernel.kind == Kernel::Kind::Gemm) {
    absl::StatusOr<size_t> product = products.prepare(kernel, step.operands);
    if (!product.ok())
      return product.status();
    step.product = *product;
  }
  if (kernel.kind != Kernel::Kind::Code)
    return step;
  step.blocks = blocksOf(call);
  for (const TensorMap &map : kernel.launch.maps) {
    absl::StatusOr<EncodedTensorMap> encoded =
        encodeTensorMap(gpu->driver, map, step.operands[map.operand], kernel.name, step.maps.size());
    if (!encoded.ok())
      return encoded.status();
    step.maps.push_back(*encoded);
  }
  return step;
}

/// Parameters of the entry: addresses, tensor maps, scratch.
void CudaMachine::setParameters(Step &step) const {
  size_t operandCount = step.operands.size();
  if (exe.kernels[step.kernel].scratchBytes > 0)
    step.operands.push_back(scratch);
  for (size_t i = 0; i < operandCount; ++i)
    step.parameters.push_back(&step.operands[i]);
  for (EncodedTensorMap &map : step.maps)
    step.parameters.push_back(&map);
  if (step.operands.size() > operandCount)
    step.parameters.push_back(&step.operands.back());
}

/// Whether the entry takes what the call passes: with one too few a kernel would
/// read what nobody wrote.
absl::Status CudaMachine::checkParameters(const Step &step) const {
  const Driver &driver = gpu->driver;
  const Kernel &kernel = exe.kernels[step.kernel];
  bool hasScratch = kernel.scratchBytes > 0;
  size_t operandCount = step.operands.size() - (hasScratch ? 1 : 0);
  for (size_t i = 0; driver.funcGetParamInfo && i <= step.parameters.size(); ++i) {
    bool past = i == step.parameters.size(), map = i >= operandCount && i < operandCount + step.maps.size();
    size_t offset = 0, bytes = 0;
    if (driver.funcGetParamInfo(modules.kernel(step.kernel).function, i, &offset, &bytes) != kSuccess)
      bytes = 0;
    if (bytes == (past ? 0 : map ? sizeof(EncodedTensorMap) : sizeof(DevicePointer)))
      continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel ", kernel.name, ": a call passes ", operandCount, " addresses, ", step.maps.size(),
        " tensor maps and ", hasScratch ? "scratch" : "no scratch", ", but parameter ", i, " of its entry ",
        bytes == 0 ? "is missing" : absl::StrCat("has ", bytes, " bytes")));
  }
  return absl::OkStatus();
}

absl::Status CudaMachine::prepare(Prepared &prepared) {
  for (const Call &call : prepared.program->calls) {
    absl::StatusOr<Step> step = prepareStep(call, prepared);
    if (!step.ok())
      return step.status();
    prepared.steps.push_back(std::move(*step));
  }
  for (Step &step : prepared.steps) { // they stay where they are from here on
    if (exe.kernels[step.kernel].kind != Kernel::Kind::Code)
      continue;
    setParameters(step);
    if (absl::Status status = checkParameters(step); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status CudaMachine::makeEvent(Event &event, unsigned flags) {
  return gpu->checked(gpu->driver.eventCreate(&event, flags), "cuEventCreate");
}

absl::Status CudaMachine::makeEvents() {
  for (std::array<Event, kFlights> *events : {&landed, &arrived})
    for (Event &event : *events)
      if (absl::Status status = makeEvent(event, kEventNoTiming); !status.ok())
        return status;
  for (auto &[name, prepared] : programs)
    for (Event &event : prepared.around)
      if (absl::Status status = makeEvent(event, 0); !status.ok())
        return status;
  return absl::OkStatus();
}

} // namespace weft::rt::cuda

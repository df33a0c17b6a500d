//===- CudaMachine.cpp - Running programs on the GPU ----------------------===//
#include "runtime/cuda/CudaMachine.h"

#include "runtime/cuda/Fills.h"
#include "runtime/cuda/StateCopy.h"

#include "runtime/core/ExecutableCheck.h"
#include "runtime/core/TensorCheck.h"
#include "runtime/cpu/Memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace cuda {
namespace {

constexpr unsigned char kPoison = 0xFF; // all ones: NaN in F32, F64 and BF16

} // namespace

CudaMachine::~CudaMachine() {
  gpu->attach();
  if (!flights.empty())
    gpu->driver.streamSynchronize(gpu->stream); // copies still use the ring
  for (const std::array<Event, kFlights> *events : {&landed, &arrived})
    for (Event event : *events)
      if (event)
        gpu->driver.eventDestroy(event);
  for (auto &[name, prepared] : programs) {
    for (GraphExec graph : prepared.graphs)
      if (graph)
        gpu->driver.graphExecDestroy(graph);
    for (const auto &list :
         {std::span<const Event>(prepared.events), std::span<const Event>(prepared.around)})
      for (Event event : list)
        if (event)
          gpu->driver.eventDestroy(event);
  }
}

absl::Status CudaMachine::startCode(const Step &step) {
  const Kernel &kernel = exe.kernels[step.kernel];
  const LoadedKernel &loaded = modules.kernel(step.kernel);
  const GpuLaunch &launch = kernel.launch;
  if (step.blocks == 0)
    return absl::OkStatus();
  // The driver does not write parameters.
  auto **parameters = const_cast<void **>(step.parameters.data());
  Result result = gpu->driver.launchKernel(loaded.function, step.blocks, 1, 1, launch.threads, 1, 1,
                                           launch.sharedBytes, gpu->stream, parameters, nullptr);
  if (result == kSuccess)
    return absl::OkStatus();
  return gpu->checked(result, absl::StrCat("kernel ", kernel.name, " can't be started with ", step.blocks,
                                           " blocks of ", launch.threads, " threads, ", loaded.registers,
                                           " registers and ", launch.sharedBytes, " bytes of shared memory"));
}

absl::Status CudaMachine::launch(const Step &step) {
  const Kernel &kernel = exe.kernels[step.kernel];
  ++gpu->counters.launches;
  switch (kernel.kind) {
  case Kernel::Kind::Code:
    return startCode(step);
  case Kernel::Kind::Gemm:
    return products.launch(step.product, kernel.name);
  case Kernel::Kind::Zero:
    return gpu->fill(step.operands[0], step.bytes, 0);
  case Kernel::Kind::Copy:
    if (step.bytes == 0 || step.operands[0] == step.operands[1])
      return absl::OkStatus();
    return gpu->checked(
        gpu->driver.memcpyDtoDAsync(step.operands[1], step.operands[0], step.bytes, gpu->stream),
        absl::StrCat("kernel ", kernel.name));
  }
  return absl::OkStatus();
}

/// With `synchronous`: an error is this call's.
absl::Status CudaMachine::afterCall(const Prepared &prepared, const Step &step) {
  if (!options.synchronous)
    return absl::OkStatus();
  std::string what =
      absl::StrCat("program ", prepared.program->name, ", call ", &step - prepared.steps.data(), " (kernel ",
                   exe.kernels[step.kernel].name, ")");
  if (absl::Status status = gpu->wait(what); !status.ok() || !options.guard)
    return status;
  return gpu->checkGuards(what);
}

/// The nodes that the next one captured waits for.
absl::StatusOr<std::vector<GraphNode>> CudaMachine::lastNodes() {
  int status = 0;
  uint64_t number = 0;
  Graph graph = nullptr;
  const GraphNode *nodes = nullptr;
  size_t count = 0;
  if (absl::Status told = gpu->checked(
          gpu->driver.streamGetCaptureInfo(gpu->stream, &status, &number, &graph, &nodes, &count),
          "a graph's last nodes");
      !told.ok())
    return told;
  return std::vector<GraphNode>(nodes, nodes + count);
}

/// Lets what is captured next wait for these steps; `nodes`: the last of each step,
/// and behind all steps those of what stands before the first.
absl::Status CudaMachine::wait(const std::vector<uint32_t> &steps,
                               const std::vector<std::vector<GraphNode>> &nodes) {
  std::vector<GraphNode> all = steps.empty() ? nodes.back() : std::vector<GraphNode>();
  for (uint32_t step : steps)
    all.insert(all.end(), nodes[step].begin(), nodes[step].end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return gpu->checked(gpu->driver.streamUpdateCaptureDependencies(gpu->stream, all.data(), all.size(),
                                                                  kSetCaptureDependencies),
                      "a branch of a graph");
}

/// From and to which step: up to where state comes early, and the rest; the first part is all
/// where none does.
std::pair<size_t, size_t> CudaMachine::stepsOf(const Prepared &prepared, size_t part) const {
  const size_t end = prepared.steps.size(), middle = prepared.earlyBehind ? prepared.earlyBehind : end;
  return part == 0 ? std::pair(size_t{0}, middle) : std::pair(middle, end);
}

/// A part's calls on the stream; in branches when they are `captured`.
absl::Status CudaMachine::enqueue(Prepared &prepared, size_t part, bool captured) {
  const Driver &driver = gpu->driver;
  const auto [from, to] = stepsOf(prepared, part);
  uint64_t resultBytes = prepared.endBytes - prepared.inputBytes;
  if (options.poison && part == 0)
    for (auto [base, bytes] :
         {std::pair(arena, exe.arenaBytes), std::pair(ports + prepared.inputBytes, resultBytes)})
      if (absl::Status status = gpu->fill(base, bytes, kPoison); !status.ok())
        return status;
  const bool branches = captured && !prepared.waits.empty();
  std::vector<std::vector<GraphNode>> nodes(branches ? prepared.steps.size() + 1 : 0);
  auto keepNodes = [&](size_t i) {
    absl::StatusOr<std::vector<GraphNode>> last = lastNodes();
    if (last.ok())
      nodes[i] = *std::move(last);
    return last.status();
  };
  if (branches)
    if (absl::Status status = keepNodes(prepared.steps.size()); !status.ok())
      return status;
  for (size_t i = 0; branches && i < from; ++i)
    nodes[i] = nodes.back(); // done before this part begins
  for (size_t i = from; i < to; ++i) {
    if (profile.on())
      driver.eventRecord(prepared.events[i], gpu->stream);
    if (branches)
      if (absl::Status status = wait(prepared.waits[i], nodes); !status.ok())
        return status;
    if (absl::Status status = launch(prepared.steps[i]); !status.ok())
      return status;
    if (branches)
      if (absl::Status status = keepNodes(i); !status.ok())
        return status;
    if (absl::Status status = afterCall(prepared, prepared.steps[i]); !status.ok())
      return status;
  }
  if (profile.on() && to == prepared.steps.size())
    driver.eventRecord(prepared.events.back(), gpu->stream);
  return absl::OkStatus();
}

/// Which steps wait for which; known when products are chosen, for their workspace.
void CudaMachine::planBranches(Prepared &prepared) const {
  const std::vector<Call> &calls = prepared.program->calls;
  const bool all = options.branches == CudaOptions::Branches::All;
  if (options.branches == CudaOptions::Branches::None ||
      (!all && std::none_of(calls.begin(), calls.end(), [](const Call &call) { return call.beside; })))
    return;
  std::vector<BranchCall> branch(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    const Step &step = prepared.steps[i];
    const Kernel &kernel = exe.kernels[step.kernel];
    std::vector<Access> &accesses = branch[i].accesses;
    branch[i].beside = all || calls[i].beside;
    for (size_t j = 0; j < calls[i].operands.size(); ++j)
      accesses.push_back(
          {step.operands[j], step.operands[j] + calls[i].operands[j].bytes, calls[i].operands[j].written});
    if (kernel.kind == Kernel::Kind::Gemm) {
      auto [begin, end] = products.workspaceOf(step.product);
      accesses.push_back({begin, end, true});
    } else if (kernel.kind == Kernel::Kind::Code) {
      // Never twice at once: its module holds the counter of its items (decision 14). No memory
      // has such small addresses.
      accesses.push_back({step.kernel, uint64_t{step.kernel} + 1, true});
    }
    if (kernel.scratchBytes > 0)
      accesses.push_back({scratch, scratch + scratchAll, true});
  }
  prepared.waits = waits(branch);
}

/// Clears what products count in, before the first call; its node, or none.
absl::StatusOr<GraphNode> CudaMachine::clearCounters() {
  auto [begin, end] = products.counters();
  if (begin == end)
    return nullptr;
  if (absl::Status status = gpu->fill(begin, end - begin, 0); !status.ok())
    return status;
  absl::StatusOr<std::vector<GraphNode>> last = lastNodes();
  if (!last.ok())
    return last.status();
  return last->empty() ? nullptr : last->front();
}

absl::Status CudaMachine::capture(Prepared &prepared) {
  planBranches(prepared);
  for (size_t part = 0; part < prepared.graphs.size(); ++part)
    if (const auto [from, to] = stepsOf(prepared, part); part == 0 || from < to)
      if (absl::Status status = capture(prepared, part); !status.ok())
        return status;
  return absl::OkStatus();
}

absl::Status CudaMachine::capture(Prepared &prepared, size_t part) {
  const Driver &driver = gpu->driver;
  std::string what = absl::StrCat("program ", prepared.program->name, ": making its graph");
  if (absl::Status status = gpu->checked(driver.streamBeginCapture(gpu->stream, kCaptureThreadLocal), what);
      !status.ok())
    return status;
  uint64_t launches = gpu->counters.launches;
  absl::StatusOr<GraphNode> cleared = clearCounters();
  absl::Status status = cleared.ok() ? enqueue(prepared, part, /*captured=*/true) : cleared.status();
  gpu->counters.launches = launches; // captured, not started
  Graph graph = nullptr;
  Result result = driver.streamEndCapture(gpu->stream, &graph); // also after an error: the stream goes on
  if (status.ok())
    status = gpu->checked(result, what);
  if (status.ok() && *cleared)
    status = dropFills(*gpu, graph, products.counters(), *cleared);
  if (status.ok())
    status = gpu->checked(driver.graphInstantiateWithFlags(&prepared.graphs[part], graph, 0), what);
  if (graph)
    driver.graphDestroy(graph);
  gpu->counters.graphsCaptured += status.ok();
  return status;
}

/// What can be said of a run that is done: times of its calls, guards.
absl::Status CudaMachine::inspect(const Prepared &prepared) {
  for (size_t i = 0; i + 1 < prepared.events.size(); ++i) {
    float milliseconds = 0;
    if (gpu->driver.eventElapsedTime(&milliseconds, prepared.events[i], prepared.events[i + 1]) == kSuccess)
      profile.add(prepared.steps[i].kernel, prepared.steps[i].moved,
                  std::chrono::duration_cast<Profile::Clock::duration>(
                      std::chrono::duration<double, std::milli>(milliseconds)));
  }
  return options.guard ? gpu->checkGuards(absl::StrCat("program ", prepared.program->name))
                       : absl::OkStatus();
}

absl::StatusOr<const StateEntry *> CudaMachine::stateOf(std::string_view name) const {
  auto found = stateNumbers.find(name);
  if (found == stateNumbers.end())
    return absl::NotFoundError(absl::StrCat("model ", exe.model, " has no state '", std::string(name), "'"));
  return &exe.states[found->second];
}

absl::StatusOr<Tensor> CudaMachine::readState(std::string_view name) const {
  absl::StatusOr<const StateEntry *> entry = stateOf(name);
  if (!entry.ok())
    return entry.status();
  if (absl::Status status = gpu->enter(); !status.ok())
    return status;
  try {
    Tensor value((*entry)->type, (*entry)->shape);
    if (absl::Status status = gpu->copyOut(value.bytes.data(), state + (*entry)->offset, value.bytes.size());
        !status.ok())
      return status;
    return value;
  } catch (const std::bad_alloc &) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a copy of state ", std::string(name)));
  }
}

absl::Status CudaMachine::writeState(std::string_view name, const Tensor &value) {
  absl::StatusOr<const StateEntry *> entry = stateOf(name);
  if (!entry.ok())
    return entry.status();
  if (absl::Status status = checkTensor(value, (*entry)->type, (*entry)->shape, "state", (*entry)->name);
      !status.ok())
    return status;
  if (absl::Status status = gpu->enter(); !status.ok())
    return status;
  stale |= isPreparedFrom(**entry);
  if (value.bytes.size() <= kMovedLater && !oneByOne())
    return writeLater(**entry, value);
  return gpu->copyIn(state + (*entry)->offset, value.bytes.data(), value.bytes.size());
}

absl::StatusOr<bool> CudaMachine::takeState(const CudaMachine *from, std::string_view name) {
  absl::StatusOr<const StateEntry *> entry = stateOf(name);
  if (!entry.ok())
    return entry.status();
  const uint64_t bytes = *denseBytes((*entry)->type, (*entry)->shape);
  if (absl::Status status = gpu->enter(); !status.ok())
    return status;
  if (!from) {
    stale |= isPreparedFrom(**entry);
    absl::Status status = bytes ? gpu->fill(state + (*entry)->offset, bytes, 0) : absl::OkStatus();
    return status.ok() ? absl::StatusOr<bool>(true) : status;
  }
  absl::StatusOr<const StateEntry *> other = from->stateOf(name);
  if (!other.ok())
    return other.status();
  if (from->gpu->facts.index != gpu->facts.index || (*other)->type != (*entry)->type ||
      (*other)->shape != (*entry)->shape || (*other)->kept != (*entry)->kept)
    return false;
  stale |= isPreparedFrom(**entry);
  if (bytes == 0)
    return true;
  // What the other machine has under way is done before its memory is read, and read
  // before it writes again.
  const std::string what = absl::StrCat("copying state ", std::string(name));
  if (absl::Status status = from->gpu->wait(what); !status.ok())
    return status;
  if (absl::Status status =
          gpu->checked(gpu->driver.memcpyDtoDAsync(state + (*entry)->offset, from->state + (*other)->offset,
                                                   bytes, gpu->stream),
                       what);
      !status.ok())
    return status;
  absl::Status status = gpu->wait(what);
  return status.ok() ? absl::StatusOr<bool>(true) : status;
}

absl::StatusOr<CudaMemory> CudaMachine::memory() const {
  absl::StatusOr<uint64_t> free = gpu->freeBytes();
  if (!free.ok())
    return free.status();
  CudaMemory memory;
  memory.state = exe.stateBytes, memory.arena = exe.arenaBytes, memory.ports = portBytes;
  memory.scratch = scratchAll, memory.workspace = workspaceBytes(), memory.pinned = ringBytes;
  memory.total = gpu->facts.memoryBytes;
  memory.before = memory.total - std::min(memory.total, freeAtStart);
  memory.grown = freeAtStart - std::min(freeAtStart, *free);
  return memory;
}

std::optional<double> CudaMachine::programSeconds(std::string_view program) const {
  auto found = programs.find(program);
  float milliseconds = 0;
  if (found == programs.end() || !found->second.timed)
    return std::nullopt;
  const auto &[before, after] = found->second.around;
  if (gpu->driver.eventElapsedTime(&milliseconds, before, after) != kSuccess)
    return std::nullopt;
  return static_cast<double>(milliseconds) * 1e-3;
}

std::vector<CudaKernel> CudaMachine::kernels() const {
  std::vector<CudaKernel> list;
  for (uint32_t i = 0; i < exe.kernels.size(); ++i)
    if (const LoadedKernel &loaded = modules.kernel(i); loaded.function)
      list.push_back({exe.kernels[i].name, loaded.registers, loaded.localBytes,
                      loaded.blocksPerMultiprocessor, loaded.log});
  return list;
}

} // namespace cuda

absl::StatusOr<std::unique_ptr<Machine>> makeCudaMachine(Executable executable, const CudaOptions &options) {
  absl::StatusOr<std::unique_ptr<cuda::CudaMachine>> machine =
      cuda::CudaMachine::make(std::move(executable), options);
  if (!machine.ok())
    return machine.status();
  return std::unique_ptr<Machine>(std::move(*machine));
}

absl::StatusOr<bool> copyStateOnDevice(const Machine *from, Machine &to, std::string_view name) {
  auto *own = dynamic_cast<cuda::CudaMachine *>(&to);
  const auto *other = dynamic_cast<const cuda::CudaMachine *>(from);
  if (!own || (from && !other))
    return false;
  return own->takeState(other, name);
}

std::vector<CudaKernel> cudaKernels(const Machine &machine) {
  const auto *cuda = dynamic_cast<const cuda::CudaMachine *>(&machine);
  return cuda ? cuda->kernels() : std::vector<CudaKernel>();
}

absl::StatusOr<std::optional<CudaMemory>> cudaMemory(const Machine &machine) {
  const auto *cuda = dynamic_cast<const cuda::CudaMachine *>(&machine);
  if (!cuda)
    return std::nullopt;
  absl::StatusOr<CudaMemory> memory = cuda->memory();
  if (!memory.ok())
    return memory.status();
  return *memory;
}

std::optional<double> cudaProgramSeconds(const Machine &machine, std::string_view program) {
  const auto *cuda = dynamic_cast<const cuda::CudaMachine *>(&machine);
  return cuda ? cuda->programSeconds(program) : std::nullopt;
}

const CudaCounters *cudaCounters(const Machine &machine) {
  const auto *cuda = dynamic_cast<const cuda::CudaMachine *>(&machine);
  return cuda ? &cuda->counters() : nullptr;
}

} // namespace weft::rt

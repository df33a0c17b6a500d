//===- CudaMachine.cpp - Running programs on the GPU ----------------------===//
#include "runtime/cuda/CudaMachine.h"

#include "runtime/core/TensorCheck.h"
#include "runtime/cpu/Memory.h"

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
  for (auto &[name, prepared] : programs) {
    if (prepared.graph)
      gpu->driver.graphExecDestroy(prepared.graph);
    for (Event event : prepared.events)
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

absl::Status CudaMachine::start(const Step &step) {
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

/// The whole program on the stream: inputs, calls, results.
absl::Status CudaMachine::enqueue(Prepared &prepared) {
  const Driver &driver = gpu->driver;
  uint64_t resultBytes = prepared.endBytes - prepared.inputBytes;
  if (prepared.inputBytes)
    if (absl::Status status =
            gpu->checked(driver.memcpyHtoDAsync(ports, pinned, prepared.inputBytes, gpu->stream), "inputs");
        !status.ok())
      return status;
  if (options.poison)
    for (auto [base, bytes] :
         {std::pair(arena, exe.arenaBytes), std::pair(ports + prepared.inputBytes, resultBytes)})
      if (absl::Status status = gpu->fill(base, bytes, kPoison); !status.ok())
        return status;
  for (size_t i = 0; i < prepared.steps.size(); ++i) {
    if (profile.on())
      driver.eventRecord(prepared.events[i], gpu->stream);
    if (absl::Status status = start(prepared.steps[i]); !status.ok())
      return status;
    if (absl::Status status = afterCall(prepared, prepared.steps[i]); !status.ok())
      return status;
  }
  if (profile.on())
    driver.eventRecord(prepared.events.back(), gpu->stream);
  if (!resultBytes)
    return absl::OkStatus();
  return gpu->checked(driver.memcpyDtoHAsync(pinned + prepared.inputBytes, ports + prepared.inputBytes,
                                             resultBytes, gpu->stream),
                      "results");
}

absl::Status CudaMachine::capture(Prepared &prepared) {
  const Driver &driver = gpu->driver;
  std::string what = absl::StrCat("program ", prepared.program->name, ": making its graph");
  if (absl::Status status = gpu->checked(driver.streamBeginCapture(gpu->stream, kCaptureThreadLocal), what);
      !status.ok())
    return status;
  uint64_t launches = gpu->counters.launches;
  absl::Status status = enqueue(prepared);
  gpu->counters.launches = launches; // captured, not started
  Graph graph = nullptr;
  Result result = driver.streamEndCapture(gpu->stream, &graph); // also after an error: the stream goes on
  if (status.ok())
    status = gpu->checked(result, what);
  if (status.ok())
    status = gpu->checked(driver.graphInstantiateWithFlags(&prepared.graph, graph, 0), what);
  if (graph)
    driver.graphDestroy(graph);
  gpu->counters.graphsCaptured += status.ok();
  return status;
}

/// The wait of a run, and what can be said after it.
absl::Status CudaMachine::finish(Prepared &prepared) {
  std::string what = absl::StrCat("program ", prepared.program->name);
  if (absl::Status status = gpu->wait(what); !status.ok())
    return options.synchronous
               ? status
               : absl::Status(status.code(), absl::StrCat(std::string(status.message()),
                                                          "; WEFT_CUDA_SYNC=1 names the kernel"));
  for (size_t i = 0; i + 1 < prepared.events.size(); ++i) {
    float milliseconds = 0;
    if (gpu->driver.eventElapsedTime(&milliseconds, prepared.events[i], prepared.events[i + 1]) == kSuccess)
      profile.add(prepared.steps[i].kernel, std::chrono::duration_cast<Profile::Clock::duration>(
                                                std::chrono::duration<double, std::milli>(milliseconds)));
  }
  return options.guard ? gpu->checkGuards(what) : absl::OkStatus();
}

absl::Status CudaMachine::run(std::string_view name, std::span<const Tensor> inputs,
                              std::span<Tensor> results) {
  auto found = programs.find(name);
  if (found == programs.end())
    return absl::NotFoundError(
        absl::StrCat("model ", exe.model, " has no program '", std::string(name), "'"));
  Prepared &prepared = found->second;
  if (absl::Status status = checkTensors(*prepared.program, inputs, results); !status.ok())
    return status;
  if (absl::Status status = gpu->enter(); !status.ok())
    return status;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].bytes.empty())
      std::memcpy(pinned + prepared.inputs[i], inputs[i].bytes.data(), inputs[i].bytes.size());
  if (options.graphs && prepared.warm && !prepared.graph)
    if (absl::Status status = capture(prepared); !status.ok())
      return status;
  absl::Status status = prepared.graph ? gpu->checked(gpu->driver.graphLaunch(prepared.graph, gpu->stream),
                                                      absl::StrCat("program ", prepared.program->name))
                                       : enqueue(prepared);
  gpu->counters.graphLaunches += prepared.graph != nullptr;
  // After an error too: calls that were started still use the memory.
  absl::Status finished = finish(prepared);
  if (!status.ok() || !finished.ok())
    return status.ok() ? finished : status;
  prepared.warm = true;
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].bytes.empty())
      std::memcpy(results[i].bytes.data(), pinned + prepared.results[i], results[i].bytes.size());
  return absl::OkStatus();
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
  return gpu->copyIn(state + (*entry)->offset, value.bytes.data(), value.bytes.size());
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

std::vector<CudaKernel> cudaKernels(const Machine &machine) {
  const auto *cuda = dynamic_cast<const cuda::CudaMachine *>(&machine);
  return cuda ? cuda->kernels() : std::vector<CudaKernel>();
}

const CudaCounters *cudaCounters(const Machine &machine) {
  const auto *cuda = dynamic_cast<const cuda::CudaMachine *>(&machine);
  return cuda ? &cuda->counters() : nullptr;
}

} // namespace weft::rt

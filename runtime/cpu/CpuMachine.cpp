//===- CpuMachine.cpp -----------------------------------------------------===//
#include "runtime/cpu/CpuMachine.h"

#include "runtime/core/ExecutableCheck.h"
#include "runtime/core/TensorCheck.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/HostFeatures.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kBlock = 64 * 1024; // of a fill or copy, for one work item
constexpr int kMostThreads = 256;

uint64_t alignUp(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool aligned(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0; }

int threadsFor(int asked) {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(asked > 0 ? asked : cores, 1, kMostThreads);
}

/// BLAS takes sizes of 32 bits.
absl::Status checkBlasSizes(const Kernel &kernel) {
  const Gemm &gemm = kernel.gemm;
  for (int64_t size : {gemm.m, gemm.n, gemm.k, gemm.lda, gemm.ldb, gemm.ldc})
    if (size > std::numeric_limits<int32_t>::max())
      return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel.name, ": a size of ", size,
                                                     " is more than BLAS can take (2^31 - 1)"));
  return absl::OkStatus();
}

int64_t blocksOf(uint64_t bytes) { return static_cast<int64_t>((bytes + kBlock - 1) / kBlock); }

/// Places of ports one after the other; `end` grows.
std::vector<uint64_t> placePorts(const std::vector<Port> &ports, uint64_t &end) {
  std::vector<uint64_t> places;
  for (const Port &port : ports) {
    places.push_back(end);
    end += alignUp(*denseBytes(port.type, port.shape));
  }
  return places;
}

} // namespace

CpuMachine::CpuMachine(Executable executable, int threads)
    : exe(std::move(executable)), pool(threads),
      profile(exe, std::getenv("WEFT_PROFILE") ? std::getenv("WEFT_PROFILE") : "") {}

absl::StatusOr<std::unique_ptr<CpuMachine>> CpuMachine::make(Executable executable, int threads,
                                                             uint64_t available) {
  if (absl::Status status = checkExecutable(executable); !status.ok())
    return status;
  if (absl::Status status = checkTarget(executable.target, hostCpuinfo()); !status.ok())
    return status;
  std::unique_ptr<CpuMachine> machine(new CpuMachine(std::move(executable), threadsFor(threads)));
  if (absl::Status status = machine->loadKernels(); !status.ok())
    return status;
  if (absl::Status status = machine->allocate(available); !status.ok())
    return status;
  for (const Program &program : machine->exe.programs)
    machine->prepare(program);
  for (size_t i = 0; i < machine->exe.states.size(); ++i)
    machine->stateNumbers.emplace(machine->exe.states[i].name, i);
  prepareBlas();
  return machine;
}

absl::Status CpuMachine::loadKernels() {
  std::map<std::string_view, size_t> numbers; // equal objects are loaded once
  std::vector<std::string_view> objects;
  for (const Kernel &kernel : exe.kernels) {
    scratchBytes = std::max(scratchBytes, alignUp(kernel.scratchBytes));
    if (kernel.kind == Kernel::Kind::Code && numbers.emplace(kernel.object, objects.size()).second)
      objects.push_back(kernel.object);
  }
  absl::StatusOr<ObjectImage> loaded = ObjectImage::load(objects);
  if (!loaded.ok()) // say which kernel, not which number: load each alone until one fails
    for (const Kernel &kernel : exe.kernels)
      if (kernel.kind == Kernel::Kind::Code)
        if (std::string_view object = kernel.object; !ObjectImage::load({&object, 1}).ok())
          return absl::InvalidArgumentError(absl::StrCat(
              "kernel ", kernel.name, " can't be loaded: ", std::string(loaded.status().message())));
  if (!loaded.ok())
    return loaded.status();
  image = std::move(*loaded);
  for (const Kernel &kernel : exe.kernels) {
    functions.push_back(nullptr);
    if (kernel.kind == Kernel::Kind::Gemm)
      if (absl::Status status = checkBlasSizes(kernel); !status.ok())
        return status;
    if (kernel.kind != Kernel::Kind::Code)
      continue;
    absl::StatusOr<void *> function = image.find(numbers.at(kernel.object), kernel.symbol);
    if (!function.ok())
      return absl::InvalidArgumentError(absl::StrCat(
          "kernel ", kernel.name, " can't be loaded: ", std::string(function.status().message())));
    functions.back() = reinterpret_cast<KernelFunction>(*function);
  }
  return absl::OkStatus();
}

absl::Status CpuMachine::allocate(uint64_t available) {
  uint64_t stagingBytes = 0;
  for (const Program &program : exe.programs) {
    Prepared &prepared = programs[program.name];
    prepared.program = &program;
    uint64_t end = 0;
    prepared.inputStaging = placePorts(program.inputs, end);
    prepared.resultStaging = placePorts(program.results, end);
    stagingBytes = std::max(stagingBytes, end); // programs run one after the other
  }
  uint64_t scratchAll = scratchBytes * static_cast<uint64_t>(pool.workers());
  if (absl::Status status = checkMemory(exe, scratchAll + stagingBytes, available); !status.ok())
    return status;
  for (auto [memory, bytes] : {std::pair(&state, exe.stateBytes), std::pair(&arena, exe.arenaBytes),
                               std::pair(&scratch, scratchAll), std::pair(&staging, stagingBytes)}) {
    absl::StatusOr<MappedMemory> mapped = MappedMemory::map(bytes);
    if (!mapped.ok())
      return mapped.status();
    *memory = std::move(*mapped);
  }
  return absl::OkStatus();
}

void *CpuMachine::pointerOf(const Operand &operand) const {
  return (operand.space == Space::State ? state : arena).data() + operand.offset;
}

void CpuMachine::prepare(const Program &program) {
  Prepared &prepared = programs.at(program.name);
  for (const Call &call : program.calls) {
    const Kernel &kernel = exe.kernels[call.kernel];
    Step step{call.kernel, call.grid, prepared.pointers.size(),
              call.operands.empty() ? 0 : call.operands[0].bytes};
    if (kernel.kind == Kernel::Kind::Gemm)
      step.grid = gemmGrid(kernel.gemm);
    else if (kernel.kind != Kernel::Kind::Code)
      step.grid = blocksOf(step.bytes);
    for (const Operand &operand : call.operands) {
      bool port = operand.space == Space::Input || operand.space == Space::Result;
      if (port)
        prepared.patches.push_back({prepared.pointers.size(), static_cast<size_t>(operand.offset),
                                    operand.space == Space::Input, operand.start});
      prepared.pointers.push_back(port ? nullptr : pointerOf(operand));
    }
    prepared.steps.push_back(step);
  }
}

/// Kernels may load whole vectors from an operand's start, so tensors that are
/// not aligned go through a copy.
void CpuMachine::bind(Prepared &prepared, std::span<const Tensor> inputs, std::span<Tensor> results) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!aligned(inputs[i].bytes.data()) && !inputs[i].bytes.empty())
      std::memcpy(staging.data() + prepared.inputStaging[i], inputs[i].bytes.data(), inputs[i].bytes.size());
  for (const Patch &patch : prepared.patches) {
    // Kernels get one pointer type; they only read inputs.
    auto *data = patch.input ? const_cast<std::byte *>(inputs[patch.port].bytes.data())
                             : results[patch.port].bytes.data();
    uint64_t place = patch.input ? prepared.inputStaging[patch.port] : prepared.resultStaging[patch.port];
    prepared.pointers[patch.pointer] = (aligned(data) ? data : staging.data() + place) + patch.start;
  }
}

void CpuMachine::callCode(const Step &step, void *const *operands) {
  KernelFunction function = functions[step.kernel];
  const KernelTable &table = kernelTable();
  pool.run(step.grid, [&](int64_t begin, int64_t end, int worker) {
    function(operands, begin, end, &table, scratch.data() + scratchBytes * static_cast<uint64_t>(worker));
  });
}

void CpuMachine::call(const Step &step, void *const *operands) {
  const Kernel &kernel = exe.kernels[step.kernel];
  auto block = [&](int64_t begin, int64_t end) {
    uint64_t start = static_cast<uint64_t>(begin) * kBlock;
    return std::pair(start, std::min(static_cast<uint64_t>(end) * kBlock, step.bytes) - start);
  };
  switch (kernel.kind) {
  case Kernel::Kind::Code:
    return callCode(step, operands);
  case Kernel::Kind::Gemm:
    return pool.run(step.grid, [&](int64_t begin, int64_t end, int) {
      runGemm(kernel.gemm, static_cast<const float *>(operands[0]), static_cast<const float *>(operands[1]),
              static_cast<float *>(operands[2]), begin, end);
    });
  case Kernel::Kind::Zero:
    return pool.run(step.grid, [&](int64_t begin, int64_t end, int) {
      auto [start, bytes] = block(begin, end);
      std::memset(static_cast<std::byte *>(operands[0]) + start, 0, bytes);
    });
  case Kernel::Kind::Copy:
    if (operands[0] == operands[1])
      return;
    return pool.run(step.grid, [&](int64_t begin, int64_t end, int) {
      auto [start, bytes] = block(begin, end);
      std::memcpy(static_cast<std::byte *>(operands[1]) + start,
                  static_cast<const std::byte *>(operands[0]) + start, bytes);
    });
  }
}

absl::Status CpuMachine::run(std::string_view name, std::span<const Tensor> inputs,
                             std::span<Tensor> results) {
  absl::StatusOr<Prepared *> found = programFor(programs, exe.model, name, inputs, results);
  if (!found.ok())
    return found.status();
  Prepared &prepared = **found;
  bind(prepared, inputs, results);
  for (const Step &step : prepared.steps) {
    void *const *operands = prepared.pointers.data() + step.firstPointer;
    if (!profile.on()) {
      call(step, operands);
      continue;
    }
    Profile::Clock::time_point start = Profile::Clock::now();
    call(step, operands);
    Profile::Clock::duration time = Profile::Clock::now() - start;
    double bytes = 0;
    for (const Operand &operand : prepared.program->calls[&step - prepared.steps.data()].operands)
      bytes += static_cast<double>(operand.bytes);
    profile.add(step.kernel, bytes, time);
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (!aligned(results[i].bytes.data()) && !results[i].bytes.empty())
      std::memcpy(results[i].bytes.data(), staging.data() + prepared.resultStaging[i],
                  results[i].bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<const StateEntry *> CpuMachine::stateOf(std::string_view name) const {
  auto found = stateNumbers.find(name);
  if (found == stateNumbers.end())
    return absl::NotFoundError(absl::StrCat("model ", exe.model, " has no state '", std::string(name), "'"));
  return &exe.states[found->second];
}

absl::StatusOr<Tensor> CpuMachine::readState(std::string_view name) const {
  absl::StatusOr<const StateEntry *> entry = stateOf(name);
  if (!entry.ok())
    return entry.status();
  try {
    Tensor value((*entry)->type, (*entry)->shape);
    if (!value.bytes.empty())
      std::memcpy(value.bytes.data(), state.data() + (*entry)->offset, value.bytes.size());
    return value;
  } catch (const std::bad_alloc &) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a copy of state ", std::string(name), ", ",
                     bytesText(*denseBytes((*entry)->type, (*entry)->shape))));
  }
}

absl::Status CpuMachine::writeState(std::string_view name, const Tensor &value) {
  absl::StatusOr<const StateEntry *> entry = stateOf(name);
  if (!entry.ok())
    return entry.status();
  if (absl::Status status = checkTensor(value, (*entry)->type, (*entry)->shape, "state", (*entry)->name);
      !status.ok())
    return status;
  if (!value.bytes.empty())
    std::memcpy(state.data() + (*entry)->offset, value.bytes.data(), value.bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Machine>> makeCpuMachine(Executable executable, int threads) {
  absl::StatusOr<std::unique_ptr<CpuMachine>> machine =
      CpuMachine::make(std::move(executable), threads, availableMemory());
  if (!machine.ok())
    return machine.status();
  return std::unique_ptr<Machine>(std::move(*machine));
}

} // namespace weft::rt

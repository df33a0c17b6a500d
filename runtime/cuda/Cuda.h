//===- Cuda.h - Executables on an NVIDIA GPU --------------------*- C++ -*-===//
//
// The driver, nvJitLink and cuBLASLt are loaded when they are needed
// (runtime/cuda/Library.h says where they are looked for): a program that never
// asks for a GPU runs without them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/cpu/Profile.h"

#include <functional>
#include <optional>

namespace weft::rt {

struct CudaDevice {
  int index = 0;
  std::string name; // NVIDIA H200
  std::string chip; // sm_90a
  int major = 0, minor = 0;
  int multiprocessors = 0;
  int clockMHz = 0;
  uint64_t memoryBytes = 0, l2Bytes = 0;
  uint32_t sharedBytes = 0; // the most a block can have
  int driverVersion = 0;    // 13000: CUDA 13.0
};

/// The machine's CUDA devices, perhaps none. Errors: NotFound when there is no
/// driver; FailedPrecondition when it does not work.
absl::StatusOr<std::vector<CudaDevice>> cudaDevices();

/// What `--device` asks for.
struct DeviceChoice {
  enum class Kind : uint8_t { Auto, Cpu, Cuda, Reference };
  Kind kind = Kind::Auto;
  int index = 0; // Cuda
};

/// auto | cpu | cuda | cuda:INDEX | reference. `auto` is what WEFT_DEVICE says,
/// when it is set. Errors: InvalidArgument lists the words.
absl::StatusOr<DeviceChoice> parseDevice(std::string_view text);

/// PTX to a cubin by a program of the toolkit. Called by several threads at once.
struct Assembler {
  std::string identity; // with its version: part of the cache's key
  std::function<absl::StatusOr<std::string>(std::string_view ptx, std::string_view chip)> assemble;
};

struct CudaOptions {
  int device = 0;
  std::string cacheFolder; // of cubins; empty: none is kept
  Assembler assembler;     // empty: the driver compiles PTX, and keeps a cache of its own
  int64_t grid = 0;        // blocks a kernel starts (at most its items); 0: as many as fit
  bool graphs = true;      // from a program's second run on: one graph instead of its calls
  /// Which calls of a program's graph wait only for those that they share memory with.
  enum class Branches { None, Patterns, All };
  Branches branches = Branches::Patterns;
  bool synchronous = false; // no graphs; wait after each call, so that an error names its kernel
  bool poison = false;      // bytes of NaN in the arena and the results before each run
  bool guard = false;       // bands around each block of memory, looked at after each run or call
};

/// `options` with what the environment says: WEFT_CUDA_GRAPHS=0, WEFT_CUDA_GRID=N,
/// WEFT_CUDA_SYNC=1, WEFT_CUDA_POISON=1, WEFT_CUDA_GUARD=1. Errors: InvalidArgument.
absl::StatusOr<CudaOptions> withEnvironment(CudaOptions options);

/// Loads `executable` on a GPU; its target is sm_80 or sm_90a. State is zero.
/// Errors: ResourceExhausted, before anything is allocated, with sizes and the
/// largest buffers; InvalidArgument names a kernel that can't be loaded and what
/// the compiler said; NotFound and FailedPrecondition for the driver and devices.
///
/// Inputs and results are copied through pinned memory. `run` waits for all that was
/// started; `start` waits for nothing, and `wait` for a run leaves the device at work
/// on what was started after it. After a kernel has crashed every further call returns
/// that error, and CUDA gives the process no device again (CUDA Driver API,
/// CUDA_ERROR_ILLEGAL_ADDRESS); all else goes on.
absl::StatusOr<std::unique_ptr<Machine>> makeCudaMachine(Executable executable, const CudaOptions &options);

/// A device's context, kept for who opens the device next, and what it has free.
struct CudaRoom {
  std::shared_ptr<void> context;
  uint64_t freeBytes = 0;
};
/// Errors: as of makeCudaMachine for the driver and devices.
absl::StatusOr<CudaRoom> cudaRoom(int index);

/// What a CUDA machine did since it was made.
struct CudaCounters {
  uint64_t deviceAllocations = 0, pinnedAllocations = 0; // blocks
  uint64_t deviceBytes = 0;                              // held now
  uint64_t synchronizations = 0;                         // waits of the host for all that was started
  uint64_t lateReads = 0; // waits for work behind which other work was under way
  uint64_t launches = 0;  // kernels and products, started one by one
  uint64_t graphsCaptured = 0, graphLaunches = 0;
  uint64_t modulesLoaded = 0; // by the driver
  uint64_t compiledByDriver = 0, compiledByAssembler = 0, linked = 0, cubinsFound = 0;
  double loadSeconds = 0; // of all modules
};

/// Null when `machine` is no CUDA machine.
const CudaCounters *cudaCounters(const Machine &machine);

/// Bytes of the device's memory.
struct CudaMemory {
  uint64_t state = 0, arena = 0, ports = 0, scratch = 0, workspace = 0; // planned: the machine's blocks
  uint64_t before = 0;            // in use when the machine was made: contexts, other programs
  uint64_t grown = 0;             // in use now above that: the blocks, code, graphs, libraries
  uint64_t total = 0, pinned = 0; // of the device; of the host, for copies
  uint64_t planned() const { return state + arena + ports + scratch + workspace; }
};

/// None when `machine` is no CUDA machine. Errors: of the driver.
absl::StatusOr<std::optional<CudaMemory>> cudaMemory(const Machine &machine);

/// Device seconds of the last run of `program` that was waited for, copies of inputs
/// and results left out; none before, and when `machine` is no CUDA machine.
std::optional<double> cudaProgramSeconds(const Machine &machine, std::string_view program);

/// From here on each kernel is timed by itself, on a GPU by its own events and
/// without graphs. A GPU's ceilings are measured first. Errors: of the driver.
absl::Status timeKernels(Machine &machine);

/// Null when kernels of `machine` can't be timed (the reference).
Profile *kernelTimes(Machine &machine);

/// What the driver says of a kernel's code.
struct CudaKernel {
  std::string name;
  int registers = 0, localBytes = 0; // a thread's; local memory: spilled registers
  int blocksPerMultiprocessor = 0;   // that fit at once
  std::string log;                   // of the driver's compiler; empty for cubins
};

/// The kernels with code, in the executable's order; none when `machine` is no
/// CUDA machine.
std::vector<CudaKernel> cudaKernels(const Machine &machine);

} // namespace weft::rt

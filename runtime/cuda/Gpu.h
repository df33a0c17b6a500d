//===- Gpu.h - One GPU: context, stream, memory -----------------*- C++ -*-===//
#pragma once

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Driver.h"

namespace weft::rt::cuda {

/// Devices that the driver sees; 0 also when it says that there is none.
absl::StatusOr<int> deviceCount(const Driver &driver);
absl::StatusOr<CudaDevice> describeDevice(const Driver &driver, int index);

/// Device memory, 256-byte aligned, freed with this. With a guard, bands of a
/// fixed pattern lie before and after it.
struct DeviceBlock {
  DevicePointer base = 0; // of the memory between the bands
  uint64_t bytes = 0;
  std::string name;
  bool guarded = false;
};

/// The device's primary context with one stream. Any thread may use it, one at a
/// time. Memory lives as long as this.
class Gpu {
public:
  /// Errors: NotFound names the devices there are.
  static absl::StatusOr<std::unique_ptr<Gpu>> open(int index);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  /// Makes the context this thread's. Errors: what broke it before.
  absl::Status enter();

  /// The same for a thread that only loads.
  void attach() const { driver.ctxSetCurrent(context); }

  /// A block of `bytes` (0: none, address 0). Errors: ResourceExhausted names it,
  /// its size and what is free.
  absl::StatusOr<DevicePointer> allocate(uint64_t bytes, std::string_view name, bool guard);
  absl::StatusOr<std::byte *> allocatePinned(uint64_t bytes, std::string_view name);
  /// Bytes that can be allocated now.
  absl::StatusOr<uint64_t> freeBytes();

  /// Fills with `value`, in order of the stream.
  absl::Status fill(DevicePointer base, uint64_t bytes, unsigned char value);
  /// Copies whole ranges and waits. Host memory may be pageable.
  absl::Status copyOut(void *to, DevicePointer from, uint64_t bytes);
  absl::Status copyIn(DevicePointer to, const void *from, uint64_t bytes);
  /// Waits for the stream. A crash of a kernel breaks the context for good.
  absl::Status wait(std::string_view what);
  /// Waits for what was put on the stream before `event`; the device goes on with the rest.
  absl::Status reach(Event event, std::string_view what);
  /// `what: CUDA_ERROR_...` for a result of a call; notes what breaks the context.
  absl::Status checked(Result result, std::string_view what);
  /// Errors: DataLoss names the block whose band was written, and where.
  absl::Status checkGuards(std::string_view after);

  const Driver &driver;
  const CudaDevice facts;
  Stream stream = nullptr;
  CudaCounters counters;

private:
  Gpu(const Driver &driver, CudaDevice facts) : driver(driver), facts(std::move(facts)) {}
  absl::Status start();

  Device device = 0;
  Context context = nullptr;
  std::vector<DeviceBlock> blocks;
  std::vector<void *> pinned;
  absl::Status broken; // why the context can do nothing more
};

} // namespace weft::rt::cuda

//===- CudaTimes.cpp - Times of kernels, and what the device reaches ------===//
#include "runtime/core/Philox.h"
#include "runtime/cuda/CudaMachine.h"

#include <algorithm>

namespace weft::rt::cuda {
namespace {

constexpr uint64_t kCopied = uint64_t(512) << 20, kSmallestCopied = uint64_t(128) << 20; // past the L2 cache
constexpr int64_t kProducts[] = {8192, 4096};
constexpr int kRepeats = 10;

} // namespace

absl::Status CudaMachine::timeKernels() {
  profile.turnOn();
  options.graphs = false;
  for (auto &[name, prepared] : programs) {
    prepared.events.resize(prepared.steps.size() + 1);
    for (Event &event : prepared.events)
      if (event == nullptr)
        if (absl::Status status = makeEvent(event, 0); !status.ok())
          return status;
  }
  return measureCeilings();
}

/// Of one call of `work`: `repeats` in a row, after one that is not counted.
absl::StatusOr<double> CudaMachine::secondsOf(int repeats, const std::function<absl::Status()> &work) {
  Event before = nullptr, after = nullptr;
  absl::Status status = makeEvent(before, 0);
  if (status.ok())
    status = makeEvent(after, 0);
  for (int i = -1; i < repeats && status.ok(); ++i) {
    if (i == 0)
      status = gpu->checked(gpu->driver.eventRecord(before, gpu->stream), "cuEventRecord");
    if (status.ok())
      status = work();
  }
  if (status.ok())
    status = gpu->checked(gpu->driver.eventRecord(after, gpu->stream), "cuEventRecord");
  if (absl::Status waited = gpu->wait("measuring the device"); status.ok())
    status = waited;
  float milliseconds = 0;
  if (status.ok())
    status = gpu->checked(gpu->driver.eventElapsedTime(&milliseconds, before, after), "cuEventElapsedTime");
  for (Event event : {before, after})
    if (event)
      gpu->driver.eventDestroy(event);
  if (!status.ok())
    return status;
  return static_cast<double>(milliseconds) * 1e-3 / repeats;
}

/// Drawn bf16 numbers of either sign from 0.5 to 2 in the arena's first `bytes`:
/// on zeros a product draws less power, and is faster than it ever is in a model.
absl::Status CudaMachine::fillArena(uint64_t bytes) {
  std::vector<uint16_t> numbers(1 << 19);
  Philox philox(0, "ceilings");
  for (size_t i = 0; i < numbers.size(); ++i) {
    auto bits = static_cast<uint32_t>(philox.bits(i));
    numbers[i] = static_cast<uint16_t>((bits & 0x8000) | 0x3F00 | (bits & 0xFF));
  }
  uint64_t filled = std::min<uint64_t>(bytes, numbers.size() * sizeof(numbers[0]));
  absl::Status status = gpu->copyIn(arena, numbers.data(), filled);
  for (; status.ok() && filled < bytes; filled += std::min(filled, bytes - filled))
    status = gpu->checked(
        gpu->driver.memcpyDtoDAsync(arena + filled, arena, std::min(filled, bytes - filled), gpu->stream),
        "filling the arena");
  return status;
}

absl::StatusOr<double> CudaMachine::productSeconds(int64_t size) {
  Kernel kernel;
  kernel.name = "ceiling", kernel.kind = Kernel::Kind::Gemm;
  Gemm &gemm = kernel.gemm;
  gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = size;
  gemm.typeA = gemm.typeB = gemm.typeC = ElementType::BF16;
  auto bytes = static_cast<uint64_t>(2 * size * size);
  absl::Status status = fillArena(2 * bytes);
  if (!status.ok())
    return status;
  absl::StatusOr<size_t> product = products.prepare(kernel, {arena, arena + bytes, arena + 2 * bytes});
  if (!product.ok())
    return product.status();
  return secondsOf(kRepeats, [&] { return products.launch(*product, kernel.name); });
}

/// A copy and a product in the arena, which holds nothing between runs. Where it
/// is too small they stay unknown.
absl::Status CudaMachine::measureCeilings() {
  if (uint64_t bytes = std::min(kCopied, exe.arenaBytes / 2 / 256 * 256); bytes >= kSmallestCopied) {
    absl::StatusOr<double> seconds = secondsOf(kRepeats, [&] {
      return gpu->checked(gpu->driver.memcpyDtoDAsync(arena + bytes, arena, bytes, gpu->stream), "a copy");
    });
    if (!seconds.ok())
      return seconds.status();
    profile.ceilings.bytesPerSecond = 2 * static_cast<double>(bytes) / *seconds;
  }
  for (int64_t size : kProducts) {
    if (workspaceBytes() == 0 || static_cast<uint64_t>(6 * size * size) > exe.arenaBytes)
      continue;
    absl::StatusOr<double> seconds = productSeconds(size);
    if (!seconds.ok())
      return seconds.status();
    profile.ceilings.flopsPerSecond = 2.0 * static_cast<double>(size * size * size) / *seconds;
    break;
  }
  return absl::OkStatus();
}

} // namespace weft::rt::cuda

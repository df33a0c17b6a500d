//===- Gpu.cpp ------------------------------------------------------------===//
#include "runtime/cuda/Gpu.h"

#include "runtime/cpu/Memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft::rt::cuda {
namespace {

constexpr uint64_t kBand = 4096; // bytes of a guard band: alignment stays
constexpr unsigned char kBandByte = 0xA5;

} // namespace

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::open(int index) {
  absl::StatusOr<const Driver *> driver = cuda::driver();
  if (!driver.ok())
    return driver.status();
  absl::StatusOr<int> count = deviceCount(**driver);
  if (!count.ok())
    return count.status();
  if (index < 0 || index >= *count)
    return absl::NotFoundError(
        absl::StrCat("cuda:", index, ": the driver sees ",
                     *count == 0 ? "no device" : absl::StrCat(*count, " devices, from cuda:0 on"),
                     " (CUDA_VISIBLE_DEVICES can hide them)"));
  absl::StatusOr<CudaDevice> facts = describeDevice(**driver, index);
  if (!facts.ok())
    return facts.status();
  std::unique_ptr<Gpu> gpu(new Gpu(**driver, std::move(*facts)));
  if (absl::Status status = gpu->start(); !status.ok())
    return status;
  return gpu;
}

absl::Status Gpu::start() {
  std::string where = absl::StrCat("cuda:", facts.index, " (", facts.name, ")");
  if (absl::Status status = check(driver, driver.deviceGet(&device, facts.index), where); !status.ok())
    return status;
  Context retained = nullptr;
  Result made = driver.primaryCtxRetain(&retained, device);
  if (isSticky(made))
    return absl::FailedPreconditionError(absl::StrCat(
        where, ": ", describe(driver, made),
        "; a kernel of this process crashed, and CUDA gives such a process no device again: start "
        "the program anew"));
  if (absl::Status status = check(driver, made, where + ": making a context"); !status.ok())
    return status;
  context = retained;
  if (absl::Status status = enter(); !status.ok())
    return status;
  return checked(driver.streamCreate(&stream, kStreamNonBlocking), where + ": making a stream");
}

Gpu::~Gpu() {
  if (!context)
    return;
  driver.ctxSetCurrent(context);
  for (const DeviceBlock &block : blocks)
    driver.memFree(block.base - (block.guarded ? kBand : 0));
  for (void *block : pinned)
    driver.memFreeHost(block);
  if (stream)
    driver.streamDestroy(stream);
  driver.ctxSetCurrent(nullptr);
  driver.primaryCtxRelease(device);
}

absl::Status Gpu::enter() {
  if (!broken.ok())
    return broken;
  return checked(driver.ctxSetCurrent(context), "cuCtxSetCurrent");
}

absl::Status Gpu::checked(Result result, std::string_view what) {
  absl::Status status = check(driver, result, what);
  if (isSticky(result) && broken.ok())
    broken = absl::InternalError(
        absl::StrCat(std::string(status.message()),
                     "; the device's state is lost, and this process can use no CUDA device again: start "
                     "the program anew, from a checkpoint"));
  return status;
}

absl::StatusOr<DevicePointer> Gpu::allocate(uint64_t bytes, std::string_view name, bool guard) {
  if (bytes == 0)
    return 0;
  DevicePointer base = 0;
  uint64_t band = guard ? kBand : 0;
  Result result = driver.memAlloc(&base, bytes + 2 * band);
  if (result != kSuccess) {
    absl::StatusOr<uint64_t> free = freeBytes();
    return checked(result, absl::StrCat("cuda:", facts.index, ": a block of ", bytesText(bytes), " for the ",
                                        std::string(name),
                                        free.ok() ? absl::StrCat(" with ", bytesText(*free), " free") : ""));
  }
  ++counters.deviceAllocations;
  counters.deviceBytes += bytes + 2 * band;
  blocks.push_back({base + band, bytes, std::string(name), guard});
  if (guard)
    for (DevicePointer start : {base, base + band + bytes})
      if (absl::Status status = fill(start, band, kBandByte); !status.ok())
        return status;
  return base + band;
}

absl::StatusOr<std::byte *> Gpu::allocatePinned(uint64_t bytes, std::string_view name) {
  void *block = nullptr;
  if (bytes == 0)
    return nullptr;
  if (absl::Status status =
          checked(driver.memHostAlloc(&block, bytes, 0),
                  absl::StrCat("a block of ", bytesText(bytes), " of pinned memory for ", std::string(name)));
      !status.ok())
    return status;
  ++counters.pinnedAllocations;
  pinned.push_back(block);
  return static_cast<std::byte *>(block);
}

absl::StatusOr<uint64_t> Gpu::freeBytes() {
  if (absl::Status status = enter(); !status.ok())
    return status;
  size_t free = 0, total = 0;
  if (absl::Status status = checked(driver.memGetInfo(&free, &total), "cuMemGetInfo"); !status.ok())
    return status;
  return free;
}

absl::Status Gpu::fill(DevicePointer base, uint64_t bytes, unsigned char value) {
  if (bytes == 0)
    return absl::OkStatus();
  return checked(driver.memsetD8Async(base, value, bytes, stream), "cuMemsetD8Async");
}

absl::Status Gpu::copyOut(void *to, DevicePointer from, uint64_t bytes) {
  if (bytes == 0)
    return absl::OkStatus();
  if (absl::Status status =
          checked(driver.memcpyDtoHAsync(to, from, bytes, stream), "copying from the device");
      !status.ok())
    return status;
  return wait("copying from the device");
}

absl::Status Gpu::copyIn(DevicePointer to, const void *from, uint64_t bytes) {
  if (bytes == 0)
    return absl::OkStatus();
  if (absl::Status status = checked(driver.memcpyHtoDAsync(to, from, bytes, stream), "copying to the device");
      !status.ok())
    return status;
  return wait("copying to the device");
}

absl::Status Gpu::wait(std::string_view what) {
  ++counters.synchronizations;
  return checked(driver.streamSynchronize(stream), what);
}

absl::Status Gpu::reach(Event event, std::string_view what) {
  ++counters.lateReads;
  return checked(driver.eventSynchronize(event), what);
}

absl::Status Gpu::checkGuards(std::string_view after) {
  std::vector<unsigned char> band(kBand);
  for (const DeviceBlock &block : blocks) {
    if (!block.guarded)
      continue;
    for (bool end : {false, true}) {
      DevicePointer start = end ? block.base + block.bytes : block.base - kBand;
      if (absl::Status status = copyOut(band.data(), start, kBand); !status.ok())
        return status;
      auto bad = std::find_if(band.begin(), band.end(), [](unsigned char byte) { return byte != kBandByte; });
      if (bad == band.end())
        continue;
      auto place = static_cast<uint64_t>(bad - band.begin());
      return absl::DataLossError(absl::StrCat(std::string(after), " wrote ", end ? place : kBand - place,
                                              " bytes ", end ? "past the end" : "before the start",
                                              " of the ", block.name, " (", bytesText(block.bytes), ")"));
    }
  }
  return absl::OkStatus();
}

} // namespace weft::rt::cuda

//===- Devices.cpp - What GPUs there are, and which is meant --------------===//
#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Gpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace cuda {

absl::StatusOr<int> deviceCount(const Driver &driver) {
  int count = 0;
  if (driver.init(0) == kNoDevice)
    return 0;
  Result result = driver.deviceGetCount(&count);
  if (result == kNoDevice)
    return 0;
  if (absl::Status status = check(driver, result, "cuDeviceGetCount"); !status.ok())
    return status;
  return count;
}

absl::StatusOr<CudaDevice> describeDevice(const Driver &driver, int index) {
  Device device = 0;
  char name[256] = "";
  size_t bytes = 0;
  CudaDevice facts;
  int shared = 0, clock = 0, l2 = 0;
  Result result = driver.deviceGet(&device, index);
  auto read = [&](int &value, DeviceAttribute attribute) {
    if (result == kSuccess)
      result = driver.deviceGetAttribute(&value, attribute, device);
  };
  if (result == kSuccess)
    result = driver.deviceGetName(name, sizeof(name) - 1, device);
  if (result == kSuccess)
    result = driver.deviceTotalMem(&bytes, device);
  read(facts.major, kComputeCapabilityMajor);
  read(facts.minor, kComputeCapabilityMinor);
  read(facts.multiprocessors, kMultiprocessorCount);
  read(shared, kMaxSharedPerBlockOptin);
  read(clock, kClockRate);
  read(l2, kL2CacheSize);
  if (absl::Status status = check(driver, result, absl::StrCat("cuda:", index)); !status.ok())
    return status;
  facts.index = index, facts.name = name, facts.memoryBytes = bytes;
  // Instructions of Hopper alone (wgmma, setmaxnreg) are in sm_90a.
  facts.chip = absl::StrCat("sm_", facts.major, facts.minor, facts.major == 9 ? "a" : "");
  facts.sharedBytes = static_cast<uint32_t>(shared);
  facts.clockMHz = clock / 1000, facts.l2Bytes = static_cast<uint64_t>(l2);
  facts.driverVersion = driver.version;
  return facts;
}

} // namespace cuda

absl::StatusOr<std::vector<CudaDevice>> cudaDevices() {
  absl::StatusOr<const cuda::Driver *> driver = cuda::driver();
  if (!driver.ok())
    return driver.status();
  absl::StatusOr<int> count = cuda::deviceCount(**driver);
  if (!count.ok())
    return count.status();
  std::vector<CudaDevice> devices;
  for (int i = 0; i < *count; ++i) {
    absl::StatusOr<CudaDevice> device = cuda::describeDevice(**driver, i);
    if (!device.ok())
      return device.status();
    devices.push_back(std::move(*device));
  }
  return devices;
}

absl::StatusOr<CudaRoom> cudaRoom(int index) {
  absl::StatusOr<std::unique_ptr<cuda::Gpu>> gpu = cuda::Gpu::open(index);
  if (!gpu.ok())
    return gpu.status();
  absl::StatusOr<uint64_t> free = (*gpu)->freeBytes();
  if (!free.ok())
    return free.status();
  return CudaRoom{std::shared_ptr<cuda::Gpu>(std::move(*gpu)), *free};
}

absl::StatusOr<DeviceChoice> parseDevice(std::string_view text) {
  std::string source = "device";
  if (const char *variable = std::getenv("WEFT_DEVICE"); text == "auto" && variable && *variable)
    text = variable, source = "WEFT_DEVICE";
  DeviceChoice choice;
  if (text == "auto")
    return choice;
  choice.kind = text == "cpu" ? DeviceChoice::Kind::Cpu : DeviceChoice::Kind::Reference;
  if (text == "cpu" || text == "reference")
    return choice;
  choice.kind = DeviceChoice::Kind::Cuda;
  if (text == "cuda")
    return choice;
  std::string digits(text.starts_with("cuda:") ? text.substr(5) : std::string_view());
  bool natural = digits.find_first_not_of("0123456789") == digits.npos;
  if (!digits.empty() && natural && absl::SimpleAtoi(digits, &choice.index))
    return choice;
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": expected auto, cpu, cuda, cuda:INDEX or reference, found '", std::string(text),
                   "' (weft devices lists what there is)"));
}

absl::StatusOr<CudaOptions> withEnvironment(CudaOptions options) {
  auto flag = [](const char *name, bool &value) {
    const char *text = std::getenv(name);
    if (!text || !*text)
      return absl::OkStatus();
    if (std::string_view word = text; word != "0" && word != "1")
      return absl::InvalidArgumentError(absl::StrCat(name, ": expected 0 or 1, found '", text, "'"));
    value = *text == '1';
    return absl::OkStatus();
  };
  for (auto [name, value] :
       {std::pair("WEFT_CUDA_GRAPHS", &options.graphs), std::pair("WEFT_CUDA_SYNC", &options.synchronous),
        std::pair("WEFT_CUDA_POISON", &options.poison), std::pair("WEFT_CUDA_GUARD", &options.guard)})
    if (absl::Status status = flag(name, *value); !status.ok())
      return status;
  if (const char *text = std::getenv("WEFT_CUDA_BRANCHES"); text && *text) {
    constexpr std::array<std::string_view, 3> kWords{"none", "patterns", "all"};
    auto found = std::find(kWords.begin(), kWords.end(), text);
    if (found == kWords.end())
      return absl::InvalidArgumentError(
          absl::StrCat("WEFT_CUDA_BRANCHES: expected none, patterns or all, found '", text, "'"));
    options.branches = static_cast<CudaOptions::Branches>(found - kWords.begin());
  }
  if (const char *text = std::getenv("WEFT_CUDA_GRID"); text && *text)
    if (!absl::SimpleAtoi(text, &options.grid) || options.grid < 0)
      return absl::InvalidArgumentError(absl::StrCat(
          "WEFT_CUDA_GRID: expected a number of blocks, 0 for as many as fit; found '", text, "'"));
  return options;
}

} // namespace weft::rt

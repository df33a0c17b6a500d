//===- Device.cpp - Which machine a command runs on -----------------------===//

#include "tools/weft/Device.h"

#include "passes/Tile/Ptxas.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

using namespace weft;
using Kind = rt::DeviceChoice::Kind;

absl::StatusOr<std::string> weft::kernelChip(const rt::CudaDevice &device) {
  if (device.major == 9)
    return "sm_90a";
  if (device.major == 8)
    return "sm_80";
  return absl::FailedPreconditionError(
      absl::StrCat("--device cuda:", device.index, ": ", device.name, " has compute capability ",
                   device.major, ".", device.minor, "; kernels are made for 8.x and 9.0: use --device cpu"));
}

static absl::StatusOr<Device> cudaDevice(int index) {
  absl::StatusOr<std::vector<rt::CudaDevice>> devices = rt::cudaDevices();
  if (!devices.ok())
    return devices.status();
  if (index < 0 || index >= static_cast<int>(devices->size()))
    return absl::NotFoundError(absl::StrCat("--device cuda:", index, ": expected the number of one of ",
                                            devices->size(), " CUDA devices; `weft devices` lists them"));
  const rt::CudaDevice &device = (*devices)[static_cast<size_t>(index)];
  absl::StatusOr<std::string> chip = kernelChip(device);
  if (!chip.ok())
    return chip.status();
  return Device{Kind::Cuda, index, *chip};
}

absl::StatusOr<Device> weft::chooseDevice(const std::string &device) {
  absl::StatusOr<rt::DeviceChoice> choice = rt::parseDevice(device);
  if (!choice.ok())
    return choice.status();
  if (choice->kind == Kind::Cuda)
    return cudaDevice(choice->index);
  if (choice->kind != Kind::Auto)
    return Device{choice->kind, 0, ""};
  absl::StatusOr<Device> first = cudaDevice(0);
  return first.ok() ? *first : Device{};
}

/// ptxas, where the machine has one: the driver's compiler keeps no cubin for us.
static rt::Assembler assemblerHere() {
  absl::StatusOr<std::string> path = findPtxas();
  if (!path.ok())
    return {};
  return {*path, [](std::string_view ptx, std::string_view chip) -> absl::StatusOr<std::string> {
            absl::StatusOr<PtxasReport> report = assemble(ptx, chip);
            if (!report.ok())
              return report.status();
            return std::move(report->cubin);
          }};
}

static absl::StatusOr<std::unique_ptr<rt::Machine>> openAnywhere(rt::Executable executable,
                                                                 const Request &request) {
  if (!absl::StartsWith(executable.target, "sm_"))
    return rt::makeCpuMachine(std::move(executable), request.threads);
  absl::StatusOr<rt::DeviceChoice> choice = rt::parseDevice(request.device);
  if (!choice.ok())
    return choice.status();
  if (choice->kind == Kind::Cpu || choice->kind == Kind::Reference)
    return absl::InvalidArgumentError(absl::StrCat("the executable is for ", executable.target,
                                                   ", not for --device ", request.device,
                                                   ": compile it with --target cpu"));
  rt::CudaOptions options;
  options.device = choice->index;
  options.cacheFolder = cacheFolder();
  options.assembler = assemblerHere();
  absl::StatusOr<rt::CudaOptions> told = rt::withEnvironment(std::move(options));
  if (!told.ok())
    return told.status();
  return rt::makeCudaMachine(std::move(executable), *told);
}

absl::StatusOr<std::unique_ptr<rt::Machine>> weft::openMachine(rt::Executable executable,
                                                               const Request &request) {
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = openAnywhere(std::move(executable), request);
  if (machine.ok() && request.profile)
    if (absl::Status status = rt::timeKernels(**machine); !status.ok())
      return status;
  return machine;
}

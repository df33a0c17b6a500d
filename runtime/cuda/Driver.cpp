//===- Driver.cpp ---------------------------------------------------------===//
#include "runtime/cuda/Driver.h"

#include "runtime/cuda/Library.h"

#include "absl/strings/str_cat.h"

namespace weft::rt::cuda {
namespace {

constexpr int kOldestVersion = 12000; // tensor maps

void bindDevices(Binder &bind, Driver &driver) {
  bind("cuInit", driver.init);
  bind("cuDriverGetVersion", driver.driverGetVersion);
  bind("cuGetErrorName", driver.getErrorName);
  bind("cuGetErrorString", driver.getErrorString);
  bind("cuDeviceGetCount", driver.deviceGetCount);
  bind("cuDeviceGet", driver.deviceGet);
  bind("cuDeviceGetName", driver.deviceGetName);
  bind("cuDeviceGetAttribute", driver.deviceGetAttribute);
  bind("cuDeviceTotalMem_v2", driver.deviceTotalMem);
  bind("cuDevicePrimaryCtxRetain", driver.primaryCtxRetain);
  bind("cuDevicePrimaryCtxRelease_v2", driver.primaryCtxRelease);
  bind("cuCtxSetCurrent", driver.ctxSetCurrent);
}

void bindMemory(Binder &bind, Driver &driver) {
  bind("cuMemGetInfo_v2", driver.memGetInfo);
  bind("cuMemAlloc_v2", driver.memAlloc);
  bind("cuMemFree_v2", driver.memFree);
  bind("cuMemHostAlloc", driver.memHostAlloc);
  bind("cuMemFreeHost", driver.memFreeHost);
  bind("cuMemcpyHtoDAsync_v2", driver.memcpyHtoDAsync);
  bind("cuMemcpyDtoHAsync_v2", driver.memcpyDtoHAsync);
  bind("cuMemcpyDtoDAsync_v2", driver.memcpyDtoDAsync);
  bind("cuMemsetD8Async", driver.memsetD8Async);
}

void bindStreams(Binder &bind, Driver &driver) {
  bind("cuStreamCreate", driver.streamCreate);
  bind("cuStreamDestroy_v2", driver.streamDestroy);
  bind("cuStreamSynchronize", driver.streamSynchronize);
  bind("cuStreamBeginCapture_v2", driver.streamBeginCapture);
  bind("cuStreamEndCapture", driver.streamEndCapture);
  bind("cuStreamGetCaptureInfo_v2", driver.streamGetCaptureInfo);
  bind("cuStreamUpdateCaptureDependencies", driver.streamUpdateCaptureDependencies);
  bind("cuGraphGetNodes", driver.graphGetNodes);
  bind("cuGraphNodeGetType", driver.graphNodeGetType);
  bind("cuGraphMemsetNodeGetParams", driver.graphMemsetNodeGetParams);
  bind("cuGraphNodeGetDependencies", driver.graphNodeGetDependencies);
  bind("cuGraphNodeGetDependentNodes", driver.graphNodeGetDependentNodes);
  bind("cuGraphAddDependencies", driver.graphAddDependencies);
  bind("cuGraphDestroyNode", driver.graphDestroyNode);
  bind("cuGraphInstantiateWithFlags", driver.graphInstantiateWithFlags);
  bind("cuGraphLaunch", driver.graphLaunch);
  bind("cuGraphExecDestroy", driver.graphExecDestroy);
  bind("cuGraphDestroy", driver.graphDestroy);
  bind("cuEventCreate", driver.eventCreate);
  bind("cuEventRecord", driver.eventRecord);
  bind("cuEventSynchronize", driver.eventSynchronize);
  bind("cuEventElapsedTime", driver.eventElapsedTime);
  bind("cuEventDestroy_v2", driver.eventDestroy);
}

void bindModules(Binder &bind, Driver &driver) {
  bind("cuModuleLoadData", driver.moduleLoadData);
  bind("cuModuleLoadDataEx", driver.moduleLoadDataEx);
  bind("cuModuleUnload", driver.moduleUnload);
  bind("cuModuleGetFunction", driver.moduleGetFunction);
  bind("cuFuncGetAttribute", driver.funcGetAttribute);
  bind("cuFuncSetAttribute", driver.funcSetAttribute);
  bind("cuOccupancyMaxActiveBlocksPerMultiprocessor", driver.occupancyMaxActiveBlocks);
  bind("cuLaunchKernel", driver.launchKernel);
  bind("cuTensorMapEncodeTiled", driver.tensorMapEncodeTiled);
}

absl::StatusOr<Driver> loadDriver() {
  absl::StatusOr<Library> library = Library::open({"libcuda.so.1"}, "a CUDA device");
  if (!library.ok())
    return library.status();
  Driver driver{};
  driver.path = library->path();
  Binder bind(*library);
  bindDevices(bind, driver);
  bindMemory(bind, driver);
  bindStreams(bind, driver);
  bindModules(bind, driver);
  if (absl::Status status = bind.status("Weft needs a driver of CUDA 12.0 or newer"); !status.ok())
    return status;
  library->find("cuFuncLoad", driver.funcLoad);
  library->find("cuFuncGetParamInfo", driver.funcGetParamInfo);
  if (Result result = driver.init(0); result != kSuccess && result != kNoDevice)
    return absl::FailedPreconditionError(
        absl::StrCat(driver.path, ": the driver does not start: ", describe(driver, result)));
  if (absl::Status status = check(driver, driver.driverGetVersion(&driver.version), "cuDriverGetVersion");
      !status.ok())
    return status;
  if (driver.version < kOldestVersion)
    return absl::FailedPreconditionError(absl::StrCat(driver.path,
                                                      ": expected a driver of CUDA 12.0 or "
                                                      "newer, found ",
                                                      driver.version / 1000, ".",
                                                      driver.version % 1000 / 10));
  return driver;
}

} // namespace

absl::StatusOr<const Driver *> driver() {
  // Never destroyed: threads may still call the driver while the process ends.
  static const auto *loaded = new absl::StatusOr<Driver>(loadDriver());
  if (!loaded->ok())
    return loaded->status();
  return &**loaded;
}

std::string describe(const Driver &driver, Result result) {
  const char *name = nullptr, *text = nullptr;
  if (driver.getErrorName(result, &name) != kSuccess || !name)
    return absl::StrCat("CUDA error ", result);
  if (driver.getErrorString(result, &text) != kSuccess || !text)
    return name;
  return absl::StrCat(name, " (", text, ")");
}

absl::Status check(const Driver &driver, Result result, std::string_view what) {
  if (result == kSuccess)
    return absl::OkStatus();
  std::string text = absl::StrCat(std::string(what), ": ", describe(driver, result));
  return result == kOutOfMemory ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

bool isSticky(Result result) {
  switch (result) {
  case kIllegalAddress:
  case kLaunchTimeout:
  case kAssert:
  case kHardwareStackError:
  case kIllegalInstruction:
  case kMisalignedAddress:
  case kInvalidAddressSpace:
  case kInvalidCounter:
  case kLaunchFailed:
  case kUnknown:
    return true;
  default:
    return false;
  }
}

} // namespace weft::rt::cuda

//===- Modules.cpp --------------------------------------------------------===//
#include "runtime/cuda/Modules.h"

#include "runtime/cuda/CubinCache.h"
#include "runtime/cuda/Linker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace weft::rt::cuda {
namespace {

constexpr size_t kLogBytes = 16 * 1024;
constexpr unsigned kMostLoaders = 8;
constexpr uint32_t kSharedWithoutOptin = 48 * 1024;

template <typename Text> absl::Status refusal(const Kernel &kernel, const Text &why) {
  return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel.name, " can't be loaded: ", why));
}

/// What to do about a result of loading, beside the compiler's messages.
std::string advice(const Gpu &gpu, Result result) {
  switch (result) {
  case kNoBinaryForGpu:
    return absl::StrCat("; its code is for another chip than ", gpu.facts.chip, " of ", gpu.facts.name);
  case kUnsupportedPtxVersion:
    return absl::StrCat("; the driver (CUDA ", gpu.driver.version / 1000, ".", gpu.driver.version % 1000 / 10,
                        ") is older than the PTX: update it");
  default:
    return "";
  }
}

/// "sm_90a" runs on 9.0 alone; "sm_80" on 8.0 and newer.
absl::Status checkChip(const std::string &target, const CudaDevice &device) {
  bool known = target == "sm_90a" || target == "sm_80";
  bool fits = target == "sm_90a" ? device.major == 9 && device.minor == 0 : device.major >= 8;
  if (known && fits)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("target '", target, "': expected sm_80 or sm_90a, as cuda:", device.index, " (",
                   device.name, ", ", device.chip, ") can run; compile for it"));
}

/// What PTX for `target` is assembled to: machine code of sm_80 does not load on
/// a newer device, while its PTX may be assembled for any; sm_90a stays itself.
std::string machineChip(const std::string &target, const CudaDevice &device) {
  return target.ends_with('a') ? target : absl::StrCat("sm_", device.major, device.minor);
}

} // namespace

Modules::~Modules() {
  for (const Object &object : objects)
    if (object.module)
      gpu.driver.moduleUnload(object.module);
}

absl::Status Modules::load(const Executable &executable, const CudaOptions &options) {
  auto start = std::chrono::steady_clock::now();
  if (absl::Status status = checkChip(executable.target, gpu.facts); !status.ok())
    return status;
  std::map<std::pair<std::string_view, bool>, size_t> numbers; // object and link to number
  for (const Kernel &kernel : executable.kernels)
    if (kernel.kind == Kernel::Kind::Code) {
      if (kernel.form == Kernel::Form::Host)
        return refusal(kernel, "it is code for the CPU");
      if (numbers.emplace(std::pair(std::string_view(kernel.object), kernel.link), objects.size()).second)
        objects.emplace_back().kernel = &kernel;
    }
  std::atomic<size_t> next = 0;
  auto work = [&] {
    gpu.attach(); // what fails here fails again below
    for (size_t i = next++; i < objects.size(); i = next++)
      loadObject(objects[i], executable, options);
  };
  unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, kMostLoaders);
  std::vector<std::thread> loaders;
  for (size_t i = 1; i < std::min<size_t>(cores, objects.size()); ++i)
    loaders.emplace_back(work);
  work();
  for (std::thread &loader : loaders)
    loader.join();
  kernels.resize(executable.kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Kernel &kernel = executable.kernels[i];
    if (kernel.kind != Kernel::Kind::Code)
      continue;
    const Object &object = objects[numbers.at({kernel.object, kernel.link})];
    if (!object.status.ok())
      return object.status;
    if (absl::Status status = resolve(kernel, object, kernels[i]); !status.ok())
      return status;
  }
  for (const Object &object : objects)
    count(object);
  gpu.counters.loadSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return absl::OkStatus();
}

void Modules::count(const Object &object) {
  CudaCounters &counters = gpu.counters;
  ++counters.modulesLoaded;
  counters.compiledByDriver += object.source == Object::Source::Driver;
  counters.compiledByAssembler += object.source == Object::Source::Assembler;
  counters.linked += object.source == Object::Source::Linker;
  counters.cubinsFound += object.source == Object::Source::Kept;
}

/// The machine code of `object` by the linker or the assembler, or as it was kept.
absl::StatusOr<std::string> Modules::cubinOf(Object &object, const Executable &executable,
                                             const CudaOptions &options) const {
  const Kernel &kernel = *object.kernel;
  const std::string chip = machineChip(executable.target, gpu.facts);
  const LinkLibrary *linker = nullptr;
  std::vector<std::string_view> parts{kernel.object, kernel.symbol, chip};
  if (kernel.link) {
    absl::StatusOr<const LinkLibrary *> loaded = linkLibrary();
    if (!loaded.ok())
      return refusal(kernel, loaded.status().message());
    linker = *loaded;
    for (const rt::Library &library : executable.libraries)
      parts.push_back(library.object);
  }
  parts.push_back(linker ? linker->identity : options.assembler.identity);
  std::string version = absl::StrCat(gpu.driver.version), key;
  parts.push_back(version);
  key = hashOf(parts);
  CubinCache cache(options.cacheFolder);
  if (std::optional<std::string> kept = cache.find(kernel, key)) {
    object.source = Object::Source::Kept;
    return std::move(*kept);
  }
  object.source = linker ? Object::Source::Linker : Object::Source::Assembler;
  absl::StatusOr<std::string> cubin = linker ? linkKernel(*linker, kernel, executable.libraries, chip)
                                             : options.assembler.assemble(kernel.object, chip);
  if (!cubin.ok())
    return refusal(kernel, cubin.status().message());
  cache.store(kernel, key, *cubin);
  return cubin;
}

void Modules::loadObject(Object &object, const Executable &executable, const CudaOptions &options) {
  const Kernel &kernel = *object.kernel;
  bool ptx = kernel.form == Kernel::Form::Ptx;
  if (ptx && !kernel.link && !options.assembler.assemble)
    return loadPtx(object);
  std::string made;
  if (ptx) {
    absl::StatusOr<std::string> cubin = cubinOf(object, executable, options);
    if (!cubin.ok()) {
      object.status = cubin.status();
      return;
    }
    made = std::move(*cubin);
  }
  Result result = gpu.driver.moduleLoadData(&object.module, ptx ? made.data() : kernel.object.data());
  if (result != kSuccess)
    object.status = refusal(kernel, describe(gpu.driver, result) + advice(gpu, result));
}

void Modules::loadPtx(Object &object) {
  const Kernel &kernel = *object.kernel;
  object.source = Object::Source::Driver;
  std::string errors(kLogBytes, '\0'), notes(kLogBytes, '\0');
  auto number = [](uintptr_t value) { return reinterpret_cast<void *>(value); };
  JitOption options[] = {kJitErrorLog, kJitErrorLogBytes, kJitInfoLog, kJitInfoLogBytes,
                         kJitOptimizationLevel};
  void *values[] = {errors.data(), number(kLogBytes - 1), notes.data(), number(kLogBytes - 1), number(4)};
  Result result =
      gpu.driver.moduleLoadDataEx(&object.module, kernel.object.c_str(), std::size(options), options, values);
  // With lazy loading the compiler may wait until a function is asked for.
  Function function = nullptr;
  if (result == kSuccess)
    result = gpu.driver.moduleGetFunction(&function, object.module, kernel.symbol.c_str());
  if (result == kSuccess && gpu.driver.funcLoad)
    result = gpu.driver.funcLoad(function);
  auto text = [](const std::string &buffer) {
    return std::string(absl::StripAsciiWhitespace(std::string(buffer.c_str())));
  };
  object.log = text(notes);
  if (result == kNotFound)
    object.status = refusal(kernel, absl::StrCat("its PTX has no entry '", kernel.symbol, "'"));
  else if (result != kSuccess)
    object.status = refusal(kernel, absl::StrCat(describe(gpu.driver, result), advice(gpu, result),
                                                 text(errors).empty() ? "" : ": ", text(errors)));
}

absl::Status Modules::resolve(const Kernel &kernel, const Object &object, LoadedKernel &loaded) {
  const Driver &driver = gpu.driver;
  const GpuLaunch &launch = kernel.launch;
  Result result = driver.moduleGetFunction(&loaded.function, object.module, kernel.symbol.c_str());
  if (result == kNotFound)
    return refusal(kernel, absl::StrCat("its code has no entry '", kernel.symbol, "'"));
  if (result == kSuccess && driver.funcLoad)
    result = driver.funcLoad(loaded.function);
  int mostThreads = 0, sharedBytes = 0;
  for (auto [value, attribute] :
       {std::pair(&mostThreads, kFunctionMaxThreads), std::pair(&sharedBytes, kFunctionSharedBytes),
        std::pair(&loaded.localBytes, kFunctionLocalBytes), std::pair(&loaded.registers, kFunctionRegisters)})
    if (result == kSuccess)
      result = driver.funcGetAttribute(value, attribute, loaded.function);
  uint32_t allShared = launch.sharedBytes + static_cast<uint32_t>(sharedBytes);
  if (result == kSuccess && launch.threads > static_cast<uint32_t>(mostThreads))
    return refusal(kernel, absl::StrCat("a block of ", launch.threads, " threads is more than the ",
                                        mostThreads, " that its ", loaded.registers, " registers allow"));
  if (result == kSuccess && allShared > gpu.facts.sharedBytes)
    return refusal(kernel, absl::StrCat("a block needs ", allShared, " bytes of shared memory, ",
                                        gpu.facts.name, " has ", gpu.facts.sharedBytes));
  if (result == kSuccess &&
      launch.sharedBytes >
          kSharedWithoutOptin - std::min(kSharedWithoutOptin, static_cast<uint32_t>(sharedBytes)))
    result = driver.funcSetAttribute(loaded.function, kFunctionMaxDynamicShared,
                                     static_cast<int>(launch.sharedBytes));
  if (result == kSuccess)
    result = driver.occupancyMaxActiveBlocks(&loaded.blocksPerMultiprocessor, loaded.function,
                                             static_cast<int>(launch.threads), launch.sharedBytes);
  if (result != kSuccess)
    return refusal(kernel, describe(driver, result));
  if (loaded.blocksPerMultiprocessor < 1)
    return refusal(kernel, absl::StrCat("no block of ", launch.threads, " threads with ", loaded.registers,
                                        " registers and ", allShared,
                                        " bytes of shared memory fits a multiprocessor"));
  loaded.log = object.log;
  return absl::OkStatus();
}

} // namespace weft::rt::cuda

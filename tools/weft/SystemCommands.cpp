//===- SystemCommands.cpp - weft devices, cache ----------------------------===//

#include "tools/weft/Output.h"

#include "passes/Schedule/KernelCache.h"
#include "runtime/core/File.h"
#include "runtime/cpu/HostFeatures.h"
#include "runtime/cpu/Memory.h"
#include "runtime/cuda/Cuda.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include <unistd.h>

using namespace weft;
namespace cl = llvm::cl;
namespace fs = std::filesystem;

namespace {

/// The value of `model name` in /proc/cpuinfo.
std::string processorName(const std::string &cpuinfo) {
  size_t line = cpuinfo.find("model name");
  size_t colon = line == std::string::npos ? line : cpuinfo.find(':', line);
  if (colon == std::string::npos)
    return "unknown";
  return llvm::StringRef(cpuinfo).substr(colon + 1).split('\n').first.trim().str();
}

uint64_t machineMemory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

struct CacheEntry {
  fs::path path;
  uint64_t bytes = 0;
  std::optional<rt::Kernel> kernel; // none: the file is damaged
};

std::vector<CacheEntry> cacheEntries() {
  std::vector<CacheEntry> entries;
  std::error_code error;
  for (const fs::directory_entry &file : fs::directory_iterator(cacheFolder() + "/kernels", error)) {
    if (file.path().extension() != ".weftkernel")
      continue;
    CacheEntry entry{file.path(), 0, std::nullopt};
    absl::StatusOr<std::string> bytes = rt::readFile(file.path().string());
    if (bytes.ok()) {
      entry.bytes = bytes->size();
      absl::StatusOr<rt::Executable> holder = rt::deserialize(*bytes);
      if (holder.ok() && holder->kernels.size() == 1)
        entry.kernel = std::move(holder->kernels.front());
    }
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const CacheEntry &a, const CacheEntry &b) {
    auto key = [](const CacheEntry &entry) {
      return std::pair(entry.kernel ? entry.kernel->name : "", entry.path);
    };
    return key(a) < key(b);
  });
  return entries;
}

int cacheList(int argc, const char **argv) {
  cl::opt<bool> json("json", cl::desc("one JSON object"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "lists the compiled kernels on disk",
                  "  weft cache ls\n  WEFT_CACHE_DIR=/tmp/cache weft cache ls --json\n"))
    return kUsage;
  uint64_t total = 0;
  Table table({"kernel", "hash", "bytes"});
  rt::OrderedJson kernels = rt::OrderedJson::array();
  std::vector<CacheEntry> entries = cacheEntries();
  for (const CacheEntry &entry : entries) {
    total += entry.bytes;
    std::string name = entry.kernel ? entry.kernel->name : "(damaged: compiled again when needed)";
    std::string hash = entry.kernel ? entry.kernel->hash : "";
    table.add({name, hash, grouped(static_cast<int64_t>(entry.bytes))});
    kernels.push_back({{"kernel", name},
                       {"hash", hash},
                       {"file", entry.path.string()},
                       {"bytes", entry.bytes},
                       {"damaged", !entry.kernel}});
  }
  if (json)
    printJson({{"folder", cacheFolder()}, {"bytes", total}, {"kernels", kernels}});
  else
    llvm::outs() << (entries.empty() ? "" : table.text()) << cacheFolder() << ": " << entries.size()
                 << " kernels, " << rt::bytesText(total) << "\n";
  return 0;
}

int cacheExplain(int argc, const char **argv) {
  cl::opt<std::string> hash(cl::Positional, cl::Required, cl::desc("HASH (or how it starts)"),
                            cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "says what a compiled kernel depends on, and whether this build finds it",
                  "  weft cache explain 3f2a9c01\n"))
    return kUsage;
  KernelCache cache(cacheFolder(), hostTarget());
  std::vector<std::string> hashes;
  int found = 0;
  for (const CacheEntry &entry : cacheEntries()) {
    if (!entry.kernel)
      continue;
    hashes.push_back(entry.kernel->hash);
    if (!absl::StartsWith(entry.kernel->hash, std::string(hash)))
      continue;
    ++found;
    llvm::outs() << entry.path.string() << ": " << entry.kernel->name << ", " << rt::bytesText(entry.bytes)
                 << "\n";
    if (std::count(hashes.begin(), hashes.end(), entry.kernel->hash) > 1)
      continue;
    if (entry.kernel->form == rt::Kernel::Form::Cubin) {
      llvm::outs() << "machine code of a GPU; its key is the hash of the PTX, the chip, what made the code of "
                      "it, and the driver's version\n";
      continue;
    }
    // A file of another build has the same kernel under another name.
    bool current = cache.find(entry.kernel->hash).has_value();
    llvm::outs() << (current
                         ? "this build finds it; its key is the hash of:\n"
                         : "made by another build or for another target; this build looks for the hash of:\n")
                 << cache.explain(entry.kernel->hash) << "\n";
  }
  if (found > 0)
    return 0;
  return fail(
      absl::NotFoundError(absl::StrCat(cacheFolder(), ": holds no kernel with the hash ", std::string(hash),
                                       didYouMean(hash, hashes), " (weft cache ls lists them)")));
}

int cacheClear(int argc, const char **argv) {
  if (!parseFlags(argc, argv, "removes the compiled kernels on disk", "  weft cache clear\n"))
    return kUsage;
  uint64_t bytes = 0, count = 0;
  for (const CacheEntry &entry : cacheEntries()) {
    std::error_code error;
    if (!fs::remove(entry.path, error) && error)
      return fail(absl::PermissionDeniedError(
          absl::StrCat(entry.path.string(), ": can't be removed: ", error.message())));
    bytes += entry.bytes;
    ++count;
  }
  // What timing chose for products (runtime/cuda/Choices.h).
  std::error_code error;
  fs::remove_all(cacheFolder() + "/products", error);
  llvm::outs() << cacheFolder() << ": removed " << count << " kernels, " << rt::bytesText(bytes) << "\n";
  return 0;
}

/// `cuda:0     NVIDIA H200: ...`, a line a device; or why there is none.
std::string cudaText(const absl::StatusOr<std::vector<rt::CudaDevice>> &devices) {
  if (!devices.ok())
    return absl::StrCat("cuda       none: ", std::string(devices.status().message()), "\n");
  std::string text;
  for (const rt::CudaDevice &device : *devices)
    text += llvm::formatv("{0,-10} {1} ({2}): {3} multiprocessors, memory {4}, driver of CUDA {5}.{6}\n",
                          absl::StrCat("cuda:", device.index), device.name, device.chip,
                          device.multiprocessors, rt::bytesText(device.memoryBytes),
                          device.driverVersion / 1000, device.driverVersion % 1000 / 10)
                .str();
  return text.empty() ? "cuda       none: the driver sees no device\n" : text;
}

rt::OrderedJson cudaJson(const rt::CudaDevice &device) {
  return {{"device", absl::StrCat("cuda:", device.index)},
          {"name", device.name},
          {"chip", device.chip},
          {"multiprocessors", device.multiprocessors},
          {"clock_mhz", device.clockMHz},
          {"memory_bytes", device.memoryBytes},
          {"l2_bytes", device.l2Bytes},
          {"driver_version", device.driverVersion}};
}

} // namespace

int weft::devicesCommand(int argc, const char **argv) {
  cl::opt<bool> json("json", cl::desc("one JSON array"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "lists the devices that can run a model",
                  "  weft devices\n  weft devices --json\n"))
    return kUsage;
  CpuTarget target = hostTarget();
  std::string name = processorName(rt::hostCpuinfo());
  unsigned cores = std::thread::hardware_concurrency();
  uint64_t memory = machineMemory(), available = std::min(rt::availableMemory(), memory);
  absl::StatusOr<std::vector<rt::CudaDevice>> cuda = rt::cudaDevices();
  if (json) {
    rt::OrderedJson list =
        rt::OrderedJson::array({{{"device", "cpu"},
                                 {"name", name},
                                 {"cores", cores},
                                 {"vector_bits", target.vectorBits},
                                 {"target_cpu", target.cpu},
                                 {"memory_bytes", memory},
                                 {"available_bytes", available}},
                                {{"device", "reference"}, {"name", "interpreter in float64"}}});
    if (cuda.ok())
      for (const rt::CudaDevice &device : *cuda)
        list.push_back(cudaJson(device));
    printJson(list);
    return 0;
  }
  llvm::outs() << llvm::formatv(
                      "cpu        {0}: {1} cores, vectors of {2} bits ({3}), memory {4}, {5} of it free\n",
                      name, cores, target.vectorBits, target.cpu, rt::bytesText(memory),
                      rt::bytesText(available))
               << "reference  interpreter in float64, one thread: slow, for checking\n"
               << cudaText(cuda);
  return 0;
}

int weft::cacheCommand(int argc, const char **argv) {
  const CommandEntry actions[] = {{"ls", "list the compiled kernels", cacheList},
                                  {"explain", "what a kernel depends on", cacheExplain},
                                  {"clear", "remove the compiled kernels", cacheClear}};
  if (cacheFolder().empty())
    return fail(absl::FailedPreconditionError(
        "there is no cache: neither WEFT_CACHE_DIR, XDG_CACHE_HOME nor HOME is set"));
  return runAction(actions, "cache", argc, argv);
}

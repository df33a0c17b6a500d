//===- KernelCache.cpp - Compiled kernels on disk -------------------------===//

#include "passes/Schedule/KernelCache.h"

#include "runtime/core/File.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/xxhash.h"

#include <cstdlib>
#include <filesystem>

using namespace weft;

std::string weft::buildStamp() {
  // The binary itself: its size and time of writing name a build well enough.
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  auto size = std::filesystem::file_size(self, error);
  auto time = std::filesystem::last_write_time(self, error).time_since_epoch().count();
  return error ? "unknown" : std::to_string(size) + "-" + std::to_string(time);
}

KernelCache::KernelCache(std::string folder, const CpuTarget &target) : folder(std::move(folder)) {
  suffix = target.triple + "\n" + target.cpu + "\n" + target.features + "\n" +
           std::to_string(target.vectorBits) + "\nllvm " LLVM_VERSION_STRING "\n" + buildStamp();
}

KernelCache::KernelCache(std::string folder, const GpuTarget &target) : folder(std::move(folder)) {
  suffix = target.chip + "\nptx " + std::to_string(target.ptxVersion) + "\nllvm " LLVM_VERSION_STRING "\n" +
           buildStamp();
  if (const char *jitter =
          std::getenv("WEFT_CUDA_JITTER")) // other machine code (passes/Tile/EmitBarriers.cpp)
    suffix += std::string("\njitter ") + jitter;
}

std::string KernelCache::explain(const std::string &hash) const { return "kernel " + hash + "\n" + suffix; }

std::string KernelCache::pathOf(const std::string &hash) const {
  return folder + "/kernels/" + llvm::utohexstr(llvm::xxh3_64bits(explain(hash)), true, 16) + ".weftkernel";
}

std::optional<rt::Kernel> KernelCache::find(const std::string &hash) const {
  if (folder.empty())
    return std::nullopt;
  absl::StatusOr<std::string> bytes = rt::readFile(pathOf(hash));
  if (!bytes.ok())
    return std::nullopt;
  absl::StatusOr<rt::Executable> holder = rt::deserialize(*bytes);
  if (!holder.ok() || holder->kernels.size() != 1 || holder->kernels.front().hash != hash)
    return std::nullopt;
  return std::move(holder->kernels.front());
}

void KernelCache::store(const rt::Kernel &kernel) const {
  if (folder.empty())
    return;
  std::error_code error;
  std::filesystem::create_directories(folder + "/kernels", error);
  rt::Executable holder;
  holder.kernels.push_back(kernel);
  absl::StatusOr<std::string> bytes = rt::serialize(holder);
  // A cache that can't be written costs time, nothing else.
  if (bytes.ok())
    rt::writeFileAtomic(pathOf(kernel.hash), *bytes).IgnoreError();
}

//===- CubinCache.cpp -----------------------------------------------------===//
#include "runtime/cuda/CubinCache.h"

#include "runtime/core/File.h"

#include "absl/strings/str_cat.h"

namespace weft::rt::cuda {

std::string hashOf(const std::vector<std::string_view> &parts) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t hash = 0xcbf29ce484222325;
  auto add = [&](unsigned char byte) { hash = (hash ^ byte) * kPrime; };
  for (std::string_view part : parts) {
    for (int shift = 0; shift < 64; shift += 8)
      add(static_cast<unsigned char>(part.size() >> shift));
    for (char letter : part)
      add(static_cast<unsigned char>(letter));
  }
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

std::string CubinCache::pathOf(const std::string &key) const {
  return absl::StrCat(folder, "/kernels/", key, ".weftkernel");
}

std::optional<std::string> CubinCache::find(const Kernel &kernel, const std::string &key) const {
  if (folder.empty())
    return std::nullopt;
  absl::StatusOr<std::string> bytes = readFile(pathOf(key));
  if (!bytes.ok())
    return std::nullopt;
  absl::StatusOr<Executable> holder = deserialize(*bytes);
  if (!holder.ok() || holder->kernels.size() != 1)
    return std::nullopt;
  Kernel &kept = holder->kernels.front();
  if (kept.form != Kernel::Form::Cubin || kept.hash != key || kept.symbol != kernel.symbol)
    return std::nullopt;
  return std::move(kept.object);
}

void CubinCache::store(const Kernel &kernel, const std::string &key, const std::string &cubin) const {
  if (folder.empty())
    return;
  Executable holder;
  holder.kernels.push_back(kernel);
  Kernel &kept = holder.kernels.back();
  kept.form = Kernel::Form::Cubin, kept.hash = key, kept.object = cubin, kept.link = false;
  // A cache that can't be written costs time, nothing else.
  if (!makeFolders(folder + "/kernels").ok())
    return;
  if (absl::StatusOr<std::string> bytes = serialize(holder); bytes.ok())
    writeFileAtomic(pathOf(key), *bytes).IgnoreError();
}

} // namespace weft::rt::cuda

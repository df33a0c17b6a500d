//===- Memory.cpp ---------------------------------------------------------===//
#include "runtime/cpu/Memory.h"

#include "runtime/core/ExecutableCheck.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::rt {
namespace {

constexpr uint64_t kUnlimited = uint64_t(1) << 62;
constexpr size_t kBuffersNamed = 4;

/// The number after `key` in a file of lines `key number`; the first number of
/// the file when the key is empty.
std::optional<uint64_t> numberIn(const std::string &path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string word;
    uint64_t number = 0;
    if (!key.empty() && (!(words >> word) || word != key))
      continue;
    if (words >> number)
      return number;
    return std::nullopt;
  }
  return std::nullopt;
}

/// What a group's limit leaves; files that can be dropped from memory count as free.
uint64_t leftInGroup(const std::string &folder, const char *limitFile, const char *usageFile,
                     const char *cacheKey) {
  std::optional<uint64_t> limit = numberIn(absl::StrCat(folder, "/", limitFile), "");
  std::optional<uint64_t> used = numberIn(absl::StrCat(folder, "/", usageFile), "");
  if (!limit || !used)
    return kUnlimited; // no such group, or "max"
  uint64_t cache = numberIn(folder + "/memory.stat", cacheKey).value_or(0);
  uint64_t held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

/// Lines `number:controllers:/path`: v2's controllers are empty, v1's hold "memory".
uint64_t leftInGroups(const std::string &root) {
  uint64_t left = kUnlimited;
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    bool v1 = controllers == "memory";
    if (!v1 && !controllers.empty())
      continue;
    std::string base = root + (v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup");
    // Limits of outer groups hold too. Inside a container the path may not
    // exist, and the group is the mount itself: the walk ends there.
    for (std::string_view group = path;; group = group.substr(0, group.rfind('/'))) {
      std::string folder = base + std::string(group);
      left = std::min(left, v1 ? leftInGroup(folder, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                             "total_inactive_file")
                               : leftInGroup(folder, "memory.max", "memory.current", "inactive_file"));
      if (group.empty() || group.rfind('/') == group.npos)
        break;
    }
  }
  return left;
}

} // namespace

std::string largestBuffers(const Executable &executable) {
  std::vector<std::pair<uint64_t, std::string>> buffers;
  for (const StateEntry &state : executable.states)
    buffers.emplace_back(denseBytes(state.type, state.shape).value_or(0), state.name);
  for (const Program &program : executable.programs) {
    std::map<std::pair<uint64_t, uint64_t>, uint32_t> seen; // place and size to kernel
    for (const Call &call : program.calls)
      for (const Operand &operand : call.operands)
        if (operand.space == Space::Arena)
          seen.emplace(std::pair(operand.offset, operand.bytes), call.kernel);
    for (const auto &[place, kernel] : seen)
      buffers.emplace_back(place.second, absl::StrCat("a buffer of kernel ", executable.kernels[kernel].name,
                                                      " in program ", program.name));
  }
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const auto &a, const auto &b) { return a.first > b.first; });
  std::string text;
  for (size_t i = 0; i < std::min(buffers.size(), kBuffersNamed); ++i)
    absl::StrAppend(&text, i ? ", " : "", buffers[i].second, " (", bytesText(buffers[i].first), ")");
  return text;
}

absl::StatusOr<MappedMemory> MappedMemory::map(uint64_t bytes) {
  MappedMemory memory;
  if (bytes == 0)
    return memory;
  void *base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return absl::ResourceExhaustedError(
        absl::StrCat("the system gives no block of ", bytesText(bytes), ": ", std::strerror(errno)));
  madvise(base, bytes, MADV_HUGEPAGE); // a hint: a refusal changes speed alone
  memory.base = static_cast<std::byte *>(base);
  memory.length = bytes;
  return memory;
}

MappedMemory::MappedMemory(MappedMemory &&other) noexcept { *this = std::move(other); }

MappedMemory &MappedMemory::operator=(MappedMemory &&other) noexcept {
  std::swap(base, other.base);
  std::swap(length, other.length);
  return *this;
}

MappedMemory::~MappedMemory() {
  if (base)
    munmap(base, length);
}

uint64_t availableMemory(const std::string &root) {
  uint64_t left = leftInGroups(root);
  if (std::optional<uint64_t> kib = numberIn(root + "/proc/meminfo", "MemAvailable:"))
    left = std::min(left, *kib * 1024);
  return left;
}

absl::Status checkMemory(const Executable &executable, uint64_t extraBytes, uint64_t available) {
  uint64_t needed = executable.stateBytes + executable.arenaBytes + extraBytes;
  if (needed <= available)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("model ", executable.model, " needs ", bytesText(needed), " of memory (state ",
                   bytesText(executable.stateBytes), ", arena ", bytesText(executable.arenaBytes),
                   ", scratch and ports ", bytesText(extraBytes), "), but ", bytesText(available),
                   " are available; largest: ", largestBuffers(executable),
                   "; lower the rows or positions of a micro-batch, or choose a smaller model"));
}

std::string bytesText(uint64_t bytes) {
  constexpr const char *kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024)
    return absl::StrCat(bytes, " bytes");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1024;
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

} // namespace weft::rt

#include "runtime/cpu/Memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace weft::rt {
namespace {

constexpr uint64_t kMiB = 1 << 20;

/// A tree that stands for / while it lives.
class FakeRoot {
public:
  FakeRoot() : root(::testing::TempDir() + "weft-root-" + std::to_string(getpid())) {
    std::filesystem::remove_all(root);
  }
  ~FakeRoot() { std::filesystem::remove_all(root); }
  void write(const std::string &path, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  uint64_t available() const { return availableMemory(root); }

private:
  std::string root;
};

TEST(Memory, AvailableIsTheMachines) {
  FakeRoot root;
  EXPECT_EQ(root.available(), uint64_t(1) << 62);
  root.write("/proc/meminfo", "MemTotal:       4096 kB\nMemFree: 1 kB\nMemAvailable:    2048 kB\n");
  EXPECT_EQ(root.available(), 2 * kMiB);
}

// Catches a limit of an outer group that is not looked at, and page cache counted as used.
TEST(Memory, AvailableIsTheTightestGroups) {
  FakeRoot root;
  root.write("/proc/meminfo", "MemAvailable: 1048576 kB\n");
  root.write("/proc/self/cgroup", "0::/outer/inner\n");
  root.write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  root.write("/sys/fs/cgroup/outer/inner/memory.current", "1048576\n");
  EXPECT_EQ(root.available(), 1024 * kMiB);
  root.write("/sys/fs/cgroup/outer/memory.max", std::to_string(100 * kMiB));
  root.write("/sys/fs/cgroup/outer/memory.current", std::to_string(60 * kMiB));
  EXPECT_EQ(root.available(), 40 * kMiB);
  root.write("/sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file " + std::to_string(20 * kMiB) + "\n");
  EXPECT_EQ(root.available(), 60 * kMiB);
  root.write("/sys/fs/cgroup/outer/memory.current", std::to_string(500 * kMiB)); // over its limit
  EXPECT_EQ(root.available(), 0u);
}

// In a container the path from outside does not exist: the mount is the group.
TEST(Memory, AvailableReadsTheFirstVersionsGroups) {
  FakeRoot root;
  root.write("/proc/self/cgroup", "7:cpu:/x\n4:memory:/docker/abc\n0::/\n");
  root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(64 * kMiB));
  root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(30 * kMiB));
  root.write("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file " + std::to_string(10 * kMiB) + "\n");
  EXPECT_EQ(root.available(), 44 * kMiB);
}

TEST(Memory, RefusalNamesSizesAndLargestBuffers) {
  Executable executable;
  executable.model = "giant";
  executable.stateBytes = 3 * 1024 * kMiB;
  executable.arenaBytes = 600 * kMiB;
  executable.states = {{"small", {}, ElementType::F32, {4}, {}, 0, {}, {}, 0, 0, {}},
                       {"embed", {}, ElementType::F32, {512, 1024, 1024}, {}, 64, {}, {}, 0, 0, {}}};
  executable.kernels.resize(1);
  executable.kernels[0].name = "logits";
  executable.programs = {{"micro", {}, {}, {{0, 1, {{Space::Arena, 0, 500 * kMiB}}}}}};
  EXPECT_TRUE(checkMemory(executable, kMiB, 3601 * kMiB + 72 * kMiB).ok());
  absl::Status status = checkMemory(executable, kMiB, 1024 * kMiB);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  std::string message(status.message());
  for (const char *part : {"giant", "3.6 GiB", "state 3.0 GiB", "arena 600.0 MiB", "1.0 GiB are available",
                           "embed (2.0 GiB)", "kernel logits in program micro (500.0 MiB)"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  EXPECT_LT(message.find("embed"), message.find("logits"));
}

TEST(Memory, MappedIsZeroAlignedAndItsOwn) {
  absl::StatusOr<MappedMemory> memory = MappedMemory::map(3 * kMiB + 5);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 64, 0u);
  EXPECT_TRUE(std::all_of(memory->data(), memory->data() + memory->size(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ(MappedMemory::map(0)->data(), nullptr);
  absl::StatusOr<MappedMemory> impossible = MappedMemory::map(uint64_t(1) << 61);
  EXPECT_EQ(impossible.status().code(), absl::StatusCode::kResourceExhausted);
}

} // namespace
} // namespace weft::rt

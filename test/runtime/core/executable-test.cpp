#include "runtime/Executable.h"

#include "runtime/core/Checksum.h"
#include "runtime/core/ExecutableCheck.h"

#include <array>
#include <functional>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

Executable sample() {
  Executable executable;
  executable.model = "tiny", executable.target = "cpu:x86_64+avx2", executable.build = "abc123";
  executable.stateBytes = 4096, executable.arenaBytes = 8192;
  executable.states = {
      {"block.0.wq",
       StateEntry::Role::Parameter,
       ElementType::F32,
       {16, 32},
       {"dim", "head"},
       64,
       {InitRule::Kind::Truncated, 0.1, 1e-300},
       {16, 4, 16},
       1,
       2,
       {}},
      {"cache/k", StateEntry::Role::Cache, ElementType::BF16, {8}, {}, 2560, {}, {}, 0, 0, {}}};
  executable.states[0].kept.resize(32);
  std::iota(executable.states[0].kept.begin(), executable.states[0].kept.end(), 3);
  executable.kernels.resize(4);
  Kernel &code = executable.kernels[0];
  code.name = "norm", code.hash = "0123456789abcdef", code.symbol = "weft_norm";
  code.object = std::string("\x7f"
                            "ELF\0\1 any bytes \xff",
                            16);
  code.scratchBytes = 128;
  executable.kernels[1] = code;
  executable.kernels[1].symbol = "weft_other";
  executable.kernels[2].kind = Kernel::Kind::Gemm;
  executable.kernels[2].gemm = {4, 8, 16, 16, 17, 9, 2, 64, 0, 40, false, true, true};
  executable.kernels[3].kind = Kernel::Kind::Copy;
  executable.programs = {
      {"micro",
       {{"tokens", ElementType::I32, {2, 8}}},
       {{"loss", ElementType::F64, {}}},
       {{0, 7, {{Space::Input, 0, 64, 0}, {Space::State, 64, 2048}, {Space::Arena, 4096, 4096}}},
        {2, 1, {{Space::Arena, 0, 512}, {Space::Arena, 512, 1024}, {Space::Arena, 2048, 512}}},
        {3, 1, {{Space::Arena, 0, 4}, {Space::Result, 0, 4, 4}}}}},
      {"update", {}, {}, {}}};
  return executable;
}

// Catches a member that is not written, or read from another's place: every
// member of `sample` differs from its default and from its neighbours.
TEST(Executable, RoundTrip) {
  Executable before = sample();
  absl::StatusOr<std::string> file = serialize(before);
  ASSERT_TRUE(file.ok()) << file.status();
  absl::StatusOr<Executable> read = deserialize(*file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->model, "tiny");
  EXPECT_EQ(read->target, "cpu:x86_64+avx2");
  EXPECT_EQ(read->build, "abc123");
  EXPECT_EQ(read->stateBytes, 4096u);
  EXPECT_EQ(read->arenaBytes, 8192u);
  ASSERT_EQ(read->states.size(), 2u);
  const StateEntry &state = read->states[0];
  EXPECT_EQ(state.shape, (std::vector<int64_t>{16, 32}));
  EXPECT_EQ(state.axes, (std::vector<std::string>{"dim", "head"}));
  EXPECT_EQ(state.offset, 64u);
  EXPECT_EQ(state.init.kind, InitRule::Kind::Truncated);
  EXPECT_EQ(state.init.a, 0.1);
  EXPECT_EQ(state.init.b, 1e-300);
  EXPECT_EQ(state.fullShape, (std::vector<int64_t>{16, 4, 16}));
  EXPECT_EQ(state.firstAxis, 1);
  EXPECT_EQ(state.axisCount, 2);
  EXPECT_EQ(state.kept, before.states[0].kept);
  EXPECT_TRUE(read->states[1].fullShape.empty());
  EXPECT_EQ(read->states[1].name, "cache/k");
  EXPECT_EQ(read->states[1].role, StateEntry::Role::Cache);
  EXPECT_EQ(read->states[1].type, ElementType::BF16);
  ASSERT_EQ(read->kernels.size(), 4u);
  EXPECT_EQ(read->kernels[0].object, before.kernels[0].object);
  EXPECT_EQ(read->kernels[1].object, before.kernels[0].object);
  EXPECT_EQ(read->kernels[0].hash, "0123456789abcdef");
  EXPECT_EQ(read->kernels[0].scratchBytes, 128u);
  EXPECT_EQ(read->kernels[1].symbol, "weft_other");
  const Gemm &gemm = read->kernels[2].gemm;
  EXPECT_EQ(
      (std::vector<int64_t>{gemm.m, gemm.n, gemm.k, gemm.lda, gemm.ldb, gemm.ldc, gemm.batch, gemm.strideA,
                            gemm.strideB, gemm.strideC, gemm.transA, gemm.transB, gemm.accumulate}),
      (std::vector<int64_t>{4, 8, 16, 16, 17, 9, 2, 64, 0, 40, 0, 1, 1}));
  EXPECT_EQ(read->kernels[3].kind, Kernel::Kind::Copy);
  ASSERT_EQ(read->programs.size(), 2u);
  const Program &micro = read->programs[0];
  EXPECT_EQ(micro.inputs[0].name, "tokens");
  EXPECT_EQ(micro.inputs[0].type, ElementType::I32);
  EXPECT_EQ(micro.results[0].type, ElementType::F64);
  EXPECT_EQ(micro.calls[0].grid, 7);
  EXPECT_EQ(micro.calls[1].kernel, 2u);
  EXPECT_EQ(micro.calls[0].operands[2].space, Space::Arena);
  EXPECT_EQ(micro.calls[0].operands[2].offset, 4096u);
  EXPECT_EQ(micro.calls[2].operands[1].space, Space::Result);
  EXPECT_EQ(micro.calls[2].operands[1].start, 4u);
  EXPECT_EQ(*serialize(*read), *file); // nothing else differs
}

TEST(Executable, EqualObjectsAreStoredOnce) {
  Executable executable = sample();
  executable.kernels[0].object = executable.kernels[1].object = std::string(5000, 'x');
  size_t both = serialize(executable)->size();
  executable.kernels[1].object = std::string(5000, 'y');
  EXPECT_GE(serialize(executable)->size(), both + 5000);
}

struct Lie {
  std::function<void(Executable &)> tell;
  std::string message;
};

TEST(Executable, LiesAreNamed) {
  const std::vector<Lie> lies{
      {[](Executable &e) { e.states[0].offset = 65; }, "states[0] (block.0.wq).offset: expected a multiple"},
      {[](Executable &e) { e.states[0].offset = 4096; }, "leave the state space"},
      {[](Executable &e) { e.states[0].offset = UINT64_MAX - 63; }, "leave the state space"},
      {[](Executable &e) {
         e.states[0].shape = {INT64_MAX, INT64_MAX};
       },
       "is no shape"},
      {[](Executable &e) {
         e.states[0].shape = {16, -32};
       },
       "is no shape"},
      {[](Executable &e) { e.states[1].name = "block.0.wq"; }, "occurs twice"},
      {[](Executable &e) { e.states[0].kept[1] = 3; }, "states[0] (block.0.wq).slices"},
      {[](Executable &e) { e.states[0].kept.back() = 64; }, "states[0] (block.0.wq).slices"},
      {[](Executable &e) { e.states[0].kept.pop_back(); }, "states[0] (block.0.wq).slices"},
      {[](Executable &e) { e.states[0].axisCount = INT64_MAX; }, "states[0] (block.0.wq).slices"},
      {[](Executable &e) { e.states[0].axes.pop_back(); }, "states[0] (block.0.wq).axes"},
      {[](Executable &e) { e.programs[0].calls[0].kernel = 4; }, "programs[0] (micro).calls[0].kernel"},
      {[](Executable &e) { e.programs[0].calls[0].grid = -1; }, "calls[0].grid"},
      {[](Executable &e) { e.programs[0].calls[0].operands[2].offset = 4097; }, "leave the arena of 8192"},
      {[](Executable &e) { e.programs[0].calls[0].operands[2].bytes = UINT64_MAX; }, "leave the arena"},
      {[](Executable &e) { e.programs[0].calls[0].operands[0].offset = 1; }, "number of one of 1 inputs"},
      {[](Executable &e) { e.programs[0].calls[0].operands[0].bytes = 65; },
       "65 bytes at 0 leave input tokens"},
      {[](Executable &e) { e.programs[0].calls[0].operands[0].start = 4; },
       "64 bytes at 4 leave input tokens"},
      {[](Executable &e) { e.programs[0].calls[0].operands[0].start = UINT64_MAX; }, "leave input tokens"},
      {[](Executable &e) { e.states[0].init.kind = InitRule::Kind::RopeTable; },
       "expected [positions, pairs, 2]"},
      {[](Executable &e) { e.programs[0].calls[1].operands.pop_back(); }, "takes 3, found 2"},
      {[](Executable &e) { e.programs[0].calls[1].operands[1].bytes = 100; }, "operands[1].bytes"},
      {[](Executable &e) { e.programs[0].calls[2].operands[0].bytes = 8; }, "a copy needs equal sizes"},
      {[](Executable &e) {
         e.programs[0].calls[2].operands[1] = {Space::Input, 0, 8};
       },
       "is an input"},
      {[](Executable &e) { e.programs[1].name = "micro"; }, "occurs twice"},
      {[](Executable &e) { e.programs[0].inputs[0].shape = {-1}; }, "programs[0] (micro).inputs[0]"},
      {[](Executable &e) { e.kernels[2].gemm.lda = 15; }, "kernels[2]"},
      {[](Executable &e) { e.kernels[2].gemm.m = INT64_MAX; }, "kernels[2]"},
      {[](Executable &e) { e.kernels[2].gemm.batch = 0; }, "kernels[2]"},
      {[](Executable &e) { e.kernels[2].gemm.strideC = -1; }, "operand C"},
      {[](Executable &e) { e.kernels[0].symbol = ""; }, "needs a symbol and an object"},
      {[](Executable &e) { e.stateBytes = UINT64_MAX; }, "at most 2^62"},
      {[](Executable &e) { e.states[0].init.a = 1.0 / 0.0; }, "must be finite"}};
  for (const Lie &lie : lies) {
    Executable executable = sample();
    lie.tell(executable);
    absl::StatusOr<std::string> file = serialize(executable);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(file.status().message().find(lie.message), std::string::npos)
        << lie.message << " in: " << file.status();
  }
}

// Of a product with GeluGrad the last operand is read and the third written.
// Mutation caught: the last taken for what is written.
TEST(Executable, AuxiliaryThatIsReadMayBeAnInput) {
  Executable executable = sample();
  executable.programs[0].inputs[0].shape = {128};
  Gemm &gemm = executable.kernels[2].gemm;
  gemm.accumulate = false, gemm.epilogue = Gemm::Epilogue::GeluGrad;
  std::vector<Operand> &operands = executable.programs[0].calls[1].operands;
  operands.push_back({Space::Input, 0, 512});
  EXPECT_TRUE(serialize(executable).ok()) << serialize(executable).status();
  std::swap(operands[2], operands[3]);
  EXPECT_NE(serialize(executable).status().message().find("writes operand 2, which is an input"),
            std::string::npos);
}

/// `file` with the checksum of what stands before its last 8 bytes.
std::string sealed(std::string file) {
  file.resize(file.size() - 8);
  const uint64_t sum = checksum(file);
  for (size_t i = 0; i < 8; ++i)
    file += static_cast<char>(sum >> (8 * i));
  return file;
}

/// A file with `from` in its header replaced by `to`, its length and checksum set right.
std::string rewritten(const std::string &from, const std::string &to) {
  std::string file = *serialize(sample());
  size_t at = file.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  file.replace(at, from.size(), to);
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(file[i]);
  length += to.size() - from.size();
  for (size_t i = 0; i < 8; ++i)
    file[i] = static_cast<char>(length >> (8 * i));
  return sealed(file);
}

TEST(Executable, LyingFilesAreDataLossNamingTheField) {
  const std::vector<std::array<std::string, 3>> cases{
      {"\"weft_executable\":2", "\"weft_executable\":3", "weft_executable: expected version 2"},
      {"\"object\":[0,16]", "\"object\":[1,16]", "kernels[0].object: expected a range inside"},
      {"\"object\":[0,16]", "\"object\":[18446744073709551615,2]", "kernels[0].object"},
      {"\"object\":[0,16]", "\"object\":[-1,16]", "kernels[0].object"},
      {"\"object\":[0,16]", "\"object\":[0]", "kernels[0].object: expected [start, bytes]"},
      {"\"grid\":7", "\"grid\":7.5", "programs[0].calls[0].grid: expected a whole number, found 7.5"},
      {"\"grid\":7", "\"grid\":9223372036854775808", "calls[0].grid"},
      {"\"grid\":7", "\"gird\":7", "calls[0].grid: missing"},
      {"\"kernel\":2", "\"kernel\":99", "calls[1].kernel"},
      {"\"kernel\":2", "\"kernel\":4294967298", "calls[1].kernel"}, // 2 if cut to 32 bits
      {"\"arena\",0,512", "\"moon\",0,512", "expected a known word, found \"moon\""},
      {"\"arena\",0,512", "\"arena\",0,99999", "leave the arena"},
      {"\"state_bytes\":4096", "\"state_bytes\":\"4096\"", "header.state_bytes"},
      {"\"states\":[", "\"states\":[7,", "states[0]"},
      {"\"type\":\"BF16\"", "\"type\":\"F8\"", "states[1].type"},
      {"{\"arena_bytes\"", "[\"arena_bytes\"", "executable header"}};
  for (const auto &[from, to, message] : cases) {
    absl::StatusOr<Executable> read = deserialize(rewritten(from, to));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << to;
    EXPECT_NE(read.status().message().find(message), std::string::npos)
        << message << " in: " << read.status();
  }
}

TEST(Executable, TruncatedFilesAreDataLoss) {
  std::string file = *serialize(sample());
  for (size_t size = 0; size < file.size(); ++size)
    ASSERT_EQ(deserialize(std::string(file, 0, size)).status().code(), absl::StatusCode::kDataLoss) << size;
  for (size_t size = 8; size < file.size(); ++size)
    ASSERT_EQ(deserialize(sealed(std::string(file, 0, size))).status().code(), absl::StatusCode::kDataLoss)
        << size;
  std::string huge(16, '\xff');
  EXPECT_EQ(deserialize(sealed(huge)).status().code(), absl::StatusCode::kDataLoss);
  std::string deep = std::string(8, '\0') + std::string(200000, '[');
  deep[0] = '\x40', deep[1] = '\x0d', deep[2] = '\x03'; // 200,000
  EXPECT_EQ(deserialize(sealed(deep + std::string(8, '\0'))).status().code(), absl::StatusCode::kDataLoss);
}

// Whatever is read without an error must be safe to load.
TEST(Executable, FlippedBytesNeverCrash) {
  std::string file = *serialize(sample());
  std::mt19937 random(77);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string broken = file;
    for (unsigned flips = 1 + random() % 3; flips > 0; --flips)
      broken[random() % broken.size()] = static_cast<char>(random());
    if (broken == file)
      continue;
    // One line, whatever was flipped: code that was would crash when it runs.
    ASSERT_EQ(deserialize(broken).status().code(), absl::StatusCode::kDataLoss);
    absl::StatusOr<Executable> read = deserialize(sealed(broken));
    if (!read.ok()) {
      ASSERT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
      continue;
    }
    ++accepted;
    ASSERT_TRUE(checkExecutable(*read).ok());
  }
  EXPECT_GT(accepted, 100); // flips in names and code are noticed by the checksum alone
}

// The published values of FNV-1a for "", "a" and "foobar". Mutation caught: FNV-1,
// which multiplies first.
TEST(Checksum, IsFnv1a) {
  EXPECT_EQ(checksum(""), 0xcbf29ce484222325u);
  EXPECT_EQ(checksum("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(checksum("foobar"), 0x85944171f73967e8u);
}

} // namespace
} // namespace weft::rt

//===- cuda-tune-test.cpp - Which algorithm takes a product ---------------===//
#include "test/runtime/cuda/StubFixture.h"

#include "runtime/core/File.h"
#include "runtime/cuda/Products.h"

#include <filesystem>
#include <unistd.h>

namespace weft::rt {
namespace {

using namespace cuda;

/// One product on the stub, tuned: runs of each of the four proposals, before and
/// after, and by one launch more.
struct Tuned {
  std::vector<int> trials, launches;
  std::vector<float> result;
  std::string remark;
};

Tuned tuned(const StubCalls &stub, uint64_t room, double operations, Gemm::Epilogue epilogue,
            const std::string &folder = "") {
  constexpr int64_t kSize = 16;
  constexpr uint64_t kBytes = kSize * kSize * 2;
  Tuned tuned;
  auto gpu = Gpu::open(0);
  EXPECT_TRUE(gpu.ok()) << gpu.status();
  Products products(**gpu);
  auto get = [&](uint64_t bytes, const char *name) { return *(*gpu)->allocate(bytes, name, false); };
  EXPECT_TRUE(products.start(get(Products::kWorkspaceBytes, "workspace")).ok());
  Kernel kernel;
  kernel.name = "p", kernel.kind = Kernel::Kind::Gemm;
  Gemm &gemm = kernel.gemm;
  gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = kSize;
  gemm.typeA = gemm.typeB = gemm.typeC = ElementType::BF16, gemm.epilogue = epilogue;
  std::vector<DevicePointer> operands{get(kBytes, "a"), get(kBytes, "b"), get(kBytes, "c")};
  if (epilogue != Gemm::Epilogue::None)
    operands.push_back(get(kBytes, "auxiliary"));
  std::vector<uint16_t> ones(kSize * kSize, 0x3F80);
  for (DevicePointer operand : operands)
    EXPECT_TRUE((*gpu)->copyIn(operand, ones.data(), kBytes).ok());
  auto number = products.prepare(kernel, operands);
  EXPECT_TRUE(number.ok()) << number.status();
  auto runs = [&] {
    std::vector<int> counts;
    for (int i = 0; i < 4; ++i)
      counts.push_back(stub.calls(("algorithm " + std::to_string(i)).c_str()));
    return counts;
  };
  auto remark = products.tune(room ? get(room, "room") : 0, room, folder, operations);
  EXPECT_TRUE(remark.ok()) << remark.status();
  tuned.remark = remark.value_or("");
  tuned.trials = runs();
  EXPECT_TRUE(products.launch(*number, "p").ok());
  std::vector<uint16_t> halves(kSize * kSize);
  EXPECT_TRUE((*gpu)->copyOut(halves.data(), operands[2], kBytes).ok());
  tuned.launches = runs();
  for (size_t i = 0; i < 4; ++i)
    tuned.launches[i] -= tuned.trials[i];
  for (uint16_t half : halves) {
    uint32_t bits = uint32_t{half} << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    tuned.result.push_back(value);
  }
  return tuned;
}

using CudaTune = CudaStub;
constexpr uint64_t kRoom = 4 << 20;

// The second proposal is the fastest but gives other bits. Mutations caught: the
// fastest taken, the first taken, a result compared with itself.
TEST_F(CudaTune, TakesTheFastestOfEqualResults) {
  Tuned plain = tuned(stub, kRoom, 1, Gemm::Epilogue::None);
  EXPECT_EQ(plain.launches, (std::vector<int>{0, 0, 1, 0}));
  EXPECT_GT(plain.trials[3], 0);
  EXPECT_EQ(plain.result, std::vector<float>(256, 16.0F));
}

// Operands are its own after tuning, the auxiliary of an epilogue too: gelu_tanh'(1)
// is 1.0829641, 16 times that 17.327, in bf16 17.375.
TEST_F(CudaTune, ReadsItsOwnAuxiliaryAfterwards) {
  Tuned folded = tuned(stub, kRoom, 1, Gemm::Epilogue::GeluGrad);
  EXPECT_EQ(folded.launches, (std::vector<int>{0, 0, 1, 0}));
  EXPECT_EQ(folded.result, std::vector<float>(256, 17.375F));
}

// Small products and machines without room keep the first proposal.
TEST_F(CudaTune, LeavesWhatIsNotWorthIt) {
  for (auto [room, operations] : {std::pair(kRoom, 1e9), {uint64_t{0}, 1.0}, {uint64_t{1} << 20, 1.0}}) {
    stub.reset();
    Tuned left = tuned(stub, room, operations, Gemm::Epilogue::None);
    EXPECT_EQ(left.launches, (std::vector<int>{1, 0, 0, 0})) << room;
  }
}

/// A folder of its own, and the one file of choices that may lie there.
struct Folder {
  std::string path = testing::TempDir() + "/tune-" + std::to_string(getpid());
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file() const {
    for (const auto &entry : std::filesystem::directory_iterator(path + "/products"))
      return entry.path().string();
    return "";
  }
};

// A second start times nothing and launches the same. Mutations caught: choices not
// written, not read, read but the first proposal taken.
TEST_F(CudaTune, KeepsItsChoice) {
  Folder folder;
  Tuned cold = tuned(stub, kRoom, 1, Gemm::Epilogue::None, folder.path);
  EXPECT_GT(cold.trials[2], 0);
  stub.reset();
  Tuned warm = tuned(stub, kRoom, 1, Gemm::Epilogue::None, folder.path);
  EXPECT_EQ(warm.trials, (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(warm.launches, (std::vector<int>{0, 0, 1, 0}));
  EXPECT_EQ(warm.remark, "");
  // Another product is not the one that was timed.
  stub.reset();
  EXPECT_GT(tuned(stub, kRoom, 1, Gemm::Epilogue::GeluGrad, folder.path).trials[2], 0);
}

// Files that say what can't be: another list of proposals, a number past their end,
// another device, no JSON, 5 MB. Products are timed again, and what is wrong with a
// whole file is said. Mutations caught: a number taken that is none, the hash of the
// proposals or the identity not looked at.
TEST_F(CudaTune, LeavesChoicesThatDoNotFit) {
  Folder folder;
  tuned(stub, kRoom, 1, Gemm::Epilogue::None, folder.path);
  const std::string file = folder.file(), good = *readFile(file);
  auto with = [&](const std::string &word, const std::string &other) {
    std::string text = good;
    size_t at = text.find(word);
    EXPECT_NE(at, std::string::npos) << word;
    return text.replace(at, word.size(), other);
  };
  const std::pair<std::string, const char *> texts[] = {{with("\"number\": 2", "\"number\": 4"), ""},
                                                        {with("\"proposals\": \"", "\"proposals\": \"0"), ""},
                                                        {with("driver", "pilot"), "expected"},
                                                        {with("\"number\": 2", "\"number\": -1"), "number"},
                                                        {with("[", "{"), "JSON"},
                                                        {"", "JSON"},
                                                        {std::string(5 << 20, ' '), "products"}};
  for (const auto &[text, remark] : texts) {
    ASSERT_TRUE(writeFileAtomic(file, text).ok());
    stub.reset();
    Tuned again = tuned(stub, kRoom, 1, Gemm::Epilogue::None, folder.path);
    EXPECT_GT(again.trials[2], 0) << text.substr(0, 400);
    EXPECT_EQ(again.launches, (std::vector<int>{0, 0, 1, 0}));
    EXPECT_EQ(again.remark.empty(), !*remark) << again.remark;
    EXPECT_NE(again.remark.find(remark), std::string::npos) << again.remark;
    EXPECT_EQ(*readFile(file), good);
  }
}

} // namespace
} // namespace weft::rt

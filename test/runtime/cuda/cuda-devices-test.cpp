#include "runtime/cuda/CubinCache.h"
#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace weft::rt {
namespace {

namespace fs = std::filesystem;

std::string folder(const std::string &name) {
  std::string path = ::testing::TempDir() + "weft-cuda-" + std::to_string(getpid()) + "/" + name;
  fs::create_directories(path);
  return path;
}

// Catches a number, a size or a parameter that differs from the headers'.
TEST(CudaAbi, AgreesWithTheHeaders) {
  const std::string headers = "/usr/local/cuda/include";
  for (const char *header : {"cuda.h", "cublasLt.h", "nvJitLink.h"})
    if (!fs::exists(headers + "/" + header))
      GTEST_SKIP() << "unsupported: no " << header << " in " << headers;
  std::string command = "g++ -std=c++20 -fsyntax-only -I " WEFT_SOURCE_DIR " -isystem " + headers +
                        " -include " WEFT_SOURCE_DIR "/test/runtime/cuda/AbiCheck.h -x c++ /dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

TEST(CudaLibrary, LooksWhereWeftCudaLibsSays) {
  std::string first = folder("first"), second = folder("second");
  std::string source = second + "/lib.c", made = second + "/libweft-none.so.1";
  std::ofstream(source) << "int weftAnswer(void) { return 42; }\n";
  ASSERT_EQ(std::system(("gcc -shared -fPIC -o " + made + " " + source).c_str()), 0);
  std::ofstream(first + "/libweft-none.so.1") << "no library"; // found, and passed over
  setenv("WEFT_CUDA_LIBS", (first + ":" + second).c_str(), 1);
  absl::StatusOr<cuda::Library> library = cuda::Library::open({"libweft-none.so.1"}, "a test");
  unsetenv("WEFT_CUDA_LIBS");
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(library->path(), made);
  int (*answer)() = nullptr, (*other)() = nullptr;
  cuda::Binder bind(*library);
  bind("weftAnswer", answer);
  EXPECT_TRUE(bind.status("").ok());
  EXPECT_EQ(answer(), 42);
  bind("weftOther", other);
  EXPECT_EQ(bind.status("take a newer one").message(), made + " has no function weftOther; take a newer one");
}

TEST(CudaLibrary, SaysWhatIsMissing) {
  absl::StatusOr<cuda::Library> library = cuda::Library::open({"libweft-a.so.1", "libweft-b.so.1"}, "a test");
  EXPECT_EQ(library.status().code(), absl::StatusCode::kNotFound);
  std::string message(library.status().message());
  for (const char *part : {"a test needs libweft-a.so.1 or libweft-b.so.1", "WEFT_CUDA_LIBS"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(CudaLibrary, LooksBesideAPython) {
  std::string prefix = folder("venv"), lib = prefix + "/lib/python3.12/site-packages/nvidia/cu13/lib";
  fs::create_directories(lib);
  setenv("VIRTUAL_ENV", prefix.c_str(), 1);
  std::vector<std::string> folders = cuda::foldersAfter();
  unsetenv("VIRTUAL_ENV");
  EXPECT_NE(std::find(folders.begin(), folders.end(), lib), folders.end());
}

TEST(CudaDevices, ReadsNamesOfDevices) {
  unsetenv("WEFT_DEVICE");
  using Kind = DeviceChoice::Kind;
  for (auto [text, kind, index] :
       {std::tuple("auto", Kind::Auto, 0), std::tuple("cpu", Kind::Cpu, 0), std::tuple("cuda", Kind::Cuda, 0),
        std::tuple("cuda:0", Kind::Cuda, 0), std::tuple("cuda:12", Kind::Cuda, 12),
        std::tuple("reference", Kind::Reference, 0)}) {
    absl::StatusOr<DeviceChoice> choice = parseDevice(text);
    ASSERT_TRUE(choice.ok()) << choice.status();
    EXPECT_EQ(choice->kind, kind) << text;
    EXPECT_EQ(choice->index, index) << text;
  }
  for (const char *text :
       {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda:+1", "cuda: 1", "cuda:99999999999", "CPU"})
    EXPECT_EQ(parseDevice(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_EQ(parseDevice("gpu").status().message(),
            "device: expected auto, cpu, cuda, cuda:INDEX or reference, found 'gpu' (weft devices lists what "
            "there is)");
  setenv("WEFT_DEVICE", "cuda:3", 1);
  EXPECT_EQ(parseDevice("auto")->index, 3);
  EXPECT_EQ(parseDevice("cpu")->kind, Kind::Cpu); // what the command line says stands
  setenv("WEFT_DEVICE", "tpu", 1);
  EXPECT_TRUE(parseDevice("auto").status().message().find("WEFT_DEVICE: expected") == 0);
  unsetenv("WEFT_DEVICE");
}

TEST(CudaDevices, ReadsOptionsFromTheEnvironment) {
  setenv("WEFT_CUDA_GRAPHS", "0", 1);
  setenv("WEFT_CUDA_GRID", "7", 1);
  setenv("WEFT_CUDA_POISON", "1", 1);
  absl::StatusOr<CudaOptions> options = withEnvironment({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->graphs);
  EXPECT_TRUE(options->poison);
  EXPECT_FALSE(options->guard);
  EXPECT_EQ(options->grid, 7);
  setenv("WEFT_CUDA_GRID", "-1", 1);
  EXPECT_FALSE(withEnvironment({}).ok());
  unsetenv("WEFT_CUDA_GRID");
  setenv("WEFT_CUDA_POISON", "yes", 1);
  EXPECT_EQ(withEnvironment({}).status().message(), "WEFT_CUDA_POISON: expected 0 or 1, found 'yes'");
  unsetenv("WEFT_CUDA_POISON");
  unsetenv("WEFT_CUDA_GRAPHS");
}

TEST(CubinCache, KeepsUnderItsKeyAlone) {
  // FNV-1a in 64 bits of no bytes is its offset basis.
  EXPECT_EQ(cuda::hashOf({}), "cbf29ce484222325");
  EXPECT_NE(cuda::hashOf({"ab", "c"}), cuda::hashOf({"a", "bc"})); // lengths count
  Kernel kernel;
  kernel.name = "@k", kernel.symbol = "k", kernel.object = ".version 8.0", kernel.launch.threads = 32;
  kernel.form = Kernel::Form::Ptx;
  std::string place = folder("cache"), key = cuda::hashOf({"one"}), other = cuda::hashOf({"two"});
  cuda::CubinCache cache(place);
  EXPECT_FALSE(cache.find(kernel, key).has_value());
  cache.store(kernel, key, "cubin");
  EXPECT_EQ(cache.find(kernel, key), "cubin");
  EXPECT_FALSE(cache.find(kernel, other).has_value());
  fs::copy(place + "/kernels/" + key + ".weftkernel", place + "/kernels/" + other + ".weftkernel");
  EXPECT_FALSE(cache.find(kernel, other).has_value()); // holds another
  kernel.symbol = "l";
  EXPECT_FALSE(cache.find(kernel, key).has_value());
  kernel.symbol = "k";
  fs::resize_file(place + "/kernels/" + key + ".weftkernel", 100);
  EXPECT_FALSE(cache.find(kernel, key).has_value()); // damaged
  cache.store(kernel, key, "again");
  EXPECT_EQ(cache.find(kernel, key), "again");
  fs::remove_all(::testing::TempDir() + "weft-cuda-" + std::to_string(getpid()));
}

} // namespace
} // namespace weft::rt

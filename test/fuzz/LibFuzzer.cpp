// fuzz-coverage TARGET [FOLDER ..] [-libFuzzer's-flags]
//
// The targets of Fuzz.h under libFuzzer (https://llvm.org/docs/LibFuzzer.html). The
// name of the target is kept in the environment: libFuzzer starts itself again for
// -merge, -fork and -jobs, without what this file took from the arguments. The first
// FOLDER takes what is found; seeds that no file holds are written to it first.
#include "test/fuzz/Fuzz.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weft::fuzz {
namespace {

constexpr const char *kVariable = "WEFT_FUZZ_TARGET";
const Target *chosen = nullptr;

/// The targets' seeds as files `seed-N` of `folder`.
void writeSeeds(const std::string &folder) {
  std::vector<std::string> seeds = chosen->seeds();
  if (chosen->others)
    for (std::string &other : chosen->others())
      seeds.push_back(std::move(other));
  for (size_t i = 0; i < seeds.size(); ++i)
    std::ofstream(folder + "/seed-" + std::to_string(i), std::ios::binary) << seeds[i];
}

/// A dictionary for -dict, beside the folder: words in hexadecimal escapes.
void writeWords(const std::string &path) {
  std::ofstream file(path);
  for (const std::string &word : chosen->words) {
    file << '"';
    for (const char c : word) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(c));
      file << escape;
    }
    file << "\"\n";
  }
}

} // namespace
} // namespace weft::fuzz

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
  using namespace weft::fuzz;
  const char *kept = std::getenv(kVariable);
  if (kept) {
    chosen = targetNamed(kept);
  } else if (*argc > 1) {
    chosen = targetNamed((*argv)[1]);
    ::setenv(kVariable, (*argv)[1], 1);
    std::rotate(*argv + 1, *argv + 2, *argv + *argc);
    --*argc;
    if (chosen && *argc > 1 && std::filesystem::is_directory((*argv)[1])) {
      writeSeeds((*argv)[1]);
      writeWords(std::string((*argv)[1]) + ".words");
    }
  }
  if (!chosen)
    std::exit(2);
  std::atexit([] { std::fprintf(stderr, "%s\n", summaryOf(*chosen).c_str()); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  using namespace weft::fuzz;
  runOn(*chosen, std::string(reinterpret_cast<const char *>(bytes), size));
  return 0;
}

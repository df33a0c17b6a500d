// fuzz-readers TARGET [--runs N] [--seconds S] [--seed N] [--corpus FOLDER] [--input FILE]
//
// Starts from the target's seeds and the files of FOLDER. Ends with 0 after N runs or S seconds, whichever comes first. When a reader
// breaks, the input lies in crash-TARGET, which --input reads again.
#include "test/fuzz/Fuzz.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

namespace weft::fuzz {
namespace {

constexpr size_t kMaxInput = 1 << 16;
constexpr long kSlow = 20; // seconds of processor time for one input

/// A file that holds the input being run, also when the process dies: shared memory
/// that the kernel writes back.
class CrashFile {
public:
  explicit CrashFile(const std::string &path) : path(path) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (descriptor < 0 || ::ftruncate(descriptor, kMaxInput + 8) != 0)
      return;
    void *memory = ::mmap(nullptr, kMaxInput + 8, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    if (memory != MAP_FAILED)
      bytes = static_cast<char *>(memory);
  }
  ~CrashFile() {
    if (bytes)
      ::munmap(bytes, kMaxInput + 8);
    ::unlink(path.c_str()); // nothing broke
  }
  void hold(const std::string &input) {
    if (!bytes)
      return;
    const uint64_t size = std::min(input.size(), kMaxInput);
    std::memcpy(bytes, &size, 8);
    std::memcpy(bytes + 8, input.data(), size);
  }
  static std::string read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    uint64_t size = 0;
    std::memcpy(&size, all.data(), std::min<size_t>(8, all.size()));
    return size <= all.size() - 8 ? all.substr(8, size) : all;
  }

private:
  std::string path;
  char *bytes = nullptr;
};

class Mutator {
public:
  Mutator(const Target &target, uint64_t seed) : target(target), random(seed) {}

  std::string mutated(const std::vector<std::string> &corpus) {
    std::string input = corpus[below(corpus.size())];
    for (size_t count = size_t{1} << below(1 + below(5)); count > 0; --count)
      change(input, corpus);
    input.resize(std::min(input.size(), kMaxInput));
    return input;
  }

private:
  size_t below(size_t bound) { return bound ? random() % bound : 0; }
  char byte() { return static_cast<char>(random()); }

  void change(std::string &input, const std::vector<std::string> &corpus) {
    const size_t at = below(input.size() + 1), length = below(std::min<size_t>(input.size() - at, 64) + 1);
    switch (below(12)) {
    case 8: // a word or a number becomes another one of the text
    case 9:
      return exchangeWord(input, at);
    case 0: // one bit
      if (at < input.size())
        input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
      break;
    case 1:
      if (at < input.size())
        input[at] = byte();
      break;
    case 2:
      input.erase(at, length);
      break;
    case 3:
      input.insert(at, input.substr(at, length));
      break;
    case 4:
      input.insert(at, std::string(below(64), byte()));
      break;
    case 5:
      input.resize(at); // cut short
      break;
    case 6: { // the head of one, the tail of another
      const std::string &other = corpus[below(corpus.size())];
      input = input.substr(0, at) + other.substr(below(other.size() + 1));
      break;
    }
    case 7: { // a number of 1 to 8 bytes at the edge of a range
      static constexpr uint64_t kEdges[] = {0,
                                            1,
                                            0x7f,
                                            0xff,
                                            0x7fff,
                                            0xffff,
                                            0x7fffffff,
                                            0xffffffff,
                                            INT64_MAX,
                                            UINT64_MAX,
                                            uint64_t{1} << 62,
                                            uint64_t{1} << 40};
      const uint64_t edge = kEdges[below(std::size(kEdges))];
      const size_t width = size_t{1} << below(4);
      if (at + width <= input.size())
        std::memcpy(input.data() + at, &edge, width);
      break;
    }
    case 10: { // digits become other digits
      const size_t digit = input.find_first_of("0123456789", at);
      static const char *kNumbers[] = {"0",   "-1",    "1e308", "9223372036854775807", "18446744073709551616",
                                       "0.5", "1e-320"};
      if (digit != std::string::npos)
        input.replace(digit, 1, kNumbers[below(std::size(kNumbers))]);
      break;
    }
    default:
      if (!target.words.empty())
        input.insert(at, target.words[below(target.words.size())]);
    }
  }

  static bool isWordByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  /// The word that starts at or behind `at`; of length 0 at the end.
  static std::pair<size_t, size_t> wordBehind(const std::string &input, size_t at) {
    while (at < input.size() && !isWordByte(input[at]))
      ++at;
    size_t end = at;
    while (end < input.size() && isWordByte(input[end]))
      ++end;
    return {at, end - at};
  }

  void exchangeWord(std::string &input, size_t at) {
    const auto [start, length] = wordBehind(input, at);
    const auto [other, size] = wordBehind(input, below(input.size() + 1));
    const std::string word = input.substr(other, size);
    if (length > 0 && size > 0 && size < 100)
      input.replace(start, length, word);
  }

  const Target &target;
  std::mt19937_64 random;
};

struct Options {
  std::string target, input, corpus;
  uint64_t runs = 200'000, seed = 1;
  double seconds = 60;
};

/// The files of `folder`, in order of names.
std::vector<std::string> filesOf(const std::string &folder) {
  std::set<std::string> paths;
  std::error_code none; // a target without a folder has no files
  for (const auto &entry : std::filesystem::directory_iterator(folder, none))
    paths.insert(entry.path().string());
  std::vector<std::string> files;
  for (const std::string &path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

/// SIGPROF after `seconds` of this process, however busy the machine is; 0: never.
void limitTime(long seconds) {
  const itimerval time = {{0, 0}, {seconds, 0}};
  ::setitimer(ITIMER_PROF, &time, nullptr);
}

int fuzz(const Target &target, const Options &options) {
  CrashFile crash(std::string("crash-") + target.name);
  auto run = [&](const std::string &input) {
    crash.hold(input);
    limitTime(kSlow);
    std::string outcome = runOn(target, input);
    limitTime(0);
    return outcome;
  };
  std::vector<std::string> corpus = target.seeds();
  std::set<std::string> outcomes;
  for (const std::string &seed : corpus) {
    const std::string outcome = run(seed);
    require(outcome == "ok", ("a seed is refused: " + outcome + "\n" + seed).c_str());
  }
  outcomes.insert("ok");
  std::vector<std::string> others = filesOf(options.corpus);
  if (target.others)
    for (std::string &other : target.others())
      others.push_back(std::move(other));
  for (std::string &other : others) {
    outcomes.insert(run(other));
    corpus.push_back(std::move(other));
  }
  Mutator mutator(target, options.seed);
  const auto start = std::chrono::steady_clock::now();
  auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  uint64_t done = 0;
  for (; done < options.runs && seconds() < options.seconds; ++done) {
    std::string input = mutator.mutated(corpus);
    if (outcomes.insert(run(input)).second && corpus.size() < 4096)
      corpus.push_back(std::move(input));
  }
  std::printf("%llu runs in %.1f s, none broke the reader\n%s\n", static_cast<unsigned long long>(done),
              seconds(), summaryOf(target).c_str());
  return 0;
}

void onTime(int) {
  constexpr char kMessage[] = "fuzz: one input took too long\n";
  (void)!::write(2, kMessage, sizeof kMessage - 1);
  std::abort();
}

} // namespace

static int runMain(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--runs")
      options.runs = std::stoull(value);
    else if (flag == "--seconds")
      options.seconds = std::stod(value);
    else if (flag == "--seed")
      options.seed = std::stoull(value);
    else if (flag == "--corpus")
      options.corpus = value;
    else if (flag == "--input")
      options.input = value;
    else {
      options.target = flag;
      continue;
    }
    ++i;
  }
  std::signal(SIGPROF, onTime);
  const Target *target = targetNamed(options.target);
  if (!target)
    return 2;
  if (options.input.empty())
    return fuzz(*target, options);
  std::printf("%s\n", target->run(CrashFile::read(options.input)).c_str());
  return 0;
}

} // namespace weft::fuzz

int main(int argc, char **argv) { return weft::fuzz::runMain(argc, argv); }

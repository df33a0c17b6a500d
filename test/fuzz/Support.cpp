// What targets and the driver share.
#include "test/fuzz/Fuzz.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include <unistd.h>

namespace weft::fuzz {

static std::set<std::string> outcomes;

const Target *targetNamed(const std::string &name) {
  for (const Target &target : targets())
    if (name == target.name)
      return &target;
  std::fprintf(stderr, "fuzz: expected a target, found `%s`; there are:", name.c_str());
  for (const Target &target : targets())
    std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  return nullptr;
}

std::string runOn(const Target &target, const std::string &input) {
  std::string outcome = target.run(input);
  outcomes.insert(outcome);
  return outcome;
}

std::string summaryOf(const Target &target) {
  std::string summary = std::string(target.name) + ": " + std::to_string(outcomes.size()) + " outcomes";
  return target.covered ? summary + "; " + target.covered() : summary;
}

std::string outcomeOf(const absl::Status &status) {
  if (status.ok())
    return "ok";
  std::string text;
  bool quoted = false;
  for (const char c : status.message()) {
    quoted ^= c == '\'' || c == '`';
    if (!quoted && !(c >= '0' && c <= '9') && text.size() < 120)
      text += c;
  }
  return text;
}

void require(bool holds, const char *why) {
  if (holds)
    return;
  std::fprintf(stderr, "fuzz: %s\n", why);
  std::abort();
}

std::string fileWith(const std::string &input, const char *name) {
  static const std::string folder = [] {
    char made[] = "/dev/shm/weft-fuzz-XXXXXX";
    char beside[] = "weft-fuzz-XXXXXX";
    const char *path = ::mkdtemp(made);
    return std::string(path ? path : ::mkdtemp(beside));
  }();
  static const bool removed = (std::atexit([] { std::system(("rm -r '" + folder + "'").c_str()); }), true);
  (void)removed;
  const std::string path = folder + "/" + name;
  std::ofstream(path, std::ios::binary) << input;
  return path;
}

std::string sourceFile(const std::string &path) {
  std::ifstream file(WEFT_SOURCE_DIR "/" + path, std::ios::binary);
  require(file.good(), ("can't read " + path).c_str());
  return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace weft::fuzz

// What targets and the driver share.
#include "test/fuzz/Fuzz.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <unistd.h>

namespace weft::fuzz {

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

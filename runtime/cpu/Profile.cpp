//===- Profile.cpp --------------------------------------------------------===//
#include "runtime/cpu/Profile.h"

#include "runtime/core/Json.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <utility>

namespace weft::rt {

Profile::Profile(const Executable &executable, std::string path)
    : executable(executable), path(std::move(path)), sums(executable.kernels.size()) {}

Profile::~Profile() {
  if (!on())
    return;
  std::ofstream file(path);
  if (!(file << text() << '\n' << std::flush))
    std::fprintf(stderr, "warning: WEFT_PROFILE: can't write %s\n", path.c_str());
}

void Profile::add(uint32_t kernel, Clock::duration time) {
  ++sums[kernel].calls;
  sums[kernel].time += time;
}

std::string Profile::text() const {
  std::vector<size_t> order(sums.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sums[a].time > sums[b].time; });
  Json list = Json::array();
  for (size_t kernel : order)
    if (sums[kernel].calls)
      list.push_back({{"kernel", executable.kernels[kernel].name},
                      {"hash", executable.kernels[kernel].hash},
                      {"calls", sums[kernel].calls},
                      {"seconds", std::chrono::duration<double>(sums[kernel].time).count()}});
  return dumpJson(list, 1);
}

} // namespace weft::rt

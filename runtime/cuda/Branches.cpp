//===- Branches.cpp - Calls that need not wait for each other -------------===//
#include "runtime/cuda/Branches.h"

#include <algorithm>

namespace weft::rt::cuda {
namespace {

bool conflict(const BranchCall &a, const BranchCall &b) {
  for (const Access &x : a.accesses)
    for (const Access &y : b.accesses)
      if ((x.written || y.written) && x.begin < y.end && y.begin < x.end)
        return true;
  return false;
}

} // namespace

std::vector<std::vector<uint32_t>> waits(const std::vector<BranchCall> &calls) {
  std::vector<std::vector<uint32_t>> result(calls.size());
  std::vector<std::vector<bool>> after; // [i][j]: call i runs behind call j, by any road
  for (uint32_t i = 0; i < calls.size(); ++i) {
    std::vector<bool> behind(i);
    for (uint32_t j = i; j-- > 0;) {
      const bool chain = !calls[i].beside && !calls[j].beside;
      if (behind[j] || (!chain && !conflict(calls[i], calls[j])))
        continue;
      result[i].push_back(j);
      behind[j] = true;
      for (uint32_t k = 0; k < j; ++k)
        behind[k] = behind[k] || after[j][k];
    }
    std::reverse(result[i].begin(), result[i].end());
    after.push_back(std::move(behind));
  }
  return result;
}

} // namespace weft::rt::cuda

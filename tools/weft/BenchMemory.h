//===- BenchMemory.h - Policies for memory beside each other ----*- C++ -*-===//
#pragma once

#include "tools/weft/MemoryPolicies.h"

namespace weft {

/// One policy's steps; `refusal` says why there are none.
struct PolicyTimes {
  std::string policy;
  std::shared_ptr<const MemoryReport> memory; // null after a refusal
  uint64_t planned = 0;                       // by the machine, scratch included
  uint64_t reported = 0;                      // by the device, above what was in use; 0: it can't say
  double seconds = 0;
  std::string refusal;
};

/// One row a policy: bytes, milliseconds, tokens/s, ratios to the first row that ran.
std::string policyTable(const std::vector<PolicyTimes> &rows, int64_t tokens);
rt::OrderedJson policyJson(const std::vector<PolicyTimes> &rows, int64_t tokens);

} // namespace weft

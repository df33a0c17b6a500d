//===- BenchMemory.h - Policies for memory beside each other ----*- C++ -*-===//
#pragma once

#include "tools/weft/BenchSetup.h"

namespace weft {

/// The same steps under fast, lean and tight: prints a row of each (one that does not
/// fit says so), and what each saves and makes again. Errors: as of prepare.
absl::Status benchPolicies(const BenchFlags &flags);

} // namespace weft

//===- Ptxas.h - NVIDIA's assembler as a process -----------------*- C++ -*-===//
//
// Ahead of time, and for tests: what a kernel costs in registers, shared memory
// and spills, and whether its products run serialised. No GPU is needed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

/// Of several entries, the largest of each number. Bytes are per thread, but
/// `sharedBytes` per CTA (static shared memory; dynamic is the launch's).
struct PtxasReport {
  std::string cubin;
  int64_t registers = 0;
  int64_t sharedBytes = 0, stackBytes = 0;
  int64_t spillStoreBytes = 0, spillLoadBytes = 0;
  std::vector<std::string> warnings; // one line each, as ptxas wrote them

  /// "C7512" of every warning that has one, in order, each once.
  std::vector<std::string> codes() const;
};

/// The path of ptxas: $WEFT_PTXAS, else the first on PATH, else
/// /usr/local/cuda/bin/ptxas. Errors: NotFound.
absl::StatusOr<std::string> findPtxas();

/// Assembles `ptx` for `chip` ("sm_90a"). `options`: further arguments, each
/// one argument as it stands. Errors: NotFound without ptxas; InvalidArgument
/// with its first messages when it refuses the text.
absl::StatusOr<PtxasReport> assemble(std::string_view ptx, std::string_view chip,
                                     const std::vector<std::string> &options = {});

/// What `ptxas -v` wrote, as a report without cubin.
PtxasReport parsePtxasLog(std::string_view log);

/// FailedPrecondition, naming kernel and reason, when `report` says that products
/// are serialised or registers ignored (any C75xx but C7519, an injected arrive)
/// or that a thread spills more than `spillLimit` bytes (stores or loads).
absl::Status checkReport(const PtxasReport &report, std::string_view kernel, int64_t spillLimit = 64);

} // namespace weft

//===- Measure.h - Parts of weft measure -------------------------*- C++ -*-===//
#pragma once

#include "tools/weft/Command.h"

#include "runtime/core/Json.h"

#include <string>
#include <vector>

namespace weft {

/// The lines of RUN/log.jsonl of one kind, in order. Errors: NotFound.
absl::StatusOr<std::vector<rt::Json>> logLines(const std::string &run, const std::string &kind);

int measureMqar(int, const char **);
int measureStream(int, const char **);

} // namespace weft

//===- Prefill.h - One pass over a text, without sampling -------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"

#include <map>
#include <span>
#include <string>

namespace weft::rt {

/// Outputs of the model by name for one text of n tokens. What program `prefill`
/// gives as [rows, positions, ...] is cut to [n, ...]; other shapes stay whole.
/// A shorter text is padded behind its end, which no position before can see.
/// Errors: InvalidArgument when there are no tokens, or more than positions; of
/// the machine.
absl::StatusOr<std::map<std::string, Tensor>> prefill(Machine &machine, std::span<const int32_t> tokens);

} // namespace weft::rt

//===- Fuzz.h - Mutated input for readers ------------------------*- C++ -*-===//
//
// The targets stand once, and two drivers run them: the one of Fuzz.cpp, which needs
// nothing, and libFuzzer (LibFuzzer.cpp), which looks for code not run before.
//
// A target gives its reader one input and says what came of it: an outcome is
// a short text (`ok`, an error without its names and numbers). Inputs that lead to
// an outcome not seen before are kept and mutated further. What a reader must not
// do is to end by a signal, to throw, to hang, or to give up an invariant that the
// target checks with `require`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace weft::fuzz {

struct Target {
  const char *name;
  std::vector<std::string> (*seeds)();            // valid inputs to start from
  std::vector<std::string> words;                 // pieces worth inserting
  std::string (*run)(const std::string &input);   // the outcome
  std::string (*covered)() = nullptr;             // which error branches were reached; printed at the end
  std::vector<std::string> (*others)() = nullptr; // inputs to start from that need not be valid
};

/// Every target of this program.
const std::vector<Target> &targets();

/// The one of that name, or null and the names there are on stderr.
const Target *targetNamed(const std::string &name);

/// What `target` makes of one input: outcomes are counted for `summaryOf`.
std::string runOn(const Target &target, const std::string &input);

/// Outcomes reached so far and, where the target knows them, its error branches.
std::string summaryOf(const Target &target);

/// A status without what stands in quotes and without digits.
std::string outcomeOf(const absl::Status &status);

/// Ends the process with `why` unless `holds`: the input stays in the crash file.
void require(bool holds, const char *why);

/// Writes `input` to a file of this process that is used again, and returns its path.
std::string fileWith(const std::string &input, const char *name);

/// The bytes of a file of the source tree.
std::string sourceFile(const std::string &path);

} // namespace weft::fuzz

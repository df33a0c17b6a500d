//===- Why.h - What became of an address -------------------------*- C++ -*-===//
//
// The answer of `weft why`, and how it is printed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"
#include "frontend/Plan.h"
#include "runtime/control/WindowFeatures.h"
#include "runtime/core/Json.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::why {

using Names = std::vector<std::string>;

struct ParameterAnswer {
  std::string path, type;
  Names readers, gradient; // PROGRAM: kernel
};

struct AttendAnswer {
  std::string scope;
  std::vector<int64_t> windows;                          // by head; INT64_MAX: full
  std::string origin;                                    // where windows that are no constants come from
  int64_t positions = 0;                                 // T; 0: not known
  std::vector<std::pair<int64_t, rt::Feature>> features; // of heads that a controller has seen
  std::vector<int64_t> frozen, pruned;                   // heads that no longer attend
  std::vector<int64_t> firstPlaces = {};                 // by head, behind the windows; or empty
};

/// Equal calls of one program.
struct KernelAnswer {
  std::string program, kernel;
  int64_t calls = 0;
  Cost cost; // of one call
  Names computes, places, also;
};

struct Answer {
  std::string address;
  std::vector<ParameterAnswer> parameters;
  std::vector<AttendAnswer> attends;
  std::vector<KernelAnswer> kernels;
  Names remarks;
};

/// `block[3].attn.heads[0..2]`: the branch, and the heads of it (empty: all).
struct Address {
  std::string path;
  std::set<int64_t> heads;

  bool covers(llvm::StringRef scope) const {
    return !scope.empty() && lang::addressCovers(path, std::string_view(scope.data(), scope.size()));
  }
};

void printAnswer(const Answer &answer, const Address &address, const std::string &file);

rt::OrderedJson answerJson(const Answer &answer);

} // namespace weft::why

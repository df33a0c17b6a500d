//===- HeadDecisions.h - Which heads are frozen or pruned --------*- C++ -*-===//
//
// What a phase of training decided about heads, as the compiler reads it. A site
// is an attend by path (`block.3.attn`); heads are query heads of the model as
// written, counted row-major over the axes between position and channel.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weft {

/// Heads of a site that mix by a fixed pattern (arXiv:2609.34650, section 3.2).
/// Their state is `pattern/SITE/a` and `pattern/SITE/r`, one row a head in the
/// order of `heads`; dense ones (appendix C.2) have one square a head, `pattern/SITE/p`.
struct FrozenHeads {
  std::vector<int64_t> heads;       // increasing
  std::vector<int32_t> windows;     // one a head; no bound: 2147483647
  bool trained = false;             // patterns are parameters
  int64_t length = 0;               // T: places of a pattern; 0: the program's positions
  bool dense = false;               // never trained
  std::vector<int32_t> firstPlaces = {}; // places in sight behind the window, one a head; none at all: none of any
};

struct HeadDecisions {
  std::map<std::string, FrozenHeads> frozen;
  std::map<std::string, std::vector<int64_t>> pruned;
  bool empty() const { return frozen.empty() && pruned.empty(); }
};

/// Names of a site's pattern in the state.
std::string patternKeyName(const std::string &site);      // pattern/SITE/a
std::string patternDistanceName(const std::string &site); // pattern/SITE/r
std::string wholePatternName(const std::string &site);    // pattern/SITE/p

/// Sets `weft.frozen` and `weft.pruned` of a module that `weft-freeze-heads` will
/// read; leaves out what is empty.
void setHeadDecisions(mlir::ModuleOp module, const HeadDecisions &decisions);

/// What the attributes of `module` say. Errors, as diagnostics: a field that is
/// missing or of another kind.
llvm::FailureOr<HeadDecisions> readHeadDecisions(mlir::ModuleOp module);

} // namespace weft

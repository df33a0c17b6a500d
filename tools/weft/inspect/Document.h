//===- Document.h - What a page shows, as one JSON value ---------*- C++ -*-===//
//
// `weft inspect` collects numbers and texts here; how they look is the page's
// (page.js). Bytes, FLOPs and milliseconds are plain numbers; windows are keys, 0 a
// pruned head, -1 no bound. Everything is a function of the input: no clock, no path
// that was not asked for, but for the milliseconds of passes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/weft/Session.h"

#include "runtime/control/WindowControl.h"
#include "runtime/core/Json.h"

#include <functional>
#include <string>

namespace weft::inspect {

using Say = std::function<void(const std::string &)>; // a line of progress

/// How a model is compiled for its page.
struct ModelOptions {
  PipelineOptions pipeline;
  bool assemble = true;   // kernels of a GPU through ptxas, where there is one
  std::string checkpoint; // whose windows are shown; empty: as they start
};

/// "summary", "sources", "heads", "flops", "passes", "ir", "ledger", "kernels", "memory".
/// Errors: as of lower.
absl::StatusOr<rt::OrderedJson> modelDocument(const Program &program, const ModelOptions &options,
                                              const Say &say);

/// Heads of every attend with the windows that plans give them, and what was frozen,
/// pruned and dropped: {"positions", "acr", "pair_ratio", "later", "sites": [{"path",
/// "address", "kv_heads", "channels", "windows", "frozen", "pruned"}], "dropped"}.
/// `control` may be null.
absl::StatusOr<rt::OrderedJson> headMap(const Program &program, const rt::WindowControl *control);

/// Patterns of frozen heads that `checkpoint` (may be empty) holds, the first 64, at 64
/// places: {"address", "head", "window", "trained", "length", and "a", "r" or "p"} with
/// P[i, j] = exp(a[j] + r[i - j]) / Z[i]. Errors: DataLoss, NotFound.
absl::StatusOr<rt::OrderedJson> patternList(const Program &program, const std::string &checkpoint);

/// A run directory, whatever state it is in: curves of its log, windows over time,
/// freezing, checkpoints, resumes, its text. Errors: NotFound where there is no run.
absl::StatusOr<rt::OrderedJson> runDocument(const std::string &run);

/// A whole HTML page that shows `document`. Texts in it can't become markup: they
/// stand in a JSON block without `<`, and a content security policy lets nothing run
/// but the page's own script.
std::string pageOf(const rt::OrderedJson &document, const std::string &title);

} // namespace weft::inspect

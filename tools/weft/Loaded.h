//===- Loaded.h - A model with weights, ready to run -------------*- C++ -*-===//
#pragma once

#include "tools/weft/Command.h"

#include "runtime/control/WindowControl.h"
#include "runtime/data/Tokenizer.h"

namespace weft {

/// A model from a run, a checkpoint, or (at initialisation) a .weft file.
struct Loaded {
  std::unique_ptr<Program> program;
  std::unique_ptr<rt::Machine> machine;
  std::string checkpoint;                     // empty at initialisation
  std::unique_ptr<rt::WindowControl> windows; // null without a plan that says some
};

/// The text of a run, a checkpoint or a .weft file, with what plans had decided;
/// nothing is compiled. `request` then asks for that text.
struct LoadedText {
  std::unique_ptr<Program> program;
  std::string checkpoint; // empty for a .weft file
};
absl::StatusOr<LoadedText> loadText(Request &request);

/// Makes the machine with `options.programs` (and `observe`, where `eval` needs it)
/// and fills its state. `shapes` picks
/// batch and positions once the recipe is known. Errors say what `path` is not.
absl::StatusOr<Loaded> loadModel(Request request,
                                 const std::function<void(const Program &, PipelineOptions &)> &shapes);

/// The recipe's tokenizer, or bytes without a recipe.
absl::StatusOr<std::shared_ptr<const rt::Tokenizer>> tokenizerOf(const Program &program);

} // namespace weft

//===- Session.h - What a command works on -----------------------*- C++ -*-===//
//
// From paths and flags to a checked model, recipe and plans; from there to IR,
// an executable, or a machine.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Checker.h"
#include "frontend/Model.h"
#include "frontend/Plan.h"
#include "frontend/Recipe.h"
#include "passes/Freeze/HeadDecisions.h"
#include "passes/Pipelines.h"
#include "passes/Schedule/ToExecutable.h"
#include "runtime/Machine.h"
#include "runtime/control/FreezeRecord.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// What was asked for on the command line.
struct Request {
  std::string path;                // of a .weft file
  std::string model;               // which of its models, or empty
  std::optional<std::string> text; // what it holds, when it is not read from there
  std::vector<std::string> sets;   // key=value of model or recipe
  std::vector<std::string> plans;  // [FILE:]NAME
  std::string recipe;              // name, or empty
  std::string memory;              // instead of the recipe's: fast, lean, tight or auto; empty: the recipe's
  std::string device = "auto";     // auto | cpu | cuda[:i] | reference
  int threads = 0;                 // 0: all cores
  bool needsRecipe = false;
  bool recipeIfAny = false; // uses a recipe where there is one
  bool fromRun = false;     // the text was written by a run, whose length came from its flags
  bool quiet = false;       // no warnings: they were printed for this text
  bool profile = false;     // the machine times each kernel by itself
};

/// FILE.weft or FILE.weft:MODEL into `request`.
void setPath(Request &request, const std::string &path);
/// Whether `path` is one of these, and not a run.
bool isModelPath(const std::string &path);
/// The model that `request` means in `file`, the first that was read: the one it
/// names, else the only one of the file itself, or of those that it uses. Errors:
/// InvalidArgument lists the models.
absl::StatusOr<std::string> modelName(const lang::ast::File &file, const Request &request);

/// Whether two pieces of text are the same but for spaces, comments and file names
/// that mean the same file (relative ones start at `folder`).
bool sameWords(const std::string &left, const std::string &right, const std::string &folder);

/// A checked program text.
struct Program {
  lang::SourceFiles sources;
  lang::ast::File file;
  lang::Model written; // as its text says
  lang::Model model;   // after the plans' drops: what is compiled
  std::optional<rt::Recipe> recipe;
  std::vector<lang::Plan> plans;
  HeadDecisions heads;     // frozen and pruned so far: what is compiled
  rt::FreezeRecord freeze; // the record they come from
  std::string runText;     // model, plans and recipe after overrides: run.weft
};

/// Reads and checks what `request` names. Errors: InvalidArgument holds the
/// rendered diagnostics.
absl::StatusOr<std::unique_ptr<Program>> loadProgram(const Request &request);

/// The same for commands that use the model as it stands: plans must say all of it
/// (refuseUndecided of tools/weft/Freeze.h).
absl::StatusOr<std::unique_ptr<Program>> loadDecided(const Request &request);

/// Puts a record of decisions in force: `program.freeze` and `program.heads`.
void adoptRecord(Program &program, rt::FreezeRecord record);

/// How IR is shown on the way.
struct TrailOptions {
  std::string folder; // one numbered file a pass that changed the IR; empty: none
};

/// The module of `program` taken to `options.stage`. Errors: Internal names the
/// pass; its diagnostics went to stderr with their places.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>>
lower(const Program &program, const PipelineOptions &options, const TrailOptions &trail,
      mlir::MLIRContext &context, const std::function<void(mlir::PassManager &)> &attach = {});

/// A context with Weft's dialects whose diagnostics print as people read them.
std::shared_ptr<mlir::MLIRContext> makeContext();

/// A machine for `device` that holds `options.programs`; state is zero.
struct MemoryReport; // tools/weft/MemoryPolicies.h
struct MachineReport {
  CompileReport compile;
  double seconds = 0;
  std::shared_ptr<const MemoryReport> memory; // null where no program has gradients
};
absl::StatusOr<std::unique_ptr<rt::Machine>> makeMachine(const Program &program, PipelineOptions options,
                                                         const Request &request, const TrailOptions &trail,
                                                         MachineReport *report = nullptr);

/// $WEFT_CACHE_DIR, else ~/.cache/weft; empty when there is no home.
std::string cacheFolder();

/// A micro-batch of the recipe as the shapes of a program.
PipelineOptions shapesOf(const rt::Recipe &recipe);

/// Parameters that one optimiser steps with one decay: group G of `update`.
struct OptimizerGroup {
  rt::Optimizer optimizer; // decay is 0 for those that do not decay
  std::vector<std::string> parameters;
};
std::vector<OptimizerGroup> optimizerGroups(const Program &program);

/// The recipe with one optimiser a group, as the training loop counts them.
rt::Recipe runtimeRecipe(const Program &program);

} // namespace weft

//===- BenchSetup.h - What weft bench times, made ready ---------*- C++ -*-===//
#pragma once

#include "tools/weft/BenchAgainst.h"
#include "tools/weft/BenchSteps.h"
#include "tools/weft/Command.h"

#include "runtime/core/Json.h"

#include <optional>
#include <set>

namespace weft {

struct BenchFlags {
  ModelFlags model;
  DeviceFlags device;
  llvm::cl::opt<std::string> memory{
      "memory",
      llvm::cl::desc("what gradients find saved: fast, lean, tight, auto (default: the recipe's, or auto), "
                     "or all, for one row of each"),
      llvm::cl::value_desc("POLICY"), llvm::cl::cat(flagCategory())};
  llvm::cl::opt<int64_t> batch{"batch", llvm::cl::desc("rows (default: the recipe's micro-batch)"),
                               llvm::cl::init(0), llvm::cl::cat(flagCategory())};
  llvm::cl::opt<int64_t> positions{"positions", llvm::cl::desc("positions of a row (default: the recipe's)"),
                                   llvm::cl::init(0), llvm::cl::cat(flagCategory())};
  llvm::cl::opt<int64_t> micros{"micros", llvm::cl::desc("micro-batches of a step (default: 1)"),
                                llvm::cl::init(1), llvm::cl::cat(flagCategory())};
  llvm::cl::opt<std::string> documents{
      "documents",
      llvm::cl::desc("positions of each document in a row, or ~N on average (default: one a row)"),
      llvm::cl::value_desc("N"), llvm::cl::cat(flagCategory())};
  llvm::cl::opt<int64_t> steps{"steps", llvm::cl::desc("steps that are timed (default: 5)"),
                               llvm::cl::init(5), llvm::cl::cat(flagCategory())};
  llvm::cl::opt<std::string> program{
      "program",
      llvm::cl::desc("step (default), prefill (outputs after the last position), outputs "
                     "(of all positions), decode or eval"),
      llvm::cl::init("step"), llvm::cl::cat(flagCategory())};
  llvm::cl::opt<bool> kernels{"kernels", llvm::cl::desc("times of each kernel, and what they reach"),
                              llvm::cl::cat(flagCategory())};
  llvm::cl::list<std::string> kinds{
      "kind",
      llvm::cl::desc("with --kernels: attention, product, rows, loss, optimiser, memory (default: all)"),
      llvm::cl::CommaSeparated, llvm::cl::cat(flagCategory())};
  llvm::cl::opt<std::string> profile{
      "profile", llvm::cl::desc("write the calls of kernels as a trace for Chrome or Perfetto"),
      llvm::cl::value_desc("FILE"), llvm::cl::cat(flagCategory())};
  llvm::cl::opt<std::string> against{
      "against", llvm::cl::desc("say which kernels are slower or faster than in FILE, of `--kernels --json`"),
      llvm::cl::value_desc("FILE"), llvm::cl::cat(flagCategory())};
  llvm::cl::opt<bool> json{"json", llvm::cl::desc("one JSON object"), llvm::cl::cat(flagCategory())};

  bool wholeSteps() const { return program == "step"; }
  std::string programName() const { return program == "outputs" ? "prefill" : std::string(program); }
  std::set<std::string> kindSet() const { return {kinds.begin(), kinds.end()}; }
};

/// What is timed, ready to run.
struct Bench {
  Bench(const BenchFlags &flags, std::string memory) : flags(flags), memory(std::move(memory)) {}

  const BenchFlags &flags;
  const std::string memory; // the policy; empty: the recipe's
  std::unique_ptr<Program> program;
  PipelineOptions options;
  bool chooses = false;
  MachineReport report;
  std::unique_ptr<rt::Machine> machine;
  std::unique_ptr<rt::WindowControl> windows;
  DrawnInputs drawn;
  std::optional<EarlierTimes> earlier;
  double ready = 0, first = 0; // seconds of the process to its first kernel, to the end of its first run
};

/// What is timed, in words that a later run can be compared by.
rt::OrderedJson subjectOf(const Bench &bench);

/// Text, machine, state and windows. Errors: as of loadDrawn and makeMachine; of an
/// earlier file of times that is of something else, before anything is compiled.
absl::Status prepare(Bench &bench);

} // namespace weft

//===- DryRun.cpp - What a run would take ----------------------------------===//

#include "tools/weft/DryRun.h"

#include "tools/weft/BenchSteps.h"
#include "tools/weft/Costs.h"
#include "tools/weft/Output.h"
#include "tools/weft/WindowPlans.h"

#include "runtime/cpu/Memory.h"
#include "runtime/train/State.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace weft;

namespace {

/// Seconds of one run of `program`, after one that is not counted.
absl::StatusOr<double> secondsOf(BenchProgram &program) {
  if (absl::Status status = program.run(); !status.ok())
    return status;
  const auto start = std::chrono::steady_clock::now();
  if (absl::Status status = program.run(); !status.ok())
    return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

absl::StatusOr<double> stepSeconds(const Program &program, rt::Machine &machine,
                                   const PipelineOptions &options, const rt::Recipe &recipe) {
  if (absl::Status status = rt::initializeState(machine, recipe.seed); !status.ok())
    return status;
  if (absl::Status status = startWindows(program, machine, "").status(); !status.ok())
    return status;
  const lang::Bindings names = program.model.bindings();
  const auto vocab = names.find("vocab");
  DrawnInputs drawn;
  if (vocab != names.end())
    drawn.vocabulary = static_cast<int64_t>(vocab->second.number);
  drawn.targets = options.batch * options.positions;
  BenchProgram micro(machine, "micro", drawn), update(machine, "update", drawn);
  absl::StatusOr<double> one = secondsOf(micro);
  if (!one.ok())
    return one;
  absl::StatusOr<double> other = secondsOf(update);
  if (!other.ok())
    return other;
  return *one * static_cast<double>(recipe.microBatches) + *other;
}

} // namespace

std::string weft::durationText(double seconds) {
  if (seconds < 1)
    return llvm::formatv("{0:F1} ms", seconds * 1e3).str();
  if (seconds < 90)
    return llvm::formatv("{0:F1} s", seconds).str();
  if (seconds < 90 * 60)
    return llvm::formatv("{0:F0} min", seconds / 60).str();
  if (seconds < 36 * 3600)
    return llvm::formatv("{0:F1} h", seconds / 3600).str();
  return llvm::formatv("{0:F1} days", seconds / 86400).str();
}

absl::Status weft::printDryRun(const Program &program, rt::Machine &machine, const PipelineOptions &options,
                               const rt::Recipe &recipe, int64_t steps) {
  absl::StatusOr<double> flops = stepFlops(program, options);
  if (!flops.ok())
    return flops.status();
  llvm::outs() << "largest buffers: " << rt::largestBuffers(machine.executable()) << "\n";
  absl::StatusOr<double> seconds = stepSeconds(program, machine, options, recipe);
  if (!seconds.ok())
    return seconds.status();
  const double tokens = static_cast<double>(recipe.rows * recipe.positions);
  llvm::outs() << llvm::formatv("a step: {0} tokens, {1}, {2} here, {3}\n",
                                grouped(static_cast<int64_t>(tokens)), compact(*flops, "FLOP"),
                                durationText(*seconds), compact(*flops / *seconds, "FLOP/s"))
               << llvm::formatv("{0} steps: {1} tokens, {2}, about {3} without evaluation and saving\n",
                                grouped(steps), compact(tokens * static_cast<double>(steps)),
                                compact(*flops * static_cast<double>(steps), "FLOP"),
                                durationText(*seconds * static_cast<double>(steps)));
  return absl::OkStatus();
}

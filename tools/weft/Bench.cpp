//===- Bench.cpp - weft bench -----------------------------------------------===//
//
// Whole training steps (forward, loss, backward, optimiser) on drawn tokens, after
// steps that are not counted, or runs of one program. Prints the median, its method,
// and the most memory that the process has held; of a GPU, what was counted and what
// its memory holds. With a plan that chooses windows, the controller runs as in
// training: control steps have a median of their own. --kernels times each kernel by
// itself, beside what the device reaches on a copy and on a product.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/BenchMemory.h"
#include "tools/weft/BenchReport.h"
#include "tools/weft/BenchSetup.h"
#include "tools/weft/MemoryPolicies.h"
#include "tools/weft/Output.h"

#include "runtime/core/File.h"

#include "llvm/Support/FormatVariadic.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <set>
#include <sstream>

using namespace weft;
namespace cl = llvm::cl;

namespace {

double peakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// Seconds since the kernel made this process, loading of the binary included; -1
/// where /proc can't say.
double secondsSinceStart() {
  absl::StatusOr<std::string> stat = rt::readFile("/proc/self/stat");
  timespec now{};
  if (!stat.ok() || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
    return -1;
  // Fields are counted from behind the command's name, which may hold spaces; the start is number 22.
  std::istringstream fields(stat->substr(stat->rfind(')') + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number)
    if (!(fields >> field))
      return -1;
  double ticks = std::strtod(field.c_str(), nullptr);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Windows and what they leave of attention, as they stand at the end.
void addWindows(rt::OrderedJson &result, const rt::WindowControl &control, const BenchSteps &steps) {
  result["acr"] = control.acr();
  result["pair_ratio"] = control.pairs();
  result["executed_ratio"] = control.executedShare();
  if (steps.controlled.empty())
    return;
  double sum = 0;
  for (double took : steps.seconds)
    sum += took;
  result["plain_seconds"] = median(steps.plain);
  result["control_seconds"] = median(steps.controlled);
  result["mean_seconds"] = sum / static_cast<double>(steps.seconds.size());
  result["decided_seconds"] = median(steps.decided);
  result["ahead_seconds"] = median(steps.ahead);
}

/// What was counted over `runs` runs.
void addCounters(rt::OrderedJson &result, const rt::CudaCounters &before, const rt::CudaCounters &after,
                 int64_t runs) {
  auto each = [&](uint64_t from, uint64_t to) {
    return static_cast<double>(to - from) / static_cast<double>(std::max<int64_t>(runs, 1));
  };
  result["waits_per_step"] = each(before.synchronizations, after.synchronizations);
  result["late_reads_per_step"] = each(before.lateReads, after.lateReads);
  result["allocations_per_step"] = each(before.deviceAllocations + before.pinnedAllocations,
                                        after.deviceAllocations + after.pinnedAllocations);
  result["launches_per_step"] = each(before.launches, after.launches);
  result["graphs_per_step"] = each(before.graphLaunches, after.graphLaunches);
}

/// Times, and all that is the same for steps and single programs.
absl::StatusOr<rt::OrderedJson> describe(const Bench &bench, double typical, const char *method,
                                         const rt::CudaCounters *before) {
  rt::OrderedJson result = subjectOf(bench);
  result.update(rt::OrderedJson{
      {"method", method},
      {"steps", int64_t(bench.flags.steps)},
      {"seconds", typical},
      {"tokens_per_s", static_cast<double>(bench.drawn.targets) / typical},
      {"peak_mib", peakMegabytes()},
      {"compile_seconds", bench.report.seconds},
      {"start_seconds", bench.ready},
      {"first_step_seconds", bench.first},
      {"device", bench.flags.device.device.empty() ? "auto" : std::string(bench.flags.device.device)},
      {"target", bench.machine->executable().target},
      {"kernels", bench.report.compile.kernels}});
  size_t calls = 0; // of kernels, a step without control or a run
  for (const rt::Program &program : bench.machine->executable().programs)
    calls += program.name == "observe" || program.name == "prepare" ? 0 : program.calls.size();
  result["calls"] = calls;
  if (const rt::CudaCounters *counters = rt::cudaCounters(*bench.machine)) {
    result["device_mib"] = static_cast<double>(counters->deviceBytes) / (1 << 20);
    result["load_seconds"] = counters->loadSeconds;
    addCounters(result, *before, *counters, bench.flags.steps);
    absl::StatusOr<std::optional<rt::CudaMemory>> memory = rt::cudaMemory(*bench.machine);
    if (!memory.ok())
      return memory.status();
    result["memory"] = memoryJson(**memory);
  }
  if (bench.report.memory)
    result["policy"] = memoryJson(*bench.report.memory);
  return result;
}

absl::Status print(Bench &bench, rt::OrderedJson result, const std::string &more) {
  const rt::Profile *profile = bench.flags.kernels ? rt::kernelTimes(*bench.machine) : nullptr;
  const std::set<std::string> kinds = bench.flags.kindSet();
  if (bench.flags.json) {
    if (profile)
      result["times"] = kernelJson(*profile, kinds, bench.flags.steps);
    if (bench.earlier)
      result["against"] = bench.earlier->compare(result["times"]);
    printJson(result);
    return absl::OkStatus();
  }
  const std::string what =
      bench.flags.program == "decode"
          ? llvm::formatv("a token at the end of {0}", bench.options.positions).str()
          : llvm::formatv("{0}{1} x {2} tokens",
                          bench.flags.micros > 1 ? std::to_string(bench.flags.micros) + " x " : "",
                          bench.options.batch, bench.options.positions)
                .str();
  llvm::outs() << llvm::formatv(
      "{0}: {1}, {2}, {3} of them: {4:F1} ms, {5:F0} tokens/s, peak memory {6:F0} MiB, {7} kernels ready in "
      "{8:F2} s, first kernel {9:F2} s after the process started\n",
      bench.program->model.name, what, result["method"].get<std::string>(), int64_t(bench.flags.steps),
      result["seconds"].get<double>() * 1e3, result["tokens_per_s"].get<double>(), peakMegabytes(),
      bench.report.compile.kernels, bench.report.seconds, bench.ready);
  if (result.contains("waits_per_step")) {
    llvm::outs() << llvm::formatv("each: {0:F1} waits that leave the device idle, {1:F1} allocations\n",
                                  result["waits_per_step"].get<double>(),
                                  result["allocations_per_step"].get<double>());
    absl::StatusOr<std::optional<rt::CudaMemory>> memory = rt::cudaMemory(*bench.machine);
    if (!memory.ok())
      return memory.status();
    llvm::outs() << memoryText(**memory) << "\n";
  }
  if (bench.report.memory)
    llvm::outs() << memoryText(*bench.report.memory);
  llvm::outs() << more << (profile ? kernelTable(*profile, kinds, bench.flags.steps) : "");
  if (bench.earlier)
    llvm::outs() << againstText(bench.earlier->compare(kernelJson(*profile, kinds, bench.flags.steps)));
  return absl::OkStatus();
}

rt::CudaCounters countersOf(const rt::Machine &machine) {
  const rt::CudaCounters *counters = rt::cudaCounters(machine);
  return counters ? *counters : rt::CudaCounters();
}

absl::Status benchSteps(Bench &bench) {
  BenchSteps run(*bench.machine, bench.windows.get(), bench.chooses, bench.flags.micros, bench.drawn);
  bench.ready = secondsSinceStart();
  if (absl::Status status = run.warmUp(); !status.ok())
    return status;
  bench.first = secondsSinceStart();
  if (absl::Status status = run.warmGraphs(); !status.ok())
    return status;
  if (rt::Profile *profile = bench.flags.kernels ? rt::kernelTimes(*bench.machine) : nullptr)
    profile->clear();
  const rt::CudaCounters before = countersOf(*bench.machine);
  for (int64_t step = 0; step < bench.flags.steps; ++step)
    if (absl::Status status = run.run(); !status.ok())
      return status;
  absl::StatusOr<rt::OrderedJson> result = describe(
      bench, median(run.seconds),
      bench.flags.kernels ? "median of steps, each kernel timed by itself" : "median of steps after warm-up",
      &before);
  if (absl::Status status = run.finish(); !status.ok() || !result.ok())
    return status.ok() ? result.status() : status;
  for (const auto &[program, seconds] : run.deviceSeconds)
    (*result)["device_seconds"][program] = median(seconds);
  std::string more;
  if (bench.windows) {
    addWindows(*result, *bench.windows, run);
    if (rt::Profile *profile = bench.flags.kernels ? rt::kernelTimes(*bench.machine) : nullptr)
      profile->pairShare = bench.windows->pairs();
    more += llvm::formatv("windows: ACR {0:F3}, pairs {1:F3}, executed pairs {2:F3} of full attention\n",
                          bench.windows->acr(), bench.windows->pairs(), bench.windows->executedShare());
  }
  if (!run.controlled.empty())
    more += llvm::formatv("control steps: {0:F1} ms, others {1:F1} ms, median of {2} and {3}; the next was "
                          "begun {4:F1} ms before the end\n",
                          median(run.controlled) * 1e3, median(run.plain) * 1e3, run.controlled.size(),
                          run.plain.size(), median(run.ahead) * 1e3);
  return print(bench, *std::move(result), more);
}

/// A program alone: by the host's clock with the copies of inputs and results, and
/// on a GPU by its own events without them.
absl::Status benchProgram(Bench &bench) {
  BenchProgram run(*bench.machine, bench.flags.programName(), bench.drawn);
  bench.ready = secondsSinceStart();
  std::vector<double> seconds, deviceSeconds;
  rt::CudaCounters before;
  for (int64_t i = -2; i < bench.flags.steps; ++i) {
    if (i == 0) {
      before = countersOf(*bench.machine);
      if (rt::Profile *profile = bench.flags.kernels ? rt::kernelTimes(*bench.machine) : nullptr)
        profile->clear();
    }
    const auto start = std::chrono::steady_clock::now();
    if (absl::Status status = run.run(); !status.ok())
      return status;
    if (i == -2)
      bench.first = secondsSinceStart();
    if (i < 0)
      continue;
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (std::optional<double> device = rt::cudaProgramSeconds(*bench.machine, bench.flags.programName()))
      deviceSeconds.push_back(*device);
  }
  absl::StatusOr<rt::OrderedJson> result =
      describe(bench, deviceSeconds.empty() ? median(seconds) : median(deviceSeconds),
               deviceSeconds.empty() ? "median of runs after two, by the host's clock"
                                     : "median of runs after two, device events around all kernels",
               &before);
  if (!result.ok())
    return result.status();
  (*result)["host_seconds"] = median(seconds); // with copies of inputs and results
  std::string more = llvm::formatv("with copies of inputs and results {0:F2} ms by the host's clock\n",
                                   median(seconds) * 1e3);
  return print(bench, *std::move(result), more);
}

} // namespace

int weft::benchCommand(int argc, const char **argv) {
  BenchFlags flags;
  addCompilerFlags();
  if (!parseFlags(argc, argv, "times whole training steps, single programs, kernels",
                  "  weft bench models/peer.weft --batch 16 --positions 256 --json\n"
                  "  weft bench models/gpt_rope.weft --kernels --kind attention\n"
                  "  weft bench models/peer.weft --memory all\n"
                  "  weft bench models/gpt_rope.weft --against docs/performance/gpt_rope-0.1.0.json\n"
                  "  weft bench models/san.weft --batch 32 --micros 16 --documents ~512\n"
                  "  weft bench models/gpt_rope.weft --program prefill --batch 1 --positions 4096\n"))
    return kUsage;
  if (!flags.against.empty()) {
    flags.kernels = true;
    if (!flags.kinds.empty())
      return misuse("bench", "--against compares all kernels: leave --kind out");
  }
  if (!flags.profile.empty())
    ::setenv("WEFT_TRACE", flags.profile.c_str(), 1);
  static const std::set<std::string> kPrograms{"step", "prefill", "outputs", "decode", "eval"};
  if (!kPrograms.contains(flags.program))
    return misuse("bench", "--program: expected step, prefill, outputs, decode or eval, found '" +
                               flags.program + "'");
  static const std::set<std::string> kKinds{"attention", "product", "rows", "loss", "optimiser", "memory"};
  for (const std::string &kind : flags.kinds)
    if (!kKinds.contains(kind))
      return misuse("bench", "--kind: expected attention, product, rows, loss, optimiser or memory, found '" +
                                 kind + "'");
  if (flags.steps < 1)
    return misuse("bench", "--steps: expected at least 1");
  if (flags.micros < 1 || (flags.micros > 1 && !flags.wholeSteps()))
    return misuse("bench", "--micros: expected at least 1, and more only with whole steps");
  if (flags.memory == "all") {
    if (!flags.wholeSteps() || flags.kernels)
      return misuse("bench", "--memory all compares whole steps: leave --program and --kernels out");
    absl::Status status = benchPolicies(flags);
    return status.ok() ? 0 : fail(status);
  }
  Bench bench(flags, flags.memory);
  absl::Status status = prepare(bench);
  if (status.ok())
    status = flags.wholeSteps() ? benchSteps(bench) : benchProgram(bench);
  return status.ok() ? 0 : fail(status);
}

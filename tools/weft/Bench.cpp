//===- Bench.cpp - weft bench -----------------------------------------------===//
//
// Whole training steps (forward, loss, backward, optimiser) on drawn tokens,
// after one step that is not counted. Prints the median, its method, and the
// most memory that the process has held.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Command.h"
#include "tools/weft/WindowPlans.h"

#include "runtime/core/File.h"
#include "runtime/core/Json.h"
#include "runtime/core/Philox.h"
#include "runtime/cuda/Cuda.h"
#include "runtime/train/State.h"

#include "llvm/Support/FormatVariadic.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <sstream>

using namespace weft;
namespace cl = llvm::cl;

namespace {

using Clock = std::chrono::steady_clock;

/// Tensors for the ports of a program: tokens and targets below `vocabulary`,
/// one document a row, an inverse count of 1 / targets, a small rate.
std::vector<rt::Tensor> portTensors(const std::vector<rt::Port> &ports, int64_t vocabulary, int64_t targets) {
  std::vector<rt::Tensor> tensors;
  for (const rt::Port &port : ports) {
    rt::Tensor tensor(port.type, port.shape);
    rt::Philox philox(1, "bench/" + port.name);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      auto index = static_cast<size_t>(i);
      if (port.type == rt::ElementType::I32)
        tensor.as<int32_t>()[index] =
            port.name == "doc_start"
                ? 0
                : static_cast<int32_t>(philox.uniform(index) * static_cast<double>(vocabulary));
      else if (port.type == rt::ElementType::F32)
        tensor.as<float>()[index] = port.name == "inverse_count" ? 1.0f / static_cast<float>(targets) : 1e-3f;
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// One program with tensors for all its ports.
class Step {
public:
  Step(rt::Machine &machine, const std::string &name, int64_t vocabulary, int64_t targets)
      : machine(machine), name(name) {
    for (const rt::Program &program : machine.executable().programs)
      if (program.name == name) {
        inputs = portTensors(program.inputs, vocabulary, targets);
        results = portTensors(program.results, 1, 1);
      }
  }
  absl::Status run() { return machine.run(name, inputs, results); }

private:
  rt::Machine &machine;
  std::string name;
  std::vector<rt::Tensor> inputs, results;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

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

} // namespace

int weft::benchCommand(int argc, const char **argv) {
  ModelFlags flags;
  DeviceFlags device;
  cl::opt<int64_t> batch("batch", cl::desc("rows (default: the recipe's micro-batch)"), cl::init(0),
                         cl::cat(flagCategory()));
  cl::opt<int64_t> positions("positions", cl::desc("positions of a row (default: the recipe's)"), cl::init(0),
                             cl::cat(flagCategory()));
  cl::opt<int64_t> steps("steps", cl::desc("steps that are timed"), cl::init(5), cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("one JSON object"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "times whole training steps",
                  "  weft bench models/peer.weft --batch 16 --positions 256 --json\n"))
    return kUsage;
  Request request = flags.request(true);
  device.apply(request);
  absl::StatusOr<std::unique_ptr<Program>> program = loadDecided(request);
  if (!program.ok())
    return fail(program.status());
  PipelineOptions options = shapesOf(*(*program)->recipe);
  options.batch = batch > 0 ? int64_t(batch) : options.batch;
  options.positions = positions > 0 ? int64_t(positions) : options.positions;
  options.programs = {"micro", "update"};
  MachineReport report;
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine =
      makeMachine(**program, options, request, {}, &report);
  if (!machine.ok())
    return fail(machine.status());
  if (absl::Status status = rt::initializeState(**machine, 0); !status.ok())
    return fail(status);
  if (absl::Status status = startWindows(**program, **machine, "").status(); !status.ok())
    return fail(status);
  lang::Bindings names = (*program)->model.bindings();
  int64_t vocabulary = names.contains("vocab") ? static_cast<int64_t>(names.find("vocab")->second.number) : 2;
  int64_t tokens = options.batch * options.positions;
  Step micro(**machine, "micro", vocabulary, tokens), update(**machine, "update", vocabulary, tokens);
  const double ready = secondsSinceStart();
  std::vector<double> seconds;
  double first = 0; // of the process to the end of its first step
  for (int64_t step = -1; step < steps; ++step) {
    Clock::time_point start = Clock::now();
    absl::Status status = micro.run();
    if (status.ok())
      status = update.run();
    if (!status.ok())
      return fail(status);
    if (step < 0)
      first = secondsSinceStart();
    else
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  double typical = median(seconds);
  rt::OrderedJson result{{"model", (*program)->model.name},
                         {"batch", options.batch},
                         {"positions", options.positions},
                         {"method", "median of steps after one warm-up"},
                         {"steps", int64_t(steps)},
                         {"seconds", typical},
                         {"tokens_per_s", static_cast<double>(tokens) / typical},
                         {"peak_mib", peakMegabytes()},
                         {"compile_seconds", report.seconds},
                         {"start_seconds", ready}, // of the process to its first kernel
                         {"first_step_seconds", first},
                         {"device", device.device.empty() ? "auto" : std::string(device.device)},
                         {"target", (*machine)->executable().target},
                         {"kernels", report.compile.kernels}};
  if (const rt::CudaCounters *counters = rt::cudaCounters(**machine)) {
    result["device_mib"] = static_cast<double>(counters->deviceBytes) / (1 << 20);
    result["load_seconds"] = counters->loadSeconds;
  }
  if (json)
    llvm::outs() << rt::dumpJson(result) << "\n";
  else
    llvm::outs() << llvm::formatv(
        "{0}: {1} x {2} tokens, median of {3} steps {4:F1} ms, {5:F0} tokens/s, peak memory {6:F0} MiB, "
        "{7} kernels ready in {8:F2} s, first kernel {9:F2} s after the process started\n",
        (*program)->model.name, options.batch, options.positions, int64_t(steps), typical * 1e3,
        static_cast<double>(tokens) / typical, peakMegabytes(), report.compile.kernels, report.seconds,
        ready);
  return 0;
}

//===- BenchSteps.cpp - Programs that weft bench times --------------------===//
#include "tools/weft/BenchSteps.h"

#include "runtime/core/Philox.h"
#include "runtime/train/Generate.h"

#include <algorithm>
#include <chrono>

using namespace weft;

using Clock = std::chrono::steady_clock;

namespace {

std::vector<rt::Tensor> portTensors(const std::vector<rt::Port> &ports, int64_t vocabulary, int64_t targets,
                                    int64_t lastPosition) {
  std::vector<rt::Tensor> tensors;
  for (const rt::Port &port : ports) {
    rt::Tensor tensor(port.type, port.shape);
    rt::Philox philox(1, "bench/" + port.name);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      auto index = static_cast<size_t>(i);
      if (port.type == rt::ElementType::I32)
        tensor.as<int32_t>()[index] =
            port.name == "doc_start" ? 0
            : port.name == "offset"
                ? static_cast<int32_t>(lastPosition)
                : static_cast<int32_t>(philox.uniform(index) * static_cast<double>(vocabulary));
      else if (port.type == rt::ElementType::F32)
        tensor.as<float>()[index] = port.name == "inverse_count" ? 1.0f / static_cast<float>(targets) : 1e-3f;
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

} // namespace

double weft::median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

BenchProgram::BenchProgram(rt::Machine &machine, const std::string &name, int64_t vocabulary, int64_t targets)
    : machine(machine), name(name) {
  const int64_t last = rt::cacheCapacity(machine.executable()).value_or(1) - 1;
  for (const rt::Program &program : machine.executable().programs)
    if (program.name == name) {
      inputs = portTensors(program.inputs, vocabulary, targets, last);
      for (const rt::Port &port : program.results)
        results.emplace_back(port.type, port.shape);
    }
}

absl::Status BenchProgram::start() {
  absl::StatusOr<uint64_t> started = machine.start(name, inputs, results);
  if (started.ok())
    number = *started;
  return started.status();
}

absl::Status BenchSteps::warmUp() {
  if (chooses)
    if (absl::Status status = step(/*observes=*/false, /*of=*/0, /*goesOn=*/false); !status.ok())
      return status;
  return step(chooses, 1, /*goesOn=*/false);
}

absl::Status BenchSteps::warmGraphs() {
  // The next step is begun, as it is at the end of each that is timed.
  const bool goesOn = !(chooses && control->observes(number + 1));
  return update.underWay() ? step(/*observes=*/false, /*of=*/0, goesOn) : absl::OkStatus();
}

absl::Status BenchSteps::run() {
  const bool observes = chooses && control->observes(++number);
  const Clock::time_point start = Clock::now();
  absl::Status status = step(observes, number, !(chooses && control->observes(number + 1)));
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  (observes ? controlled : plain).push_back(took);
  seconds.push_back(took);
  return status;
}

absl::Status BenchSteps::begin(bool observes) {
  if (!observes)
    return micro.start();
  absl::Status status = control->before(machine);
  return status.ok() ? observe.start() : status;
}

absl::Status BenchSteps::step(bool observes, int64_t of, bool goesOn) {
  absl::Status status = begun ? absl::OkStatus() : begin(observes);
  begun = false;
  if (status.ok())
    status = update.start();
  if (status.ok() && chooses && of > 0)
    status = control->after(machine, of).status();
  if (status.ok() && goesOn && update.underWay()) {
    begun = true;
    status = micro.start();
  }
  return status.ok() ? update.wait() : status;
}

//===- BenchSteps.cpp - Programs that weft bench times --------------------===//
#include "tools/weft/BenchSteps.h"

#include "runtime/core/Philox.h"
#include "runtime/cuda/Cuda.h"
#include "runtime/train/Generate.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <cmath>

using namespace weft;

using Clock = std::chrono::steady_clock;

namespace {

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Where the document of each position began.
void drawStarts(rt::Tensor &tensor, const DrawnDocuments &documents, const rt::Philox &philox) {
  const int64_t positions = tensor.shape.back();
  uint64_t draws = 0;
  int64_t start = 0, left = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i, --left) {
    const int64_t place = i % positions;
    if (documents.positions > 0 && (place == 0 || left == 0)) {
      start = place;
      left = documents.mean ? 1 + static_cast<int64_t>(-std::log1p(-philox.uniform(draws++)) *
                                                       static_cast<double>(documents.positions))
                            : documents.positions;
    }
    tensor.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(start);
  }
}

std::vector<rt::Tensor> portTensors(const std::vector<rt::Port> &ports, const DrawnInputs &drawn,
                                    int64_t lastPosition) {
  std::vector<rt::Tensor> tensors;
  for (const rt::Port &port : ports) {
    rt::Tensor tensor(port.type, port.shape);
    rt::Philox philox(1, "bench/" + port.name);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      auto index = static_cast<size_t>(i);
      if (port.type == rt::ElementType::I32)
        tensor.as<int32_t>()[index] =
            port.name == "offset"
                ? static_cast<int32_t>(lastPosition)
                : static_cast<int32_t>(philox.uniform(index) * static_cast<double>(drawn.vocabulary));
      else if (port.type == rt::ElementType::F32)
        tensor.as<float>()[index] =
            port.name == "inverse_count" ? 1.0f / static_cast<float>(drawn.targets) : 1e-3f;
    }
    if (port.name == "doc_start")
      drawStarts(tensor, drawn.documents, philox);
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

absl::StatusOr<DrawnDocuments> weft::parseDocuments(const std::string &text) {
  DrawnDocuments documents;
  documents.mean = !text.empty() && text.front() == '~';
  constexpr int64_t kMost = int64_t(1) << 31;
  if (!absl::SimpleAtoi(absl::string_view(text).substr(documents.mean), &documents.positions) ||
      documents.positions < 1 || documents.positions >= kMost)
    return absl::InvalidArgumentError(absl::StrCat(
        "--documents: expected a length such as 512, or ~512 for lengths of 512 on average, found '",
        absl::string_view(text), "'"));
  return documents;
}

BenchProgram::BenchProgram(rt::Machine &machine, const std::string &name, const DrawnInputs &drawn)
    : machine(machine), name(name) {
  const int64_t last = rt::cacheCapacity(machine.executable()).value_or(1) - 1;
  for (const rt::Program &program : machine.executable().programs)
    if (program.name == name) {
      inputs = portTensors(program.inputs, drawn, last);
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
    if (absl::Status status = step(/*observes=*/false, /*of=*/0, /*goesOn=*/false, false); !status.ok())
      return status;
  return step(chooses, 1, /*goesOn=*/false, false);
}

absl::Status BenchSteps::warmGraphs() {
  if (!update.underWay())
    return absl::OkStatus();
  if (chooses)
    if (absl::Status status = step(/*observes=*/true, /*of=*/0, /*goesOn=*/false, false); !status.ok())
      return status;
  // The next step is begun, as it is at the end of each that is timed.
  return step(/*observes=*/false, /*of=*/0, goesOn(), observesNext());
}

absl::Status BenchSteps::run() {
  const bool observes = chooses && control->observes(++number);
  const Clock::time_point start = Clock::now();
  absl::Status status = step(observes, number, goesOn(), observesNext());
  const double took = secondsSince(start);
  (observes ? controlled : plain).push_back(took);
  seconds.push_back(took);
  timeProgram("update");
  // What was begun for the next step has no times yet.
  const bool next = begun && observesNext();
  if (observes != next || !begun)
    timeProgram(observes ? "observe" : "micro");
  return status;
}

void BenchSteps::timeProgram(const std::string &program) {
  if (std::optional<double> took = rt::cudaProgramSeconds(machine, program))
    deviceSeconds[program].push_back(*took);
}

/// All micro-batches of a step; a control step watches the last.
absl::Status BenchSteps::begin(bool observes) {
  absl::Status status = absl::OkStatus();
  for (int64_t i = observes ? 1 : 0; status.ok() && i < micros; ++i)
    status = micro.start();
  if (!observes || !status.ok())
    return status;
  status = control->before(machine);
  return status.ok() ? observe.start() : status;
}

absl::Status BenchSteps::step(bool observes, int64_t of, bool goesOn, bool observesNext) {
  absl::Status status = begun ? absl::OkStatus() : begin(observes);
  begun = false;
  if (status.ok() && chooses && of > 0)
    status = control->look(machine, of);
  if (status.ok())
    status = update.start();
  const Clock::time_point asked = Clock::now();
  if (status.ok() && chooses && of > 0)
    status = control->after(machine, of).status();
  if (observes && of > 1)
    decided.push_back(secondsSince(asked));
  if (status.ok() && goesOn && update.underWay()) {
    begun = true;
    status = begin(observesNext);
  }
  const Clock::time_point before = Clock::now();
  status = status.ok() ? update.wait() : status;
  if (observes && of > 1)
    ahead.push_back(secondsSince(before));
  return status;
}

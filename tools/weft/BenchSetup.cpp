//===- BenchSetup.cpp - What weft bench times, made ready -----------------===//

#include "tools/weft/BenchSetup.h"

#include "tools/weft/Freeze.h"
#include "tools/weft/WindowPlans.h"

#include "runtime/train/State.h"

using namespace weft;

rt::OrderedJson weft::subjectOf(const Bench &bench) {
  return {{"model", bench.program->model.name},    {"program", std::string(bench.flags.program)},
          {"batch", bench.options.batch},          {"positions", bench.options.positions},
          {"micros", int64_t(bench.flags.micros)}, {"documents", std::string(bench.flags.documents)}};
}

/// Before anything is compiled: minutes of timing beside the wrong file help nobody.
static absl::Status readEarlier(Bench &bench) {
  if (bench.flags.against.empty())
    return absl::OkStatus();
  absl::StatusOr<EarlierTimes> earlier = EarlierTimes::read(bench.flags.against);
  if (!earlier.ok())
    return earlier.status();
  bench.earlier = *std::move(earlier);
  return bench.earlier->checkSame(subjectOf(bench));
}

absl::Status weft::prepare(Bench &bench) {
  const BenchFlags &flags = bench.flags;
  Request request = flags.model.request(true);
  flags.device.apply(request);
  request.memory = bench.memory;
  request.profile = flags.kernels;
  if (!flags.documents.empty()) {
    absl::StatusOr<DrawnDocuments> documents = parseDocuments(flags.documents);
    if (!documents.ok())
      return documents.status();
    bench.drawn.documents = *documents;
    request.sets.push_back("documents=apart");
  }
  absl::StatusOr<std::unique_ptr<Program>> program = loadDrawn(request);
  if (!program.ok())
    return program.status();
  bench.program = *std::move(program);
  PipelineOptions &options = bench.options;
  options = shapesOf(*bench.program->recipe);
  options.batch = flags.batch > 0 ? int64_t(flags.batch) : options.batch;
  options.positions = flags.positions > 0 ? int64_t(flags.positions) : options.positions;
  bench.program->recipe->positions = options.positions; // shares of windows are of this length
  options.programs = flags.wholeSteps() ? std::vector<std::string>{"micro", "update"}
                                        : std::vector<std::string>{flags.programName()};
  options.lastPosition = flags.program == "prefill";
  bench.chooses = flags.wholeSteps() && choosesWindows(*bench.program);
  if (bench.chooses)
    options.programs.push_back("observe");
  if (flags.program == "decode")
    options.batch = 1;
  if (absl::Status status = readEarlier(bench); !status.ok())
    return status;
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine =
      makeMachine(*bench.program, options, request, {}, &bench.report);
  if (!machine.ok())
    return machine.status();
  bench.machine = *std::move(machine);
  if (absl::Status status = rt::initializeState(*bench.machine, 0); !status.ok())
    return status;
  absl::StatusOr<std::unique_ptr<rt::WindowControl>> windows =
      startWindows(*bench.program, *bench.machine, "");
  if (!windows.ok())
    return windows.status();
  bench.windows = *std::move(windows);
  lang::Bindings names = bench.program->model.bindings();
  if (names.contains("vocab"))
    bench.drawn.vocabulary = static_cast<int64_t>(names.find("vocab")->second.number);
  bench.drawn.targets = flags.program == "decode" ? 1 : flags.micros * options.batch * options.positions;
  return absl::OkStatus();
}

//===- MeasureStream.cpp - weft measure stream -------------------------------===//

#include "tools/weft/Loaded.h"
#include "tools/weft/Measure.h"
#include "tools/weft/Output.h"

#include "runtime/core/File.h"
#include "runtime/data/Rows.h"
#include "runtime/measure/Chart.h"
#include "runtime/measure/Spectrum.h"
#include "runtime/train/BoundProgram.h"

#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <filesystem>

using namespace weft;
namespace cl = llvm::cl;

namespace {

/// Rows of one output, [tokens, channels], in float64.
struct Stream {
  std::string name;
  int64_t channels = 0;
  std::vector<double> values;
};

/// Names of outputs by position, logits apart, in the order of the program.
std::vector<Stream> streamsOf(const rt::Program &program) {
  std::vector<Stream> streams;
  const std::vector<int64_t> &rows = program.inputs.front().shape;
  for (const rt::Port &port : program.results)
    if (port.name != "logits" && port.shape.size() == 3 && port.shape[0] == rows[0] &&
        port.shape[1] == rows[1])
      streams.push_back({port.name, port.shape[2], {}});
  return streams;
}

/// Appends the tokens of a batch that have a target: padding has none.
absl::Status addBatch(rt::BoundProgram &program, rt::Batch batch, std::vector<Stream> &streams) {
  for (auto [port, tensor] : {std::pair("tokens", &batch.tokens), std::pair("doc_start", &batch.docStart)})
    if (program.hasInput(port))
      if (absl::Status status = program.setInput(port, std::move(*tensor)); !status.ok())
        return status;
  if (absl::Status status = program.run(); !status.ok())
    return status;
  std::span<const int32_t> targets = std::as_const(batch.targets).as<int32_t>();
  for (Stream &stream : streams) {
    absl::StatusOr<const rt::Tensor *> value = program.result(stream.name);
    if (!value.ok())
      return value.status();
    for (size_t token = 0; token < targets.size(); ++token)
      for (int64_t c = 0; targets[token] >= 0 && c < stream.channels; ++c)
        stream.values.push_back(rt::floatAt(**value, static_cast<int64_t>(token) * stream.channels + c));
  }
  return absl::OkStatus();
}

/// exp of the entropy of the singular values' shares, after each channel lost its mean.
double effectiveRankOf(const Stream &stream) {
  const auto channels = static_cast<size_t>(stream.channels), tokens = stream.values.size() / channels;
  std::vector<double> centred = stream.values;
  for (size_t c = 0; c < channels; ++c) {
    double mean = 0;
    for (size_t t = 0; t < tokens; ++t)
      mean += centred[t * channels + c] / static_cast<double>(tokens);
    for (size_t t = 0; t < tokens; ++t)
      centred[t * channels + c] -= mean;
  }
  return rt::effectiveRank(
      rt::singularValues({centred, static_cast<int64_t>(tokens), static_cast<int64_t>(channels)}));
}

/// The outputs over the first rows of the held-out text.
absl::StatusOr<std::vector<Stream>> streamsOver(Loaded &loaded, const std::string &folder, int64_t rows) {
  rt::Recipe recipe = runtimeRecipe(*loaded.program);
  recipe.evalRows = rows;
  lang::Bindings names = loaded.program->model.bindings();
  auto vocab = names.find("vocab");
  absl::StatusOr<rt::Dataset> data =
      rt::loadDataset(recipe, vocab == names.end() ? 0 : static_cast<int64_t>(vocab->second.number), folder);
  if (!data.ok())
    return data.status();
  const rt::Program &program = *rt::findProgram(loaded.machine->executable(), "prefill");
  absl::StatusOr<std::optional<rt::EvalData>> held =
      rt::heldOutRows(*data, recipe, program.inputs.front().shape[0]);
  if (!held.ok() || !held->has_value())
    return held.ok() ? absl::InvalidArgumentError("the recipe holds nothing out") : held.status();
  absl::StatusOr<rt::BoundProgram> bound = rt::BoundProgram::bind(*loaded.machine, "prefill");
  if (!bound.ok())
    return bound.status();
  std::vector<Stream> streams = streamsOf(program);
  if (streams.empty())
    return streams;
  for (int64_t i = 0; i < (*held)->batches(); ++i) {
    absl::StatusOr<rt::Batch> batch = (*held)->at(i);
    absl::Status status = batch.ok() ? addBatch(*bound, *std::move(batch), streams) : batch.status();
    if (!status.ok())
      return status;
  }
  return streams;
}

} // namespace

int weft::measureStream(int argc, const char **argv) {
  cl::opt<std::string> run(cl::Positional, cl::Required, cl::desc("RUN"), cl::cat(flagCategory()));
  cl::opt<int64_t> rows("rows", cl::desc("rows of the held-out text (default: 8)"), cl::init(8),
                        cl::cat(flagCategory()));
  cl::opt<std::string> out("o", cl::desc("also a picture (SVG)"), cl::value_desc("FILE"),
                           cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("one JSON list"), cl::cat(flagCategory()));
  DeviceFlags device;
  addCompilerFlags();
  if (!parseFlags(argc, argv, "effective rank of each output of a model, over held-out text",
                  "  weft measure stream runs/first --rows 8\n"))
    return kUsage;
  Request request;
  request.path = run;
  request.needsRecipe = true;
  device.apply(request);
  absl::StatusOr<Loaded> loaded = loadModel(request, [](const Program &, PipelineOptions &options) {
    options.programs = {"prefill"};
    options.batch = 1;
  });
  if (!loaded.ok())
    return fail(loaded.status());
  absl::StatusOr<std::vector<Stream>> streams =
      streamsOver(*loaded, std::filesystem::path(std::string(run)).parent_path().string(), rows);
  if (!streams.ok())
    return fail(streams.status());
  if (streams->empty())
    return fail(
        absl::NotFoundError("the model has no output by position but its logits: name what to measure, as in "
                            "`output stream = x` inside the layer"));
  Table table({"output", "channels", "tokens", "effective rank"});
  rt::OrderedJson list = rt::OrderedJson::array();
  rt::Chart chart{
      "Effective rank of outputs", "output, in order", "effective rank", false, {{std::string(run), {}}}};
  for (const Stream &stream : *streams) {
    const double rank = effectiveRankOf(stream);
    const auto tokens = static_cast<int64_t>(stream.values.size()) / stream.channels;
    table.add({stream.name, grouped(stream.channels), grouped(tokens), absl::StrFormat("%.2f", rank)});
    list.push_back({{"output", stream.name},
                    {"channels", stream.channels},
                    {"tokens", tokens},
                    {"effective_rank", rank}});
    chart.series[0].points.emplace_back(static_cast<double>(list.size()), rank);
  }
  if (!out.empty())
    if (absl::Status status = rt::writeFileAtomic(out, rt::svg(chart)); !status.ok())
      return fail(status);
  if (json)
    printJson(list);
  else
    llvm::outs() << table.text();
  return 0;
}

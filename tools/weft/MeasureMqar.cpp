//===- MeasureMqar.cpp - weft measure mqar -----------------------------------===//

#include "tools/weft/Loaded.h"
#include "tools/weft/Measure.h"
#include "tools/weft/Output.h"

#include "runtime/core/File.h"
#include "runtime/data/Mqar.h"
#include "runtime/measure/Chart.h"
#include "runtime/train/Accuracy.h"
#include "runtime/train/BoundProgram.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"

using namespace weft;
namespace cl = llvm::cl;

namespace {

struct MqarFlags {
  cl::list<std::string> runs{cl::Positional, cl::OneOrMore, cl::desc("RUN..."), cl::cat(flagCategory())};
  cl::list<int64_t> pairs{"pairs", cl::desc("numbers of pairs (default: 8,16,24,32,48,64)"),
                          cl::CommaSeparated, cl::cat(flagCategory())};
  cl::list<int64_t> lengths{"lengths", cl::desc("lengths of rows (default: the recipe's)"),
                            cl::CommaSeparated, cl::cat(flagCategory())};
  cl::opt<int64_t> rows{"rows", cl::desc("rows of each test (default: 1000)"), cl::init(1000),
                        cl::cat(flagCategory())};
  cl::opt<int64_t> vocabulary{"vocab", cl::desc("ids that rows are drawn from (default: the model's)"),
                              cl::init(0), cl::cat(flagCategory())};
  cl::opt<uint64_t> seed{"seed", cl::desc("of the rows (default: 0)"), cl::init(0), cl::cat(flagCategory())};
  cl::opt<std::string> out{"o", cl::desc("also a picture (SVG)"), cl::value_desc("FILE"),
                           cl::cat(flagCategory())};
  cl::opt<bool> json{"json", cl::desc("one JSON list"), cl::cat(flagCategory())};
  DeviceFlags device;
};

/// A model loaded for rows of one length; reused for every number of pairs.
absl::StatusOr<Loaded> loadFor(const std::string &run, int64_t length, const MqarFlags &flags) {
  Request request;
  request.path = run;
  request.needsRecipe = true;
  flags.device.apply(request);
  return loadModel(request, [&](const Program &, PipelineOptions &options) {
    options.programs = {"prefill"};
    options.positions = length > 0 ? length : options.positions;
    options.batch = std::min<int64_t>(options.batch, 8); // logits of every position are kept
  });
}

/// Of the tokens. On a GPU `prefill` is not the first program.
const std::vector<int64_t> &shapeOf(const Loaded &loaded) {
  return rt::findProgram(loaded.machine->executable(), "prefill")->inputs.front().shape;
}

absl::StatusOr<rt::AccuracyResult> test(Loaded &loaded, int64_t pairs, const MqarFlags &flags) {
  const std::vector<int64_t> shape = shapeOf(loaded);
  lang::Bindings names = loaded.program->model.bindings();
  auto vocab = names.find("vocab");
  rt::MqarOptions options;
  options.test = true;
  options.pairs = pairs;
  options.rows = flags.rows;
  options.seed = flags.seed;
  options.length = shape[1];
  options.vocabulary = vocab == names.end() ? options.vocabulary : static_cast<int64_t>(vocab->second.number);
  if (flags.vocabulary > 0)
    options.vocabulary = std::min(options.vocabulary, static_cast<int64_t>(flags.vocabulary));
  absl::StatusOr<rt::Mqar> task = rt::Mqar::make(options);
  if (!task.ok())
    return task.status();
  rt::Recipe recipe = *loaded.program->recipe;
  recipe.positions = shape[1];
  recipe.evalRows = 0;
  absl::StatusOr<rt::EvalData> data =
      rt::EvalData::make(std::make_shared<const rt::Mqar>(*std::move(task)), recipe, shape[0]);
  return data.ok() ? rt::accuracy(*loaded.machine, *data) : data.status();
}

} // namespace

int weft::measureMqar(int argc, const char **argv) {
  MqarFlags flags;
  addCompilerFlags();
  if (!parseFlags(argc, argv, "how many of the values that key-value pairs ask for are right",
                  "  weft measure mqar runs/adapted --pairs 8,32,64 --lengths 512\n"))
    return kUsage;
  std::vector<int64_t> pairs(flags.pairs.begin(), flags.pairs.end()),
      lengths(flags.lengths.begin(), flags.lengths.end());
  if (pairs.empty())
    pairs = {8, 16, 24, 32, 48, 64};
  if (lengths.empty())
    lengths = {0};
  rt::OrderedJson list = rt::OrderedJson::array();
  rt::Chart chart{"Recall", "pairs", "right answers (%)", false, {}};
  Table table({"run", "length", "pairs", "accuracy", "right", "of", "loss"});
  for (const std::string &run : flags.runs)
    for (int64_t length : lengths) {
      absl::StatusOr<Loaded> loaded = loadFor(run, length, flags);
      if (!loaded.ok())
        return fail(loaded.status());
      const int64_t positions = shapeOf(*loaded)[1];
      chart.series.push_back({absl::StrCat(run, ", ", positions), {}});
      for (int64_t count : pairs) {
        absl::StatusOr<rt::AccuracyResult> result = test(*loaded, count, flags);
        if (!result.ok())
          return fail(result.status());
        list.push_back({{"run", run},
                        {"length", positions},
                        {"pairs", count},
                        {"accuracy", result->accuracy()},
                        {"right", result->right},
                        {"targets", result->targets},
                        {"loss", result->loss}});
        chart.series.back().points.emplace_back(static_cast<double>(count), 100 * result->accuracy());
        table.add({run, grouped(positions), grouped(count), llvm::formatv("{0:P2}", result->accuracy()).str(),
                   grouped(result->right), grouped(result->targets),
                   llvm::formatv("{0:F4}", result->loss).str()});
      }
    }
  if (!flags.out.empty())
    if (absl::Status status = rt::writeFileAtomic(flags.out, rt::svg(chart)); !status.ok())
      return fail(status);
  if (flags.json)
    printJson(list);
  else
    llvm::outs() << table.text();
  return 0;
}

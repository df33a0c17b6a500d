//===- MeasureCommand.cpp - weft measure ranks, watch, curves ---------------===//

#include "tools/weft/Measure.h"
#include "tools/weft/Output.h"

#include "frontend/PlanSites.h"
#include "frontend/Watch.h"
#include "runtime/core/File.h"
#include "runtime/core/Safetensors.h"
#include "runtime/measure/Chart.h"
#include "runtime/measure/Spectrum.h"
#include "runtime/measure/Watch.h"

#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cmath>
#include <filesystem>

using namespace weft;
namespace cl = llvm::cl;

namespace {

struct PictureFlags {
  cl::opt<bool> json{"json", cl::desc("one JSON object"), cl::cat(flagCategory())};
  cl::opt<std::string> out{"o", cl::desc("also a picture (SVG)"), cl::value_desc("FILE"),
                           cl::cat(flagCategory())};

  /// Prints what was asked for; the table unless --json.
  int show(const rt::OrderedJson &value, const std::string &table, const rt::Chart &chart) const {
    if (!out.empty())
      if (absl::Status status = rt::writeFileAtomic(out, rt::svg(chart)); !status.ok())
        return fail(status);
    if (json)
      printJson(value);
    else
      llvm::outs() << table;
    return 0;
  }
};

std::string fixed(double value, int digits = 4) {
  return std::isfinite(value) ? absl::StrFormat("%.*f", digits, value) : "-";
}

//===----------------------------------------------------------------------===//
// ranks
//===----------------------------------------------------------------------===//

struct Ranks {
  double stable = 0, effective = 0;
};
using RanksOfStep = std::map<std::string, Ranks>; // by path

/// The matrices of the run's model.
absl::StatusOr<std::vector<rt::WatchedParameter>> matricesOfRun(const std::string &run) {
  Request request;
  request.path = run + "/run.weft";
  request.fromRun = true;
  request.needsRecipe = true;
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!program.ok())
    return program.status();
  std::vector<rt::WatchedParameter> result;
  const std::map<std::string, int64_t> rows = lang::matrixRowAxes((*program)->model);
  const std::set<std::string> matrices = lang::matricesOf((*program)->model);
  for (const lang::ParameterInfo &parameter : lang::parametersOf((*program)->model))
    if (parameter.axes.size() >= 2 && matrices.contains(parameter.path))
      result.push_back({parameter.path, rows.at(parameter.path), parameter.shape});
  return result;
}

absl::StatusOr<RanksOfStep> ranksOf(const std::string &checkpoint,
                                    const std::vector<rt::WatchedParameter> &matrices) {
  absl::StatusOr<rt::SafetensorsSet> file = rt::SafetensorsSet::open(checkpoint + "/model.safetensors");
  if (!file.ok())
    return file.status();
  RanksOfStep result;
  for (const rt::WatchedParameter &parameter : matrices) {
    if (!file->info(parameter.path))
      continue; // a plan took it away
    absl::StatusOr<rt::Tensor> value = file->readAs(parameter.path, rt::ElementType::F64);
    if (!value.ok())
      return value.status();
    const rt::Matrix matrix = rt::asMatrix(*value, parameter);
    const rt::MatrixView view{matrix.values, matrix.rows, matrix.columns};
    result[parameter.path] = {rt::stableRank(view), rt::effectiveRank(rt::singularValues(view))};
  }
  return result;
}

/// Means over the matrices of one kind.
std::map<std::string, Ranks> byKind(const RanksOfStep &ranks) {
  std::map<std::string, std::vector<Ranks>> all;
  for (const auto &[path, value] : ranks)
    all[rt::kindOf(path)].push_back(value);
  std::map<std::string, Ranks> result;
  for (const auto &[kind, values] : all)
    for (const Ranks &value : values) {
      result[kind].stable += value.stable / static_cast<double>(values.size());
      result[kind].effective += value.effective / static_cast<double>(values.size());
    }
  return result;
}

int showRanks(const PictureFlags &flags, const std::map<int64_t, RanksOfStep> &steps) {
  rt::OrderedJson json = rt::OrderedJson::array();
  rt::Chart chart{"Stable rank, mean over layers", "step", "stable rank", false, {}};
  std::map<std::string, rt::Series> series;
  Table table({"step", "matrices", "stable rank", "effective rank"}, {1});
  for (const auto &[step, ranks] : steps) {
    rt::OrderedJson entry = {{"step", step}, {"matrices", rt::OrderedJson::object()}};
    for (const auto &[path, value] : ranks)
      entry["matrices"][path] = {{"stable", value.stable}, {"effective", value.effective}};
    json.push_back(std::move(entry));
    for (const auto &[kind, value] : byKind(ranks)) {
      table.add({grouped(step), kind, fixed(value.stable, 2), fixed(value.effective, 2)});
      series[kind].name = kind;
      series[kind].points.emplace_back(static_cast<double>(step), value.stable);
    }
  }
  for (auto &[kind, points] : series)
    chart.series.push_back(std::move(points));
  return flags.show(json, table.text(), chart);
}

int measureRanks(int argc, const char **argv) {
  cl::opt<std::string> run(cl::Positional, cl::Required, cl::desc("RUN"), cl::cat(flagCategory()));
  PictureFlags flags;
  if (!parseFlags(argc, argv, "stable and effective rank of every matrix in every checkpoint of a run",
                  "  weft measure ranks runs/first -o ranks.svg\n"))
    return kUsage;
  absl::StatusOr<std::vector<rt::WatchedParameter>> matrices = matricesOfRun(run);
  if (!matrices.ok())
    return fail(matrices.status());
  std::map<int64_t, RanksOfStep> steps;
  std::error_code ignored;
  for (const auto &entry : std::filesystem::directory_iterator(run + "/checkpoints", ignored)) {
    llvm::StringRef name(entry.path().filename().c_str());
    int64_t step = 0;
    if (!name.consume_front("step-") || name.getAsInteger(10, step))
      continue;
    absl::StatusOr<RanksOfStep> ranks = ranksOf(entry.path().string(), *matrices);
    if (!ranks.ok())
      return fail(ranks.status());
    steps[step] = std::move(*ranks);
  }
  if (steps.empty())
    return fail(
        absl::NotFoundError(absl::StrCat(std::string(run), ": expected a run with checkpoints, found none")));
  return showRanks(flags, steps);
}

//===----------------------------------------------------------------------===//
// watch, curves
//===----------------------------------------------------------------------===//

int measureWatch(int argc, const char **argv) {
  cl::opt<std::string> run(cl::Positional, cl::Required, cl::desc("RUN"), cl::cat(flagCategory()));
  PictureFlags flags;
  if (!parseFlags(argc, argv, "what `watch` of the recipe reported at each evaluation",
                  "  weft measure watch runs/first -o gates.svg\n"))
    return kUsage;
  absl::StatusOr<std::vector<rt::Json>> lines = logLines(run, "watch");
  if (!lines.ok())
    return fail(lines.status());
  if (lines->empty())
    return fail(absl::NotFoundError(absl::StrCat(
        std::string(run),
        ": its log has no watched values; say watch = sigmoid(gate) or the like in the recipe")));
  Table table({"step", "watch", "parameters", "mean"}, {1, 2});
  std::map<std::string, rt::Series> series;
  for (const rt::Json &line : *lines)
    for (const auto &[kind, value] : line["kinds"].items()) {
      const std::string watch = line.value("watch", "");
      const double number = value.is_number() ? value.get<double>() : std::nan("");
      table.add({grouped(line["step"].get<int64_t>()), watch, kind, fixed(number)});
      rt::Series &one = series[watch + " " + kind];
      one.name = llvm::StringRef(watch).split('(').first.str() + " " + kind;
      one.points.emplace_back(line["step"].get<double>(), number);
    }
  rt::Chart chart{"Watched parameters", "step", "mean over parameters", false, {}};
  for (auto &[key, points] : series)
    chart.series.push_back(std::move(points));
  return flags.show(*lines, table.text(), chart);
}

int measureCurves(int argc, const char **argv) {
  cl::list<std::string> runs(cl::Positional, cl::OneOrMore, cl::desc("RUN..."), cl::cat(flagCategory()));
  PictureFlags flags;
  if (!parseFlags(argc, argv, "held-out loss of runs over their steps",
                  "  weft measure curves runs/full runs/windows -o loss.svg\n"))
    return kUsage;
  Table table({"run", "step", "loss", "perplexity"});
  rt::Chart chart{"Held-out loss", "step", "loss (nats)", false, {}};
  rt::OrderedJson json = rt::OrderedJson::object();
  for (const std::string &run : runs) {
    absl::StatusOr<std::vector<rt::Json>> lines = logLines(run, "eval");
    if (!lines.ok())
      return fail(lines.status());
    rt::Series series{std::filesystem::path(run).lexically_normal().filename().string(), {}};
    json[run] = rt::OrderedJson::array();
    for (const rt::Json &line : *lines) {
      const double loss = line["loss"].is_number() ? line["loss"].get<double>() : std::nan("");
      table.add({run, grouped(line["step"].get<int64_t>()), fixed(loss), fixed(std::exp(loss), 2)});
      series.points.emplace_back(line["step"].get<double>(), loss);
      json[run].push_back(rt::OrderedJson(line));
    }
    chart.series.push_back(std::move(series));
  }
  return flags.show(json, table.text(), chart);
}

int measureRegions(int argc, const char **argv) {
  cl::opt<std::string> run(cl::Positional, cl::Required, cl::desc("RUN"), cl::cat(flagCategory()));
  PictureFlags flags;
  if (!parseFlags(argc, argv, "held-out loss of each region of the recipe at each evaluation of a run",
                  "  weft measure regions runs/first -o regions.svg\n"))
    return kUsage;
  absl::StatusOr<std::vector<rt::Json>> lines = logLines(run, "eval");
  if (!lines.ok())
    return fail(lines.status());
  Table table({"step", "region", "targets", "share", "loss"}, {1});
  std::map<std::string, rt::Series> series;
  rt::OrderedJson json = rt::OrderedJson::array();
  for (const rt::Json &line : *lines) {
    if (!line.contains("regions"))
      continue;
    json.push_back({{"step", line["step"]}, {"loss", line["loss"]}, {"regions", line["regions"]}});
    for (const rt::Json &region : line["regions"]) {
      const std::string name = region.value("name", "");
      const double loss = region["loss"].is_number() ? region["loss"].get<double>() : std::nan("");
      table.add({grouped(line["step"].get<int64_t>()), name, grouped(region["targets"].get<int64_t>()),
                 absl::StrFormat("%.1f%%", 100 * region["share"].get<double>()), fixed(loss)});
      series[name].name = name;
      series[name].points.emplace_back(line["step"].get<double>(), loss);
    }
  }
  if (json.empty())
    return fail(absl::NotFoundError(absl::StrCat(
        std::string(run), ": its log has no regions; say regions = NAME \"marker\", ... in the recipe")));
  rt::Chart chart{"Held-out loss by region", "step", "loss (nats)", false, {}};
  for (auto &[name, points] : series)
    chart.series.push_back(std::move(points));
  return flags.show(json, table.text(), chart);
}

} // namespace

/// Whether a line of a log holds what lines of its kind are read for. Logs may be edited, or cut.
static bool isWhole(const rt::Json &line, const std::string &kind) {
  auto is = [](const rt::Json &object, const char *key, bool (rt::Json::*type)() const) {
    auto found = object.find(key);
    return found != object.end() && ((*found).*type)();
  };
  auto isNumberOrNull = [&](const rt::Json &object, const char *key) {
    return is(object, key, &rt::Json::is_number) || is(object, key, &rt::Json::is_null);
  };
  if (!line.is_object() || !is(line, "kind", &rt::Json::is_string) || line["kind"] != kind ||
      !is(line, "step", &rt::Json::is_number))
    return false;
  if (kind == "watch")
    return is(line, "watch", &rt::Json::is_string) && is(line, "kinds", &rt::Json::is_object);
  if (kind == "eval" && !isNumberOrNull(line, "loss"))
    return false;
  for (const rt::Json &region : line.value("regions", rt::Json::array()))
    if (!region.is_object() || !is(region, "name", &rt::Json::is_string) ||
        !is(region, "targets", &rt::Json::is_number) || !is(region, "share", &rt::Json::is_number) ||
        !isNumberOrNull(region, "loss"))
      return false;
  return true;
}

absl::StatusOr<std::vector<rt::Json>> weft::logLines(const std::string &run, const std::string &kind) {
  absl::StatusOr<std::string> text = rt::readFile(run + "/log.jsonl");
  if (!text.ok())
    return absl::NotFoundError(absl::StrCat(run, ": expected a run, found no log.jsonl in it"));
  std::vector<rt::Json> lines;
  for (size_t begin = 0, end; (end = text->find('\n', begin)) != std::string::npos; begin = end + 1) {
    absl::StatusOr<rt::Json> line = rt::parseJson(text->substr(begin, end - begin), "log line");
    if (line.ok() && isWhole(*line, kind))
      lines.push_back(*std::move(line));
  }
  return lines;
}

int weft::measureCommand(int argc, const char **argv) {
  const CommandEntry actions[] = {
      {"ranks", "stable and effective rank of matrices over checkpoints", measureRanks},
      {"watch", "watched parameters over steps", measureWatch},
      {"curves", "held-out loss over steps", measureCurves},
      {"regions", "held-out loss by region over steps", measureRegions},
      {"stream", "effective rank of a model's outputs over held-out text", measureStream},
      {"mqar", "recall of key-value pairs, by number and length", measureMqar}};
  return runAction(actions, "measure", argc, argv);
}

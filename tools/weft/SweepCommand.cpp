//===- SweepCommand.cpp - weft sweep: the runs of one experiment ------------===//
//
// Each run is a `weft train` of its own, in a folder of its own: a sweep that
// was stopped goes on where it was.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Measure.h"
#include "tools/weft/Output.h"

#include "runtime/core/File.h"
#include "runtime/core/Safetensors.h"
#include "runtime/measure/Chart.h"
#include "runtime/measure/Sweep.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/Interrupt.h"

#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

using namespace weft;
namespace cl = llvm::cl;
namespace fs = std::filesystem;

namespace {

struct SweepFlags {
  cl::opt<std::string> path{cl::Positional, cl::Required, cl::desc("MODEL.weft"), cl::cat(flagCategory())};
  cl::opt<std::string> out{"out", cl::desc("folder of the runs"), cl::value_desc("DIR"),
                           cl::cat(flagCategory())};
  cl::list<std::string> cells{"cell", cl::desc("settings of one kind of run, and plan=[FILE:]NAME"),
                              cl::value_desc("NAME: key=value; ..."), cl::cat(flagCategory())};
  cl::list<double> rates{
      "rates",
      cl::desc("factors of all rates; more while the best is at an edge (default without --cell and "
               "--seeds: 0.5,1,2)"),
      cl::CommaSeparated, cl::cat(flagCategory())};
  cl::list<uint64_t> seeds{"seeds", cl::desc("each kind of run once for each (default: the recipe's)"),
                           cl::CommaSeparated, cl::cat(flagCategory())};
  cl::opt<int64_t> extend{"extend", cl::desc("most factors added to --rates (default: 6)"), cl::init(6),
                          cl::cat(flagCategory())};
  cl::list<std::string> sets{"set", cl::desc("of every run"), cl::value_desc("name=value"),
                             cl::cat(flagCategory())};
  cl::list<std::string> plans{"plan", cl::desc("of every run"), cl::value_desc("[FILE:]NAME"),
                              cl::cat(flagCategory())};
  cl::opt<std::string> recipe{"recipe", cl::desc("which `train` block"), cl::value_desc("NAME"),
                              cl::cat(flagCategory())};
  cl::opt<bool> json{"json", cl::desc("one JSON object"), cl::cat(flagCategory())};
  cl::opt<std::string> picture{"o", cl::desc("also a picture (SVG)"), cl::value_desc("FILE"),
                               cl::cat(flagCategory())};
};

struct Cell {
  std::string name;
  std::vector<std::string> sets, plans;
};

struct Outcome {
  double loss = std::numeric_limits<double>::infinity();
  int64_t parameters = 0, tokens = 0;
  double seconds = 0;
};

/// `NAME: key=value; key=value`.
absl::StatusOr<Cell> parseCell(llvm::StringRef text) {
  auto [name, rest] = text.split(':');
  Cell cell{name.trim().str(), {}, {}};
  llvm::SmallVector<llvm::StringRef> parts;
  rest.split(parts, ';', -1, false);
  for (llvm::StringRef part : parts) {
    part = part.trim();
    if (part.consume_front("plan="))
      cell.plans.push_back(part.str());
    else if (part.contains('='))
      cell.sets.push_back(part.str());
    else if (!part.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("--cell ", text.str(), ": expected key=value, found `", part.str(), "`"));
  }
  if (cell.name.empty() || cell.name.find('/') != std::string::npos || cell.name.starts_with('.'))
    return absl::InvalidArgumentError(absl::StrCat(
        "--cell ", text.str(), ": expected a name before the colon, without / and not starting with a dot"));
  return cell;
}

class Sweep {
public:
  explicit Sweep(const SweepFlags &flags) : flags(flags) {}

  /// All seeds of a cell at a factor; the mean of their losses.
  absl::StatusOr<double> run(const Cell &cell, std::optional<double> factor);
  bool interrupted = false;

  struct Row {
    std::string cell;
    double factor = 1;
    std::optional<uint64_t> seed;
    Outcome outcome;
  };
  std::vector<Row> rows;

private:
  absl::StatusOr<Outcome> runOne(const Cell &cell, std::optional<double> factor,
                                 std::optional<uint64_t> seed);
  Request requestOf(const Cell &cell, std::optional<double> factor, std::optional<uint64_t> seed) const;
  static absl::Status checkSame(const std::string &folder, const Request &request);
  std::optional<Outcome> finished(const std::string &folder) const;
  const SweepFlags &flags;
};

/// What a run ended with; nothing when it is not at its end.
std::optional<Outcome> Sweep::finished(const std::string &folder) const {
  absl::StatusOr<std::string> checkpoint = rt::findCheckpoint(folder);
  if (!checkpoint.ok())
    return std::nullopt;
  absl::StatusOr<rt::CheckpointInfo> info = rt::readCheckpointInfo(*checkpoint);
  if (!info.ok() || info->step < info->totalSteps)
    return std::nullopt;
  Outcome outcome;
  outcome.tokens = info->tokens;
  outcome.seconds = info->seconds;
  if (absl::StatusOr<rt::SafetensorsFile> file =
          rt::SafetensorsFile::open(*checkpoint + "/model.safetensors");
      file.ok())
    for (const auto &[name, tensor] : file->tensors()) {
      int64_t count = 1;
      for (int64_t size : tensor.shape)
        count *= size;
      outcome.parameters += count;
    }
  absl::StatusOr<std::vector<rt::Json>> lines = logLines(folder, "eval");
  if (!lines.ok() || lines->empty() || lines->back()["step"] != info->step)
    return std::nullopt;
  if (const rt::Json &loss = lines->back()["loss"]; loss.is_number())
    outcome.loss = loss.get<double>();
  return outcome;
}

/// The training run of `cell`, as `weft train` would be asked for it.
Request Sweep::requestOf(const Cell &cell, std::optional<double> factor, std::optional<uint64_t> seed) const {
  Request request;
  setPath(request, flags.path);
  request.sets.assign(flags.sets.begin(), flags.sets.end());
  request.sets.insert(request.sets.end(), cell.sets.begin(), cell.sets.end());
  if (factor)
    request.sets.push_back(absl::StrFormat("rate_factor=%.17g", *factor));
  if (seed)
    request.sets.push_back(absl::StrCat("seed=", *seed));
  request.plans.assign(flags.plans.begin(), flags.plans.end());
  request.plans.insert(request.plans.end(), cell.plans.begin(), cell.plans.end());
  request.recipe = flags.recipe;
  request.needsRecipe = request.quiet = true;
  return request;
}

/// A run that stands in `folder` is gone on with only when its text is that of `request`.
absl::Status Sweep::checkSame(const std::string &folder, const Request &request) {
  absl::StatusOr<std::string> stands = rt::readFile(folder + "/run.weft");
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!stands.ok() || !program.ok())
    return stands.ok() ? program.status() : stands.status();
  if (*stands == (*program)->runText)
    return absl::OkStatus();
  auto [theirs, ours] =
      std::mismatch(stands->begin(), stands->end(), (*program)->runText.begin(), (*program)->runText.end());
  auto lineAt = [](const std::string &text, std::string::const_iterator place) {
    const auto at = static_cast<size_t>(place - text.begin());
    const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1; // npos + 1 is 0
    const size_t end = text.find('\n', at);
    return std::string(llvm::StringRef(text).slice(begin, end).trim());
  };
  return absl::FailedPreconditionError(absl::StrCat(
      "'", folder, "' holds another run: its run.weft says `", lineAt(*stands, theirs), "`, asked for is `",
      lineAt((*program)->runText, ours), "`; give another --out, or remove that folder"));
}

absl::StatusOr<Outcome> Sweep::runOne(const Cell &cell, std::optional<double> factor,
                                      std::optional<uint64_t> seed) {
  std::string folder = absl::StrCat(std::string(flags.out), "/", cell.name);
  if (factor)
    absl::StrAppend(&folder, "/x", absl::StrFormat("%g", *factor));
  if (seed)
    absl::StrAppend(&folder, "/seed-", *seed);
  const Request request = requestOf(cell, factor, seed);
  const bool begun = fs::exists(folder + "/run.weft");
  if (begun)
    if (absl::Status status = checkSame(folder, request); !status.ok())
      return status;
  if (std::optional<Outcome> done = finished(folder))
    return *done;
  std::vector<std::string> arguments = {"weft", "train"};
  if (begun) {
    arguments.insert(arguments.end(), {"--resume", folder});
  } else {
    arguments.insert(arguments.end(), {flags.path, "--out", folder});
    for (const std::string &set : request.sets)
      arguments.insert(arguments.end(), {"--set", set});
    for (const std::string &plan : request.plans)
      arguments.insert(arguments.end(), {"--plan", plan});
    if (!flags.recipe.empty())
      arguments.insert(arguments.end(), {"--recipe", flags.recipe});
  }
  llvm::SmallVector<llvm::StringRef> words(arguments.begin(), arguments.end());
  const std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(""), std::nullopt};
  std::string problem;
  std::error_code ignored;
  const std::string self = fs::read_symlink("/proc/self/exe", ignored).string();
  const int code = llvm::sys::ExecuteAndWait(self, words, std::nullopt, redirects, 0, 0, &problem);
  if (code == rt::kInterruptedExit || code < 0) {
    interrupted = true;
    return absl::CancelledError(absl::StrCat("stopped in ", folder, "; the same command goes on"));
  }
  std::optional<Outcome> done = finished(folder);
  if (absl::StatusOr<std::vector<rt::Json>> lines = logLines(folder, "eval");
      code == 0 && lines.ok() && lines->empty())
    return absl::InvalidArgumentError(absl::StrCat(
        folder, ": the recipe holds nothing out, so there is no loss to compare; say held_out = last 5%"));
  if (!done && !fs::exists(folder + "/run.weft"))
    return absl::InternalError(absl::StrCat(folder, " could not be trained (see above)"));
  return done.value_or(Outcome{}); // it broke on the way: no loss
}

absl::StatusOr<double> Sweep::run(const Cell &cell, std::optional<double> factor) {
  std::vector<std::optional<uint64_t>> seeds(flags.seeds.begin(), flags.seeds.end());
  if (seeds.empty())
    seeds.push_back(std::nullopt);
  double sum = 0;
  for (std::optional<uint64_t> seed : seeds) {
    absl::StatusOr<Outcome> outcome = runOne(cell, factor, seed);
    if (!outcome.ok())
      return outcome.status();
    if (!flags.json)
      llvm::errs() << absl::StrFormat("%s x%g%s: loss %.4f\n", cell.name, factor.value_or(1),
                                      seed ? absl::StrCat(", seed ", *seed) : "", outcome->loss);
    sum += outcome->loss;
    rows.push_back({cell.name, factor.value_or(1), seed, *outcome});
  }
  return sum / static_cast<double>(seeds.size());
}

/// The first of `values` that stands there twice, as its folder is called.
template <typename List, typename Print> std::optional<std::string> twice(const List &values, Print print) {
  std::set<std::string> seen;
  for (const auto &value : values)
    if (const std::string text = print(value); !seen.insert(text).second)
      return text;
  return std::nullopt;
}

/// What the sweep found of one cell.
struct Best {
  std::string cell;
  double factor = 1, loss = 0;
  bool inside = true; // not at an edge of the factors tried
};

absl::StatusOr<Best> sweepCell(Sweep &sweep, const SweepFlags &flags, const Cell &cell) {
  if (flags.rates.empty()) {
    absl::StatusOr<double> loss = sweep.run(cell, std::nullopt);
    return loss.ok() ? absl::StatusOr<Best>(Best{cell.name, 1, *loss, true}) : loss.status();
  }
  std::map<double, double> losses;
  for (double factor : flags.rates) {
    absl::StatusOr<double> loss = sweep.run(cell, factor);
    if (!loss.ok())
      return loss.status();
    losses[factor] = *loss;
  }
  std::optional<double> next = rt::nextFactor(losses);
  for (int64_t added = 0; next && added < flags.extend; ++added, next = rt::nextFactor(losses)) {
    absl::StatusOr<double> loss = sweep.run(cell, next);
    if (!loss.ok())
      return loss.status();
    losses[*next] = *loss;
  }
  const double best = rt::bestFactor(losses).value_or(1);
  return Best{cell.name, best, losses.count(best) ? losses[best] : std::nan(""), !next};
}

std::map<uint64_t, double> lossesOf(const Sweep &sweep, const Best &best) {
  std::map<uint64_t, double> losses;
  for (const Sweep::Row &row : sweep.rows)
    if (row.cell == best.cell && row.factor == best.factor)
      losses[row.seed.value_or(0)] = row.outcome.loss;
  return losses;
}

std::string summaryOf(const Sweep &sweep, const std::vector<Best> &bests, rt::OrderedJson &json) {
  Table table({"cell", "rate", "loss", "difference", "sd", "pairs", ""}, {0, 6});
  for (const Best &best : bests) {
    const rt::PairedDifference d =
        rt::pairedDifference(lossesOf(sweep, bests.front()), lossesOf(sweep, best));
    const bool first = &best == &bests.front();
    std::string note = best.inside ? "" : "best rate at an edge";
    if (!first && d.withinNoise())
      note += note.empty() ? "within noise" : ", within noise";
    table.add({best.cell, absl::StrFormat("%gx", best.factor), absl::StrFormat("%.4f", best.loss),
               first ? "" : absl::StrFormat("%+.4f", d.mean),
               first || d.pairs < 2 ? "" : absl::StrFormat("%.4f", d.sd),
               first ? "" : std::to_string(d.pairs), note});
    json.push_back({{"cell", best.cell},
                    {"rate_factor", best.factor},
                    {"loss", best.loss},
                    {"inside", best.inside},
                    {"difference", d.mean},
                    {"sd", d.sd},
                    {"pairs", d.pairs},
                    {"within_noise", first || d.withinNoise()}});
  }
  return table.text();
}

/// Loss over rates where they were swept, else over parameters.
rt::Chart chartOf(const Sweep &sweep, bool overRates) {
  rt::Chart chart{"Held-out loss", overRates ? "factor of the rates" : "parameters", "loss (nats)", true, {}};
  std::map<std::string, std::map<double, std::vector<double>>> cells;
  for (const Sweep::Row &row : sweep.rows)
    cells[row.cell][overRates ? row.factor : static_cast<double>(row.outcome.parameters)].push_back(
        row.outcome.loss);
  for (const auto &[cell, points] : cells) {
    rt::Series series{cell, {}};
    for (const auto &[x, losses] : points)
      for (double loss : losses)
        series.points.emplace_back(x, loss);
    chart.series.push_back(std::move(series));
  }
  return chart;
}

int report(const SweepFlags &flags, const Sweep &sweep, const std::vector<Best> &bests) {
  rt::OrderedJson json = {{"runs", rt::OrderedJson::array()}, {"cells", rt::OrderedJson::array()}};
  Table table({"cell", "rate", "seed", "loss", "perplexity", "parameters", "tokens", "seconds"});
  for (const Sweep::Row &row : sweep.rows) {
    table.add({row.cell, absl::StrFormat("%gx", row.factor), row.seed ? std::to_string(*row.seed) : "-",
               absl::StrFormat("%.4f", row.outcome.loss), absl::StrFormat("%.2f", std::exp(row.outcome.loss)),
               grouped(row.outcome.parameters), grouped(row.outcome.tokens),
               absl::StrFormat("%.0f", row.outcome.seconds)});
    rt::OrderedJson entry = {{"cell", row.cell},
                             {"rate_factor", row.factor},
                             {"loss", row.outcome.loss},
                             {"parameters", row.outcome.parameters},
                             {"tokens", row.outcome.tokens},
                             {"seconds", row.outcome.seconds}};
    if (row.seed)
      entry["seed"] = *row.seed;
    json["runs"].push_back(std::move(entry));
  }
  const std::string summary = summaryOf(sweep, bests, json["cells"]);
  if (!flags.picture.empty())
    if (absl::Status status =
            rt::writeFileAtomic(flags.picture, rt::svg(chartOf(sweep, !flags.rates.empty())));
        !status.ok())
      return fail(status);
  if (flags.json)
    printJson(json);
  else
    llvm::outs() << table.text() << "\n" << summary;
  return 0;
}

} // namespace

int weft::sweepCommand(int argc, const char **argv) {
  SweepFlags flags;
  if (!parseFlags(
          argc, argv, "trains the runs of one experiment and compares their held-out losses",
          "  weft sweep models/tiny.weft --out sweeps/rate --rates 0.5,1,2\n  weft sweep models/tiny.weft "
          "--out sweeps/size --cell 'small: dim=64' --cell 'large: dim=128' --seeds 1,2,3\n  weft sweep "
          "models/tiny.weft --out sweeps/again --cell 'once: portion=100%' --cell 'four times: "
          "portion=25%'\n"))
    return kUsage;
  if (flags.out.empty())
    return misuse("sweep", "--out DIR is needed: where the runs go");
  if (flags.rates.empty() && flags.cells.empty() && flags.seeds.empty())
    for (double factor : {0.5, 1.0, 2.0})
      flags.rates.push_back(factor);
  for (double factor : flags.rates)
    if (!(factor > 0) || !std::isfinite(factor))
      return misuse("sweep", "--rates: expected factors above 0");
  if (auto rate = twice(flags.rates, [](double factor) { return absl::StrFormat("%g", factor); }))
    return misuse("sweep", absl::StrCat("--rates: ", *rate, " is given twice"));
  if (auto seed = twice(flags.seeds, [](uint64_t value) { return std::to_string(value); }))
    return misuse("sweep", absl::StrCat("--seeds: ", *seed, " is given twice"));
  std::vector<Cell> cells;
  for (const std::string &text : flags.cells) {
    absl::StatusOr<Cell> cell = parseCell(text);
    if (!cell.ok())
      return fail(cell.status());
    cells.push_back(*std::move(cell));
  }
  if (auto name = twice(cells, [](const Cell &cell) { return cell.name; }))
    return misuse("sweep", absl::StrCat("--cell: two cells are called ", *name));
  if (cells.empty())
    cells.push_back({"all", {}, {}});
  Sweep sweep(flags);
  std::vector<Best> bests;
  for (const Cell &cell : cells) {
    absl::StatusOr<Best> best = sweepCell(sweep, flags, cell);
    if (!best.ok()) {
      fail(best.status());
      return sweep.interrupted ? rt::kInterruptedExit : kExplained;
    }
    bests.push_back(*std::move(best));
  }
  return report(flags, sweep, bests);
}

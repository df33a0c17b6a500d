//===- SizeCommand.cpp - weft size: the width for a depth and a count ------===//

#include "runtime/cpu/Memory.h"
#include "tools/weft/Output.h"
#include "tools/weft/PlannedMemory.h"

#include "llvm/Support/raw_ostream.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include <cmath>
#include <numeric>

using namespace weft;
namespace cl = llvm::cl;

namespace {

/// `24.1M`, `1.2B`, `900k` or `24130580`.
absl::StatusOr<int64_t> countFrom(const std::string &text) {
  double unit = 1, number = 0;
  absl::string_view digits = text;
  for (auto [letter, size] : {std::pair("k", 1e3), {"M", 1e6}, {"B", 1e9}})
    if (absl::ConsumeSuffix(&digits, letter))
      unit = size;
  if (!absl::SimpleAtod(digits, &number) || !(number * unit >= 1 && number * unit < 1e15))
    return absl::InvalidArgumentError(
        absl::StrCat("--params ", text, ": expected a count such as 24.1M, 1.2B or 24130580"));
  return static_cast<int64_t>(std::llround(number * unit));
}

/// A model at one width and what it holds.
struct Size {
  lang::Model model;
  int64_t parameters = 0;
};

/// A model whose width is a multiple of its smallest one. Settings that are plain
/// numbers grow with the width, so that a head keeps its size.
class Ladder {
public:
  /// Where nothing grows with it, the width goes in steps of `step`.
  static absl::StatusOr<Ladder> make(lang::Model model, const std::string &width,
                                     const std::vector<std::string> &growing, int64_t step);

  /// At `steps` times the smallest width.
  Size at(int64_t steps) const {
    lang::Model sized = model;
    for (const auto &[name, value] : start)
      sized = lang::withSetting(std::move(sized), name, static_cast<double>(value / divisor * steps));
    Size size{std::move(sized), 0};
    for (const lang::ParameterInfo &info : lang::parametersOf(size.model)) {
      int64_t count = 1;
      for (int64_t axis : info.shape)
        count *= axis;
      size.parameters += count;
    }
    return size;
  }
  const std::vector<std::pair<std::string, int64_t>> &settings() const { return start; }

private:
  lang::Model model;
  std::vector<std::pair<std::string, int64_t>> start; // the width first
  int64_t divisor = 1;                                // of all of them
};

absl::StatusOr<Ladder> Ladder::make(lang::Model model, const std::string &width,
                                    const std::vector<std::string> &growing, int64_t step) {
  Ladder ladder;
  std::vector<std::string> names{width};
  names.insert(names.end(), growing.begin(), growing.end());
  for (const std::string &name : names)
    for (const lang::Setting &setting : model.settings)
      if (setting.name == name && setting.value->kind == lang::Formula::Kind::Number &&
          setting.value->number > 0)
        ladder.start.emplace_back(name, static_cast<int64_t>(setting.value->number));
  if (ladder.start.empty() || ladder.start[0].first != width)
    return absl::InvalidArgumentError(absl::StrCat("--width ", width, ": expected a setting of model ",
                                                   model.name, " that is a number above 0"));
  for (const auto &[name, value] : ladder.start)
    ladder.divisor = name == width ? value : std::gcd(ladder.divisor, value);
  if (ladder.start.size() == 1) {
    ladder.start[0].second = step;
    ladder.divisor = 1;
  }
  ladder.model = std::move(model);
  return ladder;
}

/// The largest number of steps that does not exceed `target`, or 0.
int64_t stepsBelow(const Ladder &ladder, int64_t target) {
  constexpr int64_t kMost = 1 << 20;
  int64_t low = 0, high = 1;
  while (high < kMost && ladder.at(high).parameters <= target)
    high *= 2;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    (ladder.at(middle).parameters <= target ? low : high) = middle;
  }
  return low;
}

/// Cells of what training a size will hold on `chip` (empty: the CPU).
absl::StatusOr<std::vector<std::string>> memoryCells(Program &program, const lang::Model &model,
                                                     const std::string &chip) {
  program.model = program.written = model;
  PipelineOptions options = shapesOf(*program.recipe);
  options.programs = {"micro", "update", "eval"};
  options.chip = chip;
  absl::StatusOr<PlannedMemory> memory = plannedMemory(program, options);
  if (!memory.ok())
    return memory.status();
  return std::vector<std::string>{rt::bytesText(memory->state), rt::bytesText(memory->arena),
                                  rt::bytesText(memory->sum())};
}

/// `program`: whose recipe says what memory is planned for on `chip`; null: none is.
absl::Status print(const Ladder &ladder, int64_t target, Program *program, const std::string &chip) {
  std::vector<std::string> header;
  for (const auto &[name, value] : ladder.settings())
    header.push_back(name);
  header.insert(header.end(), {"parameters", "mismatch"});
  if (program)
    header.insert(header.end(), {"state", "arena", "planned"});
  Table table(header);
  int64_t below = stepsBelow(ladder, target);
  for (int64_t steps : {below, below + 1}) {
    if (steps < 1)
      continue;
    Size size = ladder.at(steps);
    if (absl::StatusOr<lang::Outline> outline = lang::outlineOf(size.model); !outline.ok())
      return absl::InvalidArgumentError(absl::StrCat("the model has no meaning at a width next to it: ",
                                                     outline.status().message(), "; choose another --step"));
    lang::Bindings names = size.model.bindings();
    std::vector<std::string> row;
    for (const auto &[name, value] : ladder.settings())
      row.push_back(names.at(name).text());
    double mismatch = static_cast<double>(size.parameters) / static_cast<double>(target) - 1;
    row.push_back(grouped(size.parameters));
    row.push_back(absl::StrFormat("%+.3f%%", 100 * mismatch));
    if (program) {
      absl::StatusOr<std::vector<std::string>> cells = memoryCells(*program, size.model, chip);
      if (!cells.ok())
        return cells.status();
      row.insert(row.end(), cells->begin(), cells->end());
    }
    table.add(row);
  }
  llvm::outs() << table.text();
  return absl::OkStatus();
}

} // namespace

int weft::sizeCommand(int argc, const char **argv) {
  ModelFlags flags;
  cl::opt<std::string> params("params", cl::Required, cl::desc("parameters of the whole model: 24.1M"),
                              cl::value_desc("COUNT"), cl::cat(flagCategory()));
  cl::opt<int64_t> depth("depth", cl::desc("layers, as --set depth=N"), cl::init(0), cl::cat(flagCategory()));
  cl::opt<std::string> width("width", cl::desc("the setting to look for"), cl::init("dim"),
                             cl::value_desc("SETTING"), cl::cat(flagCategory()));
  cl::list<std::string> growing(
      "growing",
      cl::desc(
          "settings that grow with the width where they are numbers (default: heads,kv,hidden), or none"),
      cl::CommaSeparated, cl::cat(flagCategory()));
  cl::opt<int64_t> step("step", cl::desc("steps of the width with --growing none (default: 8)"), cl::init(8),
                        cl::cat(flagCategory()));
  cl::opt<std::string> memory("memory", cl::desc("plan the memory of a training step: cpu, sm_90a or sm_80"),
                              cl::value_desc("TARGET"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "finds the width that gives a model of some depth a number of parameters",
                  "  weft size models/san.weft --depth 8 --params 24.1M\n  weft size models/san.weft --depth "
                  "8 --params 24.1M "
                  "--growing none\n"))
    return kUsage;
  if (step < 1)
    return misuse("size", "--step: expected at least 1");
  if (!memory.empty() && memory != "cpu" && memory != "sm_90a" && memory != "sm_80")
    return misuse("size", "--memory: expected cpu, sm_90a or sm_80, found '" + memory + "'");
  absl::StatusOr<int64_t> target = countFrom(params);
  if (!target.ok())
    return fail(target.status());
  Request request = flags.request(/*needsRecipe=*/!memory.empty());
  if (depth > 0)
    request.sets.push_back(absl::StrCat("depth=", int64_t(depth)));
  absl::StatusOr<std::unique_ptr<Program>> program = loadDecided(request);
  if (!program.ok())
    return fail(program.status());
  std::vector<std::string> names(growing.begin(), growing.end());
  if (names.empty())
    names = {"heads", "kv", "hidden"};
  else if (names == std::vector<std::string>{"none"})
    names.clear();
  absl::StatusOr<Ladder> ladder = Ladder::make((*program)->model, width, names, step);
  if (!ladder.ok())
    return fail(ladder.status());
  absl::Status status = print(*ladder, *target, memory.empty() ? nullptr : program->get(),
                              memory == "cpu" ? "" : std::string(memory));
  return status.ok() ? 0 : fail(status);
}

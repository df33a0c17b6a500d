#include "frontend/Recipe.h"

#include "frontend/Parser.h"
#include "frontend/PlanSites.h"
#include "frontend/RecipeRead.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <charconv>

namespace weft::lang {

const std::vector<std::string> &recipeKeys() {
  static const std::vector<std::string> keys = {
      "data",  "held_out", "portion",   "tokenizer", "documents",   "boundary", "packing",  "long", "batch",
      "steps", "tokens",   "epochs",    "optimizer", "rate_factor", "decay_on", "schedule", "clip", "eval",
      "save",  "log",      "precision", "memory",    "regions",     "watch",    "seed"};
  return keys;
}

//===----------------------------------------------------------------------===//
// Sets of parameters
//===----------------------------------------------------------------------===//

namespace {

/// Takes the part of `text` up to the next dot outside brackets.
std::string_view takePart(std::string_view &text) {
  size_t end = 0;
  bool inside = false;
  while (end < text.size() && (inside || text[end] != '.')) {
    inside = text[end] == '[' || (inside && text[end] != ']');
    ++end;
  }
  std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// Whether `index` is in `0..9, 12`.
bool inRanges(std::string_view ranges, int64_t index) {
  while (!ranges.empty()) {
    size_t comma = std::min(ranges.find(','), ranges.size());
    std::string_view range = ranges.substr(0, comma);
    ranges.remove_prefix(std::min(comma + 1, ranges.size()));
    while (!range.empty() && range.front() == ' ')
      range.remove_prefix(1);
    int64_t low = 0, high = std::numeric_limits<int64_t>::max();
    size_t dots = range.find("..");
    std::string_view first = range.substr(0, dots);
    std::from_chars(first.data(), first.data() + first.size(), low);
    if (dots == std::string_view::npos)
      high = low;
    else if (std::string_view last = range.substr(dots + 2); !last.empty())
      std::from_chars(last.data(), last.data() + last.size(), high);
    if (index >= low && index <= high)
      return true;
  }
  return false;
}

bool inSet(const rt::ParameterSet &set, const ParameterInfo &parameter,
           const std::set<std::string> &matrices) {
  using Kind = rt::ParameterSet::Kind;
  bool matrix = parameter.axes.size() >= 2 && matrices.count(parameter.path);
  bool covered = set.paths.empty();
  for (const std::string &address : set.paths)
    covered |= addressCovers(address, parameter.path);
  switch (set.kind) {
  case Kind::All:
    return true;
  case Kind::Matrices:
    return matrix && covered;
  case Kind::Kernels:
    return matrix && parameter.inLayer && covered;
  case Kind::Paths:
    return covered;
  case Kind::Rest:
    return false; // what nobody else takes: decided by the caller
  }
  return false;
}

} // namespace

bool addressCovers(std::string_view address, std::string_view path) {
  while (!address.empty()) {
    std::string_view part = takePart(address), name = part.substr(0, part.find('['));
    if (path.empty() || takePart(path) != name)
      return false;
    if (name.size() == part.size())
      continue;
    std::string_view number = takePart(path);
    int64_t index = -1;
    std::from_chars(number.data(), number.data() + number.size(), index);
    if (index < 0 || !inRanges(part.substr(name.size() + 1, part.size() - name.size() - 2), index))
      return false;
  }
  return true;
}

ParameterGroups parameterGroups(const rt::Recipe &recipe, const Model &model) {
  std::set<std::string> matrices = matricesOf(model);
  ParameterGroups groups;
  for (const ParameterInfo &parameter : parametersOf(model)) {
    int32_t taker = -1, rest = -1;
    for (size_t i = 0; i < recipe.optimizers.size(); ++i) {
      const rt::ParameterSet &set = recipe.optimizers[i].on;
      if (set.kind == rt::ParameterSet::Kind::Rest)
        rest = static_cast<int32_t>(i);
      else if (taker < 0 && inSet(set, parameter, matrices))
        taker = static_cast<int32_t>(i);
    }
    if (taker >= 0 || rest >= 0)
      groups.optimizer[parameter.path] = taker >= 0 ? taker : rest;
    if (inSet(recipe.decayOn, parameter, matrices))
      groups.decayed.insert(parameter.path);
  }
  return groups;
}

//===----------------------------------------------------------------------===//
// A recipe against its model
//===----------------------------------------------------------------------===//

namespace {

class RecipeChecker {
public:
  RecipeChecker(const ast::File &file, const SourceFiles &sources, const Model &model,
                Diagnostics &diagnostics)
      : file(file), sources(sources), model(model), diagnostics(diagnostics) {}

  const ast::Train *select(std::string_view name);
  void checkOptimizers(const rt::Recipe &recipe, const Place &place);
  void checkSizes(const rt::Recipe &recipe, const Place &place);

private:
  /// The size of the first axis of the table that `index` looks up, or 0.
  int64_t tableSize(NodeKind kind, std::string_view name, std::string *axis);

  const ast::File &file;
  const SourceFiles &sources;
  const Model &model;
  Diagnostics &diagnostics;
};

const ast::Train *RecipeChecker::select(std::string_view name) {
  std::vector<std::string> names, mine;
  const ast::Train *only = nullptr;
  for (const ast::Train &train : file.trains) {
    names.push_back(train.name.text);
    if (train.model.text == model.name) {
      mine.push_back(train.name.text);
      only = &train;
    }
  }
  if (name.empty()) {
    if (mine.size() == 1)
      return only;
    if (mine.empty())
      diagnostics.errorAnywhere(Code::W0501, absl::StrCat("there is no recipe for model ", model.name))
          .advise(absl::StrCat("write `train NAME for ", model.name, " { ... }`"));
    else
      diagnostics
          .errorAnywhere(Code::W0502,
                         absl::StrCat("there are several recipes for model ", model.name, ": ", listed(mine)))
          .advise("name one with --recipe");
    return nullptr;
  }
  const ast::Train *train = file.findTrain(name);
  for (const ast::Train &other : file.trains) // two models may each have a recipe of that name
    if (other.name.text == name && other.model.text == model.name)
      train = &other;
  if (!train) {
    std::string near = nearest(name, names);
    diagnostics
        .errorAnywhere(Code::W0501, absl::StrCat("there is no recipe `", std::string(name), "`; there are ",
                                                 names.empty() ? std::string("none") : listed(names)))
        .advise(near.empty() ? std::string() : absl::StrCat("did you mean `", near, "`?"));
    return nullptr;
  }
  if (train->model.text != model.name) {
    diagnostics.error(Code::W0503, train->model.place,
                      absl::StrCat("recipe `", train->name.text, "` is for model ", train->model.text,
                                   ", and the model is ", model.name));
    return nullptr;
  }
  return train;
}

int64_t RecipeChecker::tableSize(NodeKind kind, std::string_view name, std::string *axis) {
  std::set<ValueId> indices;
  Bindings names = model.bindings();
  for (const Node &node : model.body.nodes) {
    if (node.kind == kind && (name.empty() || node.name == name))
      indices.insert(node.results.begin(), node.results.end());
    if (node.kind != NodeKind::Gather || !indices.count(node.operands[1]))
      continue;
    const std::vector<std::string> &axes = model.values[static_cast<size_t>(node.operands[0])].axes;
    if (axes.empty())
      continue;
    if (auto size = names.find(axes[0]); size != names.end()) {
      *axis = axes[0];
      return static_cast<int64_t>(size->second.number);
    }
  }
  return 0;
}

void RecipeChecker::checkSizes(const rt::Recipe &recipe, const Place &place) {
  std::string axis;
  int64_t positions = tableSize(NodeKind::Position, {}, &axis);
  if (positions && recipe.positions > positions)
    diagnostics
        .error(Code::W0516, place,
               absl::StrCat("rows have ", recipe.positions,
                            " positions, and the model's table of positions has ", positions, " (", axis,
                            ")"))
        .advise(absl::StrCat("shorten the rows of `batch`, or set ", axis, " with --set"));
  int64_t vocabulary = tableSize(NodeKind::Input, "tokens", &axis);
  int64_t ids = recipe.tokenizer == "bytes"  ? 256
                : recipe.tokenizerCut        ? recipe.tokenizerCut
                : recipe.tokenizer == "gpt2" ? 50257
                                             : 0;
  if (vocabulary && ids > vocabulary)
    diagnostics
        .error(Code::W0517, place,
               absl::StrCat("the tokenizer has ", ids, " ids, and the model's ", axis, " is ", vocabulary))
        .advise(absl::StrCat("set ", axis, " to at least ", ids, ", or choose another tokenizer"));
}

void RecipeChecker::checkOptimizers(const rt::Recipe &recipe, const Place &place) {
  std::set<std::string> matrices = matricesOf(model);
  std::vector<int64_t> taken(recipe.optimizers.size());
  std::string twice, none;
  int64_t decayed = 0, vectors = 0;
  bool hasRest = false;
  for (const rt::Optimizer &optimizer : recipe.optimizers)
    hasRest |= optimizer.on.kind == rt::ParameterSet::Kind::Rest;
  for (const ParameterInfo &parameter : parametersOf(model)) {
    int takers = 0;
    for (size_t i = 0; i < recipe.optimizers.size(); ++i)
      if (inSet(recipe.optimizers[i].on, parameter, matrices)) {
        ++takers;
        ++taken[i];
        bool vector = recipe.optimizers[i].kind == rt::Optimizer::Kind::Muon && parameter.axes.size() < 2;
        if (vector && !vectors++)
          diagnostics
              .error(Code::W0512, place,
                     absl::StrCat("muon steps matrices, and its set holds `", parameter.path, "` with ",
                                  parameter.axes.size(), " axes"))
              .advise("write `on block[..] matrices`, and `adamw(...) on rest` beside it");
      }
    if (takers > 1 && twice.empty())
      twice = parameter.path;
    if (takers == 0 && !hasRest && none.empty())
      none = parameter.path;
    decayed += inSet(recipe.decayOn, parameter, matrices);
  }
  if (!twice.empty() || !none.empty())
    diagnostics
        .error(Code::W0511, place,
               twice.empty() ? absl::StrCat("no optimiser takes `", none, "`")
                             : absl::StrCat("two optimisers take `", twice, "`"))
        .advise(twice.empty() ? "add `adamw(...) on rest`"
                              : "give the optimisers sets that share no parameter");
  for (size_t i = 0; i < taken.size(); ++i)
    if (taken[i] == 0 && recipe.optimizers[i].on.kind != rt::ParameterSet::Kind::Rest)
      diagnostics.error(Code::W0513, place,
                        absl::StrCat("optimiser ", i + 1, " takes no parameter of model ", model.name));
  if (decayed == 0 && recipe.decayOn.kind == rt::ParameterSet::Kind::Paths)
    diagnostics.error(Code::W0513, place,
                      absl::StrCat("`decay_on` takes no parameter of model ", model.name));
}

//===----------------------------------------------------------------------===//
// Overrides
//===----------------------------------------------------------------------===//

/// Options of the block with the overrides in their places. Their texts are
/// added to `sources`, so that errors can show them.
std::vector<ast::Option> withOverrides(const std::vector<ast::Option> &options, const Overrides &overrides,
                                       SourceFiles &sources, Diagnostics &diagnostics) {
  std::vector<ast::Option> result = options;
  for (const auto &[key, value] : overrides) {
    Diagnostics local;
    ast::File parsed =
        parseText(absl::StrCat("--set ", key, "=", value),
                  absl::StrCat("train set for model_ {\n", key, " = ", overrideText(key, value), "\n}\n"),
                  sources, local);
    if (local.hasErrors() || parsed.trains.size() != 1 || parsed.trains[0].options.size() != 1) {
      diagnostics
          .errorAnywhere(Code::W0514,
                         absl::StrCat("--set ", key, "=", value, ": the value cannot be read",
                                      local.hasErrors() ? ": " : "",
                                      local.hasErrors() ? local.sorted()[0].message : std::string()))
          .advise("write it as in a recipe; mind the shell's quotes");
      continue;
    }
    // How long training lasts is one choice: the last one given wins.
    std::string name = key;
    result.erase(std::remove_if(result.begin(), result.end(),
                                [&](const ast::Option &option) {
                                  return option.key.text == name ||
                                         (isLength(name) && isLength(option.key.text));
                                }),
                 result.end());
    result.push_back(parsed.trains[0].options[0]);
  }
  return result;
}

} // namespace

std::string overrideText(const std::string &key, const std::string &value) {
  bool names = key == "data" || key == "held_out" || key == "tokenizer";
  std::string_view head = std::string_view(value).substr(0, value.find_first_of(" ("));
  bool word = (key == "held_out" && (head == "last" || value == "none")) ||
              (key == "tokenizer" && (head == "bytes" || head == "gpt2"));
  if (!names || word || value.empty() || value[0] == '"')
    return value;
  std::string text = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\')
      text += '\\';
    text += c;
  }
  return text + "\"";
}

bool isLength(std::string_view key) { return key == "steps" || key == "tokens" || key == "epochs"; }

std::optional<rt::Recipe> checkRecipe(const ast::File &file, const SourceFiles &sources,
                                      std::string_view name, const Model &model, Diagnostics &diagnostics,
                                      const Overrides &overrides) {
  int before = diagnostics.errorCount();
  RecipeChecker checker(file, sources, model, diagnostics);
  const ast::Train *train = checker.select(name);
  if (!train)
    return std::nullopt;
  SourceFiles withTexts = sources;
  std::vector<ast::Option> options = withOverrides(train->options, overrides, withTexts, diagnostics);
  // A run's own text, run.weft, holds the length that its command line gave.
  const std::string &path = sources.file(train->place.file).path;
  const bool lengthFromOutside = path.substr(path.rfind('/') + 1) == "run.weft" ||
                                 std::any_of(overrides.begin(), overrides.end(),
                                             [](const auto &entry) { return isLength(entry.first); });
  Diagnostics found;
  rt::Recipe recipe = RecipeReader(options, train->place, withTexts, found, lengthFromOutside).read();
  for (Diagnostic &entry : found.sorted()) {
    bool outside = entry.place.file >= sources.count();
    std::string message =
        outside ? absl::StrCat(withTexts.file(entry.place.file).path, ": ", entry.message) : entry.message;
    Diagnostic &copy = outside ? diagnostics.errorAnywhere(entry.code, message)
                               : diagnostics.error(entry.code, entry.place, message);
    copy.help = entry.help;
    if (!outside)
      copy.notes = entry.notes;
  }
  recipe.name = train->name.text;
  recipe.text = std::string(sources.textAt(train->place));
  if (diagnostics.errorCount() == before) {
    checker.checkSizes(recipe, train->name.place);
    checker.checkOptimizers(recipe, train->name.place);
  }
  if (diagnostics.errorCount() > before)
    return std::nullopt;
  return recipe;
}

} // namespace weft::lang

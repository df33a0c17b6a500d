//===- Session.cpp - From a request to a checked program ------------------===//

#include "tools/weft/Session.h"

#include "frontend/Lexer.h"
#include "frontend/Parser.h"

#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

using namespace weft;

namespace {

/// Text to put in place of a piece of a statement.
struct Replacement {
  lang::Place place;
  std::string text;
};

/// The text of the statement at `whole` with the replacements made.
std::string rewritten(const lang::SourceFiles &sources, const lang::Place &whole,
                      std::vector<Replacement> changes) {
  std::string text(sources.textAt(whole));
  std::sort(changes.begin(), changes.end(), [](auto &a, auto &b) { return a.place.offset > b.place.offset; });
  for (const Replacement &change : changes)
    text.replace(static_cast<size_t>(change.place.offset - whole.offset),
                 static_cast<size_t>(change.place.length), change.text);
  return text;
}

/// `gated | standard` with the chosen word first.
std::string chosenFirst(const lang::ast::Setting &setting, const std::string &chosen) {
  std::string text = chosen;
  for (const lang::ast::Name &word : setting.words)
    if (word.text != chosen)
      text += " | " + word.text;
  return text;
}

std::string modelText(const Program &program, const lang::Overrides &overrides) {
  const lang::ast::Model *model = program.file.findModel(program.model.name);
  std::vector<Replacement> changes;
  std::map<std::string, std::string> inForce;
  for (const auto &[key, value] : overrides)
    inForce[key] = value;
  for (const auto &[key, value] : inForce)
    for (const lang::ast::Setting &setting : model->settings) {
      if (setting.name.text != key)
        continue;
      if (setting.value)
        changes.push_back({setting.value->place, value});
      else
        changes.push_back({lang::spanOf(setting.words.front().place, setting.words.back().place),
                           chosenFirst(setting, value)});
    }
  return rewritten(program.sources, model->place, changes);
}

/// `text`, a value of a recipe, with the file names in it made absolute: a run is
/// read from its own folder. Sources start at `folder`, tokenizers where the command runs.
std::string withAbsolutePaths(const std::string &key, const std::string &text, const std::string &folder) {
  if (key != "data" && key != "held_out" && key != "tokenizer")
    return text;
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '"') {
      result += text[i];
      continue;
    }
    std::string name;
    for (++i; i < text.size() && text[i] != '"'; ++i)
      name += text[i] == '\\' && i + 1 < text.size() ? text[++i] : text[i];
    if (!name.starts_with("builtin:") && !name.empty())
      name = std::filesystem::absolute(std::filesystem::path(key == "tokenizer" ? "" : folder) / name)
                 .lexically_normal()
                 .string();
    result += lang::overrideText("data", name);
  }
  return result;
}

std::string recipeText(const Program &program, const lang::Overrides &overrides, const std::string &folder) {
  const lang::ast::Train *train = program.file.findTrain(program.recipe->name);
  std::map<std::string, std::string> inForce;
  bool length = false;
  for (const auto &[key, value] : overrides) {
    // The last length given takes the place of all others.
    if (lang::isLength(key))
      std::erase_if(inForce, [](const auto &entry) { return lang::isLength(entry.first); });
    length |= lang::isLength(key);
    inForce[key] = withAbsolutePaths(key, lang::overrideText(key, value), folder);
  }
  std::vector<Replacement> changes;
  for (const lang::ast::Option &option : train->options) {
    auto found = inForce.find(option.key.text);
    if (found != inForce.end()) {
      changes.push_back({option.place, option.key.text + " = " + found->second});
      inForce.erase(found);
    } else if (length && lang::isLength(option.key.text)) {
      changes.push_back({option.place, ""});
    } else {
      std::string text(program.sources.textAt(option.place));
      changes.push_back({option.place, withAbsolutePaths(option.key.text, text, folder)});
    }
  }
  std::string added;
  for (const auto &[key, value] : inForce)
    added += "  " + key + " = " + value + "\n";
  std::string text = rewritten(program.sources, train->place, changes);
  return text.insert(text.rfind('}'), added);
}

/// Splits `--set` between the model and the recipe: a setting of the model wins.
absl::Status splitSets(const Request &request, const lang::ast::Model &model, lang::Overrides &ofModel,
                       lang::Overrides &ofRecipe) {
  const std::vector<std::string> &recipeKeys = lang::recipeKeys();
  std::vector<std::string> settings;
  for (const lang::ast::Setting &setting : model.settings)
    settings.push_back(setting.name.text);
  for (const std::string &set : request.sets) {
    size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      return absl::InvalidArgumentError(absl::StrCat("--set ", set, ": expected name=value"));
    std::string key = set.substr(0, equals), value = set.substr(equals + 1);
    bool isSetting = std::any_of(model.settings.begin(), model.settings.end(),
                                 [&](const lang::ast::Setting &setting) { return setting.name.text == key; });
    bool isKey = std::find(recipeKeys.begin(), recipeKeys.end(), key) != recipeKeys.end();
    // The checker knows the settings; a slip in a recipe's key is told here.
    if (!isKey && !isSetting)
      if (std::string near = lang::nearest(key, recipeKeys);
          !near.empty() && lang::nearest(key, settings).empty())
        return absl::InvalidArgumentError(absl::StrCat(
            "--set ", set, ": model ", model.name.text,
            " has no setting of this name, nor has a recipe such a ", "key; did you mean '", near, "'?"));
    (isKey && !isSetting ? ofRecipe : ofModel).emplace_back(key, value);
  }
  return absl::OkStatus();
}

/// A file name of a statement of `plan` as an absolute one: from where the command
/// runs, else beside the plan, else beside the model.
std::string absoluteName(const Program &program, const lang::Place &place, const std::string &name,
                         const std::filesystem::path &beside) {
  std::error_code ignored;
  const std::filesystem::path plan =
      std::filesystem::path(program.sources.file(place.file).path).parent_path();
  for (const std::filesystem::path &folder : {std::filesystem::path(), plan, beside})
    if (std::filesystem::exists(folder / name, ignored))
      return std::filesystem::absolute(folder / name).lexically_normal().string();
  return name;
}

/// Files that statements name, made absolute in them and in the text that a run keeps.
void withAbsoluteFiles(const Program &program, lang::Plan &plan, const std::filesystem::path &beside) {
  auto change = [&](const lang::Place &place, std::string &name) {
    if (name.empty() || std::filesystem::path(name).is_absolute())
      return;
    const std::string whole = absoluteName(program, place, name, beside);
    const std::string from = lang::overrideText("data", name), to = lang::overrideText("data", whole);
    for (size_t at = 0; (at = plan.text.find(from, at)) != std::string::npos; at += to.size())
      plan.text.replace(at, from.size(), to);
    name = whole;
  };
  for (lang::WindowsRule &rule : plan.windows)
    change(rule.place, rule.file);
  for (lang::FreezeRule &rule : plan.freezes) {
    change(rule.place, rule.file);
    change(rule.place, rule.patternFile);
  }
}

absl::Status loadPlans(const Request &request, Program &program, lang::Diagnostics &diagnostics) {
  for (const std::string &asked : request.plans) {
    size_t colon = asked.rfind(':');
    std::string name = colon == std::string::npos ? asked : asked.substr(colon + 1);
    if (colon != std::string::npos) {
      absl::StatusOr<int32_t> index = program.sources.load(asked.substr(0, colon));
      if (!index.ok())
        return index.status();
      lang::parseInto(program.file, *index, program.sources, diagnostics);
    }
    if (diagnostics.hasErrors())
      return diagnostics.status(program.sources);
    std::optional<lang::Plan> plan =
        lang::checkPlan(program.file, program.sources, name, program.model, diagnostics);
    if (!plan)
      return diagnostics.status(program.sources);
    withAbsoluteFiles(program, *plan, std::filesystem::path(request.path).parent_path());
    program.model = lang::afterDrops(*plan, std::move(program.model));
    program.plans.push_back(std::move(*plan));
  }
  return absl::OkStatus();
}

} // namespace

bool weft::sameWords(const std::string &left, const std::string &right, const std::string &folder) {
  lang::SourceFiles sources;
  lang::Diagnostics ignored;
  const std::vector<lang::Token> a = lang::lex(sources.add("left", left), sources, ignored),
                                 b = lang::lex(sources.add("right", right), sources, ignored);
  auto name = [&](const lang::Token &token) {
    return std::filesystem::absolute(std::filesystem::path(folder) / token.string).lexically_normal();
  };
  return std::ranges::equal(a, b, [&](const lang::Token &one, const lang::Token &other) {
    if (one.kind == lang::Token::Kind::String && other.kind == lang::Token::Kind::String)
      return one.string == other.string || name(one) == name(other);
    return one.kind == other.kind && one.text == other.text;
  });
}

/// Plans of `path` that the run has too, under their names, must be the run's own.
static absl::Status checkSamePlans(const Program &program, const std::string &path) {
  lang::SourceFiles sources;
  lang::Diagnostics diagnostics;
  const lang::ast::File file = lang::parseFile(path, sources, diagnostics);
  if (diagnostics.hasErrors())
    return diagnostics.status(sources);
  for (const lang::ast::Plan &plan : file.plans)
    if (const lang::ast::Plan *own = program.file.findPlan(plan.name.text))
      if (!sameWords(std::string(sources.textAt(plan.place)), std::string(program.sources.textAt(own->place)),
                     std::filesystem::path(path).parent_path().string()))
        return absl::InvalidArgumentError(
            absl::StrCat("plan ", plan.name.text, " of ", path, " is not the run's own plan of that name: ",
                         "leave --plan out to go on with the run's, or give the new one another name"));
  return absl::OkStatus();
}

/// What a run was told by flags stands in its text: its length, and its plans
/// (but for those that another one uses).
static absl::Status adoptRun(const Program &program, Request &request, lang::Overrides &ofRecipe) {
  const bool withRecipe = request.needsRecipe || request.recipeIfAny;
  for (const lang::ast::Train &train : program.file.trains)
    for (const lang::ast::Option &option : train.options)
      if (withRecipe && lang::isLength(option.key.text) && !option.values.empty())
        ofRecipe.emplace_back(option.key.text,
                              std::string(program.sources.textAt(option.values.front().place)));
  std::set<std::string> used;
  for (const lang::ast::Plan &plan : program.file.plans)
    for (const lang::ast::Clause &clause : plan.clauses)
      if (clause.verb.text == "use" && !clause.phrases.empty() && !clause.phrases.front().terms.empty())
        used.insert(clause.phrases.front().terms.front().text);
  // First, and once: statements keep their numbers when a plan is added.
  std::vector<std::string> plans;
  for (const lang::ast::Plan &plan : program.file.plans)
    if (!used.contains(plan.name.text))
      plans.push_back(plan.name.text);
  for (const std::string &asked : request.plans) {
    const size_t colon = asked.rfind(':');
    const std::string name = colon == std::string::npos ? asked : asked.substr(colon + 1);
    if (!program.file.findPlan(name))
      plans.push_back(asked);
    else if (absl::Status status = colon == std::string::npos
                                       ? absl::OkStatus()
                                       : checkSamePlans(program, asked.substr(0, colon));
             !status.ok())
      return status;
  }
  request.plans = std::move(plans);
  return absl::OkStatus();
}

absl::StatusOr<std::string> weft::modelName(const lang::ast::File &file, const Request &request) {
  std::vector<std::string> own, all;
  for (const lang::ast::Model &model : file.models) {
    all.push_back(model.name.text);
    if (model.place.file == 0) // the first that was read
      own.push_back(model.name.text);
  }
  if (all.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(request.path, ": expected a model, found none; write `model NAME (...) { ... }`"));
  const std::vector<std::string> &names = own.empty() ? all : own;
  if (request.model.empty() && names.size() == 1)
    return names.front();
  if (std::find(all.begin(), all.end(), request.model) != all.end())
    return request.model;
  return absl::InvalidArgumentError(
      request.model.empty()
          ? absl::StrCat(request.path, " has ", names.size(), " models: ", absl::StrJoin(names, ", "),
                         "; say which one, as in ", request.path, ":", names.front())
          : absl::StrCat(request.path, " has no model ", request.model,
                         "; it has: ", absl::StrJoin(all, ", ")));
}

void weft::setPath(Request &request, const std::string &path) {
  const size_t at = path.rfind(".weft:");
  request.path = at == std::string::npos ? path : path.substr(0, at + 5);
  request.model = at == std::string::npos ? "" : path.substr(at + 6);
}

bool weft::isModelPath(const std::string &path) {
  Request request;
  setPath(request, path);
  return request.path.ends_with(".weft") && !std::filesystem::is_directory(request.path);
}

absl::StatusOr<std::unique_ptr<Program>> weft::loadProgram(const Request &asked) {
  Request request = asked;
  auto program = std::make_unique<Program>();
  lang::Diagnostics diagnostics;
  program->file = request.text ? lang::parseText(request.path, *request.text, program->sources, diagnostics)
                               : lang::parseFile(request.path, program->sources, diagnostics);
  if (diagnostics.hasErrors())
    return diagnostics.status(program->sources);
  absl::StatusOr<std::string> name = modelName(program->file, request);
  if (!name.ok())
    return name.status();
  lang::Overrides ofModel, ofRecipe;
  if (!request.memory.empty() && (request.needsRecipe || request.recipeIfAny))
    ofRecipe.emplace_back("memory", request.memory);
  // A run's text is one wherever it is read from: it repeats the run.
  if (request.fromRun || std::filesystem::path(request.path).filename() == "run.weft")
    if (absl::Status status = adoptRun(*program, request, ofRecipe); !status.ok())
      return status;
  if (absl::Status status = splitSets(request, *program->file.findModel(*name), ofModel, ofRecipe);
      !status.ok())
    return status;
  std::optional<lang::Model> model =
      lang::checkModel(program->file, program->sources, *name, ofModel, diagnostics);
  if (!model)
    return diagnostics.status(program->sources);
  program->written = *model;
  program->model = std::move(*model);
  // Plans first: addresses of a recipe mean the layers after dropping. A plan's
  // file may bring recipes of its own, which are not meant.
  const auto recipes = static_cast<std::ptrdiff_t>(program->file.trains.size());
  if (absl::Status status = loadPlans(request, *program, diagnostics); !status.ok())
    return status;
  program->file.trains.erase(program->file.trains.begin() + recipes, program->file.trains.end());
  const bool hasRecipe = std::ranges::any_of(
      program->file.trains, [&](const lang::ast::Train &train) { return train.model.text == *name; });
  if (request.needsRecipe || (request.recipeIfAny && hasRecipe)) {
    program->recipe = lang::checkRecipe(program->file, program->sources, request.recipe, program->model,
                                        diagnostics, ofRecipe);
    if (!program->recipe)
      return diagnostics.status(program->sources);
    for (const lang::Plan &plan : program->plans)
      lang::checkPlanAgainst(plan, program->recipe->positions, program->recipe->microBatches, diagnostics);
    if (diagnostics.hasErrors())
      return diagnostics.status(program->sources);
  } else if (!ofRecipe.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", ofRecipe.front().first, ": belongs to a recipe, and this command uses none"));
  }
  if (!request.quiet && !diagnostics.sorted().empty()) // only warnings are left
    llvm::errs() << diagnostics.render(program->sources);
  program->runText = modelText(*program, ofModel);
  for (const lang::Plan &plan : program->plans)
    program->runText += "\n\n" + plan.text;
  // Weight tables too: a run can be exported wherever it lies.
  for (const lang::ast::Weights &table : program->file.weights)
    if (table.model.text == program->model.name)
      program->runText += "\n\n" + std::string(program->sources.textAt(table.place));
  if (program->recipe)
    program->runText +=
        "\n\n" + recipeText(*program, ofRecipe, std::filesystem::path(request.path).parent_path().string());
  program->runText += "\n";
  return program;
}

void weft::adoptRecord(Program &program, rt::FreezeRecord record) {
  program.heads = {};
  for (const auto &[site, frozen] : record.frozen)
    program.heads.frozen[site] = {frozen.heads,
                                  {frozen.windows.begin(), frozen.windows.end()},
                                  frozen.trained,
                                  record.positions,
                                  frozen.dense,
                                  {frozen.firstPlaces.begin(), frozen.firstPlaces.end()}};
  program.heads.pruned = record.pruned;
  program.freeze = std::move(record);
}

std::string weft::cacheFolder() {
  if (const char *folder = std::getenv("WEFT_CACHE_DIR"))
    return folder;
  if (const char *folder = std::getenv("XDG_CACHE_HOME"))
    return absl::StrCat(folder, "/weft");
  if (const char *home = std::getenv("HOME"))
    return absl::StrCat(home, "/.cache/weft");
  return "";
}

PipelineOptions weft::shapesOf(const rt::Recipe &recipe) {
  PipelineOptions options;
  options.batch = recipe.rows / recipe.microBatches;
  options.positions = recipe.positions;
  return options;
}

/// Patterns that are trained join AdamW's parameters without decay.
static void addPatterns(std::vector<OptimizerGroup> &groups, const Program &program) {
  std::vector<std::string> names;
  for (const auto &[site, frozen] : program.heads.frozen)
    if (frozen.trained)
      names.insert(names.end(), {patternKeyName(site), patternDistanceName(site)});
  if (names.empty())
    return;
  auto isAdamW = [](const OptimizerGroup &group) {
    return group.optimizer.kind == rt::Optimizer::Kind::AdamW;
  };
  auto found = std::ranges::find_if(
      groups, [&](const OptimizerGroup &group) { return isAdamW(group) && group.optimizer.decay == 0; });
  if (found == groups.end()) {
    auto adamw = std::ranges::find_if(groups, isAdamW);
    rt::Optimizer optimizer = adamw == groups.end() ? rt::Optimizer{} : adamw->optimizer;
    optimizer.decay = 0;
    found = groups.insert(groups.end(), {optimizer, {}});
  }
  found->parameters.insert(found->parameters.end(), names.begin(), names.end());
}

std::vector<OptimizerGroup> weft::optimizerGroups(const Program &program) {
  std::vector<OptimizerGroup> groups;
  lang::ParameterGroups assigned = lang::parameterGroups(*program.recipe, program.model);
  std::vector<lang::ParameterInfo> parameters = lang::parametersOf(program.model);
  for (size_t index = 0; index < program.recipe->optimizers.size(); ++index)
    for (bool decays : {true, false}) {
      OptimizerGroup group{program.recipe->optimizers[index], {}};
      if (!decays)
        group.optimizer.decay = 0;
      for (const lang::ParameterInfo &info : parameters) {
        auto found = assigned.optimizer.find(info.path);
        if (found != assigned.optimizer.end() && found->second == static_cast<int32_t>(index) &&
            assigned.decayed.contains(info.path) == decays)
          group.parameters.push_back(info.path);
      }
      if (!group.parameters.empty())
        groups.push_back(std::move(group));
    }
  addPatterns(groups, program);
  return groups;
}

rt::Recipe weft::runtimeRecipe(const Program &program) {
  rt::Recipe recipe = *program.recipe;
  recipe.optimizers.clear();
  for (const OptimizerGroup &group : optimizerGroups(program))
    recipe.optimizers.push_back(group.optimizer);
  return recipe;
}

//===- ModelCommands.cpp - weft params, plan -------------------------------===//

#include "tools/weft/Output.h"

#include "frontend/Parser.h"
#include "runtime/core/Initialize.h"
#include "runtime/core/Safetensors.h"

#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <sstream>

using namespace weft;
namespace cl = llvm::cl;

namespace {

enum class By { Layer, Kind, Tensor, Optimizer };

int64_t elementsOf(const lang::ParameterInfo &info) {
  int64_t count = 1;
  for (int64_t size : info.shape)
    count *= size;
  return count;
}

//===----------------------------------------------------------------------===//
// weft params
//===----------------------------------------------------------------------===//

/// `block.3.attn.wq` by layer is `block[3]`, by kind `block[..].attn.wq`.
std::string groupOf(const lang::ParameterInfo &info, By by) {
  if (by == By::Tensor)
    return info.path;
  if (by == By::Layer && !info.inLayer)
    return "outside layers";
  std::string group, step;
  for (size_t start = 0; start <= info.path.size(); start += step.size() + 1) {
    step = info.path.substr(start, info.path.find('.', start) - start);
    bool index = !step.empty() && std::isdigit(static_cast<unsigned char>(step[0]));
    if (index && by == By::Layer)
      return group + "[" + step + "]";
    group += index ? "[..]" : (group.empty() ? "" : ".") + step;
  }
  return group;
}

std::string initText(const lang::ParameterInfo &info) {
  switch (info.init) {
  case lang::Init::Kind::Constant:
    return absl::StrCat(info.initA);
  case lang::Init::Kind::Normal:
    return absl::StrCat("normal(", info.initA, ")");
  case lang::Init::Kind::Uniform:
    return absl::StrCat("uniform(", info.initA, ", ", info.initB, ")");
  case lang::Init::Kind::Truncated:
    return absl::StrCat("truncated(", info.initA, ")");
  case lang::Init::Kind::Orthogonal:
    return absl::StrCat("orthogonal(", info.initA, ")");
  }
  return "";
}

std::string shapeText(const lang::ParameterInfo &info) {
  return absl::StrCat("[", absl::StrJoin(info.axes, ", "), "] = ", rt::describeShape(info.shape));
}

struct Group {
  std::string name;
  int64_t tensors = 0, elements = 0;
};

std::vector<Group> groupsOf(const std::vector<lang::ParameterInfo> &parameters, By by) {
  std::vector<Group> groups;
  std::map<std::string, size_t> places;
  for (const lang::ParameterInfo &info : parameters) {
    std::string name = groupOf(info, by);
    auto [place, isNew] = places.try_emplace(name, groups.size());
    if (isNew)
      groups.push_back({name});
    ++groups[place->second].tensors;
    groups[place->second].elements += elementsOf(info);
  }
  return groups;
}

void printTensors(const std::vector<lang::ParameterInfo> &parameters, int64_t total) {
  Table table({"tensor", "shape", "init", "parameters"});
  for (const lang::ParameterInfo &info : parameters)
    table.add({info.path, shapeText(info), initText(info), grouped(elementsOf(info))});
  table.add({"-"});
  table.add({"total", "", "", grouped(total)});
  llvm::outs() << table.text();
}

void printGroups(const std::vector<Group> &groups, By by, int64_t tensors, int64_t total) {
  Table table({by == By::Layer ? "layer" : "kind", "tensors", "parameters", "share"});
  auto share = [&](int64_t part) {
    return absl::StrCat((part * 1000 + total / 2) / total / 10, ".", (part * 1000 + total / 2) / total % 10,
                        "%");
  };
  for (const Group &group : groups)
    table.add({group.name, grouped(group.tensors), grouped(group.elements), share(group.elements)});
  table.add({"-"});
  table.add({"total", grouped(tensors), grouped(total), ""});
  llvm::outs() << table.text();
}

/// `muon(lr = 0.02)`: what tells one group from another.
std::string optimizerText(const rt::Optimizer &optimizer) {
  bool muon = optimizer.kind == rt::Optimizer::Kind::Muon;
  return absl::StrCat(muon ? "muon" : "adamw", "(lr = ", optimizer.lr, ")");
}

/// Which optimiser takes what, one line for each declaration and group of the update.
void printRouting(const Program &program, const std::vector<lang::ParameterInfo> &parameters) {
  Table table({"parameters of", "optimiser", "decay", "tensors", "parameters"}, {0, 1});
  std::map<std::string, lang::ParameterInfo> byPath;
  for (const lang::ParameterInfo &info : parameters)
    byPath[info.path] = info;
  for (const OptimizerGroup &group : optimizerGroups(program)) {
    std::vector<lang::ParameterInfo> own;
    for (const std::string &path : group.parameters)
      own.push_back(byPath.at(path));
    for (const Group &kind : groupsOf(own, By::Kind))
      table.add({kind.name, optimizerText(group.optimizer), absl::StrCat(group.optimizer.decay),
                 grouped(kind.tensors), grouped(kind.elements)});
  }
  llvm::outs() << table.text();
}

rt::OrderedJson paramsJson(const lang::Model &model, const std::vector<lang::ParameterInfo> &parameters,
                           By by, int64_t total) {
  rt::OrderedJson json = {{"model", model.name}, {"parameters", total}, {"tensors", parameters.size()}};
  rt::OrderedJson entries = rt::OrderedJson::array();
  if (by == By::Tensor)
    for (const lang::ParameterInfo &info : parameters)
      entries.push_back({{"name", info.path},
                         {"axes", info.axes},
                         {"shape", info.shape},
                         {"init", initText(info)},
                         {"parameters", elementsOf(info)}});
  else
    for (const Group &group : groupsOf(parameters, by))
      entries.push_back({{"name", group.name}, {"tensors", group.tensors}, {"parameters", group.elements}});
  json["entries"] = entries;
  return json;
}

rt::InitRule ruleOf(const lang::ParameterInfo &info) {
  rt::InitRule rule;
  switch (info.init) {
  case lang::Init::Kind::Constant:
    rule.kind = rt::InitRule::Kind::Constant;
    break;
  case lang::Init::Kind::Normal:
    rule.kind = rt::InitRule::Kind::Normal;
    break;
  case lang::Init::Kind::Uniform:
    rule.kind = rt::InitRule::Kind::Uniform;
    break;
  case lang::Init::Kind::Truncated:
    rule.kind = rt::InitRule::Kind::Truncated;
    break;
  case lang::Init::Kind::Orthogonal:
    rule.kind = rt::InitRule::Kind::Orthogonal;
    break;
  }
  rule.a = info.initA;
  rule.b = info.initB;
  return rule;
}

/// Initial values under the parameters' paths, one tensor in memory at a time.
absl::Status dumpInitial(const std::vector<lang::ParameterInfo> &parameters, const std::string &path,
                         uint64_t seed, bool float64) {
  rt::ElementType type = float64 ? rt::ElementType::F64 : rt::ElementType::F32;
  std::vector<rt::TensorToWrite> tensors;
  std::map<std::string, const lang::ParameterInfo *> byPath;
  for (const lang::ParameterInfo &info : parameters) {
    tensors.push_back({info.path, type, info.shape});
    byPath[info.path] = &info;
  }
  auto value = [&](const std::string &name) -> absl::StatusOr<rt::Tensor> {
    const lang::ParameterInfo &info = *byPath.at(name);
    rt::Tensor tensor(type, info.shape);
    absl::Status status = rt::initialize(tensor, ruleOf(info), name, seed);
    return status.ok() ? absl::StatusOr<rt::Tensor>(std::move(tensor)) : status;
  };
  return rt::writeSafetensors(path, tensors, value, {{"seed", std::to_string(seed)}});
}

//===----------------------------------------------------------------------===//
// weft plan show
//===----------------------------------------------------------------------===//

struct PlanRequest {
  std::string model, plan, recipe;
  lang::Overrides sets;
};

/// `NAME` is a plan of the model's file, `FILE:NAME` one of another file.
absl::StatusOr<std::string> planText(const PlanRequest &request) {
  lang::SourceFiles sources;
  lang::Diagnostics diagnostics;
  Request asked;
  setPath(asked, request.model);
  lang::ast::File file = lang::parseFile(asked.path, sources, diagnostics);
  if (diagnostics.hasErrors())
    return diagnostics.status(sources);
  absl::StatusOr<std::string> modelOf = modelName(file, asked);
  if (!modelOf.ok())
    return modelOf.status();
  std::string name = request.plan;
  if (size_t colon = name.rfind(':'); colon != std::string::npos) {
    absl::StatusOr<int32_t> index = sources.load(name.substr(0, colon));
    if (!index.ok())
      return index.status();
    name = name.substr(colon + 1);
    lang::parseInto(file, *index, sources, diagnostics);
  }
  std::optional<lang::Model> model;
  std::optional<lang::Plan> plan;
  if (!diagnostics.hasErrors())
    model = lang::checkModel(file, sources, *modelOf, request.sets, diagnostics);
  if (model)
    plan = lang::checkPlan(file, sources, name, *model, diagnostics);
  if (plan && !request.recipe.empty())
    if (std::optional<rt::Recipe> recipe =
            lang::checkRecipe(file, sources, request.recipe, *model, diagnostics))
      lang::checkPlanAgainst(*plan, recipe->positions, recipe->microBatches, diagnostics);
  if (diagnostics.hasErrors())
    return diagnostics.status(sources);
  llvm::errs() << diagnostics.render(sources, colourful());
  return lang::printPlan(*plan);
}

/// `--set name=value` as the checker takes it.
absl::StatusOr<lang::Overrides> overridesOf(const cl::list<std::string> &sets) {
  lang::Overrides overrides;
  for (const std::string &set : sets) {
    size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      return absl::InvalidArgumentError(absl::StrCat("--set ", set, ": expected name=value"));
    overrides.emplace_back(set.substr(0, equals), set.substr(equals + 1));
  }
  return overrides;
}

int planShow(int argc, const char **argv) {
  cl::opt<std::string> model(cl::Positional, cl::Required, cl::desc("MODEL.weft"), cl::cat(flagCategory()));
  cl::opt<std::string> plan(cl::Positional, cl::Required, cl::desc("[FILE:]PLAN"), cl::cat(flagCategory()));
  cl::opt<std::string> recipe("recipe",
                              cl::desc("check the plan against the length and accumulation of this recipe"),
                              cl::value_desc("NAME"), cl::cat(flagCategory()));
  cl::list<std::string> sets("set", cl::desc("set a size or a choice of the model"),
                             cl::value_desc("name=value"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "shows what a plan does to each head of each layer",
                  "  weft plan show models/gpt2.weft models/plans.weft:listed\n  weft plan show "
                  "models/san.weft models/plans.weft:bare --set depth=12\n"))
    return kUsage;
  absl::StatusOr<lang::Overrides> overrides = overridesOf(sets);
  if (!overrides.ok())
    return fail(overrides.status());
  absl::StatusOr<std::string> text = planText({model, plan, recipe, *std::move(overrides)});
  if (!text.ok())
    return fail(text.status());
  llvm::outs() << *text;
  return 0;
}

/// Lines of a plan's table by what they begin with: a site, or `drop`.
std::vector<std::pair<std::string, std::string>> rowsOf(const std::string &text) {
  std::vector<std::pair<std::string, std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("f frozen")) // the legend
      rows.emplace_back(line.substr(0, line.find(line.starts_with("drop") ? ':' : ' ')), line);
  return rows;
}

/// Rows that differ, `-` of the first plan and `+` of the second, in order of the model.
std::string planChanges(const std::string &before, const std::string &after) {
  const auto olds = rowsOf(before), news = rowsOf(after);
  const std::map<std::string, std::string> byOld(olds.begin(), olds.end()), byNew(news.begin(), news.end());
  std::string text;
  for (const auto &[name, line] : olds) {
    auto other = byNew.find(name);
    if (other != byNew.end() && other->second == line)
      continue;
    text += "- " + line + "\n";
    if (other != byNew.end())
      text += "+ " + other->second + "\n";
  }
  for (const auto &[name, line] : news)
    if (!byOld.contains(name))
      text += "+ " + line + "\n";
  return text;
}

int planDiff(int argc, const char **argv) {
  cl::opt<std::string> model(cl::Positional, cl::Required, cl::desc("MODEL.weft"), cl::cat(flagCategory()));
  cl::opt<std::string> first(cl::Positional, cl::Required, cl::desc("[FILE:]PLAN"), cl::cat(flagCategory()));
  cl::opt<std::string> second(cl::Positional, cl::Required, cl::desc("[FILE:]PLAN"), cl::cat(flagCategory()));
  cl::list<std::string> sets("set", cl::desc("set a size or a choice of the model"),
                             cl::value_desc("name=value"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "the heads that two plans treat differently",
                  "  weft plan diff models/gpt2.weft models/plans.weft:fixed models/plans.weft:listed\n"))
    return kUsage;
  absl::StatusOr<lang::Overrides> overrides = overridesOf(sets);
  if (!overrides.ok())
    return fail(overrides.status());
  absl::StatusOr<std::string> before = planText({model, first, "", *overrides});
  if (!before.ok())
    return fail(before.status());
  absl::StatusOr<std::string> after = planText({model, second, "", *overrides});
  if (!after.ok())
    return fail(after.status());
  const std::string changes = planChanges(*before, *after);
  llvm::outs() << (changes.empty() ? "the plans do the same to every head\n" : changes);
  return 0;
}

} // namespace

int weft::paramsCommand(int argc, const char **argv) {
  ModelFlags flags;
  cl::opt<By> by(
      "by", cl::desc("how to group (default: kind)"), cl::init(By::Kind), cl::cat(flagCategory()),
      cl::values(clEnumValN(By::Layer, "layer", "one line a layer"),
                 clEnumValN(By::Kind, "kind", "one line a declaration"),
                 clEnumValN(By::Tensor, "tensor", "one line a tensor"),
                 clEnumValN(By::Optimizer, "optimizer", "which optimiser of the recipe takes what")));
  cl::opt<bool> json("json", cl::desc("one JSON object"), cl::cat(flagCategory()));
  cl::opt<std::string> dump("dump", cl::desc("write the initial values as safetensors"),
                            cl::value_desc("FILE"), cl::cat(flagCategory()));
  cl::opt<uint64_t> seed("seed", cl::desc("of the values that --dump writes"), cl::init(0),
                         cl::cat(flagCategory()));
  cl::opt<bool> float64("f64", cl::desc("--dump writes float64 instead of float32"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "counts the parameters of a model",
                  "  weft params models/gpt2.weft\n  weft params models/gpt2.weft --by layer --set depth=6\n "
                  " weft params "
                  "models/nano.weft --dump nano.safetensors --seed 1 --f64\n"))
    return kUsage;
  if (dump.empty() && (float64 || seed.getNumOccurrences() > 0))
    return misuse("params", "--seed and --f64 belong to --dump FILE");
  absl::StatusOr<std::unique_ptr<Program>> program = loadDecided(flags.request(by == By::Optimizer));
  if (!program.ok())
    return fail(program.status());
  std::vector<lang::ParameterInfo> parameters = lang::parametersOf((*program)->model);
  int64_t total = 0;
  for (const lang::ParameterInfo &info : parameters)
    total += elementsOf(info);
  if (!dump.empty())
    if (absl::Status status = dumpInitial(parameters, dump, seed, float64); !status.ok())
      return fail(status);
  if (by == By::Optimizer && json)
    return misuse("params", "--by optimizer is a table: leave --json out");
  if (by == By::Optimizer)
    printRouting(**program, parameters);
  else if (json)
    printJson(paramsJson((*program)->model, parameters, by, total));
  else if (by == By::Tensor)
    printTensors(parameters, total);
  else
    printGroups(groupsOf(parameters, by), by, static_cast<int64_t>(parameters.size()),
                std::max<int64_t>(total, 1));
  return 0;
}

int weft::planCommand(int argc, const char **argv) {
  const CommandEntry actions[] = {{"show", "what a plan does to each head of each layer", planShow},
                                  {"diff", "the heads that two plans treat differently", planDiff},
                                  {"apply", "freeze and prune heads of a run, as a new run", planApply}};
  return runAction(actions, "plan", argc, argv);
}

//===- ImportCommand.cpp - weft import --------------------------------------===//
//
// Reads another program's weights through a table of the model's file and saves
// them as a run at step 0, which eval, prefill, generate and train --from read.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Output.h"
#include "tools/weft/WeightFiles.h"

#include "frontend/Parser.h"
#include "runtime/core/File.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/RunDirectory.h"

#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"

#include <filesystem>

using namespace weft;
namespace cl = llvm::cl;

namespace {

struct ImportFlags {
  cl::opt<std::string> model{cl::Positional, cl::Required, cl::desc("MODEL.weft"), cl::cat(flagCategory())};
  cl::opt<std::string> files{cl::Positional, cl::Required, cl::desc("FILES"), cl::cat(flagCategory())};
  cl::opt<std::string> out{"out", cl::Required, cl::desc("the run to make"), cl::value_desc("DIR"),
                           cl::cat(flagCategory())};
  cl::opt<std::string> table{"weights", cl::desc("which weight table (default: the only one for the model)"),
                             cl::value_desc("NAME"), cl::cat(flagCategory())};
  cl::list<std::string> sets{"set", cl::desc("set a size or a choice of the model, after those of the files"),
                             cl::value_desc("name=value"), cl::cat(flagCategory())};
  cl::opt<std::string> recipe{"recipe", cl::desc("which `train` block the run keeps (default: the only one)"),
                              cl::value_desc("NAME"), cl::cat(flagCategory())};
};

/// A machine that holds the parameters of files and computes nothing: what a
/// checkpoint is saved from.
class FileMachine : public rt::Machine {
public:
  FileMachine(WeightFiles &files, const Program &program) : files(files) {
    contents.model = program.model.name;
    contents.target = "none";
    for (const lang::ParameterInfo &info : lang::parametersOf(program.model)) {
      rt::StateEntry entry;
      entry.name = info.path;
      entry.shape = info.shape;
      entry.axes = info.axes;
      contents.states.push_back(std::move(entry));
    }
  }

  const rt::Executable &executable() const override { return contents; }
  absl::Status run(std::string_view, std::span<const rt::Tensor>, std::span<rt::Tensor>) override {
    return absl::NotFoundError("weights of files have no programs");
  }
  absl::StatusOr<rt::Tensor> readState(std::string_view name) const override {
    return files.parameter(std::string(name));
  }
  absl::Status writeState(std::string_view name, const rt::Tensor &) override {
    return absl::NotFoundError(absl::StrCat("'", std::string(name), "' is read from a file"));
  }

private:
  WeightFiles &files;
  rt::Executable contents;
};

/// The JSON file of the table that lies with the weights. Errors: NotFound, DataLoss.
absl::StatusOr<rt::Json> readConfig(const std::string &path) {
  constexpr uint64_t kMaxBytes = 16 << 20;
  absl::StatusOr<std::string> text = rt::readFile(path, kMaxBytes);
  if (!text.ok())
    return absl::Status(
        text.status().code(),
        absl::StrCat(text.status().message(), ": the weight table reads the model's sizes from it"));
  return rt::parseJson(*text, absl::StrCat("'", path, "'"));
}

/// Sizes that the JSON file beside the weights gives, as `--set`; `config` is what
/// it holds.
absl::StatusOr<std::vector<std::string>> foreignSizes(const Request &request, const std::string &tableName,
                                                      const std::string &configFolder, rt::Json &config,
                                                      std::string &configPath) {
  lang::SourceFiles sources;
  lang::Diagnostics diagnostics;
  const lang::ast::File file = lang::parseFile(request.path, sources, diagnostics);
  if (diagnostics.hasErrors())
    return diagnostics.status(sources);
  absl::StatusOr<std::string> name = modelName(file, request);
  if (!name.ok())
    return name.status();
  const std::optional<lang::WeightTable> table = lang::weightSizes(file, tableName, *name);
  if (!table || table->sizesFile.empty()) // checkWeights says what is wrong, if anything
    return std::vector<std::string>();
  configPath = (std::filesystem::path(configFolder) / table->sizesFile).string();
  absl::StatusOr<rt::Json> read = readConfig(configPath);
  if (!read.ok())
    return read.status();
  config = *std::move(read);
  return settingsFrom(*table, config, absl::StrCat("'", configPath, "'"));
}

struct Imported {
  std::unique_ptr<Program> program;
  lang::WeightTable table;
};

/// The model with the sizes of the files, and its table. A recipe that does not fit it
/// is left out, unless it was asked for.
absl::StatusOr<Imported> loadImported(const ImportFlags &flags, const std::string &folder) {
  Request request;
  setPath(request, flags.model);
  request.recipe = flags.recipe;
  request.recipeIfAny = true;
  rt::Json config;
  std::string configPath;
  absl::StatusOr<std::vector<std::string>> sizes =
      foreignSizes(request, flags.table, folder, config, configPath);
  if (!sizes.ok())
    return sizes.status();
  request.sets = *std::move(sizes);
  request.sets.insert(request.sets.end(), flags.sets.begin(), flags.sets.end());
  absl::StatusOr<std::unique_ptr<Program>> program = loadProgram(request);
  if (!program.ok() && flags.recipe.empty()) { // rows longer than the files' model has positions, say
    const absl::Status first = program.status();
    request.recipeIfAny = false;
    program = loadProgram(request);
    if (program.ok())
      llvm::errs() << "weft: note: the recipe does not fit the model of the files and is left out:\n"
                   << std::string_view(first.message().data(), first.message().size());
  }
  if (!program.ok())
    return program.status();
  lang::Diagnostics diagnostics;
  std::optional<lang::WeightTable> table = lang::checkWeights(
      (*program)->file, (*program)->sources, std::string(flags.table), (*program)->model, diagnostics);
  if (!table)
    return diagnostics.status((*program)->sources);
  if (!configPath.empty())
    if (absl::Status status = checkExpected(*table, config, absl::StrCat("'", configPath, "'")); !status.ok())
      return status;
  return Imported{*std::move(program), *std::move(table)};
}

absl::StatusOr<std::string> saveImported(const Program &program, WeightFiles &files, const std::string &out) {
  absl::StatusOr<rt::RunDirectory> run = rt::RunDirectory::create(out, program.runText);
  if (!run.ok())
    return run.status();
  rt::CheckpointInfo info;
  info.model = program.model.name;
  info.build = "import";
  info.source = program.runText;
  if (program.recipe) {
    info.seed = program.recipe->seed;
    info.rows = program.recipe->rows;
    info.positions = program.recipe->positions;
  }
  absl::StatusOr<std::string> saved =
      rt::saveCheckpoint(run->checkpoints(), FileMachine(files, program), info, 1);
  if (!saved.ok())
    run->discardUnused();
  return saved;
}

} // namespace

int weft::importCommand(int argc, const char **argv) {
  ImportFlags flags;
  if (!parseFlags(
          argc, argv, "reads another program's weights into a run",
          "  weft import models/gpt2.weft gpt2/ --out runs/gpt2\n  weft train models/gpt2.weft --from "
          "runs/gpt2 --out runs/tuned\n"))
    return kUsage;
  const std::filesystem::path path = std::string(flags.files);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return fail(
        absl::NotFoundError(absl::StrCat("'", path.string(), "' not found: expected a .safetensors file, ",
                                         "an index of shards, or a folder with one of them")));
  const std::string folder =
      std::filesystem::is_directory(path, ignored) ? path.string() : path.parent_path().string();
  absl::StatusOr<Imported> imported = loadImported(flags, folder);
  if (!imported.ok())
    return fail(imported.status());
  const std::vector<lang::ParameterInfo> parameters = lang::parametersOf(imported->program->model);
  absl::StatusOr<WeightFiles> files = WeightFiles::open(path.string(), imported->table, parameters);
  if (!files.ok())
    return fail(files.status());
  for (const std::string &shard : files->strayShards())
    llvm::errs() << "weft: note: " << shard << " lies beside the index, which does not name it: left out\n";
  if (absl::Status status = files->checkCopies(); !status.ok())
    return fail(status);
  absl::StatusOr<std::string> saved = saveImported(*imported->program, *files, flags.out);
  if (!saved.ok())
    return fail(saved.status());
  int64_t count = 0;
  for (const lang::ParameterInfo &info : parameters) {
    int64_t elements = 1;
    for (int64_t size : info.shape)
      elements *= size;
    count += elements;
  }
  llvm::outs() << imported->program->model.name << ": " << grouped(count) << " parameters from "
               << files->tensorCount() << " tensors of " << files->types() << "; saved " << *saved << "\n";
  return 0;
}

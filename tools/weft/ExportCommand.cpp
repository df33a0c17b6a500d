//===- ExportCommand.cpp - weft export --------------------------------------===//
//
// Writes a run's weights as another program's files: a weight table read from
// right to left.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Loaded.h"
#include "tools/weft/Output.h"
#include "tools/weft/WeightFiles.h"

#include "frontend/Parser.h"
#include "runtime/core/File.h"

#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"

#include <bit>

using namespace weft;
namespace cl = llvm::cl;

namespace {

enum class As { F32, Bf16 };

struct ExportFlags {
  cl::opt<std::string> run{cl::Positional, cl::Required, cl::desc("RUN|CHECKPOINT"), cl::cat(flagCategory())};
  cl::opt<std::string> out{"out", cl::Required, cl::desc("the folder to write"), cl::value_desc("DIR"),
                           cl::cat(flagCategory())};
  cl::opt<std::string> table{"weights", cl::desc("which weight table: of the run's text, or of another file"),
                             cl::value_desc("[FILE:]NAME"), cl::cat(flagCategory())};
  cl::opt<As> as{"as", cl::desc("type of the tensors (default: f32, what the run has)"), cl::init(As::F32),
                 cl::cat(flagCategory()),
                 cl::values(clEnumValN(As::F32, "f32", "exactly the run's numbers"),
                            clEnumValN(As::Bf16, "bf16", "rounded to nearest, ties to even"))};
};

/// Files hold every head and every branch, as the model was written.
absl::Status checkWhole(const LoadedText &run) {
  const Program &program = *run.program;
  auto refuse = [&](std::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", run.checkpoint, "': its plans ", std::string(what),
                     ", for which the other program's files have no place: export a run without them"));
  };
  if (!program.model.dropped.empty())
    return refuse(absl::StrCat("dropped ", *program.model.dropped.begin()));
  if (!program.freeze.frozen.empty())
    return refuse(absl::StrCat("froze heads of ", program.freeze.frozen.begin()->first));
  if (!program.freeze.pruned.empty())
    return refuse(absl::StrCat("pruned heads of ", program.freeze.pruned.begin()->first));
  for (const lang::Plan &plan : program.plans)
    if (!plan.windows.empty())
      llvm::errs() << "weft: note: the windows of plan " << plan.name
                   << " are not part of the files: the other program attends to everything\n";
  return absl::OkStatus();
}

/// The table that --weights names, read into `program` from another file if it says one.
absl::StatusOr<lang::WeightTable> tableOf(Program &program, const std::string &asked) {
  lang::Diagnostics diagnostics;
  const size_t colon = asked.rfind(':');
  std::string name = colon == std::string::npos ? asked : asked.substr(colon + 1);
  if (colon != std::string::npos) {
    absl::StatusOr<int32_t> index = program.sources.load(asked.substr(0, colon));
    if (!index.ok())
      return index.status();
    program.file.weights.clear(); // that file's own is meant
    lang::parseInto(program.file, *index, program.sources, diagnostics);
    if (diagnostics.hasErrors())
      return diagnostics.status(program.sources);
  }
  std::optional<lang::WeightTable> table =
      lang::checkWeights(program.file, program.sources, name, program.model, diagnostics);
  if (!table)
    return diagnostics.status(program.sources);
  return *std::move(table);
}

/// Rounded to bf16, to nearest, ties to even. NaN stays NaN: checkpoints have none.
rt::Tensor asBf16(const rt::Tensor &tensor) {
  rt::Tensor result(rt::ElementType::BF16, tensor.shape);
  std::span<const float> from = tensor.as<float>();
  std::span<uint16_t> to = result.as<uint16_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(from[i]);
    to[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  return result;
}

absl::Status writeWeights(const std::string &path, const std::string &checkpoint,
                          const lang::WeightTable &table, const lang::Model &model, As as) {
  absl::StatusOr<rt::SafetensorsFile> source =
      rt::SafetensorsFile::open(absl::StrCat(checkpoint, "/model.safetensors"));
  if (!source.ok())
    return source.status();
  std::map<std::string, lang::ParameterInfo> infos;
  for (lang::ParameterInfo &info : lang::parametersOf(model))
    infos.emplace(info.path, std::move(info));
  std::vector<rt::TensorToWrite> tensors;
  std::map<std::string, const lang::WeightEntry *> entries;
  for (const lang::WeightEntry &entry : table.entries) {
    if (entry.tied) // readers make the copy themselves
      continue;
    const std::string name = table.prefixes.front() + entry.key;
    tensors.push_back({name, as == As::Bf16 ? rt::ElementType::BF16 : rt::ElementType::F32, entry.shape()});
    entries[name] = &entry;
  }
  auto value = [&](const std::string &name) -> absl::StatusOr<rt::Tensor> {
    const lang::WeightEntry &entry = *entries.at(name);
    rt::Tensor file(rt::ElementType::F32, entry.shape());
    for (size_t part = 0; part < entry.parameters.size(); ++part) {
      const lang::ParameterInfo &info = infos.at(entry.parameters[part]);
      absl::StatusOr<rt::Tensor> parameter = source->readAs(info.path, rt::ElementType::F32);
      if (!parameter.ok())
        return parameter.status();
      if (parameter->shape != info.shape)
        return absl::DataLossError(absl::StrCat("'", source->path(), "' tensor '", info.path, "': expected ",
                                                rt::describeShape(info.shape), ", found ",
                                                rt::describeShape(parameter->shape)));
      put(*parameter, placementOf(entry, part, info), file);
    }
    return as == As::Bf16 ? asBf16(file) : std::move(file);
  };
  return rt::writeSafetensors(path, std::move(tensors), value, {{"format", "pt"}});
}

absl::Status writeConfig(const std::string &folder, const lang::WeightTable &table,
                         const lang::Model &model) {
  if (table.sizesFile.empty())
    return absl::OkStatus();
  const lang::Bindings names = model.bindings();
  std::map<std::string, double> settings;
  for (const lang::Setting &setting : model.settings)
    if (auto found = names.find(setting.name); found != names.end() && setting.words.empty())
      settings[setting.name] = found->second.number;
  return rt::writeFileAtomic(absl::StrCat(folder, "/", table.sizesFile),
                             configOf(table, settings).dump(2) + "\n");
}

} // namespace

int weft::exportCommand(int argc, const char **argv) {
  ExportFlags flags;
  if (!parseFlags(argc, argv, "writes a run's weights as another program's files",
                  "  weft export runs/tuned --out tuned/\n  weft export runs/tuned --as bf16 --weights "
                  "models/gpt2.weft:huggingface --out tuned/\n"))
    return kUsage;
  Request request;
  request.path = flags.run;
  request.recipeIfAny = true;
  if (isModelPath(request.path))
    return fail(absl::InvalidArgumentError(
        absl::StrCat("'", request.path, "' is a model: export takes a run or a checkpoint")));
  absl::StatusOr<LoadedText> run = loadText(request);
  if (!run.ok())
    return fail(run.status());
  if (absl::Status status = checkWhole(*run); !status.ok())
    return fail(status);
  absl::StatusOr<lang::WeightTable> table = tableOf(*run->program, flags.table);
  if (!table.ok())
    return fail(table.status());
  if (absl::Status status = rt::makeFolders(flags.out); !status.ok())
    return fail(status);
  const std::string file = std::string(flags.out) + "/model.safetensors";
  if (absl::Status status = writeWeights(file, run->checkpoint, *table, run->program->model, flags.as);
      !status.ok())
    return fail(status);
  if (absl::Status status = writeConfig(flags.out, *table, run->program->model); !status.ok())
    return fail(status);
  llvm::outs() << run->program->model.name << ": wrote " << file
               << (table->sizesFile.empty() ? "" : " and " + table->sizesFile) << " as weight table `"
               << table->name << "` says\n";
  return 0;
}

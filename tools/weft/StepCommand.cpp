//===- StepCommand.cpp - weft step ------------------------------------------===//
//
// Training steps on given tokens, for comparing with another program: losses
// and norms as JSON, gradients of the first batch and parameters after the last
// step as safetensors. The rate is the recipe's peak, held.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Command.h"
#include "tools/weft/WindowPlans.h"

#include "runtime/core/File.h"
#include "runtime/core/Json.h"
#include "runtime/core/Safetensors.h"
#include "runtime/train/State.h"

#include "absl/strings/str_cat.h"

#include <cmath>

using namespace weft;
namespace cl = llvm::cl;

namespace {

/// Numbers by port name; `doc_start` may be absent: one document a row.
using Inputs = std::map<std::string, rt::Json>;

absl::StatusOr<std::vector<Inputs>> readBatches(const std::string &path) {
  absl::StatusOr<std::string> text = rt::readFile(path);
  absl::StatusOr<rt::Json> data = text.ok() ? rt::parseJson(*text, path) : text.status();
  if (!data.ok())
    return data.status();
  auto fits = [](const rt::Json &value) {
    return value.is_object() && value.contains("tokens") && value["tokens"].is_array() &&
           !value["tokens"].empty() && value["tokens"][0].is_array() && value.contains("targets");
  };
  rt::Json list = data->is_array() ? *data : rt::Json::array({*data});
  if (list.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected at least one batch, found an empty list"));
  std::vector<Inputs> batches;
  for (const rt::Json &value : list) {
    if (!fits(value))
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": expected {\"tokens\": [[...]], \"targets\": [[...]]} or a list of such batches"));
    Inputs inputs;
    for (const auto &[name, numbers] : value.items())
      inputs[name] = numbers;
    batches.push_back(std::move(inputs));
  }
  return batches;
}

/// The port's tensor, filled from rows of numbers.
/// Ids are below `bound`.
absl::StatusOr<rt::Tensor> filled(const rt::Port &port, const Inputs &inputs, int64_t bound) {
  rt::Tensor tensor(port.type, port.shape);
  auto found = inputs.find(port.name);
  if (found == inputs.end() && port.name == "doc_start")
    return tensor;
  if (found == inputs.end())
    return absl::InvalidArgumentError(absl::StrCat("the data lacks `", port.name, "`"));
  const rt::Json &rows = found->second;
  auto bad = [&](const std::string &expected) {
    return absl::InvalidArgumentError(absl::StrCat("`", port.name, "` of the data: expected ", expected));
  };
  if (!rows.is_array() || static_cast<int64_t>(rows.size()) != port.shape[0])
    return bad(absl::StrCat(port.shape[0], " rows"));
  size_t place = 0;
  for (const rt::Json &row : rows) {
    if (!row.is_array() || static_cast<int64_t>(row.size()) != port.shape[1])
      return bad(absl::StrCat("rows of ", port.shape[1], " numbers"));
    for (const rt::Json &number : row) {
      bool isTarget = port.name == "targets";
      int64_t id = number.is_number_integer() ? number.get<int64_t>() : -2;
      if (id < (isTarget ? -1 : 0) || id >= bound)
        return bad(absl::StrCat("whole numbers from ", isTarget ? -1 : 0, " to ", bound - 1, ", found ",
                                number.dump()));
      tensor.as<int32_t>()[place++] = static_cast<int32_t>(id);
    }
  }
  return tensor;
}

void setScalar(rt::Tensor &tensor, size_t index, double value) {
  if (tensor.type == rt::ElementType::F64)
    tensor.as<double>()[index] = value;
  else
    tensor.as<float>()[index] = static_cast<float>(value);
}

double scalar(const rt::Tensor &tensor) {
  return tensor.type == rt::ElementType::F64 ? tensor.as<double>()[0]
                                             : static_cast<double>(tensor.as<float>()[0]);
}

class Stepper {
public:
  Stepper(rt::Machine &machine, const rt::Recipe &recipe, int64_t vocabulary)
      : machine(machine), recipe(recipe), vocabulary(vocabulary) {}

  /// Loss (mean over counted targets) of one batch; gradients are added to the state.
  absl::StatusOr<double> micro(const Inputs &inputs);
  absl::StatusOr<double> update(int64_t step);
  /// Entries of `role`, gradients divided by the count.
  absl::Status collect(rt::StateEntry::Role role, std::map<std::string, rt::Tensor> &into) const;

private:
  const rt::Program &program(std::string_view name) const {
    const std::vector<rt::Program> &programs = machine.executable().programs;
    return *std::find_if(programs.begin(), programs.end(),
                         [&](const rt::Program &p) { return p.name == name; });
  }

  rt::Machine &machine;
  const rt::Recipe &recipe;
  int64_t vocabulary, counted = 1;
};

absl::StatusOr<double> Stepper::micro(const Inputs &inputs) {
  const rt::Program &micro = program("micro");
  std::vector<rt::Tensor> tensors, results;
  for (const rt::Port &port : micro.inputs) {
    absl::StatusOr<rt::Tensor> tensor =
        filled(port, inputs, port.name == "doc_start" ? port.shape[1] : vocabulary);
    if (!tensor.ok())
      return tensor.status();
    if (port.name == "targets") {
      auto targets = tensor->as<int32_t>();
      counted = std::count_if(targets.begin(), targets.end(), [](int32_t target) { return target >= 0; });
    }
    tensors.push_back(std::move(*tensor));
  }
  if (counted == 0)
    return absl::InvalidArgumentError("every target of a batch is -1: there is no loss to take a mean of");
  results.emplace_back(micro.results[0].type, micro.results[0].shape);
  absl::Status status = machine.run("micro", tensors, results);
  if (!status.ok())
    return status;
  return scalar(results[0]) / static_cast<double>(counted);
}

absl::StatusOr<double> Stepper::update(int64_t step) {
  const rt::Program &update = program("update");
  std::vector<rt::Tensor> tensors, results;
  for (const rt::Port &port : update.inputs) {
    rt::Tensor tensor(port.type, port.shape);
    if (port.name == "inverse_count") {
      setScalar(tensor, 0, 1.0 / static_cast<double>(counted));
    } else {
      const rt::Optimizer &optimizer =
          recipe.optimizers[static_cast<size_t>(std::stoi(port.name.substr(port.name.find('.') + 1)))];
      setScalar(tensor, 0, optimizer.lr);
      if (optimizer.kind == rt::Optimizer::Kind::AdamW) {
        setScalar(tensor, 1, 1 / (1 - std::pow(optimizer.beta1, static_cast<double>(step))));
        setScalar(tensor, 2, 1 / (1 - std::pow(optimizer.beta2, static_cast<double>(step))));
      }
    }
    tensors.push_back(std::move(tensor));
  }
  results.emplace_back(update.results[0].type, update.results[0].shape);
  absl::Status status = machine.run("update", tensors, results);
  if (!status.ok())
    return status;
  return scalar(results[0]);
}

absl::Status Stepper::collect(rt::StateEntry::Role role, std::map<std::string, rt::Tensor> &into) const {
  for (const rt::StateEntry &entry : machine.executable().states) {
    if (entry.role != role)
      continue;
    absl::StatusOr<rt::Tensor> value = machine.readState(entry.name);
    if (!value.ok())
      return value.status();
    double factor = role == rt::StateEntry::Role::Gradient ? 1.0 / static_cast<double>(counted) : 1.0;
    if (value->type == rt::ElementType::F64)
      for (double &number : value->as<double>())
        number *= factor;
    else
      for (float &number : value->as<float>())
        number = static_cast<float>(number * factor);
    into[entry.name] = std::move(*value);
  }
  return absl::OkStatus();
}

/// Every tensor of the file into the parameter of its name.
absl::Status setWeights(rt::Machine &machine, const std::string &path) {
  absl::StatusOr<rt::SafetensorsFile> file = rt::SafetensorsFile::open(path);
  if (!file.ok())
    return file.status();
  const rt::ElementType type = machine.executable().states.front().type;
  for (const auto &[name, info] : file->tensors()) {
    absl::StatusOr<rt::Tensor> value = file->readAs(name, type);
    absl::Status status = value.ok() ? machine.writeState(name, *value) : value.status();
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat(path, ": '", name, "': ", status.message()));
  }
  return absl::OkStatus();
}

} // namespace

int weft::stepCommand(int argc, const char **argv) {
  ModelFlags flags;
  DeviceFlags device;
  MemoryFlag memory;
  cl::opt<std::string> data("data", cl::Required,
                            cl::desc("JSON of tokens, targets and (optionally) doc_start"),
                            cl::value_desc("FILE"), cl::cat(flagCategory()));
  cl::opt<std::string> out(
      "out", cl::desc("gradients of the first batch, parameters after the last step, as safetensors"),
      cl::value_desc("FILE"), cl::cat(flagCategory()));
  cl::opt<int64_t> steps("steps", cl::desc("optimiser steps, batches taken in turn (0: gradients alone)"),
                         cl::init(0), cl::cat(flagCategory()));
  cl::opt<uint64_t> seed("seed", cl::desc("of the initial values, as weft params --dump"), cl::init(0),
                         cl::cat(flagCategory()));
  cl::opt<std::string> weights("weights", cl::desc("parameters that start with these values, as safetensors"),
                               cl::value_desc("FILE"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "training steps on given tokens, to compare with another program",
                  "  weft step models/nano.weft --data batch.json --steps 10 --device reference --out "
                  "after.safetensors\n"))
    return kUsage;
  Request request = flags.request(true);
  device.apply(request);
  memory.apply(request);
  absl::StatusOr<std::unique_ptr<Program>> program = loadDecided(request);
  if (!program.ok())
    return fail(program.status());
  absl::StatusOr<std::vector<Inputs>> batches = readBatches(data);
  if (!batches.ok())
    return fail(batches.status());
  PipelineOptions options;
  options.batch = static_cast<int64_t>(batches->front()["tokens"].size());
  options.positions = static_cast<int64_t>(batches->front()["tokens"][0].size());
  options.programs = {"micro", "update"};
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = makeMachine(**program, options, request, {});
  if (!machine.ok())
    return fail(machine.status());
  if (absl::Status status = rt::initializeState(**machine, seed); !status.ok())
    return fail(status);
  if (absl::Status status = startWindows(**program, **machine, "").status(); !status.ok())
    return fail(status);
  if (absl::Status status = weights.empty() ? absl::OkStatus() : setWeights(**machine, weights); !status.ok())
    return fail(status);
  rt::Recipe recipe = runtimeRecipe(**program);
  lang::Bindings names = (*program)->model.bindings();
  auto vocab = names.find("vocab");
  Stepper stepper(**machine, recipe,
                  vocab == names.end() ? INT32_MAX : static_cast<int64_t>(vocab->second.number));
  std::map<std::string, rt::Tensor> tensors;
  rt::OrderedJson losses = rt::OrderedJson::array(), norms = rt::OrderedJson::array();
  for (int64_t step = 0; step < std::max<int64_t>(steps, 1); ++step) {
    absl::StatusOr<double> loss = stepper.micro((*batches)[static_cast<size_t>(step) % batches->size()]);
    if (!loss.ok())
      return fail(loss.status());
    losses.push_back(*loss);
    if (step == 0)
      if (absl::Status status = stepper.collect(rt::StateEntry::Role::Gradient, tensors); !status.ok())
        return fail(status);
    absl::StatusOr<double> norm = steps > 0 ? stepper.update(step + 1) : 0.0;
    if (!norm.ok())
      return fail(norm.status());
    norms.push_back(*norm);
  }
  if (steps > 0)
    if (absl::Status status = stepper.collect(rt::StateEntry::Role::Parameter, tensors); !status.ok())
      return fail(status);
  std::vector<rt::TensorToWrite> list;
  for (const auto &[name, tensor] : tensors)
    list.push_back({name, tensor.type, tensor.shape});
  auto value = [&](const std::string &name) -> absl::StatusOr<rt::Tensor> { return tensors.at(name); };
  if (!out.empty())
    if (absl::Status status = rt::writeSafetensors(out, list, value); !status.ok())
      return fail(status);
  llvm::outs() << rt::dumpJson(rt::OrderedJson{{"loss", losses}, {"grad_norm", norms}}) << "\n";
  return 0;
}

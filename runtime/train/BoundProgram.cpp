//===- BoundProgram.cpp - A program with tensors for its ports --*- C++ -*-===//
#include "runtime/train/BoundProgram.h"

#include "runtime/core/Safetensors.h"

#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::rt {
namespace {

std::string describe(ElementType type, const std::vector<int64_t> &shape) {
  return absl::StrCat(std::string(nameOf(type)), " ", describeShape(shape));
}

/// Index of `port`, or -1.
int64_t indexOf(const std::vector<Port> &ports, const std::string &port) {
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name == port)
      return static_cast<int64_t>(i);
  return -1;
}

absl::Status noPort(const Program &program, const char *kind, const std::string &port,
                    const std::vector<Port> &ports) {
  auto name = [](std::string *out, const Port &p) { absl::StrAppend(out, p.name); };
  return absl::NotFoundError(absl::StrCat("program '", program.name, "' has no ", kind, " '", port,
                                          "', it has: ", absl::StrJoin(ports, ", ", name)));
}

} // namespace

const Program *findProgram(const Executable &executable, const std::string &name) {
  for (const Program &program : executable.programs)
    if (program.name == name)
      return &program;
  return nullptr;
}

bool allFinite(const Tensor &tensor) {
  if (tensor.type == ElementType::I32 || tensor.type == ElementType::I64)
    return true;
  for (int64_t i = 0, n = tensor.elements(); i < n; ++i)
    if (!std::isfinite(floatAt(tensor, i)))
      return false;
  return true;
}

BoundProgram::BoundProgram(Machine &machine, const Program &program)
    : machine(&machine), description(&program) {
  for (const Port &port : program.inputs)
    inputs.emplace_back(port.type, port.shape);
  addSlot();
}

void BoundProgram::addSlot() {
  std::vector<Tensor> &slot = results.emplace_back();
  for (const Port &port : description->results)
    slot.emplace_back(port.type, port.shape);
  started.push_back(0);
}

absl::StatusOr<BoundProgram> BoundProgram::bind(Machine &machine, const std::string &name) {
  const Executable &executable = machine.executable();
  if (const Program *program = findProgram(executable, name))
    return BoundProgram(machine, *program);
  auto append = [](std::string *out, const Program &p) { absl::StrAppend(out, p.name); };
  return absl::NotFoundError(absl::StrCat("the executable of '", executable.model, "' has no program '", name,
                                          "', it has: ", absl::StrJoin(executable.programs, ", ", append)));
}

bool BoundProgram::hasInput(const std::string &port) const { return indexOf(description->inputs, port) >= 0; }

absl::Status BoundProgram::setInput(const std::string &port, Tensor value) {
  const int64_t index = indexOf(description->inputs, port);
  if (index < 0)
    return noPort(*description, "input", port, description->inputs);
  const Port &expected = description->inputs[index];
  if (value.type != expected.type || value.shape != expected.shape)
    return absl::InvalidArgumentError(absl::StrCat("program '", description->name, "' input '", port,
                                                   "': expected ", describe(expected.type, expected.shape),
                                                   ", found ", describe(value.type, value.shape)));
  inputs[index] = std::move(value);
  return absl::OkStatus();
}

absl::Status BoundProgram::setFloats(const std::string &port, const std::vector<double> &values) {
  const int64_t index = indexOf(description->inputs, port);
  if (index < 0)
    return noPort(*description, "input", port, description->inputs);
  Tensor &tensor = inputs[index];
  const bool floating = tensor.type == ElementType::F32 || tensor.type == ElementType::F64;
  if (!floating || tensor.elements() != static_cast<int64_t>(values.size()))
    return absl::InvalidArgumentError(absl::StrCat("program '", description->name, "' input '", port,
                                                   "': expected ", describe(tensor.type, tensor.shape),
                                                   ", found ", values.size(), " floats"));
  for (size_t i = 0; i < values.size(); ++i)
    if (tensor.type == ElementType::F32)
      tensor.as<float>()[i] = static_cast<float>(values[i]);
    else
      tensor.as<double>()[i] = values[i];
  return absl::OkStatus();
}

absl::Status BoundProgram::run() { return machine->run(description->name, inputs, results[0]); }

absl::Status BoundProgram::start(size_t slot) {
  while (results.size() <= slot)
    addSlot(); // those that are under way stay where they are
  absl::StatusOr<uint64_t> number = machine->start(description->name, inputs, results[slot]);
  if (!number.ok())
    return number.status();
  started[slot] = lastStarted = *number;
  return absl::OkStatus();
}

absl::Status BoundProgram::wait(size_t slot) { return machine->wait(started[slot]); }

absl::StatusOr<const Tensor *> BoundProgram::result(const std::string &port, size_t slot) const {
  const int64_t index = indexOf(description->results, port);
  if (index < 0)
    return noPort(*description, "result", port, description->results);
  return &results[slot][index];
}

absl::StatusOr<double> BoundProgram::number(const std::string &port, size_t slot) const {
  absl::StatusOr<const Tensor *> tensor = result(port, slot);
  if (!tensor.ok())
    return tensor.status();
  if ((*tensor)->elements() != 1)
    return absl::InvalidArgumentError(absl::StrCat("program '", description->name, "' result '", port,
                                                   "': expected one number, found ",
                                                   describe((*tensor)->type, (*tensor)->shape)));
  return floatAt(**tensor, 0);
}

} // namespace weft::rt

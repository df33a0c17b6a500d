//===- ReferenceMachine.cpp - A machine that interprets IR -----------------===//
#include "tools/weft/ReferenceMachine.h"

#include "passes/Schedule/ToExecutable.h"

#include "mlir/IR/Diagnostics.h"

#include "absl/strings/str_cat.h"

#include <cstring>

using namespace mlir;

namespace weft {
namespace {

constexpr uint64_t kStateAlignment = 64;

std::string toString(StringRef text) { return text.str(); }

absl::StatusOr<rt::ElementType> elementTypeOf(Type element) {
  if (element.isF32())
    return rt::ElementType::F32;
  if (element.isF64())
    return rt::ElementType::F64;
  if (element.isBF16())
    return rt::ElementType::BF16;
  if (element.isInteger(32))
    return rt::ElementType::I32;
  return absl::InvalidArgumentError("the reference has no such element type");
}

/// A bfloat16 of a double, to nearest even.
uint16_t toBf16(double value) {
  auto narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  if (narrow != narrow)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double fromBf16(uint16_t half) {
  uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T> void widen(const rt::Tensor &tensor, std::vector<double> &data) {
  std::span<const T> values = tensor.as<T>();
  data.assign(values.begin(), values.end());
}

Array toArray(const rt::Tensor &tensor) {
  Array array;
  array.shape.assign(tensor.shape.begin(), tensor.shape.end());
  switch (tensor.type) {
  case rt::ElementType::F32:
    widen<float>(tensor, array.data);
    break;
  case rt::ElementType::F64:
    widen<double>(tensor, array.data);
    break;
  case rt::ElementType::I32:
    widen<int32_t>(tensor, array.data);
    break;
  case rt::ElementType::I64:
    widen<int64_t>(tensor, array.data);
    break;
  case rt::ElementType::BF16:
    for (uint16_t half : tensor.as<uint16_t>())
      array.data.push_back(fromBf16(half));
    break;
  }
  return array;
}

template <typename T> void narrow(const Array &array, rt::Tensor &tensor) {
  std::span<T> values = tensor.as<T>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(array.data[i]);
}

rt::Tensor toTensor(const Array &array, rt::ElementType type) {
  rt::Tensor tensor(type, {array.shape.begin(), array.shape.end()});
  switch (type) {
  case rt::ElementType::F32:
    narrow<float>(array, tensor);
    break;
  case rt::ElementType::F64:
    narrow<double>(array, tensor);
    break;
  case rt::ElementType::I32:
    narrow<int32_t>(array, tensor);
    break;
  case rt::ElementType::I64:
    narrow<int64_t>(array, tensor);
    break;
  case rt::ElementType::BF16:
    for (size_t i = 0; i < array.data.size(); ++i)
      tensor.as<uint16_t>()[i] = toBf16(array.data[i]);
    break;
  }
  return tensor;
}

std::string describe(rt::ElementType type, const std::vector<int64_t> &shape) {
  std::string text = absl::StrCat(std::string(rt::nameOf(type)), "[");
  for (size_t i = 0; i < shape.size(); ++i)
    absl::StrAppend(&text, i ? ", " : "", shape[i]);
  return absl::StrCat(text, "]");
}

absl::Status checkTensor(const std::string &what, const rt::Tensor &found, rt::ElementType type,
                         const std::vector<int64_t> &shape) {
  if (found.type == type && found.shape == shape)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": expected ", describe(type, shape), ", found ",
                                                 describe(found.type, found.shape)));
}

absl::StatusOr<rt::Port> portOf(func::FuncOp function, Type type, StringAttr name, StringRef what) {
  std::string where = absl::StrCat(what.str(), " of @", function.getSymName().str());
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  if (!name || !tensor || !tensor.hasStaticShape())
    return absl::InvalidArgumentError(
        absl::StrCat(where, " needs a name (weft.name) and a tensor type with static sizes"));
  absl::StatusOr<rt::ElementType> element = elementTypeOf(tensor.getElementType());
  if (!element.ok())
    return element.status();
  return rt::Port{toString(name.getValue()), *element, {tensor.getShape().begin(), tensor.getShape().end()}};
}

absl::StatusOr<rt::Program> programOf(func::FuncOp function) {
  rt::Program program;
  program.name = toString(function.getSymName());
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto port = portOf(function, function.getArgument(i).getType(),
                       function.getArgAttrOfType<StringAttr>(i, "weft.name"), "an argument");
    if (!port.ok())
      return port.status();
    program.inputs.push_back(*std::move(port));
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto port = portOf(function, function.getResultTypes()[i],
                       function.getResultAttrOfType<StringAttr>(i, "weft.name"), "a result");
    if (!port.ok())
      return port.status();
    program.results.push_back(*std::move(port));
  }
  return program;
}

std::optional<rt::StateEntry::Role> roleOf(Role role) {
  switch (role) {
  case Role::Parameter:
    return rt::StateEntry::Role::Parameter;
  case Role::Gradient:
    return rt::StateEntry::Role::Gradient;
  case Role::Moment:
    return rt::StateEntry::Role::Moment;
  case Role::Cache:
    return rt::StateEntry::Role::Cache;
  case Role::Control:
    return rt::StateEntry::Role::Control;
  case Role::Table:
    return std::nullopt;
  }
  return std::nullopt;
}

/// The entry as the runtime knows it, at the next free offset of `executable`.
absl::Status addEntry(StateOp op, rt::StateEntry::Role role, rt::Executable &executable) {
  RankedTensorType type = op.getTensorType();
  absl::StatusOr<rt::ElementType> element = elementTypeOf(type.getElementType());
  if (!element.ok() || !type.hasStaticShape())
    return absl::InvalidArgumentError(absl::StrCat("state entry ", op.getSymName().str(),
                                                   " needs a float or int32 type with static sizes"));
  rt::StateEntry entry = toStateEntry(op);
  entry.role = role;
  entry.type = *element;
  entry.offset = executable.stateBytes;
  uint64_t bytes = type.getNumElements() * rt::sizeOf(*element);
  executable.stateBytes += (bytes + kStateAlignment - 1) / kStateAlignment * kStateAlignment;
  executable.states.push_back(std::move(entry));
  return absl::OkStatus();
}

class ReferenceMachine : public rt::Machine {
public:
  ReferenceMachine(OwningOpRef<ModuleOp> module, std::shared_ptr<MLIRContext> context)
      : context(std::move(context)), module(std::move(module)) {}

  absl::Status load() {
    program.model = module->getSymName() ? toString(*module->getSymName()) : "";
    program.target = "reference";
    for (auto entry : module->getOps<StateOp>()) {
      std::optional<rt::StateEntry::Role> role = roleOf(entry.getRole());
      states[toString(entry.getSymName())] =
          role ? Array(entry.getTensorType())
               : ropeTable(entry.getTensorType(), numberOf(entry.getInit().getA()));
      if (absl::Status added = role ? addEntry(entry, *role, program) : absl::OkStatus(); !added.ok())
        return added;
    }
    for (auto function : module->getOps<func::FuncOp>()) {
      absl::StatusOr<rt::Program> described = programOf(function);
      if (!described.ok())
        return described.status();
      program.programs.push_back(*std::move(described));
    }
    return absl::OkStatus();
  }

  const rt::Executable &executable() const override { return program; }
  absl::Status run(std::string_view name, std::span<const rt::Tensor> inputs,
                   std::span<rt::Tensor> results) override;
  absl::StatusOr<rt::Tensor> readState(std::string_view name) const override;
  absl::Status writeState(std::string_view name, const rt::Tensor &value) override;

private:
  const rt::StateEntry *entryOf(std::string_view name) const {
    for (const rt::StateEntry &entry : program.states)
      if (entry.name == name)
        return &entry;
    return nullptr;
  }

  std::shared_ptr<MLIRContext> context; // outlives the module
  OwningOpRef<ModuleOp> module;
  rt::Executable program;
  States states;
};

absl::Status ReferenceMachine::run(std::string_view name, std::span<const rt::Tensor> inputs,
                                   std::span<rt::Tensor> results) {
  auto function = module->lookupSymbol<func::FuncOp>(StringRef(name.data(), name.size()));
  auto described = llvm::find_if(program.programs, [&](const rt::Program &p) { return p.name == name; });
  if (!function || described == program.programs.end())
    return absl::NotFoundError(absl::StrCat("program ", std::string(name), " is not in this model"));
  if (inputs.size() != described->inputs.size() || results.size() != described->results.size())
    return absl::InvalidArgumentError(
        absl::StrCat("program ", std::string(name), ": expected ", described->inputs.size(), " inputs and ",
                     described->results.size(), " results, found ", inputs.size(), " and ", results.size()));
  SmallVector<Array> arrays;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const rt::Port &port = described->inputs[i];
    std::string what = absl::StrCat("input ", port.name, " of ", std::string(name));
    if (absl::Status checked = checkTensor(what, inputs[i], port.type, port.shape); !checked.ok())
      return checked;
    arrays.push_back(toArray(inputs[i]));
  }
  std::string messages;
  ScopedDiagnosticHandler collect(context.get(), [&](Diagnostic &diagnostic) {
    absl::StrAppend(&messages, messages.empty() ? "" : "; ", diagnostic.str());
    return success();
  });
  auto answers = interpret(function, arrays, states);
  if (failed(answers))
    return absl::InvalidArgumentError(absl::StrCat("program ", std::string(name), ": ", messages));
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = toTensor((*answers)[i], described->results[i].type);
  return absl::OkStatus();
}

absl::StatusOr<rt::Tensor> ReferenceMachine::readState(std::string_view name) const {
  const rt::StateEntry *entry = entryOf(name);
  if (!entry)
    return absl::NotFoundError(absl::StrCat("state entry ", std::string(name), " is not in this model"));
  return toTensor(states.find(name)->second, entry->type);
}

absl::Status ReferenceMachine::writeState(std::string_view name, const rt::Tensor &value) {
  const rt::StateEntry *entry = entryOf(name);
  if (!entry)
    return absl::NotFoundError(absl::StrCat("state entry ", std::string(name), " is not in this model"));
  std::string what = absl::StrCat("state entry ", std::string(name));
  if (absl::Status checked = checkTensor(what, value, entry->type, entry->shape); !checked.ok())
    return checked;
  states.find(name)->second = toArray(value);
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::unique_ptr<rt::Machine>> makeReferenceMachine(OwningOpRef<ModuleOp> module,
                                                                  std::shared_ptr<MLIRContext> context) {
  auto machine = std::make_unique<ReferenceMachine>(std::move(module), std::move(context));
  if (absl::Status loaded = machine->load(); !loaded.ok())
    return loaded;
  return machine;
}

} // namespace weft

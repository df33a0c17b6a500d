//===- Observe.cpp - What a module computes, on drawn inputs ---------------===//
#include "passes/Verify/Observe.h"

#include <cmath>

using namespace mlir;

namespace weft {

constexpr int64_t kDecodeOffset = 2;

std::string argumentName(FunctionOpInterface function, unsigned index) {
  auto name = function.getArgAttrOfType<StringAttr>(index, "weft.name");
  return name ? name.str() : std::to_string(index);
}

std::string resultName(FunctionOpInterface function, unsigned index) {
  auto name = llvm::dyn_cast_or_null<StringAttr>(function.getResultAttr(index, "weft.name"));
  return name ? name.str() : std::to_string(index);
}

/// Lowers the bound of the function's argument that `index` is, if it is one.
static void bound(Value index, int64_t size, std::map<std::string, int64_t> &bounds) {
  auto argument = llvm::dyn_cast<BlockArgument>(index);
  if (!argument)
    return;
  auto function = llvm::dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function)
    return;
  auto [found, fresh] = bounds.try_emplace(argumentName(function, argument.getArgNumber()), size);
  found->second = std::min(found->second, size);
}

void Inputs::learn(ModuleOp module) {
  module.walk([&](Operation *op) {
    if (auto gather = llvm::dyn_cast<GatherOp>(op))
      bound(gather.getIndex(), gather.getTable().getType().getDimSize(0), bounds);
    if (auto loss = llvm::dyn_cast<CrossEntropyOp>(op))
      bound(loss.getTargets(), loss.getLogits().getType().getShape().back(), bounds);
    if (auto loss = llvm::dyn_cast<LossHeadOp>(op)) {
      int64_t dim = loss.getX().getType().getShape().back();
      RankedTensorType table = loss.getTable().getType();
      bound(loss.getTargets(), dim == 0 ? 0 : table.getNumElements() / dim, bounds);
    }
    if (auto entry = llvm::dyn_cast<StateOp>(op))
      if (entry.getRole() == Role::Cache && entry.getTensorType().getRank() > 1) {
        int64_t places = entry.getTensorType().getDimSize(1);
        cachePlaces = cachePlaces == 0 ? places : std::min(cachePlaces, places);
      }
  });
}

std::vector<double> Inputs::uniform(StringRef stream, size_t count, double low, double high) const {
  return drawUniform(seed, ("verify/" + stream).str(), count, low, high);
}

Array Inputs::documents(RankedTensorType type, bool decoding) const {
  constexpr double kCut = 0.3;
  Array starts(type);
  if (decoding) {
    starts.data.assign(starts.data.size(), cachePlaces > kDecodeOffset ? 1 : 0);
    return starts;
  }
  int64_t places = type.getRank() ? type.getShape().back() : 1;
  std::vector<double> chance = uniform("documents", starts.data.size(), 0, 1);
  for (int64_t i = 0; i < static_cast<int64_t>(starts.data.size()); ++i)
    if (i >= places && i % places != 0) // the first row stays one document
      starts.data[i] = chance[i] < kCut ? static_cast<double>(i % places) : starts.data[i - 1];
  return starts;
}

Array Inputs::draw(StringRef name, RankedTensorType type, bool decoding) const {
  Array array(type);
  size_t count = array.data.size();
  if (type.getElementType().isInteger(32)) {
    if (name == "doc_start")
      return documents(type, decoding);
    if (name == "offset")
      array.data.assign(count, cachePlaces > kDecodeOffset ? kDecodeOffset : 0);
    else {
      auto found = bounds.find(name.str());
      double high = found == bounds.end() ? 2 : static_cast<double>(found->second);
      double low = name == "targets" ? -1 : 0;
      array.data = uniform(name, count, low, high);
      for (double &value : array.data)
        value = std::floor(value);
    }
    return array;
  }
  if (name == "inverse_count")
    array.data.assign(count, 0.01);
  else if (name.starts_with("hyper") && count == 3)
    array.data = {0.01, 1.5, 1.2}; // a rate and the corrections of the moments
  else
    array.data = uniform(name, count, -1, 1);
  return array;
}

States Inputs::state(ModuleOp module) const {
  States states;
  for (auto entry : module.getOps<StateOp>()) {
    RankedTensorType type = entry.getTensorType();
    StringRef name = entry.getSymName();
    Array array(type);
    if (entry.getInit().getKind() == InitKind::RopeTable)
      array = ropeTable(type, numberOf(entry.getInit().getA()));
    else if (entry.getRole() == Role::Control && type.getElementType().isInteger(32))
      // Windows: from one key to more than there are.
      for (double &value : array.data = uniform(name, array.data.size(), 1, 12))
        value = std::floor(value);
    else if (entry.getRole() == Role::Moment)
      array.data = uniform(name, array.data.size(), 0.01, 0.1);
    else if (entry.getRole() != Role::Parameter)
      array.data = uniform(name, array.data.size(), -0.5, 0.5);
    else if (type.getRank() < 2)
      array.data = uniform(name, array.data.size(), 0.5, 1.5);
    else {
      double reach = std::sqrt(3.0 / static_cast<double>(type.getDimSize(0)));
      array.data = uniform(name, array.data.size(), -reach, reach);
    }
    states.insert_or_assign(name.str(), std::move(array));
  }
  return states;
}

static FailureOr<SmallVector<Array>> runProgram(Operation *op, ArrayRef<Array> inputs, States &state) {
  if (auto schedule = llvm::dyn_cast<ProgramOp>(op))
    return interpretProgram(schedule, inputs, state);
  return interpret(llvm::cast<FunctionOpInterface>(op), inputs, state);
}

namespace {
struct Port {
  std::string name;
  RankedTensorType type;
};
} // namespace

static std::pair<std::vector<Port>, std::vector<std::string>> portsOf(Operation *op) {
  std::vector<Port> inputs;
  std::vector<std::string> results;
  if (auto schedule = llvm::dyn_cast<ProgramOp>(op)) {
    for (auto [name, type] : llvm::zip(schedule.getInputs(), schedule.getInputTypes()))
      inputs.push_back({llvm::cast<StringAttr>(name).str(),
                        llvm::cast<RankedTensorType>(llvm::cast<TypeAttr>(type).getValue())});
    for (Attribute name : schedule.getResults())
      results.push_back(llvm::cast<StringAttr>(name).str());
    return {inputs, results};
  }
  auto function = llvm::cast<FunctionOpInterface>(op);
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    inputs.push_back(
        {argumentName(function, i), llvm::cast<RankedTensorType>(function.getArgumentTypes()[i])});
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    results.push_back(resultName(function, i));
  return {inputs, results};
}

ProgramResult observeProgram(Operation *program, const Inputs &inputs, States state) {
  ProgramResult result;
  auto [ports, names] = portsOf(program);
  bool decoding = llvm::any_of(ports, [](const Port &port) { return port.name == "offset"; });
  result.drops = llvm::any_of(ports, [](const Port &port) { return port.name == "noise"; });
  SmallVector<Array> arrays;
  for (const Port &port : ports)
    arrays.push_back(inputs.draw(port.name, port.type, decoding));
  ScopedDiagnosticHandler collect(program->getContext(), [&](Diagnostic &diagnostic) {
    result.error += (result.error.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  auto answers = runProgram(program, arrays, state);
  if (failed(answers))
    return result;
  for (auto [name, answer] : llvm::zip(names, *answers))
    result.results.insert_or_assign(name, std::move(answer));
  result.state = std::move(state);
  return result;
}

Observation observe(ModuleOp module, const Inputs &inputs) {
  Observation observation;
  States state = inputs.state(module);
  for (Operation &op : module.getOps())
    if (llvm::isa<ProgramOp>(op) ||
        (llvm::isa<func::FuncOp>(op) && !llvm::cast<func::FuncOp>(op).isExternal()))
      observation[SymbolTable::getSymbolName(&op).str()] = observeProgram(&op, inputs, state);
  return observation;
}

} // namespace weft

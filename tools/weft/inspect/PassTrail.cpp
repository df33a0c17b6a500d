//===- PassTrail.cpp - What each pass did, while it happens ---------------===//

#include "tools/weft/inspect/PassTrail.h"

#include "tools/weft/Costs.h"

#include "passes/Schedule/Buffers.h"
#include "passes/Unroll/Scope.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Pass/Pass.h"

#include "absl/strings/str_cat.h"

#include <map>
#include <set>
#include <tuple>

using namespace mlir;
using namespace weft;
using namespace weft::inspect;

namespace {

/// Ops that name storage and move nothing.
bool movesNothing(Operation &op) {
  return op.hasTrait<OpTrait::IsTerminator>() || op.getNumOperands() == 0 ||
         isa<SetOp, SetFlatOp, ViewOp, ReshapeOp>(op);
}

} // namespace

int32_t Trail::placeOf(Location loc) {
  auto [found, isNew] = known.try_emplace(loc, 0);
  if (isNew) {
    const int32_t made = makePlace(loc);
    known[loc] = made;
    return made;
  }
  return found->second;
}

int32_t Trail::makePlace(Location loc) {
  constexpr size_t kMost = 24; // of a flat optimiser's update: all parameters
  std::set<std::tuple<int32_t, unsigned, unsigned>> seen;
  loc->walk([&](Location part) {
    if (auto place = dyn_cast<FileLineColLoc>(part))
      if (const int32_t file = fileOf(place); file >= 0)
        seen.insert({file, place.getLine(), place.getColumn()});
    return WalkResult::advance();
  });
  rt::OrderedJson value = {{"scopes", rt::OrderedJson::array()}, {"at", rt::OrderedJson::array()}};
  for (StringRef scope : scopesOf(loc))
    if (!scope.empty() && value["scopes"].size() < kMost)
      value["scopes"].push_back(addressOf(scope));
  for (const auto &[file, line, column] : seen)
    if (value["at"].size() < kMost)
      value["at"].push_back({file, line, column});
  if (seen.empty())
    return 0;
  return texts.place(rt::dumpJson(value), value);
}

int32_t Trail::fileOf(FileLineColLoc place) const {
  for (int32_t file = 0; file < sources.count(); ++file)
    if (sources.file(file).path == place.getFilename().getValue())
      return file;
  return -1;
}

/// What each line of the text costs in the first program: an op counts to the first
/// place that it was made of.
void Trail::countLines(ModuleOp programs) {
  std::map<std::pair<int32_t, unsigned>, std::pair<double, int64_t>> counted;
  for (auto function : programs.getOps<func::FuncOp>()) {
    function.walk([&](CostOpInterface op) {
      op->getLoc()->walk([&](Location part) {
        auto place = dyn_cast<FileLineColLoc>(part);
        const int32_t file = place ? fileOf(place) : -1;
        if (file < 0)
          return WalkResult::advance();
        const Cost cost = op.getCost();
        auto &[flops, ops] = counted[{file, place.getLine()}];
        flops += cost.productFlops + cost.otherFlops;
        ++ops;
        return WalkResult::interrupt();
      });
    });
    break;
  }
  lines = rt::OrderedJson::array();
  for (const auto &[place, cost] : counted)
    lines.push_back({place.first, place.second, cost.first, cost.second});
}

void Trail::capture(ModuleOp module, const std::string &name, double milliseconds) {
  AsmState::LocationMap lines;
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64);
  AsmState state(module, flags, &lines);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, state);
  Entry entry{name, milliseconds, text != last, {}, trafficOf(module)};
  if (!entry.changed) {
    entry.change = entries.back().change;
    entry.change.added = entry.change.dropped = 0;
  } else {
    std::vector<int32_t> places(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
    for (const auto &[op, at] : lines)
      if (at.first >= 1 && at.first <= places.size() && !isa<ModuleOp>(op))
        places[at.first - 1] = placeOf(op->getLoc());
    entry.change = texts.add(text, places);
  }
  entries.push_back(std::move(entry));
  last = std::move(text);
}

void TrailInstrumentation::runBeforePass(Pass *pass, Operation *op) {
  if (auto module = dyn_cast<ModuleOp>(op); module && trail.entries.empty())
    trail.capture(module, "emitted", 0);
  if (!pass->getArgument().empty())
    start = std::chrono::steady_clock::now();
}

void TrailInstrumentation::runAfterPass(Pass *pass, Operation *op) {
  const std::string name = pass->getArgument().str();
  if (name.empty())
    return;
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (!module)
    return;
  trail.capture(module, name, time.count());
  if (name == "fold-accumulations") {
    trail.flops = flopsOf(module);
    trail.countLines(module);
  }
  if (name == "weft-outline-kernels")
    trail.ledger = ledgerOf(module, trail);
}

rt::OrderedJson weft::inspect::trafficOf(ModuleOp module) {
  rt::OrderedJson traffic = rt::OrderedJson::object();
  for (Operation &program : module.getBody()->getOperations()) {
    if (!isa<func::FuncOp, ProgramOp>(program) || program.getNumRegions() != 1 ||
        program.getRegion(0).empty())
      continue;
    double bytes = 0;
    for (Operation &op : program.getRegion(0).front())
      if (!movesNothing(op))
        bytes += bytesIn(op.getOperandTypes()) + bytesIn(op.getResultTypes());
    traffic[SymbolTable::getSymbolName(&program).str()] = bytes;
  }
  return traffic;
}

double weft::inspect::bytesIn(TypeRange types) {
  double bytes = 0;
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.hasStaticShape())
      bytes += static_cast<double>(bytesOf(tensor));
  return bytes;
}

std::vector<std::string> weft::inspect::opsOf(Region &body) {
  std::vector<std::string> names;
  body.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<YieldOp, ConstantOp, FusedOp>(op))
      return;
    std::string kind = kindOf(op);
    if (names.empty() || names.back() != kind)
      names.push_back(std::move(kind));
  });
  return names;
}

namespace {

/// What a kernel's ops would read and write one by one.
struct Apart {
  double bytes = 0;
  int64_t ops = 0;
};

Apart apartOf(KernelOp kernel) {
  Apart apart;
  kernel.getBody().walk([&](Operation *op) {
    if (isa<YieldOp, ConstantOp, FusedOp>(op))
      return;
    ++apart.ops;
    apart.bytes += bytesIn(op->getOperandTypes()) + bytesIn(op->getResultTypes());
  });
  return apart;
}

} // namespace

rt::OrderedJson weft::inspect::ledgerOf(ModuleOp kernels, Trail &trail) {
  struct Row {
    int64_t calls = 0;
    std::vector<std::string> scopes;
    int32_t place = 0;
  };
  std::vector<std::pair<std::pair<std::string, std::string>, Row>> rows;
  std::map<std::pair<std::string, std::string>, size_t> rowOf;
  for (auto function : kernels.getOps<func::FuncOp>())
    function.walk([&](LaunchOp launch) {
      const std::pair<std::string, std::string> key{function.getName().str(), launch.getKernel().str()};
      auto [found, isNew] = rowOf.try_emplace(key, rows.size());
      if (isNew)
        rows.push_back({key, {0, {}, trail.placeOf(launch.getLoc())}});
      Row &row = rows[found->second].second;
      ++row.calls;
      const std::string scope = commonScope(launch.getLoc());
      row.scopes.push_back(scope.empty() ? "outside layers" : addressOf(scope));
    });
  rt::OrderedJson ledger = rt::OrderedJson::array();
  for (const auto &[key, row] : rows) {
    auto kernel = kernels.lookupSymbol<KernelOp>(key.second);
    if (!kernel)
      continue;
    const Apart apart = apartOf(kernel);
    if (apart.ops < 2)
      continue;
    ledger.push_back({{"program", key.first},
                      {"kernel", key.second},
                      {"calls", row.calls},
                      {"count", apart.ops},
                      {"ops", opsOf(kernel.getBody())},
                      {"apart", apart.bytes},
                      {"fused", bytesIn(kernel.getArgumentTypes()) + bytesIn(kernel.getResultTypes())},
                      {"scopes", row.scopes},
                      {"place", row.place}});
  }
  return ledger;
}

rt::OrderedJson weft::inspect::flopsOf(ModuleOp programs) {
  rt::OrderedJson json = rt::OrderedJson::object();
  for (auto function : programs.getOps<func::FuncOp>()) {
    std::vector<std::pair<std::string, Cost>> layers;
    std::map<std::string, size_t> index;
    function.walk([&](CostOpInterface op) {
      const std::string layer = layerOf(commonScope(op->getLoc()));
      auto [found, isNew] = index.try_emplace(layer, layers.size());
      if (isNew)
        layers.emplace_back(layer.empty() ? "outside layers" : layer, Cost());
      layers[found->second].second += op.getCost();
    });
    rt::OrderedJson rows = rt::OrderedJson::array();
    for (const auto &[layer, cost] : layers)
      rows.push_back({layer, cost.productFlops, cost.otherFlops});
    json[function.getName().str()] = std::move(rows);
  }
  return json;
}

//===- FlopsCommand.cpp - weft flops ---------------------------------------===//

#include "tools/weft/Costs.h"
#include "tools/weft/Output.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"

using namespace weft;
namespace cl = llvm::cl;

namespace {

enum class By { Layer, Kind };

/// Of one group: of the forward, and of a whole step.
struct Share {
  Cost forward, step;
};

struct Ledger {
  std::vector<std::pair<std::string, Share>> groups; // in order of the program
  Share total;

  Share &groupCalled(const std::string &name) {
    for (auto &[known, share] : groups)
      if (known == name)
        return share;
    return groups.emplace_back(name, Share()).second;
  }
  int64_t batch = 0, positions = 0, microBatches = 1;
  bool update = false; // an optimiser's part is in
};

std::string groupOf(mlir::Operation *op, By by) {
  if (by == By::Kind)
    return kindOf(op);
  std::string layer = layerOf(commonScope(op->getLoc()));
  if (!layer.empty())
    return layer;
  auto function = op->getParentOfType<mlir::func::FuncOp>();
  return function && function.getName() == "update" ? "update" : "outside layers";
}

void add(Ledger &ledger, mlir::ModuleOp module, llvm::StringRef program, By by, Cost Share::*part,
         int64_t times) {
  auto function = module.lookupSymbol<mlir::func::FuncOp>(program);
  function.walk([&](CostOpInterface op) {
    Cost cost = op.getCost();
    Share &group = ledger.groupCalled(groupOf(op, by));
    for (int64_t i = 0; i < times; ++i) {
      group.*part += cost;
      ledger.total.*part += cost;
    }
  });
}

absl::StatusOr<Ledger> ledgerOf(const Program &program, PipelineOptions options, By by) {
  Ledger ledger;
  ledger.batch = options.batch;
  ledger.positions = options.positions;
  ledger.update = program.recipe.has_value();
  ledger.microBatches = program.recipe ? program.recipe->microBatches : 1;
  std::shared_ptr<mlir::MLIRContext> context = makeContext();
  options.stage = Stage::Unrolled;
  absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> unrolled = lower(program, options, {}, *context);
  if (!unrolled.ok())
    return unrolled.status();
  add(ledger, **unrolled, "forward", by, &Share::forward, 1);
  options.stage = Stage::Programs;
  options.programs = {"micro"};
  if (ledger.update)
    options.programs.push_back("update");
  absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> programs = lower(program, options, {}, *context);
  if (!programs.ok())
    return programs.status();
  add(ledger, **programs, "micro", by, &Share::step, ledger.microBatches);
  if (ledger.update)
    add(ledger, **programs, "update", by, &Share::step, 1);
  return ledger;
}

double flopsOf(const Cost &cost) { return cost.productFlops + cost.otherFlops; }

rt::OrderedJson costJson(const Cost &cost) {
  return {{"product_flops", cost.productFlops},
          {"other_flops", cost.otherFlops},
          {"bytes_read", cost.bytesRead},
          {"bytes_written", cost.bytesWritten}};
}

void printLedger(const Program &program, const Ledger &ledger, By by) {
  double tokens = static_cast<double>(ledger.batch * ledger.positions * ledger.microBatches);
  llvm::outs() << llvm::formatv("{0}: forward of {1} x {2} positions; step of {3} micro-batch{4}{5}\n",
                                program.model.name, ledger.batch, ledger.positions, ledger.microBatches,
                                ledger.microBatches == 1 ? "" : "es",
                                ledger.update ? " and the optimiser" : ", without an optimiser");
  Table table(
      {by == By::Layer ? "layer" : "kind", "forward products", "other", "step products", "other", "share"});
  for (const auto &[name, share] : ledger.groups)
    if (flopsOf(share.forward) + flopsOf(share.step) > 0)
      table.add({name, compact(share.forward.productFlops), compact(share.forward.otherFlops),
                 compact(share.step.productFlops), compact(share.step.otherFlops),
                 llvm::formatv("{0:F1}%", 100 * flopsOf(share.step) / flopsOf(ledger.total.step)).str()});
  table.add({"-"});
  const Share &total = ledger.total;
  table.add({"total", compact(total.forward.productFlops), compact(total.forward.otherFlops),
             compact(total.step.productFlops), compact(total.step.otherFlops), ""});
  llvm::outs() << table.text()
               << llvm::formatv(
                      "one token of a step: {0}; one of a forward: {1}\n",
                      compact(flopsOf(total.step) / tokens, "FLOP"),
                      compact(flopsOf(total.forward) / static_cast<double>(ledger.batch * ledger.positions),
                              "FLOP"));
}

} // namespace

absl::StatusOr<double> weft::stepFlops(const Program &program, const PipelineOptions &options) {
  absl::StatusOr<Ledger> ledger = ledgerOf(program, options, By::Kind);
  if (!ledger.ok())
    return ledger.status();
  return flopsOf(ledger->total.step);
}

int weft::flopsCommand(int argc, const char **argv) {
  ModelFlags flags;
  cl::opt<By> by("by", cl::desc("how to group (default: layer)"), cl::init(By::Layer),
                 cl::cat(flagCategory()),
                 cl::values(clEnumValN(By::Layer, "layer", "one line a layer"),
                            clEnumValN(By::Kind, "kind", "one line an operation")));
  cl::opt<int64_t> batch("batch", cl::desc("rows (default: the recipe's micro-batch)"), cl::init(0),
                         cl::cat(flagCategory()));
  cl::opt<int64_t> positions("positions", cl::desc("positions of a row (default: the recipe's)"), cl::init(0),
                             cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("one JSON object"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv,
                  "counts the floating-point operations of a forward and of a training step, as the ops of "
                  "the IR say them",
                  "  weft flops models/gpt2.weft\n  weft flops models/gpt2.weft --by kind --json\n  weft "
                  "flops models/nano.weft --batch 1 --positions 16\n"))
    return kUsage;
  bool shaped = batch > 0 && positions > 0;
  absl::StatusOr<std::unique_ptr<Program>> program =
      loadDecided(flags.request(!shaped || !flags.recipe.empty() || hasRecipe(flags.path)));
  if (!program.ok())
    return fail(program.status());
  PipelineOptions options;
  if ((*program)->recipe)
    options = shapesOf(*(*program)->recipe);
  if (batch > 0)
    options.batch = batch;
  if (positions > 0)
    options.positions = positions;
  absl::StatusOr<Ledger> ledger = ledgerOf(**program, options, by);
  if (!ledger.ok())
    return fail(ledger.status());
  if (!json) {
    printLedger(**program, *ledger, by);
    return 0;
  }
  rt::OrderedJson groups = rt::OrderedJson::array();
  for (const auto &[name, share] : ledger->groups)
    groups.push_back({{"name", name}, {"forward", costJson(share.forward)}, {"step", costJson(share.step)}});
  printJson({{"model", (*program)->model.name},
             {"batch", ledger->batch},
             {"positions", ledger->positions},
             {"micro_batches", ledger->microBatches},
             {"optimizer", ledger->update},
             {"forward", costJson(ledger->total.forward)},
             {"step", costJson(ledger->total.step)},
             {"groups", groups}});
  return 0;
}

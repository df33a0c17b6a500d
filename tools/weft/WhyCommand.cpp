//===- WhyCommand.cpp - weft why -------------------------------------------===//
//
// From an address of the text to what became of it: parameters and the kernels
// that read them, windows of heads, kernels with their cost, and what passes
// remarked. Ops are found by the scope that their locations carry.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Costs.h"
#include "tools/weft/Loaded.h"
#include "tools/weft/Output.h"
#include "tools/weft/Why.h"
#include "tools/weft/WindowPlans.h"

#include "passes/Codegen/Codegen.h"
#include "passes/Unroll/Scope.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <limits>
#include <set>
#include <tuple>

using namespace weft;
using namespace weft::why;
namespace cl = llvm::cl;

namespace {

/// Places of the text behind `loc`, in order.
Names placesOf(mlir::Location loc) {
  std::set<std::tuple<std::string, unsigned, unsigned>> seen;
  loc->walk([&](mlir::Location part) {
    if (auto place = llvm::dyn_cast<mlir::FileLineColLoc>(part))
      seen.insert({place.getFilename().str(), place.getLine(), place.getColumn()});
    return mlir::WalkResult::advance();
  });
  Names names;
  for (const auto &[file, line, column] : seen)
    names.push_back(absl::StrCat(file, ":", line, ":", column));
  return names;
}

/// Original ops of a kernel in order, neighbours of one kind once.
Names computesOf(KernelOp kernel) {
  Names names;
  if (gemmOf(kernel))
    return {"contract, through BLAS"};
  kernel.getBody().walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation *op) {
    if (llvm::isa<YieldOp, ConstantOp, FusedOp>(op))
      return;
    std::string kind = kindOf(op);
    if (names.empty() || names.back() != kind)
      names.push_back(kind);
  });
  return names;
}

std::string typeText(mlir::RankedTensorType type) {
  Names axes;
  for (mlir::StringAttr axis : axesOf(type))
    axes.push_back(axis.getValue().str());
  return absl::StrCat("[", absl::StrJoin(axes, ", "), "] = [", absl::StrJoin(type.getShape(), ", "), "]");
}

void addOnce(Names &names, std::string name) {
  if (std::find(names.begin(), names.end(), name) == names.end())
    names.push_back(std::move(name));
}

/// Asks the IR about one address.
class Inquiry {
public:
  Inquiry(const Address &address, const rt::WindowControl *control) : address(address), control(control) {}

  void addAttends(mlir::ModuleOp unrolled) {
    std::set<std::string> numbered; // sites with heads that left: the IR counts the others alone
    for (size_t site = 0; control && site < control->plan().sites.size(); ++site)
      if (const rt::WindowSite &of = control->plan().sites[site];
          !of.left.empty() && address.covers(of.path)) {
        addChosen(of.path);
        numbered.insert(of.path);
      }
    unrolled.walk([&](AttendOp op) {
      std::string scope = commonScope(op.getLoc());
      if (numbered.contains(scope))
        return;
      auto windows = op.getWindows() ? op.getWindows().getDefiningOp<IntegersOp>() : IntegersOp();
      if (address.covers(scope) && op.getWindows() && !windows)
        addChosen(scope);
      if (!windows || !address.covers(scope))
        return;
      AttendAnswer attend{scope, {}, "", control ? control->plan().positions : 0, {}, {}, {}};
      for (int32_t window : windows.getValues())
        attend.windows.push_back(
            window == std::numeric_limits<int32_t>::max() ? std::numeric_limits<int64_t>::max() : window);
      answer.attends.push_back(std::move(attend));
    });
  }

  void addParameters(mlir::ModuleOp kernels) {
    for (StateOp state : kernels.getOps<StateOp>())
      if (state.getRole() == Role::Parameter && address.covers(state.getSymName())) {
        parameterOf[state.getSymName()] = answer.parameters.size();
        answer.parameters.push_back({state.getSymName().str(), typeText(state.getTensorType()), {}, {}});
      }
  }

  void addProgram(mlir::func::FuncOp program, mlir::ModuleOp module) {
    std::string name = program.getName().str();
    program.walk([&](mlir::Operation *op) {
      if (auto get = llvm::dyn_cast<GetOp>(op))
        addReaders(name, get.getState(), op);
      if (auto get = llvm::dyn_cast<GetFlatOp>(op))
        for (mlir::Attribute state : get.getStates())
          addReaders(name, llvm::cast<mlir::FlatSymbolRefAttr>(state).getValue(), op);
      if (auto set = llvm::dyn_cast<SetOp>(op))
        addGradient(name, set);
      if (auto launch = llvm::dyn_cast<LaunchOp>(op))
        addKernel(name, launch, module.lookupSymbol<KernelOp>(launch.getKernel()));
    });
  }

  void addRemark(const std::string &place, mlir::Location loc, const std::string &text) {
    llvm::SmallVector<llvm::StringRef> scopes = scopesOf(loc);
    bool ofAll = llvm::is_contained(scopes, "");
    if (ofAll || llvm::any_of(scopes, [&](llvm::StringRef scope) { return address.covers(scope); }))
      addOnce(answer.remarks, place + text + (ofAll ? " (of the whole model)" : ""));
  }

  Answer answer;

private:
  /// An attend that reads its windows from state: those of the checkpoint, or as they start.
  void addChosen(const std::string &scope) {
    for (size_t site = 0; control && site < control->plan().sites.size(); ++site) {
      if (control->plan().sites[site].path != scope)
        continue;
      AttendAnswer attend{scope, {}, "", control->plan().positions, {}, {}, {}};
      if (chosenLater(scope))
        attend.origin = "windows change as the run goes on";
      for (const auto &[head, window] : control->plan().sites[site].left)
        (window > 0 ? attend.frozen : attend.pruned).push_back(head);
      attend.firstPlaces = control->plan().sites[site].placesOfHeads();
      for (int64_t window : control->windows()[site])
        attend.windows.push_back(window >= rt::kNoBound ? std::numeric_limits<int64_t>::max() : window);
      for (const rt::WindowControl::Layer &layer : control->layers())
        if (layer.site == site)
          for (int64_t head : layer.controller.heads())
            if (const auto &feature = layer.controller.state().smoothed[static_cast<size_t>(head)])
              attend.features.emplace_back(head, *feature);
      answer.attends.push_back(std::move(attend));
    }
  }

  /// Whether a controller still decides for heads of `site`.
  bool chosenLater(const std::string &site) const {
    const std::vector<rt::WindowSite> &sites = control->plan().sites;
    return llvm::any_of(control->plan().rules, [&](const rt::WindowRule &rule) {
      for (size_t i = 0; i < sites.size(); ++i)
        if (sites[i].path == site &&
            llvm::any_of(rule.heads[i], [&](int64_t head) { return !sites[i].left.contains(head); }))
          return rule.kind == rt::WindowRule::Kind::Adaptive || rule.redraw || rule.from > 0;
      return false;
    });
  }

  void addReaders(const std::string &program, llvm::StringRef state, mlir::Operation *get) {
    auto found = parameterOf.find(state);
    if (found == parameterOf.end())
      return;
    for (mlir::Operation *user : get->getUsers())
      if (auto launch = llvm::dyn_cast<LaunchOp>(user))
        addOnce(answer.parameters[found->second].readers, program + ": " + launch.getKernel().str());
  }

  void addGradient(const std::string &program, SetOp set) {
    llvm::StringRef state = set.getState();
    auto launch = set.getValue().getDefiningOp<LaunchOp>();
    if (!launch || !state.consume_front("grad/"))
      return;
    auto found = parameterOf.find(state);
    if (found != parameterOf.end())
      addOnce(answer.parameters[found->second].gradient, program + ": " + launch.getKernel().str());
  }

  void addKernel(const std::string &program, LaunchOp launch, KernelOp kernel) {
    KernelAnswer entry{program,
                       launch.getKernel().str(),
                       1,
                       costOf(kernel.getBody()),
                       computesOf(kernel),
                       placesOf(launch.getLoc()),
                       {}};
    bool inside = false;
    for (llvm::StringRef scope : scopesOf(launch.getLoc()))
      if (address.covers(scope))
        inside = true;
      else
        addOnce(entry.also, scope.empty() ? "outside layers" : addressOf(scope));
    if (!inside)
      return;
    // A fused body keeps its inner values in registers: only operands and results are memory.
    entry.cost.bytesRead = bytesOf(launch.getOperandTypes());
    entry.cost.bytesWritten = bytesOf(launch.getResultTypes());
    for (KernelAnswer &known : answer.kernels)
      if (known.program == program && known.kernel == entry.kernel && known.also == entry.also &&
          known.places == entry.places) {
        ++known.calls;
        return;
      }
    answer.kernels.push_back(std::move(entry));
  }

  static double bytesOf(mlir::TypeRange types) {
    double bytes = 0;
    for (mlir::Type type : types)
      if (auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type))
        bytes += static_cast<double>(tensor.getNumElements()) * tensor.getElementTypeBitWidth() / 8;
    return bytes;
  }

  const Address &address;
  const rt::WindowControl *control;
  llvm::StringMap<size_t> parameterOf;
};

//===----------------------------------------------------------------------===//
// The address
//===----------------------------------------------------------------------===//

absl::StatusOr<Address> parseAddress(const std::string &text) {
  Address address{text, {}};
  size_t heads = text.rfind(".heads[");
  if (heads == std::string::npos)
    return address;
  address.path = text.substr(0, heads);
  llvm::StringRef list = llvm::StringRef(text).drop_front(heads + 7);
  llvm::SmallVector<llvm::StringRef> parts;
  bool good = list.consume_back("]");
  list.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [low, high] = part.trim().split("..");
    int64_t first = 0, last = 0;
    good = good && !low.getAsInteger(10, first) && !(high.empty() ? low : high).getAsInteger(10, last) &&
           first >= 0 && first <= last && last < 65536;
    for (int64_t head = first; good && head <= last; ++head)
      address.heads.insert(head);
  }
  if (!good)
    return absl::InvalidArgumentError(
        absl::StrCat(text, ": expected heads as numbers, as in block[3].attn.heads[0..2, 5]"));
  return address;
}

/// Every address of the model: scopes and parameters.
Names addressesOf(const lang::Model &model) {
  Names all;
  for (const lang::ParameterInfo &info : lang::parametersOf(model))
    for (llvm::StringRef path = info.path; !path.empty(); path = path.rsplit('.').first) {
      addOnce(all, addressOf(path));
      if (!path.contains('.'))
        break;
    }
  return all;
}

absl::Status checkAddress(const Address &address, const lang::Model &model, const Answer &answer) {
  if (answer.parameters.empty() && answer.kernels.empty() && answer.attends.empty())
    return absl::NotFoundError(absl::StrCat("why ", address.path, ": model ", model.name,
                                            " has no such layer, branch or parameter",
                                            didYouMean(address.path, addressesOf(model))));
  for (const AttendAnswer &attend : answer.attends)
    for (int64_t head : address.heads)
      if (head >= static_cast<int64_t>(attend.windows.size()))
        return absl::OutOfRangeError(absl::StrCat("why ", addressOf(attend.scope), ".heads[", head,
                                                  "]: there are ", attend.windows.size(),
                                                  " heads, counted from 0"));
  return absl::OkStatus();
}

absl::StatusOr<Answer> answerFor(const Program &program, PipelineOptions options, const Address &address,
                                 const rt::WindowControl *control) {
  Inquiry inquiry(address, control);
  std::shared_ptr<mlir::MLIRContext> context = makeContext();
  context->getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Remark)
      return mlir::failure(); // the next handler prints it
    Names places = placesOf(diagnostic.getLocation());
    inquiry.addRemark(places.empty() ? "" : places.front() + ": ", diagnostic.getLocation(),
                      diagnostic.str());
    return mlir::success();
  });
  options.stage = Stage::Unrolled;
  absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> unrolled = lower(program, options, {}, *context);
  if (!unrolled.ok())
    return unrolled.status();
  inquiry.addAttends(**unrolled);
  options.stage = Stage::Kernels;
  absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> kernels = lower(program, options, {}, *context);
  if (!kernels.ok())
    return kernels.status();
  inquiry.addParameters(**kernels);
  for (mlir::func::FuncOp function : (*kernels)->getOps<mlir::func::FuncOp>())
    inquiry.addProgram(function, **kernels);
  if (absl::Status status = checkAddress(address, program.model, inquiry.answer); !status.ok())
    return status;
  return std::move(inquiry.answer);
}

} // namespace

int weft::whyCommand(int argc, const char **argv) {
  ModelFlags flags;
  cl::opt<std::string> where(cl::Positional, cl::Required, cl::desc("ADDRESS"), cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("one JSON object"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "what the compiler did with a layer, a branch, a parameter or heads, and why",
                  "  weft why models/gpt2.weft 'block[3].attn'\n  weft why models/gpt2.weft "
                  "'block[3].attn.heads[5]' --plan "
                  "models/plans.weft:listed\n  weft why models/gpt2.weft 'block[..].ffn.up' --json\n"))
    return kUsage;
  absl::StatusOr<Address> address = parseAddress(where);
  if (!address.ok())
    return fail(address.status());
  const bool text = isModelPath(flags.path);
  Request request = flags.request(!text || !flags.recipe.empty() || hasRecipe(flags.path));
  absl::StatusOr<LoadedText> loaded = loadText(request);
  if (!loaded.ok())
    return fail(loaded.status());
  const std::unique_ptr<Program> *program = &loaded->program;
  absl::StatusOr<std::unique_ptr<rt::WindowControl>> control = recallWindows(**program, loaded->checkpoint);
  if (!control.ok())
    return fail(control.status());
  PipelineOptions options;
  if ((*program)->recipe) {
    options = shapesOf(*(*program)->recipe);
    options.programs = {"micro", "update", "eval"};
  }
  absl::StatusOr<Answer> answer = answerFor(**program, options, *address, control->get());
  if (!answer.ok())
    return fail(answer.status());
  answer->address = where;
  if (json)
    printJson(answerJson(*answer));
  else
    printAnswer(*answer, *address, flags.path);
  return 0;
}

//===- WhyCommand.cpp - weft why -------------------------------------------===//
//
// From an address of the text to what became of it: parameters and the kernels
// that read them, windows of heads, kernels with their cost, and what passes
// remarked. Ops are found by the scope that their locations carry.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Costs.h"
#include "tools/weft/Output.h"

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
namespace cl = llvm::cl;

namespace {

using Names = std::vector<std::string>;

struct ParameterAnswer {
  std::string path, type;
  Names readers, gradient; // PROGRAM: kernel
};

struct AttendAnswer {
  std::string scope;
  std::vector<int64_t> windows; // by head; INT64_MAX: full
};

/// Equal calls of one program.
struct KernelAnswer {
  std::string program, kernel;
  int64_t calls = 0;
  Cost cost; // of one call
  Names computes, places, also;
};

struct Answer {
  std::string address;
  std::vector<ParameterAnswer> parameters;
  std::vector<AttendAnswer> attends;
  std::vector<KernelAnswer> kernels;
  Names remarks;
};

/// `block[3].attn.heads[0..2]`: the branch, and the heads of it (empty: all).
struct Address {
  std::string path;
  std::set<int64_t> heads;

  bool covers(llvm::StringRef scope) const {
    return !scope.empty() && lang::addressCovers(path, std::string_view(scope.data(), scope.size()));
  }
};

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
  explicit Inquiry(const Address &address) : address(address) {}

  void addAttends(mlir::ModuleOp unrolled) {
    unrolled.walk([&](AttendOp op) {
      std::string scope = commonScope(op.getLoc());
      auto windows = op.getWindows() ? op.getWindows().getDefiningOp<IntegersOp>() : IntegersOp();
      if (!windows || !address.covers(scope))
        return;
      AttendAnswer attend{scope, {}};
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

absl::StatusOr<Answer> answerFor(const Program &program, PipelineOptions options, const Address &address) {
  Inquiry inquiry(address);
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

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::string windowText(int64_t window) {
  return window == std::numeric_limits<int64_t>::max() ? "full" : std::to_string(window);
}

/// Windows by head, equal neighbours as a range: `heads 0..3 full, 4 256`.
std::string windowsText(const AttendAnswer &attend, const std::set<int64_t> &heads) {
  Names parts;
  for (size_t head = 0; head < attend.windows.size(); ++head) {
    if (!heads.empty() && !heads.contains(static_cast<int64_t>(head)))
      continue;
    size_t last = head;
    while (last + 1 < attend.windows.size() && attend.windows[last + 1] == attend.windows[head] &&
           (heads.empty() || heads.contains(static_cast<int64_t>(last + 1))))
      ++last;
    parts.push_back(absl::StrCat(head == last ? "head " : "heads ", head,
                                 head == last ? "" : absl::StrCat("..", last), ": ",
                                 windowText(attend.windows[head])));
    head = last;
  }
  return absl::StrJoin(parts, ", ");
}

void printAnswer(const Answer &answer, const Address &address, const std::string &file) {
  llvm::raw_ostream &out = llvm::outs();
  // Most places lie in the model's own file: there the line says enough.
  auto shortened = [&](Names places) {
    for (std::string &place : places)
      if (place.starts_with(file + ":"))
        place.erase(0, file.size() + 1);
    return absl::StrJoin(places, ", ");
  };
  for (const ParameterAnswer &parameter : answer.parameters) {
    out << "parameter " << addressOf(parameter.path) << " : " << parameter.type << "\n";
    for (const std::string &reader : parameter.readers)
      out << "  read by " << reader << "\n";
    for (const std::string &kernel : parameter.gradient)
      out << "  gradient from " << kernel << "\n";
  }
  for (const AttendAnswer &attend : answer.attends)
    out << "attend in " << addressOf(attend.scope) << ", windows: " << windowsText(attend, address.heads)
        << "\n";
  if (!answer.kernels.empty()) {
    Table table({"kernel", "program", "calls", "FLOPs", "read", "written", "computes"}, {0, 1, 6});
    for (const KernelAnswer &kernel : answer.kernels)
      table.add(
          {kernel.kernel, kernel.program, std::to_string(kernel.calls),
           compact(kernel.cost.productFlops + kernel.cost.otherFlops), compact(kernel.cost.bytesRead, "B"),
           compact(kernel.cost.bytesWritten, "B"),
           absl::StrCat(absl::StrJoin(kernel.computes, " "), "  (", shortened(kernel.places),
                        kernel.also.empty() ? "" : absl::StrCat("; with ", absl::StrJoin(kernel.also, ", ")),
                        ")")});
    out << "kernels, with FLOPs and bytes of one call and the places in " << file << " that they compute:\n"
        << table.text();
  }
  for (const std::string &remark : answer.remarks)
    out << "remark: " << remark << "\n";
}

rt::OrderedJson answerJson(const Answer &answer) {
  rt::OrderedJson json = {{"address", answer.address}};
  json["parameters"] = rt::OrderedJson::array();
  for (const ParameterAnswer &parameter : answer.parameters)
    json["parameters"].push_back({{"name", parameter.path},
                                  {"type", parameter.type},
                                  {"read_by", parameter.readers},
                                  {"gradient_from", parameter.gradient}});
  json["attends"] = rt::OrderedJson::array();
  for (const AttendAnswer &attend : answer.attends) {
    rt::OrderedJson windows = rt::OrderedJson::array();
    for (int64_t window : attend.windows)
      windows.push_back(window == std::numeric_limits<int64_t>::max() ? rt::OrderedJson("full")
                                                                      : rt::OrderedJson(window));
    json["attends"].push_back({{"scope", attend.scope}, {"windows", windows}});
  }
  json["kernels"] = rt::OrderedJson::array();
  for (const KernelAnswer &kernel : answer.kernels)
    json["kernels"].push_back({{"kernel", kernel.kernel},
                               {"program", kernel.program},
                               {"calls", kernel.calls},
                               {"product_flops", kernel.cost.productFlops},
                               {"other_flops", kernel.cost.otherFlops},
                               {"bytes_read", kernel.cost.bytesRead},
                               {"bytes_written", kernel.cost.bytesWritten},
                               {"computes", kernel.computes},
                               {"places", kernel.places},
                               {"shared_with", kernel.also}});
  json["remarks"] = answer.remarks;
  return json;
}

} // namespace

int weft::whyCommand(int argc, const char **argv) {
  ModelFlags flags;
  cl::opt<std::string> text(cl::Positional, cl::Required, cl::desc("ADDRESS"), cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("one JSON object"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "what the compiler did with a layer, a branch, a parameter or heads, and why",
                  "  weft why models/gpt2.weft 'block[3].attn'\n  weft why models/gpt2.weft "
                  "'block[3].attn.heads[5]' --plan "
                  "models/plans.weft:listed\n  weft why models/gpt2.weft 'block[..].ffn.up' --json\n"))
    return kUsage;
  absl::StatusOr<Address> address = parseAddress(text);
  if (!address.ok())
    return fail(address.status());
  absl::StatusOr<std::unique_ptr<Program>> program =
      loadProgram(flags.request(!flags.recipe.empty() || hasRecipe(flags.path)));
  if (!program.ok())
    return fail(program.status());
  PipelineOptions options;
  if ((*program)->recipe) {
    options = shapesOf(*(*program)->recipe);
    options.programs = {"micro", "update", "eval"};
  }
  absl::StatusOr<Answer> answer = answerFor(**program, options, *address);
  if (!answer.ok())
    return fail(answer.status());
  answer->address = text;
  if (json)
    printJson(answerJson(*answer));
  else
    printAnswer(*answer, *address, flags.path);
  return 0;
}

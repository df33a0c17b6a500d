//===- FormCalibrate.cpp - What calibration reads of each head ------------===//
#include "passes/Differentiate/Programs.h"

#include "dialects/Weft/Gradients.h"
#include "passes/Unroll/Scope.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace weft {
namespace {

/// The attends of `program` by the path of the branch they stand in.
FailureOr<SmallVector<std::pair<std::string, AttendOp>>> attendsOf(func::FuncOp program) {
  SmallVector<std::pair<std::string, AttendOp>> found;
  for (auto attend : bodyOf(program).getOps<AttendOp>()) {
    SmallVector<StringRef> scopes = scopesOf(attend.getLoc());
    std::string site = scopes.empty() ? "" : scopes.front().str();
    if (llvm::any_of(found, [&](const auto &other) { return other.first == site; }))
      return attend.emitError() << "the second attend in '" << site
                                << "': calibration measures one in a branch; put it into a branch of its own";
    found.emplace_back(site, attend);
  }
  return found;
}

/// q times the scale of the scores, so that they are q k.
Value scaledQuery(AttendOp attend) {
  OpBuilder builder(attend->getContext());
  builder.setInsertionPointAfter(attend);
  auto type = cast<RankedTensorType>(attend.getQ().getType());
  Location loc = namedLocation("calibrate", attend.getLoc());
  Value scale = constantOf(builder, loc, type, numberOf(attend.getScale()));
  return binary(builder, loc, BinaryFn::Mul, attend.getQ(), scale);
}

/// What a program gives from now on, by name.
class NamedResults {
public:
  void add(Value value, const Twine &name) {
    values.push_back(value);
    Builder builder(value.getContext());
    names.push_back(builder.getDictionaryAttr(builder.getNamedAttr(kNameAttr, builder.getStringAttr(name))));
  }
  /// In place of the results that `program` has; what only they needed goes.
  void replaceIn(func::FuncOp program) {
    bodyOf(program).getTerminator()->setOperands(values);
    program.setType(Builder(program.getContext())
                        .getFunctionType(program.getArgumentTypes(), ValueRange(values).getTypes()));
    program.setAllResultAttrs(names);
    eraseDeadOps(bodyOf(program));
  }

private:
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> names;
};

} // namespace

LogicalResult formCalibrate(func::FuncOp forward, bool gradient) {
  func::FuncOp program =
      cloneProgram(forward, gradient ? "calibrate_gradient" : "calibrate", [](unsigned) { return true; });
  FailureOr<SmallVector<std::pair<std::string, AttendOp>>> attends = attendsOf(program);
  if (failed(attends))
    return failure();
  NamedResults results;
  if (gradient)
    results.add(resultCalled(program, "loss"), "loss_sum");
  for (auto &[site, attend] : *attends) {
    if (gradient) {
      results.add(attend.getOut(), site + ".out");
      continue;
    }
    results.add(scaledQuery(attend), site + ".q");
    results.add(attend.getK(), site + ".k");
    results.add(attend.getV(), site + ".v");
  }
  results.replaceIn(program);
  removeDropout(program);
  if (!gradient)
    eraseUnusedArguments(program, {"targets"});
  return success();
}

namespace {

/// The statistics of `attend`, whose pattern comes in as SITE.a, SITE.r and SITE.z.
PatternStatisticsOp statisticsOf(func::FuncOp program, AttendOp attend, StringRef site, Value documents,
                                 Value reach) {
  OpBuilder builder(attend->getContext());
  RankedTensorType q = tensorType(attend.getQ());
  auto typeOf = [&](StringRef axis, int64_t size) {
    return namedTensor({builder.getStringAttr("live_head"), builder.getStringAttr(axis)},
                       {headCount(q), size}, q.getElementType());
  };
  RankedTensorType table = typeOf("place", q.getDimSize(1));
  auto pattern = [&](StringRef name) { return addArgument(program, (site + name).str(), table); };
  Value a = pattern(".a"), r = pattern(".r"), z = pattern(".z");
  builder.setInsertionPointAfter(attend);
  return PatternStatisticsOp::create(builder, namedLocation("calibrate", attend.getLoc()),
                                     {table, table, typeOf("sum", kPatternSums)}, attend.getQ(),
                                     attend.getK(), attend.getLse(), attend.getWindows(), documents, reach, a,
                                     r, z, attend.getKvOf(), attend.getScaleAttr());
}

} // namespace

LogicalResult formStatistics(func::FuncOp forward) {
  func::FuncOp program = cloneProgram(forward, "calibrate_statistics", [](unsigned) { return true; });
  FailureOr<SmallVector<std::pair<std::string, AttendOp>>> attends = attendsOf(program);
  if (failed(attends))
    return failure();
  NamedResults results;
  Value documents, reach;
  for (auto &[site, attend] : *attends) {
    if (!documents) {
      RankedTensorType q = tensorType(attend.getQ());
      Type whole = IntegerType::get(program.getContext(), 32);
      const int64_t places = q.getDimSize(1);
      documents = addArgument(program, "documents", RankedTensorType::get({q.getDimSize(0) * places}, whole));
      reach = addArgument(program, "reach", RankedTensorType::get({places}, whole));
    }
    PatternStatisticsOp found = statisticsOf(program, attend, site, documents, reach);
    results.add(found.getColumns(), site + ".columns");
    results.add(found.getDiagonals(), site + ".diagonals");
    results.add(found.getSums(), site + ".sums");
  }
  results.replaceIn(program);
  removeDropout(program);
  eraseUnusedArguments(program, {"targets"});
  return success();
}

namespace {

/// The stream behind a branch: `x += branch ...` adds outside it what the branch gives.
struct Replay {
  Value stream, replaced; // with the attend's own output, and with `mixed`
};

/// Copies what `attend` goes through up to the stream, with `mixed` in its place.
FailureOr<Replay> replay(AttendOp attend, StringRef site, Value mixed) {
  IRMapping mapping;
  mapping.map(attend.getOut(), mixed);
  for (Operation *op = attend->getNextNode(); op; op = op->getNextNode()) {
    if (llvm::none_of(op->getOperands(), [&](Value operand) { return mapping.contains(operand); }))
      continue;
    const bool inside = llvm::is_contained(scopesOf(op->getLoc()), site);
    auto add = dyn_cast<BinaryOp>(op);
    if (!inside && (!add || add.getFn() != BinaryFn::Add))
      break;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Operation *copy = builder.clone(*op, mapping);
    if (!inside)
      return Replay{op->getResult(0), copy->getResult(0)};
    op = copy;
  }
  return attend.emitError() << "'" << site
                            << "' is not added to a stream: `by = residual_cosine` needs `x += branch ...`";
}

} // namespace

LogicalResult formBranches(func::FuncOp forward) {
  func::FuncOp program = cloneProgram(forward, "calibrate_branch", [](unsigned) { return true; });
  removeDropout(program);
  FailureOr<SmallVector<std::pair<std::string, AttendOp>>> attends = attendsOf(program);
  if (failed(attends))
    return failure();
  NamedResults results;
  for (auto &[site, attend] : *attends) {
    Value mixed = addArgument(program, site + ".mixed", attend.getOut().getType());
    FailureOr<Replay> found = replay(attend, site, mixed);
    if (failed(found))
      return failure();
    results.add(attend.getOut(), site + ".out");
    results.add(found->stream, site + ".stream");
    results.add(found->replaced, site + ".replaced");
  }
  results.replaceIn(program);
  eraseUnusedArguments(program, {"targets"});
  return success();
}

void addGates(func::FuncOp program, llvm::function_ref<Value(Value)> gradientOf) {
  Operation *terminator = bodyOf(program).getTerminator();
  OpBuilder builder(terminator);
  NamedResults results;
  for (unsigned i = 0, e = terminator->getNumOperands(); i < e; ++i) {
    Value value = terminator->getOperand(i);
    StringRef name = resultName(program, i);
    if (!name.consume_back(".out")) {
      results.add(value, name);
      continue;
    }
    Value gradient = gradientOf(value);
    if (!gradient) // nothing of the loss goes through it
      continue;
    RankedTensorType type = tensorType(value);
    Location loc = namedLocation("calibrate", value.getLoc());
    results.add(SumToOp::create(builder, loc,
                                namedTensor(axesOf(type).drop_front(2), type.getShape().drop_front(2),
                                            type.getElementType()),
                                binary(builder, loc, BinaryFn::Mul, value, gradient), Value()),
                name + ".gate");
  }
  results.replaceIn(program);
}

} // namespace weft

//===- FormCalibrate.cpp - What calibration reads of each head ------------===//
#include "passes/Differentiate/Programs.h"

#include "dialects/Weft/Gradients.h"
#include "passes/Unroll/Scope.h"

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

} // namespace

LogicalResult formCalibrate(func::FuncOp forward, bool gradient) {
  func::FuncOp program =
      cloneProgram(forward, gradient ? "calibrate_gradient" : "calibrate", [](unsigned) { return true; });
  FailureOr<SmallVector<std::pair<std::string, AttendOp>>> attends = attendsOf(program);
  if (failed(attends))
    return failure();
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> names;
  Builder builder(program.getContext());
  auto add = [&](Value value, const Twine &name) {
    results.push_back(value);
    names.push_back(builder.getDictionaryAttr(builder.getNamedAttr(kNameAttr, builder.getStringAttr(name))));
  };
  if (gradient)
    add(resultCalled(program, "loss"), "loss_sum");
  for (auto &[site, attend] : *attends) {
    if (gradient) {
      add(attend.getOut(), site + ".out");
      continue;
    }
    add(scaledQuery(attend), site + ".q");
    add(attend.getK(), site + ".k");
  }
  bodyOf(program).getTerminator()->setOperands(results);
  program.setType(builder.getFunctionType(program.getArgumentTypes(), ValueRange(results).getTypes()));
  program.setAllResultAttrs(names);
  eraseDeadOps(bodyOf(program));
  removeDropout(program);
  if (!gradient)
    eraseUnusedArguments(program, {"targets"});
  return success();
}

void addOutputGradients(func::FuncOp program, llvm::function_ref<Value(Value)> gradientOf) {
  Operation *terminator = bodyOf(program).getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  SmallVector<DictionaryAttr> names;
  program.getAllResultAttrs(names);
  Builder builder(program.getContext());
  for (unsigned i = 0, e = results.size(); i < e; ++i) {
    StringRef name = resultName(program, i);
    Value gradient = name.consume_back(".out") ? gradientOf(results[i]) : Value();
    if (!gradient)
      continue;
    results.push_back(gradient);
    names.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr(kNameAttr, builder.getStringAttr(name + ".dout"))));
  }
  terminator->setOperands(results);
  program.setType(builder.getFunctionType(program.getArgumentTypes(), ValueRange(results).getTypes()));
  program.setAllResultAttrs(names);
}

} // namespace weft

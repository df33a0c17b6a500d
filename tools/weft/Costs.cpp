//===- Costs.cpp - What parts of a model cost -----------------------------===//

#include "tools/weft/Costs.h"

#include "tools/weft/Session.h"

#include "frontend/Parser.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace weft;

Cost weft::costOf(Region &body) {
  Cost cost;
  body.walk([&](CostOpInterface op) { cost += op.getCost(); });
  return cost;
}

std::string weft::addressOf(StringRef path) {
  std::string address;
  SmallVector<StringRef> steps;
  path.split(steps, '.', -1, /*KeepEmpty=*/false);
  for (StringRef step : steps)
    if (llvm::isDigit(step.front()))
      address += "[" + step.str() + "]";
    else
      address += (address.empty() ? "" : ".") + step.str();
  return address;
}

std::string weft::layerOf(StringRef scope) {
  std::string address = addressOf(scope);
  size_t close = address.find(']');
  return close == std::string::npos ? "" : address.substr(0, close + 1);
}

std::string weft::kindOf(Operation *op) {
  if (auto unary = dyn_cast<UnaryOp>(op))
    return stringifyUnaryFn(unary.getFn()).str();
  if (auto binary = dyn_cast<BinaryOp>(op))
    return stringifyBinaryFn(binary.getFn()).str();
  return op->getName().stripDialect().str();
}

bool weft::hasRecipe(const std::string &path) {
  lang::SourceFiles sources;
  lang::Diagnostics diagnostics;
  Request request;
  setPath(request, path);
  lang::ast::File file = lang::parseFile(request.path, sources, diagnostics);
  return llvm::any_of(file.trains, [&](const lang::ast::Train &train) {
    return llvm::any_of(file.models, [&](const lang::ast::Model &model) {
      return model.name.text == train.model.text &&
             (request.model.empty() || model.name.text == request.model);
    });
  });
}

//===- Loss.cpp - Cross entropy, alone and with the output table -----------===//
#include "dialects/Weft/Classes.h"
#include "dialects/Weft/Interpret/Frame.h"

#include <cmath>

using namespace mlir;

namespace weft::interp {

namespace {

struct LossSettings {
  double z, smoothing;
};

/// The weight of each target, in the targets' order; ones without a weight.
std::vector<double> weightsOf(Value weight, Value targets, const Frame &frame) {
  if (!weight)
    return std::vector<double>(frame[targets].data.size(), 1.0);
  return arrange(frame[weight], weight.getType(), namesOf(targets.getType()), shapeOf(targets.getType()));
}

LogicalResult checkTargets(Operation *op, const Array &targets, int64_t vocab) {
  for (auto [place, target] : llvm::enumerate(targets.data))
    if (target < -1 || target >= static_cast<double>(vocab))
      return op->emitError() << "target " << static_cast<int64_t>(target) << " at place " << place
                             << " is outside a vocabulary of " << vocab;
  return success();
}

double logSum(const double *x, int64_t vocab) {
  double greatest = *std::max_element(x, x + vocab), sum = 0;
  for (int64_t v = 0; v < vocab; ++v)
    sum += std::exp(x[v] - greatest);
  return greatest + std::log(sum);
}

double rowLoss(const double *x, int64_t vocab, int64_t target, double weight, LossSettings s) {
  if (target < 0)
    return 0;
  double lse = logSum(x, vocab), mean = 0;
  for (int64_t v = 0; v < vocab; ++v)
    mean += x[v] / static_cast<double>(vocab);
  return weight * (lse - (1 - s.smoothing) * x[target] - s.smoothing * mean + s.z * lse * lse);
}

/// d lse / dx = p, so d(lse + z lse^2) / dx = p (1 + 2 z lse).
void rowGrad(const double *x, int64_t vocab, int64_t target, double weight, LossSettings s, double *dx) {
  std::fill_n(dx, vocab, 0.0);
  if (target < 0)
    return;
  double lse = logSum(x, vocab);
  for (int64_t v = 0; v < vocab; ++v)
    dx[v] = weight * (std::exp(x[v] - lse) * (1 + 2 * s.z * lse) - s.smoothing / static_cast<double>(vocab));
  dx[target] -= weight * (1 - s.smoothing);
}

/// Operands of a loss head as matrices: x [tokens, dim], table [vocab, dim].
struct Head {
  int64_t tokens, dim, vocab;
  std::vector<double> x, table;
  Names xNames, tableNames; // the order of the matrices' axes
  Sizes xSizes, tableSizes;

  void logits(int64_t row, std::vector<double> &result) const {
    result.assign(vocab, 0.0);
    for (int64_t v = 0; v < vocab; ++v)
      for (int64_t c = 0; c < dim; ++c)
        result[v] += x[row * dim + c] * table[v * dim + c];
  }
};

Head headOf(Value x, Value table, Value targets, const Frame &frame) {
  Head head;
  Names rows = namesOf(targets.getType()), ofX = namesOf(x.getType());
  StringAttr dim, vocab;
  for (StringAttr name : namesOf(table.getType()))
    (contains(ofX, name) ? dim : vocab) = name;
  head.xNames = rows;
  head.xNames.push_back(dim);
  head.tableNames = {vocab, dim};
  head.xSizes = sizesAlong(x.getType(), head.xNames);
  head.tableSizes = sizesAlong(table.getType(), head.tableNames);
  head.x = arrange(frame[x], x.getType(), head.xNames, head.xSizes);
  head.table = arrange(frame[table], table.getType(), head.tableNames, head.tableSizes);
  head.tokens = product(shapeOf(targets.getType()));
  head.vocab = head.tableSizes[0], head.dim = head.tableSizes[1];
  return head;
}

/// Adds `part`, whose axes are `names` in order, to an array of `type`.
void addTo(Array &array, Type type, const std::vector<double> &part, const Names &names, const Sizes &sizes) {
  size_t i = 0;
  walk<1>(sizes, {stridesAlong(type, names)},
          [&](const std::array<int64_t, 1> &at) { array.data[at[0]] += part[i++]; });
}

} // namespace

LogicalResult evaluate(CrossEntropyOp op, Frame &frame) {
  const Array &logits = frame[op.getLogits()], &targets = frame[op.getTargets()];
  int64_t vocab = logits.shape.back();
  if (failed(checkTargets(op, targets, vocab)))
    return failure();
  LossSettings settings{numberOf(op.getZ()), numberOf(op.getSmoothing())};
  std::vector<double> weights = weightsOf(op.getWeight(), op.getTargets(), frame);
  double loss = 0;
  for (size_t row = 0; row < targets.data.size(); ++row)
    loss += rowLoss(&logits.data[row * vocab], vocab, static_cast<int64_t>(targets.data[row]), weights[row],
                    settings);
  frame.make(op.getLoss(), loss);
  return success();
}

LogicalResult evaluate(CrossEntropyGradOp op, Frame &frame) {
  const Array &logits = frame[op.getLogits()], &targets = frame[op.getTargets()];
  int64_t vocab = logits.shape.back(), classes = classesOf(op, op.getLogits());
  if (failed(checkTargets(op, targets, classes)))
    return failure();
  LossSettings settings{numberOf(op.getZ()), numberOf(op.getSmoothing())};
  std::vector<double> weights = weightsOf(op.getWeight(), op.getTargets(), frame);
  Array &dlogits = frame.make(op.getDlogits()), &rowLosses = frame.make(op.getRowLoss());
  for (size_t row = 0; row < targets.data.size(); ++row) {
    const double *x = &logits.data[row * vocab];
    auto target = static_cast<int64_t>(targets.data[row]);
    rowLosses.data[row] = rowLoss(x, classes, target, weights[row], settings);
    rowGrad(x, classes, target, weights[row], settings, &dlogits.data[row * vocab]);
  }
  return success();
}

LogicalResult evaluate(LossHeadOp op, Frame &frame) {
  Head head = headOf(op.getX(), op.getTable(), op.getTargets(), frame);
  const Array &targets = frame[op.getTargets()];
  if (failed(checkTargets(op, targets, head.vocab)))
    return failure();
  LossSettings settings{numberOf(op.getZ()), numberOf(op.getSmoothing())};
  std::vector<double> weights = weightsOf(op.getWeight(), op.getTargets(), frame), logits;
  double loss = 0;
  for (int64_t row = 0; row < head.tokens; ++row) {
    head.logits(row, logits);
    loss +=
        rowLoss(logits.data(), head.vocab, static_cast<int64_t>(targets.data[row]), weights[row], settings);
  }
  frame.make(op.getLoss(), loss);
  return success();
}

LogicalResult evaluate(LossHeadGradOp op, Frame &frame) {
  Head head = headOf(op.getX(), op.getTable(), op.getTargets(), frame);
  const Array &targets = frame[op.getTargets()];
  if (failed(checkTargets(op, targets, head.vocab)))
    return failure();
  LossSettings settings{numberOf(op.getZ()), numberOf(op.getSmoothing())};
  std::vector<double> weights = weightsOf(op.getWeight(), op.getTargets(), frame), logits, grad(head.vocab);
  std::vector<double> dx(head.x.size(), 0.0), dtable(head.table.size(), 0.0);
  double loss = 0;
  for (int64_t row = 0; row < head.tokens; ++row) {
    head.logits(row, logits);
    auto target = static_cast<int64_t>(targets.data[row]);
    loss += rowLoss(logits.data(), head.vocab, target, weights[row], settings);
    rowGrad(logits.data(), head.vocab, target, weights[row], settings, grad.data());
    for (int64_t v = 0; v < head.vocab; ++v)
      for (int64_t c = 0; c < head.dim; ++c) {
        dx[row * head.dim + c] += grad[v] * head.table[v * head.dim + c];
        dtable[v * head.dim + c] += grad[v] * head.x[row * head.dim + c];
      }
  }
  frame.make(op.getLoss(), loss);
  addTo(frame.make(op.getDx()), op.getDx().getType(), dx, head.xNames, head.xSizes);
  Array &table = frame.make(op.getDtable());
  if (op.getInit())
    table.data =
        arrange(frame[op.getInit()], op.getInit().getType(), namesOf(op.getDtable().getType()), table.shape);
  addTo(table, op.getDtable().getType(), dtable, head.tableNames, head.tableSizes);
  return success();
}

} // namespace weft::interp

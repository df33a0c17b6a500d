//===- Costs.cpp - What ops cost ------------------------------------------===//
//
// A multiply-add of a product counts two; of other work each arithmetic
// operation and each exp, log, tanh, division or root counts one. Operands are
// read and results written once, but for look-ups, which touch their rows alone.
//
//===----------------------------------------------------------------------===//
#include "dialects/Weft/Gradients.h"

#include <algorithm>

using namespace mlir;

namespace weft {

Cost &Cost::operator+=(const Cost &other) {
  productFlops += other.productFlops;
  otherFlops += other.otherFlops;
  bytesRead += other.bytesRead;
  bytesWritten += other.bytesWritten;
  return *this;
}

static double elements(Value value) { return static_cast<double>(tensorType(value).getNumElements()); }

static double bytes(Value value) {
  return elements(value) * static_cast<double>(tensorType(value).getElementTypeBitWidth()) / 8;
}

/// The cost of an op that reads its operands and writes its results once.
static Cost costOf(Operation *op, double productFlops, double otherFlops) {
  Cost cost;
  cost.productFlops = productFlops;
  cost.otherFlops = otherFlops;
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()))
      cost.bytesRead += bytes(operand);
  for (Value result : op->getResults())
    cost.bytesWritten += bytes(result);
  return cost;
}

Cost elementwiseCost(Operation *op) {
  double flops = 0;
  for (Value result : op->getResults())
    if (isa<FloatType>(tensorType(result).getElementType()))
      flops += elements(result);
  return costOf(op, 0, isa<ConstantOp, IntegersOp>(op) ? 0 : flops);
}

//===----------------------------------------------------------------------===//
// Sums, rows and optimisers
//===----------------------------------------------------------------------===//

Cost SumToOp::getCost() {
  return costOf(*this, 0, elements(getX()) + (getInit() ? elements(getResult()) : 0));
}
Cost PartialSumOp::getCost() { return costOf(*this, 0, elements(getX())); }

// Mean, variance, normalisation: two, three and two operations an element.
Cost LayerNormOp::getCost() { return costOf(*this, 0, 7 * elements(getX())); }
// Statistics again, two products with two sums, and three operations for dx.
Cost LayerNormGradOp::getCost() { return costOf(*this, 0, 14 * elements(getX())); }
Cost RmsNormOp::getCost() { return costOf(*this, 0, 3 * elements(getX())); }
Cost RmsNormGradOp::getCost() { return costOf(*this, 0, 8 * elements(getX())); }
// Maximum, difference, exp, sum, division.
Cost SoftmaxOp::getCost() { return costOf(*this, 0, 5 * elements(getX())); }
Cost SoftmaxGradOp::getCost() { return costOf(*this, 0, 4 * elements(getY())); }

Cost NormOp::getCost() { return costOf(*this, 0, 2 * elements(getX())); }
Cost AdamWOp::getCost() { return costOf(*this, 0, 16 * elements(getP())); }

// A step of an s x l matrix, s its smaller side: y y^T, s s and their sum's product with y.
Cost PolarOp::getCost() {
  ArrayRef<int64_t> shape = tensorType(getX()).getShape();
  auto small = static_cast<double>(std::min(shape.back(), shape[shape.size() - 2]));
  double all = elements(getX()),
         squares = all * small / static_cast<double>(std::max(shape.back(), shape[shape.size() - 2]));
  auto steps = static_cast<double>(getIterations());
  double products = 2 * small * (2 * all + squares);
  return costOf(*this, steps * products, 3 * all + steps * (2 * all + 3 * squares));
}

// Rounding is free beside the bytes that it moves.
Cost ConvertOp::getCost() { return costOf(*this, 0, 0); }

// Only names change.
Cost ReshapeOp::getCost() { return {}; }

//===----------------------------------------------------------------------===//
// Products and look-ups
//===----------------------------------------------------------------------===//

// Two a point of the union of all axes.
Cost ContractOp::getCost() {
  double points = elements(getResult());
  RankedTensorType result = getResult().getType(), a = getA().getType();
  for (auto [name, size] : llvm::zip(axesOf(a), a.getShape()))
    if (axisIndex(result, name) < 0)
      points *= static_cast<double>(size);
  return costOf(*this, 2 * points, getInit() ? elements(getResult()) : 0);
}

// The rows looked up are read, not the table.
Cost GatherOp::getCost() {
  Cost cost = costOf(*this, 0, 0);
  cost.bytesRead = bytes(getIndex()) + bytes(getY());
  return cost;
}

// With `init` the rows named by the indices are changed, at most all of them;
// without it the table is written whole.
Cost GatherGradOp::getCost() {
  Cost cost = costOf(*this, 0, elements(getDy()));
  double touched = std::min(bytes(getDtable()), bytes(getDy()));
  cost.bytesRead = bytes(getIndex()) + bytes(getDy()) + touched;
  cost.bytesWritten = getInit() ? touched : bytes(getDtable());
  return cost;
}

// The slices are read, not what stands between them.
Cost TakeOp::getCost() {
  Cost cost;
  cost.bytesRead = cost.bytesWritten = bytes(getY());
  return cost;
}
Cost PutOp::getCost() { return costOf(*this, 0, elements(getY())); }

Cost CacheUpdateOp::getCost() {
  Cost cost;
  cost.bytesRead = cost.bytesWritten = bytes(getValue());
  return cost;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Pairs (query, key) of one head with a window, in one row of `queries`
/// positions of which the last sees all `keys`.
static double pairsOf(double queries, double keys, double window) {
  // Query i, counted from 1, sees min(first + i, window) keys.
  double first = keys - queries, growing = std::clamp(window - first, 0.0, queries);
  return growing * first + growing * (growing + 1) / 2 + (queries - growing) * window;
}

/// Pairs of all heads and rows. Documents are data and are not known here;
/// windows are where they are constants.
static double attentionPairs(Value q, Value k, Value windows) {
  RankedTensorType type = tensorType(q);
  auto queries = static_cast<double>(type.getDimSize(1)),
       keys = static_cast<double>(tensorType(k).getDimSize(1));
  auto constant = windows ? windows.getDefiningOp<IntegersOp>() : IntegersOp();
  double pairs = 0;
  if (constant)
    for (int32_t window : constant.getValues())
      pairs += pairsOf(queries, keys, std::min<double>(window, keys));
  else
    pairs = static_cast<double>(headCount(type)) * pairsOf(queries, keys, keys);
  return static_cast<double>(type.getDimSize(0)) * pairs;
}

static double channels(Value value) { return static_cast<double>(tensorType(value).getShape().back()); }

// Two products; scale, maximum, difference, exp and sum for each pair, a product and a sum for entropies.
Cost AttendOp::getCost() {
  double pairs = attentionPairs(getQ(), getK(), getWindows());
  double entropies = getEntropies() ? 2 * pairs : 0;
  return costOf(*this, 2 * pairs * (channels(getQ()) + channels(getV())), 5 * pairs + entropies);
}

// Scores again, dout v and dq.
Cost AttendGradQueryOp::getCost() {
  double pairs = attentionPairs(getQ(), getK(), getWindows());
  return costOf(*this, 2 * pairs * (2 * channels(getQ()) + channels(getV())),
                5 * pairs + 2 * elements(getOut()));
}

// Scores again, dout v, dk and dv.
Cost AttendGradKeyValueOp::getCost() {
  double pairs = attentionPairs(getQ(), getK(), getWindows());
  return costOf(*this, 2 * pairs * (2 * channels(getQ()) + 2 * channels(getV())), 5 * pairs);
}

// Three sums of q, k and v, one of out, and a quotient by a logarithm.
Cost HeadStatisticsOp::getCost() {
  double rows = elements(getEntropy());
  return costOf(*this, 0,
                rows * (4 * channels(getQ()) * 2 + 4 * channels(getV()) + 2 * channels(getV()) + 3));
}

// Scores again; exp, a moving mean, its squares and the distances of each pair.
Cost PatternStatisticsOp::getCost() {
  constexpr double kPair = 24;
  double pairs = attentionPairs(getQ(), getK(), getWindows());
  return costOf(*this, 2 * pairs * channels(getQ()), kPair * pairs);
}

/// Pairs of a mix: `out` [batch, queries, heads, channel] over `keys` places.
static double mixPairs(Value out, int64_t keys, Value windows) {
  RankedTensorType type = tensorType(out);
  auto constant = windows.getDefiningOp<IntegersOp>();
  auto queries = static_cast<double>(type.getDimSize(1)), places = static_cast<double>(keys);
  double pairs = 0;
  auto heads = static_cast<size_t>(type.getDimSize(2));
  for (size_t head = 0; head < heads; ++head) {
    double window = constant ? std::min<double>(constant.getValues()[head], places) : places;
    pairs += pairsOf(queries, places, window);
    // First places that the window leaves behind.
    double behind = places - window;
    if (constant && constant.getValues().size() > heads && behind > 0)
      pairs += pairsOf(std::min(queries, behind), behind,
                       std::min<double>(constant.getValues()[heads + head], behind));
  }
  return static_cast<double>(type.getDimSize(0)) * pairs;
}

// One product; a sum and a product for each pair, exp of each place of the pattern.
Cost MixOp::getCost() {
  double pairs = mixPairs(getOut(), tensorType(getV()).getDimSize(1), getWindows());
  return costOf(*this, 2 * pairs * channels(getOut()), 2 * pairs + 2 * elements(getA()));
}
Cost MixGradValueOp::getCost() {
  double pairs = mixPairs(getDout(), tensorType(getDv()).getDimSize(1), getWindows());
  return costOf(*this, 2 * pairs * channels(getDout()), pairs + 2 * elements(getA()));
}
Cost MixGradPatternOp::getCost() {
  double pairs = mixPairs(getOut(), tensorType(getV()).getDimSize(1), getWindows());
  return costOf(*this, 2 * pairs * channels(getOut()),
                5 * pairs + 2 * (elements(getA()) + elements(getOut())));
}

// A sum and a product for each pair of a head, exp and log of each place.
Cost MixTableOp::getCost() {
  RankedTensorType a = tensorType(getA());
  auto places = static_cast<double>(a.getDimSize(1)), heads = static_cast<double>(a.getDimSize(0));
  return costOf(*this, 0, 2 * heads * pairsOf(places, places, places) + 5 * elements(getA()));
}
Cost MixScaleOp::getCost() { return costOf(*this, 0, elements(getY())); }
Cost MixProductOp::getCost() {
  double pairs = mixPairs(getX(), tensorType(getX()).getDimSize(1), getWindows());
  return costOf(*this, 2 * pairs * channels(getX()), elements(getX()));
}

// One product; a pair's number is read once a row of the batch.
Cost MixDenseOp::getCost() {
  RankedTensorType out = tensorType(getOut());
  auto queries = static_cast<double>(out.getDimSize(1)),
       keys = static_cast<double>(tensorType(getV()).getDimSize(1));
  double pairs = static_cast<double>(out.getDimSize(0) * out.getDimSize(2)) * pairsOf(queries, keys, keys);
  return costOf(*this, 2 * pairs * channels(getOut()), 0);
}
Cost MixDenseGradValueOp::getCost() {
  RankedTensorType out = tensorType(getDout());
  auto keys = static_cast<double>(out.getDimSize(1));
  double pairs = static_cast<double>(out.getDimSize(0) * out.getDimSize(2)) * pairsOf(keys, keys, keys);
  return costOf(*this, 2 * pairs * channels(getDout()), 0);
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

// Maximum, difference, exp and sum; the gradient adds a division and a difference.
constexpr double kLossFlops = 4, kLossGradFlops = 6;

Cost CrossEntropyOp::getCost() { return costOf(*this, 0, kLossFlops * elements(getLogits())); }
Cost CrossEntropyGradOp::getCost() { return costOf(*this, 0, kLossGradFlops * elements(getLogits())); }

/// Logits of a loss head: one a target and word.
static double headLogits(Value x, Value table) {
  return elements(x) / channels(x) * (elements(table) / channels(x));
}

Cost LossHeadOp::getCost() {
  double logits = headLogits(getX(), getTable());
  return costOf(*this, 2 * logits * channels(getX()), kLossFlops * logits);
}

Cost LossHeadGradOp::getCost() {
  double logits = headLogits(getX(), getTable());
  return costOf(*this, 6 * logits * channels(getX()), kLossGradFlops * logits);
}

} // namespace weft

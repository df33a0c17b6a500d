//===- Attention.cpp - Attention, its gradient, caches ---------------------===//
#include "dialects/Weft/Interpret/Frame.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace weft::interp {

namespace {

/// Where each head's key or value stands: element of (row b, key j, head h) is
/// b * batch + j * place + head[h].
struct Keys {
  const Array *array;
  int64_t batch, place, width;
  std::vector<int64_t> head;
  const double *at(int64_t b, int64_t j, int64_t h) const {
    return &array->data[b * batch + j * place + head[h]];
  }
};

/// One attention: sizes, masks and operands.
struct Attention {
  int64_t rows, queries, keys, heads, channels;
  double scale, offset = 0;
  const Array *q, *windows = nullptr, *start = nullptr, *kvOf = nullptr;
  Keys k, v;

  /// Allowed keys of query i of head h: [first, last].
  std::pair<int64_t, int64_t> range(int64_t b, int64_t i, int64_t h) const {
    auto place = static_cast<int64_t>(offset) + i;
    double first = start ? start->data[b * queries + i] : 0;
    if (windows)
      first = std::max(first, static_cast<double>(place) - windows->data[h] + 1);
    return {static_cast<int64_t>(std::max(first, 0.0)), place};
  }
  /// First element of query i of head h, in a tensor of `width` channels.
  int64_t query(int64_t b, int64_t i, int64_t h, int64_t width) const {
    return ((b * queries + i) * heads + h) * width;
  }
  double score(int64_t b, int64_t i, int64_t h, int64_t j) const {
    const double *left = &q->data[query(b, i, h, channels)], *right = k.at(b, j, h);
    double sum = 0;
    for (int64_t c = 0; c < channels; ++c)
      sum += left[c] * right[c];
    return scale * sum;
  }
  template <typename Visit> void forEachQuery(Visit &&visit) const {
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t i = 0; i < queries; ++i)
        for (int64_t h = 0; h < heads; ++h)
          visit(b, i, h);
  }
};

} // namespace

static double dot(const double *x, const double *y, int64_t width) {
  double sum = 0;
  for (int64_t c = 0; c < width; ++c)
    sum += x[c] * y[c];
  return sum;
}

/// k and v are shared along the head axes that they lack: stride 0 there; or
/// as `kvOf` says.
static Keys keysOf(Value value, ArrayRef<StringAttr> headNames, ArrayRef<int64_t> headSizes,
                   const Array *kvOf, const Frame &frame) {
  ArrayRef<int64_t> shape = shapeOf(value.getType());
  Keys keys{&frame[value], product(shape.drop_front()), product(shape.drop_front(2)), shape.back(), {}};
  if (kvOf) {
    for (double kv : kvOf->data)
      keys.head.push_back(static_cast<int64_t>(kv) * shape.back());
    return keys;
  }
  walk<1>(headSizes, {stridesAlong(value.getType(), headNames)},
          [&](const std::array<int64_t, 1> &at) { keys.head.push_back(at[0]); });
  return keys;
}

static Attention attentionOf(Value q, Value k, Value v, Value kvOf, double scale, const Frame &frame) {
  ArrayRef<int64_t> shape = shapeOf(q.getType()), heads = shape.drop_front(2).drop_back();
  Names names = namesOf(q.getType());
  ArrayRef<StringAttr> headNames = ArrayRef<StringAttr>(names).drop_front(2).drop_back();
  Attention a;
  a.rows = shape[0], a.queries = shape[1], a.keys = shapeOf(k.getType())[1];
  a.heads = product(heads), a.channels = shape.back(), a.scale = scale;
  a.q = &frame[q];
  a.kvOf = frame.find(kvOf);
  a.k = keysOf(k, headNames, heads, a.kvOf, frame), a.v = keysOf(v, headNames, heads, a.kvOf, frame);
  return a;
}

/// Says when a window is below 1, a key-value head is none, or a query stands
/// past the last key.
static LogicalResult check(const Attention &a, Operation *op) {
  if (a.windows)
    for (auto [head, window] : llvm::enumerate(a.windows->data))
      if (window < 1)
        return op->emitError() << "window of head " << head << ": expected at least 1, found "
                               << static_cast<int64_t>(window);
  if (a.kvOf)
    for (auto [head, kv] : llvm::enumerate(a.kvOf->data))
      if (kv < 0 || static_cast<int64_t>(kv) * a.k.width >= a.k.place)
        return op->emitError() << "key-value head of head " << head << ": expected one of "
                               << a.k.place / a.k.width << ", found " << static_cast<int64_t>(kv);
  int64_t last = static_cast<int64_t>(a.offset) + a.queries - 1;
  if (a.queries > 0 && last >= a.keys)
    return op->emitError() << "query at place " << last << " is past the " << a.keys << " keys";
  return success();
}

LogicalResult evaluate(AttendOp op, Frame &frame) {
  if (op.getWindow())
    return op.emitError() << "the window is still a formula";
  Attention a = attentionOf(op.getQ(), op.getK(), op.getV(), op.getKvOf(), numberOf(op.getScale()), frame);
  a.windows = frame.find(op.getWindows()), a.start = frame.find(op.getDocStart());
  if (op.getOffset())
    a.offset = frame.scalar(op.getOffset());
  if (failed(check(a, op)))
    return failure();
  Array &out = frame.make(op.getOut());
  Array &lse = frame.make(op.getLse(), -std::numeric_limits<double>::infinity());
  Array *entropy = op.getEntropy() ? &frame.make(op.getEntropy()) : nullptr;
  std::vector<double> scores;
  a.forEachQuery([&](int64_t b, int64_t i, int64_t h) {
    auto [first, last] = a.range(b, i, h);
    if (first > last) // no key: the output is zero, its log-sum -inf
      return;
    scores.clear();
    for (int64_t j = first; j <= last; ++j)
      scores.push_back(a.score(b, i, h, j));
    double greatest = *llvm::max_element(scores), sum = 0;
    for (double s : scores)
      sum += std::exp(s - greatest);
    double total = lse.data[a.query(b, i, h, 1)] = greatest + std::log(sum);
    double *row = &out.data[a.query(b, i, h, a.v.width)];
    for (int64_t j = first; j <= last; ++j) {
      double p = std::exp(scores[j - first] - total);
      if (entropy)
        entropy->data[a.query(b, i, h, 1)] += p * (total - scores[j - first]);
      const double *value = a.v.at(b, j, h);
      for (int64_t c = 0; c < a.v.width; ++c)
        row[c] += p * value[c];
    }
  });
  return success();
}

LogicalResult evaluate(AttendGradQueryOp op, Frame &frame) {
  Attention a = attentionOf(op.getQ(), op.getK(), op.getV(), op.getKvOf(), numberOf(op.getScale()), frame);
  a.windows = &frame[op.getWindows()], a.start = &frame[op.getDocStart()];
  if (failed(check(a, op)))
    return failure();
  const Array &out = frame[op.getOut()], &lse = frame[op.getLse()], &dout = frame[op.getDout()];
  Array &dq = frame.make(op.getDq()), &delta = frame.make(op.getDelta());
  a.forEachQuery([&](int64_t b, int64_t i, int64_t h) {
    int64_t row = a.query(b, i, h, 1);
    const double *dOut = &dout.data[row * a.v.width];
    double along = delta.data[row] = dot(dOut, &out.data[row * a.v.width], a.v.width);
    auto [first, last] = a.range(b, i, h);
    for (int64_t j = first; j <= last; ++j) {
      double p = std::exp(a.score(b, i, h, j) - lse.data[row]);
      double ds = p * (dot(dOut, a.v.at(b, j, h), a.v.width) - along);
      const double *key = a.k.at(b, j, h);
      for (int64_t c = 0; c < a.channels; ++c)
        dq.data[row * a.channels + c] += a.scale * ds * key[c];
    }
  });
  return success();
}

LogicalResult evaluate(AttendGradKeyValueOp op, Frame &frame) {
  Attention a = attentionOf(op.getQ(), op.getK(), op.getV(), op.getKvOf(), numberOf(op.getScale()), frame);
  a.windows = &frame[op.getWindows()], a.start = &frame[op.getDocStart()];
  if (failed(check(a, op)))
    return failure();
  const Array &lse = frame[op.getLse()], &delta = frame[op.getDelta()], &dout = frame[op.getDout()];
  Array &dk = frame.make(op.getDk()), &dv = frame.make(op.getDv());
  a.forEachQuery([&](int64_t b, int64_t i, int64_t h) {
    int64_t row = a.query(b, i, h, 1);
    const double *dOut = &dout.data[row * a.v.width], *query = &a.q->data[row * a.channels];
    auto [first, last] = a.range(b, i, h);
    for (int64_t j = first; j <= last; ++j) {
      double p = std::exp(a.score(b, i, h, j) - lse.data[row]);
      double ds = p * (dot(dOut, a.v.at(b, j, h), a.v.width) - delta.data[row]);
      double *key = &dk.data[a.k.at(b, j, h) - a.k.array->data.data()];
      double *value = &dv.data[a.v.at(b, j, h) - a.v.array->data.data()];
      for (int64_t c = 0; c < a.channels; ++c)
        key[c] += a.scale * ds * query[c];
      for (int64_t c = 0; c < a.v.width; ++c)
        value[c] += p * dOut[c];
    }
  });
  return success();
}

/// Whether a row counts: a counted target stands at or after doc_start.
static bool counts(const Array *targets, const Array &start, int64_t b, int64_t i, int64_t queries) {
  if (!targets)
    return true;
  const double *row = &targets->data[b * queries];
  for (int64_t j = static_cast<int64_t>(start.data[b * queries + i]); j < queries; ++j)
    if (row[j] >= 0)
      return true;
  return false;
}

/// Adds sums of |x|, x, x^2 over a row's channels.
static void addMoments(double *sums, const double *x, int64_t width) {
  for (int64_t c = 0; c < width; ++c)
    sums[0] += std::abs(x[c]), sums[1] += x[c], sums[2] += x[c] * x[c];
}

LogicalResult evaluate(HeadStatisticsOp op, Frame &frame) {
  Attention a = attentionOf(op.getQ(), op.getK(), op.getV(), op.getKvOf(), 1, frame);
  a.windows = &frame[op.getWindows()], a.start = &frame[op.getDocStart()];
  if (failed(check(a, op)))
    return failure();
  const Array &out = frame[op.getOut()], &entropy = frame[op.getEntropy()];
  const Array *targets = frame.find(op.getTargets());
  Array &result = frame.make(op.getResult());
  a.forEachQuery([&](int64_t b, int64_t i, int64_t h) {
    auto [first, last] = a.range(b, i, h);
    if (first > last || !counts(targets, *a.start, b, i, a.queries))
      return;
    double *sums = &result.data[h * kHeadStatistics];
    int64_t row = a.query(b, i, h, 1);
    addMoments(sums, &a.q->data[row * a.channels], a.channels);
    addMoments(sums + 3, a.k.at(b, i, h), a.channels);
    addMoments(sums + 6, a.v.at(b, i, h), a.v.width);
    if (first < last)
      sums[9] += entropy.data[row] / std::log(static_cast<double>(last - first + 1));
    const double *o = &out.data[row * a.v.width];
    sums[10] += dot(o, o, a.v.width);
    sums[11] += 1;
  });
  return success();
}

/// What evaluate(PatternStatisticsOp) adds for row i of head h.
static void addPatternRow(PatternStatisticsOp op, Frame &frame, const Attention &a, int64_t h, int64_t i,
                          ArrayRef<Array *> results) {
  const int64_t places = a.queries, reach = static_cast<int64_t>(frame[op.getReach()].data[i]);
  const int64_t first = std::max<int64_t>(0, i + 1 - static_cast<int64_t>(a.windows->data[h]));
  const double most = std::log(static_cast<double>(i - first + 1));
  double *sums = &results[2]->data[h * kPatternSums];
  std::vector<double> each(static_cast<size_t>(reach));
  for (int64_t j = first; j <= i; ++j) {
    const double log = frame[op.getA()].data[h * places + j] + frame[op.getR()].data[h * places + i - j] -
                       frame[op.getZ()].data[h * places + i];
    const double p = std::exp(log), floor = std::max(log, std::log(1e-30));
    double total = 0;
    for (int64_t x = 0; x < reach; ++x) {
      const auto place = static_cast<int64_t>(frame[op.getDocuments()].data[x]);
      const int64_t b = place / places, start = place % places;
      const double lse = frame[op.getLse()].data[a.query(b, start + i, h, 1)];
      const double score = a.score(b, start + i, h, start + j) - lse, value = std::exp(score);
      total += each[static_cast<size_t>(x)] = value;
      sums[2] -= value * score;
      sums[3] -= i > first ? value * score / most : 0;
      sums[4] += (value - p) * (value - p);
      sums[5] += value * (score - floor);
      sums[6] += std::sqrt(value * p);
      sums[7] += std::abs(value - p) / 2;
    }
    const double mean = reach > 0 ? total / static_cast<double>(reach) : 0;
    for (double value : each)
      sums[1] += (value - mean) * (value - mean);
    sums[0] += mean > 0 ? total * std::log(mean) : 0;
    results[0]->data[h * places + j] += total;
    results[1]->data[h * places + i - j] += total;
  }
}

LogicalResult evaluate(PatternStatisticsOp op, Frame &frame) {
  Attention a = attentionOf(op.getQ(), op.getK(), op.getK(), op.getKvOf(), numberOf(op.getScale()), frame);
  a.windows = &frame[op.getWindows()];
  if (failed(check(a, op)))
    return failure();
  const auto listed = static_cast<int64_t>(frame[op.getDocuments()].data.size());
  for (int64_t i = 0; i < a.queries; ++i)
    for (int64_t x = 0, reach = static_cast<int64_t>(frame[op.getReach()].data[i]); x < reach; ++x)
      if (double place = x < listed ? frame[op.getDocuments()].data[x] : -1;
          place < 0 || static_cast<int64_t>(place) % a.queries + i >= a.queries ||
          static_cast<int64_t>(place) >= a.rows * a.queries)
        return op.emitError() << "document " << x << " begins at place " << static_cast<int64_t>(place)
                              << " and has no row " << i << ": expected one of " << listed << " in " << a.rows
                              << " rows of " << a.queries;
  Array *results[] = {&frame.make(op.getColumns()), &frame.make(op.getDiagonals()),
                      &frame.make(op.getSums())};
  for (int64_t h = 0; h < a.heads; ++h)
    for (int64_t i = 0; i < a.queries; ++i)
      addPatternRow(op, frame, a, h, i, results);
  return success();
}

LogicalResult evaluate(CacheUpdateOp op, Frame &frame) {
  const Array &cache = frame[op.getCache()], &value = frame[op.getValue()];
  auto offset = static_cast<int64_t>(frame.scalar(op.getOffset()));
  Array &result = frame.make(op.getResult());
  result.data = cache.data;
  int64_t keys = cache.shape[1], places = value.shape[1];
  int64_t width = product(ArrayRef<int64_t>(cache.shape).drop_front(2));
  if (offset < 0 || offset + places > keys)
    return op.emitError() << "places " << offset << " to " << offset + places - 1
                          << " are outside a cache of " << keys;
  for (int64_t b = 0; b < value.shape[0]; ++b)
    std::copy_n(value.data.begin() + b * places * width, places * width,
                result.data.begin() + (b * keys + offset) * width);
  return success();
}

} // namespace weft::interp

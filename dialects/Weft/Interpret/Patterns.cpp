//===- Patterns.cpp - Slices, and attention by fixed patterns -------------===//
#include "dialects/Weft/Interpret/Frame.h"

#include <cmath>

using namespace mlir;

namespace weft::interp {

/// Calls visit(whole, part): the places of one element in the tensor that is
/// taken from and in the slices.
template <typename Visit>
static void overSlices(Type whole, ArrayAttr axes, ArrayRef<int64_t> indices, Visit &&visit) {
  ArrayRef<int64_t> shape = shapeOf(whole);
  auto first = axes.empty() ? 0 : axisIndex(whole, cast<StringAttr>(axes[0]));
  auto count = std::max<int64_t>(static_cast<int64_t>(axes.size()), 1);
  int64_t outer = product(shape.take_front(first)), places = product(shape.slice(first, count));
  int64_t inner = product(shape.drop_front(first + count));
  int64_t part = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t index : indices)
      for (int64_t i = 0; i < inner; ++i)
        visit((o * places + index) * inner + i, part++);
}

LogicalResult evaluate(TakeOp op, Frame &frame) {
  const Array &x = frame[op.getX()];
  Array &y = frame.make(op.getY());
  overSlices(op.getX().getType(), op.getAxes(), op.getIndices(),
             [&](int64_t whole, int64_t part) { y.data[part] = x.data[whole]; });
  return success();
}

LogicalResult evaluate(PutOp op, Frame &frame) {
  const Array &y = frame[op.getY()];
  Array &result = frame.make(op.getResult());
  overSlices(op.getType(), op.getAxes(), op.getIndices(),
             [&](int64_t whole, int64_t part) { result.data[whole] += y.data[part]; });
  return success();
}

namespace {

/// One mix: sizes, pattern and masks.
struct Mix {
  int64_t rows, queries, keys, heads, kvHeads, channels, places, offset = 0;
  const Array *a, *r, *windows, *start, *kvOf;

  int64_t kv(int64_t h) const { return kvOf ? static_cast<int64_t>(kvOf->data[h]) : h; }
  int64_t first(int64_t b, int64_t i) const { return static_cast<int64_t>(start->data[b * queries + i]); }
  /// Calls visit(j, a[j - s] + r[g - j], j - s, g - j) for each key that query i sees.
  template <typename Visit> void forEachKey(int64_t b, int64_t i, int64_t h, Visit &&visit) const {
    int64_t place = offset + i, document = first(b, i);
    auto window = static_cast<int64_t>(windows->data[h]);
    for (int64_t j = document; j <= place; ++j) {
      if (place - j >= window && j - document >= firstPlaces(h))
        continue;
      visit(j, a->data[h * places + j - document] + r->data[h * places + place - j], j - document, place - j);
    }
  }
  /// Places of a document's beginning that stay in sight.
  int64_t firstPlaces(int64_t h) const {
    return windows->data.size() > static_cast<size_t>(heads) ? static_cast<int64_t>(windows->data[heads + h])
                                                             : 0;
  }
  int64_t row(int64_t b, int64_t i, int64_t h) const { return (b * queries + i) * heads + h; }
  int64_t value(int64_t b, int64_t j, int64_t h) const {
    return ((b * keys + j) * kvHeads + kv(h)) * channels;
  }
  template <typename Visit> void forEachQuery(Visit &&visit) const {
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t i = 0; i < queries; ++i)
        for (int64_t h = 0; h < heads; ++h)
          visit(b, i, h);
  }
};

} // namespace

/// `op` is any of the three; `value` is v or its gradient.
template <typename Op> static Mix mixOf(Op op, Value value, const Frame &frame) {
  ArrayRef<int64_t> v = shapeOf(value.getType()), pattern = shapeOf(op.getA().getType());
  Mix mix;
  mix.rows = v[0], mix.keys = v[1], mix.channels = v.back();
  mix.kvHeads = product(v.drop_front(2).drop_back());
  mix.queries = shapeOf(op.getDocStart().getType())[1];
  mix.heads = pattern[0], mix.places = pattern[1];
  mix.a = &frame[op.getA()], mix.r = &frame[op.getR()];
  mix.windows = &frame[op.getWindows()], mix.start = &frame[op.getDocStart()];
  mix.kvOf = frame.find(op.getKvOf());
  return mix;
}

LogicalResult checkWindows(ArrayRef<double> windows, int64_t heads, Operation *op) {
  constexpr int64_t kGrain = 64;
  for (auto [number, value] : llvm::enumerate(windows)) {
    int64_t head = static_cast<int64_t>(number) % heads, found = static_cast<int64_t>(value);
    if (static_cast<int64_t>(number) < heads && found < 1)
      return op->emitError() << "window of head " << head << ": expected at least 1, found " << found;
    if (static_cast<int64_t>(number) >= heads && (found < 0 || found % kGrain != 0))
      return op->emitError() << "first places of head " << head << ": expected a multiple of " << kGrain
                             << ", found " << found;
  }
  return success();
}

static LogicalResult check(const Mix &mix, Operation *op) {
  if (failed(checkWindows(mix.windows->data, mix.heads, op)))
    return failure();
  for (int64_t head = 0; head < mix.heads; ++head)
    if (mix.kv(head) < 0 || mix.kv(head) >= mix.kvHeads)
      return op->emitError() << "value head of head " << head << ": expected one of " << mix.kvHeads
                             << ", found " << mix.kv(head);
  int64_t last = mix.offset + mix.queries - 1;
  if (mix.queries > 0 && (last >= mix.keys || last >= mix.places))
    return op->emitError() << "query at place " << last << " is past the " << mix.keys << " keys or the "
                           << mix.places << " places of the pattern";
  return success();
}

LogicalResult evaluate(MixOp op, Frame &frame) {
  Mix mix = mixOf(op, op.getV(), frame);
  if (op.getOffset())
    mix.offset = static_cast<int64_t>(frame.scalar(op.getOffset()));
  if (failed(check(mix, op)))
    return failure();
  const Array &v = frame[op.getV()];
  Array &out = frame.make(op.getOut()), &lse = frame.make(op.getLse());
  mix.forEachQuery([&](int64_t b, int64_t i, int64_t h) {
    double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
    mix.forEachKey(b, i, h, [&](int64_t, double s, int64_t, int64_t) { greatest = std::max(greatest, s); });
    mix.forEachKey(b, i, h, [&](int64_t, double s, int64_t, int64_t) { sum += std::exp(s - greatest); });
    double total = lse.data[mix.row(b, i, h)] = greatest + std::log(sum);
    double *row = &out.data[mix.row(b, i, h) * mix.channels];
    mix.forEachKey(b, i, h, [&](int64_t j, double s, int64_t, int64_t) {
      for (int64_t c = 0; c < mix.channels; ++c)
        row[c] += std::exp(s - total) * v.data[mix.value(b, j, h) + c];
    });
  });
  return success();
}

LogicalResult evaluate(MixGradValueOp op, Frame &frame) {
  Mix mix = mixOf(op, op.getDv(), frame);
  if (failed(check(mix, op)))
    return failure();
  const Array &lse = frame[op.getLse()], &dout = frame[op.getDout()];
  Array &dv = frame.make(op.getDv());
  mix.forEachQuery([&](int64_t b, int64_t i, int64_t h) {
    int64_t row = mix.row(b, i, h);
    mix.forEachKey(b, i, h, [&](int64_t j, double s, int64_t, int64_t) {
      for (int64_t c = 0; c < mix.channels; ++c)
        dv.data[mix.value(b, j, h) + c] += std::exp(s - lse.data[row]) * dout.data[row * mix.channels + c];
    });
  });
  return success();
}

LogicalResult evaluate(MixGradPatternOp op, Frame &frame) {
  Mix mix = mixOf(op, op.getV(), frame);
  if (failed(check(mix, op)))
    return failure();
  const Array &v = frame[op.getV()], &out = frame[op.getOut()], &lse = frame[op.getLse()],
              &dout = frame[op.getDout()];
  Array &da = frame.make(op.getDa()), &dr = frame.make(op.getDr());
  mix.forEachQuery([&](int64_t b, int64_t i, int64_t h) {
    int64_t row = mix.row(b, i, h);
    auto along = [&](const double *x) {
      double sum = 0;
      for (int64_t c = 0; c < mix.channels; ++c)
        sum += dout.data[row * mix.channels + c] * x[c];
      return sum;
    };
    double delta = along(&out.data[row * mix.channels]);
    mix.forEachKey(b, i, h, [&](int64_t j, double s, int64_t column, int64_t distance) {
      double dl = std::exp(s - lse.data[row]) * (along(&v.data[mix.value(b, j, h)]) - delta);
      da.data[h * mix.places + column] += dl;
      dr.data[h * mix.places + distance] += dl;
    });
  });
  return success();
}

namespace {

/// One whole pattern: where a pair's number and a key's value stand.
struct WholeMix {
  int64_t rows, queries, keys, heads, kvHeads, channels, places, offset = 0;
  const Array *p, *start, *kvOf;

  /// Calls visit(place of out's channels, place of v's channels, weight) for each pair.
  template <typename Visit> void forEachPair(Visit &&visit) const {
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t i = 0; i < queries; ++i)
        for (int64_t h = 0; h < heads; ++h) {
          auto first = static_cast<int64_t>(start->data[b * queries + i]);
          int64_t kv = kvOf ? static_cast<int64_t>(kvOf->data[h]) : h, place = offset + i;
          const double *row = &p->data[(h * places + place - first) * places];
          for (int64_t j = first; j <= place; ++j)
            visit(((b * queries + i) * heads + h) * channels, ((b * keys + j) * kvHeads + kv) * channels,
                  row[j - first]);
        }
  }
};

} // namespace

/// `op` is either of the two; `value` is v or its gradient.
template <typename Op> static WholeMix wholeMixOf(Op op, Value value, const Frame &frame) {
  ArrayRef<int64_t> v = shapeOf(value.getType()), pattern = shapeOf(op.getP().getType());
  return {v[0],
          shapeOf(op.getDocStart().getType())[1],
          v[1],
          pattern[0],
          product(v.drop_front(2).drop_back()),
          v.back(),
          pattern[1],
          0,
          &frame[op.getP()],
          &frame[op.getDocStart()],
          frame.find(op.getKvOf())};
}

static LogicalResult check(const WholeMix &mix, Operation *op) {
  for (int64_t head = 0; mix.kvOf && head < mix.heads; ++head)
    if (double kv = mix.kvOf->data[head]; kv < 0 || kv >= static_cast<double>(mix.kvHeads))
      return op->emitError() << "value head of head " << head << ": expected one of " << mix.kvHeads
                             << ", found " << static_cast<int64_t>(kv);
  int64_t last = mix.offset + mix.queries - 1;
  if (mix.queries > 0 && (last >= mix.keys || last >= mix.places))
    return op->emitError() << "query at place " << last << " is past the " << mix.keys << " keys or the "
                           << mix.places << " places of the pattern";
  return success();
}

LogicalResult evaluate(MixDenseOp op, Frame &frame) {
  WholeMix mix = wholeMixOf(op, op.getV(), frame);
  if (op.getOffset())
    mix.offset = static_cast<int64_t>(frame.scalar(op.getOffset()));
  if (failed(check(mix, op)))
    return failure();
  const Array &v = frame[op.getV()];
  Array &out = frame.make(op.getOut());
  mix.forEachPair([&](int64_t to, int64_t from, double weight) {
    for (int64_t c = 0; c < mix.channels; ++c)
      out.data[to + c] += weight * v.data[from + c];
  });
  return success();
}

LogicalResult evaluate(MixDenseGradValueOp op, Frame &frame) {
  WholeMix mix = wholeMixOf(op, op.getDv(), frame);
  if (failed(check(mix, op)))
    return failure();
  const Array &dout = frame[op.getDout()];
  Array &dv = frame.make(op.getDv());
  mix.forEachPair([&](int64_t from, int64_t to, double weight) {
    for (int64_t c = 0; c < mix.channels; ++c)
      dv.data[to + c] += weight * dout.data[from + c];
  });
  return success();
}

} // namespace weft::interp

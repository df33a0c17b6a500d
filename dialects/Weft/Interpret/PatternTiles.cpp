//===- PatternTiles.cpp - Fixed patterns as tables of tiles ---------------===//
#include "dialects/Weft/Interpret/Frame.h"

#include "llvm/ADT/APFloat.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace weft::interp {

constexpr int64_t kCore = MixTableOp::kCore, kCells = kCore * kCore;

static double roundedToBf16(double value) {
  llvm::APFloat rounded(value);
  bool lossy = false;
  rounded.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven, &lossy);
  return rounded.convertToDouble();
}

/// Distance that number n of a head's tiles stands for; its own inverse.
static int64_t aheadOf(int64_t cores, int64_t n) {
  return kCore * (cores - 1 - MixTableOp::kReach) + kCore - 1 - n;
}
static int64_t backOf(int64_t n) { return n - kCore * MixTableOp::kReach - kCore + 1; }

static double largestOf(const double *values, int64_t count) {
  return *std::max_element(values, values + count);
}

namespace {
/// Results of mix_table by place.
struct RowTables {
  Array &weights, &inverses, &lse;

  /// Those of one head, from a, E and F; `largest` is max r, `sights` how many first places stay in sight.
  void fill(int64_t head, const double *a, ArrayRef<double> e, ArrayRef<double> f, int64_t sights,
            double largest) {
    auto places = static_cast<int64_t>(e.size()), first = head * places;
    double top = largestOf(a, places);
    for (int64_t j = 0; j < places; ++j)
      weights.data[first + j] = std::exp(a[j] - top);
    for (int64_t i = 0; i < places; ++i) {
      double sum = 0;
      for (int64_t j = 0; j <= i; ++j)
        sum += (e[i - j] + (j < sights ? f[i - j] : 0)) * weights.data[first + j];
      inverses.data[first + i] = 1 / sum;
      lse.data[first + i] = std::log(sum) + top + largest;
    }
  }
};
} // namespace

LogicalResult evaluate(MixTableOp op, Frame &frame) {
  ArrayRef<int64_t> shape = shapeOf(op.getA().getType());
  int64_t places = shape[1], cores = MixTableOp::coresOf(places);
  const Array &windows = frame[op.getWindows()];
  if (failed(checkWindows(windows.data, shape[0], op)))
    return failure();
  const int64_t halves = static_cast<int64_t>(windows.data.size()) / shape[0];
  Array &ahead = frame.make(op.getAhead()), &back = frame.make(op.getBack());
  RowTables rows{frame.make(op.getWeights()), frame.make(op.getInverses()), frame.make(op.getLse())};
  for (int64_t head = 0; head < shape[0]; ++head) {
    const double *r = &frame[op.getR()].data[head * places];
    auto window = static_cast<int64_t>(windows.data[head]);
    double largest = largestOf(r, places);
    SmallVector<double> e(places, 0), f(places, 0);
    for (int64_t d = 0; d < places; ++d)
      (d < window ? e : f)[d] = roundedToBf16(std::exp(r[d] - largest));
    for (int64_t half = 0; half < halves; ++half) {
      auto at = [&](int64_t d) { return d < 0 || d >= places ? 0 : (half == 0 ? e : f)[d]; };
      for (int64_t x = 0; x < cores; ++x)
        for (int64_t i = 0; i < kCore; ++i)
          for (int64_t k = 0; k < kCore; ++k) {
            int64_t cell = ((head * halves + half) * cores + x) * kCells + i * kCore + k;
            int64_t n = kCore * x + i + k;
            ahead.data[cell] = at(aheadOf(cores, n));
            back.data[cell] = at(backOf(n));
          }
    }
    const int64_t sights = halves > 1 ? static_cast<int64_t>(windows.data[shape[0] + head]) : 0;
    rows.fill(head, &frame[op.getA()].data[head * places], e, f, sights, largest);
  }
  return success();
}

LogicalResult evaluate(MixScaleOp op, Frame &frame) {
  ArrayRef<int64_t> from = shapeOf(op.getX().getType()), to = shapeOf(op.getY().getType());
  int64_t kvHeads = product(from.drop_front(2).drop_back()), channels = to[3], heads = to[2];
  int64_t places = shapeOf(op.getScale().getType())[1];
  const Array &x = frame[op.getX()], &scale = frame[op.getScale()], &start = frame[op.getDocStart()];
  const Array *kvOf = frame.find(op.getKvOf());
  Array &y = frame.make(op.getY());
  for (int64_t b = 0; b < to[0]; ++b)
    for (int64_t i = 0; i < to[1]; ++i)
      for (int64_t h = 0; h < heads; ++h) {
        int64_t kv = kvOf ? static_cast<int64_t>(kvOf->data[h]) : h;
        auto first = static_cast<int64_t>(start.data[b * to[1] + i]);
        for (int64_t c = 0; c < channels; ++c)
          y.data[((b * to[1] + i) * heads + h) * channels + c] =
              x.data[((b * from[1] + i) * kvHeads + kv) * channels + c] * scale.data[h * places + i - first];
      }
  return success();
}

namespace {

/// One mix_product: E is read where the tiles have it.
struct TileMix {
  MixProductOp op;
  Frame &frame;
  ArrayRef<int64_t> shape = shapeOf(op.getX().getType());
  int64_t queries = shape[1], heads = shape[2], channels = shape[3];
  int64_t places = shapeOf(op.getScale().getType())[1];
  int64_t halves = shapeOf(op.getWindows().getType())[0] / heads; // tables a head
  int64_t cores = shapeOf(op.getTable().getType())[1] / kCells / halves;

  /// E[d], or F[d] of the second half, from the first column of a tile.
  double power(int64_t head, int64_t half, int64_t d) {
    int64_t n = op.getBack() ? d - backOf(0) : aheadOf(cores, d);
    return frame[op.getTable()]
        .data[(head * halves + half) * cores * kCells + n / kCore * kCells + n % kCore * kCore];
  }
  int64_t row(int64_t b, int64_t i, int64_t h) { return (b * queries + i) * heads + h; }
  /// Calls visit(b, i, j, h, half) for each pair of a query and a key that it sees, with its table.
  template <typename Visit> void forEachPair(Visit &&visit) {
    for (int64_t b = 0; b < shape[0]; ++b)
      for (int64_t i = 0; i < queries; ++i)
        for (int64_t h = 0; h < heads; ++h) {
          auto window = static_cast<int64_t>(frame[op.getWindows()].data[h]);
          int64_t first = start(b, i);
          auto sights = halves > 1 ? static_cast<int64_t>(frame[op.getWindows()].data[heads + h]) : 0;
          for (int64_t j = first; j <= i; ++j)
            if (i - j < window || j - first < sights)
              visit(b, i, j, h, i - j < window ? 0 : 1);
        }
  }
  int64_t start(int64_t b, int64_t i) {
    return static_cast<int64_t>(frame[op.getDocStart()].data[b * queries + i]);
  }
  double scale(int64_t h, int64_t place) { return frame[op.getScale()].data[h * places + place]; }
};

} // namespace

LogicalResult evaluate(MixProductOp op, Frame &frame) {
  TileMix mix{op, frame};
  if (failed(checkWindows(frame[op.getWindows()].data, mix.heads, op)))
    return failure();
  const Array &x = frame[op.getX()];
  const Array *kvOf = frame.find(op.getKvOf());
  Array &y = frame.make(op.getY());
  int64_t results = product(shapeOf(op.getY().getType()).drop_front(2).drop_back());
  bool back = op.getBack();
  mix.forEachPair([&](int64_t b, int64_t i, int64_t j, int64_t h, int64_t half) {
    int64_t to = back ? j : i, from = back ? i : j;
    int64_t head = kvOf ? static_cast<int64_t>(kvOf->data[h]) : h;
    double weight = mix.power(h, half, i - j) * mix.scale(h, to - mix.start(b, to));
    double *row = &y.data[((b * mix.queries + to) * results + head) * mix.channels];
    for (int64_t c = 0; c < mix.channels; ++c)
      row[c] += weight * x.data[mix.row(b, from, h) * mix.channels + c];
  });
  if (!op.getLse())
    return success();
  Array &rowLse = frame.make(op.getRowLse());
  for (int64_t b = 0; b < mix.shape[0]; ++b)
    for (int64_t i = 0; i < mix.queries; ++i)
      for (int64_t h = 0; h < mix.heads; ++h)
        rowLse.data[mix.row(b, i, h)] = frame[op.getLse()].data[h * mix.places + i - mix.start(b, i)];
  return success();
}

} // namespace weft::interp

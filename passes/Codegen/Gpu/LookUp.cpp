//===- LookUp.cpp - Tables, positions, caches, slices on the GPU ----------===//
#include "passes/Codegen/Gpu/Kinds.h"

using namespace mlir;

namespace weft {

using Predicate = arith::CmpIPredicate;
constexpr int64_t kThreads = 256;

static RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// A thread an element: `body` gets its number, below `count`.
static BlockKind overElements(int64_t count, std::function<void(Block &, Value)> body) {
  BlockKind kind;
  kind.threads = kThreads;
  kind.items = (count + kThreads - 1) / kThreads;
  kind.build = [count, body = std::move(body)](Block &block) {
    Emitter &e = block.e;
    block.items([&](Value item) {
      Value index = e.addi(e.muli(item, kThreads), block.thread);
      e.when(e.compare(Predicate::slt, index, e.number(count)), [&] { body(block, index); });
    });
    return success();
  };
  return kind;
}

/// A zero of f32.
static Value zeroOf(Emitter &e) { return e.constant(e.f32, 0); }

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

MaybeKind gatherKind(const BareKernel &, GatherOp op) {
  int64_t places = tensorOf(op.getIndex()).getNumElements();
  int64_t width = tensorOf(op.getY()).getNumElements() / places;
  constexpr int64_t kWarps = kThreads / Block::kWarp, kLanes = 8;
  BlockKind kind;
  kind.threads = kThreads;
  kind.items = (places + kWarps - 1) / kWarps;
  kind.width = width % kLanes == 0 ? kLanes : 1;
  kind.build = [op, places, width](Block &block) mutable {
    Emitter &e = block.e;
    Value rows = e.number(tensorOf(op.getTable()).getDimSize(0));
    block.items([&](Value item) {
      Value place = e.addi(e.muli(item, kWarps), block.warp);
      e.when(e.compare(Predicate::slt, place, e.number(places)), [&] {
        Value row = e.loadIndex(block.argument(op.getIndex()), place);
        Value known = e.compare(Predicate::ult, row, rows);
        Value from = e.at(block.argument(op.getTable()), e.muli(e.select(known, row, e.number(0)), width));
        Value to = e.at(block.result(0), e.muli(place, width));
        // Rows of whole vectors start at multiples of 16 bytes.
        int64_t alignment = e.width == 1 ? 0 : 16;
        e.loop(block.lane, e.number(width / e.width), Block::kWarp, [&](Value i) {
          Value column = e.muli(i, e.width), zeros = e.constant(e.floats, 0);
          Value value = e.load(e.floats, e.at(from, column), alignment);
          e.store(e.select(known, value, zeros), e.at(to, column), alignment);
        });
      });
    });
    return success();
  };
  return kind;
}

//===----------------------------------------------------------------------===//
// Positions and caches
//===----------------------------------------------------------------------===//

MaybeKind positionKind(const BareKernel &, PositionOp op) {
  auto type = tensorOf(op.getDocStart());
  int64_t length = type.getShape().back();
  return overElements(type.getNumElements(), [op, length](Block &block, Value index) mutable {
    Emitter &e = block.e;
    Value place = arith::TruncIOp::create(e.b, e.loc, e.i32, e.remi(index, length));
    if (op.getOffset())
      place = e.addi(place, e.load(e.i32, block.argument(op.getOffset())));
    Value start = e.load(e.i32, block.argument(op.getDocStart()), index);
    e.store(e.subi(place, start), block.result(0), index);
  });
}

MaybeKind cacheUpdateKind(const BareKernel &bare, CacheUpdateOp op) {
  auto cacheType = tensorOf(op.getCache());
  if (bare.argument(op.getCache()) != bare.result(0))
    return std::nullopt;
  int64_t keys = cacheType.getDimSize(1), places = tensorOf(op.getValue()).getDimSize(1);
  int64_t width = cacheType.getNumElements() / cacheType.getDimSize(0) / keys;
  // Over the cache where it is copied, else over what is written alone.
  return overElements(
      cacheType.getNumElements(), [op, keys, places, width](Block &block, Value index) mutable {
        Emitter &e = block.e;
        Value offset = e.loadIndex(block.argument(op.getOffset()), e.number(0));
        Value cache = block.argument(op.getCache()), to = block.result(0);
        Value row = e.divi(index, keys * width), inside = e.remi(index, keys * width);
        Value place = e.subi(e.divi(inside, width), offset);
        e.choose(
            e.compare(Predicate::ult, place, e.number(places)),
            [&] {
              Value from = e.addi(e.muli(e.addi(e.muli(row, places), place), width), e.remi(inside, width));
              e.store(e.load(e.f32, block.argument(op.getValue()), from), to, index);
            },
            [&] {
              Value apart = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, cache, to);
              e.when(apart, [&] { e.store(e.load(e.f32, cache, index), to, index); });
            });
      });
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

namespace {

/// A tensor as [outer, places, inner] around the axes that are taken from.
struct SliceShape {
  int64_t outer = 1, places = 1, inner = 1;

  SliceShape(Value whole, ArrayAttr axes) {
    auto type = tensorOf(whole);
    int64_t first = axes.empty() ? 0 : axisIndex(type, cast<StringAttr>(axes[0]));
    auto count = std::max<int64_t>(static_cast<int64_t>(axes.size()), 1);
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      (axis < first ? outer : axis < first + count ? places : inner) *= type.getDimSize(axis);
  }
};

} // namespace

MaybeKind takeKind(const BareKernel &bare, TakeOp op) {
  SliceShape shape(op.getX(), op.getAxes());
  auto taken = static_cast<int64_t>(op.getIndices().size());
  if (bare.argument(op.getX()).isBF16() != bare.result(0).isBF16() &&
      !tensorOf(op.getX()).getElementType().isF32())
    return std::nullopt;
  SmallVector<int32_t> places(op.getIndices().begin(), op.getIndices().end());
  return overElements(shape.outer * taken * shape.inner,
                      [op, shape, taken, places](Block &block, Value index) mutable {
                        Emitter &e = block.e;
                        Value part = e.remi(e.divi(index, shape.inner), taken);
                        Value place = e.loadIndex(block.table(places), part);
                        Value row = e.addi(e.muli(e.divi(index, taken * shape.inner), shape.places), place);
                        Value from = e.addi(e.muli(row, shape.inner), e.remi(index, shape.inner));
                        e.store(e.load(e.f32, block.argument(op.getX()), from), block.result(0), index);
                      });
}

MaybeKind putKind(const BareKernel &, PutOp op) {
  SliceShape shape(op.getResult(), op.getAxes());
  auto parts = static_cast<int64_t>(op.getIndices().size());
  // For each place, the slices that go there, in order: from starts[place] on.
  SmallVector<int32_t> starts{0}, slices;
  for (int64_t place = 0; place < shape.places; ++place) {
    for (auto [part, index] : llvm::enumerate(op.getIndices()))
      if (index == place)
        slices.push_back(static_cast<int32_t>(part));
    starts.push_back(static_cast<int32_t>(slices.size()));
  }
  return overElements(shape.outer * shape.places * shape.inner, [op, shape, parts, starts,
                                                                 slices](Block &block, Value index) mutable {
    Emitter &e = block.e;
    Value place = e.remi(e.divi(index, shape.inner), shape.places);
    Value outer = e.divi(index, shape.places * shape.inner);
    Value first = block.table(starts), list = block.table(slices);
    Value sum = e.loop(e.loadIndex(first, place), e.loadIndex(first, e.addi(place, 1)), 1, {zeroOf(e)},
                       [&](Value i, ValueRange carried) -> SmallVector<Value> {
                         Value slice = e.addi(e.muli(outer, parts), e.loadIndex(list, i));
                         Value from = e.addi(e.muli(slice, shape.inner), e.remi(index, shape.inner));
                         Value part = e.load(e.f32, block.argument(op.getY()), from);
                         return {e.add(carried[0], part)};
                       })[0];
    e.store(sum, block.result(0), index);
  });
}

} // namespace weft

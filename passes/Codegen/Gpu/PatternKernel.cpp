//===- PatternKernel.cpp - The tile kernel of a product of patterns -------===//
#include "passes/Codegen/Gpu/PatternKernel.h"

using namespace mlir;

namespace weft {

constexpr int64_t kWarpgroup = tile::KernelOp::kWarpgroupThreads;
constexpr int64_t kPanel = 64, kBytes = 2; // channels of a panel; bytes of bf16

PatternKernel::PatternKernel(Location loc, const PatternProblem &problem)
    : p(problem), e(OpBuilder(loc.getContext()), loc, /*synchronous=*/false),
      stages(problem.channel == kPanel ? 8 : 6) {
  makeKernel(loc);
}

int64_t PatternKernel::itemCount(const PatternProblem &p) {
  const int64_t rows = p.parts * kRows;
  return p.batch * (p.back ? p.results : p.heads) * ((p.positions + rows - 1) / rows);
}

int64_t PatternKernel::partsFor(PatternProblem p) {
  constexpr int64_t kMultiprocessors = 132; // of an H200
  p.parts = kGroups * kMost;
  return itemCount(p) < 2 * kMultiprocessors ? kGroups : p.parts;
}

void PatternKernel::makeKernel(Location loc) {
  constexpr int64_t kSharedLimit = 227 * 1024;
  result.module = ModuleOp::create(loc);
  e.b.setInsertionPointToStart(result.module->getBody());
  result.threads = (1 + kGroups) * kWarpgroup;
  result.items = itemCount(p);
  auto kernel = tile::KernelOp::create(e.b, loc, p.name, result.threads, kSharedLimit, result.items);
  body = &kernel.getBody().emplaceBlock();
  for (RankedTensorType type : p.types)
    body->addArgument(tile::GlobalType::get(loc.getContext(), type.getElementType()), loc);
  map = addMap();
  e.b.setInsertionPointToStart(body);
}

/// Boxes of a block's places, of one head and 64 channels.
Value PatternKernel::addMap() {
  auto channel = static_cast<uint64_t>(p.channel), heads = static_cast<uint64_t>(p.heads),
       positions = static_cast<uint64_t>(p.positions), bytes = static_cast<uint64_t>(kBytes);
  rt::TensorMap tensor;
  tensor.operand = static_cast<uint32_t>(p.x);
  tensor.type = rt::ElementType::BF16;
  tensor.sizes = {channel, heads, positions, static_cast<uint64_t>(p.batch)};
  tensor.strides = {channel * bytes, heads * channel * bytes, positions * heads * channel * bytes};
  tensor.box = {static_cast<uint32_t>(kPanel), 1, static_cast<uint32_t>(kBlock), 1};
  tensor.swizzle = static_cast<uint32_t>(kPanel * kBytes);
  result.maps.push_back(std::move(tensor));
  return body->addArgument(tile::MapType::get(e.b.getContext()), e.loc);
}

void PatternKernel::allocate() {
  MLIRContext *context = e.b.getContext();
  auto ring = [&](tile::SmemType type) -> Value { return tile::AllocOp::create(e.b, e.loc, type); };
  values = ring(tile::SmemType::get(context, stages, kBlock, p.channel, e.bf16, /*swizzle=*/kPanel * kBytes,
                                    p.channel / kPanel));
  tables = ring(tile::SmemType::get(context, stages, coresOfBlock() * kCore, kCore, e.bf16));
  barriers = tile::AllocBarriersOp::create(e.b, e.loc, tile::BarriersType::get(context, 2 * stages));
}

// Barriers: full of each stage, then empty of each.
void PatternKernel::initialiseBarriers() {
  e.elect(/*ofCta=*/true, [&] {
    for (int64_t stage = 0; stage < stages; ++stage) {
      tile::InitBarrierOp::create(e.b, e.loc, barriers, e.number(stage), 1);
      tile::InitBarrierOp::create(e.b, e.loc, barriers, e.number(stages + stage),
                                  kGroups * tile::ArriveOp::kWarps);
    }
    tile::FenceInitOp::create(e.b, e.loc);
  });
  tile::SyncOp::create(e.b, e.loc, e.number(0), result.threads);
}

//===----------------------------------------------------------------------===//
// The producer
//===----------------------------------------------------------------------===//

void PatternKernel::loadBlock(const Tile &tile, Value head, Value near, Value block, Value number) {
  Value stage = e.rem(number, stages), parity = e.rem(e.div(number, stages), 2);
  Value from = placeOf(tile, block);
  tile::WaitOp::create(e.b, e.loc, barriers, e.add(stage, stages), e.sub(e.number(1), parity));
  int64_t bytes = kBlock * p.channel * kBytes + coresOfBlock() * kCore * kCore * kBytes;
  tile::ExpectOp::create(e.b, e.loc, barriers, stage, bytes);
  Value to = e.stage(values, stage);
  for (int64_t panel = 0; panel < p.channel / kPanel; ++panel) {
    SmallVector<Value> coordinates{e.number(panel * kPanel), head, from, tile.row};
    tile::LoadTileOp::create(e.b, e.loc, map, coordinates,
                             tile::PanelOp::create(e.b, e.loc, to, panel).getResult(), barriers, stage);
  }
  Value table = p.tables > 1 ? e.add(e.mul(head, p.tables), e.sub(e.number(1), near)) : head;
  Value offset = e.mul(e.add(e.mul(e.wide(table), p.blocks), e.wide(firstCore(tile, block))), kCore * kCore);
  tile::LoadBulkOp::create(e.b, e.loc, operand(p.table), offset, e.stage(tables, stage), barriers, stage);
}

void PatternKernel::produce() {
  e.elect(/*ofCta=*/false, [&] {
    forEachItem([&](const Item &item, Value number) {
      return forEachTile(item, {number}, [&](const Tile &tile, ValueRange carried) {
        return forEachHead(item, carried, [&](Value head, Value near, ValueRange before) {
          Span span = spanOf(item, tile, head, near);
          e.loop(span.from, span.to, [&](Value block) {
            loadBlock(tile, head, near, block, e.add(before[0], e.sub(block, span.from)));
          });
          return Values{e.add(before[0], e.max(e.sub(span.to, span.from), e.number(0)))};
        });
      })[0];
    });
  });
}

//===----------------------------------------------------------------------===//
// The consumers
//===----------------------------------------------------------------------===//

void PatternKernel::waitBlock(Value at) {
  tile::WaitOp::create(e.b, e.loc, barriers, e.rem(at, stages), e.rem(e.div(at, stages), 2));
}

void PatternKernel::releaseBlock(Value at) {
  tile::ArriveOp::create(e.b, e.loc, barriers, e.add(e.rem(at, stages), stages));
}

/// Blocks [from, to) for those of the own parts that need them; `first` is the number of block 0.
PatternKernel::Values PatternKernel::multiply(Value first, Value from, Value to, ArrayRef<int64_t> parts,
                                              ValueRange sums) {
  Values after = e.loop(from, to, e.number(1), sums, [&](Value block, ValueRange carried) {
    Value at = e.add(first, block), stage = e.rem(at, stages);
    waitBlock(at);
    Value right = e.stage(values, stage), cores = e.stage(tables, stage);
    e.fence();
    Values next(carried);
    for (int64_t own : parts) {
      // The last part's blocks of 8 x 8 come first: it is the farthest from its keys.
      Value row = e.mul(e.sub(e.number(p.parts - 1), ownPart(own)), kRows);
      Value left = tile::HankelOp::create(e.b, e.loc, cores, row, kBlock);
      next[static_cast<size_t>(own)] =
          e.product(left, right, carried[static_cast<size_t>(own)], /*transposed=*/true);
    }
    e.commit();
    Values given = e.wait(1, next);
    e.when(e.less(from, block), [&] { releaseBlock(e.add(at, -1)); });
    return given;
  });
  after = e.wait(0, after);
  e.when(e.less(from, to), [&] { releaseBlock(e.add(first, e.add(to, -1))); });
  return after;
}

/// Blocks that other warpgroups need.
void PatternKernel::leaveOut(Value first, Value from, Value to) {
  e.loop(from, to, [&](Value block) {
    waitBlock(e.add(first, block));
    releaseBlock(e.add(first, block));
  });
}

/// Blocks of the span in order: those of the first own part alone, of both, of the second alone; the first
/// begins and ends before the second. No product stands under a condition: its registers would be copied.
PatternKernel::Values PatternKernel::sumBlocks(const Tile &tile, const Span &span, Value number,
                                               ValueRange sums) {
  Value first = e.sub(number, span.from), low[kMost], high[kMost];
  for (int64_t own = 0; own < ownParts(); ++own) {
    low[own] = e.min(e.max(lowOf(tile, span, ownPart(own)), span.from), span.to);
    high[own] = e.max(e.min(e.add(highOf(tile, span, ownPart(own)), 1), span.to), low[own]);
  }
  if (ownParts() == 1) {
    leaveOut(first, span.from, low[0]);
    Values after = multiply(first, low[0], high[0], {0}, e.wait(0, sums));
    leaveOut(first, high[0], span.to);
    return after;
  }
  Value both = e.less(low[1], high[1]);
  Value begin = e.select(both, e.min(low[1], high[0]), high[0]); // of both
  Value again = e.select(both, e.max(low[1], high[0]), high[0]); // of the second alone
  Value end = e.select(both, high[1], again);
  leaveOut(first, span.from, low[0]);
  // Sums get their registers here: a constant would be copied to them beside products under way.
  Values after = e.wait(0, sums);
  after = multiply(first, low[0], begin, {0}, after);
  after = multiply(first, begin, high[0], {0, 1}, after);
  leaveOut(first, high[0], again);
  after = multiply(first, again, end, {1}, after);
  leaveOut(first, end, span.to);
  return after;
}

/// The place of a part's row 0: rows stand in fragments from the last up.
Value PatternKernel::lastRow(const Tile &tile, Value part) {
  return e.add(tile.first, e.add(e.mul(part, kRows), kRows - 1));
}

/// Rows from here on are the document's; with `back`, rows below.
Value PatternKernel::limitOf(const Tile &tile, Value part) {
  return e.sub(e.add(lastRow(tile, part), 1), p.back ? tile.start : tile.last);
}

/// Numbers of a part's rows in a table by head and place of a document.
Value PatternKernel::scaleOf(const Tile &tile, Value head, Value part, int table) {
  Value at = e.add(e.mul(e.wide(head), p.places), e.wide(e.sub(lastRow(tile, part), tile.start)));
  return tile::LoadRowsOp::create(e.b, e.loc, e.rows(e.f32), operand(table), at, e.wide(e.number(-1)),
                                  limitOf(tile, part), /*tail=*/!p.back);
}

/// Units of a part's sums: the head's scale, at least 1e-30, so that quotients stay finite. Of pairs behind
/// the window 1e-30 for rows that are no first places.
Value PatternKernel::unitOf(const Tile &tile, const Span &span, Value head, Value part) {
  constexpr double kLeast = 1e-30;
  Value scale = scaleOf(tile, head, part, p.scale);
  if (!p.back || p.tables == 1)
    return e.map(e.rows(e.f32), {scale}, [&](ValueRange in) { return e.maxf(in[0], e.real(kLeast)); });
  // Row r stands at `last` - r; this one and those after it are first places.
  Value last = e.sub(lastRow(tile, part), tile.start);
  Value from = e.select(e.same(span.near, e.number(1)), e.number(0), e.add(e.sub(last, span.sights), 1));
  return e.mapPlaces(e.rows(e.f32), {scale}, [&](ValueRange in) {
    return e.select(e.less(in[1], from), e.real(kLeast), e.maxf(in[0], e.real(kLeast)));
  });
}

/// number, sums of each part, their scale; sums may be in units of the last pass.
PatternKernel::Values PatternKernel::sumHeads(const Item &item, const Tile &tile, Value number) {
  bool several = changesUnits();
  Values start{number};
  for (int64_t own = 0; own < ownParts(); ++own)
    start.push_back(e.zero(e.frag(p.channel)));
  for (int64_t own = 0; own < ownParts(); ++own)
    start.push_back(several ? e.splat(e.rows(e.f32), e.real(1))
                            : scaleOf(tile, item.head, ownPart(own), p.scale));
  return forEachHead(item, start, [&](Value head, Value near, ValueRange carried) {
    Span span = spanOf(item, tile, head, near);
    Values sums, scales;
    for (int64_t own = 0; own < ownParts(); ++own) {
      Value sum = carried[1 + own];
      if (!several) {
        scales.push_back(carried[1 + ownParts() + own]);
      } else {
        Value scale = unitOf(tile, span, head, ownPart(own));
        Value ratio = e.map(e.rows(e.f32), {carried[1 + ownParts() + own], scale},
                            [&](ValueRange in) { return e.divf(in[0], in[1]); });
        sum = e.map(e.frag(p.channel), {sum, ratio}, [&](ValueRange in) { return e.mulf(in[0], in[1]); });
        scales.push_back(scale);
      }
      sums.push_back(sum);
    }
    Values next{e.add(carried[0], e.max(e.sub(span.to, span.from), e.number(0)))};
    next.append(sumBlocks(tile, span, carried[0], sums));
    next.append(scales);
    return next;
  });
}

void PatternKernel::store(const Item &item, const Tile &tile, ValueRange sums) {
  int64_t heads = p.back ? p.results : p.heads;
  for (int64_t own = 0; own < ownParts(); ++own) {
    Value part = ownPart(own), limit = limitOf(tile, part);
    Value scale = changesUnits() ? sums[1 + ownParts() + own] : scaleOf(tile, item.head, part, p.scale);
    Value out =
        e.map(e.frag(p.channel), {sums[1 + own], scale}, [&](ValueRange in) { return e.mulf(in[0], in[1]); });
    Value place = e.add(e.mul(e.wide(tile.row), p.positions), e.wide(lastRow(tile, part)));
    Value at = e.add(e.mul(place, heads), e.wide(item.head));
    tile::StoreFragOp::create(e.b, e.loc, out, operand(p.y), e.mul(at, p.channel),
                              e.wide(e.number(-heads * p.channel)), limit, /*tail=*/!p.back);
    if (p.rowLse >= 0)
      tile::StoreRowsOp::create(e.b, e.loc, scaleOf(tile, item.head, part, p.lse), operand(p.rowLse), at,
                                e.wide(e.number(-heads)), limit, /*tail=*/!p.back);
  }
}

Value PatternKernel::consume(const Item &item, Value number) {
  return forEachTile(item, {number}, [&](const Tile &tile, ValueRange carried) {
    Values sums = sumHeads(item, tile, carried[0]);
    store(item, tile, sums);
    return Values{sums[0]};
  })[0];
}

AttendTile PatternKernel::build() {
  constexpr int64_t kProducerRegisters = 56, kRegisters = 224;
  allocate();
  initialiseBarriers();
  Value self = tile::WarpgroupOp::create(e.b, e.loc, e.i32);
  auto roles = tile::SpecializeOp::create(e.b, e.loc, kProducerRegisters, kRegisters);
  e.role(roles.getProducer(), [&] { produce(); });
  e.role(roles.getConsumers(), [&] {
    group = e.add(self, -1);
    forEachItem([&](const Item &item, Value number) { return consume(item, number); });
  });
  tile::ReturnOp::create(e.b, e.loc);
  auto kernel = cast<tile::KernelOp>(body->getParentOp());
  result.sharedBytes = kernel.sharedBytes();
  kernel.setShared(static_cast<uint64_t>(result.sharedBytes));
  return std::move(result);
}

} // namespace weft

//===- AttendKernel.cpp - What the tile kernels of attention share --------===//
#include "passes/Codegen/Gpu/AttendKernel.h"

using namespace mlir;

namespace weft {

constexpr int64_t kWarpgroup = tile::KernelOp::kWarpgroupThreads;
constexpr int64_t kSharedLimit = 227 * 1024, kSharedLimitSm80 = 163 * 1024; // of a CTA

AttendKernel::AttendKernel(Location loc, const AttendProblem &problem, const AttendTiling &tiling,
                           std::vector<int> own, std::vector<int> streamed, std::vector<int> companions)
    : p(problem), tiling(tiling), e(OpBuilder(loc.getContext()), loc, tiling.synchronous) {
  for (int operand : own)
    ownTensors.push_back({operand, {}, {}});
  for (int operand : streamed)
    streamedTensors.push_back({operand, {}, {}});
  if (this->tiling.columns)
    for (int operand : companions)
      companionTensors.push_back({operand, {}, {}});
  makeKernel(loc);
}

void AttendKernel::makeKernel(Location loc) {
  result.module = ModuleOp::create(loc);
  e.b.setInsertionPointToStart(result.module->getBody());
  result.threads = (tiling.groups + (tiling.producer ? 1 : 0)) * kWarpgroup;
  result.items = itemCount(p, tiling);
  auto kernel = tile::KernelOp::create(e.b, loc, p.name, result.threads,
                                       tiling.synchronous ? kSharedLimitSm80 : kSharedLimit, result.items);
  body = &kernel.getBody().emplaceBlock();
  for (RankedTensorType type : p.types)
    body->addArgument(tile::GlobalType::get(loc.getContext(), type.getElementType()), loc);
  if (!tiling.synchronous) {
    for (Tensor &tensor : ownTensors)
      tensor.map = addMap(tensor.operand, kRows);
    for (Tensor &tensor : streamedTensors)
      tensor.map = addMap(tensor.operand, tiling.block);
  }
  e.b.setInsertionPointToStart(body);
}

int64_t AttendKernel::headsOf(int operand) const {
  return operand == p.k || operand == p.v || operand == p.dk || operand == p.dv ? p.kvHeads : p.heads;
}

/// Boxes of `rows` places of one head and 64 channels.
Value AttendKernel::addMap(int operand, int64_t rows) {
  constexpr uint64_t kBytes = 2;
  auto heads = static_cast<uint64_t>(headsOf(operand)), channel = static_cast<uint64_t>(p.channel);
  auto places = static_cast<uint64_t>(p.types[static_cast<size_t>(operand)].getDimSize(1));
  rt::TensorMap map;
  map.operand = static_cast<uint32_t>(operand);
  map.type = rt::ElementType::BF16;
  map.sizes = {channel, heads, places, static_cast<uint64_t>(p.batch)};
  map.strides = {channel * kBytes, heads * channel * kBytes, places * heads * channel * kBytes};
  map.box = {static_cast<uint32_t>(kPanel), 1, static_cast<uint32_t>(rows), 1};
  map.swizzle = static_cast<uint32_t>(kPanel * kBytes);
  result.maps.push_back(std::move(map));
  return body->addArgument(tile::MapType::get(e.b.getContext()), e.loc);
}

//===----------------------------------------------------------------------===//
// Shared memory and barriers
//===----------------------------------------------------------------------===//

// Barriers: full and empty of each stage of the own tensors; then of each ring; of the item's cell.
int64_t AttendKernel::fullOf(size_t tensor) const {
  return 2 * tiling.ownStages + 2 * tiling.stages * static_cast<int64_t>(tensor);
}
int64_t AttendKernel::emptyOf(size_t tensor) const { return fullOf(tensor) + tiling.stages; }

void AttendKernel::allocate() {
  auto ring = [&](int64_t stages, int64_t rows) -> Value {
    auto type = tile::SmemType::get(e.b.getContext(), stages, rows, p.channel, e.bf16, /*swizzle=*/128,
                                    p.channel / kPanel);
    return tile::AllocOp::create(e.b, e.loc, type);
  };
  for (Tensor &tensor : ownTensors)
    tensor.tiles = ring(tiling.ownStages * tiling.groups, kRows);
  for (Tensor &tensor : streamedTensors)
    tensor.tiles = ring(tiling.stages, tiling.block);
  for (Tensor &tensor : companionTensors)
    tensor.tiles = tile::AllocOp::create(
        e.b, e.loc, tile::SmemType::get(e.b.getContext(), tiling.stages, 1, tiling.block, e.f32));
  if (tiling.synchronous)
    return;
  constexpr int64_t kOfItem = 2;
  int64_t count = fullOf(rings()) + (tiling.deal ? kOfItem : 0);
  auto type = tile::BarriersType::get(e.b.getContext(), count);
  if (tiling.deal)
    itemCell = tile::AllocCellsOp::create(e.b, e.loc, tile::CellsType::get(e.b.getContext(), 1));
  barriers = tile::AllocBarriersOp::create(e.b, e.loc, type);
}

void AttendKernel::initialiseBarriers() {
  constexpr int64_t kFilled = 1; // the thread that expects the bytes
  int64_t read = tiling.groups * tile::ArriveOp::kWarps;
  e.elect(/*ofCta=*/true, [&] {
    auto initialise = [&](int64_t number, int64_t count) {
      tile::InitBarrierOp::create(e.b, e.loc, barriers, e.number(number), count);
    };
    for (int64_t stage = 0; stage < tiling.ownStages; ++stage) {
      initialise(stage, kFilled);
      initialise(tiling.ownStages + stage, read);
    }
    auto companions = static_cast<int64_t>(companionTensors.size() / rings());
    for (size_t ring = 0; ring < rings(); ++ring)
      for (int64_t stage = 0; stage < tiling.stages; ++stage) {
        initialise(fullOf(ring) + stage, kFilled + companions * tile::CopyColsOp::kArrivals);
        initialise(emptyOf(ring) + stage, read);
      }
    if (tiling.deal) {
      initialise(itemFull(), kFilled);
      // All threads of the producer read it too where they come along.
      initialise(itemEmpty(), read + (tiling.columns ? tile::ArriveOp::kWarps : 0));
    }
    tile::FenceInitOp::create(e.b, e.loc);
  });
  tile::SyncOp::create(e.b, e.loc, e.number(0), result.threads);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void AttendKernel::loadPanels(const Tensor &tensor, Value tile, Value head, Value place, Value row,
                              Value barrier) {
  for (int64_t panel = 0; panel < p.channel / kPanel; ++panel) {
    Value to = tile::PanelOp::create(e.b, e.loc, tile, panel);
    SmallVector<Value> coordinates{e.number(panel * kPanel), head, place, row};
    tile::LoadTileOp::create(e.b, e.loc, tensor.map, coordinates, to, barriers, barrier);
  }
}

/// All threads copy a part each.
void AttendKernel::copyTile(const Tensor &tensor, Value tile, Value head, Value at, Value row) {
  int64_t heads = headsOf(tensor.operand),
          places = p.types[static_cast<size_t>(tensor.operand)].getDimSize(1);
  tile::CopyAsyncOp::create(e.b, e.loc, operand(tensor.operand),
                            place(row, at, head, places, heads, p.channel),
                            e.wide(e.number(heads * p.channel)), e.sub(e.number(places), at), tile);
}

void AttendKernel::sync() { tile::SyncOp::create(e.b, e.loc, e.number(0), result.threads); }

void AttendKernel::loadOwn(const Item &item) {
  if (tiling.synchronous) {
    for (Tensor &tensor : ownTensors)
      copyTile(tensor, e.stage(tensor.tiles, e.number(0)), ownHead(item), item.place, item.row);
    tile::CopyCommitOp::create(e.b, e.loc);
    tile::CopyWaitOp::create(e.b, e.loc, 0);
    return sync();
  }
  Value full = e.rem(item.turn, tiling.ownStages), first = e.mul(full, tiling.groups);
  Value before = e.sub(e.number(1), e.rem(e.div(item.turn, tiling.ownStages), 2));
  tile::WaitOp::create(e.b, e.loc, barriers, e.add(full, tiling.ownStages), before);
  int64_t bytes = 0;
  for (Tensor &tensor : ownTensors)
    bytes += cast<tile::SmemType>(tensor.tiles.getType()).ringBytes() / tiling.ownStages;
  byOne([&] {
    tile::ExpectOp::create(e.b, e.loc, barriers, full, bytes);
    for (Tensor &tensor : ownTensors)
      for (int64_t group = 0; group < tiling.groups; ++group)
        loadPanels(tensor, e.stage(tensor.tiles, e.add(first, group)), ownHead(item),
                   e.add(item.place, group * kRows), item.row, full);
  });
}

void AttendKernel::byOne(function_ref<void()> body) {
  if (tiling.columns) // then all threads of the producer come here
    e.elect(/*ofCta=*/false, body);
  else
    body();
}

void AttendKernel::loadBlock(const Item &item, const Run &run, Value number, Value ringNumber) {
  Value stage = stageOf(ringNumber), before = e.sub(e.number(1), parityOf(ringNumber));
  Value place = e.mul(blockOf(run, number), tiling.block);
  if (tiling.synchronous) {
    for (Tensor &tensor : streamedTensors)
      copyTile(tensor, e.stage(tensor.tiles, stage), run.head, place, item.row);
    return;
  }
  SmallVector<size_t> tensors = llvm::to_vector(llvm::seq(streamedTensors.size()));
  for (size_t ring = 0; ring < rings(); ++ring) {
    tile::WaitOp::create(e.b, e.loc, barriers, e.add(stage, emptyOf(ring)), before);
    loadStage(item, run, place, stage, e.add(stage, fullOf(ring)),
              tiling.joint ? ArrayRef(tensors) : ArrayRef(tensors[ring]));
  }
}

/// These tensors of a block, with their companions, onto barrier `full`.
void AttendKernel::loadStage(const Item &item, const Run &run, Value place, Value stage, Value full,
                             ArrayRef<size_t> tensors) {
  int64_t bytes = 0;
  for (size_t tensor : tensors)
    bytes += cast<tile::SmemType>(streamedTensors[tensor].tiles.getType()).stageBytes();
  byOne([&] {
    tile::ExpectOp::create(e.b, e.loc, barriers, full, bytes);
    for (size_t tensor : tensors)
      loadPanels(streamedTensors[tensor], e.stage(streamedTensors[tensor].tiles, stage), run.head, place,
                 item.row, full);
  });
  if (companionTensors.empty())
    return;
  for (size_t tensor : tensors)
    tile::CopyColsOp::create(e.b, e.loc, operand(companionTensors[tensor].operand),
                             this->place(item.row, place, run.head, p.queries, p.heads, 1),
                             e.wide(e.number(p.heads)), e.sub(e.number(p.queries), place),
                             e.stage(companionTensors[tensor].tiles, stage), barriers, full);
}

void AttendKernel::prefetch(const Item &item, const Run &run, Value number, Value ringNumber) {
  if (tiling.producer)
    return;
  if (tiling.synchronous) {
    e.when(e.less(number, run.count), [&] { loadBlock(item, run, number, ringNumber); });
    tile::CopyCommitOp::create(e.b, e.loc);
    return;
  }
  e.when(e.both(e.same(group, e.number(0)), e.less(number, run.count)),
         [&] { e.elect(/*ofCta=*/false, [&] { loadBlock(item, run, number, ringNumber); }); });
}

Value AttendKernel::blockOf(const Run &run, Value number) { return e.add(run.from, e.mul(number, run.step)); }

Value AttendKernel::take(size_t tensor, Value number) {
  Value stage = stageOf(number);
  if (!tiling.synchronous && tensor < rings())
    tile::WaitOp::create(e.b, e.loc, barriers, e.add(stage, fullOf(tensor)), parityOf(number));
  return e.stage(streamedTensors[tensor].tiles, stage);
}

void AttendKernel::release(size_t tensor, Value number) {
  if (tiling.synchronous || tensor >= rings())
    return; // forEachBlock lets all threads come together; the first of a stage says it for all
  tile::ArriveOp::create(e.b, e.loc, barriers, e.add(stageOf(number), emptyOf(tensor)));
}

Value AttendKernel::companion(size_t tensor, Value number) {
  return tile::ReadColsOp::create(e.b, e.loc, e.cols(tiling.block, e.f32),
                                  e.stage(companionTensors[tensor].tiles, stageOf(number)));
}

void AttendKernel::takeOwn(const Item &item) {
  ownStage = e.rem(item.turn, tiling.ownStages);
  if (tiling.synchronous)
    return loadOwn(item);
  if (!tiling.producer)
    e.when(e.same(group, e.number(0)), [&] { e.elect(/*ofCta=*/false, [&] { loadOwn(item); }); });
  tile::WaitOp::create(e.b, e.loc, barriers, ownStage, e.rem(e.div(item.turn, tiling.ownStages), 2));
}

Value AttendKernel::own(size_t tensor) {
  return e.stage(ownTensors[tensor].tiles, e.add(e.mul(ownStage, tiling.groups), group));
}

void AttendKernel::releaseOwn() {
  if (!tiling.synchronous)
    tile::ArriveOp::create(e.b, e.loc, barriers, e.add(ownStage, tiling.ownStages));
}

constexpr int64_t kFirstTurn = 8; // of the named barriers: one a warpgroup

void AttendKernel::beginTurns(const Run &run) {
  if (tiling.turns && tiling.brief > 1)
    turning = e.less(e.number(tiling.brief), run.count);
}

void AttendKernel::inTurn(function_ref<void()> body) {
  if (!tiling.turns)
    return;
  if (turning)
    e.when(turning, body);
  else
    body();
}

void AttendKernel::takeTurn() {
  inTurn([&] { tile::SyncOp::create(e.b, e.loc, e.add(group, kFirstTurn), 2 * kWarpgroup); });
}

void AttendKernel::passTurn() {
  inTurn([&] {
    tile::SyncArriveOp::create(e.b, e.loc, e.add(e.rem(e.add(group, 1), tiling.groups), kFirstTurn),
                               2 * kWarpgroup);
  });
}

AttendKernel::Values AttendKernel::stream(const Item &item, const Run &run, Value number, Value begin,
                                          Value end, function_ref<Values()> inside) {
  auto leaveOut = [&](Value from, Value to) {
    e.loop(from, to, [&](Value at) {
      Value inRing = e.add(number, at);
      prefetch(item, run, e.add(at, 1), e.add(inRing, 1));
      // The first block of those that are worked on takes no turn: nor does the last of all, if there is none.
      if (tiling.turns)
        e.when(e.less(at, e.select(e.less(begin, run.count), run.count, e.add(run.count, -1))), [&] {
          takeTurn();
          passTurn();
        });
      for (size_t tensor = 0; tensor < streamedTensors.size(); ++tensor) {
        take(tensor, inRing);
        release(tensor, inRing);
      }
    });
  };
  prefetch(item, run, e.number(0), number);
  if (tiling.groups == 1) // an item's blocks are its only warpgroup's
    return inside();
  leaveOut(e.number(0), begin);
  Values given = inside();
  leaveOut(end, run.count);
  return given;
}

AttendKernel::Values AttendKernel::forEachBlock(const Item &item, const Run &run, Value number, Value from,
                                                Value to, ValueRange start, BlockBody block) {
  return e.loop(from, to, e.number(1), start, [&](Value at, ValueRange carried) {
    Value inRing = e.add(number, at);
    prefetch(item, run, e.add(at, 1), e.add(inRing, 1));
    if (!tiling.synchronous)
      return block(at, inRing, carried);
    tile::CopyWaitOp::create(e.b, e.loc, 1); // all but the block that was just asked for
    sync();
    Values given = block(at, inRing, carried);
    sync();
    return given;
  });
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

int64_t AttendKernel::itemCount(const AttendProblem &p, const AttendTiling &tiling) {
  int64_t places = p.pass == AttendPass::KeyValue ? p.keys : p.queries, rows = tiling.groups * kRows;
  return p.batch * p.itemHeads() * ((places + rows - 1) / rows);
}

/// Pairs of a row and a head that are worked on together: as many as keep their
/// keys and values in the L2, longest tiles first among them.
int64_t AttendKernel::sectionPairs() const {
  constexpr int64_t kCache = int64_t(40) << 20, kTensors = 2, kBytes = 2;
  int64_t pairs = this->pairs(), most = kCache / (kTensors * kBytes * p.keys * p.channel);
  int64_t section = std::clamp<int64_t>(most, 1, pairs);
  while (pairs % section)
    --section;
  return section;
}

AttendKernel::Item AttendKernel::decode(Value section, Value number, Value turn) {
  int64_t pairs = sectionPairs();
  Value pair = e.add(e.mul(section, pairs), e.rem(number, pairs));
  Value tile = e.div(number, pairs);
  if (p.pass != AttendPass::KeyValue) // later queries see more keys, earlier keys more queries
    tile = e.sub(e.number(tilesOfHead() - 1), tile);
  Value place = e.mul(tile, ownRows());
  if (p.order.empty())
    return {e.div(pair, p.itemHeads()), e.rem(pair, p.itemHeads()), place, turn};
  Value at = e.div(pair, p.batch), head = e.number(p.order.front());
  for (size_t i = 1; i < p.order.size(); ++i)
    head = e.select(e.same(at, e.number(static_cast<int64_t>(i))), e.number(p.order[i]), head);
  return {e.rem(pair, p.batch), head, place, turn};
}

void AttendKernel::tellItem(Value number, Value turn) {
  tile::WaitOp::create(e.b, e.loc, barriers, e.number(itemEmpty()), e.sub(e.number(1), e.rem(turn, 2)));
  tile::WriteOp::create(e.b, e.loc, number, itemCell, e.number(0));
  tile::ArriveOp::create(e.b, e.loc, barriers, e.number(itemFull()));
}

Value AttendKernel::readItem(Value turn) {
  tile::WaitOp::create(e.b, e.loc, barriers, e.number(itemFull()), e.rem(turn, 2));
  Value number = tile::ReadOp::create(e.b, e.loc, e.i32, itemCell, e.number(0));
  tile::ArriveOp::create(e.b, e.loc, barriers, e.number(itemEmpty()));
  return number;
}

/// Of the item's turn only what barriers ask for goes round, modulo twice the stages, as bits: a register
/// less than the number where there are none left.
void AttendKernel::repeat(ValueRange start, function_ref<Value(Value, ValueRange)> next,
                          function_ref<Values(const Item &, ValueRange)> work) {
  auto bit = [&](bool value) -> Value {
    return arith::ConstantOp::create(e.b, e.loc, e.b.getBoolAttr(value));
  };
  auto differ = [&](Value x, Value y) -> Value { return arith::XOrIOp::create(e.b, e.loc, x, y); };
  auto turnOf = [&](ValueRange carried) {
    Value low = e.select(carried[0], e.number(1), e.number(0));
    return e.add(low, e.select(carried[1], e.number(2), e.number(0)));
  };
  int64_t items = result.items / (pairs() / sectionPairs()); // of a section
  Values all{bit(false), bit(false)};
  llvm::append_range(all, start);
  e.loopBelow(
      e.number(result.items), all,
      [&](ValueRange carried) { return next(turnOf(carried), carried.drop_front(2)); },
      [&](Value number, ValueRange carried) {
        Item item = decode(e.div(number, items), e.rem(number, items), turnOf(carried));
        Values after{differ(carried[0], bit(true)), differ(carried[1], carried[0])};
        llvm::append_range(after, work(item, carried.drop_front(2)));
        return after;
      });
}

/// Items in their order, each to the CTA that asks first.
void AttendKernel::forEachFreeItem(ItemBody work) {
  repeat(
      {e.number(0)}, [&](Value turn, ValueRange) { return readItem(turn); },
      [&](const Item &item, ValueRange carried) { return Values{work(item, carried[0])}; });
}

/// The producer's way: it asks, tells the others, and goes on to the copies. The answer
/// comes while the item before is worked on; nobody else waits for it.
void AttendKernel::forEachFetchedItem(ItemBody work) {
  if (asksAhead())
    return repeat(
        {e.number(0), nextItem()},
        [&](Value turn, ValueRange carried) {
          tellItem(carried[1], turn);
          return carried[1];
        },
        [&](const Item &item, ValueRange carried) {
          Value blocks = work(item, carried[0]);
          return Values{blocks, coming};
        });
  repeat(
      {e.number(0)},
      [&](Value turn, ValueRange) {
        Value number;
        byOne([&] { tellItem(number = nextItem(), turn); });
        return tiling.columns ? readItem(turn) : number;
      },
      [&](const Item &item, ValueRange carried) { return Values{work(item, carried[0])}; });
}

void AttendKernel::forEachItem(ItemBody work) {
  if (tiling.deal)
    forEachFreeItem(work);
  else
    forEachOwnItem(work);
}

/// CTAs deal a section's items, longest first, among themselves to and fro: one
/// that gets the longer of two rounds gets the shorter of the next. Who begins moves
/// on with each section, so that what is left of the difference goes round.
void AttendKernel::forEachOwnItem(ItemBody work) {
  int64_t sections = pairs() / sectionPairs(), items = result.items / sections;
  Value self = tile::CtaOp::create(e.b, e.loc, e.i32), ctas = tile::GridSizeOp::create(e.b, e.loc, e.i32);
  Value none = e.number(0), one = e.number(1), many = e.number(items);
  Value whole = e.div(many, ctas), rest = e.sub(many, e.mul(whole, ctas));
  e.loop(none, e.number(sections), one, {none, none}, [&](Value section, ValueRange before) {
    Value forth = e.rem(e.add(self, e.div(e.mul(section, ctas), sections)), ctas);
    Value back = e.sub(e.add(ctas, -1), forth);
    auto placeIn = [&](Value round) { return e.select(e.same(e.rem(round, 2), none), forth, back); };
    Value rounds = e.add(whole, e.select(e.less(placeIn(whole), rest), one, none));
    return e.loop(none, rounds, one, before, [&](Value round, ValueRange carried) {
      Value number = e.add(e.mul(round, ctas), placeIn(round));
      Value blocks = work(decode(section, number, carried[0]), carried[1]);
      return Values{e.add(carried[0], 1), blocks};
    });
  });
}

/// All threads come along where each copies a companion's number, else one.
void AttendKernel::produce() {
  auto copyItem = [&](const Item &item, Value number) {
    loadOwn(item);
    return forEachRun(item, {number}, [&](const Run &run, ValueRange carried) {
      auto copy = [&](Value at) { loadBlock(item, run, at, e.add(carried[0], at)); };
      Value most = asksAhead() ? e.max(e.add(run.count, -1), e.number(0)) : run.count;
      e.loop(e.number(0), most, copy);
      if (asksAhead()) {
        coming = nextItem();
        e.loop(most, run.count, copy);
      }
      return Values{e.add(carried[0], run.count)};
    })[0];
  };
  auto copyItems = [&] {
    if (tiling.deal)
      forEachFetchedItem(copyItem);
    else
      forEachOwnItem(copyItem);
  };
  if (tiling.columns)
    copyItems();
  else
    e.elect(/*ofCta=*/false, copyItems);
}

AttendTile AttendKernel::build() {
  allocate();
  if (!tiling.synchronous)
    initialiseBarriers();
  Value self = tile::WarpgroupOp::create(e.b, e.loc, e.i32);
  auto work = [&](const Item &item, Value number) { return consume(item, number); };
  if (tiling.producer) {
    auto roles = tile::SpecializeOp::create(e.b, e.loc, tiling.producerRegisters, tiling.registers);
    e.role(roles.getProducer(), [&] { produce(); });
    e.role(roles.getConsumers(), [&] {
      group = e.add(self, -1);
      if (tiling.turns) // the last one gives the first its first turn
        e.when(e.same(group, e.number(tiling.groups - 1)), [&] { passTurn(); });
      forEachItem(work);
    });
  } else {
    group = self;
    forEachItem(work);
  }
  tile::ReturnOp::create(e.b, e.loc);
  auto kernel = cast<tile::KernelOp>(body->getParentOp());
  result.sharedBytes = kernel.sharedBytes();
  kernel.setShared(static_cast<uint64_t>(result.sharedBytes));
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Places, windows, heads
//===----------------------------------------------------------------------===//

Value AttendKernel::place(Value row, Value at, Value head, int64_t places, int64_t heads, int64_t width) {
  Value number = e.add(e.mul(e.wide(row), places), e.wide(at));
  return e.mul(e.add(e.mul(number, heads), e.wide(head)), width);
}

Value AttendKernel::firstRow(const Item &item) { return e.add(item.place, e.mul(group, kRows)); }

Value AttendKernel::windowOf(Value head) {
  constexpr int64_t kAll = std::numeric_limits<int32_t>::max();
  return p.windows < 0 ? e.number(kAll) : e.load(operand(p.windows), e.wide(head));
}

Value AttendKernel::kvOf(Value head) {
  if (p.kvOf >= 0)
    return e.load(operand(p.kvOf), e.wide(head));
  Value kv = e.number(0);
  for (const Axis &axis : p.kvAxes) {
    Value at = e.rem(e.div(head, strideOf(p.headAxes, axis.name)), axis.size);
    kv = e.add(kv, e.mul(at, strideOf(p.kvAxes, axis.name)));
  }
  return kv;
}

Value AttendKernel::last(Value place, int64_t rows, int64_t limit) {
  return e.add(e.min(e.add(place, rows), e.number(limit)), -1);
}

Value AttendKernel::firstKey(Value row, Value query, Value window, Value offset) {
  Value first = e.max(e.add(e.sub(e.add(query, offset), window), 1), e.number(0));
  if (p.starts < 0)
    return first;
  Value zero = e.number(0);
  return e.max(first, e.load(operand(p.starts), place(row, query, zero, p.queries, 1, 1)));
}

} // namespace weft

//===- FoldedKernel.cpp - The tile kernel of a product and what follows it ===//
#include "passes/Codegen/Gpu/FoldedKernel.h"

using namespace mlir;

namespace weft {

constexpr int64_t kWarpgroup = tile::KernelOp::kWarpgroupThreads;
constexpr int64_t kBytes = 2, kPanel = 64; // of bf16; columns of a swizzled panel

FoldedKernel::FoldedKernel(Location loc, const FoldedProblem &problem)
    : p(problem), e(OpBuilder(loc.getContext()), loc, /*synchronous=*/false) {
  makeKernel(loc);
}

void FoldedKernel::makeKernel(Location loc) {
  constexpr int64_t kSharedLimit = 227 * 1024;
  result.module = ModuleOp::create(loc);
  e.b.setInsertionPointToStart(result.module->getBody());
  result.threads = (1 + kGroups) * kWarpgroup;
  result.items = items();
  auto kernel = tile::KernelOp::create(e.b, loc, p.name, result.threads, kSharedLimit, result.items);
  body = &kernel.getBody().emplaceBlock();
  for (Type element : p.storage)
    body->addArgument(tile::GlobalType::get(loc.getContext(), element), loc);
  mapA = addMap(0, p.gemm.k, p.gemm.m, p.gemm.lda, kStep, kTileRows);
  mapB = p.gemm.transB ? addMap(1, p.gemm.k, p.gemm.n, p.gemm.ldb, kStep, kTileColumns)
                       : addMap(1, p.gemm.n, p.gemm.k, p.gemm.ldb, kPanel, kStep);
  e.b.setInsertionPointToStart(body);
}

/// Boxes of a matrix of bf16; what lies beyond its sizes comes as 0.
FoldedKernel::Value FoldedKernel::addMap(int operand, int64_t inner, int64_t outer, int64_t leading,
                                         int64_t innerBox, int64_t outerBox) {
  rt::TensorMap tensor;
  tensor.operand = static_cast<uint32_t>(operand);
  tensor.type = rt::ElementType::BF16;
  tensor.sizes = {static_cast<uint64_t>(inner), static_cast<uint64_t>(outer)};
  tensor.strides = {static_cast<uint64_t>(leading * kBytes)};
  tensor.box = {static_cast<uint32_t>(innerBox), static_cast<uint32_t>(outerBox)};
  tensor.swizzle = static_cast<uint32_t>(kPanel * kBytes);
  result.maps.push_back(std::move(tensor));
  return body->addArgument(tile::MapType::get(e.b.getContext()), e.loc);
}

void FoldedKernel::allocate() {
  MLIRContext *context = e.b.getContext();
  auto ring = [&](int64_t rows, int64_t columns) -> Value {
    auto type = tile::SmemType::get(context, kStages, rows, columns, e.bf16, /*swizzle=*/kPanel * kBytes,
                                    columns / kPanel);
    return tile::AllocOp::create(e.b, e.loc, type);
  };
  tilesA = ring(kTileRows, kStep);
  tilesB = p.gemm.transB ? ring(kTileColumns, kStep) : ring(kStep, kTileColumns);
  barriers = tile::AllocBarriersOp::create(e.b, e.loc, tile::BarriersType::get(context, 2 * kStages));
}

// Barriers: full of each stage, then empty of each.
void FoldedKernel::initialiseBarriers() {
  e.elect(/*ofCta=*/true, [&] {
    for (int64_t stage = 0; stage < kStages; ++stage) {
      tile::InitBarrierOp::create(e.b, e.loc, barriers, e.number(stage), 1);
      tile::InitBarrierOp::create(e.b, e.loc, barriers, e.number(kStages + stage),
                                  kGroups * tile::ArriveOp::kWarps);
    }
    tile::FenceInitOp::create(e.b, e.loc);
  });
  tile::SyncOp::create(e.b, e.loc, e.number(0), result.threads);
}

/// Items that run at the same time read few rows and columns: bands of up to kBand rows of tiles, of one
/// height, in a band one column after the other.
FoldedKernel::Item FoldedKernel::itemOf(Value number) {
  const int64_t rows = (p.gemm.m + kTileRows - 1) / kTileRows,
                columns = (p.gemm.n + kTileColumns - 1) / kTileColumns;
  int64_t height = kBand;
  while (rows % height != 0)
    --height;
  Value band = e.div(number, height * columns), within = e.rem(number, height * columns);
  Value row = e.add(e.mul(band, height), e.rem(within, height));
  return {e.mul(row, kTileRows), e.mul(e.div(within, height), kTileColumns)};
}

//===----------------------------------------------------------------------===//
// The producer
//===----------------------------------------------------------------------===//

void FoldedKernel::loadStep(const Item &item, Value step, Value number) {
  Value stage = e.rem(number, kStages), parity = e.rem(e.div(number, kStages), 2), from = e.mul(step, kStep);
  tile::WaitOp::create(e.b, e.loc, barriers, e.add(stage, kStages), e.sub(e.number(1), parity));
  tile::ExpectOp::create(e.b, e.loc, barriers, stage, (kTileRows + kTileColumns) * kStep * kBytes);
  auto load = [&](Value map, Value inner, Value outer, Value to) {
    tile::LoadTileOp::create(e.b, e.loc, map, ValueRange{inner, outer}, to, barriers, stage);
  };
  load(mapA, from, item.row, e.stage(tilesA, stage));
  Value right = e.stage(tilesB, stage);
  if (p.gemm.transB)
    return load(mapB, from, item.column, right);
  for (int64_t panel = 0; panel < kTileColumns / kPanel; ++panel)
    load(mapB, e.add(item.column, panel * kPanel), from, tile::PanelOp::create(e.b, e.loc, right, panel));
}

void FoldedKernel::produce() {
  e.elect(/*ofCta=*/false, [&] {
    Value first = tile::CtaOp::create(e.b, e.loc, e.i32), size = tile::GridSizeOp::create(e.b, e.loc, e.i32);
    e.loop(first, e.number(items()), size, {e.number(0)}, [&](Value number, ValueRange carried) {
      Item item = itemOf(number);
      e.loop(e.number(0), e.number(steps()),
             [&](Value step) { loadStep(item, step, e.add(carried[0], step)); });
      return Values{e.add(carried[0], steps())};
    });
  });
}

//===----------------------------------------------------------------------===//
// The consumers: sums
//===----------------------------------------------------------------------===//

FoldedKernel::Value FoldedKernel::multiply(Value number, Value sums) {
  Value stage = e.rem(number, kStages);
  tile::WaitOp::create(e.b, e.loc, barriers, stage, e.rem(e.div(number, kStages), 2));
  Value left = tile::SliceOp::create(e.b, e.loc, e.stage(tilesA, stage), e.mul(group, kRows), kRows);
  e.fence();
  Value next = e.product(left, e.stage(tilesB, stage), sums, /*transposed=*/!p.gemm.transB);
  e.commit();
  return next;
}

void FoldedKernel::release(Value number) {
  tile::ArriveOp::create(e.b, e.loc, barriers, e.add(e.rem(number, kStages), kStages));
}

/// Steps with work are written out: which columns it is for is known when it is compiled. Parts of it are
/// spread evenly: where a step has none, products are issued ahead of those that run.
FoldedKernel::Value FoldedKernel::sumItem(Value number, int64_t works, function_ref<void(int64_t)> work) {
  const int64_t written = std::min(steps(), 2 * works);
  Value sums;
  int64_t part = 0;
  for (int64_t step = 0; step < written; ++step) {
    sums = multiply(e.add(number, step), sums);
    for (; part < works && part * written / works == step; ++part)
      work(part);
    sums = e.waitOne(1, sums);
    if (step > 0)
      release(e.add(number, step - 1));
  }
  sums =
      e.loop(e.number(written), e.number(steps()), e.number(1), {sums}, [&](Value step, ValueRange carried) {
        Value at = e.add(number, step);
        Value next = e.waitOne(1, multiply(at, carried[0]));
        release(e.add(at, -1));
        return Values{next};
      })[0];
  sums = e.waitOne(0, sums);
  release(e.add(number, steps() - 1));
  return sums;
}

//===----------------------------------------------------------------------===//
// The consumers: what follows
//===----------------------------------------------------------------------===//

/// Elements of the result from (row, column) on, wide.
static Value offsetOf(tile::Emitter &e, int64_t leading, Value row, Value column) {
  return e.add(e.mul(e.wide(row), leading), e.wide(column));
}

/// Rows of a slice that are the result's; none where its columns are not, or for no item.
FoldedKernel::Value FoldedKernel::limitOf(Value item, Value row, Value column) {
  Value rows = e.select(e.less(item, e.number(0)), e.number(0), e.sub(e.number(p.gemm.m), row));
  if (p.gemm.n % kTileColumns == 0)
    return rows;
  return e.select(e.less(column, e.number(p.gemm.n)), rows, e.number(0));
}

tile::Values FoldedKernel::readInputs(const Item &item, Value limit, int64_t slice) {
  tile::Values inputs;
  Value offset = offsetOf(e, p.gemm.ldc, item.row, e.add(item.column, slice * kSlice));
  for (size_t number = 2; number < p.arguments; ++number)
    inputs.push_back(tile::LoadFragOp::create(e.b, e.loc, sliceType(), operand(number), offset,
                                              e.wide(e.number(p.gemm.ldc)), limit, /*wide=*/true));
  return inputs;
}

FoldedKernel::Value FoldedKernel::evaluate(weft::Emitter &rows, int node, ValueRange scalars,
                                           llvm::DenseMap<int, Value> &known) {
  if (Value value = known.lookup(node))
    return value;
  const RowNode &at = p.program.nodes[static_cast<size_t>(node)];
  if (at.kind == RowNode::Kind::Operand) // c stands first, then the inputs
    return known[node] = scalars[at.operand == p.product ? 0 : static_cast<size_t>(at.operand) - 1];
  SmallVector<Value> inputs;
  for (int input : at.inputs)
    inputs.push_back(evaluate(rows, input, scalars, known));
  Value value = at.map(rows, inputs, [] { return Value(); });
  return known[node] = value;
}

/// The results from the product's and the inputs' elements: the product itself as it stands.
tile::Values FoldedKernel::resultsOf(ValueRange given) {
  // The body comes first: it tells which results are the product.
  Type floats = e.frag(kSlice);
  auto *block = new mlir::Block();
  block->addArguments(SmallVector<Type>(given.size(), e.f32), SmallVector<Location>(given.size(), e.loc));
  weft::Emitter rows(OpBuilder(e.b.getContext()), e.loc, /*width=*/1);
  rows.b.setInsertionPointToEnd(block);
  rows.approximate = true;
  llvm::DenseMap<int, Value> known;
  SmallVector<Value> values(p.storage.size() - p.arguments), made;
  for (auto [node, at] : llvm::enumerate(p.program.nodes))
    for (int number : at.results)
      values[static_cast<size_t>(number)] =
          evaluate(rows, static_cast<int>(node), block->getArguments(), known);
  auto isProduct = [&](Value value) { return value == block->getArgument(0); };
  llvm::copy_if(values, std::back_inserter(made), [&](Value value) { return !isProduct(value); });
  tile::YieldOp::create(rows.b, e.loc, made);
  tile::Values inputs;
  for (Value frag : given)
    inputs.push_back(tile::CastOp::create(e.b, e.loc, floats, frag));
  auto map = tile::MapOp::create(e.b, e.loc, SmallVector<Type>(made.size(), floats), inputs, false);
  map.getBody().push_back(block);
  tile::Values results;
  size_t next = 0;
  for (Value value : values)
    results.push_back(isProduct(value) ? given[0] : map.getResult(next++));
  return results;
}

void FoldedKernel::finishSlice(const Item &item, Value limit, int64_t slice, Value pairs, ValueRange inputs) {
  Value offset = offsetOf(e, p.gemm.ldc, item.row, e.add(item.column, slice * kSlice));
  tile::Values given{
      tile::ColumnsOp::create(e.b, e.loc, sliceType(), pairs, static_cast<uint64_t>(slice * kSlice))};
  llvm::append_range(given, inputs);
  for (auto [number, frag] : llvm::enumerate(resultsOf(given)))
    tile::StoreFragOp::create(e.b, e.loc, frag, operand(p.arguments + number), offset,
                              e.wide(e.number(p.gemm.ldc)), limit, /*tail=*/false, /*wide=*/true);
}

/// Inputs are asked for one part before they are worked on.
void FoldedKernel::follow(Value at, Value pairs, int64_t number, Values &inputs) {
  Item item = itemOf(e.max(at, e.number(0)));
  item.row = e.add(item.row, e.mul(group, kRows));
  auto limit = [&](int64_t slice) { return limitOf(at, item.row, e.add(item.column, slice * kSlice)); };
  Values next;
  if (number < kSlices)
    next = readInputs(item, limit(number), number);
  if (number > 0)
    finishSlice(item, limit(number - 1), number - 1, pairs, inputs);
  inputs = next;
}

void FoldedKernel::consume() {
  Value first = tile::CtaOp::create(e.b, e.loc, e.i32), size = tile::GridSizeOp::create(e.b, e.loc, e.i32);
  auto pairs = tile::FragType::get(e.b.getContext(), kTileColumns, e.bf16);
  Values start{e.number(0), e.number(-1), e.zero(pairs)};
  Values last = e.loop(first, e.number(items()), size, start, [&](Value number, ValueRange carried) {
    Values inputs;
    Value sums =
        sumItem(carried[0], kSlices + 1, [&](int64_t part) { follow(carried[1], carried[2], part, inputs); });
    return Values{e.add(carried[0], steps()), number, tile::CastOp::create(e.b, e.loc, pairs, sums)};
  });
  Values inputs;
  for (int64_t part = 0; part <= kSlices; ++part)
    follow(last[1], last[2], part, inputs);
}

AttendTile FoldedKernel::build() {
  constexpr int64_t kProducerRegisters = 40, kRegisters = 232;
  allocate();
  initialiseBarriers();
  Value self = tile::WarpgroupOp::create(e.b, e.loc, e.i32);
  auto roles = tile::SpecializeOp::create(e.b, e.loc, kProducerRegisters, kRegisters);
  e.role(roles.getProducer(), [&] { produce(); });
  e.role(roles.getConsumers(), [&] {
    group = e.add(self, -1);
    consume();
  });
  tile::ReturnOp::create(e.b, e.loc);
  auto kernel = cast<tile::KernelOp>(body->getParentOp());
  result.sharedBytes = kernel.sharedBytes();
  kernel.setShared(static_cast<uint64_t>(result.sharedBytes));
  return std::move(result);
}

} // namespace weft

//===- BlockEmulator.cpp - Thread blocks on the host ----------------------===//
#include "test/passes/Codegen/Gpu/BlockEmulator.h"

#include "passes/Codegen/Codegen.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <cmath>
#include <cstring>
#include <random>

#include <csetjmp>
#include <ucontext.h>

using namespace mlir;

namespace weft::test {
namespace {

constexpr size_t kStack = size_t{1} << 16;
constexpr int64_t kWarp = 32;

/// What a thread waits for.
enum class State : uint8_t { Ready, Barrier, Shuffle, Done };

struct Thread {
  ucontext_t context{}; // of its start
  jmp_buf place{};      // where it waits: a switch without a call of the system
  bool started = false;
  std::vector<char> stack;
  State state = State::Ready;
  uint32_t value = 0;
  int32_t offset = 0, kind = 0;
  /// Copies of 16 bytes under way, in groups, the last of them open.
  std::vector<std::vector<std::pair<void *, const void *>>> copies{{}};
};

/// The block that runs now, on this thread of the host.
struct Running {
  std::vector<Thread> threads;
  jmp_buf scheduler{};
  size_t current = 0;
  uint32_t block = 0, blocks = 1;
  void (*entry)(void *const *) = nullptr;
};
Running *running = nullptr;

void wait(State state) {
  Thread &mine = running->threads[running->current];
  mine.state = state;
  if (_setjmp(mine.place) == 0)
    _longjmp(running->scheduler, 1);
}

/// Lets a thread go on until it waits or ends.
void resume(Thread &thread) {
  if (_setjmp(running->scheduler) != 0)
    return;
  if (thread.started)
    _longjmp(thread.place, 1);
  thread.started = true;
  setcontext(&thread.context);
}

// What the kernel calls.
uint32_t special(uint32_t which) {
  const uint32_t values[] = {static_cast<uint32_t>(running->current), running->block, running->blocks,
                             static_cast<uint32_t>(running->threads.size())};
  return values[which];
}
void barrier() { wait(State::Barrier); }
uint32_t shuffle(uint32_t value, int32_t offset, int32_t kind) {
  Thread &mine = running->threads[running->current];
  mine.value = value, mine.offset = offset, mine.kind = kind;
  wait(State::Shuffle);
  return mine.value;
}
void copy(void *to, const void *from) {
  running->threads[running->current].copies.back().emplace_back(to, from);
}
void commit() { running->threads[running->current].copies.emplace_back(); }
/// Copies happen as late as they may.
void await(int32_t pending) {
  auto &groups = running->threads[running->current].copies;
  while (groups.size() > static_cast<size_t>(pending) + 1) {
    for (auto [to, from] : groups.front())
      std::memcpy(to, from, 16);
    groups.erase(groups.begin());
  }
}
float power(float x) { return std::exp2(x); }
uint16_t rounded(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  if (std::isnan(x))
    return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

struct Machine {
  void *special, *barrier, *shuffle, *power, *rounded, *copy, *commit, *await, *memory;
};
enum Slot : int32_t { kSpecial, kBarrier, kShuffle, kPower, kRounded, kCopy, kCommit, kAwait, kMemory };

//===----------------------------------------------------------------------===//
// From the GPU's ops to calls
//===----------------------------------------------------------------------===//

struct Rewriter {
  OpBuilder b;
  Value machine;
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());

  Value slot(Location loc, Slot number) {
    Value place = LLVM::GEPOp::create(b, loc, pointer, pointer, machine,
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(number)});
    return LLVM::LoadOp::create(b, loc, pointer, place);
  }

  Value call(Location loc, Slot number, Type result, ValueRange arguments) {
    SmallVector<Value> operands{slot(loc, number)};
    llvm::append_range(operands, arguments);
    Type returned = result ? result : LLVM::LLVMVoidType::get(b.getContext());
    auto type = LLVM::LLVMFunctionType::get(returned, llvm::to_vector(arguments.getTypes()));
    auto op = LLVM::CallOp::create(b, loc, type, operands);
    return result ? op.getResult() : Value();
  }

  /// In the place of an op without results.
  void call(Operation *op) {
    Location loc = op->getLoc();
    auto host = [&](Value address) -> Value {
      return LLVM::AddrSpaceCastOp::create(b, loc, pointer, address);
    };
    Value none = number(loc, 0);
    if (isa<NVVM::SyncWarpOp>(op)) // a warp waits as it does for a shuffle
      call(loc, kShuffle, b.getI32Type(), {none, none, none});
    else if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op))
      call(loc, kCopy, {}, {host(copy.getDst()), host(copy.getSrc())});
    else if (isa<NVVM::CpAsyncCommitGroupOp>(op))
      call(loc, kCommit, {}, {});
    else if (auto await = dyn_cast<NVVM::CpAsyncWaitGroupOp>(op))
      call(loc, kAwait, {}, {number(loc, static_cast<int32_t>(await.getN()))});
    else
      call(loc, kBarrier, {}, {});
  }

  Value number(Location loc, int32_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(value));
  }

  /// `f` of each element of a scalar or vector.
  Value each(Location loc, Value x, Type result, function_ref<Value(Value)> f) {
    auto vector = dyn_cast<VectorType>(x.getType());
    if (!vector)
      return f(x);
    Value all = LLVM::PoisonOp::create(b, loc, result);
    for (int32_t lane = 0; lane < vector.getDimSize(0); ++lane) {
      Value at = number(loc, lane);
      all = LLVM::InsertElementOp::create(b, loc, all, f(LLVM::ExtractElementOp::create(b, loc, x, at)), at);
    }
    return all;
  }

  Value replaced(Operation *op) {
    Location loc = op->getLoc();
    Type i32 = b.getI32Type();
    if (isa<NVVM::ThreadIdXOp>(op))
      return call(loc, kSpecial, i32, {number(loc, 0)});
    if (isa<NVVM::BlockIdXOp>(op))
      return call(loc, kSpecial, i32, {number(loc, 1)});
    if (isa<NVVM::GridDimXOp>(op))
      return call(loc, kSpecial, i32, {number(loc, 2)});
    if (isa<NVVM::BlockDimXOp>(op))
      return call(loc, kSpecial, i32, {number(loc, 3)});
    if (auto exchange = dyn_cast<NVVM::ShflOp>(op)) {
      Value value = LLVM::BitcastOp::create(b, loc, i32, exchange.getVal());
      Value kind = number(loc, static_cast<int32_t>(exchange.getKind()));
      Value got = call(loc, kShuffle, i32, {value, exchange.getOffset(), kind});
      return LLVM::BitcastOp::create(b, loc, exchange.getType(), got);
    }
    if (auto exp = dyn_cast<LLVM::Exp2Op>(op))
      return each(loc, exp.getIn(), exp.getType(),
                  [&](Value x) { return call(loc, kPower, b.getF32Type(), {x}); });
    auto narrow = cast<LLVM::FPTruncOp>(op);
    return each(loc, narrow.getArg(), narrow.getType(), [&](Value x) -> Value {
      return LLVM::BitcastOp::create(b, loc, b.getBF16Type(), call(loc, kRounded, b.getI16Type(), {x}));
    });
  }
};

bool isReplaced(Operation *op) {
  if (auto narrow = dyn_cast<LLVM::FPTruncOp>(op))
    return getElementTypeOrSelf(narrow.getType()).isBF16();
  return isa<NVVM::ThreadIdXOp, NVVM::BlockIdXOp, NVVM::GridDimXOp, NVVM::BlockDimXOp, NVVM::ShflOp,
             LLVM::Exp2Op>(op);
}

size_t bytesOf(Type type) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return array.getNumElements() * bytesOf(array.getElementType());
  return type.getIntOrFloatBitWidth() / 8;
}

} // namespace

void BlockEmulator::placeGlobals(ModuleOp module, Value machine) {
  llvm::StringMap<size_t> offsets;
  size_t offset = 0;
  for (auto op : llvm::make_early_inc_range(module.getOps<LLVM::GlobalOp>())) {
    Global global;
    offset = (offset + 63) / 64 * 64;
    global.offset = offset;
    global.shared = op.getAddrSpace() == 3;
    global.bytes = bytesOf(op.getGlobalType());
    if (global.shared && global.bytes == 0)
      global.bytes = static_cast<size_t>(code.sharedBytes);
    global.initial.assign(global.bytes, 0);
    if (auto values = dyn_cast_or_null<DenseElementsAttr>(op.getValueOrNull()))
      std::memcpy(global.initial.data(), values.getRawData().data(), values.isSplat() ? 0 : global.bytes);
    if (auto values = dyn_cast_or_null<DenseElementsAttr>(op.getValueOrNull()); values && values.isSplat())
      for (size_t i = 0; i < global.bytes; i += 4)
        std::memcpy(&global.initial[i], values.getRawData().data(), 4);
    offsets[op.getSymName()] = offset;
    offset += global.bytes;
    globals.push_back(std::move(global));
  }
  SmallVector<LLVM::AddressOfOp> addresses;
  module.walk([&](LLVM::AddressOfOp op) { addresses.push_back(op); });
  for (LLVM::AddressOfOp op : addresses) {
    Rewriter rewriter{OpBuilder(op), machine};
    Location loc = op.getLoc();
    Value base = rewriter.slot(loc, kMemory);
    Value place =
        LLVM::GEPOp::create(rewriter.b, loc, rewriter.pointer, rewriter.b.getI8Type(), base,
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offsets[op.getGlobalName()])});
    Operation *cast = *op->getUsers().begin();
    cast->getResult(0).replaceAllUsesWith(place);
    cast->erase();
    op.erase();
  }
  for (auto op : llvm::make_early_inc_range(module.getOps<LLVM::GlobalOp>()))
    op.erase();
  memory.assign(offset + 64, 0);
}

void BlockEmulator::rewrite(LLVM::LLVMFuncOp function) {
  function->removeAttr("nvvm.kernel");
  function->removeAttr("nvvm.reqntid");
  function->removeAttr("nvvm.minctasm");
  function.walk([](LLVM::FenceOp op) { op->removeAttr("syncscope"); });
  function.walk([](LLVM::AtomicRMWOp op) { op->removeAttr("syncscope"); });
  // One argument of pointers in place of many: operands, scratch, the machine.
  OpBuilder b(function.getContext());
  b.setInsertionPointToStart(&function.front());
  Location loc = function.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  mlir::Block &entry = function.front();
  unsigned count = entry.getNumArguments();
  Value list = entry.addArgument(pointer, loc);
  for (unsigned i = 0; i <= count; ++i) {
    Value place =
        LLVM::GEPOp::create(b, loc, pointer, pointer, list, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    Value loaded = LLVM::LoadOp::create(b, loc, pointer, place);
    if (i < count)
      entry.getArgument(i).replaceAllUsesWith(loaded);
    else
      placeGlobals(*code.module, loaded);
    if (i == count) {
      SmallVector<Operation *> special, calls;
      function.walk([&](Operation *op) {
        if (isReplaced(op))
          special.push_back(op);
        if (isa<NVVM::Barrier0Op, NVVM::SyncWarpOp, NVVM::CpAsyncOp, NVVM::CpAsyncCommitGroupOp,
                NVVM::CpAsyncWaitGroupOp>(op))
          calls.push_back(op);
      });
      for (Operation *op : special) {
        Rewriter rewriter{OpBuilder(op), loaded};
        op->getResult(0).replaceAllUsesWith(rewriter.replaced(op));
        op->erase();
      }
      for (Operation *op : calls) {
        Rewriter{OpBuilder(op), loaded}.call(op);
        op->erase();
      }
    }
  }
  entry.eraseArguments(0, count);
  function.setFunctionType(LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer}));
}

BlockEmulator::BlockEmulator(GpuCode given) : code(std::move(given)) {
  auto entry = *code.module->getOps<LLVM::LLVMFuncOp>().begin();
  std::string name = entry.getSymName().str();
  hasScratch = code.scratchBytes > 0;
  rewrite(entry);
  auto text = toObject(*code.module, hostTarget());
  if (failed(text)) {
    problem = "the host has no code for it";
    return;
  }
  object = std::move(*text);
  std::string_view bytes = object;
  auto loaded = rt::ObjectImage::load({&bytes, 1});
  if (!loaded.ok()) {
    problem = std::string(loaded.status().message());
    return;
  }
  image = std::move(*loaded);
  auto found = image.find(0, name);
  if (!found.ok())
    problem = std::string(found.status().message());
  else
    function = reinterpret_cast<void *>(*found);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static void *const *arguments = nullptr;

static void threadMain() {
  running->entry(arguments);
  running->threads[running->current].state = State::Done;
  _longjmp(running->scheduler, 1);
}

/// Answers the shuffles of a warp once all its threads that still run have come.
static bool answerShuffle(Running &block, size_t warp) {
  size_t first = warp * kWarp, last = std::min(first + kWarp, block.threads.size());
  uint32_t values[kWarp] = {};
  bool any = false;
  for (size_t i = first; i < last; ++i) {
    const Thread &thread = block.threads[i];
    if (thread.state != State::Shuffle && thread.state != State::Done)
      return false;
    any |= thread.state == State::Shuffle;
    values[i - first] = thread.value;
  }
  for (size_t i = first; any && i < last; ++i) {
    Thread &thread = block.threads[i];
    if (thread.state != State::Shuffle)
      continue;
    auto lane = static_cast<int32_t>(i - first);
    bool up = thread.kind == static_cast<int32_t>(NVVM::ShflKind::up);
    int32_t from = up ? lane - thread.offset : lane ^ thread.offset;
    thread.value = values[from < 0 ? lane : from];
    thread.state = State::Ready;
  }
  return any;
}

static bool answerBarrier(Running &block) {
  bool any = false;
  for (const Thread &thread : block.threads) {
    if (thread.state != State::Barrier && thread.state != State::Done)
      return false;
    any |= thread.state == State::Barrier;
  }
  for (Thread &thread : block.threads)
    if (thread.state == State::Barrier)
      thread.state = State::Ready;
  return any;
}

static std::string runBlock(Running &block, std::mt19937_64 &random) {
  for (Thread &thread : block.threads) {
    thread.stack.resize(kStack);
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, threadMain, 0);
    thread.state = State::Ready;
    thread.started = false;
    thread.copies.assign(1, {});
  }
  std::vector<size_t> order(block.threads.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  while (true) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order)
      if (block.threads[i].state == State::Ready) {
        block.current = i;
        resume(block.threads[i]);
      }
    bool moved = answerBarrier(block);
    for (size_t warp = 0; warp * kWarp < block.threads.size(); ++warp)
      moved |= answerShuffle(block, warp);
    bool done = llvm::all_of(block.threads, [](const Thread &thread) { return thread.state == State::Done; });
    if (done)
      return "";
    if (!moved)
      return "deadlock: threads wait for different things";
  }
}

std::string BlockEmulator::run(const std::vector<void *> &operands, int64_t blocks, uint64_t seed) {
  std::mt19937_64 random(seed);
  Running block;
  running = &block;
  block.threads.resize(static_cast<size_t>(code.threads));
  block.blocks = static_cast<uint32_t>(blocks);
  block.entry = reinterpret_cast<void (*)(void *const *)>(function);
  Machine machine{
      reinterpret_cast<void *>(special), reinterpret_cast<void *>(barrier), reinterpret_cast<void *>(shuffle),
      reinterpret_cast<void *>(power),   reinterpret_cast<void *>(rounded), reinterpret_cast<void *>(copy),
      reinterpret_cast<void *>(commit),  reinterpret_cast<void *>(await),   nullptr};
  auto base = (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64;
  machine.memory = reinterpret_cast<void *>(base);
  scratch.assign(static_cast<size_t>(code.scratchBytes * blocks) + 64, 0);
  std::vector<void *> list(operands);
  if (hasScratch)
    list.push_back(reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64));
  list.push_back(&machine);
  arguments = list.data();
  for (const Global &global : globals)
    std::memcpy(reinterpret_cast<char *>(base) + global.offset, global.initial.data(), global.bytes);
  std::vector<uint32_t> order(static_cast<size_t>(blocks));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<uint32_t>(i);
  std::shuffle(order.begin(), order.end(), random);
  std::string wrong;
  for (uint32_t number : order) {
    block.block = number;
    // Shared memory starts as NaN.
    for (const Global &global : globals)
      if (global.shared)
        std::memset(reinterpret_cast<char *>(base) + global.offset, 0xFF, global.bytes);
    if (wrong.empty())
      wrong = runBlock(block, random);
  }
  running = nullptr;
  return wrong;
}

} // namespace weft::test

//===- Schedule.cpp - Launches become calls on buffers --------------------===//
//
// 1. Ports and states are buffers; a state entry is read where it lies.
// 2. A launch's result goes to the port that returns it, to the state entry that
//    it is assigned to (when that is safe, below), to the buffer of the operand
//    it updates, or to the arena.
// 3. What could not be written in place is copied at the end.
//
// Written in place is safe when no later launch reads the old value and the
// launch itself reads it element by element (no rows), as `init`, or not at all.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Buffers.h"
#include "passes/Schedule/Passes.h"

#include "passes/Codegen/Codegen.h"
#include "passes/Codegen/Gpu/Gpu.h"
#include "passes/Fuse/Regions.h"

#include <set>

namespace weft {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

int64_t weft::bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * static_cast<int64_t>(tensor.getElementTypeBitWidth() / 8);
}

//===----------------------------------------------------------------------===//
// ProgramBuilder
//===----------------------------------------------------------------------===//

Value ProgramBuilder::arena(Location loc, Type type) {
  return BufferOp::create(builder, loc, type, BufferSpace::Arena, IntegerAttr());
}

Value ProgramBuilder::buffer(Location loc, BufferSpace space, int64_t offset, Type type) {
  return BufferOp::create(builder, loc, type, space, builder.getI64IntegerAttr(offset));
}

Value ProgramBuilder::view(Location loc, Value buffer, int64_t start, RankedTensorType type) {
  if (start == 0 && buffer.getType() == type)
    return buffer;
  return ViewOp::create(builder, loc, type, buffer, builder.getI64IntegerAttr(start));
}

CallOp ProgramBuilder::call(Location loc, KernelOp kernel, ValueRange ins, ValueRange outs) {
  return CallOp::create(builder, loc, FlatSymbolRefAttr::get(kernel.getSymNameAttr()), ins, outs,
                        builder.getI64IntegerAttr(facts.gridOf(kernel)));
}

/// `value` of `type`, converted if its elements are others.
static Value converted(OpBuilder &builder, Location loc, Value value, Type type) {
  return value.getType() == type ? value : ConvertOp::create(builder, loc, type, value).getResult();
}

/// `type` in 32 bits, if it is stored in 16.
static Type computedIn(Type type) {
  auto stored = cast<RankedTensorType>(type);
  return stored.getElementType().isBF16() ? withElement(stored, Float32Type::get(type.getContext())) : stored;
}

KernelOp ProgramBuilder::kernel(Location loc, StringRef label, TypeRange inputs, TypeRange outputs,
                                function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> body) {
  OpBuilder outer(builder.getContext());
  outer.setInsertionPointToStart(module.getBody());
  auto kernel = KernelOp::create(outer, loc, "kernel", outer.getFunctionType(inputs, {}),
                                 outer.getArrayAttr({}), 1, ArrayAttr(), ArrayAttr());
  Block &block = kernel.getBody().emplaceBlock();
  block.addArguments(inputs, SmallVector<Location>(inputs.size(), loc));
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  SmallVector<Value> arguments = llvm::map_to_vector(block.getArguments(), [&](BlockArgument argument) {
    return converted(inner, loc, argument, computedIn(argument.getType()));
  });
  SmallVector<Value> results = body(inner, arguments);
  for (auto [result, type] : llvm::zip(results, outputs))
    result = converted(inner, loc, result, type);
  YieldOp::create(inner, loc, results);
  kernel.setFunctionType(outer.getFunctionType(inputs, outputs));
  std::string hash = kernelHash(kernel);
  std::string name = (label + "_" + StringRef(hash).take_front(8)).str();
  if (auto known = module.lookupSymbol<KernelOp>(name)) {
    kernel.erase();
    return known;
  }
  kernel.setSymName(name);
  kernel->setAttr("weft.hash", outer.getStringAttr(hash));
  return kernel;
}

const KernelFacts::Facts &KernelFacts::of(KernelOp kernel) {
  auto [entry, isNew] = known.try_emplace(kernel.getSymName());
  Facts &facts = entry->second;
  if (!isNew)
    return facts;
  if (!isGpu()) {
    facts.grid = weft::gridOf(kernel);
    return facts;
  }
  std::optional<rt::Gemm> gemm = gpuGemmOf(kernel);
  facts.separate = gemm && gemm->separate;
  facts.grid = gemm ? 1 : gpuGridOf(kernel, GpuTarget{chip});
  return facts;
}

//===----------------------------------------------------------------------===//
// One function
//===----------------------------------------------------------------------===//

namespace {

/// The argument of a kernel that its result `result` updates in place, or -1.
int64_t updatedArgument(KernelOp kernel, unsigned result) {
  auto yield = cast<YieldOp>(kernel.getBody().front().getTerminator());
  Operation *op = withoutConverts(yield.getValues()[result]).getDefiningOp();
  if (!op)
    return -1;
  Value updated;
  if (auto contract = dyn_cast<ContractOp>(op))
    updated = contract.getInit();
  else if (auto sum = dyn_cast<SumToOp>(op))
    updated = kernel.getRows().empty() ? sum.getInit() : Value();
  else if (auto gather = dyn_cast<GatherGradOp>(op))
    updated = gather.getInit();
  else if (auto head = dyn_cast<LossHeadGradOp>(op))
    updated = result == 2 ? head.getInit() : Value();
  else if (auto cache = dyn_cast<CacheUpdateOp>(op))
    updated = cache.getCache();
  auto argument = dyn_cast_or_null<BlockArgument>(withoutConverts(updated));
  bool oneType = argument && argument.getType() == yield.getValues()[result].getType();
  return oneType ? static_cast<int64_t>(argument.getArgNumber()) : -1;
}

/// Whether element i of each result depends on elements i (and scalars) alone.
bool isElementwise(KernelOp kernel) {
  return kernel.getRows().empty() && llvm::all_of(kernel.getBody().front(), [](Operation &op) {
           return isa<UnaryOp, UnaryGradOp, BinaryOp, DropoutOp, AdamWOp, ClipScaleOp, AcceptOp, ConstantOp,
                      ConvertOp, YieldOp>(op);
         });
}

/// States and kernels by name: looking a symbol up in a module walks all of it.
struct Symbols {
  explicit Symbols(ModuleOp module) {
    for (StateOp state : module.getOps<StateOp>())
      states[state.getSymNameAttr()] = state;
    for (KernelOp kernel : module.getOps<KernelOp>())
      kernels[kernel.getSymNameAttr()] = kernel;
  }
  llvm::DenseMap<StringAttr, StateOp> states;
  llvm::DenseMap<StringAttr, KernelOp> kernels;
};

class FunctionScheduler {
public:
  FunctionScheduler(func::FuncOp function, ModuleOp module, const Symbols &symbols, KernelFacts &facts,
                    int64_t logitsBytes)
      : function(function), module(module), symbols(symbols), facts(facts), logitsBytes(logitsBytes) {}
  LogicalResult run();

private:
  ProgramOp makeProgram();
  LogicalResult scheduleOp(Operation &op, ProgramBuilder &program);
  LogicalResult scheduleLaunch(LaunchOp launch, ProgramBuilder &program);
  LogicalResult bindState(Operation *op, ArrayAttr names, Value value, ProgramBuilder &program);
  Value resultBuffer(LaunchOp launch, KernelOp kernel, unsigned index, ProgramBuilder &program);
  ArrayAttr assignedNames(Value value);
  Value assignedState(LaunchOp launch, KernelOp kernel, unsigned index, ProgramBuilder &program);
  Value relabelled(ReshapeOp op, ProgramBuilder &program);
  void finish(ProgramBuilder &program);
  FailureOr<int64_t> stateOffset(Operation *op, ArrayAttr names);
  bool readLater(int64_t offset, int64_t bytes, Operation *after);
  bool isLastUse(Value value, Operation *user);

  /// State bytes that the function reads, and the last launch that does.
  struct Read {
    int64_t offset, bytes;
    Operation *last;
  };
  LogicalResult collectReads();
  KernelOp kernelOf(LaunchOp launch) { return symbols.kernels.lookup(launch.getKernelAttr().getAttr()); }

  func::FuncOp function;
  ModuleOp module;
  const Symbols &symbols;
  KernelFacts &facts;
  int64_t logitsBytes;
  SmallVector<Read> reads;
  llvm::DenseMap<Value, Value> buffers;
  struct Assignment {
    Value value;
    int64_t offset;
    Location loc;
  };
  SmallVector<Assignment> assignments;
};

} // namespace

ProgramOp FunctionScheduler::makeProgram() {
  OpBuilder builder(function);
  SmallVector<Attribute> inputs, results;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    inputs.push_back(function.getArgAttr(i, "weft.name"));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    results.push_back(function.getResultAttr(i, "weft.name"));
  auto program =
      ProgramOp::create(builder, function.getLoc(), function.getName().str(), builder.getArrayAttr(inputs),
                        builder.getTypeArrayAttr(function.getArgumentTypes()), builder.getArrayAttr(results),
                        builder.getTypeArrayAttr(function.getResultTypes()), IntegerAttr());
  program.getBody().emplaceBlock();
  return program;
}

FailureOr<int64_t> FunctionScheduler::stateOffset(Operation *op, ArrayAttr names) {
  int64_t first = -1, next = -1;
  for (auto name : names.getAsRange<FlatSymbolRefAttr>()) {
    StateOp state = symbols.states.lookup(name.getAttr());
    if (!state || !state.getOffset())
      return op->emitOpError("names a state entry without a place: ") << name;
    int64_t offset = static_cast<int64_t>(*state.getOffset());
    if (first < 0)
      first = offset;
    else if (offset != next)
      return op->emitOpError("expects entries one after another, but ")
             << name << " is at " << offset << ", not " << next;
    next = offset + bytesOf(state.getTensorType());
  }
  return first;
}

static ArrayAttr oneName(FlatSymbolRefAttr name) { return ArrayAttr::get(name.getContext(), name); }

/// The state that an op reads, or null.
static ArrayAttr statesRead(Operation *op) {
  if (auto get = dyn_cast<GetOp>(op))
    return oneName(get.getStateAttr());
  if (auto get = dyn_cast<GetFlatOp>(op))
    return get.getStates();
  return {};
}

/// Calls `visit` on the users of `value` and of what it is called after reshapes.
static void forEachUser(Value value, function_ref<void(Operation *)> visit) {
  for (Operation *user : value.getUsers()) {
    if (isa<ReshapeOp>(user))
      forEachUser(user->getResult(0), visit);
    else
      visit(user);
  }
}

LogicalResult FunctionScheduler::collectReads() {
  for (Operation &op : function.getBody().front()) {
    ArrayAttr names = statesRead(&op);
    if (!names)
      continue;
    FailureOr<int64_t> start = stateOffset(&op, names);
    if (failed(start))
      return failure();
    Read read{*start, bytesOf(op.getResult(0).getType()), nullptr};
    forEachUser(op.getResult(0), [&](Operation *user) {
      if (!isa<SetOp, SetFlatOp, func::ReturnOp>(user) && (!read.last || read.last->isBeforeInBlock(user)))
        read.last = user;
    });
    if (read.last)
      reads.push_back(read);
  }
  return success();
}

/// Whether a launch after `after` reads state bytes [offset, offset + bytes).
bool FunctionScheduler::readLater(int64_t offset, int64_t bytes, Operation *after) {
  return llvm::any_of(reads, [&](const Read &read) {
    return read.offset < offset + bytes && offset < read.offset + read.bytes &&
           after->isBeforeInBlock(read.last);
  });
}

/// The state entries that `value` is assigned to, directly or as the `init` of
/// the only launch that reads it; null when there are none.
ArrayAttr FunctionScheduler::assignedNames(Value value) {
  for (Operation *user : value.getUsers()) {
    if (auto set = dyn_cast<SetOp>(user))
      return oneName(set.getStateAttr());
    if (auto set = dyn_cast<SetFlatOp>(user))
      return set.getStates();
  }
  if (!value.hasOneUse())
    return {};
  auto launch = dyn_cast<LaunchOp>(*value.getUsers().begin());
  if (!launch)
    return {};
  KernelOp kernel = kernelOf(launch);
  for (unsigned i = 0; i < launch.getNumResults(); ++i)
    if (int64_t updated = updatedArgument(kernel, i);
        updated >= 0 && launch.getOperands()[static_cast<unsigned>(updated)] == value)
      return assignedNames(launch.getResult(i));
  return {};
}

/// The state buffer that this result may be written to at once, or null.
Value FunctionScheduler::assignedState(LaunchOp launch, KernelOp kernel, unsigned index,
                                       ProgramBuilder &program) {
  Value result = launch.getResult(index);
  ArrayAttr names = assignedNames(result);
  if (!names)
    return {};
  FailureOr<int64_t> offset = stateOffset(launch, names);
  int64_t bytes = bytesOf(result.getType());
  if (failed(offset) || readLater(*offset, bytes, launch))
    return {};
  int64_t updated = updatedArgument(kernel, index);
  for (auto [position, operand] : llvm::enumerate(launch.getOperands())) {
    auto buffer = buffers.lookup(operand).getDefiningOp<BufferOp>();
    if (!buffer || buffer.getSpace() != BufferSpace::State)
      continue;
    auto start = static_cast<int64_t>(*buffer.getOffset());
    if (start >= *offset + bytes || start + bytesOf(operand.getType()) <= *offset)
      continue;
    bool sameRange = start == *offset && operand.getType() == result.getType();
    if (!sameRange || !(static_cast<int64_t>(position) == updated || (updated < 0 && isElementwise(kernel))))
      return {};
  }
  return program.buffer(launch.getLoc(), BufferSpace::State, *offset, result.getType());
}

bool FunctionScheduler::isLastUse(Value value, Operation *user) {
  bool last = true;
  forEachUser(value, [&](Operation *other) { last &= other == user || other->isBeforeInBlock(user); });
  return last;
}

Value FunctionScheduler::resultBuffer(LaunchOp launch, KernelOp kernel, unsigned index,
                                      ProgramBuilder &program) {
  Value result = launch.getResult(index);
  for (OpOperand &use : result.getUses())
    if (isa<func::ReturnOp>(use.getOwner()))
      return program.buffer(launch.getLoc(), BufferSpace::Result, use.getOperandNumber(), result.getType());
  if (Value state = assignedState(launch, kernel, index, program))
    return state;
  int64_t updated = updatedArgument(kernel, index);
  if (updated >= 0) {
    Value operand = launch.getOperands()[static_cast<unsigned>(updated)];
    auto buffer = buffers.lookup(operand).getDefiningOp<BufferOp>();
    bool readOnce = kernel.getBody().getArgument(static_cast<unsigned>(updated)).hasOneUse();
    if (buffer && readOnce && buffer.getSpace() == BufferSpace::Arena && isLastUse(operand, launch))
      return buffer;
  }
  return program.arena(launch.getLoc(), result.getType());
}

LogicalResult FunctionScheduler::scheduleLaunch(LaunchOp launch, ProgramBuilder &program) {
  KernelOp kernel = kernelOf(launch);
  SmallVector<Value> ins, outs;
  for (Value operand : launch.getOperands())
    ins.push_back(buffers.lookup(operand));
  for (unsigned i = 0; i < launch.getNumResults(); ++i)
    outs.push_back(resultBuffer(launch, kernel, i, program));
  for (auto [index, out] : llvm::enumerate(outs)) {
    buffers[launch.getResult(static_cast<unsigned>(index))] = out;
    int64_t updated = updatedArgument(kernel, static_cast<unsigned>(index));
    if (updated < 0 || facts.addsFromElsewhere(kernel))
      continue;
    // The kernel adds to what its result holds: bring it there first.
    Value &in = ins[static_cast<size_t>(updated)];
    auto from = in.getDefiningOp<BufferOp>(), to = out.getDefiningOp<BufferOp>();
    bool same = from == to || (from && to && from.getSpace() == to.getSpace() && from.getOffset() &&
                               from.getOffset() == to.getOffset());
    if (!same)
      program.copy(launch.getLoc(), in, out);
    in = out;
  }
  if (Operation *core = coreOf(kernel); core && isa<LossHeadOp, LossHeadGradOp>(core)) {
    scheduleLossHead(program, core, ins, outs, logitsBytes);
    return success();
  }
  CallOp call = program.call(launch.getLoc(), kernel, ins, outs);
  if (launch->hasAttr("weft.again"))
    call->setAttr("weft.again", program.builder.getUnitAttr());
  return success();
}

LogicalResult FunctionScheduler::bindState(Operation *op, ArrayAttr names, Value value,
                                           ProgramBuilder &program) {
  FailureOr<int64_t> offset = stateOffset(op, names);
  if (failed(offset))
    return failure();
  buffers[value] = program.buffer(op->getLoc(), BufferSpace::State, *offset, value.getType());
  return success();
}

/// The buffer of what is reshaped, under the new type.
Value FunctionScheduler::relabelled(ReshapeOp op, ProgramBuilder &program) {
  Value whole = buffers.lookup(op.getX());
  auto buffer = whole.getDefiningOp<BufferOp>();
  if (buffer && buffer.getSpace() != BufferSpace::Arena)
    return program.buffer(op.getLoc(), buffer.getSpace(), static_cast<int64_t>(*buffer.getOffset()),
                          op.getType());
  return program.view(op.getLoc(), whole, 0, op.getType());
}

LogicalResult FunctionScheduler::scheduleOp(Operation &op, ProgramBuilder &program) {
  if (ArrayAttr names = statesRead(&op))
    return bindState(&op, names, op.getResult(0), program);
  if (auto launch = dyn_cast<LaunchOp>(op))
    return scheduleLaunch(launch, program);
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    buffers[reshape.getResult()] = relabelled(reshape, program);
    return success();
  }
  ArrayAttr names;
  if (auto set = dyn_cast<SetOp>(op))
    names = oneName(set.getStateAttr());
  else if (auto set = dyn_cast<SetFlatOp>(op))
    names = set.getStates();
  if (names) {
    FailureOr<int64_t> offset = stateOffset(&op, names);
    if (failed(offset))
      return failure();
    assignments.push_back({op.getOperand(0), *offset, op.getLoc()});
    return success();
  }
  if (isa<ConstantOp, func::ReturnOp>(op))
    return success();
  return op.emitOpError("is no launch: outline kernels before scheduling");
}

/// Assignments and results that are not where they belong yet.
void FunctionScheduler::finish(ProgramBuilder &program) {
  auto move = [&](Value value, BufferSpace space, int64_t offset, Location loc) {
    Value whole = buffers.lookup(value);
    auto from = whole ? whole.getDefiningOp<BufferOp>() : BufferOp();
    if (from && from.getSpace() == space && from.getOffset() &&
        static_cast<int64_t>(*from.getOffset()) == offset)
      return;
    Value to = program.buffer(loc, space, offset, value.getType());
    if (whole)
      program.copy(loc, whole, to);
    else
      program.fill(loc, to); // only constants have no buffer, and only zero is assigned
  };
  for (Assignment &assignment : assignments)
    move(assignment.value, BufferSpace::State, assignment.offset, assignment.loc);
  Operation *ret = function.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(ret->getOperands()))
    move(value, BufferSpace::Result, static_cast<int64_t>(index), ret->getLoc());
}

LogicalResult FunctionScheduler::run() {
  if (failed(collectReads()))
    return failure();
  ProgramOp op = makeProgram();
  ProgramBuilder program(module, op, facts);
  for (BlockArgument argument : function.getArguments())
    buffers[argument] =
        program.buffer(argument.getLoc(), BufferSpace::Input, argument.getArgNumber(), argument.getType());
  for (Operation &inner : function.getBody().front()) {
    if (auto constant = dyn_cast<ConstantOp>(inner))
      for (Operation *user : constant->getUsers())
        if (numberOf(constant.getValue()) != 0)
          return user->emitOpError("assigns or returns a constant other than zero, which no kernel makes");
    if (failed(scheduleOp(inner, program)))
      return failure();
  }
  finish(program);
  function.erase();
  return success();
}

namespace {
struct Schedule : weft::impl::SchedulePassBase<Schedule> {
  using SchedulePassBase::SchedulePassBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Symbols symbols(module);
    KernelFacts facts(chip);
    for (func::FuncOp function : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (failed(FunctionScheduler(function, module, symbols, facts, logitsBytes).run()))
        return signalPassFailure();
    dropUnusedKernels(module);
  }

  /// The loss head's own kernel was replaced by those of its chunks.
  void dropUnusedKernels(ModuleOp module) {
    std::set<std::string, std::less<>> used;
    module.walk([&](CallOp call) { used.insert(call.getKernel().str()); });
    for (KernelOp kernel : llvm::make_early_inc_range(module.getOps<KernelOp>()))
      if (!used.contains(std::string_view(kernel.getSymName())))
        kernel.erase();
  }
};
} // namespace

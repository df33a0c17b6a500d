//===- Schedule.cpp - A schedule on an arena of NaN ------------------------===//
//
// Bytes are modelled in slots of the smallest element of the program. An
// element lives in its first slot and spoils its others, so that two live
// buffers that overlap, of whatever types, give NaN or a wrong number.
//
//===----------------------------------------------------------------------===//
#include "dialects/Weft/Interpret/Frame.h"

#include <deque>
#include <limits>

using namespace mlir;

namespace weft {
namespace interp {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

int64_t bytesOf(Type type) { return llvm::cast<RankedTensorType>(type).getElementTypeBitWidth() / 8; }

/// A block of bytes, in slots of `granule` bytes.
struct Memory {
  int64_t granule = 4;
  std::vector<double> slots;

  void resize(int64_t bytes) { slots.assign((bytes + granule - 1) / granule, kNaN); }
  bool holds(int64_t byte, Type type) const {
    int64_t elements = product(shapeOf(type));
    return byte >= 0 && byte % granule == 0 &&
           byte + elements * bytesOf(type) <= static_cast<int64_t>(slots.size()) * granule;
  }
  Array read(int64_t byte, Type type) const {
    Array array(type);
    int64_t stride = bytesOf(type) / granule;
    for (size_t i = 0; i < array.data.size(); ++i)
      array.data[i] = slots[byte / granule + i * stride];
    return array;
  }
  void write(int64_t byte, Type type, const std::vector<double> &data) {
    int64_t stride = bytesOf(type) / granule;
    for (size_t i = 0; i < data.size(); ++i)
      for (int64_t part = 0; part < stride; ++part)
        slots[byte / granule + i * stride + part] = part == 0 ? data[i] : kNaN;
  }
};

/// Where a buffer value stands.
struct Place {
  Memory *memory;
  int64_t byte;
};

class Run {
public:
  Run(ProgramOp program, States &states) : program(program), states(states) {}
  FailureOr<SmallVector<Array>> run(ArrayRef<Array> inputs);

private:
  LogicalResult prepare(ArrayRef<Array> inputs);
  LogicalResult preparePorts(ArrayRef<Array> inputs);
  LogicalResult prepareState();
  /// Program `prepare`, which a machine runs before others; null where there is none.
  ProgramOp first() {
    auto prepare = program->getParentOfType<ModuleOp>().lookupSymbol<ProgramOp>("prepare");
    return prepare == program ? ProgramOp() : prepare;
  }
  LogicalResult step(Operation *op);
  LogicalResult place(BufferOp op);
  LogicalResult place(ViewOp op);
  LogicalResult call(CallOp op);
  LogicalResult fits(Operation *op, Place place, Type type);
  Array read(Value buffer) {
    return places.lookup(buffer).memory->read(places.lookup(buffer).byte, buffer.getType());
  }
  void write(Value buffer, const std::vector<double> &data) {
    Place to = places.lookup(buffer);
    to.memory->write(to.byte, buffer.getType(), data);
  }
  void returnState();

  ProgramOp program;
  States &states;
  Memory state, arena;
  std::deque<Memory> inputs, results, unplanned; // a deque's elements stay in place
  SmallVector<StateOp> entries;
  llvm::DenseMap<Value, Place> places;
};

LogicalResult Run::preparePorts(ArrayRef<Array> values) {
  auto types = program.getInputTypes().getAsValueRange<TypeAttr>();
  if (values.size() != program.getInputTypes().size())
    return program.emitError() << "expected " << program.getInputTypes().size() << " inputs, found "
                               << values.size();
  int64_t granule = arena.granule;
  for (auto [type, value] : llvm::zip(types, values)) {
    if (shapeOf(type) != ArrayRef<int64_t>(value.shape))
      return program.emitError() << "input " << inputs.size() << ": expected " << type
                                 << ", found another shape";
    Memory &memory = inputs.emplace_back(Memory{granule, {}});
    memory.resize(product(value.shape) * bytesOf(type));
    memory.write(0, type, value.data);
  }
  for (Type type : program.getResultTypes().getAsValueRange<TypeAttr>()) {
    Memory &memory = results.emplace_back(Memory{granule, {}});
    memory.resize(product(shapeOf(type)) * bytesOf(type));
  }
  return success();
}

/// Copies into the state's bytes every entry that has an offset and contents.
LogicalResult Run::prepareState() {
  int64_t end = 0;
  auto module = program->getParentOfType<ModuleOp>();
  if (auto bytes = module->getAttrOfType<IntegerAttr>("weft.state_bytes"))
    end = bytes.getInt(); // with what `prepare` keeps behind the entries
  for (auto entry : module.getOps<StateOp>()) {
    if (!entry.getOffset())
      continue;
    entries.push_back(entry);
    RankedTensorType type = entry.getTensorType();
    end = std::max(end, static_cast<int64_t>(*entry.getOffset()) + product(type.getShape()) * bytesOf(type));
  }
  state.resize(end);
  for (StateOp entry : entries) {
    auto found = states.find(entry.getSymName());
    if (found == states.end())
      continue;
    if (found->second.data.size() != static_cast<size_t>(entry.getTensorType().getNumElements()))
      return entry.emitError() << "state entry @" << entry.getSymName() << " holds another shape";
    state.write(*entry.getOffset(), entry.getType(), found->second.data);
  }
  return success();
}

LogicalResult Run::prepare(ArrayRef<Array> values) {
  int64_t granule = 8;
  auto see = [&](Type type) { granule = std::min(granule, bytesOf(type)); };
  for (ProgramOp each : {program, first()})
    if (each)
      each.walk([&](BufferOp op) { see(op.getType()); });
  for (auto entry : program->getParentOfType<ModuleOp>().getOps<StateOp>())
    see(entry.getTensorType());
  for (ArrayAttr types : {program.getInputTypes(), program.getResultTypes()})
    for (Type type : types.getAsValueRange<TypeAttr>())
      see(type);
  state.granule = arena.granule = granule;
  arena.resize(program.getArena().value_or(0));
  if (failed(preparePorts(values)))
    return failure();
  return prepareState();
}

LogicalResult Run::fits(Operation *op, Place place, Type type) {
  if (place.memory->holds(place.byte, type))
    return success();
  return op->emitError() << "bytes from " << place.byte << " on do not hold " << type << " in a space of "
                         << place.memory->slots.size() * place.memory->granule << " bytes";
}

LogicalResult Run::place(BufferOp op) {
  if (!op.getOffset() && op.getSpace() == BufferSpace::Arena) {
    Memory &own = unplanned.emplace_back(Memory{arena.granule, {}});
    own.resize(product(shapeOf(op.getType())) * bytesOf(op.getType()));
    places[op.getResult()] = {&own, 0};
    return success();
  }
  if (!op.getOffset())
    return op.emitError() << "the buffer has no offset";
  auto offset = static_cast<int64_t>(*op.getOffset());
  bool port = op.getSpace() == BufferSpace::Input || op.getSpace() == BufferSpace::Result;
  std::deque<Memory> &ports = op.getSpace() == BufferSpace::Input ? inputs : results;
  if (port && (offset < 0 || offset >= static_cast<int64_t>(ports.size())))
    return op.emitError() << "no port has the number " << offset;
  Memory *memory = port ? &ports[offset] : op.getSpace() == BufferSpace::State ? &state : &arena;
  Place place{memory, port ? 0 : offset};
  places[op.getResult()] = place;
  return fits(op, place, op.getType());
}

LogicalResult Run::place(ViewOp op) {
  Place place = places.lookup(op.getBuffer());
  place.byte += static_cast<int64_t>(op.getStart()) * bytesOf(op.getBuffer().getType());
  places[op.getResult()] = place;
  int64_t room = product(shapeOf(op.getBuffer().getType())) - static_cast<int64_t>(op.getStart());
  if (product(shapeOf(op.getType())) > room)
    return op.emitError() << "the view ends outside its buffer of " << op.getBuffer().getType();
  return fits(op, place, op.getType());
}

LogicalResult Run::call(CallOp op) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(op, op.getKernelAttr());
  if (!kernel)
    return op.emitError() << "no kernel is called @" << op.getKernel();
  SmallVector<Array> ins; // all read before any out is written: in place is safe
  for (Value in : op.getIns())
    ins.push_back(read(in));
  auto outs = interpret(llvm::cast<FunctionOpInterface>(kernel.getOperation()), ins, states);
  if (failed(outs))
    return failure();
  if (outs->size() != op.getOuts().size())
    return op.emitError() << "the kernel gives " << outs->size() << " results, the call takes "
                          << op.getOuts().size();
  for (auto [out, array] : llvm::zip(op.getOuts(), *outs)) {
    if (product(shapeOf(out.getType())) != static_cast<int64_t>(array.data.size()))
      return op.emitError() << "a result has another size than " << out.getType();
    write(out, array.data);
  }
  return success();
}

LogicalResult Run::step(Operation *op) {
  if (auto buffer = llvm::dyn_cast<BufferOp>(op))
    return place(buffer);
  if (auto view = llvm::dyn_cast<ViewOp>(op))
    return place(view);
  if (auto kernelCall = llvm::dyn_cast<CallOp>(op))
    return call(kernelCall);
  if (auto fill = llvm::dyn_cast<FillOp>(op)) {
    write(fill.getBuffer(), Array(fill.getBuffer().getType()).data);
    return success();
  }
  if (auto copy = llvm::dyn_cast<CopyOp>(op)) {
    write(copy.getTo(), read(copy.getFrom()).data);
    return success();
  }
  return op->emitError() << "no meaning in a schedule: " << op->getName().getStringRef();
}

void Run::returnState() {
  for (StateOp entry : entries)
    states.insert_or_assign(entry.getSymName().str(), state.read(*entry.getOffset(), entry.getType()));
}

FailureOr<SmallVector<Array>> Run::run(ArrayRef<Array> values) {
  if (failed(prepare(values)))
    return failure();
  for (ProgramOp each : {first(), program})
    if (each)
      for (Operation &op : each.getBody().front())
        if (failed(step(&op)))
          return failure();
  returnState();
  SmallVector<Array> answers;
  for (auto [memory, type] : llvm::zip(results, program.getResultTypes().getAsValueRange<TypeAttr>()))
    answers.push_back(memory.read(0, type));
  return answers;
}

} // namespace
} // namespace interp

FailureOr<SmallVector<Array>> interpretProgram(ProgramOp program, ArrayRef<Array> inputs, States &states) {
  return interp::Run(program, states).run(inputs);
}

} // namespace weft

//===- PrepareOnce.cpp - Compute once what no run changes -----------------===//

#include "passes/Schedule/Buffers.h"
#include "passes/Schedule/Passes.h"

#include "absl/strings/str_cat.h"

namespace weft {
#define GEN_PASS_DEF_PREPAREONCEPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

constexpr int64_t kAlignment = 256; // bytes: tensor maps and products ask for less

/// Bytes [begin, end) of the state.
struct Range {
  int64_t begin, end;
  bool meets(const Range &other) const { return begin < other.end && other.begin < end; }
};

/// Where `value` lies in the state; nothing when it lies elsewhere.
std::optional<Range> stateRange(Value value) {
  int64_t bytes = bytesOf(value.getType()), start = 0;
  while (auto view = value.getDefiningOp<ViewOp>()) {
    auto type = cast<RankedTensorType>(view.getType());
    start += static_cast<int64_t>(view.getStart() * (type.getElementTypeBitWidth() / 8));
    value = view.getBuffer();
  }
  auto buffer = value.getDefiningOp<BufferOp>();
  if (!buffer || buffer.getSpace() != BufferSpace::State)
    return std::nullopt;
  int64_t begin = static_cast<int64_t>(*buffer.getOffset()) + start;
  return Range{begin, begin + bytes};
}

/// Values that `op` writes.
SmallVector<Value> writtenBy(Operation *op) {
  if (auto call = dyn_cast<CallOp>(op))
    return SmallVector<Value>(call.getOuts());
  if (auto fill = dyn_cast<FillOp>(op))
    return {fill.getBuffer()};
  if (auto copy = dyn_cast<CopyOp>(op))
    return {copy.getTo()};
  return {};
}

/// Whether `writer` alone writes `buffer`, and does not read it.
bool isWrittenBy(Value buffer, CallOp writer) {
  for (OpOperand &use : buffer.getUses()) {
    Operation *user = use.getOwner();
    if (isa<ViewOp>(user) && !isWrittenBy(user->getResult(0), writer))
      return false;
    bool writes = llvm::is_contained(writtenBy(user), buffer);
    if (user == writer ? llvm::is_contained(writer.getIns(), buffer) : writes)
      return false;
  }
  return true;
}

struct PrepareOnce : weft::impl::PrepareOncePassBase<PrepareOnce> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto bytes = module->getAttrOfType<IntegerAttr>("weft.state_bytes");
    if (!bytes)
      return;
    stateBytes = bytes.getInt();
    SmallVector<ProgramOp> programs(module.getOps<ProgramOp>());
    for (ProgramOp program : programs)
      for (Operation &op : program.getBody().front())
        for (Value value : writtenBy(&op))
          if (std::optional<Range> range = stateRange(value))
            written.push_back(*range);
    for (ProgramOp program : programs)
      takeFrom(program);
    module->setAttr("weft.state_bytes", Builder(module).getI64IntegerAttr(stateBytes));
  }

  bool isConstant(Value value) {
    std::optional<Range> range = stateRange(value);
    return range && llvm::none_of(written, [&](const Range &other) { return other.meets(*range); });
  }

  void takeFrom(ProgramOp program) {
    for (CallOp call : llvm::make_early_inc_range(program.getBody().front().getOps<CallOp>())) {
      bool fits = llvm::all_of(call.getIns(), [&](Value in) { return isConstant(in); }) &&
                  llvm::all_of(call.getOuts(), [&](Value out) {
                    auto buffer = out.getDefiningOp<BufferOp>();
                    return buffer && buffer.getSpace() == BufferSpace::Arena && isWrittenBy(out, call);
                  });
      if (!fits)
        continue;
      int64_t place = placeOf(call, program);
      for (Value out : call.getOuts()) {
        auto buffer = out.getDefiningOp<BufferOp>();
        buffer.setSpace(BufferSpace::State);
        buffer.setOffset(static_cast<uint64_t>(place));
        place = placeBehind(place, out.getType());
      }
      call.erase();
    }
  }

  static int64_t placeBehind(int64_t place, Type type) {
    return llvm::alignTo(place + bytesOf(type), kAlignment);
  }

  /// Of the call's first result in the state, the others behind it; the call is repeated in `prepare`,
  /// equal ones once.
  int64_t placeOf(CallOp call, ProgramOp program) {
    std::string key = call.getKernel().str();
    for (Value in : call.getIns())
      absl::StrAppend(&key, ",", stateRange(in)->begin);
    auto [place, isNew] = places.try_emplace(key, llvm::alignTo(stateBytes, kAlignment));
    if (!isNew)
      return place->second;
    OpBuilder builder = inPrepare(program);
    auto bufferAt = [&](int64_t offset, Type of) -> Value {
      return BufferOp::create(builder, call.getLoc(), of, BufferSpace::State,
                              builder.getI64IntegerAttr(offset));
    };
    SmallVector<Value> ins, outs;
    for (Value in : call.getIns())
      ins.push_back(bufferAt(stateRange(in)->begin, in.getType()));
    int64_t at = place->second;
    for (Value out : call.getOuts()) {
      outs.push_back(bufferAt(at, out.getType()));
      stateBytes = llvm::alignTo(at + bytesOf(out.getType()), 64);
      at = placeBehind(at, out.getType());
    }
    CallOp::create(builder, call.getLoc(), call.getKernel(), ins, outs, call.getGrid());
    return place->second;
  }

  /// At the end of `prepare`, which is made before the first program.
  OpBuilder inPrepare(ProgramOp before) {
    if (!prepare) {
      OpBuilder builder(before);
      prepare = ProgramOp::create(builder, before.getLoc(), "prepare", builder.getArrayAttr({}),
                                  builder.getTypeArrayAttr({}), builder.getArrayAttr({}),
                                  builder.getTypeArrayAttr({}), IntegerAttr());
      prepare.getBody().emplaceBlock();
    }
    return OpBuilder::atBlockEnd(&prepare.getBody().front());
  }

  SmallVector<Range> written; // of the state, by any program
  std::map<std::string, int64_t> places;
  ProgramOp prepare;
  int64_t stateBytes = 0;
};

} // namespace

//===- Plant.cpp - Faults on purpose ---------------------------------------===//
#include "passes/Verify/Verify.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace weft {
namespace {

template <typename OpT> OpT firstOp(ModuleOp module) {
  OpT found;
  module.walk([&](OpT op) {
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// The last add of two values of one type with axes: a residual.
bool dropResidual(ModuleOp module) {
  BinaryOp residual;
  module.walk([&](BinaryOp op) {
    if (op.getFn() == BinaryFn::Add && op.getX().getType() == op.getY().getType() &&
        op.getX().getType().getRank() > 1)
      residual = op;
  });
  if (!residual)
    return false;
  residual.getZ().replaceAllUsesWith(residual.getX());
  residual.erase();
  return true;
}

/// `value` with indices 0 and 1 of its axis number `axis` exchanged: the axis
/// comes first, rows are looked up in the new order, and it goes back.
Value exchange(OpBuilder &builder, Value value, int64_t axis) {
  auto type = llvm::cast<RankedTensorType>(value.getType());
  Location loc = value.getLoc();
  SmallVector<StringAttr> names(axesOf(type));
  SmallVector<int64_t> sizes(type.getShape());
  std::rotate(names.begin(), names.begin() + axis, names.begin() + axis + 1);
  std::rotate(sizes.begin(), sizes.begin() + axis, sizes.begin() + axis + 1);
  RankedTensorType turned = namedTensor(names, sizes, type.getElementType());
  SmallVector<int32_t> order(sizes.front());
  for (auto [i, head] : llvm::enumerate(order))
    head = static_cast<int32_t>(i < 2 ? 1 - i : i);
  RankedTensorType ofOrder = namedTensor({names.front()}, {sizes.front()}, builder.getI32Type());
  Value index = IntegersOp::create(builder, loc, ofOrder, builder.getDenseI32ArrayAttr(order));
  Value table = SumToOp::create(builder, loc, turned, value, Value());
  Value swapped = GatherOp::create(builder, loc, turned, table, index);
  return SumToOp::create(builder, loc, type, swapped, Value());
}

/// The first axis between two outer ones and the last that has two indices or more.
std::optional<int64_t> headAxis(RankedTensorType type) {
  for (int64_t axis = 2; axis + 1 < type.getRank(); ++axis)
    if (type.getDimSize(axis) > 1)
      return axis;
  return std::nullopt;
}

bool swapHeads(ModuleOp module) {
  auto attend = firstOp<AttendOp>(module);
  std::optional<int64_t> axis;
  if (attend)
    axis = headAxis(attend.getOut().getType());
  if (!axis)
    return false;
  OpBuilder builder(attend->getContext());
  builder.setInsertionPointAfter(attend);
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : attend.getOut().getUses())
    uses.push_back(&use);
  Value swapped = exchange(builder, attend.getOut(), *axis);
  for (OpOperand *use : uses)
    use->set(swapped);
  return true;
}

bool moveKeys(ModuleOp module) {
  auto attend = firstOp<AttendOp>(module);
  std::optional<int64_t> axis;
  if (attend)
    axis = headAxis(attend.getK().getType());
  if (!axis)
    return false;
  OpBuilder builder(attend);
  attend.getKMutable().assign(exchange(builder, attend.getK(), *axis));
  return true;
}

bool shiftWindows(ModuleOp module) {
  auto attend = firstOp<AttendOp>(module);
  auto windows =
      attend && attend.getWindows() ? attend.getWindows().getDefiningOp<IntegersOp>() : IntegersOp();
  if (!windows || attend.getQ().getType().getDimSize(1) < 2)
    return false;
  auto places = static_cast<int32_t>(attend.getQ().getType().getDimSize(1));
  SmallVector<int32_t> shifted;
  for (int32_t window : windows.getValues())
    shifted.push_back(std::min(window, places) > 1 ? std::min(window, places) - 1 : 2);
  windows.setValues(shifted);
  return true;
}

/// A buffer that is written while an earlier one is still to be read gets its offset.
bool overlapBuffers(ModuleOp module) {
  auto program = firstOp<ProgramOp>(module);
  if (!program)
    return false;
  SmallVector<BufferOp> written; // in order of their first call
  for (auto call : program.getOps<CallOp>())
    for (Value out : call.getOuts()) {
      auto buffer = out.getDefiningOp<BufferOp>();
      if (!buffer || buffer.getSpace() != BufferSpace::Arena || !buffer.getOffset())
        continue;
      for (BufferOp earlier : written) {
        bool needed = llvm::any_of(earlier->getUsers(), [&](Operation *user) {
          auto reader = llvm::dyn_cast<CallOp>(user);
          return reader && call->isBeforeInBlock(reader) &&
                 llvm::is_contained(reader.getIns(), earlier.getResult());
        });
        if (earlier == buffer || !needed || earlier.getOffset() == buffer.getOffset())
          continue;
        if (earlier.getType().getNumElements() < buffer.getType().getNumElements())
          continue; // it might not fit there
        buffer.setOffset(*earlier.getOffset());
        return true;
      }
      if (!llvm::is_contained(written, buffer))
        written.push_back(buffer);
    }
  return false;
}

struct Fault {
  StringRef name;
  bool (*plant)(ModuleOp);
};
constexpr size_t kFaults = 5;
const std::array<Fault, kFaults> &faults() {
  static const std::array<Fault, kFaults> list = {{{"dropped-residual", dropResidual},
                                                   {"swapped-heads", swapHeads},
                                                   {"window-off-by-one", shiftWindows},
                                                   {"wrong-kv-group", moveKeys},
                                                   {"overlapping-buffers", overlapBuffers}}};
  return list;
}

class PlantPass : public PassWrapper<PlantPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlantPass)
  explicit PlantPass(const Fault &fault) : fault(&fault), argument("plant-" + fault.name.str()) {}
  StringRef getName() const override { return "Plant"; }
  StringRef getArgument() const override { return argument; }
  StringRef getDescription() const override { return "breaks the module on purpose"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<WeftDialect>(); }
  void runOnOperation() override {
    if (fault->plant(getOperation()))
      return;
    getOperation().emitError() << "fault " << fault->name
                               << " can't be planted: the module has nothing of the kind";
    signalPassFailure();
  }

private:
  const Fault *fault;
  std::string argument;
};

} // namespace

std::unique_ptr<Pass> createPlantPass(StringRef fault) {
  for (const Fault &known : faults())
    if (known.name == fault)
      return std::make_unique<PlantPass>(known);
  return nullptr;
}

} // namespace weft

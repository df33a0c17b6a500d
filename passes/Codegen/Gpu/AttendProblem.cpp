//===- AttendProblem.cpp - One kernel of attention, read for the GPU ------===//
#include "passes/Codegen/Gpu/AttendProblem.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {

int OperandNumbers::argument(Value value) {
  if (!value)
    return -1;
  if (auto convert = value.getDefiningOp<ConvertOp>())
    value = convert.getX();
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? static_cast<int>(argument.getArgNumber()) : -1;
}

int OperandNumbers::result(Value value) {
  Operation *yield = kernel.getBody().front().getTerminator();
  for (OpOperand &operand : yield->getOpOperands()) {
    Value given = operand.get();
    if (auto convert = given.getDefiningOp<ConvertOp>())
      given = convert.getX();
    if (given == value)
      return static_cast<int>(kernel.getArgumentTypes().size() + operand.getOperandNumber());
  }
  return -1;
}

namespace {

class Reader : OperandNumbers {
public:
  Reader(KernelOp kernel, std::string &why) : OperandNumbers(kernel), why(why) {}

  std::optional<AttendProblem> read();

private:
  bool refuse(const Twine &reason) {
    why = reason.str();
    return false;
  }
  Operation *onlyOp();
  template <class Op> void readInputs(Op op);
  void readOp(AttendOp op);
  void readOp(AttendGradQueryOp op);
  void readOp(AttendGradKeyValueOp op);
  bool checkSizes(Value q, Value k, Value v);
  bool checkStorage();

  std::string &why;
  AttendProblem p;
};

Operation *Reader::onlyOp() {
  Operation *found = nullptr;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isa<ConvertOp>(op))
      continue;
    if (found || !isa<AttendOp, AttendGradQueryOp, AttendGradKeyValueOp>(op))
      return nullptr;
    found = &op;
  }
  return found;
}

Axes middleAxes(Value value) {
  Axes axes = allAxes(value.getType());
  return Axes(axes.begin() + 2, axes.end() - 1);
}

template <class Op> void Reader::readInputs(Op op) {
  p.q = argument(op.getQ());
  p.k = argument(op.getK());
  p.v = argument(op.getV());
  p.windows = argument(op.getWindows());
  p.starts = argument(op.getDocStart());
  p.kvOf = argument(op.getKvOf());
  p.scale = numberOf(op.getScale());
  if (auto order = op.getOrder())
    p.order.assign(order->begin(), order->end());
}

void Reader::readOp(AttendOp op) {
  p.pass = AttendPass::Forward;
  readInputs(op);
  p.offset = argument(op.getOffset());
  p.out = result(op.getOut());
  p.lse = result(op.getLse());
  p.entropy = op.getEntropy() ? result(op.getEntropy()) : -1;
}

void Reader::readOp(AttendGradQueryOp op) {
  p.pass = AttendPass::Query;
  readInputs(op);
  p.out = argument(op.getOut());
  p.lse = argument(op.getLse());
  p.dout = argument(op.getDout());
  p.dq = result(op.getDq());
  p.delta = result(op.getDelta());
}

void Reader::readOp(AttendGradKeyValueOp op) {
  p.pass = AttendPass::KeyValue;
  readInputs(op);
  p.lse = argument(op.getLse());
  p.delta = argument(op.getDelta());
  p.dout = argument(op.getDout());
  p.dk = result(op.getDk());
  p.dv = result(op.getDv());
}

bool Reader::checkSizes(Value q, Value k, Value v) {
  auto shape = cast<RankedTensorType>(q.getType()).getShape();
  p.batch = shape[0];
  p.queries = shape[1];
  p.channel = shape.back();
  p.keys = cast<RankedTensorType>(k.getType()).getDimSize(1);
  p.headAxes = middleAxes(q);
  p.kvAxes = middleAxes(k);
  p.heads = countOf(p.headAxes);
  p.kvHeads = countOf(p.kvAxes);
  int64_t valueChannel = cast<RankedTensorType>(v.getType()).getShape().back();
  if ((p.channel != 64 && p.channel != 128) || valueChannel != p.channel)
    return refuse("head size " + Twine(p.channel) + " with values of " + Twine(valueChannel) +
                  "; there are tiles for 64 and 128, values of the same size");
  if (!(p.scale > 0))
    return refuse("scale " + std::to_string(p.scale) + "; tiles need one above 0");
  constexpr double kMostForEntropies = 1000; // times what stands for a score that is not seen: finite
  if (p.entropy >= 0 && p.scale > kMostForEntropies)
    return refuse("entropies at scale " + std::to_string(p.scale) + "; tiles need one of at most 1000");
  // Places, heads and items are counted in 32 bits.
  constexpr int64_t kMost = int64_t(1) << 30;
  if (p.batch * p.heads * std::max(p.queries, p.keys) >= kMost)
    return refuse("more than 2^30 rows of heads");
  return true;
}

bool Reader::checkStorage() {
  for (int number : {p.q, p.k, p.v, p.dout})
    if (number >= 0 && !p.types[number].getElementType().isBF16())
      return refuse("operand " + Twine(number) + " is stored in f32; tiles read bf16");
  bool whole = p.q >= 0 && p.k >= 0 && p.v >= 0 && p.lse >= 0;
  if (p.pass == AttendPass::Forward)
    whole &= p.out >= 0;
  else
    whole &= p.windows >= 0 && p.starts >= 0 && p.dout >= 0 && p.delta >= 0;
  if (p.pass == AttendPass::Query)
    whole &= p.out >= 0 && p.dq >= 0;
  if (p.pass == AttendPass::KeyValue)
    whole &= p.dk >= 0 && p.dv >= 0;
  return whole || refuse("an operand that is no argument of the kernel, or a result that it does not yield");
}

std::optional<AttendProblem> Reader::read() {
  Operation *op = onlyOp();
  if (!op)
    return refuse("a body of more than one op of attention"), std::nullopt;
  p.name = kernel.getSymName().str();
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes()))
    p.types.push_back(cast<RankedTensorType>(type));
  bool good = TypeSwitch<Operation *, bool>(op)
                  .Case<AttendOp, AttendGradQueryOp, AttendGradKeyValueOp>([&](auto attend) {
                    readOp(attend);
                    return checkSizes(attend.getQ(), attend.getK(), attend.getV()) && checkStorage();
                  })
                  .Default(false);
  return good ? std::optional(std::move(p)) : std::nullopt;
}

} // namespace

std::optional<AttendProblem> readAttend(KernelOp kernel, const GpuTarget &target, std::string &why) {
  if (target.chip != "sm_90a" && target.chip != "sm_80") {
    why = "target " + target.chip + "; tiles are made for sm_90a and sm_80";
    return std::nullopt;
  }
  return Reader(kernel, why).read();
}

} // namespace weft

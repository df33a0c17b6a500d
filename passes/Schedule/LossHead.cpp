//===- LossHead.cpp - Logits, loss and gradients by chunks of tokens ------===//
//
// For each chunk: logits = x table; loss and dlogits row by row, in place;
// dx = dlogits table; dtable += dlogits x. Then the rows' losses are summed.
//
// On a GPU rows of logits in bf16 start at multiples of 16 bytes: where the
// vocabulary is no multiple of 8, the table is copied with zeros behind its rows,
// columns past the vocabulary are padding, and dtable is summed with such rows too.
// Without it products of V = 50257 take seven times as long as those of 50304.
//
//===----------------------------------------------------------------------===//

#include "dialects/Weft/Classes.h"
#include "passes/Fuse/Regions.h"
#include "passes/Schedule/Buffers.h"

#include "llvm/Support/MathExtras.h"

#include <utility>

using namespace mlir;
using namespace weft;

namespace {

class LossHead {
public:
  LossHead(ProgramBuilder &program, Operation *head, ValueRange ins, ValueRange outs, int64_t logitsBytes);
  void run();

private:
  void chunk(int64_t first, int64_t count);
  void gradients(Value logits, int64_t first, int64_t count);
  void padTable();
  void finishTable();
  RankedTensorType rows(int64_t count, ArrayRef<StringAttr> inner, ArrayRef<int64_t> sizes, Type type);
  Value part(Value buffer, int64_t first, int64_t count);
  Value operand(Value ofHead);

  ProgramBuilder &program;
  Operation *head;
  Location loc;
  Value x, table, targets, weight; // buffers
  Value loss, dx, dtable;
  Value wholeTable; // dtable as it is asked for, where `dtable` has padding
  Value rowLoss, logits;
  Attribute z, smoothing;
  StringAttr token, vocabulary, channel;
  int64_t tokens = 1, vocab = 0, channels = 0, step = 0;
  int64_t classes = 0; // of the vocabulary, the rest of which is padding
  Type stored;         // element of logits
  ValueRange ins;
  bool accumulates = false;
};

} // namespace

/// The type in which the product that fills `buffer` is computed.
static RankedTensorType computed(Value buffer) {
  auto type = cast<RankedTensorType>(buffer.getType());
  return type.getElementType().isBF16() ? withElement(type, Float32Type::get(type.getContext())) : type;
}

/// The buffer of an operand of the head: its kernel's arguments are the launch's operands.
Value LossHead::operand(Value ofHead) {
  return ofHead ? ins[cast<BlockArgument>(withoutConverts(ofHead)).getArgNumber()] : Value();
}

LossHead::LossHead(ProgramBuilder &program, Operation *head, ValueRange ins, ValueRange outs,
                   int64_t logitsBytes)
    : program(program), head(head), loc(head->getLoc()), ins(ins) {
  auto fill = [&](auto op) {
    x = operand(op.getX());
    table = operand(op.getTable());
    targets = operand(op.getTargets());
    weight = operand(op.getWeight());
    z = op.getZ();
    smoothing = op.getSmoothing();
  };
  loss = outs[0];
  if (auto grad = dyn_cast<LossHeadGradOp>(head)) {
    fill(grad);
    dx = outs[1];
    dtable = outs[2];
    accumulates = static_cast<bool>(grad.getInit());
  } else {
    fill(cast<LossHeadOp>(head));
  }
  auto xType = cast<RankedTensorType>(x.getType()), tableType = cast<RankedTensorType>(table.getType());
  token = program.builder.getStringAttr("token");
  channel = axesOf(xType).back();
  channels = xType.getShape().back();
  tokens = xType.getNumElements() / channels;
  int64_t vocabAxis = 1 - axisIndex(tableType, channel);
  vocabulary = axesOf(tableType)[static_cast<size_t>(vocabAxis)];
  vocab = tableType.getDimSize(vocabAxis);
  stored = xType.getElementType();
  classes = vocab;
  constexpr int64_t kAligned = 8, kPadded = 64;
  if (program.facts.isGpu() && stored.isBF16() && vocabAxis == 0 && vocab % kAligned != 0 &&
      numberOf(smoothing) == 0)
    vocab = static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(vocab), kPadded));
  int64_t fit = logitsBytes / (vocab * static_cast<int64_t>(xType.getElementTypeBitWidth() / 8));
  step = std::min<int64_t>(
      tokens, std::max<int64_t>(64, static_cast<int64_t>(
                                        llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(fit, 1))))));
}

RankedTensorType LossHead::rows(int64_t count, ArrayRef<StringAttr> inner, ArrayRef<int64_t> sizes,
                                Type type) {
  SmallVector<StringAttr> names{token};
  SmallVector<int64_t> shape{count};
  llvm::append_range(names, inner);
  llvm::append_range(shape, sizes);
  return namedTensor(names, shape, type);
}

/// Tokens [first, first + count) of a buffer over all tokens.
Value LossHead::part(Value buffer, int64_t first, int64_t count) {
  auto type = cast<RankedTensorType>(buffer.getType());
  int64_t inner = type.getNumElements() / tokens;
  // By name: a row of x may be one number wide.
  if (axesOf(type).empty() || axesOf(type).back() != channel)
    return program.view(loc, buffer, first, rows(count, {}, {}, type.getElementType()));
  return program.view(loc, buffer, first * inner, rows(count, {channel}, {inner}, type.getElementType()));
}

void LossHead::gradients(Value dlogits, int64_t first, int64_t count) {
  Value dxPart = part(dx, first, count), xPart = part(x, first, count);
  KernelOp back = program.kernel(loc, "loss_head_dx", {dlogits.getType(), table.getType()}, dxPart.getType(),
                                 [&](OpBuilder &b, ValueRange in) {
                                   return SmallVector<Value>{
                                       ContractOp::create(b, loc, computed(dxPart), in[0], in[1], Value())};
                                 });
  program.call(loc, back, {dlogits, table}, {dxPart});
  KernelOp sum = program.kernel(
      loc, "loss_head_dtable", {dlogits.getType(), xPart.getType(), dtable.getType()}, dtable.getType(),
      [&](OpBuilder &b, ValueRange in) {
        return SmallVector<Value>{ContractOp::create(b, loc, computed(dtable), in[0], in[1], in[2])};
      });
  program.call(loc, sum, {dlogits, xPart, dtable}, {dtable});
}

void LossHead::chunk(int64_t first, int64_t count) {
  Value here = program.view(loc, logits, 0, rows(count, {vocabulary}, {vocab}, stored));
  Value xPart = part(x, first, count), targetPart = part(targets, first, count),
        lossPart = part(rowLoss, first, count);
  KernelOp product = program.kernel(loc, "loss_head_logits", {xPart.getType(), table.getType()},
                                    here.getType(), [&](OpBuilder &b, ValueRange in) {
                                      return SmallVector<Value>{
                                          ContractOp::create(b, loc, computed(here), in[0], in[1], Value())};
                                    });
  program.call(loc, product, {xPart, table}, {here});
  SmallVector<Value> operands{here, targetPart};
  if (weight)
    operands.push_back(part(weight, first, count));
  KernelOp rowsKernel =
      program.kernel(loc, "loss_rows", ValueRange(operands).getTypes(), {here.getType(), lossPart.getType()},
                     [&](OpBuilder &b, ValueRange in) {
                       auto op = CrossEntropyGradOp::create(b, loc, in[0], in[1],
                                                            in.size() > 2 ? in[2] : Value(), z, smoothing);
                       if (vocab != classes)
                         op->setAttr(kClassesAttr, b.getI64IntegerAttr(classes));
                       return SmallVector<Value>(op.getResults());
                     });
  program.call(loc, rowsKernel, operands, {here, lossPart});
  if (dx)
    gradients(here, first, count);
}

/// The table, and its gradient's sum, with rows for the padding.
void LossHead::padTable() {
  auto padded = [&](Value buffer) {
    Type element = cast<RankedTensorType>(buffer.getType()).getElementType();
    return program.arena(loc, namedTensor({vocabulary, channel}, {vocab, channels}, element));
  };
  Value whole = padded(table);
  auto type = cast<RankedTensorType>(table.getType());
  auto rest = namedTensor({vocabulary, channel}, {vocab - classes, channels}, type.getElementType());
  program.copy(loc, table, program.view(loc, whole, 0, type));
  program.fill(loc, program.view(loc, whole, classes * channels, rest));
  table = whole;
  if (!dtable)
    return;
  wholeTable = std::exchange(dtable, padded(dtable));
  program.fill(loc, dtable);
}

void LossHead::finishTable() {
  auto type = cast<RankedTensorType>(wholeTable.getType());
  Value sum = program.view(loc, dtable, 0, type);
  if (!accumulates)
    return program.copy(loc, sum, wholeTable);
  KernelOp add = program.kernel(loc, "loss_add", {type, type}, type, [&](OpBuilder &b, ValueRange in) {
    return SmallVector<Value>{BinaryOp::create(b, loc, BinaryFn::Add, in[0], in[1])};
  });
  program.call(loc, add, {wholeTable, sum}, {wholeTable});
}

void LossHead::run() {
  rowLoss = program.arena(loc, rows(tokens, {}, {}, cast<RankedTensorType>(loss.getType()).getElementType()));
  logits = program.arena(loc, rows(step, {vocabulary}, {vocab}, stored));
  if (vocab != classes)
    padTable();
  else if (dtable && !accumulates)
    program.fill(loc, dtable);
  for (int64_t first = 0; first < tokens; first += step)
    chunk(first, std::min(step, tokens - first));
  if (wholeTable)
    finishTable();
  KernelOp total =
      program.kernel(loc, "loss_sum", {rowLoss.getType()}, loss.getType(), [&](OpBuilder &b, ValueRange in) {
        return SmallVector<Value>{
            SumToOp::create(b, loc, cast<RankedTensorType>(loss.getType()), in[0], Value())};
      });
  program.call(loc, total, {rowLoss}, {loss});
}

void weft::scheduleLossHead(ProgramBuilder &program, Operation *head, ValueRange ins, ValueRange outs,
                            int64_t logitsBytes) {
  LossHead(program, head, ins, outs, logitsBytes).run();
}

//===- RowProgram.cpp - Fused ops taken apart into maps and reductions ----===//
#include "passes/Codegen/RowProgram.h"

#include "passes/Codegen/RowSchedule.h"
#include "passes/Codegen/VectorMath.h"

#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;

namespace weft {

int64_t countOf(ArrayRef<Axis> axes) {
  int64_t count = 1;
  for (const Axis &axis : axes)
    count *= axis.size;
  return count;
}

Axes allAxes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  ArrayRef<StringAttr> names = axesOf(type);
  Axes axes;
  for (int64_t i = 0; i < tensor.getRank(); ++i) {
    auto name = names.empty() ? StringAttr::get(type.getContext(), "#" + Twine(i)) : names[i];
    axes.push_back({name, tensor.getDimSize(i)});
  }
  return axes;
}

int64_t strideOf(ArrayRef<Axis> axes, StringAttr name) {
  int64_t stride = 1;
  for (const Axis &axis : llvm::reverse(axes)) {
    if (axis.name == name)
      return stride;
    stride *= axis.size;
  }
  return 0;
}

Axes RowProgram::localAxes(Type type) const {
  Axes axes = allAxes(type);
  llvm::erase_if(axes, [&](const Axis &axis) { return isRow(axis.name); });
  return axes;
}

namespace {

/// Builds the nodes of one kernel.
class Expander {
public:
  explicit Expander(RowProgram &program) : program(program) {}

  LogicalResult run(KernelOp kernel);

private:
  LogicalResult expand(Operation *op);
  LogicalResult expand(ConstantOp op);
  LogicalResult expand(UnaryOp op);
  LogicalResult expand(UnaryGradOp op);
  LogicalResult expand(BinaryOp op);
  LogicalResult expand(SumToOp op);
  LogicalResult expand(PartialSumOp op);
  LogicalResult expand(DropoutOp op);
  LogicalResult expand(LayerNormOp op);
  LogicalResult expand(RmsNormOp op);
  LogicalResult expand(LayerNormGradOp op);
  LogicalResult expand(RmsNormGradOp op);
  LogicalResult expand(SoftmaxOp op);
  LogicalResult expand(SoftmaxGradOp op);
  LogicalResult expand(RopeOp op);
  LogicalResult expand(ClipScaleOp op);
  LogicalResult expand(AdamWOp op);
  LogicalResult expand(AcceptOp op);

  using MapFn = std::function<Value(Emitter &, ArrayRef<Value>)>;
  int push(RowNode node);
  int map(Axes axes, ArrayRef<int> inputs, MapFn fn);
  int reduce(int input, Axes kept, bool largest = false);
  /// Over the last axis.
  int total(int input, bool largest = false);
  /// mean of `input` over the last axis.
  int mean(int input);
  struct Statistics {
    int mean = -1, inverse = -1;
  };
  Statistics statistics(int x, double eps, bool centred);
  /// (x - mean) / deviation as the map of a larger expression.
  LogicalResult norm(Value x, Value y, double eps, bool centred);
  LogicalResult normGrad(Value x, Value dy, Value dx, double eps, bool centred);
  int component(Value value, int64_t index);
  int of(Value value) { return nodeOf.at(value); }
  int argument(Value value) const { return cast<BlockArgument>(value).getArgNumber(); }
  void define(Value value, int node) { nodeOf[value] = node; }

  RowProgram &program;
  std::map<std::tuple<int, double, bool>, Statistics> known;
  llvm::DenseMap<Value, int> nodeOf;
};

int Expander::push(RowNode node) {
  program.nodes.push_back(std::move(node));
  return static_cast<int>(program.nodes.size()) - 1;
}

int Expander::map(Axes axes, ArrayRef<int> inputs, MapFn fn) {
  RowNode node;
  node.axes = std::move(axes);
  node.inputs.assign(inputs.begin(), inputs.end());
  node.map = [fn](Emitter &e, ArrayRef<Value> values, function_ref<Value()>) { return fn(e, values); };
  return push(std::move(node));
}

int Expander::reduce(int input, Axes kept, bool largest) {
  RowNode node;
  node.kind = RowNode::Kind::Reduce;
  node.axes = std::move(kept);
  node.inputs = {input};
  node.largest = largest;
  return push(std::move(node));
}

int Expander::total(int input, bool largest) {
  Axes kept = program.nodes[input].axes;
  kept.pop_back();
  return reduce(input, kept, largest);
}

int Expander::mean(int input) {
  auto count = static_cast<double>(program.nodes[input].axes.back().size);
  int sum = total(input);
  return map(program.nodes[sum].axes, {sum}, [count](Emitter &e, ArrayRef<Value> in) {
    return e.mul(in[0], e.constant(in[0].getType(), 1 / count));
  });
}

int Expander::component(Value value, int64_t index) {
  RowNode node;
  node.kind = RowNode::Kind::Operand;
  node.operand = argument(value);
  node.component = index;
  node.type = cast<RankedTensorType>(value.getType());
  return push(std::move(node));
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

LogicalResult Expander::expand(ConstantOp op) {
  double value = numberOf(op.getValue());
  define(op.getResult(),
         map({}, {}, [value](Emitter &e, ArrayRef<Value>) { return e.constant(e.f32, value); }));
  // A tensor of it is a map of its own, so that it has the axes that users expect.
  if (Axes axes = program.localAxes(op.getType()); !axes.empty())
    define(op.getResult(),
           map(axes, {of(op.getResult())}, [](Emitter &, ArrayRef<Value> in) { return in[0]; }));
  return success();
}

LogicalResult Expander::expand(UnaryOp op) {
  UnaryFn fn = op.getFn();
  define(op.getY(), map(program.localAxes(op.getType()), {of(op.getX())},
                        [fn](Emitter &e, ArrayRef<Value> in) { return emitUnary(e, fn, in[0]); }));
  return success();
}

LogicalResult Expander::expand(UnaryGradOp op) {
  UnaryFn fn = op.getFn();
  define(op.getDx(),
         map(program.localAxes(op.getType()), {of(op.getX()), of(op.getDy())},
             [fn](Emitter &e, ArrayRef<Value> in) { return emitUnaryGrad(e, fn, in[0], in[1]); }));
  return success();
}

static Value emitBinary(Emitter &e, BinaryFn fn, Value x, Value y, std::optional<double> power) {
  switch (fn) {
  case BinaryFn::Add:
    return e.add(x, y);
  case BinaryFn::Sub:
    return e.sub(x, y);
  case BinaryFn::Mul:
    return e.mul(x, y);
  case BinaryFn::Div:
    return e.div(x, y);
  case BinaryFn::Pow:
    return emitPow(e, x, y, power);
  }
  llvm_unreachable("a function without code");
}

LogicalResult Expander::expand(BinaryOp op) {
  BinaryFn fn = op.getFn();
  std::optional<double> power;
  if (auto constant = op.getY().getDefiningOp<ConstantOp>())
    power = numberOf(constant.getValue());
  define(op.getZ(),
         map(program.localAxes(op.getType()), {of(op.getX()), of(op.getY())},
             [fn, power](Emitter &e, ArrayRef<Value> in) { return emitBinary(e, fn, in[0], in[1], power); }));
  return success();
}

LogicalResult Expander::expand(DropoutOp op) {
  double rate = numberOf(op.getRate());
  if (!op.getNoise() || rate == 0) {
    define(op.getY(), of(op.getX()));
    return success();
  }
  RowNode node;
  node.axes = program.localAxes(op.getType());
  node.inputs = {of(op.getX()), component(op.getNoise(), 0)};
  node.type = cast<RankedTensorType>(op.getType());
  node.map = [rate, stream = op.getStream()](Emitter &e, ArrayRef<Value> in, function_ref<Value()> index) {
    Value seed = arith::ExtUIOp::create(e.b, e.loc, e.i64, in[1]);
    return emitDropout(e, in[0], seed, index(), rate, stream);
  };
  define(op.getY(), push(std::move(node)));
  return success();
}

LogicalResult Expander::expand(ClipScaleOp op) {
  double clip = op.getClip().convertToDouble();
  define(op.getScale(),
         map({}, {of(op.getNorm()), of(op.getFactor())}, [clip](Emitter &e, ArrayRef<Value> in) {
           Type type = in[0].getType();
           Value scale = in[1];
           if (clip > 0) {
             Value ratio = e.div(e.constant(type, clip), e.add(in[0], e.constant(type, 1e-6)));
             Value one = e.constant(type, 1);
             scale = e.mul(scale, e.select(e.less(ratio, one), ratio, one));
           }
           // norm - norm is 0, or NaN when norm is not finite.
           return e.add(scale, arith::SubFOp::create(e.b, e.loc, in[0], in[0]));
         }));
  return success();
}

/// `fresh`, or `old` where `scale` is NaN.
static Value accepted(Emitter &e, Value scale, Value old, Value fresh) {
  Value skipped = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::UNO, scale, scale);
  return e.select(skipped, old, fresh);
}

LogicalResult Expander::expand(AcceptOp op) {
  define(op.getResult(), map(program.localAxes(op.getOld().getType()),
                             {of(op.getOld()), of(op.getNext()), of(op.getScale())},
                             [](Emitter &e, ArrayRef<Value> in) { return accepted(e, in[2], in[0], in[1]); }));
  return success();
}

LogicalResult Expander::expand(AdamWOp op) {
  Axes axes = program.localAxes(op.getP().getType());
  int p = of(op.getP()), m = of(op.getM()), v = of(op.getV()), scale = of(op.getScale());
  double beta1 = op.getBeta1().convertToDouble(), beta2 = op.getBeta2().convertToDouble();
  double eps = op.getEps().convertToDouble(), decay = op.getDecay().convertToDouble();
  int rate = component(op.getHyper(), 0), c1 = component(op.getHyper(), 1), c2 = component(op.getHyper(), 2);
  int g = map(axes, {of(op.getGrad()), scale},
              [](Emitter &e, ArrayRef<Value> in) { return e.mul(in[0], in[1]); });
  int newM = map(axes, {m, g, scale}, [beta1](Emitter &e, ArrayRef<Value> in) {
    Type type = in[0].getType();
    Value fresh = e.mul(in[1], e.constant(type, 1 - beta1));
    return accepted(e, in[2], in[0], e.fma(in[0], e.constant(type, beta1), fresh));
  });
  int newV = map(axes, {v, g, scale}, [beta2](Emitter &e, ArrayRef<Value> in) {
    Type type = in[0].getType();
    Value fresh = e.mul(e.mul(in[1], in[1]), e.constant(type, 1 - beta2));
    return accepted(e, in[2], in[0], e.fma(in[0], e.constant(type, beta2), fresh));
  });
  int newP =
      map(axes, {p, newM, newV, scale, rate, c1, c2}, [eps, decay](Emitter &e, ArrayRef<Value> in) {
        Type type = in[0].getType();
        Value root = e.add(e.sqrt(e.mul(in[2], in[6])), e.constant(type, eps));
        Value step = e.mul(in[4], e.div(e.mul(in[1], in[5]), root));
        Value shrink = e.sub(e.constant(type, 1), e.mul(in[4], e.constant(type, decay)));
        return accepted(e, in[3], in[0], e.sub(e.mul(in[0], shrink), step));
      });
  define(op.getNewP(), newP);
  define(op.getNewM(), newM);
  define(op.getNewV(), newV);
  return success();
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

LogicalResult Expander::expand(SumToOp op) {
  int x = of(op.getX());
  Axes kept = program.localAxes(op.getType());
  for (const Axis &axis : program.rowAxes)
    if (strideOf(allAxes(op.getX().getType()), axis.name) && !strideOf(allAxes(op.getType()), axis.name))
      return op.emitOpError("sums over the rows of its kernel");
  int sum = kept == program.nodes[x].axes ? x : reduce(x, kept);
  if (op.getInit())
    sum = map(kept, {sum, of(op.getInit())},
              [](Emitter &e, ArrayRef<Value> in) { return e.add(in[0], in[1]); });
  define(op.getResult(), sum);
  return success();
}

LogicalResult Expander::expand(PartialSumOp op) {
  auto rows = llvm::to_vector(op.getRows().getAsRange<StringAttr>());
  if (rows != program.rows)
    return op.emitOpError("sums over other rows than its kernel's");
  Axes kept = program.localAxes(op.getType());
  kept.erase(kept.begin());
  int node = reduce(of(op.getX()), kept);
  program.nodes[node].chunked = true;
  define(op.getResult(), node);
  return success();
}

//===----------------------------------------------------------------------===//
// Functions of the last axis
//===----------------------------------------------------------------------===//

Expander::Statistics Expander::statistics(int x, double eps, bool centred) {
  auto [found, fresh] = known.try_emplace({x, eps, centred});
  if (!fresh)
    return found->second;
  Statistics result;
  Axes axes = program.nodes[x].axes;
  int square = -1;
  if (centred) {
    result.mean = mean(x);
    square = map(axes, {x, result.mean}, [](Emitter &e, ArrayRef<Value> in) {
      Value centre = e.sub(in[0], in[1]);
      return e.mul(centre, centre);
    });
  } else {
    square = map(axes, {x}, [](Emitter &e, ArrayRef<Value> in) { return e.mul(in[0], in[0]); });
  }
  int variance = mean(square);
  result.inverse = map(program.nodes[variance].axes, {variance}, [eps](Emitter &e, ArrayRef<Value> in) {
    Type type = in[0].getType();
    return e.div(e.constant(type, 1), e.sqrt(e.add(in[0], e.constant(type, eps))));
  });
  return known[{x, eps, centred}] = result;
}

LogicalResult Expander::norm(Value x, Value y, double eps, bool centred) {
  int node = of(x);
  auto [mean, inverse] = statistics(node, eps, centred);
  Axes axes = program.nodes[node].axes;
  if (centred)
    define(y, map(axes, {node, mean, inverse},
                  [](Emitter &e, ArrayRef<Value> in) { return e.mul(e.sub(in[0], in[1]), in[2]); }));
  else
    define(y, map(axes, {node, inverse}, [](Emitter &e, ArrayRef<Value> in) { return e.mul(in[0], in[1]); }));
  return success();
}

LogicalResult Expander::normGrad(Value xValue, Value dyValue, Value dx, double eps, bool centred) {
  int x = of(xValue), dy = of(dyValue);
  auto [meanX, inverse] = statistics(x, eps, centred);
  Axes axes = program.nodes[x].axes;
  // y is made again wherever it is needed: a multiplication is cheaper than a store.
  auto y = [centred](Emitter &e, ArrayRef<Value> in) {
    return centred ? e.mul(e.sub(in[0], in[2]), in[1]) : e.mul(in[0], in[1]);
  };
  SmallVector<int, 4> normal{x, inverse};
  if (centred)
    normal.push_back(meanX);
  SmallVector<int, 4> inputs = normal;
  inputs.push_back(dy);
  int product = map(axes, inputs, [y](Emitter &e, ArrayRef<Value> in) { return e.mul(y(e, in), in.back()); });
  int along = mean(product);
  if (centred) {
    int meanDy = mean(dy);
    inputs.push_back(meanDy);
  }
  inputs.push_back(along);
  define(dx, map(axes, inputs, [y, centred](Emitter &e, ArrayRef<Value> in) {
           Value dy = in[centred ? 3 : 2];
           if (centred)
             dy = e.sub(dy, in[4]);
           return e.mul(in[1], e.sub(dy, e.mul(y(e, in), in.back())));
         }));
  return success();
}

LogicalResult Expander::expand(LayerNormOp op) {
  return norm(op.getX(), op.getY(), numberOf(op.getEps()), true);
}
LogicalResult Expander::expand(RmsNormOp op) {
  return norm(op.getX(), op.getY(), numberOf(op.getEps()), false);
}
LogicalResult Expander::expand(LayerNormGradOp op) {
  return normGrad(op.getX(), op.getDy(), op.getDx(), numberOf(op.getEps()), true);
}
LogicalResult Expander::expand(RmsNormGradOp op) {
  return normGrad(op.getX(), op.getDy(), op.getDx(), numberOf(op.getEps()), false);
}

LogicalResult Expander::expand(SoftmaxOp op) {
  int x = of(op.getX());
  Axes axes = program.nodes[x].axes;
  int most = total(x, /*largest=*/true);
  int power =
      map(axes, {x, most}, [](Emitter &e, ArrayRef<Value> in) { return emitExp(e, e.sub(in[0], in[1])); });
  int sum = total(power);
  define(op.getY(),
         map(axes, {power, sum}, [](Emitter &e, ArrayRef<Value> in) { return e.div(in[0], in[1]); }));
  return success();
}

LogicalResult Expander::expand(SoftmaxGradOp op) {
  int y = of(op.getY()), dy = of(op.getDy());
  Axes axes = program.nodes[y].axes;
  int product = map(axes, {y, dy}, [](Emitter &e, ArrayRef<Value> in) { return e.mul(in[0], in[1]); });
  int sum = total(product);
  define(op.getDx(), map(axes, {y, dy, sum},
                         [](Emitter &e, ArrayRef<Value> in) { return e.mul(in[0], e.sub(in[1], in[2])); }));
  return success();
}

LogicalResult Expander::expand(RopeOp op) {
  if (!op.getTable())
    return op.emitOpError("has no table: compiled kernels compute no sine");
  if (!isa<BlockArgument>(op.getPosition()) || !isa<BlockArgument>(op.getTable()))
    return op.emitOpError("reads positions or a table that its kernel computes");
  RowNode node;
  node.kind = RowNode::Kind::Rope;
  node.axes = program.localAxes(op.getType());
  node.inputs = {of(op.getX())};
  node.rope = op;
  node.position = argument(op.getPosition());
  node.table = argument(op.getTable());
  define(op.getY(), push(std::move(node)));
  return success();
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

LogicalResult Expander::expand(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ConstantOp, UnaryOp, UnaryGradOp, BinaryOp, SumToOp, PartialSumOp, DropoutOp, LayerNormOp,
            RmsNormOp, LayerNormGradOp, RmsNormGradOp, SoftmaxOp, SoftmaxGradOp, RopeOp, ClipScaleOp,
            AdamWOp, AcceptOp>([&](auto typed) { return expand(typed); })
      .Default([](Operation *other) {
        return other->emitOpError(
            "can't stand in a fused kernel: expected elementwise ops and functions of rows");
      });
}

LogicalResult Expander::run(KernelOp kernel) {
  Block &block = kernel.getBody().front();
  for (BlockArgument argument : block.getArguments()) {
    RowNode node;
    node.kind = RowNode::Kind::Operand;
    node.operand = argument.getArgNumber();
    node.type = cast<RankedTensorType>(argument.getType());
    node.axes = program.localAxes(node.type);
    define(argument, push(std::move(node)));
  }
  for (Operation &op : block.without_terminator())
    if (failed(expand(&op)))
      return failure();
  for (auto [number, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
    int node = of(value);
    // A result that is an argument, or narrower than its tensor, is copied.
    Axes axes = program.localAxes(value.getType());
    if (!program.nodes[node].chunked &&
        (program.nodes[node].kind == RowNode::Kind::Operand || program.nodes[node].axes != axes))
      node = map(axes, {node}, [](Emitter &, ArrayRef<Value> in) { return in[0]; });
    program.nodes[node].results.push_back(static_cast<int>(number));
    program.nodes[node].type = cast<RankedTensorType>(value.getType());
  }
  return success();
}

/// One shape and scalars, nothing summed: a loop over elements does.
bool isFlat(RowProgram &program) {
  if (!program.rows.empty())
    return false;
  llvm::DenseSet<int> read;
  for (const RowNode &node : program.nodes)
    read.insert(node.inputs.begin(), node.inputs.end());
  Axes shape;
  for (auto [number, node] : llvm::enumerate(program.nodes)) {
    if (node.kind == RowNode::Kind::Operand && !read.contains(static_cast<int>(number)))
      continue;
    if (node.kind == RowNode::Kind::Reduce || node.kind == RowNode::Kind::Rope)
      return false;
    if (node.axes.empty())
      continue;
    if (!shape.empty() && node.axes != shape)
      return false;
    shape = node.axes;
  }
  program.flatAxes = shape;
  return !shape.empty();
}

} // namespace

bool isRowOp(Operation *op) {
  return isa<ConstantOp, UnaryOp, UnaryGradOp, BinaryOp, PartialSumOp, DropoutOp, LayerNormOp, RmsNormOp,
             LayerNormGradOp, RmsNormGradOp, SoftmaxOp, SoftmaxGradOp, RopeOp, ClipScaleOp, AdamWOp, AcceptOp>(op);
}

FailureOr<RowProgram> buildRowProgram(KernelOp kernel) {
  RowProgram program;
  program.rows = llvm::to_vector(kernel.getRows().getAsRange<StringAttr>());
  program.chunks = std::max<int64_t>(kernel.getChunks(), 1);
  for (StringAttr name : program.rows) {
    Axis row{name, 1};
    kernel.walk([&](Operation *op) {
      for (Type type :
           llvm::concat<Type>(llvm::to_vector(op->getOperandTypes()), llvm::to_vector(op->getResultTypes())))
        if (auto tensor = dyn_cast<RankedTensorType>(type))
          if (int64_t axis = axisIndex(tensor, name); axis >= 0)
            row.size = tensor.getDimSize(axis);
    });
    program.rowAxes.push_back(row);
  }
  program.rowCount = countOf(program.rowAxes);
  if (failed(Expander(program).run(kernel)))
    return failure();
  program.flat = isFlat(program);
  scheduleRows(program);
  return program;
}

} // namespace weft

//===- Muon.cpp - Steps of matrices along their orthogonal factor ---------===//
#include "passes/Differentiate/Muon.h"
#include "dialects/Weft/Gradients.h"
#include "passes/Differentiate/Programs.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;

namespace weft {
namespace {

using Names = SmallVector<StringAttr>;

/// A value that stands for a parameter in a product: the parameter itself, an
/// elementwise function of it, or slices of it.
struct Stand {
  Value value;
  llvm::DenseMap<StringAttr, Names> origin; // axes of slices: those of the parameter that they count

  Names originalAxes(StringAttr axis) const {
    auto found = origin.find(axis);
    return found == origin.end() ? Names{axis} : found->second;
  }
};

/// Axes of `parameter` that the product sums; those of `x`, which stands for it.
FailureOr<Names> summedAxes(ContractOp product, const Stand &x, StateOp parameter) {
  Value other = product.getA() == x.value ? product.getB() : product.getA();
  Names summed;
  for (StringAttr axis : axesOf(x.value)) {
    if (axisIndex(product.getResult().getType(), axis) < 0) {
      summed.append(x.originalAxes(axis));
    } else if (axisIndex(tensorType(other), axis) >= 0) {
      InFlightDiagnostic diag = parameter.emitError() << "muon steps '" << parameter.getSymName()
                                                      << "' as one matrix, but its axis " << axis
                                                      << " lines up with the other side of a product";
      diag.attachNote(product.getLoc()) << "here; let adamw take this parameter";
      return failure();
    }
  }
  return summed;
}

/// What `user`, a reader of `x`, makes of it when that still stands for the parameter.
std::optional<Stand> carriedOn(Operation *user, const Stand &x) {
  if (isa<UnaryOp, BinaryOp>(user) && user->getResult(0).getType() == x.value.getType())
    return Stand{user->getResult(0), x.origin};
  auto take = dyn_cast<TakeOp>(user);
  if (!take)
    return std::nullopt;
  Stand slices{take.getY(), x.origin};
  Names counted;
  for (auto axis : take.getAxes().getAsRange<StringAttr>())
    counted.append(x.originalAxes(axis));
  slices.origin[take.getAxisAttr()] = std::move(counted);
  return slices;
}

/// The products that read `parameter`, and as what.
SmallVector<std::pair<ContractOp, Stand>> productsOf(StateOp parameter, func::FuncOp forward) {
  SmallVector<std::pair<ContractOp, Stand>> products;
  SmallVector<Stand> work;
  for (auto get : bodyOf(forward).getOps<GetOp>())
    if (get.getState() == parameter.getSymName())
      work.push_back(Stand{get.getResult(), llvm::DenseMap<StringAttr, Names>()});
  while (!work.empty()) {
    Stand x = work.pop_back_val();
    for (Operation *user : x.value.getUsers()) {
      if (auto product = dyn_cast<ContractOp>(user))
        products.emplace_back(product, x);
      else if (std::optional<Stand> next = carriedOn(user, x))
        work.push_back(std::move(*next));
    }
  }
  return products;
}

} // namespace

FailureOr<MuonMatrix> muonMatrixOf(StateOp parameter, func::FuncOp forward) {
  std::optional<Names> in;
  for (auto &[product, x] : productsOf(parameter, forward)) {
    FailureOr<Names> summed = summedAxes(product, x, parameter);
    if (failed(summed))
      return failure();
    if (in && *in != *summed)
      return parameter.emitError() << "muon needs to know which axes of '" << parameter.getSymName()
                                   << "' go in, but two products sum different ones; let adamw take it";
    in = *summed;
  }
  if (!in)
    return parameter.emitError() << "muon steps matrices, but no product reads '" << parameter.getSymName()
                                 << "'; let adamw take it";
  RankedTensorType type = parameter.getTensorType();
  ArrayRef<StringAttr> axes = axesOf(type);
  MuonMatrix matrix;
  matrix.in = 1;
  for (StringAttr axis : *in)
    matrix.in *= type.getDimSize(axisIndex(type, axis));
  matrix.out = type.getNumElements() / matrix.in;
  bool first = axes.take_front(in->size()) == ArrayRef(*in),
       last = axes.take_back(in->size()) == ArrayRef(*in);
  if (in->empty() || in->size() == axes.size() || !(first || last))
    return parameter.emitError()
           << "muon steps '" << parameter.getSymName()
           << "' as one matrix: expected products to sum its first or its last axes, of " << type
           << "; let adamw take it";
  matrix.rows = first ? matrix.in : matrix.out;
  matrix.columns = first ? matrix.out : matrix.in;
  return matrix;
}

double muonFactor(const MuonMatrix &matrix) {
  return std::sqrt(std::max(1.0, static_cast<double>(matrix.out) / static_cast<double>(matrix.in)));
}

MuonStep buildMuonStep(OpBuilder &builder, Location loc, Value p, Value m, Value grad, Value rate,
                       Value scale, const MuonMatrix &matrix, const MuonOptions &options) {
  RankedTensorType type = tensorType(p);
  auto add = [&](Value x, Value y) { return binary(builder, loc, BinaryFn::Add, x, y); };
  auto mul = [&](Value x, Value y) { return binary(builder, loc, BinaryFn::Mul, x, y); };
  auto reshape = [&](Value x, RankedTensorType to) -> Value {
    return ReshapeOp::create(builder, loc, to, x);
  };
  Value g = mul(grad, scale);
  Value momentum = add(scaled(builder, loc, m, options.momentum), g);
  Value u = options.nesterov ? add(g, scaled(builder, loc, momentum, options.momentum)) : momentum;
  auto matrices = namedTensor(
      {builder.getStringAttr(kMatrixAxis), builder.getStringAttr("rows"), builder.getStringAttr("columns")},
      {type.getNumElements() / (matrix.rows * matrix.columns), matrix.rows, matrix.columns},
      type.getElementType());
  Value direction =
      reshape(PolarOp::create(builder, loc, matrices, reshape(u, matrices), options.iterations), type);
  Value step = mul(direction, scaled(builder, loc, rate, muonFactor(matrix)));
  Value kept = p;
  if (options.decay != 0) {
    Value one = constantOf(builder, loc, tensorType(rate), 1.0);
    kept = mul(p, binary(builder, loc, BinaryFn::Sub, one, scaled(builder, loc, rate, options.decay)));
  }
  Value next = binary(builder, loc, BinaryFn::Sub, kept, step);
  auto accept = [&](Value old, Value fresh) -> Value {
    return AcceptOp::create(builder, loc, type, old, fresh, scale);
  };
  return {accept(p, next), accept(m, momentum)};
}

} // namespace weft

//===- FoldActivations.cpp - Activations in the products before them ------===//
//
// Two pairs of launches become one, where cuBLASLt has an epilogue for it:
//   y = A B, h = gelu_tanh(y), y read elsewhere      h, y = one kernel of A, B
//   d = A B, only read by d gelu_tanh'(x)            one kernel of A, B, x
// The kernel's body holds both ops, so the interpreter needs nothing new.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/Gpu/Gpu.h"
#include "passes/Fuse/Passes.h"
#include "passes/Fuse/Regions.h"

namespace weft {
#define GEN_PASS_DEF_FOLDACTIVATIONSPASS
#include "passes/Fuse/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

/// The argument that `value` is, converts aside, or -1.
static int64_t argumentOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(withoutConverts(value));
  return argument ? static_cast<int64_t>(argument.getArgNumber()) : -1;
}

/// `value` of `type`, converted if its elements are others.
static Value converted(OpBuilder &builder, Value value, Type type) {
  return value.getType() == type ? value
                                 : ConvertOp::create(builder, value.getLoc(), type, value).getResult();
}

namespace {

class Folder {
public:
  explicit Folder(ModuleOp module) : names(module) {
    for (KernelOp kernel : module.getOps<KernelOp>())
      kernels[kernel.getSymNameAttr()] = kernel;
  }
  void run(func::FuncOp function);

private:
  template <typename OpT> OpT onlyOp(LaunchOp launch);
  bool foldGelu(LaunchOp product);
  void foldGrad(LaunchOp product);
  StringAttr fold(LaunchOp product, LaunchOp activation, StringRef label);
  KernelOp build(KernelOp product, KernelOp activation);
  KernelOp kernelOf(LaunchOp launch) { return kernels.lookup(launch.getKernelAttr().getAttr()); }

  KernelNames names;
  llvm::DenseMap<StringAttr, KernelOp> kernels;
  llvm::DenseMap<std::pair<StringAttr, StringAttr>, StringAttr> tried; // null: not for cuBLASLt
};

} // namespace

/// The op that the kernel of `launch` is, converts aside, when it yields that alone.
template <typename OpT> OpT Folder::onlyOp(LaunchOp launch) {
  KernelOp kernel = launch ? kernelOf(launch) : KernelOp();
  auto op = kernel ? dyn_cast_or_null<OpT>(coreOf(kernel)) : OpT();
  if (!op || launch.getNumResults() != 1)
    return {};
  auto yield = cast<YieldOp>(kernel.getBody().front().getTerminator());
  return withoutConverts(yield.getValues()[0]) == op->getResult(0) ? op : OpT();
}

/// Arguments: the product's, then x of a gradient. Results: the activation's,
/// then, of gelu_tanh, the product's.
KernelOp Folder::build(KernelOp product, KernelOp activation) {
  auto contract = cast<ContractOp>(coreOf(product));
  Operation *op = coreOf(activation);
  auto grad = dyn_cast<UnaryGradOp>(op);
  SmallVector<Type> inputs(product.getArgumentTypes()), results(activation.getResultTypes());
  if (grad)
    inputs.push_back(activation.getArgumentTypes()[static_cast<size_t>(argumentOf(grad.getX()))]);
  else
    llvm::append_range(results, product.getResultTypes());
  OpBuilder builder(product);
  Location loc = activation.getLoc();
  auto made = KernelOp::create(builder, loc, builder.getStringAttr("kernel"),
                               TypeAttr::get(builder.getFunctionType(inputs, results)), product.getRowsAttr(),
                               product.getChunksAttr(), ArrayAttr(), ArrayAttr());
  Block &body = made.getBody().emplaceBlock();
  body.addArguments(inputs, SmallVector<Location>(inputs.size(), loc));
  builder.setInsertionPointToEnd(&body);
  IRMapping mapping;
  for (Value factor : {contract.getA(), contract.getB()}) {
    Value argument = body.getArgument(static_cast<unsigned>(argumentOf(factor)));
    mapping.map(factor, converted(builder, argument, factor.getType()));
  }
  if (grad)
    mapping.map(grad.getX(), converted(builder, body.getArguments().back(), grad.getX().getType()));
  Value y = builder.clone(*contract, mapping)->getResult(0);
  mapping.map(op->getOperands().back(), y);
  SmallVector<Value> yielded{builder.clone(*op, mapping)->getResult(0)};
  if (!grad)
    yielded.push_back(y);
  for (auto [value, type] : llvm::zip(yielded, results))
    value = converted(builder, value, type);
  YieldOp::create(builder, loc, yielded);
  return made;
}

/// The name of the kernel that does both, or null when it would be no product to cuBLASLt.
StringAttr Folder::fold(LaunchOp product, LaunchOp activation, StringRef label) {
  auto [entry, isNew] = tried.try_emplace(
      {product.getKernelAttr().getAttr(), activation.getKernelAttr().getAttr()}, StringAttr());
  if (!isNew)
    return entry->second;
  KernelOp made = build(kernelOf(product), kernelOf(activation));
  if (!gpuGemmOf(made)) {
    made.erase();
    return {};
  }
  std::string name = names.nameOf(made, (labelOf(kernelOf(product)) + label).str());
  return entry->second = StringAttr::get(product.getContext(), name);
}

bool Folder::foldGelu(LaunchOp product) {
  Value y = product.getResult(0);
  LaunchOp activation;
  for (Operation *user : y.getUsers()) {
    auto unary = onlyOp<UnaryOp>(dyn_cast<LaunchOp>(user));
    if (unary && unary.getFn() == UnaryFn::GeluTanh)
      activation = cast<LaunchOp>(user);
  }
  StringAttr name = activation && !y.hasOneUse() ? fold(product, activation, "_gelu_tanh") : StringAttr();
  if (!name)
    return false;
  OpBuilder builder(product);
  auto both = LaunchOp::create(builder, activation.getLoc(),
                               TypeRange{activation.getResult(0).getType(), y.getType()},
                               FlatSymbolRefAttr::get(name), product.getOperands());
  activation.getResult(0).replaceAllUsesWith(both.getResult(0));
  y.replaceAllUsesWith(both.getResult(1));
  activation.erase();
  product.erase();
  return true;
}

void Folder::foldGrad(LaunchOp product) {
  Value d = product.getResult(0);
  auto activation = d.hasOneUse() ? dyn_cast<LaunchOp>(*d.getUsers().begin()) : LaunchOp();
  auto grad = onlyOp<UnaryGradOp>(activation);
  if (!grad || grad.getFn() != UnaryFn::GeluTanh)
    return;
  int64_t x = argumentOf(grad.getX()), dy = argumentOf(grad.getDy());
  if (x < 0 || dy < 0 || activation.getOperands()[static_cast<unsigned>(dy)] != d || x == dy)
    return;
  StringAttr name = fold(product, activation, "_gelu_tanh_grad");
  if (!name)
    return;
  SmallVector<Value> operands(product.getOperands());
  operands.push_back(activation.getOperands()[static_cast<unsigned>(x)]);
  OpBuilder builder(activation);
  auto both = LaunchOp::create(builder, activation.getLoc(), TypeRange(activation.getResult(0).getType()),
                               FlatSymbolRefAttr::get(name), operands);
  activation.getResult(0).replaceAllUsesWith(both.getResult(0));
  activation.erase();
  product.erase();
}

void Folder::run(func::FuncOp function) {
  SmallVector<LaunchOp> products;
  for (LaunchOp launch : function.getOps<LaunchOp>()) {
    auto contract = onlyOp<ContractOp>(launch);
    if (contract && !contract.getInit())
      products.push_back(launch);
  }
  for (LaunchOp product : products)
    if (!foldGelu(product))
      foldGrad(product);
}

namespace {
struct FoldActivations : weft::impl::FoldActivationsPassBase<FoldActivations> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Folder folder(module);
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      folder.run(function);
    dropUnlaunched(module);
  }
};
} // namespace

//===- FoldActivations.cpp - Activations in the products before them ------===//
//
// Two launches become one, where cuBLASLt has an epilogue for it:
//   d = A B, only read by d gelu_tanh'(x)            one kernel of A, B, x
// The kernel's body holds both ops, so the interpreter needs nothing new.
// The forward pair stays apart: cuBLASLt's epilogue that keeps the product too
// takes longer than the two (docs/performance.md).
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
  void foldGrad(LaunchOp product);
  StringAttr fold(LaunchOp product, LaunchOp activation);
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

/// Arguments: the product's, then x. Result: the gradient's.
KernelOp Folder::build(KernelOp product, KernelOp activation) {
  auto contract = cast<ContractOp>(coreOf(product));
  auto grad = cast<UnaryGradOp>(coreOf(activation));
  SmallVector<Type> inputs(product.getArgumentTypes());
  inputs.push_back(activation.getArgumentTypes()[static_cast<size_t>(argumentOf(grad.getX()))]);
  OpBuilder builder(product);
  Location loc = activation.getLoc();
  auto made = KernelOp::create(builder, loc, builder.getStringAttr("kernel"),
                               TypeAttr::get(builder.getFunctionType(inputs, activation.getResultTypes())),
                               product.getRowsAttr(), product.getChunksAttr(), ArrayAttr(), ArrayAttr());
  Block &body = made.getBody().emplaceBlock();
  body.addArguments(inputs, SmallVector<Location>(inputs.size(), loc));
  builder.setInsertionPointToEnd(&body);
  IRMapping mapping;
  for (Value factor : {contract.getA(), contract.getB()}) {
    Value argument = body.getArgument(static_cast<unsigned>(argumentOf(factor)));
    mapping.map(factor, converted(builder, argument, factor.getType()));
  }
  mapping.map(grad.getX(), converted(builder, body.getArguments().back(), grad.getX().getType()));
  mapping.map(grad.getDy(), builder.clone(*contract, mapping)->getResult(0));
  Value dx = builder.clone(*grad, mapping)->getResult(0);
  YieldOp::create(builder, loc, converted(builder, dx, activation.getResultTypes()[0]));
  return made;
}

/// The name of the kernel that does both, or null when it would be no product to cuBLASLt.
StringAttr Folder::fold(LaunchOp product, LaunchOp activation) {
  auto [entry, isNew] = tried.try_emplace(
      {product.getKernelAttr().getAttr(), activation.getKernelAttr().getAttr()}, StringAttr());
  if (!isNew)
    return entry->second;
  KernelOp made = build(kernelOf(product), kernelOf(activation));
  if (!gpuGemmOf(made)) {
    made.erase();
    return {};
  }
  std::string name = names.nameOf(made, (labelOf(kernelOf(product)) + "_gelu_tanh_grad").str());
  return entry->second = StringAttr::get(product.getContext(), name);
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
  StringAttr name = fold(product, activation);
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

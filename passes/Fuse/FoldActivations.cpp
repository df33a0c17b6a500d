//===- FoldActivations.cpp - Activations in the products before them ------===//
//
// Two launches become one. On tiles (sm_90a, large products), for any f of elements:
//   c = A B, results = f(c, ...)                     one kernel of A, B, ...
// which writes c too where something else reads it: of 2 to 4 passes over c one or
// two are left. Where cuBLASLt has an epilogue for it:
//   d = A B, only read by d gelu_tanh'(x)            one kernel of A, B, x
// A kernel's body holds all its ops, so the interpreter needs nothing new.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/Gpu/Gpu.h"
#include "passes/Fuse/Passes.h"
#include "passes/Fuse/Regions.h"

#include <cstdlib>
#include <map>

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

static bool isBF16(Type type) { return cast<RankedTensorType>(type).getElementType().isBF16(); }

/// Whether a kernel's body is functions of elements, converts and constants.
static bool isElementwise(KernelOp kernel) {
  return llvm::all_of(kernel.getBody().front(), [](Operation &op) {
    return isa<ConvertOp, ConstantOp, UnaryOp, UnaryGradOp, BinaryOp, YieldOp>(op);
  });
}

namespace {

class Folder {
public:
  /// `chip`: for whose tiles; `keeps`: also what the product is kept for.
  Folder(ModuleOp module, StringRef chip, bool keeps) : names(module), chip(chip), keeps(keeps) {
    for (KernelOp kernel : module.getOps<KernelOp>())
      kernels[kernel.getSymNameAttr()] = kernel;
  }
  void run(func::FuncOp function);

private:
  /// A product, the launch that reads it as operand `operand`, and whether others do.
  struct Pair {
    LaunchOp product, follower;
    unsigned operand = 0;
    bool kept = false;
  };

  template <typename OpT> OpT onlyOp(LaunchOp launch);
  std::optional<Pair> pairOf(LaunchOp product);
  bool foldOnTiles(LaunchOp product);
  StringAttr foldOnTiles(const Pair &pair);
  KernelOp buildOnTiles(const Pair &pair);
  void foldGrad(LaunchOp product);
  StringAttr fold(LaunchOp product, LaunchOp activation);
  KernelOp build(KernelOp product, KernelOp activation);
  KernelOp kernelOf(LaunchOp launch) { return kernels.lookup(launch.getKernelAttr().getAttr()); }

  KernelNames names;
  const std::string chip;
  const bool keeps;
  llvm::DenseMap<StringAttr, KernelOp> kernels;
  llvm::DenseMap<std::pair<StringAttr, StringAttr>, StringAttr> tried; // null: not for cuBLASLt
  using Key = std::tuple<std::string, std::string, unsigned, bool>;
  std::map<Key, StringAttr> triedOnTiles; // null: not for tiles
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

//===----------------------------------------------------------------------===//
// On tiles
//===----------------------------------------------------------------------===//

/// The first launch that reads the product, when it may stand for both.
std::optional<Folder::Pair> Folder::pairOf(LaunchOp product) {
  Pair pair{product, {}, 0, false};
  int64_t reads = 0;
  for (OpOperand &use : product.getResult(0).getUses()) {
    auto launch = dyn_cast<LaunchOp>(use.getOwner());
    ++reads;
    if (!launch || (pair.follower && !launch->isBeforeInBlock(pair.follower)))
      continue;
    pair.follower = launch;
    pair.operand = use.getOperandNumber();
  }
  KernelOp follower = pair.follower ? kernelOf(pair.follower) : KernelOp(); // none: already of two
  if (!follower || !isElementwise(follower) || !isBF16(product.getResult(0).getType()))
    return std::nullopt;
  if (llvm::count(pair.follower.getOperands(), product.getResult(0)) != 1)
    return std::nullopt;
  pair.kept = reads > 1;
  return !pair.kept || keeps ? std::optional(pair) : std::nullopt;
}

/// Arguments: the product's, then the follower's others. Results: the product if it is
/// kept, then the follower's.
KernelOp Folder::buildOnTiles(const Pair &pair) {
  KernelOp product = kernelOf(pair.product), follower = kernelOf(pair.follower);
  auto contract = cast<ContractOp>(coreOf(product));
  mlir::Block &first = product.getBody().front(), &second = follower.getBody().front();
  SmallVector<Type> inputs(product.getArgumentTypes()), results;
  for (auto [number, type] : llvm::enumerate(follower.getArgumentTypes()))
    if (number != pair.operand)
      inputs.push_back(type);
  if (pair.kept)
    results.push_back(product.getResultTypes()[0]);
  llvm::append_range(results, follower.getResultTypes());
  OpBuilder builder(product);
  Location loc = follower.getLoc();
  auto made = KernelOp::create(builder, loc, builder.getStringAttr("kernel"),
                               TypeAttr::get(builder.getFunctionType(inputs, results)), product.getRowsAttr(),
                               product.getChunksAttr(), ArrayAttr(), ArrayAttr());
  made->setAttr(kOnTilesAttr, builder.getUnitAttr());
  mlir::Block &body = made.getBody().emplaceBlock();
  body.addArguments(inputs, SmallVector<Location>(inputs.size(), loc));
  builder.setInsertionPointToEnd(&body);
  IRMapping mapping;
  for (Value factor : {contract.getA(), contract.getB()}) {
    Value argument = body.getArgument(static_cast<unsigned>(argumentOf(factor)));
    mapping.map(factor, converted(builder, argument, factor.getType()));
  }
  Value sum = builder.clone(*contract, mapping)->getResult(0);
  unsigned next = first.getNumArguments();
  for (BlockArgument argument : second.getArguments())
    if (argument.getArgNumber() != pair.operand)
      mapping.map(argument, body.getArgument(next++));
  for (Operation &op : second.without_terminator()) {
    if (isa<ConvertOp>(op) && op.getOperand(0) == second.getArgument(pair.operand))
      mapping.map(op.getResult(0), sum); // the tiles round it as it would have been stored
    else
      builder.clone(op, mapping);
  }
  SmallVector<Value> yielded;
  if (pair.kept)
    yielded.push_back(converted(builder, sum, results.front()));
  for (Value value : second.getTerminator()->getOperands())
    yielded.push_back(mapping.lookup(value));
  YieldOp::create(builder, loc, yielded);
  return made;
}

/// The name of the kernel that does both, or null where tiles don't do it or are not worth it:
/// products with fewer items than four a multiprocessor, or fewer steps than what follows needs, or that
/// read more (docs/performance.md).
StringAttr Folder::foldOnTiles(const Pair &pair) {
  constexpr int64_t kLeastItems = 4 * 132, kLeastSteps = 9;
  KernelOp product = kernelOf(pair.product), follower = kernelOf(pair.follower);
  Key key{product.getSymName().str(), follower.getSymName().str(), pair.operand, pair.kept};
  auto [entry, isNew] = triedOnTiles.try_emplace(key, StringAttr());
  if (!isNew)
    return entry->second;
  // The product is read through a convert: what is stored is rounded.
  for (Operation *user : follower.getBody().front().getArgument(pair.operand).getUsers())
    if (!isa<ConvertOp>(user))
      return {};
  KernelOp made = buildOnTiles(pair);
  GpuTarget target;
  target.chip = chip;
  auto size = gpuFoldedSize(made, target);
  if (!size || !size->plain || size->items < kLeastItems || size->steps < kLeastSteps) {
    made.erase();
    return {};
  }
  std::string name = names.nameOf(made, (labelOf(product) + "_" + labelOf(follower)).str());
  return entry->second = StringAttr::get(product.getContext(), name);
}

bool Folder::foldOnTiles(LaunchOp product) {
  auto pair = pairOf(product);
  StringAttr name = pair ? foldOnTiles(*pair) : StringAttr();
  if (!name)
    return false;
  SmallVector<Value> operands(product.getOperands());
  for (auto [number, operand] : llvm::enumerate(pair->follower.getOperands()))
    if (number != pair->operand)
      operands.push_back(operand);
  SmallVector<Type> types;
  if (pair->kept)
    types.push_back(product.getResult(0).getType());
  llvm::append_range(types, pair->follower.getResultTypes());
  OpBuilder builder(pair->follower);
  auto both =
      LaunchOp::create(builder, pair->follower.getLoc(), types, FlatSymbolRefAttr::get(name), operands);
  if (pair->kept)
    product.getResult(0).replaceAllUsesExcept(both.getResult(0), pair->follower);
  pair->follower.replaceAllUsesWith(both.getResults().drop_front(pair->kept ? 1 : 0));
  pair->follower.erase();
  product.erase();
  return true;
}

//===----------------------------------------------------------------------===//
// Through cuBLASLt
//===----------------------------------------------------------------------===//

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
    if (chip != "sm_90a" || !foldOnTiles(product))
      foldGrad(product);
}

namespace {
struct FoldActivations : weft::impl::FoldActivationsPassBase<FoldActivations> {
  using FoldActivationsPassBase::FoldActivationsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const char *word = std::getenv("WEFT_CUDA_PRODUCTS");
    bool tiles = word && StringRef(word) == "generated";
    Folder folder(module, tiles ? StringRef(chip) : StringRef(), keeps);
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      folder.run(function);
    dropUnlaunched(module);
  }
};
} // namespace

//===- StoreInBf16.cpp - Activations and products' weights in 16 bits -----===//
//
// 1. Values between kernels that are activations become bf16, and so do the
//    matrices between Muon's products, but for what is returned, assigned to state
//    or a statistic (log-sums, row dots, losses).
// 2. What a product with activations reads in 32 bits is rounded once, by a
//    kernel of its own.
// 3. Kernels compute in 32 bits as before: `weft.convert` stands where they read
//    and write.
//
//===----------------------------------------------------------------------===//

#include "passes/Differentiate/Muon.h"
#include "passes/Fuse/Passes.h"
#include "passes/Fuse/Regions.h"

namespace weft {
#define GEN_PASS_DEF_STOREINBF16PASS
#include "passes/Fuse/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

/// A value for each token, and more than one; or the matrices of Muon's products.
static bool isActivation(RankedTensorType type) {
  if (!type.getElementType().isF32() || axesOf(type).empty())
    return false;
  if (axesOf(type).front().getValue() == kMatrixAxis)
    return type.getRank() == 3;
  size_t rows = leadingRows(type).size();
  if (rows == 0 && axesOf(type).front().getValue() == "token")
    rows = 1;
  return rows > 0 && axesOf(type).size() > rows;
}

/// Tiles of fixed patterns: what products read.
static bool isTable(KernelOp kernel, unsigned result) {
  Value value = cast<YieldOp>(kernel.getBody().front().getTerminator()).getValues()[result];
  auto table = value.getDefiningOp<MixTableOp>();
  return table && (value == table.getAhead() || value == table.getBack());
}

/// Results that later sums need in 32 bits, whatever their shape.
static bool isStatistic(KernelOp kernel, unsigned result) {
  Value value = cast<YieldOp>(kernel.getBody().front().getTerminator()).getValues()[result];
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto attend = dyn_cast<AttendOp>(op))
    return value != attend.getOut();
  if (auto grad = dyn_cast<AttendGradQueryOp>(op))
    return value == grad.getDelta();
  if (auto mix = dyn_cast<MixOp>(op))
    return value == mix.getLse();
  if (auto product = dyn_cast<MixProductOp>(op))
    return value != product.getY();
  return isa<PartialSumOp, MixGradPatternOp, HeadStatisticsOp, PatternStatisticsOp>(op);
}

namespace {

class Function {
public:
  Function(func::FuncOp function, ModuleOp module, KernelNames &names, int64_t chunks)
      : function(function), module(module), names(names), chunks(chunks) {
    for (KernelOp kernel : module.getOps<KernelOp>())
      kernels[kernel.getSymNameAttr()] = kernel;
  }
  void run();

private:
  bool isStoredInBf16(LaunchOp launch, KernelOp kernel, unsigned result);
  bool staysWide(Value value);
  bool startsWide(LaunchOp launch, KernelOp kernel);
  void roundOperands(LaunchOp launch, KernelOp kernel);
  Value rounded(Value value, Operation *before);
  void rebuild(LaunchOp launch, KernelOp kernel);
  std::string convertingKernel(LaunchOp launch, KernelOp kernel);
  RankedTensorType inBf16(RankedTensorType type) {
    return withElement(type, BFloat16Type::get(type.getContext()));
  }

  func::FuncOp function;
  ModuleOp module;
  KernelNames &names;
  int64_t chunks;
  llvm::DenseMap<StringAttr, KernelOp> kernels;
  llvm::DenseMap<Value, Value> copies; // of 32-bit values, rounded
};

} // namespace

/// Returned, or assigned to state.
bool Function::staysWide(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isa<ReshapeOp>(user))
      return staysWide(user->getResult(0));
    return isa<SetOp, SetFlatOp, func::ReturnOp>(user);
  });
}

/// A product that adds to a 32-bit value gives one.
bool Function::startsWide(LaunchOp launch, KernelOp kernel) {
  auto contract = dyn_cast_or_null<ContractOp>(coreOf(kernel));
  auto init = contract ? dyn_cast_or_null<BlockArgument>(contract.getInit()) : BlockArgument();
  return init && tensor(launch.getOperands()[init.getArgNumber()]).getElementType().isF32();
}

bool Function::isStoredInBf16(LaunchOp launch, KernelOp kernel, unsigned result) {
  Value value = launch.getResult(result);
  if (isTable(kernel, result))
    return tensor(value).getElementType().isF32();
  return isActivation(tensor(value)) && !isStatistic(kernel, result) && !staysWide(value) &&
         !startsWide(launch, kernel);
}

/// `value` in bf16, made by a kernel of its own before the first reader.
Value Function::rounded(Value value, Operation *before) {
  if (Value copy = copies.lookup(value))
    return copy;
  RankedTensorType from = tensor(value), to = inBf16(from);
  Location loc = value.getLoc();
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToStart(module.getBody());
  Domain domain;
  domain.sizes.assign(from.getShape().begin(), from.getShape().end());
  auto kernel =
      KernelOp::create(builder, loc, builder.getStringAttr("kernel"),
                       TypeAttr::get(builder.getFunctionType({from}, {to})), builder.getArrayAttr({}),
                       builder.getI64IntegerAttr(chunksOf(domain, chunks)), ArrayAttr(), ArrayAttr());
  Block &body = kernel.getBody().emplaceBlock();
  body.addArgument(from, loc);
  builder.setInsertionPointToEnd(&body);
  Value narrow = ConvertOp::create(builder, loc, to, body.getArgument(0));
  YieldOp::create(builder, loc, narrow);
  std::string name = names.nameOf(kernel, "convert");
  builder.setInsertionPoint(before);
  auto launch = LaunchOp::create(builder, loc, TypeRange(to),
                                 FlatSymbolRefAttr::get(builder.getContext(), name), ValueRange(value));
  return copies[value] = launch.getResult(0);
}

/// Operands of products and of attention that are 32 bits wide, where others are activations.
void Function::roundOperands(LaunchOp launch, KernelOp kernel) {
  Operation *core = coreOf(kernel);
  SmallVector<Value> factors;
  if (auto contract = dyn_cast_or_null<ContractOp>(core))
    factors = {contract.getA(), contract.getB()};
  else if (auto head = dyn_cast_or_null<LossHeadOp>(core))
    factors = {head.getX(), head.getTable()};
  else if (auto head = dyn_cast_or_null<LossHeadGradOp>(core))
    factors = {head.getX(), head.getTable()};
  else if (auto attend = dyn_cast_or_null<AttendOp>(core))
    factors = {attend.getQ(), attend.getK(), attend.getV()};
  auto isNarrow = [](Value value) { return tensor(value).getElementType().isBF16(); };
  bool withActivations =
      llvm::any_of(launch.getOperands(), isNarrow) || llvm::any_of(launch.getResults(), isNarrow);
  if (!withActivations)
    return;
  for (Value factor : factors) {
    auto argument = dyn_cast<BlockArgument>(factor);
    if (!argument) // made in the kernel itself
      continue;
    const unsigned number = argument.getArgNumber();
    Value operand = launch.getOperands()[number];
    if (tensor(operand).getElementType().isF32())
      launch->setOperand(number, rounded(operand, launch));
  }
}

/// The kernel on the launch's types: converts around the body as it was.
std::string Function::convertingKernel(LaunchOp launch, KernelOp kernel) {
  OpBuilder builder(kernel);
  auto type = builder.getFunctionType(launch.getOperandTypes(), launch.getResultTypes());
  auto made = KernelOp::create(builder, kernel.getLoc(), builder.getStringAttr("kernel"), TypeAttr::get(type),
                               kernel.getRowsAttr(), kernel.getChunksAttr(), ArrayAttr(), ArrayAttr());
  Block &from = kernel.getBody().front(), &body = made.getBody().emplaceBlock();
  IRMapping mapping;
  builder.setInsertionPointToEnd(&body);
  for (auto [old, now] : llvm::zip(from.getArguments(), launch.getOperandTypes())) {
    Value argument = body.addArgument(now, old.getLoc());
    if (now != old.getType())
      argument = ConvertOp::create(builder, old.getLoc(), old.getType(), argument);
    mapping.map(old, argument);
  }
  for (Operation &op : from.without_terminator())
    builder.clone(op, mapping);
  SmallVector<Value> results;
  auto yield = cast<YieldOp>(from.getTerminator());
  for (auto [old, now] : llvm::zip(yield.getValues(), launch.getResultTypes())) {
    Value value = mapping.lookup(old);
    if (now != old.getType())
      value = ConvertOp::create(builder, old.getLoc(), now, value);
    results.push_back(value);
  }
  YieldOp::create(builder, yield.getLoc(), results);
  return names.nameOf(made, labelOf(kernel));
}

void Function::rebuild(LaunchOp launch, KernelOp kernel) {
  if (TypeRange(kernel.getArgumentTypes()) == launch.getOperandTypes() &&
      TypeRange(kernel.getResultTypes()) == launch.getResultTypes())
    return;
  launch.setKernel(convertingKernel(launch, kernel));
}

void Function::run() {
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (auto get = dyn_cast<GetOp>(op))
      get.getResult().setType(module.lookupSymbol<StateOp>(get.getState()).getTensorType());
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      reshape.getResult().setType(withElement(reshape.getType(), tensor(reshape.getX()).getElementType()));
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch)
      continue;
    KernelOp kernel = kernels.lookup(launch.getKernelAttr().getAttr());
    for (unsigned i = 0; i < launch.getNumResults(); ++i) {
      bool isCache = isa_and_nonnull<CacheUpdateOp>(coreOf(kernel)) &&
                     tensor(launch.getOperands().front()).getElementType().isBF16();
      if (isCache || isStoredInBf16(launch, kernel, i))
        launch.getResult(i).setType(inBf16(tensor(launch.getResult(i))));
    }
    roundOperands(launch, kernel);
    rebuild(launch, kernel);
  }
}

namespace {
struct StoreInBf16 : weft::impl::StoreInBf16PassBase<StoreInBf16> {
  using StoreInBf16PassBase::StoreInBf16PassBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (StateOp state : module.getOps<StateOp>())
      if (RankedTensorType type = state.getTensorType();
          state.getRole() == Role::Cache && type.getElementType().isF32())
        state.setType(withElement(type, BFloat16Type::get(&getContext())));
    KernelNames names(module);
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      Function(function, module, names, chunks).run();
    dropUnlaunched(module);
  }
};
} // namespace

//===- Regions.cpp - What may stand in one fused region -------------------===//

#include "passes/Fuse/Regions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace weft;

int64_t Domain::count() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

SmallVector<StringAttr> weft::leadingRows(RankedTensorType type) {
  SmallVector<StringAttr> rows;
  for (auto [name, expected] : llvm::zip(axesOf(type), ArrayRef<StringRef>{"batch", "pos"})) {
    if (name.getValue() != expected)
      break;
    rows.push_back(name);
  }
  return rows.size() == 2 ? rows : SmallVector<StringAttr>();
}

static RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool isElementwise(Operation *op) {
  return isa<UnaryOp, UnaryGradOp, BinaryOp, DropoutOp, AdamWOp, ClipScaleOp, AcceptOp>(op);
}

static bool isRowFunction(Operation *op) {
  return isa<LayerNormOp, LayerNormGradOp, RmsNormOp, RmsNormGradOp, SoftmaxOp, SoftmaxGradOp, RopeOp>(op);
}

/// The first `count` axes of `type` with their sizes.
static Domain leading(RankedTensorType type, size_t count) {
  Domain domain;
  domain.rows.assign(axesOf(type).begin(), axesOf(type).begin() + count);
  domain.sizes.assign(type.getShape().begin(), type.getShape().begin() + count);
  return domain;
}

/// Every operand starts with the rows or has none of them.
static bool fitsRows(Operation *op, const Domain &domain) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    ArrayRef<StringAttr> axes = axesOf(operand);
    if (axes.size() >= domain.rows.size() && axes.take_front(domain.rows.size()) == ArrayRef(domain.rows))
      return true;
    return llvm::none_of(domain.rows, [&](StringAttr row) { return llvm::is_contained(axes, row); });
  });
}

std::optional<Domain> weft::domainOf(Operation *op) {
  if (auto sum = dyn_cast<PartialSumOp>(op)) {
    Domain domain = leading(tensor(sum.getX()), sum.getRows().size());
    return domain;
  }
  if (auto sum = dyn_cast<SumToOp>(op)) {
    // Inside a row: the result keeps the rows.
    SmallVector<StringAttr> rows = leadingRows(sum.getType());
    if (rows.empty() || sum.getInit() || leadingRows(tensor(sum.getX())) != rows)
      return std::nullopt;
    return leading(sum.getType(), rows.size());
  }
  if (!isElementwise(op) && !isRowFunction(op))
    return std::nullopt;
  RankedTensorType type = cast<RankedTensorType>(op->getResult(0).getType());
  if (size_t rows = leadingRows(type).size()) {
    Domain domain = leading(type, rows);
    return fitsRows(op, domain) ? std::optional(domain) : std::nullopt;
  }
  bool oneShape = isElementwise(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
                    // hyper is a vector of three scalars, read as such.
                    return tensor(operand).getRank() == 0 || tensor(operand).getShape() == type.getShape() ||
                           (isa<AdamWOp>(op) && operand == cast<AdamWOp>(op).getHyper());
                  });
  if (oneShape) {
    Domain domain;
    domain.sizes.assign(type.getShape().begin(), type.getShape().end());
    return domain;
  }
  if (axesOf(type).size() < 2)
    return std::nullopt;
  // Parameters of unlike shapes: the first axis does as rows.
  Domain domain = leading(type, 1);
  return fitsRows(op, domain) ? std::optional(domain) : std::nullopt;
}

int64_t weft::chunksOf(const Domain &domain, int64_t most) {
  int64_t count = domain.count();
  if (domain.rows.empty())
    return std::clamp<int64_t>(count / 16384, 1, 2 * most);
  return std::clamp<int64_t>(count / 8, 1, most);
}

Operation *weft::coreOf(KernelOp kernel) {
  Operation *core = nullptr;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isa<ConvertOp, ConstantOp>(op))
      continue;
    if (core)
      return nullptr;
    core = &op;
  }
  return core;
}

Value weft::withoutConverts(Value value) {
  while (auto convert = value ? value.getDefiningOp<ConvertOp>() : ConvertOp())
    value = convert.getX();
  return value;
}

std::string weft::kernelHash(KernelOp kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  return llvm::utohexstr(llvm::xxh3_64bits(stream.str()), /*LowerCase=*/true, 16);
}

KernelNames::KernelNames(ModuleOp module) {
  for (KernelOp kernel : module.getOps<KernelOp>())
    known[kernel->getAttrOfType<StringAttr>("weft.hash").getValue()] = kernel.getSymName().str();
}

std::string KernelNames::nameOf(KernelOp made, StringRef label) {
  std::string hash = kernelHash(made);
  auto [entry, isNew] = known.try_emplace(hash);
  if (!isNew) {
    made.erase();
    return entry->second;
  }
  entry->second = (label + "_" + StringRef(hash).take_front(8)).str();
  made.setSymName(entry->second);
  made->setAttr("weft.hash", StringAttr::get(made.getContext(), hash));
  return entry->second;
}

StringRef weft::labelOf(KernelOp kernel) { return kernel.getSymName().rsplit('_').first; }

void weft::dropUnlaunched(ModuleOp module) {
  llvm::StringSet<> used;
  module.walk([&](LaunchOp launch) { used.insert(launch.getKernel()); });
  for (KernelOp kernel : llvm::make_early_inc_range(module.getOps<KernelOp>()))
    if (!used.contains(kernel.getSymName()))
      kernel.erase();
}

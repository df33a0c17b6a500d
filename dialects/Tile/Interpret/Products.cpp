//===- Products.cpp - Products under way and their waits ------------------===//

#include "dialects/Tile/Interpret/Arithmetic.h"
#include "dialects/Tile/Interpret/State.h"

#include "absl/strings/str_cat.h"

#include <limits>

using namespace mlir;

namespace weft::tile {

absl::Status Cta::performProduct(Warpgroup &w, Operation *op) {
  if (isa<FenceProductsOp>(op)) {
    w.fencedGroup = true;
    w.productFence = w.operations;
    return absl::OkStatus();
  }
  if (isa<CommitProductsOp>(op)) {
    ++w.productGroups;
    w.fencedGroup = false;
    return absl::OkStatus();
  }
  if (auto product = dyn_cast<ProductOp>(op))
    return issue(w, product);
  if (auto wait = dyn_cast<WaitProductsOp>(op))
    return waitProducts(w, wait);
  return productSync(w, cast<ProductSyncOp>(op));
}

/// Registers that a product takes: not renamed, and behind a fence since something else wrote them.
absl::Status Cta::judgeOperand(Warpgroup &w, Operation *op, const Registers &operand, bool isInit) const {
  if (operand.renamed)
    return fault(kInFlight, op, "tile.wait_products gave the operand a new name: use its result");
  if (isInit ? operand.readBy != 0 || operand.continued : operand.writtenBy != 0)
    return fault(
        kInFlight, op,
        "the operand belongs to products under way: pass it through tile.wait_products and use its result");
  if (operand.made > w.productFence)
    return fault(kMissingFence, op, "registers were written after the last tile.fence_products");
  return absl::OkStatus();
}

absl::Status Cta::judgeProduct(Warpgroup &w, ProductOp op, const PendingProduct &product) {
  if (!w.fencedGroup)
    return fault(kMissingFence, op, "a group of products starts without tile.fence_products");
  if (product.a)
    if (absl::Status status = judgeOperand(w, op, *product.a, false); !status.ok())
      return status;
  if (product.init)
    if (absl::Status status = judgeOperand(w, op, *product.init, true); !status.ok())
      return status;
  if (!product.a)
    if (absl::Status status = judgeRead(w, op, product.aTile, /*byProduct=*/true, product.group);
        !status.ok())
      return status;
  return judgeRead(w, op, product.b, /*byProduct=*/true, product.group);
}

absl::Status Cta::issue(Warpgroup &w, ProductOp op) {
  PendingProduct product;
  product.op = op;
  product.group = w.productGroups + 1;
  product.b = at(w, op.getB()).tile;
  if (isa<FragType>(op.getA().getType()))
    product.a = at(w, op.getA()).registers;
  else
    product.aTile = at(w, op.getA()).tile;
  if (op.getInit())
    product.init = at(w, op.getInit()).registers;
  if (schedule.judge)
    if (absl::Status status = judgeProduct(w, op, product); !status.ok())
      return status;
  if (product.a)
    product.a->readBy = product.group;
  if (product.init && product.init->writtenBy)
    product.init->continued = true;
  product.result = std::make_shared<Registers>();
  product.result->writtenBy = product.group;
  product.result->numbers.assign(static_cast<size_t>(op.getType().getRows() * op.getType().getColumns()),
                                 std::numeric_limits<float>::quiet_NaN());
  at(w, op.getResult()).registers = product.result;
  w.products.push_back(std::move(product));
  if (schedule.effects == Effects::Early)
    applyProducts(w, w.productGroups + 1);
  return absl::OkStatus();
}

/// result = init + a b, with b as [k, n].
static void multiply(Registers &result, const Registers *init, const std::vector<float> &a,
                     const std::vector<float> &b, size_t columns) {
  if (init)
    result.numbers = init->numbers;
  else
    result.numbers.assign(static_cast<size_t>(FragType::kFragRows) * columns, 0.0f);
  auto rows = static_cast<size_t>(FragType::kFragRows);
  addProduct(result.numbers, a, b, rows, a.size() / rows, columns);
}

void Cta::compute(const PendingProduct &product) {
  std::vector<float> a, b;
  if (product.a)
    a = product.a->numbers;
  else
    readTile(product.aTile, a);
  ProductOp op = product.op;
  if (op.getTransB())
    readTile(product.b, b);
  else
    readTransposed(product.b, b);
  multiply(*product.result, product.init.get(), a, b, static_cast<size_t>(op.getType().getColumns()));
}

/// Products of groups up to `group` take effect, in order; they stay listed until a wait ends them.
void Cta::applyProducts(Warpgroup &w, int64_t group) {
  for (PendingProduct &product : w.products)
    if (product.group <= group && !product.applied) {
      compute(product);
      product.applied = true;
    }
}

/// Each accumulator and left fragment of the groups that end is an operand of the wait.
absl::Status Cta::judgeTies(Warpgroup &w, WaitProductsOp op, int64_t ended) {
  llvm::SmallPtrSet<const Registers *, 16> tied;
  for (mlir::Value frag : op.getFrags())
    tied.insert(at(w, frag).registers.get());
  for (const PendingProduct &product : w.products) {
    if (product.group > ended)
      break;
    bool result = product.result->continued || tied.contains(product.result.get());
    bool left = !product.a || product.a->readBy > ended || tied.contains(product.a.get());
    if (!result || !left)
      return fault(kInFlight, op,
                   absl::StrCat("the ", result ? "left fragment" : "result",
                                " of a product that ends here is no operand of the wait"));
  }
  return absl::OkStatus();
}

absl::Status Cta::waitProducts(Warpgroup &w, WaitProductsOp op) {
  int64_t ended = std::max(w.productsEnded, w.productGroups - static_cast<int64_t>(op.getPending()));
  for (mlir::Value frag : op.getFrags())
    if (const Registers &old = *at(w, frag).registers; schedule.judge && (old.renamed || old.continued))
      return fault(kInFlight, op,
                   old.renamed ? "an earlier tile.wait_products gave an operand a new name: use its result"
                               : "a later product went on in an operand: pass that product's result instead");
  if (schedule.judge)
    if (absl::Status status = judgeTies(w, op, ended); !status.ok())
      return status;
  applyProducts(w, ended);
  llvm::erase_if(w.products, [&](const PendingProduct &product) { return product.group <= ended; });
  w.productsEnded = ended;
  w.clock[sources.products(w.index)] = ended;
  for (auto [frag, result] : llvm::zip(op.getFrags(), op.getResults())) {
    RegistersRef old = at(w, frag).registers;
    if (old->writtenBy > ended || old->readBy > ended) {
      at(w, result).registers = old;
      continue;
    }
    auto fresh = std::make_shared<Registers>();
    fresh->numbers = old->numbers;
    fresh->made = old->made;
    old->renamed = true;
    at(w, result).registers = std::move(fresh);
  }
  return absl::OkStatus();
}

absl::Status Cta::productSync(Warpgroup &w, ProductSyncOp op) {
  absl::StatusOr<RegistersRef> a = settled(w, op, op.getA());
  if (!a.ok())
    return a.status();
  RegistersRef init;
  if (op.getInit()) {
    absl::StatusOr<RegistersRef> given = settled(w, op, op.getInit());
    if (!given.ok())
      return given.status();
    init = *given;
  }
  const TileRef tile = at(w, op.getB()).tile;
  if (absl::Status status = judgeRead(w, op, tile, /*byProduct=*/false, 0); !status.ok())
    return status;
  std::vector<float> b;
  if (op.getTransB())
    readTile(tile, b);
  else
    readTransposed(tile, b);
  auto result = std::make_shared<Registers>();
  multiply(*result, init.get(), (*a)->numbers, b, static_cast<size_t>(op.getType().getColumns()));
  give(w, op.getResult(), std::move(result));
  return absl::OkStatus();
}

} // namespace weft::tile

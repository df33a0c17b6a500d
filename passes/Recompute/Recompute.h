//===- Recompute.h - Launches before the loss, again after it ----*- C++ -*-===//
#pragma once

#include "passes/Recompute/Report.h"
#include "passes/Recompute/Slice.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace weft {

/// What reshapes only call by another name.
mlir::Value origin(mlir::Value value);

/// What it takes to make a value again.
struct Price {
  double flops = 0;
  int64_t moved = 0;
  double fresh = 0; // FLOPs that no other value given up pays as well
  Price &operator+=(const Price &other) {
    flops += other.flops, moved += other.moved, fresh += other.fresh;
    return *this;
  }
};

/// One program: what it saves, what of that is made again, and where.
class Recompute {
public:
  Recompute(mlir::func::FuncOp function, mlir::ModuleOp module, KernelWork &work, KernelNames &names,
            bool products)
      : block(function.getBody().front()), module(module), work(work), names(names), products(products),
        keepsState(!module.lookupSymbol("update")) {}

  /// False where there is no loss with gradients.
  bool findSaved();
  /// `enough` bytes freed by products are enough; 0: all that are worth it.
  void decide(int64_t enough);
  void place();
  void prune();
  /// All that are saved or were, for people.
  std::vector<SavedValue> values();

private:
  struct Saved {
    int64_t firstUse = 0; // after the loss
    bool again = false;
    Price price{};                     // with what it starts from, where that is not there yet
    Price spent{};                     // by the launches that were put for it
    mlir::Operation *reader = nullptr; // the first after the loss
  };

  void findUses(mlir::Value value);
  bool isAllowed(LaunchOp launch);
  bool isSaved(mlir::Value value) {
    auto found = saved.find(value);
    return found != saved.end() && !found->second.again;
  }
  Slice slice(LaunchOp launch, llvm::ArrayRef<unsigned> results);
  Price ownPrice(LaunchOp launch, const Slice &slice);
  std::optional<Price> priceOf(LaunchOp launch, const Slice &slice, int64_t need);
  std::optional<Price> priceOf(mlir::Value value, int64_t need);
  bool isWorth(mlir::Value value, const Price &price);
  mlir::Value there(mlir::Value value, mlir::Operation *point);
  LaunchOp launchOf(LaunchOp launch, const Slice &cut, mlir::ValueRange operands, mlir::Operation *point);
  mlir::Value makeAgain(mlir::OpResult value, mlir::Operation *point);
  std::string nameOf(mlir::OpResult value);

  mlir::Block &block;
  mlir::ModuleOp module;
  KernelWork &work;
  KernelNames &names;
  const bool products;
  const bool keepsState; // what follows from state alone is made once a load, not a run
  mlir::Operation *loss = nullptr;
  double forwardFlops = 0;
  int64_t savedBytes = 0, largest = 0;
  llvm::DenseMap<mlir::Operation *, int64_t> number;
  llvm::DenseSet<mlir::Value> ofState; // follows from state alone
  llvm::MapVector<mlir::Value, Saved> saved;
  llvm::DenseMap<mlir::Value, mlir::Value> made;    // values given up, again
  llvm::DenseMap<mlir::Value, mlir::Value> passing; // others on the way to one, for one reader
  mlir::Operation *passingFor = nullptr;
  Saved *spender = nullptr; // whose launches are being put
};

} // namespace weft

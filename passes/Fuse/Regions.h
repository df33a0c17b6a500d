//===- Regions.h - What may stand in one fused region ------------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Weft.h"

#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>

namespace weft {

/// What a region runs over. `rows` are the outermost axes that its row tensors
/// share; none: all tensors have the shape `elements`, or are scalars.
struct Domain {
  llvm::SmallVector<mlir::StringAttr> rows;
  llvm::SmallVector<int64_t> sizes; // of rows, or of the elements
  bool operator==(const Domain &other) const { return rows == other.rows && sizes == other.sizes; }
  int64_t count() const;
};

/// The domain in which `op` can be fused, or nullopt when it needs a kernel of its own.
std::optional<Domain> domainOf(mlir::Operation *op);

/// How many parts a kernel over `domain` is cut into, at most `most` when it runs
/// over rows: a function of sizes alone.
int64_t chunksOf(const Domain &domain, int64_t most);

/// The only op of a kernel's body apart from converts and constants; null when there are several.
mlir::Operation *coreOf(KernelOp kernel);

/// `value` without the converts that made it.
mlir::Value withoutConverts(mlir::Value value);

/// 16 hex digits of a kernel as it prints: body, types and attributes, without
/// locations. Hash before the kernel gets its name.
std::string kernelHash(KernelOp kernel);

/// The kernels of a module by what they compute.
class KernelNames {
public:
  explicit KernelNames(mlir::ModuleOp module);
  /// The name of a kernel that computes what `made` does: `label` and its hash, or
  /// the name of one that was there before, and then `made` is erased.
  std::string nameOf(KernelOp made, llvm::StringRef label);

private:
  llvm::StringMap<std::string> known; // hash to name
};

/// A kernel's name without its hash.
llvm::StringRef labelOf(KernelOp kernel);

/// Erases the kernels that no launch of `module` names.
void dropUnlaunched(mlir::ModuleOp module);

/// The data axes that `type` starts with: [batch, pos], or fewer.
llvm::SmallVector<mlir::StringAttr> leadingRows(mlir::RankedTensorType type);

} // namespace weft

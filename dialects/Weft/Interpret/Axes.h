//===- Axes.h - Walking tensors by axis name ---------------------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Interpret/Interpret.h"

#include <array>

namespace weft::interp {

using Names = llvm::SmallVector<mlir::StringAttr>;
using Sizes = llvm::SmallVector<int64_t>;

/// Axis names of a type; where it has none, the places "0", "1", ... stand in.
Names namesOf(mlir::Type type);

/// Elements between neighbours along each of `names` in a row-major `type`; 0
/// along those that it lacks.
Sizes stridesAlong(mlir::Type type, llvm::ArrayRef<mlir::StringAttr> names);

/// Sizes along `names`; 1 along those that the type lacks.
Sizes sizesAlong(mlir::Type type, llvm::ArrayRef<mlir::StringAttr> names);

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Type type) {
  return llvm::cast<mlir::RankedTensorType>(type).getShape();
}
inline int64_t product(llvm::ArrayRef<int64_t> sizes) {
  int64_t elements = 1;
  for (int64_t size : sizes)
    elements *= size;
  return elements;
}
inline bool contains(llvm::ArrayRef<mlir::StringAttr> names, mlir::StringAttr name) {
  return llvm::is_contained(names, name);
}

/// Calls `visit(at)` for each index of `sizes`, row-major; at[n] is the sum of
/// index times strides[n].
template <size_t N, typename Visit>
void walk(llvm::ArrayRef<int64_t> sizes, const std::array<Sizes, N> &strides, Visit &&visit) {
  if (product(sizes) == 0)
    return;
  std::array<int64_t, N> at{};
  Sizes index(sizes.size(), 0);
  while (true) {
    visit(at);
    int64_t axis = static_cast<int64_t>(sizes.size()) - 1;
    for (; axis >= 0; --axis) {
      for (size_t n = 0; n < N; ++n)
        at[n] += strides[n][axis];
      if (++index[axis] < sizes[axis])
        break;
      for (size_t n = 0; n < N; ++n)
        at[n] -= strides[n][axis] * sizes[axis];
      index[axis] = 0;
    }
    if (axis < 0)
      return;
  }
}

/// The elements of `array`, of `type`, with axes in the order of `names`
/// (repeated along those that it lacks, of size `sizes`).
std::vector<double> arrange(const Array &array, mlir::Type type, llvm::ArrayRef<mlir::StringAttr> names,
                            llvm::ArrayRef<int64_t> sizes);

} // namespace weft::interp

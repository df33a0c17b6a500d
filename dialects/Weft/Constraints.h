//===- Constraints.h - What verifiers of several families check --*- C++ -*-===//
//
// Private to the dialect's .cpp files. A check gives success, or emits what was
// expected and what was found.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"

namespace weft {

using Types = llvm::SmallVectorImpl<mlir::Type>;

inline mlir::RankedTensorType tensorOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// Sizes of one name agree, or one is unknown (rolled models).
inline bool sameSize(int64_t a, int64_t b) {
  return mlir::ShapedType::isDynamic(a) || mlir::ShapedType::isDynamic(b) || a == b;
}

/// Every axis of `part` is one of `whole`, with the same size.
inline bool isPart(mlir::RankedTensorType part, mlir::RankedTensorType whole) {
  if (part.getRank() > 0 && axesOf(part).empty())
    return part.getShape() == whole.getShape();
  for (auto [name, size] : llvm::zip(axesOf(part), part.getShape())) {
    int64_t axis = axisIndex(whole, name);
    if (axis < 0 || !sameSize(size, whole.getDimSize(axis)))
      return false;
  }
  return true;
}

/// The type with axes [0, count) of `type`.
inline mlir::RankedTensorType leadingAxes(mlir::RankedTensorType type, int64_t count, mlir::Type element) {
  auto size = static_cast<size_t>(count);
  if (axesOf(type).empty())
    return mlir::RankedTensorType::get(type.getShape().take_front(size), element);
  return namedTensor(axesOf(type).take_front(size), type.getShape().take_front(size), element);
}

/// The type without its last axis.
inline mlir::RankedTensorType withoutLast(mlir::RankedTensorType type, mlir::Type element) {
  return leadingAxes(type, type.getRank() - 1, element);
}

inline mlir::LogicalResult sameType(std::optional<mlir::Location> loc, llvm::StringRef name, mlir::Type got,
                                    mlir::Type expected) {
  if (got == expected)
    return mlir::success();
  return mlir::emitOptionalError(loc, "expects `", name, "` of type ", expected, ", but got ", got);
}

/// `value` (or nothing) has the type of the result that it is added to.
inline mlir::LogicalResult sameInit(std::optional<mlir::Location> loc, mlir::Value init, mlir::Type result) {
  return init ? sameType(loc, "init", init.getType(), result) : mlir::success();
}

/// `value` (or nothing) is a tensor without axes.
inline mlir::LogicalResult isScalar(std::optional<mlir::Location> loc, llvm::StringRef name,
                                    mlir::Value value) {
  if (!value || tensorOf(value).getRank() == 0)
    return mlir::success();
  return mlir::emitOptionalError(loc, "expects `", name, "` to be a single number, but got ",
                                 value.getType());
}

} // namespace weft

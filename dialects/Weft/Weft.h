//===- Weft.h - The weft dialect ---------------------------------*- C++ -*-===//
//
// Declarations generated from the .td files, and the helpers on axes that every
// user of the dialect needs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Formula.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace weft {

/// What one execution of an op costs. Product FLOPs are those of matrix
/// products (2 a multiply-add); other FLOPs count an exp, tanh or division as one.
struct Cost {
  double productFlops = 0, otherFlops = 0, bytesRead = 0, bytesWritten = 0;
  Cost &operator+=(const Cost &other);
};

/// One operation an element of the results; operands read and results written once.
Cost elementwiseCost(mlir::Operation *op);

} // namespace weft

#include "dialects/Weft/WeftDialect.h.inc"
#include "dialects/Weft/WeftEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Weft/WeftAttrs.h.inc"
#include "dialects/Weft/WeftInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/Weft/WeftOps.h.inc"

namespace weft {

/// Names of a tensor's axes; empty for a tensor without an encoding.
llvm::ArrayRef<mlir::StringAttr> axesOf(mlir::Type type);
inline llvm::ArrayRef<mlir::StringAttr> axesOf(mlir::Value value) { return axesOf(value.getType()); }

/// Index of the axis called `name`, or -1.
int64_t axisIndex(mlir::Type type, mlir::StringAttr name);

/// A tensor type with these names and sizes; no encoding when there are none.
mlir::RankedTensorType namedTensor(llvm::ArrayRef<mlir::StringAttr> names, llvm::ArrayRef<int64_t> sizes,
                                   mlir::Type element);

/// Same axes, another element type.
mlir::RankedTensorType withElement(mlir::RankedTensorType type, mlir::Type element);

/// The axes of q between pos and channel: heads counted row-major are their product.
int64_t headCount(mlir::RankedTensorType q);

/// Sums that weft.head_statistics keeps of a head.
constexpr int64_t kHeadStatistics = 12;

/// Sums that weft.pattern_statistics keeps of a head.
constexpr int64_t kPatternSums = 8;

/// The f64 number of an unrolled `Weft_Number` attribute.
double numberOf(mlir::Attribute attribute);

/// A constant of one number in every element, in f64 attribute form.
mlir::Value constantOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type, double value);

/// Registers the weft dialect and those that its functions need (func).
void registerWeftDialects(mlir::DialectRegistry &registry);

} // namespace weft

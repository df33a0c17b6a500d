//===- Arithmetic.h - Loops over floats --------------------------*- C++ -*-===//
//
// The tile interpreter's inner loops, without MLIR.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::tile {

/// `value` rounded to bf16, to nearest even; NaN stays NaN.
float roundToBf16(float value);

/// result[i, n] += sum over k, in order, of a[i, k] b[k, n]: rows x depth, depth x columns, row-major.
void addProduct(std::span<float> result, std::span<const float> a, std::span<const float> b, size_t rows,
                size_t depth, size_t columns);

enum class FloatFn {
  Add,
  Subtract,
  Multiply,
  Divide,
  Maximum,
  MaxNumber,
  Minimum,
  MinNumber, // of two
  Negate,
  Absolute,
  Exp2,
  FastExp2,
  Log2,
  Exp,
  Log,
  Sqrt,
  ReverseSqrt,
  Tanh, // of one
};

/// result[i] = fn(a[i], b[i]); an operand of one element is repeated. `b` is ignored by functions of one.
void applyFloat(FloatFn fn, std::span<float> result, std::span<const float> a, std::span<const float> b);

/// result[i] = a[i] b[i] + c[i], rounded once.
void applyFma(std::span<float> result, std::span<const float> a, std::span<const float> b,
              std::span<const float> c);

/// Each row's columns folded into four parts, one a thread of the quad: column c goes to part c % 8 / 2, in order.
/// By addition, or by maximum where a number wins over NaN.
void foldColumns(bool maximum, std::span<float> parts, std::span<const float> frag, size_t rows,
                 size_t columns);

/// Each row's four parts become their fold: (0 and 1) and (2 and 3).
void foldParts(bool maximum, std::span<float> parts);

/// Comparisons: of floats a NaN makes the ordered ones false.
enum class Compare { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual };

void compareFloats(Compare how, bool orUnordered, std::span<int64_t> result, std::span<const float> a,
                   std::span<const float> b);
/// As signed numbers, or as unsigned ones of 64 bits.
void compareIntegers(Compare how, bool isSigned, std::span<int64_t> result, std::span<const int64_t> a,
                     std::span<const int64_t> b);

enum class IntegerFn {
  Add,
  Subtract,
  Multiply,
  Divide,
  Remainder,
  FloorDivide,
  CeilDivide,
  Maximum,
  Minimum,
  DivideUnsigned,
  RemainderUnsigned,
  MaximumUnsigned,
  MinimumUnsigned,
  And,
  Or,
  Xor,
  ShiftLeft,
  ShiftRight,
  ShiftRightUnsigned,
};

/// As applyFloat, in 64 bits, cut to `bits` and extended by sign (bool by zero). Division by 0 gives 0.
void applyInteger(IntegerFn fn, unsigned bits, std::span<int64_t> result, std::span<const int64_t> a,
                  std::span<const int64_t> b);

/// The lowest `bits` bits of `value`, extended by sign; one bit by zero.
int64_t cutTo(unsigned bits, int64_t value);

} // namespace weft::tile

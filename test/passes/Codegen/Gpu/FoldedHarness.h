//===- FoldedHarness.h - Products and what follows, run by their judge -*- C++ -*-===//
#pragma once

#include "dialects/Tile/Interpret/Interpret.h"
#include "passes/Codegen/Gpu/FoldedProduct.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace weft::test {

/// c = a b, then one of three functions of elements.
enum class Follow {
  Gelu,     // c, gelu_tanh(c)
  GeluGrad, // c gelu_tanh'(x)
  Gate,     // c silu(x)
};

struct FoldedCase {
  Follow follow = Follow::Gelu;
  int64_t m = 100, n = 96, k = 64;
  bool transposed = false; // b is [n, k]
  std::string text() const;
};

/// One product, its inputs random, judged by float64 loops.
class FoldedHarness {
  mlir::MLIRContext context; // outlives what is built in it

public:
  explicit FoldedHarness(const FoldedCase &c);
  absl::Status run(const tile::Schedule &schedule);
  /// After run: empty, or the first number that differs.
  std::string difference() const;
  std::vector<float> results() const;

  AttendTile tile;

private:
  void makeBuffers();
  /// Sums of a row of the product.
  std::vector<double> sums(int64_t row) const;

  FoldedCase c;
  mlir::OwningOpRef<mlir::ModuleOp> source;
  std::vector<tile::Buffer> buffers; // made by the first run
  size_t firstResult = 0;
};

} // namespace weft::test

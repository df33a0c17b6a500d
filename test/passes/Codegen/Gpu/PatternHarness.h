//===- PatternHarness.h - Products of patterns on tiles, run by their judge -*- C++ -*-===//
#pragma once

#include "dialects/Tile/Interpret/Interpret.h"
#include "passes/Codegen/Gpu/Pattern.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace weft::test {

struct PatternCase {
  bool back = false, lse = false;
  int64_t batch = 1, length = 100, heads = 1, results = 1, channel = 64, places = 0; // 0: length
  std::vector<int32_t> windows{INT32_MAX};       // one for all, or one a head
  std::vector<int32_t> firstPlaces;              // behind the windows, one a head; empty: none
  std::vector<std::vector<int32_t>> starts{{0}}; // of documents, row by row; the last goes on
  std::vector<int32_t> kvOf;                     // of back; empty: a head's own
  bool f32 = false;                              // y is stored in f32
  int64_t parts = 4;                             // of a tile, or 2

  int32_t window(int64_t head) const {
    return windows[std::min(static_cast<size_t>(head), windows.size() - 1)];
  }
  int64_t tables() const { return firstPlaces.empty() ? 1 : 2; }
  /// Whether query i sees key j of its document, which begins at `start`.
  bool sees(int64_t head, int64_t i, int64_t j, int64_t start) const {
    return i - j < window(head) ||
           (!firstPlaces.empty() && j - start < firstPlaces[static_cast<size_t>(head)]);
  }
  int32_t start(int64_t row, int64_t place) const;
  int64_t tablePlaces() const { return places ? places : length; }
  std::string text() const;
};

/// One product, its inputs random, judged by float64 loops that know E and not its tiles.
class PatternHarness {
  mlir::MLIRContext context; // outlives what is built in it

public:
  explicit PatternHarness(const PatternCase &c);
  absl::Status run(const tile::Schedule &schedule);
  /// After run: empty, or the first number that differs.
  std::string difference() const;
  std::vector<float> results() const;

  AttendTile tile;

private:
  void makeBuffers();
  std::vector<double> expected() const;

  PatternCase c;
  mlir::OwningOpRef<mlir::ModuleOp> source;
  std::vector<tile::Buffer> buffers; // made by the first run
  std::vector<double> powers;        // E by head and distance
  size_t firstResult = 0;
};

} // namespace weft::test

//===- PatternKernel.h - The tile kernel of a product of patterns -*- C++ -*-===//
//
// An item is a head of a row of the batch and a range of as many places as a tile
// has rows: 256, or 128 where there would be fewer items than twice the
// multiprocessors. In it each document has at most one tile: tiles start at
// multiples of their rows from their document's start (with `back`: end there, from its end), so that no
// tile needs a mask: keys before the document are not read, queries behind it
// neither, and what a tile holds of other documents is not stored.
//
// Heads that see first places of a document beyond their window have two tables,
// E and F of weft.mix_table: a tile's blocks are passed through twice, first for
// the pairs behind the window (`near` 0), then for those within (1). Forwards the
// first places are whole blocks of keys; with `back` they are rows of the tile, and
// what is summed for the others counts 1e-30.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Gpu/AttendEmitter.h"
#include "passes/Codegen/Gpu/Pattern.h"

namespace weft {

class PatternKernel {
public:
  static constexpr int64_t kRows = 64, kGroups = 2; // rows of a part; warpgroups
  static constexpr int64_t kMost = 2;               // parts of a warpgroup, at most
  static constexpr int64_t kBlock = 64;             // of the places that are summed over
  static constexpr int64_t kCore = MixTableOp::kCore;

  PatternKernel(mlir::Location loc, const PatternProblem &problem);
  AttendTile build();
  static int64_t itemCount(const PatternProblem &p);
  /// Parts of a tile for `p`: those that leave the fewest multiprocessors idle.
  static int64_t partsFor(PatternProblem p);

private:
  using Value = mlir::Value;
  using Values = tile::Values;

  struct Item {
    Value row, head, from, end; // head of y; places [from, end)
    Value start, far; // of the documents of its first place (`back`: its last) and of a tile behind the last
    Value window, sights; // of the head, where there is no kv_of; first places in sight
  };
  struct Tile {
    Value row, first, start, last; // first place (may lie before `start`); document's [start, last)
  };
  /// Blocks [from, to) of a tile and head; those of part i are [low(i), high(i)].
  struct Span {
    Value from, to, window, sights, near; // the last two where there are two tables
  };
  using TileBody = llvm::function_ref<Values(const Tile &, mlir::ValueRange)>;
  /// Of a head, `near` (null with one table) and what is carried.
  using HeadBody = llvm::function_ref<Values(Value, Value, mlir::ValueRange)>;

  int64_t ownParts() const { return p.parts / kGroups; }
  int64_t tileRows() const { return p.parts * kRows; }
  int64_t coresOfBlock() const { return (tileRows() + kBlock) / kCore - 1; } // that a tile reads for a block

  void makeKernel(mlir::Location loc);
  Value addMap();
  void allocate();
  void initialiseBarriers();
  Value operand(int number) { return body->getArgument(static_cast<unsigned>(number)); }

  // Items, documents, tiles: the same walk for the producer and the consumers.
  void forEachItem(llvm::function_ref<Value(const Item &, Value)> work);
  Item itemOf(Value number);
  Values readItem(Value number);
  Values forEachTile(const Item &item, mlir::ValueRange start, TileBody body);
  Values tilesAhead(const Item &item, mlir::ValueRange start, TileBody body);
  Values tilesBack(const Item &item, mlir::ValueRange start, TileBody body);
  Values forEachHead(const Item &item, mlir::ValueRange start, HeadBody body);
  /// While `again` holds.
  Values repeat(mlir::ValueRange start, llvm::function_ref<Value(mlir::ValueRange)> again,
                llvm::function_ref<Values(mlir::ValueRange)> body);
  Value startOf(Value row, Value place);
  Value firstOther(Value row, Value start, Value low, Value high);
  Value blocksBefore(const Tile &tile);
  Value outerPart(const Tile &tile);
  Span spanOf(const Item &item, const Tile &tile, Value head, Value near);
  Span nearSpan(const Tile &tile, Span span);
  Span farSpan(const Tile &tile, Span span);
  Value lowNear(const Tile &tile, const Span &span, Value part);
  Value highNear(const Tile &tile, const Span &span, Value part);
  Value lowFar(const Span &span, Value part);
  Value highFar(const Tile &tile, const Span &span, Value part);
  Value hasFirstPlaces(const Tile &tile, const Span &span, Value part);
  Value sightsOf(const Item &item, Value head);
  Value choose(const Span &span, llvm::function_ref<Value()> near, llvm::function_ref<Value()> far);
  Value lowOf(const Tile &tile, const Span &span, Value part);
  Value highOf(const Tile &tile, const Span &span, Value part);
  Value placeOf(const Tile &tile, Value block);
  Value firstCore(const Tile &tile, Value block);

  // The two roles.
  void produce();
  void loadBlock(const Tile &tile, Value head, Value near, Value block, Value number);
  Value consume(const Item &item, Value number);
  void waitBlock(Value at);
  void releaseBlock(Value at);
  Values multiply(Value first, Value from, Value to, llvm::ArrayRef<int64_t> parts, mlir::ValueRange sums);
  void leaveOut(Value first, Value from, Value to);
  Values sumBlocks(const Tile &tile, const Span &span, Value number, mlir::ValueRange sums);
  Values sumHeads(const Item &item, const Tile &tile, Value number);
  void store(const Item &item, const Tile &tile, mlir::ValueRange sums);
  Value scaleOf(const Tile &tile, Value head, Value part, int table);
  Value unitOf(const Tile &tile, const Span &span, Value head, Value part);
  Value limitOf(const Tile &tile, Value part);
  Value lastRow(const Tile &tile, Value part);
  /// Whether sums are in units that change from pass to pass.
  bool changesUnits() const { return p.kvOf >= 0 || (p.back && p.tables > 1); }
  Value ownPart(int64_t number) { return e.add(e.mul(group, ownParts()), number); }

  const PatternProblem p;
  tile::Emitter e;
  AttendTile result;
  mlir::Block *body = nullptr;
  int64_t stages;
  Value map, values, tables, barriers, group;
};

} // namespace weft

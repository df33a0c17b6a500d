//===- State.h - A CTA while the interpreter runs it -------------*- C++ -*-===//
//
// Private to the interpreter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Tile/Interpret/Clock.h"
#include "dialects/Tile/Interpret/Interpret.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <deque>
#include <map>
#include <memory>

namespace weft::tile {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Rows [row, row + rows) of panels [panel, panel + panels) of one stage of a ring; with `pitch`
/// panels that start that many rows apart (tile.hankel).
struct TileRef {
  size_t ring = 0;
  int64_t stage = 0, row = 0, rows = 0, panel = 0, panels = 0, pitch = 0;
};

/// Threads that share a row.
inline constexpr int64_t kQuad = 4;

/// A frag (rows x columns), rows (64 x 4: a value for each thread of the quad) or cols (columns).
struct Registers {
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  /// The group of products that writes it, and the last one that reads it; 0: none.
  int64_t writtenBy = 0, readBy = 0;
  /// A product went on in these registers; a wait gave them a new name.
  bool continued = false, renamed = false;
  /// Operations of the warpgroup when something other than a product wrote it; 0: never.
  int64_t made = 0;
};
using RegistersRef = std::shared_ptr<Registers>;

struct Value {
  int64_t integer = 0;
  float number = 0;
  RegistersRef registers;
  TileRef tile;
  size_t index = 0; ///< of a parameter or of the first of its barriers
};

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

enum class Writer { None, Copy, Plain, CopyAsync, Thread };

/// The last write of one row of a panel, and the reads since then.
struct RowState {
  Writer writer = Writer::None;
  bool landed = false;
  size_t owner = 0;                          ///< the warpgroup that wrote or issued it
  size_t source = 0;                         ///< whose number makes it visible
  int64_t number = 0;                        ///< which
  std::vector<int64_t> plainReads, products; ///< last reads of each warpgroup, by its number
};

struct Ring {
  int64_t stages = 0, panels = 0, pitch = 0, width = 0;
  std::vector<float> data;
  std::vector<RowState> rows;
  mlir::Operation *op = nullptr;

  size_t rowIndex(const TileRef &tile, int64_t panel, int64_t row) const {
    return static_cast<size_t>((tile.stage * panels + tile.panel) * pitch +
                               panel * (tile.pitch ? tile.pitch : pitch) + tile.row + row);
  }
};

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

struct MemoryBarrier {
  int64_t count = 0, pending = 0, bytes = 0, phases = 0;
  Clock gathering, ended;
  size_t initialiser = 0; ///< the warpgroup, its number, its elect region
  int64_t initialised = 0, electNumber = 0;
  bool fenced = false;
};

struct NamedBarrier {
  int64_t threads = 0, arrived = 0;
  Clock gathering;
  std::vector<size_t> waiting;
};

//===----------------------------------------------------------------------===//
// Under way
//===----------------------------------------------------------------------===//

struct PendingProduct {
  ProductOp op;
  RegistersRef a, init, result;
  TileRef aTile, b;
  int64_t group = 0;
  bool applied = false;
};

struct PendingCopy {
  mlir::Operation *op = nullptr;
  TileRef tile;
  std::vector<int64_t> coordinates; ///< of the box, or the offset, stride and limit of rows
  size_t parameter = 0;
  size_t barrier = 0; ///< of copies onto a barrier
  int64_t group = 0;  ///< of copies in groups
};

//===----------------------------------------------------------------------===//
// Warpgroups
//===----------------------------------------------------------------------===//

struct Frame {
  mlir::Block *block = nullptr;
  mlir::Block::iterator next;
  int64_t counter = 0, end = 0, step = 0; ///< of scf.for
};

enum class Waits { No, Barrier, Named, Done };

struct Warpgroup {
  size_t index = 0;
  std::vector<Value> values;
  std::vector<Frame> frames;
  int64_t operations = 0;

  /// What all its threads may count on, and inside tile.elect what that thread may.
  Clock clock;
  std::vector<Clock> outside;
  int64_t electNumber = 0;
  /// Writes of its elected thread into cells.
  int64_t threadWrites = 0;
  /// Number of the plain accesses from here on, and up to which its writes are fenced.
  int64_t now = 1, fenced = 0;

  std::vector<PendingProduct> products;
  int64_t productGroups = 0, productsEnded = 0, productFence = 0;
  bool fencedGroup = false;
  std::vector<PendingCopy> copies;
  int64_t copyGroups = 0, copiesEnded = 0, copiesShown = 0;

  Waits waits = Waits::No;
  size_t barrier = 0;
  int64_t parity = 0;
  mlir::Operation *waitOp = nullptr;
  /// Last phase of each barrier that it, or its elected thread, waited for; -2: none.
  std::vector<int64_t> waited, waitedElected;

  bool elected() const { return !outside.empty(); }
};

//===----------------------------------------------------------------------===//
// The CTA
//===----------------------------------------------------------------------===//

/// What tile.next_item has handed out in a launch, and CTAs that have not ended.
struct Deal {
  int64_t next = 0, ctas = 0;
};

class Cta {
public:
  Cta(KernelOp kernel, const Arguments &arguments, const Schedule &schedule, int64_t number,
      std::vector<std::vector<int32_t>> &writers, Deal &deal);
  absl::Status run();

private:
  // Cta.cpp: turns
  bool canRun(const Warpgroup &w) const;
  absl::Status resume(Warpgroup &w);
  absl::Status takeTurn(Warpgroup &w);
  absl::Status stirUp();
  absl::Status landAwaited();
  absl::Status deadlock();
  absl::Status finish();
  uint64_t draw(uint64_t below);

  // Control.cpp: one operation; control flow
  absl::Status step(Warpgroup &w);
  absl::Status perform(Warpgroup &w, mlir::Operation *op);
  absl::Status performTile(Warpgroup &w, mlir::Operation *op);
  absl::Status startFor(Warpgroup &w, mlir::Operation *op);
  absl::Status endBlock(Warpgroup &w, mlir::Operation *op);
  absl::Status endElect(Warpgroup &w);
  void enter(Warpgroup &w, mlir::Block &block);
  void move(Warpgroup &w, mlir::ValueRange from, mlir::ValueRange to);

  // Scalars.cpp, Map.cpp
  absl::Status performScalar(Warpgroup &w, mlir::Operation *op);
  absl::Status performMap(Warpgroup &w, MapOp op);
  absl::Status performFragment(Warpgroup &w, mlir::Operation *op);
  absl::Status reduce(Warpgroup &w, ReduceOp op);
  absl::Status quad(Warpgroup &w, QuadOp op);

  // Barriers.cpp
  absl::Status performBarrier(Warpgroup &w, mlir::Operation *op);
  absl::StatusOr<size_t> barrierOf(Warpgroup &w, mlir::Operation *op, mlir::Value barriers,
                                   mlir::Value index);
  absl::Status arrive(Warpgroup &w, mlir::Operation *op, size_t barrier, int64_t arrivals, int64_t bytes);
  absl::Status tryEnd(mlir::Operation *op, MemoryBarrier &barrier);
  absl::Status wait(Warpgroup &w, WaitOp op);
  absl::Status passBarrier(Warpgroup &w);
  absl::Status meet(Warpgroup &w, mlir::Operation *op, int64_t id, int64_t threads, bool stays);
  void synced(Warpgroup &w, const Clock &other);
  Clock published(const Warpgroup &w) const;

  // Tiles.cpp: parts of rings
  absl::Status performTileRef(Warpgroup &w, mlir::Operation *op);
  void readTile(const TileRef &tile, std::vector<float> &rowMajor) const;
  void readTransposed(const TileRef &tile, std::vector<float> &columnMajor) const;
  void writeTile(const TileRef &tile, llvm::ArrayRef<float> rowMajor);
  void poison(const TileRef &tile);
  template <typename Fn> absl::Status eachRow(const TileRef &tile, Fn fn);

  // Judge.cpp: accesses of shared memory
  absl::Status judgeRead(Warpgroup &w, mlir::Operation *op, const TileRef &tile, bool byProduct,
                         int64_t group);
  absl::Status judgeRow(const Warpgroup &w, mlir::Operation *op, const TileRef &tile, const RowState &row,
                        int64_t at, bool byProduct) const;
  absl::Status judgeWrite(Warpgroup &w, mlir::Operation *op, const TileRef &tile, bool byCopy);
  absl::Status noteWrite(Warpgroup &w, const TileRef &tile, Writer writer, size_t source, int64_t number);
  void markLanded(const TileRef &tile);
  std::string where(const TileRef &tile, int64_t row) const;

  // Memory.cpp: copies
  absl::Status issueTile(Warpgroup &w, LoadTileOp op);
  absl::Status issueBulk(Warpgroup &w, LoadBulkOp op);
  absl::Status issueCols(Warpgroup &w, CopyColsOp op);
  absl::Status issueAsync(Warpgroup &w, CopyAsyncOp op);
  absl::Status land(size_t place);
  absl::Status landCols(const PendingCopy &copy, std::vector<float> &data);
  absl::Status issueOnto(Warpgroup &w, PendingCopy copy);
  void readBox(const PendingCopy &copy, std::vector<float> &data) const;
  absl::Status applyCopies(Warpgroup &w, int64_t group);
  absl::Status waitCopies(Warpgroup &w, CopyWaitOp op);
  absl::Status readGlobal(mlir::Operation *op, size_t parameter, int64_t at, float &number, int64_t *integer);
  absl::Status writeGlobal(mlir::Operation *op, size_t parameter, int64_t at, float number, int64_t integer);

  // Fragments.cpp: loads, stores
  absl::Status performMemory(Warpgroup &w, mlir::Operation *op);
  absl::Status loadFrag(Warpgroup &w, LoadFragOp op);
  absl::Status storeFrag(Warpgroup &w, StoreFragOp op);
  absl::Status loadLine(Warpgroup &w, mlir::Operation *op, int64_t count, int64_t lanes);
  absl::Status storeRows(Warpgroup &w, StoreRowsOp op);
  absl::Status performShared(Warpgroup &w, mlir::Operation *op);

  // Items.cpp: numbers of items, cells
  absl::Status nextItem(Warpgroup &w, NextItemOp op);
  absl::StatusOr<TileRef> cellOf(Warpgroup &w, mlir::Operation *op, mlir::Value cells, mlir::Value index);
  absl::Status writeCell(Warpgroup &w, WriteOp op);
  absl::Status readCell(Warpgroup &w, ReadOp op);

  // Products.cpp
  absl::Status performProduct(Warpgroup &w, mlir::Operation *op);
  absl::Status issue(Warpgroup &w, ProductOp op);
  absl::Status judgeProduct(Warpgroup &w, ProductOp op, const PendingProduct &product);
  absl::Status judgeOperand(Warpgroup &w, mlir::Operation *op, const Registers &operand, bool isInit) const;
  void compute(const PendingProduct &product);
  void applyProducts(Warpgroup &w, int64_t group);
  absl::Status waitProducts(Warpgroup &w, WaitProductsOp op);
  absl::Status judgeTies(Warpgroup &w, WaitProductsOp op, int64_t ended);
  absl::Status productSync(Warpgroup &w, ProductSyncOp op);

  // Access to values
  Value &at(Warpgroup &w, mlir::Value value) { return w.values[slots.find(value)->second]; }
  int64_t integer(Warpgroup &w, mlir::Value value) { return at(w, value).integer; }
  /// The registers of an operand that must not be under way.
  absl::StatusOr<RegistersRef> settled(Warpgroup &w, mlir::Operation *op, mlir::Value value);
  void give(Warpgroup &w, mlir::Value value, RegistersRef registers);
  absl::Status fault(std::string_view name, mlir::Operation *op, const std::string &what) const;

  KernelOp kernel;
  const Arguments &arguments;
  const Schedule &schedule;
  int64_t number;
  uint64_t random;
  Sources sources;
  llvm::DenseMap<mlir::Value, size_t> slots;
  std::vector<Ring> rings;
  std::vector<MemoryBarrier> barriers;
  std::map<int64_t, NamedBarrier> named;
  std::vector<Warpgroup> warpgroups;
  std::vector<PendingCopy> copies;
  /// Of each global, which CTA wrote an element (its number + 1).
  std::vector<std::vector<int32_t>> &writers;
  Deal &deal;
  /// Whether it asks for items, and whether it has been told that none is left.
  bool asks = false, told = false;
};

} // namespace weft::tile

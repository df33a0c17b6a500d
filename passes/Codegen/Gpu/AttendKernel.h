//===- AttendKernel.h - What the tile kernels of attention share -*- C++ -*-===//
//
// An item is a tile of rows of one head: queries in forward and in the pass for
// dq, keys in the pass for dk and dv. Its `own` tensors lie in shared memory
// while it lasts, 64 rows a warpgroup; blocks of the `streamed` ones go by in
// rings, shared by the warpgroups, each of which leaves out the blocks that none
// of its rows sees.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Gpu/Attend.h"
#include "passes/Codegen/Gpu/AttendEmitter.h"
#include "passes/Codegen/Gpu/AttendProblem.h"

namespace weft {

struct AttendTiling {
  int64_t groups = 2; // warpgroups that compute, 64 rows each
  int64_t block = 64; // rows of a streamed block
  int64_t stages = 2;
  bool synchronous = false; // cp.async and mma.sync, one warpgroup
  bool producer = false;    // one more warpgroup, which copies
  bool overlap = false;     // products of one block under the exponentials of the next
  bool turns = false;       // warpgroups issue products one after another
  bool columns = false;     // numbers of streamed rows come with them (with producer)
  bool deal = false;        // items go to whoever is free (with producer)
  bool early = false;       // dv's products before ds is known
  bool lazy = false;        // row dots are read where they are used, for want of registers
  bool joint = false;       // the streamed tensors of a block come onto one barrier
  bool ahead = false;       // log-sums are read before their block's products are issued
  bool halves = false;      // halves of an item's first and last block are left out
  int64_t branches = 1;     // of the question for a mask that hold exponentials
  int64_t brief = 1;        // items of up to so many blocks take no turns
  int64_t ownStages = 1;    // an item's own tensors come while the item before is worked on
  int64_t producerRegisters = 24, registers = 240;
};

class AttendKernel {
public:
  static constexpr int64_t kRows = 64, kPanel = 64;

  /// Operands of the tensors, by their numbers in the problem. `companions`: for each
  /// of the streamed ones an operand of one f32 a place and head, which comes with it.
  AttendKernel(mlir::Location loc, const AttendProblem &problem, const AttendTiling &tiling,
               std::vector<int> own, std::vector<int> streamed, std::vector<int> companions = {});
  virtual ~AttendKernel() = default;
  AttendTile build();
  static int64_t itemCount(const AttendProblem &p, const AttendTiling &tiling);

protected:
  using Value = mlir::Value;
  using Values = tile::Values;

  struct Item {
    Value row, head, place; // batch row, head, first row of its own
    Value turn;             // items of this CTA before it, modulo four at least
  };
  /// Blocks of one head that an item goes through: from, from + step, ...
  struct Run {
    Value head; // of the streamed tensors
    Value from, count;
    int64_t step = 1;
  };
  using RunBody = llvm::function_ref<Values(const Run &, mlir::ValueRange)>;
  /// Number in the run, number in the ring, carried values.
  using BlockBody = llvm::function_ref<Values(Value, Value, mlir::ValueRange)>;

  /// Each run of an item, in order.
  virtual Values forEachRun(const Item &item, mlir::ValueRange start, RunBody body) = 0;
  /// All of an item for warpgroup `group`; `number` blocks went through the rings
  /// before. Gives the number after it.
  virtual Value consume(const Item &item, Value number) = 0;
  /// Head of the own tensors' maps.
  virtual Value ownHead(const Item &item) { return item.head; }

  /// Goes through a run: blocks [begin, end) by `inside`, the others left out.
  Values stream(const Item &item, const Run &run, Value number, Value begin, Value end,
                llvm::function_ref<Values()> inside);
  /// Blocks [from, to) of the run, each by `body`.
  Values forEachBlock(const Item &item, const Run &run, Value number, Value from, Value to,
                      mlir::ValueRange start, BlockBody body);
  /// Without a producer: the first warpgroup copies block `number` of the run, if it has one.
  void prefetch(const Item &item, const Run &run, Value number, Value ringNumber);
  /// All threads of a synchronous kernel's CTA.
  void sync();
  /// Whether warpgroups take turns in a run: a question that all of them answer alike.
  void beginTurns(const Run &run);
  /// Waits for this warpgroup's turn; gives it to the next. As many a run for each.
  void takeTurn();
  void passTurn();
  Value blockOf(const Run &run, Value number);
  /// First streamed row of block `number` of a run.
  Value placeOf(const Run &run, Value number) { return e.mul(blockOf(run, number), tiling.block); }
  /// The streamed tile `tensor` once it has come; `release` when it has been read.
  Value take(size_t tensor, Value number);
  void release(size_t tensor, Value number);
  /// With `columns`: the companion of a block that has been taken, one value a place.
  Value companion(size_t tensor, Value number);
  /// This warpgroup's rows of an own tensor, after takeOwn and until releaseOwn.
  Value own(size_t tensor);
  void takeOwn(const Item &item);
  void releaseOwn();

  Value operand(int number) { return body->getArgument(static_cast<unsigned>(number)); }
  /// Place of row `place` and head `head` in [batch, places, heads, width], in elements.
  Value place(Value row, Value place, Value head, int64_t places, int64_t heads, int64_t width);
  /// First row of this warpgroup's tile.
  Value firstRow(const Item &item);
  Value windowOf(Value head);
  /// Number of the key-value head that `head` reads.
  Value kvOf(Value head);
  Value last(Value place, int64_t rows, int64_t limit); // min(place + rows, limit) - 1
  /// First key that the query at `query` of `row` sees; `offset` is query 0's place.
  Value firstKey(Value row, Value query, Value window, Value offset);

  AttendProblem p;
  AttendTiling tiling;
  tile::Emitter e;
  Value group; // of the warpgroup, among those that compute

private:
  struct Tensor {
    int operand;
    Value map, tiles;
  };
  void inTurn(llvm::function_ref<void()> body);
  void makeKernel(mlir::Location loc);
  Value addMap(int operand, int64_t rows);
  void copyTile(const Tensor &tensor, Value tile, Value head, Value place, Value row);
  void allocate();
  void initialiseBarriers();
  int64_t fullOf(size_t tensor) const;
  int64_t emptyOf(size_t tensor) const;
  /// Pairs of barriers that a stage has: a streamed tensor's, or that of all.
  size_t rings() const { return tiling.joint ? 1 : streamedTensors.size(); }
  void loadStage(const Item &item, const Run &run, Value place, Value stage, Value full,
                 llvm::ArrayRef<size_t> tensors);
  Value stageOf(Value number) { return e.rem(number, tiling.stages); }
  Value parityOf(Value number) { return e.rem(e.div(number, tiling.stages), 2); }
  void loadPanels(const Tensor &tensor, Value tile, Value head, Value place, Value row, Value barrier);
  void loadOwn(const Item &item);
  void loadBlock(const Item &item, const Run &run, Value number, Value ringNumber);
  /// Runs `body`, which names ops of one thread, in one thread of the producer.
  void byOne(llvm::function_ref<void()> body);
  /// Barriers of the cell with the number of an item (with `deal`).
  int64_t itemFull() const { return fullOf(rings()); }
  int64_t itemEmpty() const { return itemFull() + 1; }
  /// The producer tells the number of item `turn` of this CTA; the others read it.
  void tellItem(Value number, Value turn);
  Value readItem(Value turn);
  Value nextItem() { return tile::NextItemOp::create(e.b, e.loc, e.i32); }
  /// Whether the producer asks for an item before the last block of the one before:
  /// where an item has one run, and one thread does it all.
  bool asksAhead() const { return tiling.deal && p.pass != AttendPass::KeyValue; }
  Item decode(Value section, Value number, Value turn);
  int64_t sectionPairs() const;
  int64_t ownRows() const { return tiling.groups * kRows; }
  int64_t pairs() const { return p.batch * p.itemHeads(); }
  int64_t tilesOfHead() const { return result.items / pairs(); }
  int64_t headsOf(int operand) const;
  void produce();
  using ItemBody = llvm::function_ref<Value(const Item &, Value)>;
  void forEachItem(ItemBody body);
  void forEachOwnItem(ItemBody body);
  void forEachFreeItem(ItemBody body);
  void forEachFetchedItem(ItemBody body);
  /// As long as `next`, given the turn and what else is carried, gives an item; `work`
  /// gives all that is carried.
  void repeat(mlir::ValueRange start, llvm::function_ref<Value(Value, mlir::ValueRange)> next,
              llvm::function_ref<Values(const Item &, mlir::ValueRange)> work);

  AttendTile result;
  mlir::Block *body = nullptr;
  Value barriers, itemCell;
  Value coming;   // number of the producer's next item, where it asks ahead
  Value ownStage; // of the item that is worked on
  Value turning;  // whether its run takes turns; null: it does
  std::vector<Tensor> ownTensors, streamedTensors, companionTensors;
};

/// Keys that a tile of queries sees: what forward and the pass for dq share.
class AttendQueryRows : public AttendKernel {
protected:
  using AttendKernel::AttendKernel;

  struct Keys {
    Value begin, end;         // of the run's blocks: this warpgroup's
    Value oldest, latest;     // keys that some of its rows see, the first and the last
    Value wholeFrom, wholeTo; // keys that all its rows see
    Value first, span;        // of each row (rows of i32): it sees keys first ... first + span
  };
  Values forEachRun(const Item &item, mlir::ValueRange start, RunBody body) override;
  Keys keysOf(const Item &item, const Run &run);
  /// Scores of keys from `key` on; below any score, and not finite but for entropies
  /// (0 times it is summed), where a key is not seen.
  Value masked(Value scores, Value key, const Keys &keys);
  /// What `f` makes of the masked scores, in one branch where a key is not seen and in
  /// another where all are. What `f` computes stays before a wait that follows: ptxas
  /// moves waits up to where their block begins, and `f` under no product.
  Values ofSeen(Value scores, Value key, const Keys &keys, mlir::TypeRange types,
                llvm::function_ref<Values(Value)> f);
  Value mask(Value scores, Value key, const Keys &keys);

private:
  Value offsetOf();
};

/// Warpgroups of an item of `p`, with streamed blocks of `block` rows and a producer: those that take the least
/// time on an H200 where windows are whole.
int64_t groupsFor(const AttendProblem &p, int64_t block);

std::unique_ptr<AttendKernel> makeAttendForward(mlir::Location loc, const AttendProblem &p,
                                                const AttendTiling &tiling);
std::unique_ptr<AttendKernel> makeAttendQuery(mlir::Location loc, const AttendProblem &p,
                                              const AttendTiling &tiling);
std::unique_ptr<AttendKernel> makeAttendKeyValue(mlir::Location loc, const AttendProblem &p,
                                                 const AttendTiling &tiling);

} // namespace weft

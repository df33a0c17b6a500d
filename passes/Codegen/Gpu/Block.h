//===- Block.h - Short words for kernels of thread blocks -------*- C++ -*-===//
//
// A kernel on the GPU while it is written: what a block's threads have in common.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Builders.h"

namespace weft {

class Block;

/// How a kernel is cut up, and who writes it.
struct BlockKind {
  int64_t items = 1, threads = 128;
  int64_t width = 1;        // lanes of the emitter
  int64_t scratchBytes = 0; // of a block
  std::string slow;         // why this is the slow path
  std::function<llvm::LogicalResult(Block &)> build;
};

/// How each operand is stored: f32, bf16 or i32.
using Storage = llvm::SmallVector<mlir::Type>;

class Block {
public:
  static constexpr int64_t kWarp = 32;

  Block(mlir::OpBuilder builder, mlir::Location loc, const BlockKind &kind, mlir::ModuleOp module);

  Emitter e;
  llvm::SmallVector<mlir::Value> operands; // arguments, then results
  int64_t argumentCount = 0;
  mlir::Value scratch;      // this block's
  int64_t scratchBytes = 0; // may be set while the kernel is written, and so may `threads`
  int64_t dynamicBytes = 0; // of `dynamic` so far
  int64_t threads;
  const int64_t itemCount;

  mlir::Value argument(mlir::Value value) const {
    return operands[mlir::cast<mlir::BlockArgument>(value).getArgNumber()];
  }
  mlir::Value result(int64_t number) const { return operands[argumentCount + number]; }

  // Numbers of this thread, i64.
  mlir::Value thread, lane, warp, block, blocks;

  /// Every work item that is this block's.
  void items(llvm::function_ref<void(mlir::Value)> body);

  void barrier();
  void warpBarrier();
  /// `value` of the thread whose lane differs in the bits of `mask`.
  mlir::Value exchanged(mlir::Value value, int64_t mask);
  /// `value` of the thread `step` lanes before; the own one where there is none.
  mlir::Value fromBelow(mlir::Value value, int64_t step);
  /// Sum (or maximum) over `lanes` neighbours, a power of two, in all of them.
  mlir::Value overLanes(mlir::Value value, int64_t lanes, bool largest = false);
  /// The same over the block, in all threads; two barriers.
  mlir::Value overBlock(mlir::Value value, bool largest = false);
  /// Number `lane` of the numbers that warps left at `memory`; `outside` past the last warp's.
  mlir::Value ofWarps(mlir::Value memory, double outside);

  /// Shared memory of `count` elements of 4 bytes; a pointer as any other.
  mlir::Value shared(int64_t count);
  /// Shared memory of `bytes`, a multiple of 16, that the launch asks for: a block may
  /// have more of it than of `shared`.
  mlir::Value dynamic(int64_t bytes);
  /// Starts to copy 16 bytes from an operand to shared memory; both lie at multiples of 16.
  void copy(mlir::Value from, mlir::Value to);
  /// Ends a group of this thread's copies.
  void commitCopies();
  /// Waits until at most `pending` groups of this thread's are under way. What others
  /// copied is there after a barrier that they reach after such a wait.
  void awaitCopies(int64_t pending);
  /// Memory of the module that starts as zeros.
  mlir::Value global(mlir::Type element, int64_t count);
  /// A table of constants.
  mlir::Value table(llvm::ArrayRef<int32_t> values);

  /// Runs `body` in the block that comes here last; what all wrote before is
  /// visible to it. The order in which blocks come does not matter to it.
  void last(llvm::function_ref<void()> body);

private:
  mlir::Value addressOf(mlir::LLVM::GlobalOp global);
  mlir::LLVM::GlobalOp declare(mlir::Type type, unsigned space, mlir::Attribute value, bool constant);
  mlir::LLVM::GlobalOp dynamicGlobal;

  mlir::ModuleOp module;
  mlir::Value partials; // of overBlock
  int globals = 0;
};

} // namespace weft

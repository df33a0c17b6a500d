//===- Emitter.h - tile ops to arith, scf and LLVM ops of one thread -*- C++ -*-===//
//
// A value of the tile dialect becomes a list of values of one thread:
//   frag of f32   columns / 2 x f32    [4 j + 2 h + e]: row g + 8 h, column 8 j + 2 q + e
//   frag of bf16  columns / 4 x i32    [2 j + h]: the pair e = 0 (low half), e = 1
//   rows          2                    [h]
//   cols          columns / 4          [2 j + e]
//   smem          1 x i32              byte address in shared memory
//   barriers      1 x i32              the same
//   cells         1 x i32              the same
//   global, map   1 x pointer
// with j = 0 .. columns / 8, g = lane / 4, q = lane % 4, and rows counted from
// 16 (warp of the warpgroup): the accumulators of wgmma and mma.sync alike (PTX
// ISA, "Register Fragments").
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Tile/Tile.h"
#include "passes/Tile/GpuTarget.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace weft::tile {

class KernelEmitter {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  KernelEmitter(KernelOp kernel, const GpuTarget &target, mlir::ModuleOp module);

  /// Adds the kernel's function to the module.
  mlir::LogicalResult emit();

private:
  // Emitter.cpp: the function, control flow, scalars.
  mlir::LLVM::LLVMFuncOp emitFunction();
  void emitIds();
  void emitShared();
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitTileOp(mlir::Operation *op);
  mlir::LogicalResult emitControl(mlir::Operation *op);
  mlir::LogicalResult emitScalar(mlir::Operation *op);
  mlir::LogicalResult emit(ElectOp op);
  mlir::LogicalResult emit(SpecializeOp op);
  /// Brings the lanes of a warp together after a branch that some took: what is
  /// .aligned may follow, and nothing else says where they meet.
  void rejoin();
  mlir::LogicalResult emitIf(mlir::Value condition, mlir::Block &body);

  // EmitBarriers.cpp
  void emit(InitBarrierOp op);
  void emit(FenceInitOp op);
  void emit(ExpectOp op);
  void emit(ArriveOp op);
  void emit(WaitOp op);
  void emit(SyncOp op);
  void emit(SyncArriveOp op);
  void emit(FenceAsyncOp op);
  void emitNamedBarrier(llvm::StringRef instruction, mlir::Value id, int64_t threads);
  mlir::Value barrierAddress(mlir::Value barriers, mlir::Value index);

  // EmitItems.cpp: numbers of items, cells.
  void emit(NextItemOp op);
  void emit(WriteOp op);
  void emit(ReadOp op);
  mlir::Value cellAddress(mlir::Value cells, mlir::Value index);
  /// Address of the kernel's counter of items, a variable of the module.
  mlir::Value itemCounter();

  // EmitShared.cpp: parts of rings, copies, fragments in shared memory.
  void emit(StageOp op);
  void emit(SliceOp op);
  void emit(PanelOp op);
  void emit(HankelOp op);
  void emit(LoadTileOp op);
  void emit(LoadBulkOp op);
  void emit(CopyColsOp op);
  void emit(CopyAsyncOp op);
  void emit(CopyCommitOp op);
  void emit(CopyWaitOp op);
  void emit(ReadFragOp op);
  void emit(WriteFragOp op);
  void emit(ReadColsOp op);
  /// Byte address of the 16-byte unit `unit` (i32, over all panels) of row `row` (i32).
  mlir::Value unitAddress(mlir::TypedValue<SmemType> tile, mlir::Value row, mlir::Value unit);
  /// Byte address, for ldmatrix and stmatrix, of this lane's row of the four 8x8
  /// parts at (row, column): the second part lies below the first, or right of it.
  mlir::Value matrixAddress(mlir::TypedValue<SmemType> tile, mlir::Value row, int64_t column,
                            bool secondBelow);
  /// Four 8x8 parts, a pair of each to every lane (ldmatrix).
  Values loadMatrices(mlir::Value address, bool transposed);

  // EmitGlobal.cpp: fragments and scalars in global memory.
  mlir::Value wideAddress(mlir::TypedValue<GlobalType> global, mlir::Value offset, mlir::Value row,
                          mlir::Value stride);
  void storeWide(StoreFragOp op);
  void loadWide(LoadFragOp op);
  /// Four registers of each thread of a quad, exchanged: thread q gets the others' q-th.
  void exchange(llvm::MutableArrayRef<mlir::Value> four);
  void emit(StoreFragOp op);
  void emit(LoadFragOp op);
  void emit(StoreRowsOp op);
  void emit(LoadRowsOp op);
  void emit(LoadColsOp op);
  void emit(StoreOp op);
  void emit(LoadOp op);
  /// Address of an element; `offset` (i64) counts elements.
  mlir::Value elementAddress(mlir::TypedValue<GlobalType> global, mlir::Value offset);
  /// `offset + index * stride` elements on; `index` is an i32.
  mlir::Value stridedAddress(mlir::TypedValue<GlobalType> global, mlir::Value offset, mlir::Value index,
                             mlir::Value stride);
  mlir::Value advance(mlir::Value pointer, int64_t bytes);
  /// One element at `address` as `result`, or 0 unless `condition` (no branch).
  mlir::Value loadIf(mlir::Value condition, mlir::Value address, mlir::Type element, mlir::Type result);
  /// `value` rounded to `element` where that is bf16.
  mlir::Value asElement(mlir::Value value, mlir::Type element);

  // EmitProducts.cpp
  void emit(FenceProductsOp op);
  mlir::LogicalResult emit(ProductOp op);
  void emit(CommitProductsOp op);
  void emit(WaitProductsOp op);
  void emit(ProductSyncOp op);
  /// The low word (i32) of the matrix descriptor of a tile's first 16 k.
  mlir::Value descriptor(mlir::TypedValue<SmemType> tile, bool transposed);
  /// The descriptor (i64) 16 * step further along k.
  mlir::Value descriptorAt(mlir::Value first, SmemType type, bool transposed, int64_t step);
  /// Passes values through `text` in their own registers: the results are the
  /// same registers, and nothing that reads or writes them crosses it.
  Values tie(llvm::StringRef text, mlir::ValueRange parts);

  // EmitFragments.cpp
  mlir::LogicalResult emit(MapOp op);
  void emit(Exp2Op op);
  mlir::LogicalResult emit(CallOp op);
  void emit(ReduceOp op);
  void emit(QuadOp op);
  void emit(CastOp op);
  void emit(ColumnsOp op);
  void emit(ZeroOp op);
  void emit(SplatOp op);
  mlir::Value fold(Fold kind, mlir::Value a, mlir::Value b);
  mlir::Value quad(Fold kind, mlir::Value value);
  mlir::Value pack(mlir::Value low, mlir::Value high); // f32 pair to bf16 pair
  mlir::Value widen(mlir::Value pair, bool high);      // half of a bf16 pair to f32
  /// Row (h = 0, 1) and column of this thread's element, inside the fragment.
  mlir::Value rowOf(int64_t h);
  /// row < limit, or with `tail` row >= limit.
  mlir::Value inRows(mlir::Value row, mlir::Value limit, bool tail);
  mlir::Value columnOf(int64_t j, int64_t e);

  // Emitter.cpp: small pieces.
  const Values &get(mlir::Value value) const { return values.find(value)->second; }
  mlir::Value one(mlir::Value value) const { return get(value).front(); }
  void set(mlir::Value value, Values parts);
  llvm::SmallVector<mlir::Type> convert(mlir::Type type);
  Values expand(mlir::ValueRange range);
  /// Inline assembly with `$n` operands, results first. `effects`: it stays where
  /// it stands among others, and memory is read and written.
  Values assembly(llvm::StringRef text, llvm::StringRef constraints, mlir::ValueRange operands,
                  llvm::ArrayRef<mlir::Type> results, bool effects = true);
  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value f32(double value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value shift(mlir::Value a, int64_t right); // logical; negative: left
  mlir::Value wide(mlir::Value value);             // i32 to i64, signed
  mlir::Value less(mlir::Value a, mlir::Value b);  // signed

  KernelOp kernel;
  const GpuTarget &target;
  mlir::ModuleOp module;
  mlir::OpBuilder builder;
  mlir::Location loc;
  llvm::DenseMap<mlir::Value, Values> values;
  /// Values that a fence renamed, with their older parts, to be restored where
  /// the fence's block ends.
  llvm::SmallVector<std::pair<mlir::Value, Values>> renamed;
  mlir::Value thread, lane, warp, group, quadLane, warpgroup; // thread: of the warpgroup, 0 .. 127
};

} // namespace weft::tile

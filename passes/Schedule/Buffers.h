//===- Buffers.h - A program under construction ------------------*- C++ -*-===//
//
// What Schedule.cpp and LossHead.cpp share: kernels made on demand, calls on
// buffers, views.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"

#include <functional>

namespace weft {

/// Bytes that a tensor takes in memory.
int64_t bytesOf(mlir::Type type);

class ProgramBuilder {
public:
  ProgramBuilder(mlir::ModuleOp module, ProgramOp program)
      : builder(mlir::OpBuilder::atBlockEnd(&program.getBody().front())), module(module) {}

  mlir::Value arena(mlir::Location loc, mlir::Type type);
  mlir::Value buffer(mlir::Location loc, BufferSpace space, int64_t offset, mlir::Type type);
  /// Elements [start, ...) of `buffer` as `type`; `buffer` itself when they are the same.
  mlir::Value view(mlir::Location loc, mlir::Value buffer, int64_t start, mlir::RankedTensorType type);
  void call(mlir::Location loc, KernelOp kernel, mlir::ValueRange ins, mlir::ValueRange outs);
  void copy(mlir::Location loc, mlir::Value from, mlir::Value to) { CopyOp::create(builder, loc, from, to); }
  void fill(mlir::Location loc, mlir::Value buffer) { FillOp::create(builder, loc, buffer); }

  /// The kernel whose body `body` builds on values of `inputs`, made once.
  KernelOp
  kernel(mlir::Location loc, llvm::StringRef label, mlir::TypeRange inputs,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::ValueRange)> body);

  mlir::OpBuilder builder;
  mlir::ModuleOp module;
};

/// Appends the calls of a loss head (with gradients when the kernel's body has
/// them), chunk of tokens by chunk. `ins` and `outs` are the launch's.
void scheduleLossHead(ProgramBuilder &program, mlir::Operation *head, mlir::ValueRange ins,
                      mlir::ValueRange outs, int64_t logitsBytes);

} // namespace weft

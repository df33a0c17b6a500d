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

/// Of a call that need not wait for the one before it (weft-run-beside).
constexpr llvm::StringLiteral kBesideAttr = "weft.beside";

/// The buffer that `value` is, or is a view of.
BufferOp bufferOf(mlir::Value value);

/// What a schedule asks of its target about kernels; answers are kept.
class KernelFacts {
public:
  /// `chip` as the pass has it; empty: the CPU.
  explicit KernelFacts(std::string chip) : chip(std::move(chip)) {}
  int64_t gridOf(KernelOp kernel) { return of(kernel).grid; }
  /// The product adds to an operand that may lie elsewhere than its result.
  bool addsFromElsewhere(KernelOp kernel) { return of(kernel).separate; }
  bool isGpu() const { return !chip.empty(); }

private:
  struct Facts {
    int64_t grid = 1;
    bool separate = false;
  };
  const Facts &of(KernelOp kernel);

  std::string chip;
  llvm::StringMap<Facts> known;
};

class ProgramBuilder {
public:
  ProgramBuilder(mlir::ModuleOp module, ProgramOp program, KernelFacts &facts)
      : builder(mlir::OpBuilder::atBlockEnd(&program.getBody().front())), module(module), facts(facts) {}

  mlir::Value arena(mlir::Location loc, mlir::Type type);
  mlir::Value buffer(mlir::Location loc, BufferSpace space, int64_t offset, mlir::Type type);
  /// Elements [start, ...) of `buffer` as `type`; `buffer` itself when they are the same.
  mlir::Value view(mlir::Location loc, mlir::Value buffer, int64_t start, mlir::RankedTensorType type);
  CallOp call(mlir::Location loc, KernelOp kernel, mlir::ValueRange ins, mlir::ValueRange outs);
  void copy(mlir::Location loc, mlir::Value from, mlir::Value to) { CopyOp::create(builder, loc, from, to); }
  void fill(mlir::Location loc, mlir::Value buffer) { FillOp::create(builder, loc, buffer); }

  /// The kernel whose body `body` builds on values of `inputs`, made once. The body
  /// computes in 32 bits: what is stored in 16 is converted where it enters and leaves.
  KernelOp
  kernel(mlir::Location loc, llvm::StringRef label, mlir::TypeRange inputs, mlir::TypeRange results,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::ValueRange)> body);

  mlir::OpBuilder builder;
  mlir::ModuleOp module;
  KernelFacts &facts;
};

/// Appends the calls of a loss head (with gradients when the kernel's body has
/// them), chunk of tokens by chunk. `ins` and `outs` are the launch's.
void scheduleLossHead(ProgramBuilder &program, mlir::Operation *head, mlir::ValueRange ins,
                      mlir::ValueRange outs, int64_t logitsBytes);

} // namespace weft

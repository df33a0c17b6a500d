//===- Executable.h - What the compiler hands to the runtime ----*- C++ -*-===//
//
// A pure function of (model, overrides, resolved plan, decisions, shapes,
// target, precision). The schedule IR is written into it 1:1. It is saved as
// one file and run without a compiler.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Tensor.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::rt {

/// Where an operand lives. State outlives programs (parameters, gradients,
/// moments, caches); the arena is one block shared by all programs; inputs and
/// results are the caller's.
enum class Space : uint8_t { State, Arena, Input, Result };

struct Operand {
  Space space = Space::Arena;
  uint64_t offset = 0; // bytes from the start of the space; Input, Result: the port's number
  uint64_t bytes = 0;
  uint64_t start = 0; // Input, Result: bytes from the start of the port's tensor
};

/// C = beta C + A B for `batch` independent row-major products (batch: 1).
/// A is (m, k), or (k, m) when transA; B is (k, n), or (n, k) when transB.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0; // elements between rows as stored
  int64_t batch = 1;
  int64_t strideA = 0, strideB = 0, strideC = 0; // elements between batches
  bool transA = false, transB = false;
  bool accumulate = false; // beta = 1
};

/// A kernel. `Code`: `object` holds an ELF relocatable with PC-relative
/// relocations only; its function `symbol` has the type KernelFunction.
/// `Gemm`: the runtime's product, through BLAS; operands A, B, C.
/// `Zero`: fills operand 0 with zeros. `Copy`: operand 1 = operand 0.
struct Kernel {
  enum class Kind : uint8_t { Code, Gemm, Zero, Copy };
  std::string name; // as in the IR
  std::string hash; // structural, 16 hex digits
  Kind kind = Kind::Code;
  Gemm gemm;
  std::string symbol;
  std::string object;
  uint64_t scratchBytes = 0; // a worker's own scratch, 64-byte aligned
};

/// One call: the kernel runs on [0, grid) in chunks that depend on nothing but
/// the grid, on any number of workers, in any order.
struct Call {
  uint32_t kernel = 0;
  int64_t grid = 1;
  std::vector<Operand> operands;
};

/// A named input or result of a program.
struct Port {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
};

struct Program {
  std::string name; // micro, update, eval, prefill, decode
  std::vector<Port> inputs, results;
  std::vector<Call> calls;
};

/// How a state entry starts.
struct InitRule {
  enum class Kind : uint8_t { Constant, Normal, Uniform, Truncated, Orthogonal, RopeTable };
  Kind kind = Kind::Constant;
  double a = 0, b = 0; // value | std | low, high | std (cut at 2 std) | gain | base
};

/// A tensor that outlives programs. Parameters are named by their path
/// (`block.3.attn.wq`), the others `grad/PATH`, `adamw.m/PATH`, `adamw.v/PATH`,
/// `cache/...`. Tables (`table/rope.10000.32`) never change and are in no
/// checkpoint. Control entries belong to plans (`control/windows/SITE`): no
/// optimiser steps them, checkpoints keep them.
struct StateEntry {
  enum class Role : uint8_t { Parameter, Gradient, Moment, Cache, Table, Control };
  std::string name;
  Role role = Role::Parameter;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<std::string> axes;
  uint64_t offset = 0; // bytes in Space::State, a multiple of the element's size
  InitRule init;
  // An entry that holds part of a tensor (runtime/core/Slices.h); empty `fullShape`: all of it.
  std::vector<int64_t> fullShape;
  int64_t firstAxis = 0, axisCount = 0;
  std::vector<int64_t> kept;
};

struct Executable {
  std::string model;  // name
  std::string target; // cpu:x86_64+avx512f... or reference
  std::string build;  // of the compiler
  std::vector<StateEntry> states;
  std::vector<Kernel> kernels;
  std::vector<Program> programs;
  uint64_t stateBytes = 0, arenaBytes = 0;
};

/// Helpers that kernels call through a table, so that objects need no symbol.
/// sgemm: C (m,n; ldc) = beta C + alpha op(A) op(B), row-major, one thread.
struct KernelTable {
  void (*sgemm)(int64_t transA, int64_t transB, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
};

/// operands[i] points to operand i; work items [begin, end) of the grid are
/// done; `scratch` is this worker's.
using KernelFunction = void (*)(void *const *operands, int64_t begin, int64_t end, const KernelTable *table,
                                void *scratch);

/// One file: u64 little-endian header length, JSON header, kernel objects.
/// Errors: DataLoss names what of the file is wrong.
absl::StatusOr<std::string> serialize(const Executable &executable);
absl::StatusOr<Executable> deserialize(std::string_view bytes);

} // namespace weft::rt

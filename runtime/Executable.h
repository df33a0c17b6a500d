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
  uint64_t start = 0;   // Input, Result: bytes from the start of the port's tensor
  bool written = false; // what is updated in place is among those read, too
};

/// C = beta I + A B for `batch` independent row-major products (batch: 1).
/// A is (m, k), or (k, m) when transA; B is (k, n), or (n, k) when transB.
/// Operands: A, B, I when it is `separate` (else I is C), C, and the auxiliary
/// of an epilogue. Sums are kept in 32 bits whatever the elements are.
struct Gemm {
  /// GeluGrad: C = A B gelu_tanh'(auxiliary).
  enum class Epilogue : uint8_t { None, GeluGrad };
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0; // elements between rows as stored
  int64_t batch = 1;
  int64_t strideA = 0, strideB = 0, strideC = 0; // elements between batches
  bool transA = false, transB = false;
  bool accumulate = false; // beta = 1
  bool separate = false;   // GPU: what is added to lies elsewhere, as C does
  ElementType typeA = ElementType::F32, typeB = ElementType::F32, typeC = ElementType::F32; // others: GPU
  Epilogue epilogue = Epilogue::None;                                                       // others: GPU

  size_t operandCount() const { return 3 + (separate ? 1 : 0) + (epilogue != Epilogue::None ? 1 : 0); }
};

/// A box of a tensor in global memory, for the GPU's tensor copies
/// (cuTensorMapEncodeTiled, CUDA Driver API). Innermost dimension first.
struct TensorMap {
  uint32_t operand = 0; // whose address is the base
  ElementType type = ElementType::BF16;
  std::vector<uint64_t> sizes;   // elements
  std::vector<uint64_t> strides; // bytes between neighbours along dimensions 1, 2, ...
  std::vector<uint32_t> box;     // elements
  uint32_t swizzle = 0;          // bytes: 0, 32, 64 or 128
};

/// How the GPU starts a kernel: blocks of `threads`, as many as fit or as there
/// are work items. Parameters: one address an operand, then the tensor maps (128
/// bytes each, by value), then, with scratch, its address (`scratchBytes` a block).
struct GpuLaunch {
  uint32_t threads = 0;
  uint32_t sharedBytes = 0; // dynamic
  std::vector<TensorMap> maps;
};

/// A kernel. `Code`: `object` holds, by `form`, an ELF relocatable with
/// PC-relative relocations only, whose function `symbol` has the type
/// KernelFunction; or for the GPU PTX or a cubin with the entry `symbol`. With
/// `link`, PTX is linked with the executable's libraries before it is loaded.
/// `Gemm`: the runtime's product, through BLAS; operands A, B, C.
/// `Zero`: fills operand 0 with zeros. `Copy`: operand 1 = operand 0.
struct Kernel {
  enum class Kind : uint8_t { Code, Gemm, Zero, Copy };
  enum class Form : uint8_t { Host, Ptx, Cubin };
  std::string name; // as in the IR
  std::string hash; // structural, 16 hex digits
  Kind kind = Kind::Code;
  Gemm gemm;
  std::string symbol;
  std::string object;
  uint64_t scratchBytes = 0; // a worker's (GPU: a block's) own scratch, 64-byte aligned
  double flops = 0;          // of matrix products in one call, windows not counted: for profiles
  Form form = Form::Host;
  GpuLaunch launch;  // GPU
  bool link = false; // GPU
};

/// One call: the kernel runs on [0, grid) in chunks that depend on nothing but
/// the grid, on any number of workers, in any order.
struct Call {
  uint32_t kernel = 0;
  int64_t grid = 1;
  std::vector<Operand> operands;
  bool beside = false; // GPU: waits only for calls whose memory it shares (fixed patterns beside attention)
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

/// Device functions of a user's own: PTX text, or LTO-IR as nvcc -dlto writes it.
struct Library {
  enum class Form : uint8_t { Ptx, LtoIr };
  std::string name;
  Form form = Form::Ptx;
  std::string object;
};

struct Executable {
  std::string model;  // name
  std::string target; // cpu:x86_64+avx512f..., sm_90a, sm_80 or reference
  std::string build;  // of the compiler
  std::vector<StateEntry> states;
  std::vector<Kernel> kernels;
  std::vector<Program> programs;
  std::vector<Library> libraries;
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

//===- Attend.h - Attention on tiles for the GPU ----------------*- C++ -*-===//
//
// Builders of tile kernels for weft.attend, weft.attend_grad_query and
// weft.attend_grad_key_value: all heads of a layer in one launch, windows read
// from memory head by head, documents from doc_start.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Tile/Tile.h"
#include "dialects/Weft/Weft.h"
#include "passes/Tile/GpuTarget.h"
#include "runtime/Executable.h"
#include "runtime/control/ExecutedWork.h"

#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace weft {

/// How a kernel goes about it; no value depends on it but for rounding.
struct AttendOptions {
  /// Warpgroup 0 copies and the others compute (setmaxnreg); else each computes,
  /// and the first one copies the next block before it works on its own.
  bool producer = false;
  /// Products of one block run under the exponentials of the next (with `producer`:
  /// a warpgroup that copies for itself can't wait for a tile that it still holds).
  bool overlap = false;
  /// Warpgroups take turns at issuing products (forward, with `overlap` and `producer`).
  bool turns = false;
  /// Log-sums and row dots come with their block of queries (keys and values, with `producer`).
  bool columns = false;
  /// Items go to whichever block of threads is free (with `producer`), not by a fixed rule.
  bool deal = false;
  /// dv's products are issued before ds is known (keys and values).
  bool early = false;
  /// Both tensors of a block come onto one barrier (keys and values).
  bool joint = false;
  /// Log-sums are read before the products of their block are issued (with `columns`).
  bool ahead = false;
  /// Of an item's first and last block a warpgroup leaves out the half that it does not
  /// see (forward, with `overlap`).
  bool halves = false;
  /// Sizes of tiles, 0 for the pass's own: warpgroups of 64 rows, rows of a streamed
  /// block, blocks on their way (powers of two), items whose own tensors are there
  /// or on their way (with `producer`).
  int64_t groups = 0, block = 0, stages = 0, own = 0;
  /// 0 for the pass's own (forward, with `overlap`): where a block may need its mask,
  /// exponentials stand behind the question (1) or in both of its branches (2).
  int64_t branches = 0;
  /// 0 for the pass's own: items of up to so many blocks take no turns (with `turns`).
  int64_t brief = 0;

  /// The form that kernels of sm_90a are compiled in; sm_80 has one form alone.
  static AttendOptions fastest() {
    AttendOptions options;
    options.producer = options.overlap = options.turns = options.columns = true;
    options.deal = options.early = options.joint = options.ahead = options.halves = true;
    return options;
  }
};

/// The attribute of a kernel that changes its form: "early=0,block=64". Names are those
/// of AttendOptions; what is not named stays as the fastest has it.
inline constexpr llvm::StringLiteral kFormAttr = "weft.form";

/// Reads such a list into `options`; empty, or what is wrong with it.
std::string readForm(llvm::StringRef text, AttendOptions &options);

/// The form that `kernel` asks for. A list that can't be read is an error at the kernel.
llvm::FailureOr<AttendOptions> formOf(KernelOp kernel);

/// A kernel on tiles and how it is started.
struct AttendTile {
  mlir::OwningOpRef<mlir::ModuleOp> module; // one tile.kernel, named as the weft.kernel
  int64_t threads = 0, sharedBytes = 0, items = 0;
  std::vector<rt::TensorMap> maps; // parameters after the operands' addresses

  tile::KernelOp kernel();
};

/// Why there is no tile kernel for `kernel`; empty where there is one. For a
/// kernel without an op of attention too.
std::string whyNoAttendTile(KernelOp kernel, const GpuTarget &target);

/// Operands keep the kernel's order: arguments, then results. q, k, v and dout
/// are bf16 in memory, [batch, pos, heads, channel] with channels of 64 or 128;
/// lse and delta f32; other results bf16 or f32. Sums are f32, p and ds enter
/// products in bf16. Errors at the kernel where whyNoAttendTile gives a reason.
llvm::FailureOr<AttendTile> buildAttendTile(KernelOp kernel, const GpuTarget &target,
                                            const AttendOptions &options = {});

/// Work items of the tile kernel for `kernel`; none where there is no such kernel.
std::optional<int64_t> attendItems(KernelOp kernel, const GpuTarget &target);

/// How the kernels of heads of `channel` go over pairs; the CPU's way where there are
/// no tiles for them.
rt::AttendTiles attendTiles(int64_t channel, const GpuTarget &target);

/// The whole way to PTX of the kernel on tiles that `build` makes of a copy in a context of its own.
llvm::FailureOr<rt::Kernel> compileTiles(KernelOp kernel, const GpuTarget &target,
                                         llvm::function_ref<llvm::FailureOr<AttendTile>(KernelOp)> build);

/// The whole way to PTX, in the form that the kernel asks for. Safe to call from several
/// threads, also on kernels of one module: the kernel is copied into a context of its own.
llvm::FailureOr<rt::Kernel> compileAttend(KernelOp kernel, const GpuTarget &target);

} // namespace weft

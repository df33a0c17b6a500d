//===- Kinds.h - One builder a kind of kernel on the GPU --------*- C++ -*-===//
//
// Each says how the kernel is cut into work items and writes them; none where
// the body is not of the kind, then with `why` if it nearly was.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Gpu/Bare.h"

namespace weft {

using MaybeKind = std::optional<BlockKind>;

/// Fused bodies: a warp, or a block, a row; or a loop over elements.
MaybeKind rowsKind(const BareKernel &bare, std::string &why);
MaybeKind flatKind(const BareKernel &bare, std::string &why);
/// Rows of any length, in which nothing is summed: a loop over all their elements.
MaybeKind longRowsKind(const BareKernel &bare);

MaybeKind productKind(const BareKernel &bare, ContractOp op);
MaybeKind gatherKind(const BareKernel &bare, GatherOp op);
MaybeKind gatherGradKind(const BareKernel &bare, GatherGradOp op);
MaybeKind positionKind(const BareKernel &bare, PositionOp op);
MaybeKind cacheUpdateKind(const BareKernel &bare, CacheUpdateOp op);
MaybeKind takeKind(const BareKernel &bare, TakeOp op);
MaybeKind putKind(const BareKernel &bare, PutOp op);
MaybeKind mixTableKind(const BareKernel &bare, MixTableOp op);
MaybeKind mixScaleKind(const BareKernel &bare, MixScaleOp op);
MaybeKind mixGradPatternKind(const BareKernel &bare, MixGradPatternOp op);
MaybeKind sumToKind(const BareKernel &bare, SumToOp op);
MaybeKind normKind(const BareKernel &bare, NormOp op);
MaybeKind patternStatisticsKind(const BareKernel &bare, PatternStatisticsOp op);
MaybeKind headStatisticsKind(const BareKernel &bare, HeadStatisticsOp op, std::string &why);
MaybeKind crossEntropyKind(const BareKernel &bare, CrossEntropyOp op);
MaybeKind crossEntropyGradKind(const BareKernel &bare, CrossEntropyGradOp op);

/// Any kernel that a CPU has: its body, one thread a work item.
BlockKind slowKind(const BareKernel &bare);

/// The best of all.
BlockKind blockKindOf(const BareKernel &bare);

} // namespace weft

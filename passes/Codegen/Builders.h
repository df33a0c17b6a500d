//===- Builders.h - One builder a kind of kernel ----------------*- C++ -*-===//
//
// Each fills the body of a kernel's function with the work of items
// [begin, end), and says how many items there are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"
#include "passes/Codegen/Emitter.h"

namespace weft {

/// What a builder writes into.
struct KernelBody {
  Emitter &e;
  llvm::SmallVector<mlir::Value> operands; // pointers: arguments, then results
  mlir::Value begin, end, table, scratch;
  int64_t scratchBytes = 0; // set by the builder

  mlir::Value argument(mlir::Value value) const {
    return operands[mlir::cast<mlir::BlockArgument>(value).getArgNumber()];
  }
  mlir::Value result(int64_t number) const { return operands[argumentCount + number]; }
  int64_t argumentCount = 0;
  /// Takes `count` floats of scratch.
  mlir::Value take(int64_t count);
};

struct KernelKind {
  std::function<int64_t()> grid;
  std::function<llvm::LogicalResult(KernelBody &)> build;
};

/// The kind of a kernel of one op; null functions for a row program.
KernelKind kindOf(KernelOp kernel);

// Null functions where the body is not of the kind.
KernelKind contractKind(ContractOp op);
KernelKind gatherKind(GatherOp op);
KernelKind gatherGradKind(GatherGradOp op);
KernelKind positionKind(PositionOp op);
KernelKind documentKind(DocumentOp op);
KernelKind integersKind(IntegersOp op);
KernelKind cacheUpdateKind(CacheUpdateOp op);
KernelKind sumToKind(SumToOp op);
KernelKind normKind(NormOp op);
KernelKind crossEntropyKind(CrossEntropyOp op);
KernelKind crossEntropyGradKind(CrossEntropyGradOp op);
KernelKind attendKind(AttendOp op);
KernelKind attendGradQueryKind(AttendGradQueryOp op);
KernelKind attendGradKeyValueKind(AttendGradKeyValueOp op);
KernelKind patternStatisticsKind(PatternStatisticsOp op);
KernelKind headStatisticsKind(HeadStatisticsOp op);
KernelKind takeKind(TakeOp op);
KernelKind putKind(PutOp op);
KernelKind mixKind(MixOp op);
KernelKind mixGradValueKind(MixGradValueOp op);
KernelKind mixGradPatternKind(MixGradPatternOp op);
KernelKind mixDenseKind(MixDenseOp op);
KernelKind mixDenseGradValueKind(MixDenseGradValueOp op);

} // namespace weft

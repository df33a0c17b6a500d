//===- Attend.cpp - Attention on tiles for the GPU ------------------------===//
#include "passes/Codegen/Gpu/Attend.h"

#include "passes/Codegen/Gpu/AttendKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace weft {

tile::KernelOp AttendTile::kernel() { return *module->getOps<tile::KernelOp>().begin(); }

/// Tiles whose registers ptxas keeps without spilling: 65,536 a CTA.
static AttendTiling tilingOf(const AttendProblem &p, const GpuTarget &target, const AttendOptions &options) {
  AttendTiling tiling;
  if (target.chip == "sm_80") {
    tiling.synchronous = true;
    tiling.groups = 1;
    tiling.block = p.pass == AttendPass::KeyValue && p.channel > 64 ? 32 : 64;
    return tiling;
  }
  tiling.producer = options.producer;
  tiling.overlap = options.overlap && options.producer;
  tiling.turns = options.turns && options.producer && options.overlap && p.pass == AttendPass::Forward;
  bool narrow = p.channel == 64;
  switch (p.pass) {
  case AttendPass::Forward:
    tiling.groups = narrow ? 3 : 2, tiling.block = 128;
    break;
  case AttendPass::Query:
    tiling.groups = 2, tiling.block = narrow ? 128 : 64;
    break;
  case AttendPass::KeyValue:
    tiling.groups = 2, tiling.block = narrow ? 64 : 32;
    break;
  }
  if (tiling.groups == 3)
    tiling.producerRegisters = 32, tiling.registers = 160;
  return tiling;
}

std::string whyNoAttendTile(KernelOp kernel, const GpuTarget &target) {
  std::string why;
  readAttend(kernel, target, why);
  return why;
}

std::optional<int64_t> attendItems(KernelOp kernel, const GpuTarget &target) {
  std::string why;
  auto problem = readAttend(kernel, target, why);
  if (!problem)
    return std::nullopt;
  return AttendKernel::itemCount(*problem, tilingOf(*problem, target, {}));
}

FailureOr<AttendTile> buildAttendTile(KernelOp kernel, const GpuTarget &target,
                                      const AttendOptions &options) {
  std::string why;
  auto problem = readAttend(kernel, target, why);
  if (!problem)
    return kernel.emitOpError("has no kernel on tiles: ") << why;
  kernel.getContext()
      ->loadDialect<tile::TileDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
  AttendTiling tiling = tilingOf(*problem, target, options);
  auto make = problem->pass == AttendPass::Forward ? makeAttendForward
              : problem->pass == AttendPass::Query ? makeAttendQuery
                                                   : makeAttendKeyValue;
  AttendTile tile = make(kernel.getLoc(), *problem, tiling)->build();
  if (failed(mlir::verify(*tile.module)))
    return failure();
  return tile;
}

} // namespace weft

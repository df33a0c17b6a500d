//===- PlannedMemory.cpp --------------------------------------------------===//
#include "tools/weft/PlannedMemory.h"

#include "dialects/Weft/Weft.h"
#include "passes/Schedule/Buffers.h"
#include "runtime/cuda/Products.h"
#include "tools/weft/MemoryPolicies.h"

using namespace mlir;
using namespace weft;

PlannedMemory weft::plannedMemory(ModuleOp module, bool gpu) {
  PlannedMemory memory;
  if (auto bytes = module->getAttrOfType<IntegerAttr>("weft.state_bytes"))
    memory.state = static_cast<uint64_t>(bytes.getInt());
  for (ProgramOp op : module.getOps<ProgramOp>()) {
    uint64_t ports = 0;
    for (ArrayAttr types : {op.getInputTypes(), op.getResultTypes()})
      for (Attribute type : types)
        ports += static_cast<uint64_t>(bytesOf(cast<TypeAttr>(type).getValue()));
    memory.ports = std::max(memory.ports, ports);
    memory.arena = std::max(memory.arena, static_cast<uint64_t>(op.getArena().value_or(0)));
  }
  memory.workspace = gpu ? rt::cuda::Products::kWorkspaceBytes : 0;
  return memory;
}

absl::StatusOr<PlannedMemory> weft::plannedMemory(const Program &program, PipelineOptions options) {
  options.stage = Stage::Schedule;
  options.memory = policyOf(program);
  std::shared_ptr<MLIRContext> context = makeContext();
  absl::StatusOr<OwningOpRef<ModuleOp>> module = lower(program, options, {}, *context);
  if (!module.ok())
    return module.status();
  return plannedMemory(**module, !options.chip.empty());
}

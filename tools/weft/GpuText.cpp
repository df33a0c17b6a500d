//===- GpuText.cpp - GPU kernels as text ----------------------------------===//

#include "tools/weft/GpuText.h"

#include "passes/Codegen/Gpu/Attend.h"
#include "passes/Codegen/Gpu/Gpu.h"
#include "passes/Tile/Lower.h"

#include "absl/strings/str_cat.h"

using namespace mlir;
using namespace weft;

static std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

/// A kernel of tiles at the stage, or why there is none.
static FailureOr<std::string> tileText(KernelOp kernel, GpuStage stage, const GpuTarget &target) {
  FailureOr<AttendOptions> form = formOf(kernel);
  if (failed(form))
    return failure();
  FailureOr<AttendTile> tile = buildAttendTile(kernel, target, *form);
  if (failed(tile))
    return failure();
  if (stage == GpuStage::Tile)
    return textOf(*tile->module);
  FailureOr<OwningOpRef<ModuleOp>> lowered = lowerTileToLLVM(tile->kernel(), target);
  return failed(lowered) ? FailureOr<std::string>() : textOf(**lowered);
}

static FailureOr<std::string> textAt(KernelOp kernel, GpuStage stage, const GpuTarget &target) {
  if (gpuGemmOf(kernel))
    return std::string("// a product through cuBLASLt\n");
  if (stage == GpuStage::Ptx) {
    FailureOr<rt::Kernel> compiled = compileGpuKernel(kernel, target);
    return failed(compiled) ? FailureOr<std::string>() : std::move(compiled->object);
  }
  if (whyNoAttendTile(kernel, target).empty())
    return tileText(kernel, stage, target);
  if (stage == GpuStage::Tile)
    return std::string("// no kernel of tiles: threads work on elements (--emit nvvm)\n");
  FailureOr<GpuCode> code = buildGpuKernel(kernel);
  if (failed(code) || failed(lowerGpuKernel(*code)))
    return failure();
  return textOf(*code->module);
}

absl::StatusOr<std::string> weft::gpuKernelText(ModuleOp module, GpuStage stage, const GpuTarget &target) {
  std::string text;
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    FailureOr<std::string> one = textAt(kernel, stage, target);
    if (failed(one))
      return absl::InternalError(
          absl::StrCat("kernel ", kernel.getSymName().str(), " can't be lowered (see above)"));
    absl::StrAppend(&text, "// ", kernel.getSymName().str(), "\n", *one, "\n");
  }
  return text;
}

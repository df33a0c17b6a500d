//===- AttendCompile.cpp - The whole way of kernels on tiles to PTX -------===//
#include "passes/Codegen/Codegen.h"
#include "passes/Codegen/Gpu/Attend.h"
#include "passes/Codegen/Gpu/Pattern.h"
#include "passes/Tile/Lower.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace weft {

FailureOr<rt::Kernel> compileTiles(KernelOp kernel, const GpuTarget &target,
                                   function_ref<FailureOr<AttendTile>(KernelOp)> build) {
  DialectRegistry registry;
  registerWeftDialects(registry);
  tile::registerTileDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    problem += (problem.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  auto fail = [&](StringRef stage) -> LogicalResult {
    return kernel.emitOpError("can't be compiled for ") << target.chip << " (" << stage << "): " << problem;
  };
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  auto copy = parseSourceString<ModuleOp>(text, &context);
  if (!copy)
    return fail("copy");
  auto tile = build(*copy->getOps<KernelOp>().begin());
  if (failed(tile))
    return fail("tiles");
  auto module = lowerTileToLLVM(tile->kernel(), target);
  if (failed(module))
    return fail("llvm dialect");
  auto ptx = translateToPtx(**module, target);
  if (failed(ptx))
    return fail("PTX");
  rt::Kernel result;
  result.name = result.symbol = kernel.getSymName().str();
  result.hash = structuralHash(kernel);
  result.object = std::move(*ptx);
  result.form = rt::Kernel::Form::Ptx;
  result.launch = {static_cast<uint32_t>(tile->threads), static_cast<uint32_t>(tile->sharedBytes),
                   std::move(tile->maps)};
  return result;
}

FailureOr<rt::Kernel> compileAttend(KernelOp kernel, const GpuTarget &target) {
  FailureOr<AttendOptions> options = formOf(kernel);
  if (failed(options))
    return failure();
  return compileTiles(kernel, target, [&](KernelOp copy) { return buildAttendTile(copy, target, *options); });
}

FailureOr<rt::Kernel> compilePattern(KernelOp kernel, const GpuTarget &target) {
  return compileTiles(kernel, target, [&](KernelOp copy) { return buildPatternTile(copy, target); });
}

} // namespace weft

//===- models-ptx-test.cpp - Kernels of shipped models through ptxas ------===//
//
// Each kernel that is no product and no attention becomes PTX for both chips, and
// where there is ptxas, machine code that spills at most 64 bytes.
//
//===----------------------------------------------------------------------===//
#include "frontend/Checker.h"
#include "frontend/Emit/Emit.h"
#include "frontend/Parser.h"
#include "passes/Codegen/Codegen.h"
#include "passes/Codegen/Gpu/Gpu.h"
#include "passes/Pipelines.h"
#include "passes/Tile/Ptxas.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <set>

using namespace mlir;

namespace weft {
namespace {

struct Written {
  std::string file, name;
  lang::Overrides sizes;
  std::vector<std::string> programs;
};

const std::vector<std::string> kTrained{"micro", "eval", "prefill", "decode"};
const std::vector<std::string> kRead{"eval", "prefill", "decode"};

const std::vector<Written> kModels{
    {"gpt2", "gpt2", {{"depth", "2"}}, kTrained},
    {"gpt_rope", "gpt_rope", {{"depth", "2"}}, kTrained},
    {"nano", "nano", {}, kTrained},
    {"peer", "peer", {{"depth", "2"}}, kTrained},
    {"tiny", "tiny", {{"depth", "2"}}, kTrained},
    {"san", "san", {{"depth", "2"}}, kTrained},
    {"qwen3", "qwen3", {{"depth", "2"}}, kRead},
    {"zoo", "gemma_like", {}, kRead},
    {"zoo", "shared", {}, kRead},
};

OwningOpRef<ModuleOp> kernelsOf(const Written &written, MLIRContext &context) {
  lang::SourceFiles sources;
  lang::Diagnostics diagnostics;
  std::string path = (llvm::Twine(WEFT_SOURCE_DIR) + "/models/" + written.file + ".weft").str();
  lang::ast::File file = lang::parseFile(path, sources, diagnostics);
  auto model = lang::checkModel(file, sources, written.name, written.sizes, diagnostics);
  EXPECT_TRUE(model) << diagnostics.render(sources);
  OwningOpRef<ModuleOp> module = emitModel(*model, sources, context);
  PipelineOptions options;
  options.batch = 2;
  options.positions = 128;
  options.chip = "sm_90a";
  options.programs = written.programs;
  PassManager manager(&context, ModuleOp::getOperationName());
  buildPipeline(manager, options);
  EXPECT_TRUE(succeeded(manager.run(*module)));
  return module;
}

/// Attention has builders of its own, and products are cuBLASLt's.
bool isOurs(KernelOp kernel) {
  bool attention = false;
  kernel.walk(
      [&](Operation *op) { attention |= isa<AttendOp, AttendGradQueryOp, AttendGradKeyValueOp>(op); });
  return !attention && !gpuGemmOf(kernel);
}

/// Kernels of one module through ptxas, each shape of kernel once.
class Assembler {
public:
  void all(ModuleOp module) {
    for (KernelOp kernel : module.getOps<KernelOp>())
      if (isOurs(kernel) && seen.insert(structuralHash(kernel)).second)
        for (const char *chip : {"sm_90a", "sm_80"})
          one(kernel, chip);
  }
  bool isThere = findPtxas().ok();
  std::set<std::string> seen;

private:
  void one(KernelOp kernel, const char *chip) {
    GpuTarget target;
    target.chip.assign(chip);
    std::string name = kernel.getSymName().str();
    auto code = compileGpuKernel(kernel, target);
    ASSERT_TRUE(succeeded(code)) << name << " for " << chip;
    if (!isThere)
      return;
    auto report = assemble(code->object, chip);
    ASSERT_TRUE(report.ok()) << name << ": " << report.status();
    auto good = checkReport(*report, name);
    EXPECT_TRUE(good.ok()) << good;
  }
};

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerWeftDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry);
  context->loadAllAvailableDialects();
  return context;
}

// Catches: an op that the GPU has no kernel for, code that needs more registers
// than a thread has, an instruction that sm_80 lacks.
TEST(GpuModels, assemble) {
  Assembler assembler;
  for (const Written &written : kModels) {
    SCOPED_TRACE(written.name);
    auto context = makeContext();
    // What runs on the slow path is listed: a hot kernel there is a loss.
    ScopedDiagnosticHandler handler(context.get(), [](Diagnostic &diagnostic) {
      std::string text = diagnostic.str();
      if (text.find("slow-path") != std::string::npos)
        std::cout << text << "\n";
      return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark);
    });
    assembler.all(*kernelsOf(written, *context));
  }
  if (!assembler.isThere)
    GTEST_SKIP() << "no ptxas here: " << assembler.seen.size() << " kernels were made and not assembled";
}

// The optimiser's step, as large as gpt2's.
TEST(GpuModels, assembleUpdate) {
  auto context = makeContext();
  const char *text = R"(
    weft.kernel @norm rows [] chunks 1 (%x: tensor<124439808xf32>, %f: tensor<f32>) -> (tensor<f32>) {
      %n = weft.norm %x, %f : (tensor<124439808xf32>, tensor<f32>) -> tensor<f32>
      weft.yield %n : tensor<f32>
    }
    weft.kernel @scale rows [] chunks 1 (%n: tensor<f32>, %f: tensor<f32>) -> (tensor<f32>) {
      %s = weft.clip_scale %n, %f 1.0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      weft.yield %s : tensor<f32>
    }
    weft.kernel @step rows [] chunks 64 (%p: tensor<124318464xf32>, %m: tensor<124318464xf32>,
        %v: tensor<124318464xf32>, %g: tensor<124318464xf32>, %h: tensor<3xf32>, %s: tensor<f32>)
        -> (tensor<124318464xf32>, tensor<124318464xf32>, tensor<124318464xf32>) {
      %a, %b, %c = weft.adamw %p, %m, %v, %g hyper %h scale %s betas 0.9, 0.95 eps 1.0e-8 decay 0.1
        : (tensor<124318464xf32>, tensor<124318464xf32>, tensor<124318464xf32>, tensor<124318464xf32>,
           tensor<3xf32>, tensor<f32>) -> (tensor<124318464xf32>, tensor<124318464xf32>, tensor<124318464xf32>)
      weft.yield %a, %b, %c : tensor<124318464xf32>, tensor<124318464xf32>, tensor<124318464xf32>
    })";
  auto module = parseSourceString<ModuleOp>(text, context.get());
  ASSERT_TRUE(module);
  Assembler assembler;
  assembler.all(*module);
  EXPECT_EQ(assembler.seen.size(), 3u);
  if (!assembler.isThere)
    GTEST_SKIP() << "no ptxas here: kernels were made and not assembled";
}

} // namespace
} // namespace weft

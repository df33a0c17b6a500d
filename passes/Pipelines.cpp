//===- Pipelines.cpp - The order of passes --------------------------------===//

#include "passes/Pipelines.h"

#include "passes/Bucket/Passes.h"
#include "passes/Check/Passes.h"
#include "passes/Differentiate/Passes.h"
#include "passes/Drop/Passes.h"
#include "passes/Freeze/Passes.h"
#include "passes/Fuse/Passes.h"
#include "passes/Recompute/Passes.h"
#include "passes/Schedule/Passes.h"
#include "passes/Unroll/Passes.h"

#include "dialects/Weft/Weft.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

const char *weft::policyName(MemoryPolicy policy) {
  switch (policy) {
  case MemoryPolicy::Fast:
    return "fast";
  case MemoryPolicy::Lean:
    return "lean";
  case MemoryPolicy::Tight:
    return "tight";
  }
  return "";
}

void weft::buildPipeline(PassManager &manager, const PipelineOptions &options) {
  // A GPU wants more blocks than a CPU has cores, and larger products.
  constexpr int64_t kGpuChunks = 264, kGpuLogitsBytes = int64_t{1} << 30;
  bool gpu = !options.chip.empty();
  auto reached = [&](Stage stage) { return options.stage <= stage; };
  // What every stage from unrolling on may assume of the one before.
  auto check = [&] {
    manager.addPass(createCheckLocationsPass());
    manager.addPass(createCheckStaticShapesPass());
  };

  // 1. Drop branches while depth is still a formula (the plan's `drop`).
  manager.addPass(createDropFfnPass());
  if (reached(Stage::Rolled))
    return;

  // 2. Write layers out; from here every size is static. Position and document
  //    starts are emitted whether they are read or not: CSE and the symbol-free
  //    parts of canonicalisation drop what is not.
  UnrollLayersPassOptions unroll;
  unroll.batch = options.batch;
  unroll.positions = options.positions;
  unroll.double_ = options.float64;
  manager.addPass(createUnrollLayersPass(unroll));
  if (options.afterUnroll)
    manager.addPass(options.afterUnroll());
  // Heads that are frozen or pruned leave before anything is made of them.
  manager.addPass(createFreezeHeadsPass());
  manager.addPass(createSimplify());
  manager.addPass(createCSEPass());
  check();
  if (reached(Stage::Unrolled))
    return;

  // 3. Loss head first: its gradient is made in the same loop over tokens.
  manager.addPass(createFormLossHead());
  FormProgramsOptions programs;
  programs.programs.assign(options.programs.begin(), options.programs.end());
  programs.cacheLength = options.cacheLength;
  programs.lastPosition = options.lastPosition;
  manager.addPass(createFormPrograms(programs));
  manager.addPass(createDifferentiate());
  if (llvm::is_contained(options.programs, "observe"))
    manager.addPass(createFormObserve());
  manager.addPass(createSimplify());
  manager.addPass(createCSEPass());
  FoldAccumulationsOptions fold;
  fold.residuals = gpu;
  manager.addPass(createFoldAccumulations(fold));
  check();
  if (reached(Stage::Programs))
    return;

  // Newton-Schulz steps run as products; the interpreter takes them whole.
  manager.addPass(createExpandPolar());
  manager.addPass(createCSEPass());

  manager.addPass(createBucketHeadsPass());
  if (gpu) {
    TilePatternsPassOptions patterns;
    patterns.chip = options.chip;
    manager.addPass(createTilePatternsPass(patterns));
    manager.addPass(createCSEPass());
  }

  // 4. Storage before fusion: groups of the optimiser become vectors.
  manager.addPass(createLayOutParamsPass());
  SplitSumsPassOptions split;
  FusePassOptions fuse;
  StoreInBf16PassOptions store;
  if (gpu)
    split.chunks = fuse.chunks = store.chunks = kGpuChunks;
  fuse.recompute = gpu || options.memory != MemoryPolicy::Fast;
  manager.addPass(createSplitSumsPass(split));
  manager.addPass(createFusePass(fuse));
  check();
  if (reached(Stage::Fused))
    return;

  // 5. Kernels by structure: from here nothing depends on depth but the number of calls.
  manager.addPass(createOutlineKernelsPass());
  if (gpu) {
    manager.addPass(createStoreInBf16Pass(store));
    FoldActivationsPassOptions activations;
    activations.chip = options.chip;
    // An activation that is made again is a row kernel, not a product.
    activations.keeps = options.memory == MemoryPolicy::Fast && !options.recompute;
    manager.addPass(createFoldActivationsPass(activations));
  }
  // Last of what names kernels: what is saved is known to the byte, and clones are
  // launches of the same kernels. Nothing behind it may merge equal launches.
  if (options.memory != MemoryPolicy::Fast || options.recompute)
    manager.addPass(createRecomputePass(policyName(options.memory), options.recompute));
  if (reached(Stage::Kernels))
    return;
  SchedulePassOptions schedule;
  schedule.chip = options.chip;
  if (gpu)
    schedule.logitsBytes = kGpuLogitsBytes;
  manager.addPass(createSchedulePass(schedule));
  if (gpu) {
    manager.addPass(createPrepareOncePass());
    manager.addPass(createRunBesidePass());
  }
  manager.addPass(createPlanMemoryPass());
  check();
  if (options.afterPlan)
    manager.addPass(options.afterPlan());
}

void weft::registerWeftPasses() {
  registerWeftBucketPasses();
  registerWeftCheckPasses();
  registerWeftDropPasses();
  registerWeftUnrollPasses();
  registerWeftFreezePasses();
  registerWeftDifferentiatePasses();
  registerWeftFusePasses();
  registerWeftRecomputePasses();
  registerWeftSchedulePasses();
  registerCanonicalizerPass();
  registerCSEPass();
  registerSymbolDCEPass();
}

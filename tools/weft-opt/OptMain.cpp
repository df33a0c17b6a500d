//===- OptMain.cpp - Weft's passes on textual IR --------------------------===//
//
// MLIR's own driver with Weft's dialect and passes. Its parser recurses, so the
// nesting of a text is bounded before it sees one.
//
//===----------------------------------------------------------------------===//

#include "tools/weft-opt/OptMain.h"

#include "dialects/Tile/Tile.h"
#include "dialects/Weft/Weft.h"
#include "passes/Pipelines.h"
#include "passes/Tile/Passes.h"
#include "tools/weft-opt/Nesting.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int weft::optMain(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (llvm::StringRef(argv[i]).ends_with(".mlir") && !nestingIsBounded(argv[i]))
      return 1;
  registerWeftPasses();
  registerWeftTilePasses();
  mlir::DialectRegistry registry;
  registerWeftDialects(registry);
  tile::registerTileDialects(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Weft's optimizer driver\n", registry));
}

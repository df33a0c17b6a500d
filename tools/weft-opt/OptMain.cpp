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
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/ToolOutputFile.h"

namespace {

/// As upstream's main, with what stdin holds checked first.
mlir::LogicalResult runOnStdin(const mlir::MlirOptMainConfig &config, llvm::StringRef output,
                               mlir::DialectRegistry &registry) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer = llvm::MemoryBuffer::getSTDIN();
  if (!buffer) {
    llvm::errs() << "weft opt: can't read stdin: " << buffer.getError().message() << "\n";
    return mlir::failure();
  }
  if (!weft::nestingIsBounded((*buffer)->getBuffer(), "<stdin>"))
    return mlir::failure();
  std::string why;
  std::unique_ptr<llvm::ToolOutputFile> file = mlir::openOutputFile(output, &why);
  if (!file) {
    llvm::errs() << "weft opt: " << why << "\n";
    return mlir::failure();
  }
  if (mlir::failed(mlir::MlirOptMain(file->os(), std::move(*buffer), registry, config)))
    return mlir::failure();
  file->keep();
  return mlir::success();
}

} // namespace

int weft::optMain(int argc, char **argv) {
  registerWeftPasses();
  registerWeftTilePasses();
  mlir::DialectRegistry registry;
  registerWeftDialects(registry);
  tile::registerTileDialects(registry);
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Weft's optimizer driver\n", registry);
  const mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (input == "-" && !config.shouldShowDialects() && !config.shouldListPasses())
    return mlir::asMainReturnCode(runOnStdin(config, output, registry));
  if (!fileNestingIsBounded(input))
    return 1;
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
}

//===- LowerHarness.cpp ---------------------------------------------------===//
#include "test/passes/Tile/LowerHarness.h"

#include "dialects/Tile/Tile.h"
#include "passes/Tile/Lower.h"
#include "runtime/core/File.h"

#include "mlir/Parser/Parser.h"

#include "absl/strings/str_cat.h"

using namespace mlir;

namespace weft::testing {

std::string inputText(const std::string &name) {
  auto text = rt::readFile(absl::StrCat(WEFT_SOURCE_DIR, "/test/passes/Tile/Inputs/", name, ".mlir"));
  return text.ok() ? *text : absl::StrCat("error: ", text.status().message());
}

std::string ptxOf(const std::string &text, const GpuTarget &target) {
  DialectRegistry registry;
  tile::registerTileDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string first;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (first.empty())
      first = absl::StrCat("error: ", diagnostic.str());
  });
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return first;
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  auto lowered = lowerTileToLLVM(kernel, target);
  if (failed(lowered))
    return first;
  auto ptx = translateToPtx(**lowered, target);
  return failed(ptx) ? first : *ptx;
}

int count(const std::string &text, const std::string &pattern) {
  int times = 0;
  for (size_t at = text.find(pattern); at != std::string::npos; at = text.find(pattern, at + pattern.size()))
    ++times;
  return times;
}

} // namespace weft::testing

//===- tile-to-ptx.cpp - Prints the PTX of a tile kernel ------------------===//
//
// tile-to-ptx NAME.mlir CHIP, for the emulator's tests.
//
//===----------------------------------------------------------------------===//
#include "test/passes/Tile/LowerHarness.h"

#include "runtime/core/File.h"

#include "absl/strings/str_cat.h"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tile-to-ptx NAME.mlir sm_90a|sm_80\n");
    return 2;
  }
  auto text = weft::rt::readFile(argv[1]);
  std::string ptx = text.ok() ? weft::testing::ptxOf(*text, {argv[2], 80})
                              : absl::StrCat("error: ", text.status().ToString());
  bool failed = ptx.rfind("error", 0) == 0;
  std::fprintf(failed ? stderr : stdout, "%s\n", ptx.c_str());
  return failed ? 1 : 0;
}

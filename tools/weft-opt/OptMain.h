//===- OptMain.h - The program weft-opt --------------------------*- C++ -*-===//
#pragma once

namespace weft {

/// MLIR's optimizer driver with Weft's dialect and passes. Reads textual IR, runs the passes that the flags
/// name (`--help` lists them) and prints the result. Brackets nested deeper than kIrNestingLimit in a file
/// `*.mlir` are refused. Returns the exit code: 0, or 1 after a message on stderr. Registers passes and flags
/// for the process: call it once.
int optMain(int argc, char **argv);

} // namespace weft

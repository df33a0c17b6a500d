//===- Observe.h - What a module computes, on drawn inputs -------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Interpret/Interpret.h"

#include <optional>

namespace weft {

/// What one program gave: results by port name, and the state afterwards.
struct ProgramResult {
  std::map<std::string, Array> results;
  States state;
  std::string error;  // diagnostics, where it could not run
  bool drops = false; // it takes the noise of dropout
};

/// Every program of a module (`func.func` or `weft.program`) by name.
using Observation = std::map<std::string, ProgramResult>;

/// Draws inputs and state by name, so that a program gets the same numbers
/// before and after a pass whatever its form. Floats come from Philox streams
/// under `seed`; documents, targets, tokens, offsets and rates are drawn as
/// such: the first row is one document, others are cut; some targets are -1.
class Inputs {
public:
  explicit Inputs(uint64_t seed) : seed(seed) {}

  /// Notes what indexes which table, so that tokens and targets fit; call it
  /// before drawing for `module`.
  void learn(mlir::ModuleOp module);
  Array draw(llvm::StringRef name, mlir::RankedTensorType type, bool decoding) const;
  /// Parameters random and of a size that keeps activations near 1, whatever
  /// their starting rule: zeros would hide faults. Tables as their rule says.
  States state(mlir::ModuleOp module) const;

private:
  std::vector<double> uniform(llvm::StringRef stream, size_t count, double low, double high) const;
  Array documents(mlir::RankedTensorType type, bool decoding) const;

  uint64_t seed;
  std::map<std::string, int64_t> bounds; // of int inputs: values are below
  int64_t cachePlaces = 0;               // of the shortest cache, 0: none
};

/// Runs every program of `module`. A program that can't run has its error set.
Observation observe(mlir::ModuleOp module, const Inputs &inputs);

/// One program of `module` on given state (changed by it).
ProgramResult observeProgram(mlir::Operation *program, const Inputs &inputs, States state);

/// Port names of a function's arguments: `weft.name`, or their number.
std::string argumentName(mlir::FunctionOpInterface function, unsigned index);
std::string resultName(mlir::FunctionOpInterface function, unsigned index);

} // namespace weft

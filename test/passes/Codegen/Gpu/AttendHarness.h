//===- AttendHarness.h - Tile kernels of attention, run by their judge -*- C++ -*-===//
#pragma once

#include "dialects/Tile/Interpret/Interpret.h"
#include "passes/Codegen/Gpu/Attend.h"
#include "test/passes/Codegen/Gpu/AttendCase.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace weft::test {

enum class AttendPassKind { Forward, Query, KeyValue };

/// One pass of one attention, built for a target and run by the interpreter.
class AttendHarness {
  mlir::MLIRContext context; // outlives what is built in it

public:
  AttendHarness(const AttendCase &c, AttendPassKind pass, const GpuTarget &target = {},
                const AttendOptions &options = {});
  /// Runs the kernel on poisoned results.
  absl::Status run(const tile::Schedule &schedule);
  /// After run: empty, or what differs from the float64 loops. The error of each
  /// head's 64 rows may be twice that of a bf16 reference.
  std::string difference();
  /// Numbers of operand `number`, to change them before a run.
  std::vector<float> &operand(size_t number);
  /// Results of the last run, one after another.
  std::vector<float> results() const;

  AttendTile tile;

private:
  void makeBuffers();
  std::string compare(size_t result, const std::vector<double> &expected, const std::vector<double> &rounded,
                      int64_t places, int64_t heads, const char *what) const;
  std::string compareRows(size_t result, const std::vector<double> &expected, const char *what) const;

  AttendCase c;
  AttendPassKind pass;
  AttendNumbers numbers;
  mlir::OwningOpRef<mlir::ModuleOp> source;
  std::vector<tile::Buffer> buffers; // made by the first run
  size_t firstResult = 0;
};

/// The reason for which a kernel's text has no tiles.
std::string refusal(const std::string &text, const GpuTarget &target = {});

} // namespace weft::test

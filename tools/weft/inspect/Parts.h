//===- Parts.h - Kernels and memory of a planned schedule --------*- C++ -*-===//
#pragma once

#include "tools/weft/inspect/Document.h"

#include "mlir/IR/BuiltinOps.h"

namespace weft::inspect {

/// One entry a kernel: {"name", "class", "calls": {program: n}, "bytes", "flops" (of one
/// call, windows not counted), "other", "ops", and of a GPU "threads", "registers",
/// "shared", "spill", "scratch" or "note"}. `assemble`: by ptxas, on all cores.
rt::OrderedJson kernelList(mlir::ModuleOp schedule, const std::string &chip, bool assemble, const Say &say);

/// {"state": {"bytes", "entries": [[name, role, type, offset, bytes]...]}, "programs":
/// [{"name", "arena", "ports", "kernels": [name], "calls": [kernel of each step of time],
/// "types": [text], "buffers": [[first, last, bytes, offset, type, kernel that writes it
/// first (-1: none)]...]}]}. Time counts calls, copies and fills from 0; kernels and
/// types stand as indices.
rt::OrderedJson memoryPlan(mlir::ModuleOp schedule);

} // namespace weft::inspect

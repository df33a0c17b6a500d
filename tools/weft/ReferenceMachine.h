//===- ReferenceMachine.h - A machine that interprets IR ---------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Interpret/Interpret.h"
#include "runtime/Machine.h"

#include "mlir/IR/OwningOpRef.h"

#include <memory>

namespace weft {

/// A machine whose programs are the module's `func.func`s, run in float64 by
/// the interpreter (`--device reference`). Ports are named by the attribute
/// `weft.name` of arguments and results and have their element types; a state
/// entry has its type of the IR. State starts as zeros, tables (which the
/// executable does not list) with their contents. `context` is the module's;
/// it is kept as long as the machine.
/// Errors: InvalidArgument names a function, argument or entry without a name
/// or with sizes that are not static.
absl::StatusOr<std::unique_ptr<rt::Machine>> makeReferenceMachine(mlir::OwningOpRef<mlir::ModuleOp> module,
                                                                  std::shared_ptr<mlir::MLIRContext> context);

} // namespace weft

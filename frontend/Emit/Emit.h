//===- Emit.h - A checked model becomes rolled weft IR ----------*- C++ -*-===//
#pragma once

#include "frontend/Model.h"
#include "frontend/Source.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace weft {

/// A module with one `weft.model`, node by node as `model` has them. Document
/// starts become the input `doc_start`. Each op has the place of its text, under
/// the name of the value where it has one. The model was checked, so this
/// can't fail on it.
mlir::OwningOpRef<mlir::ModuleOp> emitModel(const lang::Model &model, const lang::SourceFiles &sources,
                                            mlir::MLIRContext &context);

} // namespace weft

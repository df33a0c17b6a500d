//===- RowSchedule.h - Maps and reductions put together into loops -*- C++ -*-===//
#pragma once

#include "passes/Codegen/RowProgram.h"

namespace weft {

/// Gives each node its group and, where other groups read it, its memory.
void scheduleRows(RowProgram &program);

} // namespace weft

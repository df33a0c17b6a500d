//===- WindowPlans.h - Windows of plans as the runtime knows them -*- C++ -*-===//
#pragma once

#include "tools/weft/Session.h"

#include "runtime/control/WindowControl.h"

#include <memory>

namespace weft {

/// What carries out the `windows` statements of `program`, or null without any.
/// `totalSteps` resolves `from P% of steps`; seeds are the recipe's unless given.
/// Errors: InvalidArgument for a `windows file(...)` that does not fit the model;
/// one that can't be read is an error only where a run begins with it.
absl::StatusOr<std::unique_ptr<rt::WindowControl>> makeWindowControl(const Program &program,
                                                                     int64_t totalSteps);

/// Whether training needs program `observe`: a statement chooses from statistics.
bool choosesWindows(const Program &program);

/// Executed work is from now on that of the kernels that `machine` runs.
void countWorkOf(rt::WindowControl &control, const rt::Machine &machine);

/// Windows as the checkpoint left them, or as they start without one (empty). With
/// an adaptive plan that nothing was decided for yet, evaluations are live.
absl::StatusOr<std::unique_ptr<rt::WindowControl>> startWindows(const Program &program, rt::Machine &machine,
                                                                const std::string &checkpoint);

/// The same without a machine, to look at.
absl::StatusOr<std::unique_ptr<rt::WindowControl>> recallWindows(const Program &program,
                                                                 const std::string &checkpoint);

/// Windows are never taken away: InvalidArgument when the run that `checkpoint` belongs
/// to had a controller and `program` gives no windows.
absl::Status checkInheritedWindows(const Program &program, const std::string &checkpoint);

/// Whether an evaluation of `checkpoint` (may be empty) needs program `observe`.
bool evaluatesLive(const Program &program, const std::string &checkpoint);

} // namespace weft

//===- Interrupt.h - Ctrl-C -------------------------------------*- C++ -*-===//
#pragma once

namespace weft::rt {

/// While one lives, the first SIGINT or SIGTERM only asks the loop to finish its
/// step and save; the second ends the process at once with status 130. The
/// handlers that stood before come back with the destructor. One at a time.
class InterruptGuard {
public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

  /// Whether a signal came since the guard was made.
  static bool requested();
};

/// The exit status of a run that was interrupted and saved.
inline constexpr int kInterruptedExit = 130;

} // namespace weft::rt

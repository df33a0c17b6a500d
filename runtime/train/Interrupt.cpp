//===- Interrupt.cpp - Ctrl-C -----------------------------------*- C++ -*-===//
#include "runtime/train/Interrupt.h"

#include <csignal>

#include <unistd.h>

namespace weft::rt {
namespace {

volatile std::sig_atomic_t received = 0;
struct sigaction oldInt, oldTerm;

/// Only what is safe inside a signal handler: a flag, write, _exit.
void handle(int) {
  if (received) {
    static constexpr char kText[] = "\nstopped at once, nothing saved\n";
    [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
    ::_exit(kInterruptedExit);
  }
  received = 1;
  static constexpr char kText[] = "\ninterrupted: finishing this step and saving; once more stops at once\n";
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
}

} // namespace

InterruptGuard::InterruptGuard() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = handle;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &oldInt);
  ::sigaction(SIGTERM, &action, &oldTerm);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &oldInt, nullptr);
  ::sigaction(SIGTERM, &oldTerm, nullptr);
}

bool InterruptGuard::requested() { return received != 0; }

} // namespace weft::rt

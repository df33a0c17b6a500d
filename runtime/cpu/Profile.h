//===- Profile.h - Time per kernel ------------------------------*- C++ -*-===//
#pragma once

#include "runtime/Executable.h"

#include <chrono>

namespace weft::rt {

/// What a machine reaches on work that is nothing else: bytes a second of a large
/// copy (read and written counted), FLOPs a second of a large bf16 product. 0: not measured.
struct Ceilings {
  double bytesPerSecond = 0, flopsPerSecond = 0;
};

/// All calls of one kernel.
struct KernelTime {
  std::string name, hash, kind; // kind: as kindOf says
  uint64_t calls = 0;
  double seconds = 0;
  double bytes = 0; // of operands, each counted once a call
  double flops = 0; // of matrix products; of attention's, the share of pairs that Profile is told
  /// The larger of bytes and FLOPs a second over its ceiling; 0 without ceilings.
  double share(const Ceilings &ceilings) const;
};

/// attention, product, loss, optimiser, memory (fills, copies) or rows (all others).
std::string kindOf(const Kernel &kernel);

/// Sums each kernel's calls and time. On with the environment variable
/// WEFT_PROFILE=FILE, and with WEFT_TRACE=FILE, which also keeps every call: the
/// files are written when the profile goes.
class Profile {
public:
  using Clock = std::chrono::steady_clock;

  /// `path` empty: off, until it is turned on.
  Profile(const Executable &executable, std::string path);
  ~Profile();
  Profile(const Profile &) = delete;
  Profile &operator=(const Profile &) = delete;

  /// The calls one after another in the format that Chrome's and Perfetto's viewers
  /// read (Trace Event Format: complete events, microseconds), at most kMostEvents.
  std::string traceText() const;
  static constexpr size_t kMostEvents = 2'000'000;

  bool on() const { return active; }
  void turnOn() { active = true; }
  void add(uint32_t kernel, double bytes, Clock::duration time);
  /// Forgets what was added.
  void clear();
  /// The slowest first; kernels that were never called are left out.
  std::vector<KernelTime> times() const;
  /// [{"kernel", "hash", "kind", "calls", "seconds", "bytes", "flops", "share"}...].
  std::string text() const;

  Ceilings ceilings;
  /// Pairs of query and key that heads' windows leave, over those of full attention:
  /// windows are data, so that a kernel's own FLOPs are those without them.
  double pairShare = 1;

private:
  struct Sum {
    uint64_t calls = 0;
    double bytes = 0;
    Clock::duration time{};
  };
  struct Event {
    uint32_t kernel = 0;
    Clock::duration begin{}, time{}; // begin: since the profile was made
  };
  const Executable &executable;
  std::string path, tracePath;
  bool active;
  std::vector<Sum> sums;
  const Clock::time_point made = Clock::now();
  Clock::duration reached{}; // the end of the last event
  std::vector<Event> events;
};

} // namespace weft::rt

//===- Profile.h - Time per kernel ------------------------------*- C++ -*-===//
#pragma once

#include "runtime/Executable.h"

#include <chrono>

namespace weft::rt {

/// Sums each kernel's calls and time. On with the environment variable
/// WEFT_PROFILE=FILE: then the file is written when the profile goes.
class Profile {
public:
  using Clock = std::chrono::steady_clock;

  /// `path` empty: off.
  Profile(const Executable &executable, std::string path);
  ~Profile();
  Profile(const Profile &) = delete;
  Profile &operator=(const Profile &) = delete;

  bool on() const { return !path.empty(); }
  void add(uint32_t kernel, Clock::duration time);
  /// [{"kernel", "hash", "calls", "seconds"}...], the slowest first; kernels that
  /// were never called are left out.
  std::string text() const;

private:
  struct Sum {
    uint64_t calls = 0;
    Clock::duration time{};
  };
  const Executable &executable;
  std::string path;
  std::vector<Sum> sums;
};

} // namespace weft::rt

//===- LateMachine.h - A machine that works as late as it may ---*- C++ -*-===//
#pragma once

#include "test/runtime/train/BigramMachine.h"

#include <cstring>
#include <deque>

namespace weft::rt {

/// The bigram model on a machine beside the host: what is started runs when it is
/// waited for, or when state is read or written, and results are NaN until then.
class LateMachine : public BigramMachine {
public:
  using BigramMachine::BigramMachine;

  absl::StatusOr<uint64_t> start(std::string_view program, std::span<const Tensor> inputs,
                                 std::span<Tensor> results) override {
    for (Tensor &result : results)
      std::memset(result.bytes.data(), 0xFF, result.bytes.size());
    pending.push_back({std::string(program), {inputs.begin(), inputs.end()}, results});
    return started + pending.size();
  }
  absl::Status wait(uint64_t number) override {
    if (pending.empty() || number <= started)
      return absl::OkStatus();
    absl::Status status = runUntil(number);
    dry += pending.empty();
    return status;
  }
  absl::Status run(std::string_view program, std::span<const Tensor> inputs,
                   std::span<Tensor> results) override {
    absl::Status status = runUntil(started + pending.size());
    return status.ok() ? BigramMachine::run(program, inputs, results) : status;
  }
  absl::StatusOr<Tensor> readState(std::string_view name) const override {
    auto *self = const_cast<LateMachine *>(this);
    absl::Status status = self->runUntil(started + pending.size());
    return status.ok() ? BigramMachine::readState(name) : absl::StatusOr<Tensor>(status);
  }
  absl::Status writeState(std::string_view name, const Tensor &value) override {
    absl::Status status = runUntil(started + pending.size());
    return status.ok() ? BigramMachine::writeState(name, value) : status;
  }

  int dry = 0; // waits after which nothing was left to do
  size_t left() const { return pending.size(); }

private:
  struct Started {
    std::string program;
    std::vector<Tensor> inputs;
    std::span<Tensor> results;
  };
  absl::Status runUntil(uint64_t number) {
    for (; !pending.empty() && started < number; ++started) {
      Started first = std::move(pending.front());
      pending.pop_front();
      if (absl::Status status = BigramMachine::run(first.program, first.inputs, first.results); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }
  std::deque<Started> pending;
  uint64_t started = 0; // of those before `pending`
};

} // namespace weft::rt

//===- StateMachine.h - A machine of state alone ----------------*- C++ -*-===//
//
// Holds what controllers read and write: `control/windows/SITE` and
// `control/statistics/SITE`. It runs no program.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/control/WindowControl.h"

#include <map>

namespace weft::rt {

class StateMachine final : public Machine {
public:
  explicit StateMachine(const std::vector<WindowSite> &sites) {
    for (const WindowSite &site : sites) {
      const auto live = static_cast<int64_t>(site.live().size());
      add("control/windows/" + site.path, Tensor(ElementType::I32, {live}));
      add("control/statistics/" + site.path, Tensor(ElementType::F32, {live, kStatisticCount}));
    }
  }
  const Executable &executable() const override { return description; }
  absl::Status run(std::string_view, std::span<const Tensor>, std::span<Tensor>) override {
    return absl::UnimplementedError("no programs");
  }
  absl::StatusOr<Tensor> readState(std::string_view name) const override {
    auto found = state.find(name);
    return found == state.end() ? absl::StatusOr<Tensor>(absl::NotFoundError("no such state"))
                                : found->second;
  }
  absl::Status writeState(std::string_view name, const Tensor &value) override {
    state.find(name)->second = value;
    return absl::OkStatus();
  }
  std::vector<int32_t> windows(const std::string &path) const {
    std::span<const int32_t> all = state.find("control/windows/" + path)->second.as<int32_t>();
    return {all.begin(), all.end()};
  }

private:
  void add(const std::string &name, Tensor value) {
    StateEntry entry;
    entry.name = name;
    entry.role = StateEntry::Role::Control;
    entry.type = value.type;
    entry.shape = value.shape;
    description.states.push_back(entry);
    state[name] = std::move(value);
  }
  Executable description;
  std::map<std::string, Tensor, std::less<>> state;
};

/// A site of `heads` heads with full windows.
inline WindowSite siteOf(const std::string &path, int64_t heads, int64_t kvHeads = 0, int64_t channels = 8) {
  return {path,     heads,    kvHeads ? kvHeads : heads,
          channels, channels, std::vector<int64_t>(static_cast<size_t>(heads), kNoBound),
          {}};
}

/// A statement over all heads of `sites`.
inline WindowRule ruleOf(WindowRule::Kind kind, std::vector<int64_t> windows,
                         const std::vector<WindowSite> &sites) {
  WindowRule rule;
  rule.kind = kind;
  rule.windows = std::move(windows);
  for (const WindowSite &site : sites) {
    rule.heads.emplace_back();
    for (int64_t head = 0; head < site.heads; ++head)
      rule.heads.back().push_back(head);
  }
  return rule;
}

} // namespace weft::rt

//===- WindowControl.h - Windows of a whole model ---------------*- C++ -*-===//
//
// Carries out the `windows` statements of a run: given, listed and drawn
// windows are functions of the step; those of `windows adaptive` come from a
// WindowController for each site. State `control/windows/SITE` always holds the
// windows of the next step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/control/ExecutedWork.h"
#include "runtime/control/WindowController.h"
#include "runtime/train/Control.h"

#include <functional>

namespace weft::rt {

class WindowControl final : public Control {
public:
  explicit WindowControl(WindowPlan plan);

  /// As begin, for looking at windows without a machine.
  absl::Status recall(const ControlState *saved, int64_t step);
  absl::Status begin(Machine &machine, const ControlState *saved, int64_t step) override;
  bool observes(int64_t number) const override;
  int64_t rehearsals(int64_t number) const override;
  absl::Status before(Machine &machine) override;
  absl::Status rehearsed(Machine &machine, int64_t number, int64_t index) override;
  absl::Status look(Machine &machine, int64_t number) override;
  absl::StatusOr<std::string> after(Machine &machine, int64_t number) override;
  double acr() const override;
  /// Allowed pairs over those of full attention, in a row of one document.
  double pairs() const;
  /// What the products of attention really do over what they do with full windows.
  double executedShare() const;
  /// Kernels that executed work is counted for: the CPU's before this.
  using TilesOf = std::function<AttendTiles(int64_t channels, int64_t valueChannels)>;
  void setTiles(TilesOf tiles) { tilesOf = std::move(tiles); }
  /// {"kind":"windows","step","acr","acr_mean","acr_live","pair_ratio","executed_ratio",
  ///  "executed_flops","shares","levels","updates","windows"}: acr of the last step, acr_mean of the steps since the
  /// last line (training ACR), both over all heads; acr_live over those under control;
  /// executed_flops of attention products in one row of one document, forward and backward, by
  /// heads that are neither frozen nor pruned, executed_ratio over those of all heads with
  /// full windows.
  OrderedJson line(int64_t step) override;
  ControlState state() const override;
  std::map<std::string, std::string> files() const override;
  bool live() const override;
  /// Where nothing was decided yet (a checkpoint that was trained without the plan),
  /// evaluations choose windows whatever the statement says.
  void setLive() { alwaysLive = true; }
  std::unique_ptr<Control> copy() const override { return std::make_unique<WindowControl>(*this); }

  /// Windows of step `step` (from 0) by site and head, as decided so far.
  std::vector<std::vector<int64_t>> windowsAt(int64_t step) const;
  /// Those of the next step.
  const std::vector<std::vector<int64_t>> &windows() const { return inForce; }
  const WindowPlan &plan() const { return settings; }

  /// A controller with the features it saw last, by head of its site.
  struct Layer {
    size_t rule, site;
    WindowController controller;
    std::vector<std::optional<Feature>> observed;
  };
  const std::vector<Layer> &layers() const { return controlled; }

private:
  bool due(const WindowRule &rule, int64_t step) const;
  std::vector<size_t> dueLayers(int64_t step, bool same) const;
  std::vector<int64_t> ruleWindows(const WindowRule &rule, size_t ruleNumber, size_t site,
                                   int64_t step) const;
  std::vector<size_t> dueLayers(int64_t step) const;
  absl::Status startReading(Machine &machine, const Layer &layer);
  absl::Status endReading(Machine &machine);
  std::vector<std::optional<Feature>> featuresOf(const Layer &layer) const;
  bool decide(Layer &layer, const std::vector<std::optional<Feature>> &features, int64_t step);
  absl::Status writeWindows(Machine &machine);
  absl::Status restore(const ControlState &saved);
  absl::Status restoreGiven(const ControlState &saved);
  std::string givenName(size_t rule, size_t site) const;
  std::string prefixOf(const Layer &layer) const;
  std::vector<int64_t> flat(bool liveOnly) const;
  std::vector<int64_t> flatPlaces() const;
  double executedFlops(bool full) const;

  WindowPlan settings;
  TilesOf tilesOf;
  std::vector<Layer> controlled;
  std::vector<std::vector<int64_t>> inForce; // by site and head: of the next step
  std::vector<std::vector<int64_t>> written; // what the machine holds, by site
  std::map<size_t, Tensor> sums;             // statistics by site, as they were read or are being read
  std::vector<uint64_t> coming;              // numbers of the latter
  int64_t lookedAt = 0;                      // step that they are of
  double ratio = 0, ratioSum = 0;            // ACR of the last step; sum since the last line
  int64_t ratioSteps = 0;
  bool alwaysLive = false;
};

} // namespace weft::rt

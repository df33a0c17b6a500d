//===- window-driver.cpp - Control updates for another program --*- C++ -*-===//
//
// Reads one JSON object from standard input: sites, statements and statistics
// by step; writes windows, indices and smoothed features after each step.
// test/numpy/window_controller.py computes the same and compares.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/control/StateMachine.h"

#include <iostream>
#include <iterator>

using namespace weft::rt;

namespace {

WindowOptions optionsOf(const Json &json) {
  WindowOptions options;
  options.every = json.value("every", options.every);
  options.applySame = json.value("apply_same", false);
  options.control = json.value("control", true);
  options.start = json.value("start", options.start);
  options.least = json.value("least", options.least);
  options.grouping = static_cast<WindowOptions::Grouping>(json.value("grouping", 0));
  options.topology = static_cast<WindowOptions::Topology>(json.value("topology", 0));
  options.hierarchy = json.value("hierarchy", options.hierarchy);
  options.capped = json.value("capped", true);
  options.keptUpdate = json.value("kept", int64_t{0});
  options.threshold = json.value("threshold", options.threshold);
  options.penalty = json.value("penalty", options.penalty);
  options.featureKeep = json.value("features", options.featureKeep);
  options.joint = json.value("joint", true);
  options.sharedScorers = json.value("shared", false);
  options.baseWidth = json.value("base_width", options.baseWidth);
  options.jointWidth = json.value("joint_width", options.jointWidth);
  options.relu = json.value("relu", false);
  options.clampToParent = json.value("clamp", true);
  options.resolutionKeep = json.value("resolution", options.resolutionKeep);
  options.shuffle = json.value("shuffle", false);
  options.kvGroups = json.value("kv_groups", false);
  if (json.contains("ramp"))
    options.ramp = {json["ramp"][0].get<int64_t>(), json["ramp"][1].get<int64_t>()};
  if (json.contains("passthrough"))
    options.passthrough = json["passthrough"].get<int64_t>();
  return options;
}

WindowPlan planOf(const Json &json) {
  WindowPlan plan;
  plan.positions = json["positions"].get<int64_t>();
  plan.warmupSteps = json["warmup"].get<int64_t>();
  for (const Json &site : json["sites"]) {
    plan.sites.push_back(siteOf(site["path"], site["heads"], site["kv"], site["channels"]));
    plan.sites.back().valueChannels = site["values"];
  }
  for (const Json &statement : json["rules"]) {
    WindowRule rule = ruleOf(WindowRule::Kind::Adaptive, statement["windows"], plan.sites);
    rule.from = statement.value("from", int64_t{0});
    rule.seed = statement["seed"];
    rule.adaptive = optionsOf(statement);
    plan.rules.push_back(std::move(rule));
  }
  return plan;
}

Json layersOf(const WindowControl &control) {
  Json layers = Json::array();
  for (const WindowControl::Layer &layer : control.layers()) {
    const ControllerState &state = layer.controller.state();
    Json smoothed = Json::array();
    for (const std::optional<Feature> &feature : state.smoothed)
      smoothed.push_back(feature ? Json(*feature) : Json());
    layers.push_back({{"index", state.index}, {"smoothed", smoothed}, {"levels", state.levels}});
  }
  return layers;
}

void fill(StateMachine &machine, const Json &statistics) {
  for (const auto &[path, rows] : statistics.items()) {
    Tensor sums = *machine.readState("control/statistics/" + path);
    for (size_t head = 0; head < rows.size(); ++head)
      for (size_t i = 0; i < kStatisticCount; ++i)
        sums.as<float>()[head * kStatisticCount + i] = rows[head][i].get<float>();
    machine.writeState("control/statistics/" + path, sums).IgnoreError();
  }
}

} // namespace

int main() {
  std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  absl::StatusOr<Json> input = parseJson(text, "standard input");
  if (!input.ok()) {
    std::cerr << input.status().message() << "\n";
    return 1;
  }
  WindowPlan plan = planOf(*input);
  StateMachine machine(plan.sites);
  WindowControl control(plan);
  absl::Status status = control.begin(machine, nullptr, 0);
  Json steps = Json::array();
  for (int64_t number = 1; status.ok() && number <= (*input)["steps"].get<int64_t>(); ++number) {
    const bool observes = control.observes(number);
    if (observes) {
      const Json &statistics = (*input)["statistics"][static_cast<size_t>(number - 1)];
      for (int64_t i = 0; i < control.rehearsals(number); ++i) {
        status.Update(control.before(machine));
        fill(machine, statistics);
        status.Update(control.rehearsed(machine, number, i));
      }
      status.Update(control.before(machine));
      fill(machine, statistics);
    }
    status.Update(control.after(machine, number).status());
    steps.push_back(
        {{"observes", observes}, {"windows", control.windowsAt(number)}, {"layers", layersOf(control)}});
  }
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return 1;
  }
  std::cout << dumpJson(Json{{"steps", steps}}) << "\n";
}

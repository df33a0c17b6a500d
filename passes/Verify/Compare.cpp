//===- Compare.cpp - Two observations, and gradients by differences --------===//
#include "passes/Verify/Verify.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace weft {

static std::string placeOf(const Array &array, size_t element) {
  SmallVector<size_t> index(array.shape.size());
  for (size_t axis = array.shape.size(); axis-- > 0;) {
    index[axis] = element % array.shape[axis];
    element /= array.shape[axis];
  }
  std::string text;
  for (size_t i : index)
    text += (text.empty() ? "" : ", ") + std::to_string(i);
  return "[" + text + "]";
}

/// Relative to the greatest number of `before`; NaN agrees with NaN alone.
static Difference differenceOf(const Array &before, const Array &after) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (before.data.size() != after.data.size())
    return {"", "", kInfinity, "another shape"};
  double scale = 0;
  for (double value : before.data)
    if (std::isfinite(value))
      scale = std::max(scale, std::abs(value));
  Difference worst;
  for (size_t i = 0; i < before.data.size(); ++i) {
    double a = before.data[i], b = after.data[i];
    bool equal = a == b || (std::isnan(a) && std::isnan(b));
    double error = equal                                  ? 0
                   : std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) / (scale + 1e-30)
                                                          : kInfinity;
    if (error > worst.error)
      worst = {"", "", error, placeOf(before, i)};
  }
  return worst;
}

namespace {
class Comparison {
public:
  explicit Comparison(int64_t &compared) : compared(compared) {}
  void tensors(const std::string &program, const std::string &result, const Array &before,
               const Array &after) {
    ++compared;
    note(program, result, differenceOf(before, after));
  }
  void note(const std::string &program, const std::string &result, Difference difference) {
    if (difference.error <= worst.error)
      return;
    worst = std::move(difference);
    worst.program = program, worst.result = result;
  }
  /// Whether both ran; a program that stopped running is the worst difference.
  bool ran(const std::string &program, const ProgramResult &before, const ProgramResult &after) {
    if (!before.error.empty())
      return false;
    if (after.error.empty())
      return true;
    note(program, "run", {"", "", std::numeric_limits<double>::infinity(), after.error});
    return false;
  }
  int64_t &compared;
  Difference worst;
};
} // namespace

static void comparePrograms(const std::string &name, const ProgramResult &before, const ProgramResult &after,
                            Comparison &comparison) {
  if (!comparison.ran(name, before, after))
    return;
  for (const auto &[result, array] : before.results)
    if (auto found = after.results.find(result); found != after.results.end())
      comparison.tensors(name, result, array, found->second);
  for (const auto &[entry, array] : before.state)
    if (auto found = after.state.find(entry); found != after.state.end())
      comparison.tensors(name, "state @" + entry, array, found->second);
}

/// @forward against what was made of it: eval and micro give its loss as
/// `loss_sum`, prefill its outputs. A micro with dropout computes another loss on
/// purpose: eval, which is the same without, stands for it.
static void compareForward(const ProgramResult &forward, const Observation &after, Comparison &comparison) {
  for (const std::string name : {"eval", "micro", "prefill"}) {
    auto program = after.find(name);
    if (program == after.end() || !comparison.ran(name, forward, program->second) || program->second.drops)
      continue;
    for (const auto &[result, array] : forward.results) {
      auto found = program->second.results.find(result == "loss" ? "loss_sum" : result);
      if (found != program->second.results.end())
        comparison.tensors(name, found->first, array, found->second);
    }
  }
}

Difference compare(const Observation &before, const Observation &after, int64_t &compared) {
  Comparison comparison(compared);
  for (const auto &[name, result] : before) {
    auto found = after.find(name);
    if (found != after.end())
      comparePrograms(name, result, found->second, comparison);
    else if (name == "forward")
      compareForward(result, after, comparison);
  }
  return comparison.worst;
}

/// The loss of @micro with `parameter` moved by `step` along `direction`.
static double lossAt(Operation *micro, const Inputs &inputs, States state, const std::string &parameter,
                     const std::vector<double> &direction, double step) {
  Array &moved = state.find(parameter)->second;
  for (size_t i = 0; i < direction.size(); ++i)
    moved.data[i] += step * direction[i];
  ProgramResult result = observeProgram(micro, inputs, std::move(state));
  auto loss = result.results.find("loss_sum");
  return loss == result.results.end() ? std::numeric_limits<double>::quiet_NaN() : loss->second.data.front();
}

Difference checkGradients(ModuleOp module, const Inputs &inputs, int64_t &compared) {
  constexpr double kStep = 1e-5;
  Comparison comparison(compared);
  Operation *micro = module.lookupSymbol("micro");
  States start = inputs.state(module);
  if (!micro)
    return {};
  ProgramResult run = observeProgram(micro, inputs, start);
  if (!run.error.empty())
    return {"micro", "run", std::numeric_limits<double>::infinity(), run.error};
  for (const auto &[entry, before] : start) {
    if (!StringRef(entry).starts_with("grad/"))
      continue;
    std::string parameter = entry.substr(5);
    const Array &after = run.state.find(entry)->second;
    std::vector<double> direction =
        drawUniform(1, "verify/direction/" + parameter, before.data.size(), -1, 1);
    double along = 0, size = 0;
    for (size_t i = 0; i < direction.size(); ++i) {
      direction[i] = direction[i] < 0 ? -1 : 1;
      along += direction[i] * (after.data[i] - before.data[i]);
      size += std::abs(after.data[i] - before.data[i]);
    }
    double numeric = (lossAt(micro, inputs, start, parameter, direction, kStep) -
                      lossAt(micro, inputs, start, parameter, direction, -kStep)) /
                     (2 * kStep);
    ++compared;
    double error = std::abs(numeric - along) / (size + 1);
    comparison.note("micro", "state @" + entry,
                    {"", "", std::isfinite(error) ? error : std::numeric_limits<double>::infinity(),
                     "along a random direction"});
  }
  return comparison.worst;
}

} // namespace weft

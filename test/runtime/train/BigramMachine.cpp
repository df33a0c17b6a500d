//===- BigramMachine.cpp - A small model written by hand --------*- C++ -*-===//
#include "test/runtime/train/BigramMachine.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace weft::rt {

double get(const Tensor &tensor, int64_t index) {
  return tensor.type == ElementType::F64 ? tensor.as<double>()[index] : tensor.as<float>()[index];
}

void set(Tensor &tensor, int64_t index, double value) {
  if (tensor.type == ElementType::F64)
    tensor.as<double>()[index] = value;
  else
    tensor.as<float>()[index] = static_cast<float>(value);
}

BigramMachine::BigramMachine(const BigramOptions &options) : options(options) {
  const ElementType type = options.type;
  const int64_t v = options.vocabulary;
  description.model = "bigram";
  description.target = "test";
  description.build = "test";
  auto entry = [&](const char *name, StateEntry::Role role, InitRule init = {}) {
    description.states.push_back({name, role, type, {v, v}, {"vocab", "next"}, 0, init, {}, 0, 0, {}});
  };
  entry("table", StateEntry::Role::Parameter, options.init);
  entry("grad/table", StateEntry::Role::Gradient);
  entry("adamw.m/table", StateEntry::Role::Moment);
  entry("adamw.v/table", StateEntry::Role::Moment);
  description.states.push_back({"cache/seen",
                                StateEntry::Role::Cache,
                                type,
                                {1, options.context},
                                {"batch", "cache"},
                                0,
                                {},
                                {},
                                0,
                                0,
                                {}});
  for (const StateEntry &e : description.states)
    state[e.name] = Tensor(e.type, e.shape);

  const std::vector<int64_t> rows = {options.rows, options.positions};
  const std::vector<Port> batch = {{"tokens", ElementType::I32, rows},
                                   {"targets", ElementType::I32, rows},
                                   {"doc_start", ElementType::I32, rows}};
  const Port sum = {"loss_sum", type, {}};
  description.programs = {
      {"micro", {batch[0], batch[1], batch[2], {"noise", ElementType::I32, {}}}, {sum}, {}},
      {"update", {{"inverse_count", type, {}}, {"hyper.0", type, {3}}}, {{"grad_norm", type, {}}}, {}},
      {"eval", batch, {sum}, {}},
      {"prefill", {batch[0], batch[2]}, {{"logits", type, {options.rows, options.positions, v}}}, {}},
      {"decode",
       {{"tokens", ElementType::I32, {1, 1}},
        {"doc_start", ElementType::I32, {1, 1}},
        {"offset", ElementType::I32, {}}},
       {{"logits", type, {1, 1, v}}},
       {}}};
}

absl::StatusOr<Tensor> BigramMachine::readState(std::string_view name) const {
  if (onRead)
    onRead(name);
  auto found = state.find(name);
  if (found == state.end())
    return absl::NotFoundError(absl::StrCat("no state '", std::string(name), "'"));
  return found->second;
}

absl::Status BigramMachine::writeState(std::string_view name, const Tensor &value) {
  auto found = state.find(name);
  if (found == state.end())
    return absl::NotFoundError(absl::StrCat("no state '", std::string(name), "'"));
  if (found->second.type != value.type || found->second.shape != value.shape)
    return absl::InvalidArgumentError(absl::StrCat("'", std::string(name), "': wrong type or shape"));
  found->second = value;
  return absl::OkStatus();
}

absl::Status BigramMachine::run(std::string_view program, std::span<const Tensor> inputs,
                                std::span<Tensor> results) {
  if (program == "micro") {
    firstTokens.push_back(inputs[0].as<int32_t>()[0]);
    noises.push_back(inputs[3].as<int32_t>()[0]);
    set(results[0], 0, loss(inputs[0], inputs[1], true));
  } else if (program == "eval") {
    set(results[0], 0, loss(inputs[0], inputs[1], false));
  } else if (program == "update") {
    const std::array<double, 3> rates = {get(inputs[1], 0), get(inputs[1], 1), get(inputs[1], 2)};
    inverseCounts.push_back(get(inputs[0], 0));
    hyper.push_back(rates);
    set(results[0], 0, update(inverseCounts.back(), rates));
  } else if (program == "prefill") {
    logits(inputs[0], results[0]);
  } else if (program == "decode") {
    const int32_t offset = inputs[2].as<int32_t>()[0];
    if (offset < 0 || offset >= options.context)
      return absl::InvalidArgumentError(absl::StrCat("offset ", offset, " is outside the cache"));
    set(state["cache/seen"], offset, inputs[0].as<int32_t>()[0]);
    logits(inputs[0], results[0]);
  } else {
    return absl::NotFoundError(absl::StrCat("no program '", std::string(program), "'"));
  }
  return absl::OkStatus();
}

/// d loss / d table[t, :] = softmax(table[t, :]) - one-hot(target).
double BigramMachine::loss(const Tensor &tokens, const Tensor &targets, bool gradients) {
  const Tensor &table = state["table"];
  Tensor &grad = state["grad/table"];
  const int64_t v = options.vocabulary;
  double total = 0;
  for (int64_t i = 0; i < tokens.elements(); ++i) {
    const int64_t token = tokens.as<int32_t>()[i], target = targets.as<int32_t>()[i];
    if (target < 0)
      continue;
    double largest = -HUGE_VAL, sum = 0;
    for (int64_t j = 0; j < v; ++j)
      largest = std::max(largest, get(table, token * v + j));
    for (int64_t j = 0; j < v; ++j)
      sum += std::exp(get(table, token * v + j) - largest);
    total += largest + std::log(sum) - get(table, token * v + target);
    for (int64_t j = 0; gradients && j < v; ++j) {
      const double p = std::exp(get(table, token * v + j) - largest) / sum;
      const double part = token == options.poison ? HUGE_VAL : p - (j == target ? 1 : 0);
      set(grad, token * v + j, get(grad, token * v + j) + part);
    }
  }
  return total;
}

double BigramMachine::update(double inverseCount, std::span<const double> rates) {
  Tensor &table = state["table"], &grad = state["grad/table"];
  Tensor &m = state["adamw.m/table"], &v = state["adamw.v/table"];
  const int64_t n = table.elements();
  double squares = 0;
  for (int64_t i = 0; i < n; ++i)
    squares += std::pow(get(grad, i) * inverseCount, 2);
  const double norm = std::sqrt(squares);
  if (std::isfinite(norm)) {
    const double scale = inverseCount * (options.clip > 0 ? std::min(1.0, options.clip / norm) : 1.0);
    for (int64_t i = 0; i < n; ++i) {
      const double g = get(grad, i) * scale;
      set(m, i, options.beta1 * get(m, i) + (1 - options.beta1) * g);
      set(v, i, options.beta2 * get(v, i) + (1 - options.beta2) * g * g);
      const double step = get(m, i) * rates[1] / (std::sqrt(get(v, i) * rates[2]) + options.eps);
      set(table, i, get(table, i) * (1 - rates[0] * options.decay) - rates[0] * step);
    }
  }
  grad = Tensor(grad.type, grad.shape);
  return norm;
}

void BigramMachine::logits(const Tensor &tokens, Tensor &out) {
  const int64_t v = options.vocabulary;
  for (int64_t i = 0; i < tokens.elements(); ++i)
    for (int64_t j = 0; j < v; ++j)
      set(out, i * v + j, get(state["table"], tokens.as<int32_t>()[i] * v + j));
}

} // namespace weft::rt

//===- Calibrate.cpp - What each head does on calibration rows ------------===//

#include "tools/weft/Calibrate.h"

#include "tools/weft/Projections.h"

#include "runtime/core/Floats.h"
#include "runtime/cuda/StateCopy.h"
#include "runtime/train/Feed.h"
#include "runtime/train/Migrate.h"
#include "runtime/train/State.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <mutex>
#include <thread>

using namespace weft;

namespace {

/// Queries and keys that are kept at a time.
constexpr int64_t kKeptBytes = 512 << 20;

/// Documents of a row with a counted target: slots behind the data have none.
std::vector<std::pair<int64_t, int64_t>> documentsOf(const rt::Batch &batch) {
  std::span<const int32_t> starts = batch.docStart.as<int32_t>(), targets = batch.targets.as<int32_t>();
  std::vector<std::pair<int64_t, int64_t>> found;
  for (size_t begin = 0; begin < starts.size();) {
    size_t end = begin;
    bool counted = false;
    for (; end < starts.size() && starts[end] == starts[begin]; ++end)
      counted |= targets[end] >= 0;
    if (counted)
      found.emplace_back(begin, end - begin);
    begin = end;
  }
  return found;
}

/// The key-value head of a query head among those that are still there.
int64_t keyHeadOf(const lang::HeadSite &site, const std::vector<int64_t> &live, int64_t head,
                  int64_t stored) {
  const int64_t group = site.heads / std::max<int64_t>(site.kvHeads, 1), own = head / group;
  if (stored == site.kvHeads)
    return own;
  std::vector<int64_t> kept;
  for (int64_t other : live)
    if (kept.empty() || kept.back() != other / group)
      kept.push_back(other / group);
  return std::find(kept.begin(), kept.end(), own) - kept.begin();
}

int64_t headsIn(const rt::Tensor &tensor) {
  int64_t heads = 1;
  for (size_t axis = 2; axis + 1 < tensor.shape.size(); ++axis)
    heads *= tensor.shape[axis];
  return heads;
}

} // namespace

Calibrator::Calibrator(const Program &program, const Request &request,
                       const std::vector<lang::HeadSite> &sites, const rt::Machine &trained,
                       const rt::EvalData &rows, int64_t count)
    : program(program), request(request), sites(sites), trained(trained), rows(rows), count(count),
      pool(request.threads > 0 ? request.threads
                               : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))) {}

absl::StatusOr<std::unique_ptr<rt::Machine>> Calibrator::machineWith(const std::string &name,
                                                                     int64_t batch) const {
  PipelineOptions options = shapesOf(*program.recipe);
  options.programs = {name};
  options.batch = batch;
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = makeMachine(program, options, request, {});
  if (!machine.ok())
    return machine.status();
  if (absl::Status status = rt::initializeTables(**machine); !status.ok())
    return status;
  if (absl::Status status = rt::migrateState(trained, **machine, {}, rt::copyStateOnDevice); !status.ok())
    return status;
  return machine;
}

absl::Status Calibrator::readWindows() {
  for (const lang::HeadSite &site : sites) {
    const std::vector<int64_t> live = program.freeze.liveHeads(site.path, site.heads);
    std::vector<int64_t> given = site.windows;
    for (const lang::Plan &plan : program.plans)
      if (auto found = plan.fixedWindows.find(site.path); found != plan.fixedWindows.end())
        given = found->second;
    absl::StatusOr<rt::Tensor> state = trained.readState("control/windows/" + site.path);
    for (size_t n = 0; n < live.size(); ++n) {
      int64_t window = given[static_cast<size_t>(live[n])];
      // State holds all heads of the site, or those that are left.
      if (state.ok())
        window = state->as<int32_t>()[state->elements() == site.heads ? static_cast<size_t>(live[n]) : n];
      windows[{site.path, live[n]}] = std::min(window, rt::kNoWindow);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Calibrator>> Calibrator::make(const Program &program, const Request &request,
                                                             const std::vector<lang::HeadSite> &sites,
                                                             const rt::Machine &trained,
                                                             const rt::EvalData &rows, int64_t count) {
  std::unique_ptr<Calibrator> made(new Calibrator(program, request, sites, trained, rows, count));
  if (absl::Status status = made->readWindows(); !status.ok())
    return status;
  for (int64_t row = 0; row < count; ++row) {
    absl::StatusOr<rt::Batch> batch = rows.at(row);
    if (!batch.ok())
      return batch.status();
    made->documents.push_back(documentsOf(*batch));
  }
  return made;
}

absl::StatusOr<std::vector<Calibrator::Rows>> Calibrator::collect(const std::vector<size_t> &group) {
  if (!forward) {
    absl::StatusOr<std::unique_ptr<rt::Machine>> machine = machineWith("calibrate");
    if (!machine.ok())
      return machine.status();
    forward = std::move(*machine);
  }
  absl::StatusOr<rt::BoundProgram> bound = rt::BoundProgram::bind(*forward, "calibrate");
  if (!bound.ok())
    return bound.status();
  std::vector<Rows> result(group.size());
  for (int64_t row = 0; row < count; ++row) {
    absl::StatusOr<rt::Batch> batch = rows.at(row);
    if (!batch.ok())
      return batch.status();
    if (absl::Status status = rt::setBatch(*bound, *std::move(batch)); !status.ok())
      return status;
    if (absl::Status status = bound->run(); !status.ok())
      return status;
    progress("reading queries and keys", row + 1, count);
    for (size_t n = 0; n < group.size(); ++n)
      for (auto [name, into] :
           {std::pair(".q", &result[n].q), std::pair(".k", &result[n].k), std::pair(".v", &result[n].v)}) {
        absl::StatusOr<const rt::Tensor *> value = bound->result(sites[group[n]].path + name);
        if (!value.ok())
          return value.status();
        into->push_back(rt::asType(**value, rt::ElementType::F32)); // the reference computes in float64
      }
  }
  return result;
}

/// Head `head` of `site`, the place-th live one.
rt::HeadInput Calibrator::inputOf(const lang::HeadSite &site, const Rows &of, int64_t head,
                                  size_t place) const {
  const std::vector<int64_t> live = program.freeze.liveHeads(site.path, site.heads);
  rt::HeadInput input;
  input.channels = of.q[0].shape.back();
  input.window = windows.at({site.path, head});
  input.length = rows.positions();
  const int64_t values = of.v[0].shape.back(), queryStride = headsIn(of.q[0]) * input.channels,
                keyStride = headsIn(of.k[0]) * input.channels, valueStride = headsIn(of.v[0]) * values,
                keyHead = keyHeadOf(site, live, head, headsIn(of.k[0])),
                valueHead = keyHeadOf(site, live, head, headsIn(of.v[0]));
  for (size_t row = 0; row < documents.size(); ++row)
    for (auto [begin, length] : documents[row])
      input.documents.push_back(
          {of.q[row].as<float>().data() + begin * queryStride + static_cast<int64_t>(place) * input.channels,
           of.k[row].as<float>().data() + begin * keyStride + keyHead * input.channels, queryStride,
           keyStride, length, of.v[row].as<float>().data() + begin * valueStride + valueHead * values,
           valueStride});
  return input;
}

void Calibrator::inParallel(int64_t count, const std::function<void(int64_t)> &body) {
  pool.run(count, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      body(i);
  });
}

/// The next sites whose queries, keys and values are kept together.
std::vector<size_t> Calibrator::takeGroup(std::vector<size_t> &left) const {
  std::vector<size_t> group;
  for (int64_t bytes = 0; !left.empty() && (group.empty() || bytes < kKeptBytes); left.pop_back()) {
    const lang::HeadSite &site = sites[left.back()];
    bytes += 4 * count * rows.positions() * site.channels * (site.heads + 2 * site.kvHeads);
    group.push_back(left.back());
  }
  return group;
}

absl::Status Calibrator::forEachHead(const std::function<bool(const HeadName &)> &wanted, const Body &body) {
  std::vector<size_t> left;
  for (size_t n = 0; n < sites.size(); ++n)
    for (int64_t head : program.freeze.liveHeads(sites[n].path, sites[n].heads))
      if (wanted({sites[n].path, head})) {
        left.push_back(n);
        break;
      }
  while (!left.empty()) {
    const std::vector<size_t> group = takeGroup(left);
    absl::StatusOr<std::vector<Rows>> collected = collect(group);
    if (!collected.ok())
      return collected.status();
    std::vector<std::pair<HeadName, rt::HeadInput>> inputs;
    for (size_t n = 0; n < group.size(); ++n) {
      const lang::HeadSite &site = sites[group[n]];
      const std::vector<int64_t> live = program.freeze.liveHeads(site.path, site.heads);
      for (size_t place = 0; place < live.size(); ++place)
        if (wanted({site.path, live[place]}))
          inputs.emplace_back(HeadName{site.path, live[place]},
                              inputOf(site, (*collected)[n], live[place], place));
    }
    inParallel(static_cast<int64_t>(inputs.size()), [&](int64_t i) {
      body(inputs[static_cast<size_t>(i)].first, inputs[static_cast<size_t>(i)].second);
    });
  }
  return absl::OkStatus();
}

namespace {

/// Squared norms of the slices of a gradient along some of its axes.
std::vector<double> squaresBySlice(const rt::Tensor &gradient, const Projection &projection) {
  size_t slices = 1, inner = 1;
  const auto first = static_cast<size_t>(projection.firstAxis),
             last = first + static_cast<size_t>(projection.axisCount);
  for (size_t axis = first; axis < last; ++axis)
    slices *= static_cast<size_t>(gradient.shape[axis]);
  for (size_t axis = last; axis < gradient.shape.size(); ++axis)
    inner *= static_cast<size_t>(gradient.shape[axis]);
  std::vector<double> squares(slices);
  auto sum = [&](auto numbers) {
    for (size_t i = 0; i < numbers.size(); i += inner)
      for (const auto number : numbers.subspan(i, inner))
        squares[i / inner % slices] += static_cast<double>(number) * static_cast<double>(number);
  };
  if (gradient.type == rt::ElementType::F64)
    sum(gradient.as<double>());
  else
    sum(gradient.as<float>());
  return squares;
}

/// |sum over positions and channels of out dout| of each head, from sums over positions.
std::vector<double> gatesOf(const rt::Tensor &gate) {
  const int64_t channels = gate.shape.back();
  std::vector<double> sums(static_cast<size_t>(gate.elements() / channels));
  for (int64_t i = 0; i < gate.elements(); ++i)
    sums[static_cast<size_t>(i / channels)] += rt::floatAt(gate, i);
  for (double &sum : sums)
    sum = std::abs(sum);
  return sums;
}

} // namespace

absl::StatusOr<std::map<HeadName, Calibrator::Gradients>> Calibrator::gradients() {
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = machineWith("calibrate_gradient");
  if (!machine.ok())
    return machine.status();
  absl::StatusOr<rt::BoundProgram> bound = rt::BoundProgram::bind(**machine, "calibrate_gradient");
  if (!bound.ok())
    return bound.status();
  absl::StatusOr<std::map<std::string, SiteProjections>> projections = projectionsOf(program);
  if (!projections.ok())
    return projections.status();
  std::map<HeadName, Gradients> result;
  for (int64_t row = 0; row < count; ++row) {
    absl::StatusOr<rt::Batch> batch = rows.at(row);
    if (!batch.ok())
      return batch.status();
    const auto targets = static_cast<double>(std::max<int64_t>(batch->counted, 1));
    if (absl::StatusOr<double> loss = rt::runOnBatch(*bound, *std::move(batch)); !loss.ok())
      return loss.status();
    progress("taking gradients", row + 1, count);
    std::map<std::string, rt::Tensor> read; // zeros, for the next row
    for (const lang::HeadSite &site : sites) {
      const std::vector<int64_t> live = program.freeze.liveHeads(site.path, site.heads);
      absl::StatusOr<const rt::Tensor *> gate = bound->result(site.path + ".gate");
      if (live.empty() || !gate.ok())
        continue; // no live head, or nothing of the loss goes through it
      const std::vector<double> gates = gatesOf(**gate);
      for (size_t n = 0; n < live.size(); ++n)
        result[{site.path, live[n]}].gateTaylor += gates[n] / targets / static_cast<double>(count);
      for (const auto &[list, isKey] : {std::pair(&(*projections)[site.path].query, false),
                                        std::pair(&(*projections)[site.path].key, true)})
        for (const Projection &projection : *list) {
          absl::StatusOr<rt::Tensor> gradient = (*machine)->readState("grad/" + projection.parameter);
          if (!gradient.ok())
            continue; // not trained
          read.try_emplace("grad/" + projection.parameter, gradient->type, gradient->shape);
          const std::vector<double> squares = squaresBySlice(*gradient, projection);
          const auto slices = static_cast<int64_t>(squares.size());
          for (size_t n = 0; n < live.size(); ++n) {
            const size_t slice = isKey ? static_cast<size_t>(keyHeadOf(site, live, live[n], slices)) : n;
            const double shared = isKey ? static_cast<double>(site.heads / site.kvHeads) : 1;
            result[{site.path, live[n]}].qkGradient +=
                squares[slice] / shared / (targets * targets) / static_cast<double>(count);
          }
        }
    }
    for (const auto &[name, zeros] : read)
      if (absl::Status status = (*machine)->writeState(name, zeros); !status.ok())
        return status;
  }
  for (auto &[head, gradients] : result)
    gradients.qkGradient = std::sqrt(gradients.qkGradient);
  return result;
}

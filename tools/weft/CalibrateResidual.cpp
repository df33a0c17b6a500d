//===- CalibrateResidual.cpp - How far a head's mean moves the stream ------===//

#include "tools/weft/Calibrate.h"

#include "runtime/core/Floats.h"
#include "runtime/train/Feed.h"

#include <cmath>
#include <cstring>

using namespace weft;

namespace {

/// Cosine of two rows of floats.
double cosineOf(std::span<const float> a, std::span<const float> b) {
  double product = 0, left = 0, right = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    left += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    right += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return left > 0 && right > 0 ? product / std::sqrt(left * right) : 1;
}

} // namespace

/// By row, the outputs of all live heads on their means; what lies behind the data is 0.
std::vector<rt::Tensor> Calibrator::meanOutputsOf(const lang::HeadSite &site, const Rows &of) {
  const std::vector<int64_t> live = program.freeze.liveHeads(site.path, site.heads);
  const int64_t channels = of.v[0].shape.back(), stride = static_cast<int64_t>(live.size()) * channels;
  std::vector<rt::Tensor> means(of.q.size(), rt::Tensor(rt::ElementType::F32, {rows.positions(), stride}));
  pool.run(static_cast<int64_t>(live.size()), [&](int64_t begin, int64_t end, int) {
    for (auto place = static_cast<size_t>(begin); place < static_cast<size_t>(end); ++place) {
      std::vector<std::vector<float>> outputs =
          rt::meanOutputs(inputOf(site, of, live[place], place), channels);
      size_t document = 0;
      for (size_t row = 0; row < documents.size(); ++row)
        for (auto [first, length] : documents[row]) {
          for (int64_t i = 0; i < length; ++i)
            std::memcpy(
                means[row].as<float>().data() + (first + i) * stride + static_cast<int64_t>(place) * channels,
                outputs[document].data() + i * channels, static_cast<size_t>(channels) * sizeof(float));
          ++document;
        }
    }
  });
  return means;
}

/// One row: each head of every site in turn on its mean, one of each site at a time.
absl::Status Calibrator::compareStreams(rt::BoundProgram &branch, const std::vector<size_t> &group,
                                        const std::vector<std::vector<rt::Tensor>> &means, int64_t row,
                                        std::map<HeadName, double> &cosines) {
  size_t most = 0;
  for (size_t n : group)
    most = std::max(most, program.freeze.liveHeads(sites[n].path, sites[n].heads).size());
  if (absl::Status status = branch.run(); !status.ok()) // for the outputs as they are
    return status;
  std::vector<rt::Tensor> own;
  rt::ElementType type = rt::ElementType::F32; // of the machine: the reference computes in float64
  for (size_t n : group) {
    absl::StatusOr<const rt::Tensor *> out = branch.result(sites[n].path + ".out");
    if (!out.ok())
      return out.status();
    type = (*out)->type;
    own.push_back(rt::asType(**out, rt::ElementType::F32));
  }
  for (size_t place = 0; place < most; ++place) {
    for (size_t n = 0; n < group.size(); ++n) {
      rt::Tensor mixed = own[n];
      const size_t channels = static_cast<size_t>(mixed.shape.back()),
                   stride = static_cast<size_t>(mixed.elements() / rows.positions());
      for (size_t at = place * channels; place < stride / channels && at < mixed.as<float>().size();
           at += stride)
        std::copy_n(means[n][static_cast<size_t>(row)].as<float>().begin() + static_cast<std::ptrdiff_t>(at),
                    channels, mixed.as<float>().begin() + static_cast<std::ptrdiff_t>(at));
      if (absl::Status status = branch.setInput(sites[group[n]].path + ".mixed", rt::asType(mixed, type));
          !status.ok())
        return status;
    }
    if (absl::Status status = branch.run(); !status.ok())
      return status;
    for (size_t n : group) {
      const std::vector<int64_t> live = program.freeze.liveHeads(sites[n].path, sites[n].heads);
      absl::StatusOr<const rt::Tensor *> stream = branch.result(sites[n].path + ".stream"),
                                         replaced = branch.result(sites[n].path + ".replaced");
      if (!stream.ok() || !replaced.ok())
        return stream.ok() ? replaced.status() : stream.status();
      if (place >= live.size())
        continue;
      const auto width = static_cast<size_t>((*stream)->shape.back());
      const rt::Tensor kept = rt::asType(**stream, rt::ElementType::F32),
                       moved = rt::asType(**replaced, rt::ElementType::F32);
      for (auto [first, length] : documents[static_cast<size_t>(row)])
        for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(first + length); ++i)
          cosines[{sites[n].path, live[place]}] += cosineOf(kept.as<float>().subspan(i * width, width),
                                                            moved.as<float>().subspan(i * width, width));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<HeadName, double>> Calibrator::residualCosines() {
  absl::StatusOr<std::unique_ptr<rt::Machine>> machine = machineWith("calibrate_branch");
  if (!machine.ok())
    return machine.status();
  absl::StatusOr<rt::BoundProgram> branch = rt::BoundProgram::bind(**machine, "calibrate_branch");
  if (!branch.ok())
    return branch.status();
  std::vector<size_t> left;
  for (size_t n = 0; n < sites.size(); ++n)
    if (!program.freeze.liveHeads(sites[n].path, sites[n].heads).empty())
      left.push_back(n);
  int64_t tokens = 0;
  for (const auto &row : documents)
    for (auto [begin, length] : row)
      tokens += length;
  std::map<HeadName, double> result;
  while (!left.empty()) {
    const std::vector<size_t> group = takeGroup(left);
    std::vector<std::vector<rt::Tensor>> means;
    {
      absl::StatusOr<std::vector<Rows>> collected = collect(group);
      if (!collected.ok())
        return collected.status();
      for (size_t n = 0; n < group.size(); ++n)
        means.push_back(meanOutputsOf(sites[group[n]], (*collected)[n]));
    }
    for (int64_t row = 0; row < count; ++row) {
      absl::StatusOr<rt::Batch> batch = rows.at(row);
      if (!batch.ok())
        return batch.status();
      if (absl::Status status = rt::setBatch(*branch, *std::move(batch)); !status.ok())
        return status;
      if (absl::Status status = compareStreams(*branch, group, means, row, result); !status.ok())
        return status;
      progress("comparing streams", row + 1, count);
    }
  }
  for (auto &[head, cosine] : result)
    cosine = 1 - cosine / static_cast<double>(tokens);
  return result;
}

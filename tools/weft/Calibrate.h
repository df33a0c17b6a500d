//===- Calibrate.h - What each head does on calibration rows -----*- C++ -*-===//
//
// Runs programs of the model as it stands over calibration rows, in evaluation mode
// and with the windows in force. `calibrate_statistics` takes all rows at once and
// sums up what each head does where the model runs; the others take one sequence at
// a time, and `calibrate` hands every head's queries and keys on to the host.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/weft/Session.h"

#include "runtime/control/PatternStatistics.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/data/Batches.h"
#include "runtime/train/BoundProgram.h"

#include <functional>
#include <optional>

namespace weft {

/// A query head: its site's path and its place there.
using HeadName = std::pair<std::string, int64_t>;

class Calibrator {
public:
  /// `trained` holds the weights; `program.freeze` says which heads it lacks.
  /// The first `count` rows of `rows` are used; all must outlive this.
  static absl::StatusOr<std::unique_ptr<Calibrator>> make(const Program &program, const Request &request,
                                                          const std::vector<lang::HeadSite> &sites,
                                                          const rt::Machine &trained,
                                                          const rt::EvalData &rows, int64_t count);

  /// Tells what is done, out of how much. Called by the thread that asked.
  using Progress = std::function<void(const std::string &stage, int64_t done, int64_t all)>;
  Progress progress = [](const std::string &, int64_t, int64_t) {};

  /// Compiles what the next two run. They do where it was not called.
  absl::Status bindStatistics();

  /// What each live head does (all but `sharp`): rt::headStatistics, summed by the
  /// program, in its precision.
  absl::StatusOr<std::map<HeadName, rt::HeadStatistics>> statistics();
  /// Distances of the attention of heads to these patterns: rt::distancesTo.
  absl::StatusOr<std::map<HeadName, rt::PatternDistances>>
  distances(const std::map<HeadName, rt::Pattern> &patterns);

  /// Calls `body` for each of these, from several threads.
  void inParallel(int64_t count, const std::function<void(int64_t)> &body);

  /// Calls `body` for each wanted live head, from several threads.
  using Body = std::function<void(const HeadName &, const rt::HeadInput &)>;
  absl::Status forEachHead(const std::function<bool(const HeadName &)> &wanted, const Body &body);

  /// gate_taylor: mean over rows of |sum over positions and channels of o dL/do|.
  /// qk_gradient: root of the mean over rows of |dL/dWq|^2 + |dL/dWk|^2 / heads
  /// of the key head, of the head's slices. L: mean loss of a row.
  struct Gradients {
    double gateTaylor = 0, qkGradient = 0;
  };
  absl::StatusOr<std::map<HeadName, Gradients>> gradients();

  /// residual_cosine: 1 - mean over tokens of the cosine between the stream behind
  /// the branch and the same with only this head on its mean pattern.
  absl::StatusOr<std::map<HeadName, double>> residualCosines();

  /// The window in force of a live head.
  int64_t windowOf(const HeadName &head) const { return windows.at(head); }

private:
  Calibrator(const Program &program, const Request &request, const std::vector<lang::HeadSite> &sites,
             const rt::Machine &trained, const rt::EvalData &rows, int64_t count);

  absl::StatusOr<std::unique_ptr<rt::Machine>> machineWith(const std::string &name, int64_t batch = 1) const;
  absl::Status setPatterns(const lang::HeadSite &site, const std::map<HeadName, rt::Pattern> &patterns);
  /// Runs `calibrate_statistics`; `visit` gets each live head and its results.
  struct HeadSums {
    std::vector<double> columns, diagonals, sums;
  };
  absl::Status sumUp(const std::map<HeadName, rt::Pattern> &patterns,
                     const std::function<void(const HeadName &, const HeadSums &)> &visit);
  absl::Status readWindows();
  /// Of one site, by row: [1, positions, heads..., channels].
  struct Rows {
    std::vector<rt::Tensor> q, k, v;
  };
  absl::StatusOr<std::vector<Rows>> collect(const std::vector<size_t> &group);
  rt::HeadInput inputOf(const lang::HeadSite &site, const Rows &rows, int64_t head, size_t place) const;
  std::vector<size_t> takeGroup(std::vector<size_t> &left) const;
  std::vector<rt::Tensor> meanOutputsOf(const lang::HeadSite &site, const Rows &rows);
  absl::Status compareStreams(rt::BoundProgram &branch, const std::vector<size_t> &group,
                              const std::vector<std::vector<rt::Tensor>> &means, int64_t row,
                              std::map<HeadName, double> &cosines);

  const Program &program;
  const Request &request;
  const std::vector<lang::HeadSite> &sites;
  const rt::Machine &trained;
  const rt::EvalData &rows;
  int64_t count;
  std::unique_ptr<rt::Machine> forward, summing;
  std::optional<rt::BoundProgram> summed; // calibrate_statistics of `summing`
  std::vector<double> reach;              // documents that have a row i
  rt::ThreadPool pool;
  std::map<HeadName, int64_t> windows;
  std::vector<std::vector<std::pair<int64_t, int64_t>>> documents; // by row: start, length
};

} // namespace weft

//===- Products.h - Products of matrices by cuBLASLt ------------*- C++ -*-===//
//
// cuBLASLt counts columns first: a row-major C = A B is C^T = B^T A^T to it, so
// that A and B change places and no layout is turned. Sums are kept in fp32 (fp32
// operands too: never TF32), a split sum is added up in fp32, in a fixed order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/cuda/Gpu.h"

#include <algorithm>
#include <map>
#include <optional>

namespace weft::rt::cuda {

class Choices;
class Tuner;

/// cuBLASLt's functions, named as they are without the prefix.
struct LtLibrary {
  int (*create)(LtHandle *handle);
  int (*destroy)(LtHandle handle);
  const char *(*statusName)(int status);
  size_t (*version)();
  int (*productCreate)(LtProduct *product, int computeType, int scaleType);
  int (*productDestroy)(LtProduct product);
  int (*productSet)(LtProduct product, LtProductAttribute attribute, const void *value, size_t bytes);
  int (*layoutCreate)(LtLayout *layout, int type, uint64_t rows, uint64_t columns, int64_t ld);
  int (*layoutDestroy)(LtLayout layout);
  int (*layoutSet)(LtLayout layout, LtLayoutAttribute attribute, const void *value, size_t bytes);
  int (*preferenceCreate)(LtPreference *preference);
  int (*preferenceDestroy)(LtPreference preference);
  int (*preferenceSet)(LtPreference preference, LtPreferenceAttribute attribute, const void *value,
                       size_t bytes);
  int (*heuristic)(LtHandle handle, LtProduct product, LtLayout a, LtLayout b, LtLayout c, LtLayout d,
                   LtPreference preference, int asked, LtHeuristic *results, int *found);
  int (*product)(LtHandle handle, LtProduct product, const void *alpha, const void *a, LtLayout aLayout,
                 const void *b, LtLayout bLayout, const void *beta, const void *c, LtLayout cLayout, void *d,
                 LtLayout dLayout, const LtAlgorithm *algorithm, void *workspace, size_t workspaceBytes,
                 Stream stream);
};

/// Loaded once. Errors: NotFound, FailedPrecondition.
absl::StatusOr<const LtLibrary *> ltLibrary();

/// The products of one machine. Each is prepared once, for its addresses, with
/// the first algorithm that cuBLASLt proposes; `tune` looks for a faster one.
class Products {
public:
  static constexpr uint64_t kMostBytes = 32 << 20; // that one product may use
  static constexpr uint64_t kPlaces = 4;           // products in turn use: neighbours may run at once
  /// A product that asks for no more counts its tiles there, from 0: it has a place of its own (the
  /// first kCounters have), so that one fill clears all before a graph. cuBLASLt takes no workspace
  /// that does not start at a multiple of 256 bytes.
  static constexpr uint64_t kCounterBytes = 256, kCounters = 8192;
  static constexpr uint64_t kWorkspaceBytes = kPlaces * kMostBytes + kCounters * kCounterBytes;
  static constexpr double kLargeOperations = 4e9;

  explicit Products(Gpu &gpu) : gpu(gpu) {}
  ~Products();
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;

  /// `workspace`: kWorkspaceBytes of device memory. Errors: NotFound,
  /// FailedPrecondition.
  absl::Status start(DevicePointer workspace);
  /// A product of `kernel.gemm` on operands in its order (runtime/Executable.h);
  /// returns its number. Errors: InvalidArgument names the kernel, its sizes and types.
  absl::StatusOr<size_t> prepare(const Kernel &kernel, const std::vector<DevicePointer> &operands);
  /// Takes the fastest of what cuBLASLt proposes for each large product, of those
  /// that give the first proposal's bits (Tune.cpp). `memory` holds nothing; large
  /// is what takes `operations` or more: below that a launch costs as much. What was
  /// found is kept in `folder` (Choices.h) and not timed again. Answers a remark on
  /// what is kept there, or nothing.
  absl::StatusOr<std::string> tune(DevicePointer memory, uint64_t bytes, const std::string &folder,
                                   double operations = kLargeOperations);
  /// Starts it on the stream. Errors: Internal.
  absl::Status launch(size_t number, std::string_view name);
  /// What product `number` writes besides its result; nothing: begin = end.
  std::pair<DevicePointer, DevicePointer> workspaceOf(size_t number) const {
    DevicePointer begin = products[number].place();
    return {begin, begin + products[number].workspaceBytes};
  }
  /// The places of the counters of all that is prepared.
  std::pair<DevicePointer, DevicePointer> counters() const {
    DevicePointer begin = workspace + kPlaces * kMostBytes;
    return {begin, begin + std::min<uint64_t>(products.size(), kCounters) * kCounterBytes};
  }

private:
  struct Prepared {
    LtProduct product = nullptr;
    LtLayout a = nullptr, b = nullptr, c = nullptr;
    LtAlgorithm algorithm{};
    size_t workspaceBytes = 0;
    DevicePointer workspace = 0, counter = 0; // for much; for little, if there is one
    DevicePointer left = 0, right = 0, added = 0, out = 0;
    float beta = 0;
    Gemm gemm;
    DevicePointer auxiliary = 0;
    const std::vector<LtHeuristic> *proposals = nullptr;
    const std::string *problem = nullptr; // their key
    DevicePointer place() const { return counter && workspaceBytes <= kCounterBytes ? counter : workspace; }
  };
  int describe(Prepared &prepared) const;
  int choose(Prepared &prepared);
  int propose(const Prepared &prepared, std::vector<LtHeuristic> &proposals) const;
  std::string identity() const;
  absl::Status tune(Tuner &tuner, Choices &choices, double operations);
  absl::StatusOr<std::optional<size_t>> fastest(Tuner &tuner, const Prepared &prepared);
  absl::Status submit(const Prepared &prepared, std::string_view name);

  Gpu &gpu;
  const LtLibrary *lt = nullptr;
  LtHandle handle = nullptr;
  DevicePointer workspace = 0;
  std::vector<Prepared> products;
  std::map<std::string, std::vector<LtHeuristic>> known; // by sizes, types and alignments
};

} // namespace weft::rt::cuda

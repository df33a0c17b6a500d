//===- Tune.cpp - Which algorithm of cuBLASLt takes a product -------------===//
//
// cuBLASLt proposes several algorithms and guesses which is fastest. They are timed
// once, on numbers of no meaning, and the fastest is taken of those whose result has
// the bits of the first proposal's: a choice, which noise in times may turn, changes
// no result. Algorithms that split the sum elsewhere give other bits and drop out.
// Choices are kept on disk (Choices.h).
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Products.h"

#include "runtime/core/ExecutableCheck.h"
#include "runtime/core/Philox.h"
#include "runtime/cuda/Choices.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace weft::rt::cuda {
namespace {

constexpr double kFaster = 0.97; // of the first proposal's time: less is noise
constexpr int kRepeats = 3;
constexpr uint64_t kAlignment = 256, kPatternBytes = 1 << 20;

/// Stores 1 at `flag` where a word of `a` is none of `b`.
constexpr const char *kDiffer = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry weft_differ(.param .u64 a, .param .u64 b, .param .u64 words, .param .u64 flag)
{
  .reg .b32 %r<8>;
  .reg .b64 %d<10>;
  .reg .pred %p<3>;
  ld.param.u64 %d1, [a];
  ld.param.u64 %d2, [b];
  ld.param.u64 %d3, [words];
  ld.param.u64 %d4, [flag];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mad.wide.u32 %d5, %r1, %r2, 0;
  cvt.u64.u32 %d6, %r3;
  add.u64 %d5, %d5, %d6;
  mul.wide.u32 %d6, %r4, %r2;
next:
  setp.ge.u64 %p1, %d5, %d3;
  @%p1 bra done;
  shl.b64 %d7, %d5, 2;
  add.u64 %d8, %d1, %d7;
  add.u64 %d9, %d2, %d7;
  ld.global.u32 %r5, [%d8];
  ld.global.u32 %r6, [%d9];
  add.u64 %d5, %d5, %d6;
  setp.eq.u32 %p2, %r5, %r6;
  @%p2 bra next;
  mov.u32 %r7, 1;
  st.global.u32 [%d4], %r7;
  bra next;
done:
  ret;
}
)";

uint64_t alignUp(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Pairs of bf16 in about [-1, 1], which are such numbers in f32 too.
std::vector<uint16_t> pattern() {
  std::vector<uint16_t> numbers(kPatternBytes / 2);
  Philox philox(0, "tune");
  for (size_t i = 0; i < numbers.size(); ++i) {
    auto bits = static_cast<uint32_t>(philox.bits(i));
    // The sign, an exponent of 2^-4 to 2^-1, all of the mantissa.
    numbers[i] = static_cast<uint16_t>((bits & 0x8000) | (0x3D80 + (bits & 0x180)) | (bits & 0x7F));
  }
  return numbers;
}

} // namespace

/// The device's side of tuning: operands in memory that holds nothing.
class Tuner {
public:
  Tuner(Gpu &gpu, DevicePointer memory, uint64_t bytes) : gpu(gpu), memory(memory), end(memory + bytes) {}
  ~Tuner() {
    for (Event event : {start, stop})
      if (event)
        gpu.driver.eventDestroy(event);
    if (module)
      gpu.driver.moduleUnload(module);
  }
  Tuner(const Tuner &) = delete;
  Tuner &operator=(const Tuner &) = delete;

  absl::Status open();
  /// Room for these after each other, or none.
  std::optional<std::vector<DevicePointer>> place(const std::vector<uint64_t> &sizes) const;
  absl::Status fill(DevicePointer to, uint64_t bytes);
  absl::StatusOr<double> milliseconds(int repeats, const std::function<absl::Status()> &run);
  absl::StatusOr<bool> differ(DevicePointer a, DevicePointer b, uint64_t bytes);

private:
  Gpu &gpu;
  DevicePointer memory, end;
  DevicePointer flag = 0;
  Module module = nullptr;
  Function function = nullptr;
  Event start = nullptr, stop = nullptr;
};

absl::Status Tuner::open() {
  std::vector<uint16_t> numbers = pattern();
  flag = memory + kPatternBytes;
  absl::Status status = gpu.copyIn(memory, numbers.data(), kPatternBytes);
  for (Event *event : {&start, &stop})
    if (status.ok())
      status = gpu.checked(gpu.driver.eventCreate(event, 0), "cuEventCreate");
  if (status.ok())
    status = gpu.checked(gpu.driver.moduleLoadData(&module, kDiffer), "loading a comparison of results");
  if (status.ok())
    status = gpu.checked(gpu.driver.moduleGetFunction(&function, module, "weft_differ"), "weft_differ");
  return status;
}

std::optional<std::vector<DevicePointer>> Tuner::place(const std::vector<uint64_t> &sizes) const {
  std::vector<DevicePointer> places;
  DevicePointer next = flag + kAlignment;
  for (uint64_t size : sizes) {
    places.push_back(next);
    next += alignUp(size);
  }
  return next <= end ? std::optional(places) : std::nullopt;
}

absl::Status Tuner::fill(DevicePointer to, uint64_t bytes) {
  absl::Status status;
  for (uint64_t done = 0; status.ok() && done < bytes; done += kPatternBytes)
    status = gpu.checked(
        gpu.driver.memcpyDtoDAsync(to + done, memory, std::min(kPatternBytes, bytes - done), gpu.stream),
        "filling operands");
  return status;
}

absl::StatusOr<double> Tuner::milliseconds(int repeats, const std::function<absl::Status()> &run) {
  absl::Status status = run();
  if (status.ok())
    status = gpu.checked(gpu.driver.eventRecord(start, gpu.stream), "cuEventRecord");
  for (int i = 0; status.ok() && i < repeats; ++i)
    status = run();
  if (status.ok())
    status = gpu.checked(gpu.driver.eventRecord(stop, gpu.stream), "cuEventRecord");
  if (status.ok())
    status = gpu.wait("timing a product");
  float time = 0;
  if (status.ok())
    status = gpu.checked(gpu.driver.eventElapsedTime(&time, start, stop), "cuEventElapsedTime");
  if (!status.ok())
    return status;
  return double{time} / repeats;
}

absl::StatusOr<bool> Tuner::differ(DevicePointer a, DevicePointer b, uint64_t bytes) {
  constexpr unsigned kThreads = 256, kBlocks = 8;
  uint64_t words = bytes / 4;
  uint32_t found = 0;
  void *parameters[] = {&a, &b, &words, &flag};
  absl::Status status = gpu.fill(flag, sizeof(found), 0);
  if (status.ok())
    status = gpu.checked(gpu.driver.launchKernel(function,
                                                 kBlocks * static_cast<unsigned>(gpu.facts.multiprocessors),
                                                 1, 1, kThreads, 1, 1, 0, gpu.stream, parameters, nullptr),
                         "comparing results");
  if (status.ok())
    status = gpu.copyOut(&found, flag, sizeof(found));
  if (!status.ok())
    return status;
  return found != 0;
}

/// The fastest of the proposals whose result has the first one's bits, by number; none
/// where nothing could be timed.
/// Operands of one product: left, right, added, out, out of the first proposal.
absl::StatusOr<std::optional<size_t>> Products::fastest(Tuner &tuner, const Prepared &prepared) {
  const std::vector<LtHeuristic> &proposals = *prepared.proposals;
  std::vector<uint64_t> bytes;
  for (int operand : {1, 0, 2, 2, 2, 2})
    bytes.push_back(gemmOperandBytes(prepared.gemm, operand).value_or(UINT64_MAX / 16));
  auto places = tuner.place(bytes);
  if (!places)
    return std::nullopt;
  DevicePointer left = (*places)[0], right = (*places)[1], added = (*places)[2], reference = (*places)[4];
  absl::Status status = tuner.fill(left, places->back() + bytes.back() - left);
  bool auxiliary = prepared.gemm.epilogue != Gemm::Epilogue::None;
  auto readAt = [&](DevicePointer address) {
    return auxiliary ? lt->productSet(prepared.product, kLtAuxPointer, &address, sizeof(address)) : 0;
  };
  if (readAt((*places)[5]))
    return std::nullopt;
  absl::Cleanup restore = [&] { readAt(prepared.auxiliary); };
  Prepared trial = prepared;
  trial.left = left, trial.right = right, trial.added = added;
  auto run = [&](const LtHeuristic &proposal, DevicePointer out) {
    trial.algorithm = proposal.algorithm, trial.workspaceBytes = proposal.workspaceBytes, trial.out = out;
    return submit(trial, "being tuned");
  };
  if (status.ok())
    status = run(proposals[0], reference);
  if (!status.ok())
    return status;
  std::vector<std::pair<double, size_t>> times;
  for (size_t i = 0; i < proposals.size(); ++i) {
    if (!run(proposals[i], (*places)[3]).ok())
      continue;
    absl::StatusOr<double> time =
        tuner.milliseconds(kRepeats, [&] { return run(proposals[i], (*places)[3]); });
    if (!time.ok())
      return time.status();
    times.emplace_back(*time, i);
  }
  if (times.empty() || times[0].second != 0)
    return std::nullopt;
  double bound = kFaster * times[0].first;
  std::sort(times.begin(), times.end());
  for (auto [time, number] : times) {
    if (number == 0 || time > bound)
      break;
    if (status = run(proposals[number], (*places)[3]); !status.ok())
      return status;
    absl::StatusOr<bool> differ = tuner.differ((*places)[3], reference, bytes.back());
    if (!differ.ok())
      return differ.status();
    if (!*differ)
      return number;
  }
  return 0;
}

/// What a choice depends on besides the product.
std::string Products::identity() const {
  return absl::StrCat(gpu.facts.name, ", ", gpu.facts.chip, ", ", gpu.facts.multiprocessors,
                      " multiprocessors, driver ", gpu.driver.version, ", cuBLASLt ", lt->version());
}

absl::Status Products::tune(Tuner &tuner, Choices &choices, double operations) {
  bool isOpen = false;
  std::map<const std::string *, size_t> chosen; // by problem
  for (Prepared &prepared : products) {
    const Gemm &gemm = prepared.gemm;
    double work = 2.0 * static_cast<double>(gemm.m * gemm.n) * static_cast<double>(gemm.k * gemm.batch);
    if (work < operations || prepared.proposals->size() < 2)
      continue;
    auto [entry, isNew] = chosen.try_emplace(prepared.problem, 0);
    std::optional<size_t> kept =
        isNew ? choices.find(*prepared.problem, *prepared.proposals) : std::optional(entry->second);
    if (!kept) {
      if (absl::Status status = isOpen ? absl::OkStatus() : tuner.open(); !status.ok())
        return status;
      isOpen = true;
      absl::StatusOr<std::optional<size_t>> best = fastest(tuner, prepared);
      if (!best.ok())
        return best.status();
      if (best->has_value())
        choices.keep(*prepared.problem, *prepared.proposals, **best);
      kept = best->value_or(0);
    }
    entry->second = *kept;
    const LtHeuristic &best = (*prepared.proposals)[*kept];
    prepared.algorithm = best.algorithm, prepared.workspaceBytes = best.workspaceBytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Products::tune(DevicePointer memory, uint64_t bytes, const std::string &folder,
                                           double operations) {
  if (bytes < 2 * kPatternBytes || products.empty())
    return "";
  Tuner tuner(gpu, memory, bytes);
  Choices choices(folder, identity());
  if (absl::Status status = tune(tuner, choices, operations); !status.ok())
    return status;
  choices.write();
  return choices.remark();
}

} // namespace weft::rt::cuda

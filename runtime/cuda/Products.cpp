//===- Products.cpp -------------------------------------------------------===//
#include "runtime/cuda/Products.h"

#include "runtime/cuda/Library.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

namespace weft::rt::cuda {
namespace {

absl::StatusOr<LtLibrary> loadLt() {
  absl::StatusOr<Library> library =
      Library::open({"libcublasLt.so.13", "libcublasLt.so.12"}, "a product of matrices on the GPU");
  if (!library.ok())
    return library.status();
  LtLibrary lt{};
  Binder bind(*library);
  bind("cublasLtCreate", lt.create);
  bind("cublasLtDestroy", lt.destroy);
  bind("cublasLtGetStatusName", lt.statusName);
  bind("cublasLtGetVersion", lt.version);
  bind("cublasLtMatmulDescCreate", lt.productCreate);
  bind("cublasLtMatmulDescDestroy", lt.productDestroy);
  bind("cublasLtMatmulDescSetAttribute", lt.productSet);
  bind("cublasLtMatrixLayoutCreate", lt.layoutCreate);
  bind("cublasLtMatrixLayoutDestroy", lt.layoutDestroy);
  bind("cublasLtMatrixLayoutSetAttribute", lt.layoutSet);
  bind("cublasLtMatmulPreferenceCreate", lt.preferenceCreate);
  bind("cublasLtMatmulPreferenceDestroy", lt.preferenceDestroy);
  bind("cublasLtMatmulPreferenceSetAttribute", lt.preferenceSet);
  bind("cublasLtMatmulAlgoGetHeuristic", lt.heuristic);
  bind("cublasLtMatmul", lt.product);
  if (absl::Status status = bind.status("Weft needs cuBLAS 12 or 13"); !status.ok())
    return status;
  return lt;
}

std::optional<int> typeOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return kLtFloat32;
  case ElementType::BF16:
    return kLtBfloat16;
  default:
    return std::nullopt;
  }
}

/// The largest power of 2 that divides `address`, up to 256.
uint32_t alignmentOf(DevicePointer address) {
  return static_cast<uint32_t>(std::min<DevicePointer>(address & (~address + 1), 256));
}

std::string textOf(const Gemm &gemm) {
  return absl::StrCat("m ", gemm.m, ", n ", gemm.n, ", k ", gemm.k, ", batch ", gemm.batch, ", rows of ",
                      gemm.lda, ", ", gemm.ldb, " and ", gemm.ldc, " elements, ", nameOf(gemm.typeA).data(),
                      " x ", nameOf(gemm.typeB).data(), " -> ", nameOf(gemm.typeC).data());
}

/// Calls in a row: after the first that fails none is made.
template <typename... Calls> int inOrder(Calls &&...calls) {
  int status = 0;
  ((status = status ? status : calls()), ...);
  return status;
}

void *pointer(DevicePointer address) { return reinterpret_cast<void *>(address); }

} // namespace

absl::StatusOr<const LtLibrary *> ltLibrary() {
  static const auto *loaded = new absl::StatusOr<LtLibrary>(loadLt());
  if (!loaded->ok())
    return loaded->status();
  return &**loaded;
}

Products::~Products() {
  for (const Prepared &prepared : products) {
    for (LtLayout layout : {prepared.a, prepared.b, prepared.c})
      if (layout)
        lt->layoutDestroy(layout);
    if (prepared.product)
      lt->productDestroy(prepared.product);
  }
  if (handle)
    lt->destroy(handle);
}

absl::Status Products::start(DevicePointer memory) {
  absl::StatusOr<const LtLibrary *> library = ltLibrary();
  if (!library.ok())
    return library.status();
  lt = *library, workspace = memory;
  if (int status = lt->create(&handle))
    return absl::FailedPreconditionError(
        absl::StrCat("cuBLASLt does not start on cuda:", gpu.facts.index, ": ", lt->statusName(status)));
  return absl::OkStatus();
}

/// What is multiplied, in cuBLASLt's order: its A is our B.
int Products::describe(Prepared &prepared) const {
  const Gemm &gemm = prepared.gemm;
  auto layout = [&](LtLayout &made, ElementType type, int64_t rows, int64_t columns, int64_t ld,
                    int64_t stride) {
    auto batch = static_cast<int32_t>(gemm.batch);
    return inOrder(
        // As stored: our rows are its columns.
        [&] {
          return lt->layoutCreate(&made, *typeOf(type), static_cast<uint64_t>(columns),
                                  static_cast<uint64_t>(rows), ld);
        },
        [&] { return lt->layoutSet(made, kLtBatchCount, &batch, sizeof(batch)); },
        [&] { return lt->layoutSet(made, kLtBatchStride, &stride, sizeof(stride)); });
  };
  auto set = [&](LtProductAttribute attribute, auto value) {
    return lt->productSet(prepared.product, attribute, &value, sizeof(value));
  };
  int status =
      inOrder([&] { return lt->productCreate(&prepared.product, kLtCompute32F, kLtFloat32); },
              [&] { return set(kLtTransA, static_cast<int32_t>(gemm.transB)); },
              [&] { return set(kLtTransB, static_cast<int32_t>(gemm.transA)); },
              [&] {
                return layout(prepared.a, gemm.typeB, gemm.transB ? gemm.n : gemm.k,
                              gemm.transB ? gemm.k : gemm.n, gemm.ldb, gemm.strideB);
              },
              [&] {
                return layout(prepared.b, gemm.typeA, gemm.transA ? gemm.k : gemm.m,
                              gemm.transA ? gemm.m : gemm.k, gemm.lda, gemm.strideA);
              },
              [&] { return layout(prepared.c, gemm.typeC, gemm.m, gemm.n, gemm.ldc, gemm.strideC); });
  if (status || gemm.epilogue == Gemm::Epilogue::None)
    return status;
  return inOrder([&] { return set(kLtEpilogue, static_cast<int32_t>(kLtGeluGrad)); },
                 [&] { return set(kLtAuxPointer, pointer(prepared.auxiliary)); },
                 [&] { return set(kLtAuxLd, gemm.ldc); },
                 [&] { return set(kLtAuxBatchStride, gemm.strideC); });
}

/// What cuBLASLt proposes, its favourite first: the same for the same library, chip,
/// sizes and alignments.
int Products::propose(const Prepared &prepared, std::vector<LtHeuristic> &proposals) const {
  constexpr int kAsked = 8;
  LtPreference preference = nullptr;
  if (int status = lt->preferenceCreate(&preference))
    return status;
  auto set = [&](LtPreferenceAttribute attribute, auto value) {
    return lt->preferenceSet(preference, attribute, &value, sizeof(value));
  };
  int count = 0;
  proposals.resize(kAsked);
  int status = inOrder([&] { return set(kLtWorkspaceBytes, static_cast<uint64_t>(kMostBytes)); },
                       [&] { return set(kLtReductionMask, kLtReduceInComputeType); },
                       [&] { return set(kLtAlignmentA, alignmentOf(prepared.left)); },
                       [&] { return set(kLtAlignmentB, alignmentOf(prepared.right)); },
                       [&] {
                         return set(kLtAlignmentC,
                                    alignmentOf((prepared.gemm.accumulate ? prepared.added : prepared.out)));
                       },
                       [&] { return set(kLtAlignmentD, alignmentOf(prepared.out)); },
                       [&] {
                         return lt->heuristic(handle, prepared.product, prepared.a, prepared.b, prepared.c,
                                              prepared.c, preference, kAsked, proposals.data(), &count);
                       });
  lt->preferenceDestroy(preference);
  proposals.resize(status ? 0 : static_cast<size_t>(std::max(count, 0)));
  if (status || proposals.empty())
    return status ? status : kLtNotSupported;
  if (int state = proposals.front().state)
    return state;
  std::erase_if(proposals, [](const LtHeuristic &proposal) { return proposal.state != 0; });
  return 0;
}

int Products::choose(Prepared &prepared) {
  std::string key = textOf(prepared.gemm);
  for (int64_t part : {prepared.gemm.strideA, prepared.gemm.strideB, prepared.gemm.strideC,
                       int64_t{prepared.gemm.transA}, int64_t{prepared.gemm.transB},
                       int64_t{prepared.gemm.accumulate}, static_cast<int64_t>(prepared.gemm.epilogue)})
    absl::StrAppend(&key, " ", part);
  for (DevicePointer address : {prepared.left, prepared.right,
                                (prepared.gemm.accumulate ? prepared.added : prepared.out), prepared.out})
    absl::StrAppend(&key, " ", alignmentOf(address));
  auto [entry, isNew] = known.try_emplace(key);
  if (isNew)
    if (int status = propose(prepared, entry->second)) {
      known.erase(entry);
      return status;
    }
  prepared.proposals = &entry->second, prepared.problem = &entry->first;
  prepared.algorithm = entry->second[0].algorithm;
  prepared.workspaceBytes = entry->second[0].workspaceBytes;
  return 0;
}

absl::StatusOr<size_t> Products::prepare(const Kernel &kernel, const std::vector<DevicePointer> &operands) {
  const Gemm &gemm = kernel.gemm;
  if (gemm.typeA != gemm.typeB || !typeOf(gemm.typeA) || !typeOf(gemm.typeC))
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", kernel.name, " (", textOf(gemm),
                     "): a product on the GPU takes F32 x F32 or BF16 x BF16 and gives F32 or BF16"));
  Prepared &prepared = products.emplace_back();
  prepared.workspace = workspace + (products.size() - 1) % kPlaces * kMostBytes;
  prepared.counter = products.size() <= kCounters ? counters().second - kCounterBytes : 0;
  size_t out = gemm.separate ? 3 : 2;
  prepared.left = operands[1], prepared.right = operands[0], prepared.out = operands[out];
  prepared.added = operands[2];
  prepared.beta = gemm.accumulate ? 1 : 0;
  prepared.gemm = gemm, prepared.auxiliary = operands.back();
  int status = describe(prepared);
  if (!status)
    status = choose(prepared);
  if (status)
    return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel.name, " (", textOf(gemm),
                                                   "): cuBLASLt has no algorithm: ", lt->statusName(status)));
  return products.size() - 1;
}

absl::Status Products::launch(size_t number, std::string_view name) { return submit(products[number], name); }

absl::Status Products::submit(const Prepared &prepared, std::string_view name) {
  constexpr float kOne = 1;
  int status = lt->product(handle, prepared.product, &kOne, pointer(prepared.left), prepared.a,
                           pointer(prepared.right), prepared.b, &prepared.beta, pointer(prepared.added),
                           prepared.c, pointer(prepared.out), prepared.c, &prepared.algorithm,
                           pointer(prepared.place()), prepared.workspaceBytes, gpu.stream);
  if (status == 0)
    return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("kernel ", std::string(name), ": cuBLASLt: ", lt->statusName(status)));
}

} // namespace weft::rt::cuda

//===- StubProducts.cpp - cuBLASLt's half of the stub ---------------------===//
//
// Column-major, as cuBLASLt's documentation defines it: D = epilogue(alpha op(A)
// op(B) + beta C).
//
//===----------------------------------------------------------------------===//
#include "test/runtime/cuda/StubDriver.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

using namespace weft::rt::cuda;

namespace {

constexpr int kBad = 7;                     // CUBLAS_STATUS_INVALID_VALUE
constexpr uint64_t kAlgorithm = 0x57656674; // and the numbers after it
constexpr int kProposals = 4;
constexpr double kMilliseconds[kProposals] = {4, 1, 2, 3.99};

struct Product {
  int32_t transA = 0, transB = 0, epilogue = kLtEpilogueNone;
  void *aux = nullptr;
  int64_t auxLd = 0, auxStride = 0;
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0, stride = 0;
  int32_t batch = 1;
};

Product &of(LtProduct product) { return *reinterpret_cast<Product *>(product); }
Layout &of(LtLayout layout) { return *reinterpret_cast<Layout *>(layout); }

template <typename T> int setTo(T &field, const void *value, size_t bytes) {
  if (bytes != sizeof(T))
    return kBad;
  std::memcpy(&field, value, bytes);
  return 0;
}

float load(const void *base, int type, int64_t index) {
  if (type == kLtFloat32)
    return static_cast<const float *>(base)[index];
  uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t *>(base)[index]) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void store(void *base, int type, int64_t index, float value) {
  if (type == kLtFloat32) {
    static_cast<float *>(base)[index] = value;
    return;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  bits += 0x7FFF + (bits >> 16 & 1); // to nearest even
  static_cast<uint16_t *>(base)[index] = static_cast<uint16_t>(bits >> 16);
}

double geluTanhSlope(double x) {
  double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

/// What a product works in: of few terms the count of its tiles, which starts from 0 as on a
/// device, otherwise 1 MiB that nothing is written to.
constexpr size_t kCounter = 4;
size_t workspaceOf(uint64_t terms) { return terms <= 5 ? kCounter : 1 << 20; }
constexpr uint32_t kTiles = 132;

uint64_t termsOf(const Product &product, const Layout &a) { return product.transA ? a.rows : a.columns; }

struct Operands {
  const void *a, *b, *c;
  void *d;
  float alpha, beta;
  double turn; // another order of sums: all is a little larger
};

void multiply(const Product &product, const Layout &a, const Layout &b, const Layout &d, const Operands &o) {
  auto k = static_cast<int64_t>(product.transA ? a.rows : a.columns);
  for (int64_t z = 0; z < d.batch; ++z)
    for (int64_t j = 0; j < static_cast<int64_t>(d.columns); ++j)
      for (int64_t i = 0; i < static_cast<int64_t>(d.rows); ++i) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += double(load(o.a, a.type, z * a.stride + (product.transA ? i * a.ld + l : l * a.ld + i))) *
                 load(o.b, b.type, z * b.stride + (product.transB ? l * b.ld + j : j * b.ld + l));
        int64_t place = z * d.stride + j * d.ld + i, aux = z * product.auxStride + j * product.auxLd + i;
        sum = o.turn * o.alpha * sum + (o.beta != 0 ? o.beta * double(load(o.c, d.type, place)) : 0);
        if (product.epilogue == kLtGeluGrad)
          sum *= geluTanhSlope(load(product.aux, d.type, aux));
        store(o.d, d.type, place, static_cast<float>(sum));
      }
}

} // namespace

extern "C" {

int cublasLtCreate(LtHandle *handle) {
  ++stub().live;
  *handle = reinterpret_cast<LtHandle>(uintptr_t{1});
  return 0;
}
int cublasLtDestroy(LtHandle) {
  --stub().live;
  return 0;
}
size_t cublasLtGetVersion() { return 130100; }
const char *cublasLtGetStatusName(int status) {
  return status == kLtNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_INVALID_VALUE";
}
int cublasLtMatmulDescCreate(LtProduct *product, int computeType, int scaleType) {
  if (computeType != kLtCompute32F || scaleType != kLtFloat32)
    return kBad;
  ++stub().live;
  *product = reinterpret_cast<LtProduct>(new Product);
  return 0;
}
int cublasLtMatmulDescDestroy(LtProduct product) {
  --stub().live;
  delete &of(product);
  return 0;
}
int cublasLtMatmulDescSetAttribute(LtProduct product, int attribute, const void *value, size_t bytes) {
  Product &p = of(product);
  switch (attribute) {
  case kLtTransA:
    return setTo(p.transA, value, bytes);
  case kLtTransB:
    return setTo(p.transB, value, bytes);
  case kLtEpilogue:
    return setTo(p.epilogue, value, bytes);
  case kLtAuxPointer:
    return setTo(p.aux, value, bytes);
  case kLtAuxLd:
    return setTo(p.auxLd, value, bytes);
  case kLtAuxBatchStride:
    return setTo(p.auxStride, value, bytes);
  default:
    return kBad;
  }
}
int cublasLtMatrixLayoutCreate(LtLayout *layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  if (ld < static_cast<int64_t>(rows))
    return kBad;
  ++stub().live;
  *layout = reinterpret_cast<LtLayout>(new Layout{type, rows, columns, ld});
  return 0;
}
int cublasLtMatrixLayoutDestroy(LtLayout layout) {
  --stub().live;
  delete &of(layout);
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(LtLayout layout, int attribute, const void *value, size_t bytes) {
  return attribute == kLtBatchCount    ? setTo(of(layout).batch, value, bytes)
         : attribute == kLtBatchStride ? setTo(of(layout).stride, value, bytes)
                                       : kBad;
}
int cublasLtMatmulPreferenceCreate(LtPreference *preference) {
  ++stub().live;
  *preference = reinterpret_cast<LtPreference>(uintptr_t{1});
  return 0;
}
int cublasLtMatmulPreferenceDestroy(LtPreference) {
  --stub().live;
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(LtPreference, int attribute, const void *, size_t bytes) {
  return bytes == (attribute == kLtWorkspaceBytes ? 8u : 4u) ? 0 : kBad;
}
int cublasLtMatmulAlgoGetHeuristic(LtHandle, LtProduct product, LtLayout a, LtLayout b, LtLayout c, LtLayout,
                                   LtPreference, int asked, LtHeuristic *results, int *found) {
  if (Result rule = stub().enter("cublasLtMatmulAlgoGetHeuristic"))
    return rule;
  const Product &p = of(product);
  // Sizes that do not multiply have no algorithm.
  uint64_t k = termsOf(p, of(a));
  bool fits = k == (p.transB ? of(b).columns : of(b).rows) &&
              (p.transA ? of(a).columns : of(a).rows) == of(c).rows &&
              (p.transB ? of(b).rows : of(b).columns) == of(c).columns;
  *found = fits ? std::min(asked, kProposals) : 0;
  for (int i = 0; i < *found; ++i) {
    results[i] = {};
    results[i].algorithm.data[0] = kAlgorithm + static_cast<uint64_t>(i),
    results[i].workspaceBytes = workspaceOf(k);
  }
  return 0;
}
int cublasLtMatmul(LtHandle, LtProduct product, const void *alpha, const void *a, LtLayout aLayout,
                   const void *b, LtLayout bLayout, const void *beta, const void *c, LtLayout, void *d,
                   LtLayout dLayout, const LtAlgorithm *algorithm, void *workspace, size_t workspaceBytes,
                   Stream) {
  if (Result rule = stub().enter("cublasLtMatmul"))
    return rule;
  uint64_t number = algorithm->data[0] - kAlgorithm;
  if (number >= kProposals || workspaceBytes != workspaceOf(termsOf(of(product), of(aLayout))) ||
      reinterpret_cast<uintptr_t>(workspace) % 256 != 0 || // as the library has it
      !stub().owns(reinterpret_cast<uintptr_t>(workspace), workspaceBytes))
    return kBad;
  ++stub().calls["algorithm " + std::to_string(number)];
  stub().milliseconds += kMilliseconds[number];
  Operands operands{a,
                    b,
                    c,
                    d,
                    *static_cast<const float *>(alpha),
                    *static_cast<const float *>(beta),
                    number == 1 ? 1.01 : 1.0};
  auto *counter = static_cast<uint32_t *>(workspaceBytes == kCounter ? workspace : nullptr);
  if (counter)
    stub().submit(
        [=] {
          stub().log += "counter\n";
          *counter = 0;
          return kSuccess;
        },
        {reinterpret_cast<uintptr_t>(counter), 0, 0, 1, kCounter, 1});
  // cuBLASLt keeps neither descriptors nor layouts after the call.
  return stub().submit([=, p = of(product), la = of(aLayout), lb = of(bLayout), ld = of(dLayout)] {
    if (counter && std::exchange(*counter, kTiles) != 0)
      return kIllegalAddress; // it would leave tiles out
    multiply(p, la, lb, ld, operands);
    return kSuccess;
  });
}
}

//===- Initialize.cpp - Starting values of state entries ------------------===//
#include "runtime/core/Initialize.h"

#include "runtime/core/Philox.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace weft::rt {
namespace {

using Numbers = std::function<void(int64_t begin, int64_t end, double *out)>;

/// A normal number cut at two standard deviations. Attempts take sub-counters
/// far apart from every element's own: 2^48 elements fit.
double truncatedNormal(const Philox &philox, uint64_t index) {
  for (uint64_t attempt = 0;; ++attempt)
    for (double z : philox.normals(index | attempt << 48))
      if (std::abs(z) <= 2)
        return z;
}

Numbers numbersOf(const InitRule &rule, const Philox &philox) {
  double a = rule.a, b = rule.b;
  switch (rule.kind) {
  case InitRule::Kind::Normal:
    return [=](int64_t begin, int64_t end, double *out) {
      std::span<double> values(out, static_cast<size_t>(end - begin));
      philox.normals(static_cast<uint64_t>(begin), values);
      for (double &value : values)
        value *= a;
    };
  case InitRule::Kind::Uniform:
    return [=](int64_t begin, int64_t end, double *out) {
      for (int64_t i = begin; i < end; ++i)
        *out++ = a + (b - a) * philox.uniform(i);
    };
  case InitRule::Kind::Truncated:
    return [=](int64_t begin, int64_t end, double *out) {
      for (int64_t i = begin; i < end; ++i)
        *out++ = a * truncatedNormal(philox, i);
    };
  default:
    return [=](int64_t begin, int64_t end, double *out) { std::fill(out, out + (end - begin), a); };
  }
}

void store(Tensor &tensor, int64_t begin, const double *values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (tensor.type == ElementType::F64) {
      tensor.as<double>()[begin + i] = values[i];
    } else if (tensor.type == ElementType::F32) {
      tensor.as<float>()[begin + i] = static_cast<float>(values[i]);
    } else {
      // Round to nearest even on the upper half of the float's bits.
      uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(values[i]));
      tensor.as<uint16_t>()[begin + i] = static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    }
  }
}

/// Every element is a function of its number, so threads change nothing but time.
void fill(Tensor &tensor, const Numbers &numbers) {
  constexpr int64_t kChunk = 4096;
  int64_t total = tensor.elements();
  auto work = [&](int64_t begin, int64_t end) {
    std::vector<double> values(kChunk);
    for (int64_t at = begin; at < end; at += kChunk) {
      int64_t stop = std::min(end, at + kChunk);
      numbers(at, stop, values.data());
      store(tensor, at, values.data(), stop - at);
    }
  };
  int64_t workers = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 1 + total / (1 << 18));
  std::vector<std::jthread> threads;
  for (int64_t w = 1; w < workers; ++w)
    threads.emplace_back(work, total * w / workers, total * (w + 1) / workers);
  work(0, total / workers);
}

double dot(const double *x, const double *y, int64_t size) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= size; i += 4)
    for (int lane = 0; lane < 4; ++lane)
      sums[lane] += x[i + lane] * y[i + lane];
  for (; i < size; ++i)
    sums[0] += x[i] * y[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// The Q of a QR whose R has a positive diagonal, by Gram-Schmidt done twice
/// ("twice is enough": orthonormal to rounding). With normal entries this is
/// uniform over orthogonal matrices.
void orthonormalize(std::vector<double> &vectors, int64_t count, int64_t size) {
  for (int64_t j = 0; j < count; ++j) {
    double *v = &vectors[j * size];
    for (int64_t pass = 0; pass < 2; ++pass) {
      for (int64_t i = 0; i < j; ++i) {
        const double *q = &vectors[i * size];
        double share = dot(q, v, size);
        for (int64_t k = 0; k < size; ++k)
          v[k] -= share * q[k];
      }
      double norm = std::sqrt(dot(v, v, size));
      for (int64_t k = 0; k < size; ++k)
        v[k] /= norm;
    }
  }
}

void fillOrthogonal(Tensor &tensor, double gain, const Philox &philox) {
  int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
  int64_t columns = tensor.elements() / rows;
  int64_t count = std::min(rows, columns), size = std::max(rows, columns);
  // Vectors lie along the longer side: rows of a wide matrix, columns of a tall one.
  std::vector<double> vectors(count * size);
  philox.normals(0, vectors);
  orthonormalize(vectors, count, size);
  fill(tensor, [&](int64_t begin, int64_t end, double *out) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t row = i / columns, column = i % columns;
      *out++ = gain * (rows <= columns ? vectors[row * size + column] : vectors[column * size + row]);
    }
  });
}

/// [positions, half, 2]: cos and sin of position * base^(-i / half), angles in double.
void fillRopeTable(Tensor &tensor, double base) {
  int64_t half = tensor.shape[1];
  fill(tensor, [&](int64_t begin, int64_t end, double *out) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t position = i / (2 * half), pair = i / 2 % half;
      double angle = static_cast<double>(position) *
                     std::pow(base, -static_cast<double>(pair) / static_cast<double>(half));
      *out++ = i % 2 == 0 ? std::cos(angle) : std::sin(angle);
    }
  });
}

} // namespace

absl::Status initialize(Tensor &tensor, const InitRule &rule, std::string_view name, uint64_t seed) {
  if (tensor.type == ElementType::I32 || tensor.type == ElementType::I64)
    return absl::InvalidArgumentError("state entry `" + std::string(name) +
                                      "` can't be initialised: expected a float type, found " +
                                      std::string(nameOf(tensor.type)));
  if (tensor.elements() == 0)
    return absl::OkStatus();
  Philox philox(seed, "init/" + std::string(name));
  if (rule.kind == InitRule::Kind::Orthogonal)
    fillOrthogonal(tensor, rule.a, philox);
  else if (rule.kind == InitRule::Kind::RopeTable)
    fillRopeTable(tensor, rule.a);
  else
    fill(tensor, numbersOf(rule, philox));
  return absl::OkStatus();
}

} // namespace weft::rt

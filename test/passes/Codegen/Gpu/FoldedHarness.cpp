//===- FoldedHarness.cpp - Products and what follows them -----------------===//
#include "test/passes/Codegen/Gpu/FoldedHarness.h"

#include "test/passes/Codegen/Gpu/AttendCase.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

namespace weft::test {

using tile::Buffer;
using tile::Element;

static std::string tensor(int64_t rows, int64_t columns, const std::string &element,
                          const std::string &axes) {
  return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "x" + element + ", #weft.axes<" +
         axes + ">>";
}

std::string FoldedCase::text() const {
  auto a = [&](const std::string &e) { return tensor(m, k, e, "pos, dim"); };
  auto b = [&](const std::string &e) {
    return transposed ? tensor(n, k, e, "hidden, dim") : tensor(k, n, e, "dim, hidden");
  };
  auto out = [&](const std::string &e) { return tensor(m, n, e, "pos, hidden"); };
  const std::string f = out("f32"), h = out("bf16");
  auto widen = [](const std::string &name, const std::string &from, const std::string &to) {
    return name + "f = weft.convert " + name + " : (" + from + ") -> " + to + "\n";
  };
  auto narrow = [&](const std::string &name) {
    return name + "h = weft.convert " + name + " : (" + f + ") -> " + h + "\n";
  };
  std::string arguments = "%a: " + a("bf16") + ", %b: " + b("bf16"), results, yielded;
  std::string body = widen("%a", a("bf16"), a("f32")) + widen("%b", b("bf16"), b("f32"));
  if (follow != Follow::Gelu) {
    arguments += ", %x: " + h;
    body += widen("%x", h, f);
  }
  body += "%c = weft.contract %af, %bf : (" + a("f32") + ", " + b("f32") + ") -> " + f + "\n";
  if (follow == Follow::Gelu) {
    body += "%y = weft.unary gelu_tanh %c : (" + f + ") -> " + f + "\n" + narrow("%c") + narrow("%y");
    results = h + ", " + h, yielded = "%ch, %yh : " + h + ", " + h;
  } else if (follow == Follow::GeluGrad) {
    body += "%y = weft.unary_grad gelu_tanh %xf, %c : (" + f + ", " + f + ") -> " + f + "\n" + narrow("%y");
    results = h, yielded = "%yh : " + h;
  } else {
    body += "%s = weft.unary silu %xf : (" + f + ") -> " + f + "\n%y = weft.binary mul %s, %c : (" + f +
            ", " + f + ") -> " + f + "\n" + narrow("%y");
    results = h, yielded = "%yh : " + h;
  }
  return "weft.kernel @k rows [] chunks 1 (" + arguments + ") -> (" + results + ") {\n" + body +
         "weft.yield " + yielded + " }";
}

FoldedHarness::FoldedHarness(const FoldedCase &c) : c(c) {
  mlir::DialectRegistry registry;
  registerWeftDialects(registry);
  tile::registerTileDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  source = mlir::parseSourceString<mlir::ModuleOp>(c.text(), &context);
  if (!source) {
    ADD_FAILURE() << "no kernel:\n" << c.text();
    return;
  }
  auto built = buildFoldedTile(*source->getOps<KernelOp>().begin(), {});
  if (succeeded(built))
    tile = std::move(*built);
  else
    ADD_FAILURE() << "no tiles for\n" << c.text();
}

void FoldedHarness::makeBuffers() {
  std::mt19937 random(7);
  auto draw = [&](int64_t count, float scale) {
    std::normal_distribution<float> numbers(0, scale);
    std::vector<float> drawn(static_cast<size_t>(count));
    for (float &number : drawn)
      number = static_cast<float>(toBf16(numbers(random)));
    return Buffer::of(Element::Bf16, drawn);
  };
  buffers = {draw(c.m * c.k, 1), draw(c.k * c.n, 2 / std::sqrt(static_cast<float>(c.k)))};
  if (c.follow != Follow::Gelu)
    buffers.push_back(draw(c.m * c.n, 2));
  firstResult = buffers.size();
  auto count = static_cast<size_t>(c.m * c.n);
  buffers.push_back(Buffer::poisoned(Element::Bf16, count));
  if (c.follow == Follow::Gelu)
    buffers.push_back(Buffer::poisoned(Element::Bf16, count));
}

absl::Status FoldedHarness::run(const tile::Schedule &schedule) {
  constexpr int64_t kHalf = 2; // bytes
  if (buffers.empty())
    makeBuffers();
  for (size_t i = firstResult; i < buffers.size(); ++i)
    buffers[i] = Buffer::poisoned(buffers[i].element, buffers[i].size());
  tile::Arguments arguments;
  for (Buffer &buffer : buffers)
    arguments.globals.push_back(&buffer);
  for (const rt::TensorMap &map : tile.maps) {
    tile::TensorMap given;
    given.buffer = &buffers[map.operand];
    given.dims.assign(map.sizes.begin(), map.sizes.end());
    for (uint64_t bytes : map.strides)
      given.strides.push_back(static_cast<int64_t>(bytes) / kHalf);
    given.box.assign(map.box.begin(), map.box.end());
    given.swizzle = map.swizzle;
    arguments.maps.push_back(std::move(given));
  }
  return tile::interpretTile(tile.kernel(), arguments, schedule);
}

std::vector<double> FoldedHarness::sums(int64_t row) const {
  std::vector<double> sums(static_cast<size_t>(c.n));
  const std::vector<float> &a = buffers[0].values, &b = buffers[1].values;
  for (int64_t k = 0; k < c.k; ++k)
    for (int64_t n = 0; n < c.n; ++n)
      sums[static_cast<size_t>(n)] +=
          double(a[static_cast<size_t>(row * c.k + k)]) *
          double(b[static_cast<size_t>(c.transposed ? n * c.k + k : k * c.n + n)]);
  return sums;
}

static double gate(double x) {
  return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}
static double gelu(double x) { return 0.5 * x * (1 + gate(x)); }
static double geluSlope(double x) {
  double t = gate(x), inner = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}
static double silu(double x) { return x / (1 + std::exp(-x)); }

std::string FoldedHarness::difference() const {
  constexpr double kPlace = 1.0 / 256, kLeast = 2e-5; // of bf16; sums cancel
  for (int64_t row = 0; row < c.m; ++row) {
    std::vector<double> all = sums(row);
    for (int64_t column = 0; column < c.n; ++column) {
      auto at = static_cast<size_t>(row * c.n + column);
      double sum = all[static_cast<size_t>(column)];
      double x = c.follow == Follow::Gelu ? 0 : buffers[2].values[at];
      auto differs = [&](size_t result, double expected, double places) {
        double got = buffers[firstResult + result].values[at];
        return !(std::abs(got - expected) <= places * kPlace * std::abs(expected) + kLeast);
      };
      // What follows sees the product as it is stored.
      bool wrong = false;
      if (c.follow == Follow::Gelu)
        wrong = differs(0, sum, 1) || differs(1, gelu(buffers[firstResult].values[at]), 1);
      else if (c.follow == Follow::GeluGrad)
        wrong = differs(0, sum * geluSlope(x), 2);
      else
        wrong = differs(0, sum * silu(x), 2);
      if (wrong)
        return "row " + std::to_string(row) + ", column " + std::to_string(column) + ": " +
               std::to_string(buffers[firstResult].values[at]) + " of a product of " + std::to_string(sum) +
               " and " + std::to_string(x);
    }
  }
  return "";
}

std::vector<float> FoldedHarness::results() const {
  std::vector<float> all;
  for (size_t i = firstResult; i < buffers.size(); ++i)
    all.insert(all.end(), buffers[i].values.begin(), buffers[i].values.end());
  return all;
}

} // namespace weft::test

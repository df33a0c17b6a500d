//===- AttendHarness.cpp - Tile kernels of attention, run by their judge --===//
#include "test/passes/Codegen/Gpu/AttendHarness.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

namespace weft::test {

using tile::Buffer;
using tile::Element;

static mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context, const std::string &text) {
  mlir::DialectRegistry registry;
  registerWeftDialects(registry);
  tile::registerTileDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
}

static KernelOp kernelOf(mlir::ModuleOp module) { return *module.getOps<KernelOp>().begin(); }

AttendHarness::AttendHarness(const AttendCase &c, AttendPassKind pass, const GpuTarget &target,
                             const AttendOptions &options)
    : c(c), pass(pass) {
  std::string text = pass == AttendPassKind::Forward ? c.forwardText()
                     : pass == AttendPassKind::Query ? c.queryText()
                                                     : c.keyValueText();
  source = parse(context, text);
  if (!source) {
    ADD_FAILURE() << "no kernel:\n" << text;
    return;
  }
  auto built = buildAttendTile(kernelOf(*source), target, options);
  if (succeeded(built))
    tile = std::move(*built);
  else
    ADD_FAILURE() << "no tiles for\n" << text;
}

static std::vector<float> floats(const std::vector<double> &values) {
  return std::vector<float>(values.begin(), values.end());
}

/// As the kernels' texts have them: see AttendCase.
void AttendHarness::makeBuffers() {
  constexpr uint32_t kSeed = 7;
  numbers = attendNumbers(c, kSeed, pass != AttendPassKind::Forward);
  std::vector<int32_t> windows, starts;
  for (int64_t h = 0; h < c.heads(); ++h)
    windows.push_back(c.window(h));
  for (int64_t row = 0; row < c.batch * c.length; ++row)
    starts.push_back(c.start(row % c.length));
  auto halves = [](const std::vector<double> &values) { return Buffer::of(Element::Bf16, floats(values)); };
  buffers = {halves(numbers.q), halves(numbers.k), halves(numbers.v), Buffer::of(windows),
             Buffer::of(starts)};
  if (pass == AttendPassKind::Query)
    buffers.push_back(halves(numbers.roundOut));
  if (pass != AttendPassKind::Forward)
    buffers.push_back(Buffer::of(Element::F32, floats(numbers.lse)));
  if (pass == AttendPassKind::KeyValue)
    buffers.push_back(Buffer::of(Element::F32, floats(numbers.delta)));
  if (pass != AttendPassKind::Forward)
    buffers.push_back(halves(numbers.dout));
  if (pass == AttendPassKind::Forward && c.offset >= 0)
    buffers.push_back(Buffer::of(std::vector<int32_t>{static_cast<int32_t>(c.offset)}));
  if (!c.kvOf.empty())
    buffers.push_back(Buffer::of(c.kvOf));
  firstResult = buffers.size();
  size_t key = numbers.k.size(), query = numbers.q.size(), row = numbers.lse.size();
  bool keyValue = pass == AttendPassKind::KeyValue;
  buffers.push_back(Buffer::poisoned(Element::Bf16, keyValue ? key : query));
  buffers.push_back(keyValue ? Buffer::poisoned(Element::Bf16, key) : Buffer::poisoned(Element::F32, row));
  if (pass == AttendPassKind::Forward && c.entropies)
    buffers.push_back(Buffer::poisoned(Element::F32, row));
}

absl::Status AttendHarness::run(const tile::Schedule &schedule) {
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

/// Of [batch, places, heads, channel], by head and 64 places.
std::string AttendHarness::compare(size_t result, const std::vector<double> &expected,
                                   const std::vector<double> &rounded, int64_t places, int64_t heads,
                                   const char *what) const {
  constexpr int64_t kRows = 64;
  constexpr double kNoise = 2e-5; // of sums in f32
  const std::vector<float> &got = buffers[firstResult + result].values;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t from = 0; from < places; from += kRows) {
        double error = 0, bound = 0, size = 0, count = 0;
        for (int64_t i = from; i < std::min(places, from + kRows); ++i)
          for (int64_t d = 0; d < c.channel; ++d) {
            auto at = static_cast<size_t>(((b * places + i) * heads + h) * c.channel + d);
            error += std::pow(got[at] - expected[at], 2);
            bound += std::pow(rounded[at] - expected[at], 2);
            size += std::pow(expected[at], 2);
            count += 1;
          }
        error = std::sqrt(error), bound = 2 * std::sqrt(bound) + kNoise * std::sqrt(size + count);
        if (!(error <= bound)) {
          std::ostringstream text;
          text << what << " of row " << b << ", head " << h << ", places from " << from << ": error " << error
               << ", at most " << bound << " expected, of " << std::sqrt(size);
          return text.str();
        }
      }
  return "";
}

std::string AttendHarness::compareRows(size_t result, const std::vector<double> &expected,
                                       const char *what) const {
  constexpr double kNoise = 2e-5;
  const std::vector<float> &got = buffers[firstResult + result].values;
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - expected[i]) <= kNoise * (1 + std::abs(expected[i]))))
      return std::string(what) + " " + std::to_string(i) + ": " + std::to_string(got[i]) + ", expected " +
             std::to_string(expected[i]);
  return "";
}

std::string AttendHarness::difference() {
  std::string first, second;
  switch (pass) {
  case AttendPassKind::Forward:
    first = compare(0, numbers.out, numbers.roundOut, c.length, c.heads(), "out");
    second = compareRows(1, numbers.lse, "lse");
    if (second.empty() && c.entropies)
      second = compareRows(2, numbers.entropy, "entropy");
    break;
  case AttendPassKind::Query:
    first = compare(0, numbers.dq, numbers.roundDq, c.length, c.heads(), "dq");
    second = compareRows(1, numbers.delta, "delta");
    break;
  case AttendPassKind::KeyValue:
    first = compare(0, numbers.dk, numbers.roundDk, c.length, c.kvHeads, "dk");
    second = compare(1, numbers.dv, numbers.roundDv, c.length, c.kvHeads, "dv");
    break;
  }
  return first.empty() ? second : first;
}

std::vector<float> &AttendHarness::operand(size_t number) {
  if (buffers.empty())
    makeBuffers();
  return buffers[number].values;
}

std::vector<float> AttendHarness::results() const {
  std::vector<float> all;
  for (size_t i = firstResult; i < buffers.size(); ++i)
    all.insert(all.end(), buffers[i].values.begin(), buffers[i].values.end());
  return all;
}

std::string refusal(const std::string &text, const GpuTarget &target) {
  mlir::MLIRContext context;
  auto module = parse(context, text);
  return module ? whyNoAttendTile(kernelOf(*module), target) : "not a kernel";
}

} // namespace weft::test

//===- PatternHarness.cpp - Products of patterns on tiles -----------------===//
#include "test/passes/Codegen/Gpu/PatternHarness.h"

#include "test/passes/Codegen/Gpu/AttendCase.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace weft::test {

using tile::Buffer;
using tile::Element;

int32_t PatternCase::start(int64_t row, int64_t place) const {
  const std::vector<int32_t> &own = starts[std::min(static_cast<size_t>(row), starts.size() - 1)];
  int32_t start = 0;
  for (int32_t candidate : own)
    if (candidate <= place)
      start = candidate;
  return start;
}

static std::string tensor(const std::vector<std::pair<std::string, int64_t>> &axes,
                          const std::string &element) {
  std::string sizes, names;
  for (const auto &[name, size] : axes) {
    sizes += std::to_string(size) + "x";
    names += (names.empty() ? "" : ", ") + name;
  }
  return "tensor<" + sizes + element + ", #weft.axes<" + names + ">>";
}

/// x, table, scale, windows, starts, [lse], [kv_of]; y, [row_lse].
std::string PatternCase::text() const {
  int64_t t = tablePlaces(), cells = tables() * 64 * (8 * ((t + 63) / 64) + 63);
  auto xOf = [&](const std::string &e) {
    return tensor({{"batch", batch}, {"pos", length}, {"heads", heads}, {"head", channel}}, e);
  };
  auto yOf = [&](const std::string &e) {
    return tensor({{"batch", batch}, {"pos", length}, {"kv", results}, {"head", channel}}, e);
  };
  auto tableOf = [&](const std::string &e) { return tensor({{"heads", heads}, {"cell", cells}}, e); };
  std::string perPlace = tensor({{"heads", heads}, {"place", t}}, "f32");
  std::string perHead = "tensor<" + std::to_string(heads) + "xi32>";
  std::string perWindow = "tensor<" + std::to_string(tables() * heads) + "xi32>";
  std::string rows = tensor({{"batch", batch}, {"pos", length}}, "i32");
  std::string perRow = tensor({{"batch", batch}, {"pos", length}, {"heads", heads}}, "f32");
  std::string y = yOf("f32"), stored = f32 ? y : yOf("bf16");
  std::string arguments = "%x: " + xOf("bf16") + ", %t: " + tableOf("bf16") + ", %s: " + perPlace +
                          ", %w: " + perWindow + ", %d: " + rows;
  std::string types = xOf("f32") + ", " + tableOf("f32") + ", " + perPlace + ", " + perWindow + ", " + rows;
  std::string options, made = "%y";
  std::string given = y, results = stored, yielded = f32 ? "%y" : "%yh";
  if (lse) {
    arguments += ", %l: " + perPlace, types += ", " + perPlace, options += " lse %l";
    made += ", %r", given += ", " + perRow, results += ", " + perRow, yielded += ", %r";
  }
  if (!kvOf.empty())
    arguments += ", %k: " + perHead, types += ", " + perHead, options += " kv_of %k";
  std::string body = "%xf = weft.convert %x : (" + xOf("bf16") + ") -> " + xOf("f32") +
                     "\n%tf = weft.convert %t : (" + tableOf("bf16") + ") -> " + tableOf("f32") + "\n" +
                     made + " = weft.mix_product " + (back ? "back " : "") +
                     "%xf, %tf, %s windows %w documents %d" + options + " : (" + types + ") -> (" + given +
                     ")\n";
  if (!f32)
    body += "%yh = weft.convert %y : (" + y + ") -> " + stored + "\n";
  return "weft.kernel @k rows [] chunks 1 (" + arguments + ") -> (" + results + ") {\n" + body +
         "weft.yield " + yielded + " : " + results + " }";
}

PatternHarness::PatternHarness(const PatternCase &c) : c(c) {
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
  KernelOp kernel = *source->getOps<KernelOp>().begin();
  kernel->setAttr(kFormAttr, mlir::StringAttr::get(&context, "own=" + std::to_string(c.parts / 2)));
  auto built = buildPatternTile(kernel, {});
  if (succeeded(built))
    tile = std::move(*built);
  else
    ADD_FAILURE() << "no tiles for\n" << c.text();
}

void PatternHarness::makeBuffers() {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> signs(-1, 1), positive(0.25, 1);
  auto draw = [&](int64_t count, auto &from) {
    std::vector<float> numbers(static_cast<size_t>(count));
    for (float &number : numbers)
      number = static_cast<float>(toBf16(from(random)));
    return numbers;
  };
  int64_t t = c.tablePlaces(), blocks = 8 * ((t + 63) / 64) + 63;
  const int64_t tables = c.tables();
  std::vector<float> table(static_cast<size_t>(c.heads * tables * blocks * 64));
  powers.clear();
  for (float power : draw(c.heads * t, positive))
    powers.push_back(power);
  for (int64_t number = 0; number < c.heads * tables; ++number)
    for (int64_t cell = 0; cell < blocks * 64; ++cell) {
      int64_t n = cell / 64 * 8 + cell % 64 / 8 + cell % 8, d = c.back ? n - 255 : 8 * (blocks - 32) + 7 - n;
      int64_t h = number / tables;
      bool within = number % tables == 0; // the second table has what is behind the window
      if (d >= 0 && d < t && (d < c.window(h)) == within)
        table[static_cast<size_t>(number * blocks * 64 + cell)] =
            static_cast<float>(powers[static_cast<size_t>(h * t + d)]);
    }
  std::vector<int32_t> windows, starts;
  for (int64_t h = 0; h < c.heads; ++h)
    windows.push_back(c.window(h));
  windows.insert(windows.end(), c.firstPlaces.begin(), c.firstPlaces.end());
  for (int64_t row = 0; row < c.batch; ++row)
    for (int64_t i = 0; i < c.length; ++i)
      starts.push_back(c.start(row, i));
  buffers = {Buffer::of(Element::Bf16, draw(c.batch * c.length * c.heads * c.channel, signs)),
             Buffer::of(Element::Bf16, table), Buffer::of(Element::F32, draw(c.heads * t, positive)),
             Buffer::of(windows), Buffer::of(starts)};
  if (c.lse)
    buffers.push_back(Buffer::of(Element::F32, draw(c.heads * t, signs)));
  if (!c.kvOf.empty())
    buffers.push_back(Buffer::of(c.kvOf));
  firstResult = buffers.size();
  buffers.push_back(Buffer::poisoned(c.f32 ? Element::F32 : Element::Bf16,
                                     static_cast<size_t>(c.batch * c.length * c.results * c.channel)));
  if (c.lse)
    buffers.push_back(Buffer::poisoned(Element::F32, static_cast<size_t>(c.batch * c.length * c.heads)));
}

absl::Status PatternHarness::run(const tile::Schedule &schedule) {
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

/// y in float64, [batch, places, results, channel].
std::vector<double> PatternHarness::expected() const {
  int64_t t = c.tablePlaces(), heads = c.back ? c.results : c.heads;
  const std::vector<float> &x = buffers[0].values, &scale = buffers[2].values;
  std::vector<double> y(static_cast<size_t>(c.batch * c.length * c.results * c.channel));
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t i = 0; i < c.length; ++i)
      for (int64_t j = c.start(b, i); j <= i; ++j)
        for (int64_t h = 0; h < c.heads; ++h) {
          if (!c.sees(h, i, j, c.start(b, i)))
            continue;
          int64_t to = c.back ? j : i, from = c.back ? i : j;
          int64_t head = c.kvOf.empty() ? h : c.kvOf[static_cast<size_t>(h)];
          double weight = powers[static_cast<size_t>(h * t + i - j)] *
                          scale[static_cast<size_t>(h * t + to - c.start(b, to))];
          for (int64_t d = 0; d < c.channel; ++d)
            y[static_cast<size_t>(((b * c.length + to) * heads + head) * c.channel + d)] +=
                weight * x[static_cast<size_t>(((b * c.length + from) * c.heads + h) * c.channel + d)];
        }
  return y;
}

std::string PatternHarness::difference() const {
  const double kRounding = c.f32 ? 1e-5 : 1.0 / 256; // of bf16, half a last place; sums cancel
  std::vector<double> y = expected();
  const std::vector<float> &got = buffers[firstResult].values;
  for (size_t i = 0; i < y.size(); ++i)
    if (!(std::abs(got[i] - y[i]) <= kRounding * std::abs(y[i]) + 1e-4)) {
      auto at = static_cast<int64_t>(i);
      return "y of row " + std::to_string(at / c.channel / c.results / c.length) + ", place " +
             std::to_string(at / c.channel / c.results % c.length) + ", head " +
             std::to_string(at / c.channel % c.results) + ", channel " + std::to_string(at % c.channel) +
             ": " + std::to_string(got[i]) + ", expected " + std::to_string(y[i]);
    }
  for (int64_t row = 0; c.lse && row < c.batch * c.length * c.heads; ++row) {
    int64_t b = row / c.heads / c.length, i = row / c.heads % c.length, h = row % c.heads;
    float own = buffers[5].values[static_cast<size_t>(h * c.tablePlaces() + i - c.start(b, i))];
    if (buffers[firstResult + 1].values[static_cast<size_t>(row)] != own)
      return "row_lse " + std::to_string(row);
  }
  return "";
}

std::vector<float> PatternHarness::results() const {
  std::vector<float> all;
  for (size_t i = firstResult; i < buffers.size(); ++i)
    all.insert(all.end(), buffers[i].values.begin(), buffers[i].values.end());
  return all;
}

} // namespace weft::test

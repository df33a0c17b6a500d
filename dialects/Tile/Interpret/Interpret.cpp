//===- Interpret.cpp - Launches of a kernel -------------------------------===//

#include "dialects/Tile/Interpret/Interpret.h"

#include "dialects/Tile/Interpret/Arithmetic.h"
#include "dialects/Tile/Interpret/State.h"

#include "absl/strings/str_cat.h"

#include <limits>

using namespace mlir;

namespace weft::tile {

Buffer Buffer::poisoned(Element element, size_t count) {
  Buffer buffer;
  buffer.element = element;
  if (element == Element::I32)
    buffer.integers.assign(count, -1);
  else
    buffer.values.assign(count, std::numeric_limits<float>::quiet_NaN());
  return buffer;
}

Buffer Buffer::of(Element element, std::vector<float> values) {
  Buffer buffer{element, std::move(values), {}};
  if (element == Element::Bf16)
    for (float &value : buffer.values)
      value = roundToBf16(value);
  return buffer;
}

Buffer Buffer::of(std::vector<int32_t> integers) { return {Element::I32, {}, std::move(integers)}; }

static bool fits(Type type, Element element) {
  switch (element) {
  case Element::Bf16:
    return type.isBF16();
  case Element::F32:
    return type.isF32();
  case Element::I32:
    return type.isInteger(32);
  }
  return false;
}

static absl::Status checkMap(size_t i, const TensorMap &map) {
  size_t rank = map.dims.size();
  if (!map.buffer || rank < 1 || rank > 5 || map.box.size() != rank || map.strides.size() + 1 != rank)
    return absl::InvalidArgumentError(
        absl::StrCat("map ", i, " expects a buffer, 1 to 5 sizes, as many of the box and one stride less"));
  int64_t unit = map.buffer->element == Element::Bf16 ? 8 : 4, last = map.offset;
  for (size_t d = 0; d < rank; ++d) {
    int64_t stride = d == 0 ? 1 : map.strides[d - 1];
    if (map.dims[d] < 1 || map.box[d] < 1 || map.box[d] > 256 || (d > 0 && stride % unit != 0))
      return absl::InvalidArgumentError(
          absl::StrCat("map ", i, ", dimension ", d, ": size ", map.dims[d], ", box ", map.box[d],
                       ", stride ", stride, "; strides are multiples of 16 bytes, a box is 1 to 256"));
    last += (map.dims[d] - 1) * stride;
  }
  if (map.offset < 0 || last >= static_cast<int64_t>(map.buffer->size()))
    return absl::InvalidArgumentError(
        absl::StrCat("map ", i, " reaches element ", last, " of a buffer of ", map.buffer->size()));
  return absl::OkStatus();
}

static absl::Status checkArguments(KernelOp kernel, const Arguments &arguments) {
  size_t globals = 0, maps = 0;
  for (mlir::Value parameter : kernel.getBody().getArguments()) {
    auto global = dyn_cast<GlobalType>(parameter.getType());
    if (!global) {
      ++maps;
      continue;
    }
    if (globals < arguments.globals.size() &&
        (!arguments.globals[globals] || !fits(global.getElement(), arguments.globals[globals]->element)))
      return absl::InvalidArgumentError(absl::StrCat("global ", globals, " has another element type"));
    ++globals;
  }
  if (globals != arguments.globals.size() || maps != arguments.maps.size())
    return absl::InvalidArgumentError(absl::StrCat("expects ", globals, " globals and ", maps,
                                                   " maps, but got ", arguments.globals.size(), " and ",
                                                   arguments.maps.size()));
  for (size_t i = 0; i < maps; ++i)
    if (absl::Status status = checkMap(i, arguments.maps[i]); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status interpretTile(KernelOp kernel, const Arguments &arguments, const Schedule &schedule) {
  if (schedule.ctas < 1)
    return absl::InvalidArgumentError(absl::StrCat("expects at least one CTA, but got ", schedule.ctas));
  if (absl::Status status = checkArguments(kernel, arguments); !status.ok())
    return status;
  std::vector<std::vector<int32_t>> writers;
  for (const Buffer *buffer : arguments.globals)
    writers.emplace_back(buffer->size(), 0);
  Deal deal;
  // CTAs in an order of the seed: from a start on, forwards or backwards.
  auto start = static_cast<int64_t>(schedule.seed % static_cast<uint64_t>(schedule.ctas));
  for (int64_t i = 0; i < schedule.ctas; ++i) {
    int64_t turn = schedule.seed & 1 ? schedule.ctas - 1 - i : i;
    deal.ctas = schedule.ctas - i;
    Cta cta(kernel, arguments, schedule, (start + turn) % schedule.ctas, writers, deal);
    if (absl::Status status = cta.run(); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace weft::tile

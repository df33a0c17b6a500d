//===- TensorMaps.cpp -----------------------------------------------------===//
#include "runtime/cuda/TensorMaps.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::rt::cuda {
namespace {

constexpr uint64_t kMapAlignment = 16; // bytes: of the base and of strides
constexpr uint32_t kLargestBox = 256;  // elements along a dimension

TensorMapType typeOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return kMapFloat32;
  case ElementType::F64:
    return kMapFloat64;
  case ElementType::BF16:
    return kMapBfloat16;
  case ElementType::I32:
    return kMapInt32;
  case ElementType::I64:
    return kMapInt64;
  }
  return kMapBfloat16;
}

TensorMapSwizzle swizzleOf(uint32_t bytes) {
  return bytes == 128 ? kSwizzle128 : bytes == 64 ? kSwizzle64 : bytes == 32 ? kSwizzle32 : kSwizzleNone;
}

/// The first rule of cuTensorMapEncodeTiled that `map` breaks, or nothing.
std::string fault(const TensorMap &map, DevicePointer base) {
  if (base % kMapAlignment)
    return absl::StrCat("its operand lies at an address that is no multiple of ", kMapAlignment, " bytes");
  for (uint64_t stride : map.strides)
    if (stride % kMapAlignment)
      return absl::StrCat("a stride of ", stride, " bytes is no multiple of ", kMapAlignment);
  for (uint64_t size : map.sizes)
    if (size < 1 || size > uint64_t(1) << 32)
      return absl::StrCat("a size of ", size, " elements is not in 1 to 2^32");
  for (uint32_t side : map.box)
    if (side < 1 || side > kLargestBox)
      return absl::StrCat("a box of ", side, " elements is not in 1 to ", kLargestBox);
  uint64_t row = map.box[0] * sizeOf(map.type);
  if (row % kMapAlignment)
    return absl::StrCat("rows of its box have ", row, " bytes, no multiple of ", kMapAlignment);
  if (map.swizzle && row > map.swizzle)
    return absl::StrCat("rows of its box have ", row, " bytes, more than its swizzle of ", map.swizzle);
  return "";
}

} // namespace

absl::StatusOr<EncodedTensorMap> encodeTensorMap(const Driver &driver, const TensorMap &map,
                                                 DevicePointer base, const std::string &kernel,
                                                 size_t number) {
  std::string why = fault(map, base);
  EncodedTensorMap encoded{};
  if (why.empty()) {
    const std::vector<uint32_t> ones(map.sizes.size(), 1);
    Result result = driver.tensorMapEncodeTiled(
        &encoded, typeOf(map.type), static_cast<uint32_t>(map.sizes.size()), reinterpret_cast<void *>(base),
        map.sizes.data(), map.strides.data(), map.box.data(), ones.data(), kMapInterleaveNone,
        swizzleOf(map.swizzle), kMapPromotion128, kMapFillZeros);
    if (result == kSuccess)
      return encoded;
    why = describe(driver, result);
  }
  return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel, ": tensor map ", number, " (sizes ",
                                                 absl::StrJoin(map.sizes, " x "), ", box ",
                                                 absl::StrJoin(map.box, " x "), ", innermost first): ", why));
}

} // namespace weft::rt::cuda

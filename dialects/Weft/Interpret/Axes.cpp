//===- Axes.cpp - Walking tensors by axis name -----------------------------===//
#include "dialects/Weft/Interpret/Axes.h"

using namespace mlir;

namespace weft::interp {

Names namesOf(Type type) {
  ArrayRef<StringAttr> axes = axesOf(type);
  if (!axes.empty())
    return Names(axes.begin(), axes.end());
  Names places;
  for (int64_t axis = 0; axis < llvm::cast<RankedTensorType>(type).getRank(); ++axis)
    places.push_back(StringAttr::get(type.getContext(), std::to_string(axis)));
  return places;
}

Sizes stridesAlong(Type type, ArrayRef<StringAttr> names) {
  Names own = namesOf(type);
  ArrayRef<int64_t> shape = shapeOf(type);
  Sizes strides;
  for (StringAttr name : names) {
    auto *found = llvm::find(own, name);
    strides.push_back(found == own.end() ? 0 : product(shape.drop_front(found - own.begin() + 1)));
  }
  return strides;
}

Sizes sizesAlong(Type type, ArrayRef<StringAttr> names) {
  Names own = namesOf(type);
  Sizes sizes;
  for (StringAttr name : names) {
    auto *found = llvm::find(own, name);
    sizes.push_back(found == own.end() ? 1 : shapeOf(type)[found - own.begin()]);
  }
  return sizes;
}

std::vector<double> arrange(const Array &array, Type type, ArrayRef<StringAttr> names,
                            ArrayRef<int64_t> sizes) {
  if (namesOf(type) == names)
    return array.data;
  std::vector<double> result;
  result.reserve(product(sizes));
  walk<1>(sizes, {stridesAlong(type, names)},
          [&](const std::array<int64_t, 1> &at) { result.push_back(array.data[at[0]]); });
  return result;
}

} // namespace weft::interp

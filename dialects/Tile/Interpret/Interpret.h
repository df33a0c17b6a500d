//===- Interpret.h - What tile kernels do, under every order -----*- C++ -*-===//
//
// Runs a kernel on the CPU as an adversary of its author: warpgroups take turns
// at random, copies and products take effect at any legal moment, shared memory
// and everything under way hold NaN, and each access is checked against what its
// warpgroup may count on. The judge of builders, before a GPU sees them.
//
// Numbers: bf16 to nearest even; products and sums in f32, in the order of the
// elements; tile.exp2 is exp2f with subnormals as 0. A CTA's warpgroups share
// nothing with other CTAs but global memory; CTAs run one after the other. Of
// the items that tile.next_item hands out each gets a number drawn from the seed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Tile/Tile.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <string_view>
#include <vector>

namespace weft::tile {

enum class Element { Bf16, F32, I32 };

/// Global memory of one operand: `values` for bf16 (each a bf16 number) and f32, `integers` for i32. Every
/// access is bounds-checked.
struct Buffer {
  Element element = Element::F32;
  std::vector<float> values;
  std::vector<int32_t> integers;

  /// `count` elements of NaN (of -1 for i32).
  static Buffer poisoned(Element element, size_t count);
  /// bf16 numbers are rounded to nearest even.
  static Buffer of(Element element, std::vector<float> values);
  static Buffer of(std::vector<int32_t> integers);
  size_t size() const { return element == Element::I32 ? integers.size() : values.size(); }
};

/// What the driver would encode: sizes and strides in elements, innermost first; strides of dims 1 on.
struct TensorMap {
  Buffer *buffer = nullptr;
  int64_t offset = 0;
  std::vector<int64_t> dims, strides, box;
  int64_t swizzle = 0;
};

/// A kernel's parameters, in order.
struct Arguments {
  std::vector<Buffer *> globals;
  std::vector<TensorMap> maps;
};

/// When copies and products take effect between their issue and the wait that ends them.
enum class Effects {
  Late,   ///< not before somebody waits and nobody can go on
  Early,  ///< at issue
  Random, ///< at a moment drawn from the seed
};

struct Schedule {
  uint64_t seed = 0;
  Effects effects = Effects::Random;
  int64_t ctas = 1;
  /// False: nothing is judged but bounds and deadlock, so that the numbers alone show what an order does.
  bool judge = true;
};

/// Names of faults: what a status' message starts with.
inline constexpr std::string_view kMissingWait = "missing wait";
inline constexpr std::string_view kEarlyRelease = "early release";
inline constexpr std::string_view kWrongParity = "wrong parity";
inline constexpr std::string_view kMissingFence = "missing fence";
inline constexpr std::string_view kDeadlock = "deadlock";
inline constexpr std::string_view kOutOfTile = "out of tile";
inline constexpr std::string_view kOutOfBounds = "out of bounds";
inline constexpr std::string_view kMisaligned = "misaligned";
inline constexpr std::string_view kInFlight = "use of register in flight";
inline constexpr std::string_view kBytesDiffer = "expect bytes differ";
inline constexpr std::string_view kPartialRows = "partial rows";
inline constexpr std::string_view kItemsLeft = "items left";
inline constexpr std::string_view kWrittenTwice = "written twice";

/// Runs all items of `kernel` on `arguments` under one schedule. Buffers hold the results.
/// Errors: InvalidArgument where arguments don't fit the parameters; Unimplemented for an op without meaning
/// here; FailedPrecondition "NAME: where: what" for a fault, NAME one of those above. After an error buffers
/// hold anything.
absl::Status interpretTile(KernelOp kernel, const Arguments &arguments, const Schedule &schedule);

} // namespace weft::tile

//===- ObjectImage.h - Kernels as executable memory -------------*- C++ -*-===//
//
// Loads ELF relocatable objects without a linker. All objects share one
// mapping: [jumps, code] executable, then [addresses, constants] read-only.
// Objects know nothing of one another; the only symbols from outside are
// memset, memcpy and memmove.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::rt {

class ObjectImage {
public:
  /// The bytes may go away afterwards. Errors: InvalidArgument names the
  /// object's number and what is wrong, among them each undefined symbol;
  /// ResourceExhausted when there is no memory.
  static absl::StatusOr<ObjectImage> load(std::span<const std::string_view> objects);

  ObjectImage() = default;
  ObjectImage(ObjectImage &&other) noexcept;
  ObjectImage &operator=(ObjectImage &&other) noexcept;
  ~ObjectImage();

  /// Address of function `symbol` of object number `object`. Errors: NotFound.
  absl::StatusOr<void *> find(size_t object, std::string_view symbol) const;

  size_t bytes() const { return size; }

private:
  friend class ImageBuilder;
  std::byte *base = nullptr;
  size_t size = 0;
  std::vector<std::unordered_map<std::string, void *>> functions; // by object
};

} // namespace weft::rt

//===- Tensor.h - A dense tensor in host memory -----------------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::rt {

/// Element types that programs and files hold.
enum class ElementType : uint8_t { F32, F64, BF16, I32, I64 };

/// Bytes of one element.
size_t sizeOf(ElementType type);
/// Name as in safetensors: F32, F64, BF16, I32, I64.
std::string_view nameOf(ElementType type);

/// Memory of tensors: large blocks are pages of their own, huge where the system
/// has them (a fault for every 4 KiB would cost more than filling them).
void *allocateBytes(size_t size); // throws std::bad_alloc, as std::allocator does
void freeBytes(void *block, size_t size);

template <typename T> struct TensorAllocator {
  using value_type = T;
  TensorAllocator() = default;
  template <typename U> TensorAllocator(const TensorAllocator<U> &) {}
  T *allocate(size_t count) { return static_cast<T *>(allocateBytes(count * sizeof(T))); }
  void deallocate(T *block, size_t count) { freeBytes(block, count * sizeof(T)); }
  template <typename U> bool operator==(const TensorAllocator<U> &) const { return true; }
};

/// Row-major, dense. `bytes` holds product(shape) * sizeOf(type) bytes.
struct Tensor {
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte, TensorAllocator<std::byte>> bytes;

  Tensor() = default;
  Tensor(ElementType type, std::vector<int64_t> shape);
  int64_t elements() const;
  template <typename T> std::span<T> as() {
    return {reinterpret_cast<T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <typename T> std::span<const T> as() const {
    return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

} // namespace weft::rt

//===- Tensor.cpp - A dense tensor in host memory ---------------*- C++ -*-===//
#include "runtime/Tensor.h"

#include <new>

#include <sys/mman.h>

namespace weft::rt {

/// Below, the heap's own reuse of blocks is worth more than huge pages.
static constexpr size_t kOwnPages = size_t{4} << 20;

void *allocateBytes(size_t size) {
  if (size < kOwnPages)
    return ::operator new(size);
  void *block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED)
    throw std::bad_alloc();
  ::madvise(block, size, MADV_HUGEPAGE); // a wish: small pages do as well
  return block;
}

void freeBytes(void *block, size_t size) {
  if (size < kOwnPages)
    ::operator delete(block);
  else
    ::munmap(block, size);
}

size_t sizeOf(ElementType type) {
  switch (type) {
  case ElementType::BF16:
    return 2;
  case ElementType::F32:
  case ElementType::I32:
    return 4;
  case ElementType::F64:
  case ElementType::I64:
    return 8;
  }
  return 0;
}

std::string_view nameOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "F32";
  case ElementType::F64:
    return "F64";
  case ElementType::BF16:
    return "BF16";
  case ElementType::I32:
    return "I32";
  case ElementType::I64:
    return "I64";
  }
  return "?";
}

Tensor::Tensor(ElementType type, std::vector<int64_t> shape) : type(type), shape(std::move(shape)) {
  bytes.resize(static_cast<size_t>(elements()) * sizeOf(type));
}

int64_t Tensor::elements() const {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

} // namespace weft::rt

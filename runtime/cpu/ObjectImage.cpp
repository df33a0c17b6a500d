//===- ObjectImage.cpp ----------------------------------------------------===//
#include "runtime/cpu/ObjectImage.h"

#include "runtime/cpu/ObjectFile.h"

#include <elf.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr uint64_t kPage = 4096, kSlot = sizeof(uint64_t), kJump = 16;
constexpr uint64_t kLargestImage = uint64_t(1) << 30;

struct Outside {
  std::string_view name;
  void *address;
};
const std::array<Outside, 3> kOutside{{{"memset", reinterpret_cast<void *>(&std::memset)},
                                       {"memcpy", reinterpret_cast<void *>(&std::memcpy)},
                                       {"memmove", reinterpret_cast<void *>(&std::memmove)}}};

uint64_t alignUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

bool isGot(uint32_t type) {
  return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
}

} // namespace

/// Lays sections out, maps, copies, relocates, protects.
class ImageBuilder {
public:
  absl::StatusOr<ObjectImage> build(std::span<const std::string_view> objects);

private:
  struct Loaded {
    ObjectFile file;
    std::vector<uint64_t> places;                 // of sections, from the image's start
    std::unordered_map<uint32_t, uint64_t> slots; // symbol to place of its address
  };

  absl::Status layOut();
  void place(bool executable, uint64_t &end);
  absl::Status map();
  void writeJumps();
  absl::Status relocate(Loaded &object);
  absl::Status apply(const Loaded &object, const ObjectFile::Relocation &relocation);
  absl::StatusOr<uint64_t> addressOf(const Loaded &object, uint32_t symbol, bool near) const;
  uint64_t absolute(uint64_t place) const { return reinterpret_cast<uint64_t>(image.base) + place; }

  std::vector<Loaded> loaded;
  uint64_t codeEnd = 0, end = 0;
  ObjectImage image;
};

void ImageBuilder::place(bool executable, uint64_t &position) {
  for (Loaded &object : loaded)
    for (size_t i = 0; i < object.file.sections.size(); ++i) {
      const ObjectFile::Section &section = object.file.sections[i];
      if (section.executable != executable)
        continue;
      position = alignUp(position, section.alignment);
      object.places[i] = position;
      position += section.size;
      if (position > kLargestImage) // sizes are at most 2^30 each: stop before a sum can wrap
        return;
    }
}

absl::Status ImageBuilder::layOut() {
  uint64_t position = kOutside.size() * kJump;
  for (Loaded &object : loaded)
    object.places.assign(object.file.sections.size(), 0);
  place(true, position);
  codeEnd = position = alignUp(position, kPage);
  for (Loaded &object : loaded)
    for (const ObjectFile::Relocation &relocation : object.file.relocations)
      if (isGot(relocation.type) && object.slots.emplace(relocation.symbol, position).second)
        position += kSlot;
  place(false, position);
  end = alignUp(position, kPage);
  if (end > kLargestImage)
    return absl::InvalidArgumentError(
        absl::StrCat("kernels need ", end, " bytes; at most ", kLargestImage, " can be loaded"));
  return absl::OkStatus();
}

absl::Status ImageBuilder::map() {
  void *memory = mmap(nullptr, end, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", end, " bytes of kernels: ", std::strerror(errno)));
  image.base = static_cast<std::byte *>(memory);
  image.size = end;
  for (const Loaded &object : loaded)
    for (size_t i = 0; i < object.file.sections.size(); ++i)
      if (std::string_view bytes = object.file.sections[i].bytes; !bytes.empty())
        std::memcpy(image.base + object.places[i], bytes.data(), bytes.size());
  return absl::OkStatus();
}

/// libc may be further away than a call reaches, so calls go through
/// `jmp *0(%rip)` followed by the address.
void ImageBuilder::writeJumps() {
  constexpr std::array<unsigned char, 6> kJumpCode{0xff, 0x25, 0, 0, 0, 0};
  for (size_t i = 0; i < kOutside.size(); ++i) {
    std::byte *jump = image.base + i * kJump;
    std::memcpy(jump, kJumpCode.data(), kJumpCode.size());
    std::memcpy(jump + kJumpCode.size(), &kOutside[i].address, sizeof(void *));
  }
}

/// `near`: an address that code can reach; else the real one.
absl::StatusOr<uint64_t> ImageBuilder::addressOf(const Loaded &object, uint32_t number, bool near) const {
  const ObjectFile::Symbol &symbol = object.file.symbols[number];
  if (symbol.section >= 0)
    return absolute(object.places[static_cast<size_t>(symbol.section)]) + symbol.value;
  if (symbol.section == ObjectFile::kDropped)
    return absl::InvalidArgumentError(absl::StrCat("code refers to symbol '", std::string(symbol.name),
                                                   "' in a section that is not loaded"));
  for (size_t i = 0; i < kOutside.size(); ++i)
    if (symbol.name == kOutside[i].name)
      return near ? absolute(i * kJump) : reinterpret_cast<uint64_t>(kOutside[i].address);
  return absl::InvalidArgumentError(absl::StrCat("undefined symbol '", std::string(symbol.name),
                                                 "'; kernels may use memset, memcpy and memmove alone"));
}

absl::Status ImageBuilder::relocate(Loaded &object) {
  for (auto [symbol, place] : object.slots) {
    absl::StatusOr<uint64_t> address = addressOf(object, symbol, false);
    if (!address.ok())
      return address.status();
    std::memcpy(image.base + place, &*address, kSlot);
  }
  for (const ObjectFile::Relocation &relocation : object.file.relocations)
    if (absl::Status status = apply(object, relocation); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status ImageBuilder::apply(const Loaded &object, const ObjectFile::Relocation &relocation) {
  const ObjectFile::Section &section = object.file.sections[static_cast<size_t>(relocation.section)];
  bool wide = relocation.type == R_X86_64_64 || relocation.type == R_X86_64_PC64;
  bool got = isGot(relocation.type);
  bool known = wide || got || relocation.type == R_X86_64_PC32 || relocation.type == R_X86_64_PLT32;
  if (relocation.type == R_X86_64_NONE)
    return absl::OkStatus();
  if (!known)
    return absl::InvalidArgumentError(
        absl::StrCat("section ", section.name, ": relocation type ", relocation.type,
                     " is not supported; compile with position-independent code and the small code model"));
  uint64_t width = wide ? 8 : 4;
  if (relocation.offset > section.size || width > section.size - relocation.offset)
    return absl::InvalidArgumentError(absl::StrCat("section ", section.name, ": a relocation at ",
                                                   relocation.offset, " lies outside its ", section.size,
                                                   " bytes"));
  uint64_t target = 0;
  if (got) {
    target = absolute(object.slots.at(relocation.symbol));
  } else {
    absl::StatusOr<uint64_t> address = addressOf(object, relocation.symbol, true);
    if (!address.ok())
      return address.status();
    target = *address;
  }
  uint64_t place = object.places[static_cast<size_t>(relocation.section)] + relocation.offset;
  uint64_t value = target + static_cast<uint64_t>(relocation.addend);
  if (relocation.type != R_X86_64_64)
    value -= absolute(place);
  auto distance = static_cast<int64_t>(value);
  if (!wide &&
      (distance < std::numeric_limits<int32_t>::min() || distance > std::numeric_limits<int32_t>::max()))
    return absl::InvalidArgumentError(absl::StrCat("section ", section.name, ": the relocation at ",
                                                   relocation.offset, " does not reach its target"));
  std::memcpy(image.base + place, &value, width);
  return absl::OkStatus();
}

absl::StatusOr<ObjectImage> ImageBuilder::build(std::span<const std::string_view> objects) {
  auto named = [](size_t object, const absl::Status &status) {
    return absl::Status(status.code(), absl::StrCat("object ", object, ": ", std::string(status.message())));
  };
  for (size_t i = 0; i < objects.size(); ++i) {
    absl::StatusOr<ObjectFile> file = readObjectFile(objects[i]);
    if (!file.ok())
      return named(i, file.status());
    loaded.push_back({std::move(*file), {}, {}});
  }
  if (absl::Status status = layOut(); !status.ok())
    return status;
  if (absl::Status status = map(); !status.ok())
    return status;
  writeJumps();
  for (size_t i = 0; i < loaded.size(); ++i) {
    if (absl::Status status = relocate(loaded[i]); !status.ok())
      return named(i, status);
    auto &functions = image.functions.emplace_back();
    for (const ObjectFile::Symbol &symbol : loaded[i].file.symbols) {
      if (symbol.section < 0)
        continue;
      auto number = static_cast<size_t>(symbol.section);
      const ObjectFile::Section &section = loaded[i].file.sections[number];
      if (section.executable && symbol.value < section.size)
        functions.emplace(std::string(symbol.name), image.base + loaded[i].places[number] + symbol.value);
    }
  }
  if (mprotect(image.base, codeEnd, PROT_READ | PROT_EXEC) != 0 ||
      (end > codeEnd && mprotect(image.base + codeEnd, end - codeEnd, PROT_READ) != 0))
    return absl::ResourceExhaustedError(
        absl::StrCat("the system refuses executable memory for kernels: ", std::strerror(errno)));
  return std::move(image);
}

absl::StatusOr<ObjectImage> ObjectImage::load(std::span<const std::string_view> objects) {
  return ImageBuilder().build(objects);
}

ObjectImage::ObjectImage(ObjectImage &&other) noexcept { *this = std::move(other); }

ObjectImage &ObjectImage::operator=(ObjectImage &&other) noexcept {
  std::swap(base, other.base);
  std::swap(size, other.size);
  std::swap(functions, other.functions);
  return *this;
}

ObjectImage::~ObjectImage() {
  if (base)
    munmap(base, size);
}

absl::StatusOr<void *> ObjectImage::find(size_t object, std::string_view symbol) const {
  if (object < functions.size())
    if (auto found = functions[object].find(std::string(symbol)); found != functions[object].end())
      return found->second;
  return absl::NotFoundError(
      absl::StrCat("object ", object, " defines no function '", std::string(symbol), "'"));
}

} // namespace weft::rt

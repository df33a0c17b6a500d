//===- ObjectFile.cpp -----------------------------------------------------===//
#include "runtime/cpu/ObjectFile.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr uint64_t kLargestAlignment = 4096;
constexpr uint64_t kLargestSection = uint64_t(1) << 30; // PC-relative code reaches 2 GiB

template <typename... Parts> absl::Status invalid(const Parts &...parts) {
  return absl::InvalidArgumentError(absl::StrCat("object: ", parts...));
}

class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes(bytes) {}

  absl::StatusOr<ObjectFile> read() {
    for (auto step :
         {&Reader::readHeader, &Reader::readSections, &Reader::readSymbols, &Reader::readRelocations})
      if (absl::Status status = (this->*step)(); !status.ok())
        return status;
    return std::move(file);
  }

private:
  bool holds(uint64_t offset, uint64_t size) const {
    return offset <= bytes.size() && size <= bytes.size() - offset;
  }
  /// A copy, as nothing in a file need be aligned. The caller has checked the range.
  template <typename T> T at(uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
  /// The NUL-terminated text at `offset` of string table `table`.
  absl::StatusOr<std::string_view> textAt(const Elf64_Shdr &table, uint64_t offset) const {
    if (table.sh_type != SHT_STRTAB || offset >= table.sh_size)
      return invalid("a name lies outside its string table");
    std::string_view text = bytes.substr(table.sh_offset + offset, table.sh_size - offset);
    size_t end = text.find('\0');
    if (end == text.npos)
      return invalid("a name does not end inside its string table");
    return text.substr(0, end);
  }

  absl::Status readHeader();
  absl::Status readSections();
  absl::Status readSymbols();
  absl::Status readRelocations();
  absl::Status addSection(size_t index, std::string_view name);
  absl::StatusOr<ObjectFile::Symbol> symbolOf(const Elf64_Sym &entry, const Elf64_Shdr &names) const;
  absl::Status readTable(const Elf64_Shdr &table, int target);

  std::string_view bytes;
  Elf64_Ehdr header{};
  std::vector<Elf64_Shdr> headers;
  std::vector<int> loaded; // section number in the file to index in file.sections, or kDropped
  ObjectFile file;
};

absl::Status Reader::readHeader() {
  if (bytes.size() < sizeof(Elf64_Ehdr))
    return invalid("expected an ELF header of ", sizeof(Elf64_Ehdr), " bytes, found ", bytes.size());
  header = at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB)
    return invalid("expected a 64-bit little-endian ELF file");
  if (header.e_type != ET_REL || header.e_machine != EM_X86_64)
    return invalid("expected a relocatable file (type 1) for x86-64 (machine 62), found type ", header.e_type,
                   " for machine ", header.e_machine);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 ||
      !holds(header.e_shoff, uint64_t(header.e_shnum) * sizeof(Elf64_Shdr)))
    return invalid("the section table (", header.e_shnum, " entries at ", header.e_shoff,
                   ") is not inside the file of ", bytes.size(), " bytes");
  if (header.e_shstrndx >= header.e_shnum)
    return invalid("section ", header.e_shstrndx, ", which should hold names, does not exist");
  return absl::OkStatus();
}

absl::Status Reader::readSections() {
  for (size_t i = 0; i < header.e_shnum; ++i) {
    headers.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    const Elf64_Shdr &section = headers.back();
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
        !holds(section.sh_offset, section.sh_size))
      return invalid("section ", i, " (", section.sh_size, " bytes at ", section.sh_offset,
                     ") is not inside the file of ", bytes.size(), " bytes");
  }
  loaded.assign(headers.size(), ObjectFile::kDropped);
  for (size_t i = 0; i < headers.size(); ++i) {
    if (headers[i].sh_type == SHT_NULL || !(headers[i].sh_flags & SHF_ALLOC) || headers[i].sh_size == 0)
      continue;
    absl::StatusOr<std::string_view> name = textAt(headers[header.e_shstrndx], headers[i].sh_name);
    if (!name.ok())
      return name.status();
    // Unwind tables serve exceptions and debuggers; kernels throw nothing.
    if (*name == ".eh_frame" || headers[i].sh_type == SHT_NOTE)
      continue;
    if (absl::Status status = addSection(i, *name); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Reader::addSection(size_t index, std::string_view name) {
  const Elf64_Shdr &section = headers[index];
  std::string text(name);
  if (section.sh_flags & SHF_TLS)
    return invalid("section ", text, " is thread-local; kernels keep no state");
  // .data.rel.ro is written by relocation alone.
  if ((section.sh_flags & SHF_WRITE) && !text.starts_with(".data.rel.ro"))
    return invalid("section ", text, " (", section.sh_size, " bytes) is writable; kernels keep no state");
  uint64_t alignment = std::max<uint64_t>(section.sh_addralign, 1);
  if (!std::has_single_bit(alignment) || alignment > kLargestAlignment)
    return invalid("section ", text, ": expected an alignment of a power of two up to ", kLargestAlignment,
                   ", found ", section.sh_addralign);
  if (section.sh_size > kLargestSection)
    return invalid("section ", text, " has ", section.sh_size, " bytes; at most ", kLargestSection,
                   " can be loaded");
  std::string_view contents;
  if (section.sh_type != SHT_NOBITS)
    contents = bytes.substr(section.sh_offset, section.sh_size);
  loaded[index] = static_cast<int>(file.sections.size());
  file.sections.push_back(
      {text, contents, section.sh_size, alignment, (section.sh_flags & SHF_EXECINSTR) != 0});
  return absl::OkStatus();
}

absl::Status Reader::readSymbols() {
  auto table = std::find_if(headers.begin(), headers.end(),
                            [](const Elf64_Shdr &section) { return section.sh_type == SHT_SYMTAB; });
  if (table == headers.end())
    return invalid("there is no symbol table");
  if (table->sh_entsize != sizeof(Elf64_Sym) || table->sh_link >= headers.size())
    return invalid("the symbol table's entries have ", table->sh_entsize, " bytes and names in section ",
                   table->sh_link, "; expected ", sizeof(Elf64_Sym), " and one of ", headers.size());
  for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); ++i) {
    absl::StatusOr<ObjectFile::Symbol> symbol =
        symbolOf(at<Elf64_Sym>(table->sh_offset + i * sizeof(Elf64_Sym)), headers[table->sh_link]);
    if (!symbol.ok())
      return symbol.status();
    file.symbols.push_back(*symbol);
  }
  return absl::OkStatus();
}

absl::StatusOr<ObjectFile::Symbol> Reader::symbolOf(const Elf64_Sym &entry, const Elf64_Shdr &names) const {
  absl::StatusOr<std::string_view> name = textAt(names, entry.st_name);
  if (!name.ok())
    return name.status();
  ObjectFile::Symbol symbol{*name, ObjectFile::kDropped, 0};
  if (entry.st_shndx == SHN_UNDEF) {
    symbol.section = ObjectFile::kUndefined;
    return symbol;
  }
  if (entry.st_shndx == SHN_ABS) // the source file's name
    return symbol;
  if (entry.st_shndx >= headers.size())
    return invalid("symbol ", std::string(*name), " is in section ", entry.st_shndx, " of ", headers.size());
  symbol.section = loaded[entry.st_shndx];
  symbol.value = entry.st_value;
  if (symbol.section >= 0 && entry.st_value > file.sections[static_cast<size_t>(symbol.section)].size)
    return invalid("symbol ", std::string(*name), " lies ", entry.st_value, " bytes into a section of ",
                   file.sections[static_cast<size_t>(symbol.section)].size);
  return symbol;
}

absl::Status Reader::readRelocations() {
  for (const Elf64_Shdr &table : headers) {
    if (table.sh_type != SHT_RELA && table.sh_type != SHT_REL)
      continue;
    if (table.sh_info >= headers.size())
      return invalid("relocations for section ", table.sh_info, " of ", headers.size());
    int target = loaded[table.sh_info];
    if (target == ObjectFile::kDropped)
      continue;
    if (table.sh_type == SHT_REL || table.sh_entsize != sizeof(Elf64_Rela))
      return invalid("relocations of section ", file.sections[static_cast<size_t>(target)].name,
                     ": expected entries with addends of ", sizeof(Elf64_Rela), " bytes, found ",
                     table.sh_entsize);
    if (absl::Status status = readTable(table, target); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Reader::readTable(const Elf64_Shdr &table, int target) {
  for (uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Rela); ++i) {
    Elf64_Rela entry = at<Elf64_Rela>(table.sh_offset + i * sizeof(Elf64_Rela));
    uint64_t symbol = ELF64_R_SYM(entry.r_info);
    if (symbol >= file.symbols.size())
      return invalid("relocation ", i, " names symbol ", symbol, " of ", file.symbols.size());
    file.relocations.push_back({target, entry.r_offset, static_cast<uint32_t>(ELF64_R_TYPE(entry.r_info)),
                                static_cast<uint32_t>(symbol), entry.r_addend});
  }
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<ObjectFile> readObjectFile(std::string_view bytes) { return Reader(bytes).read(); }

} // namespace weft::rt

//===- ObjectFile.h - Reads an ELF relocatable object -----------*- C++ -*-===//
//
// The parts of an x86-64 ELF relocatable (SysV gABI, psABI 1.0) that kernels
// use, each range checked against the file. Nothing here runs or maps code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::rt {

struct ObjectFile {
  /// A section that is loaded. `bytes` is empty for SHT_NOBITS.
  struct Section {
    std::string name;
    std::string_view bytes;
    uint64_t size = 0, alignment = 1;
    bool executable = false;
  };
  /// `section`: index into `sections`; kUndefined: defined elsewhere; kDropped:
  /// in a section that is not loaded.
  struct Symbol {
    std::string_view name;
    int section = kDropped;
    uint64_t value = 0; // bytes from the section's start
  };
  struct Relocation {
    int section = 0; // index into `sections`
    uint64_t offset = 0;
    uint32_t type = 0, symbol = 0; // symbol: index into `symbols`
    int64_t addend = 0;
  };
  static constexpr int kUndefined = -1, kDropped = -2;

  std::vector<Section> sections;
  std::vector<Symbol> symbols;
  std::vector<Relocation> relocations;
};

/// Views into `bytes`, which must outlive the result. Errors: InvalidArgument
/// names what of the file is wrong, or what kernels may not contain (writable
/// or thread-local data, common symbols).
absl::StatusOr<ObjectFile> readObjectFile(std::string_view bytes);

} // namespace weft::rt

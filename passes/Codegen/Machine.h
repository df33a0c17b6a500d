//===- Machine.h - LLVM's side ----------------------------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace weft {

/// Symbols of an object that a kernel must not need: all undefined ones but
/// memset, memcpy and memmove. Empty: none.
std::string foreignSymbols(llvm::StringRef object);

} // namespace weft

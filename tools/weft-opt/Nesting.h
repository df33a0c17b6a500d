//===- Nesting.h - Bounds the nesting of textual IR --------------*- C++ -*-===//
#pragma once

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

namespace weft {

/// Deepest nesting of brackets in a text that MLIR's recursive parser is given.
constexpr int kIrNestingLimit = 200;

/// False, with one line on stderr, when brackets of `text` nest deeper; `name` is
/// the file's in that line.
inline bool nestingIsBounded(llvm::StringRef text, llvm::StringRef name) {
  int depth = 0, line = 1;
  bool inString = false, inComment = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    line += c == '\n';
    if (inComment) {
      inComment = c != '\n';
    } else if (inString) {
      i += c == '\\';
      inString = c != '"' && c != '\n';
    } else if (c == '"') {
      inString = true;
    } else if (c == '/' && text.substr(i, 2) == "//") {
      inComment = true;
    } else if (c == '{' || c == '(' || c == '[') {
      if (++depth > kIrNestingLimit) {
        llvm::errs() << name << ":" << line << ": error: brackets nest deeper than " << kIrNestingLimit
                     << " levels; write the IR flatter\n";
        return false;
      }
    } else if ((c == '}' || c == ')' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return true;
}

/// The same of a file. One that can't be read is left to the parser's own message.
inline bool fileNestingIsBounded(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return !buffer || nestingIsBounded((*buffer)->getBuffer(), path);
}

} // namespace weft

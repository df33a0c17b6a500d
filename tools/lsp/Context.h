//===- Context.h - What may stand at a place of a text ----------*- C++ -*-===//
//
// Found from words and brackets alone, so that it also holds in the line that
// is just being written.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Words.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace weft::lsp {

struct Context {
  std::optional<lang::WordPlace> place; // nullopt: inside a comment or a string
  std::string model;                    // of the statement around
  std::string key;                      // behind `KEY =` of an option
  std::vector<std::string> steps;       // `block`, `attn` in front of a dot, without indices
  bool afterDot = false;                // an address goes on here
  bool afterFor = false;                // a model's name is due
  bool inAxes = false;                  // sizes alone are due
};

/// What may stand behind the first `offset` bytes of `text`; a word that ends
/// there is the one being written.
Context contextAt(const std::string &text, size_t offset);

/// The word around `offset`, empty where none is.
std::string wordAt(const std::string &text, size_t offset);

} // namespace weft::lsp

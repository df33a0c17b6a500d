//===- check-helpers.h - Texts to diagnostics and models --------*- C++ -*-===//
#pragma once

#include "frontend/Checker.h"
#include "frontend/Parser.h"

#include <string>

namespace weft::lang::test {

/// A text, what was said about it, and its model when it has one.
struct Checked {
  SourceFiles sources;
  Diagnostics diagnostics;
  ast::File file;
  std::optional<Model> model;

  std::string text() const { return diagnostics.render(sources, false, 1000); }
  /// `W0301@4:7 W0201@9:3`, sorted by place.
  std::string codes() const {
    std::string all;
    for (const Diagnostic &entry : diagnostics.sorted()) {
      all += all.empty() ? "" : " ";
      all += std::string(codeName(entry.code));
      if (entry.hasPlace)
        all += "@" + std::to_string(entry.place.line) + ":" + std::to_string(entry.place.column);
    }
    return all;
  }
};

inline Checked parse(std::string text) {
  Checked result;
  result.file = parseText("m.weft", std::move(text), result.sources, result.diagnostics);
  return result;
}

inline Checked check(std::string text, const Overrides &overrides = {}, std::string_view name = "") {
  Checked result = parse(std::move(text));
  if (!result.diagnostics.hasErrors())
    result.model = checkModel(result.file, result.sources, name, overrides, result.diagnostics);
  return result;
}

inline Checked checkShipped(const std::string &path, const Overrides &overrides = {},
                            std::string_view name = "") {
  Checked result;
  result.file =
      parseFile(std::string(WEFT_SOURCE_DIR) + "/models/" + path, result.sources, result.diagnostics);
  if (!result.diagnostics.hasErrors())
    result.model = checkModel(result.file, result.sources, name, overrides, result.diagnostics);
  return result;
}

/// Statements inside a small model. They start in line 5.
inline std::string inModel(const std::string &statements) {
  return "model m(vocab = 8, dim = 4, heads = 2, head = 2, depth = 3, mode = plain | fancy) {\n"
         "  input tokens, targets : int[batch, pos]\n"
         "  param embed : [vocab, dim] init 0\n"
         "  x = embed[tokens]\n" +
         statements + "\n  output logits = x @ embed\n}\n";
}

inline int64_t countParameters(const Model &model) {
  int64_t total = 0;
  for (const ParameterInfo &parameter : parametersOf(model)) {
    int64_t size = 1;
    for (int64_t extent : parameter.shape)
      size *= extent;
    total += size;
  }
  return total;
}

} // namespace weft::lang::test

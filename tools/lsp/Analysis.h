//===- Analysis.h - What the checker says of one open text ------*- C++ -*-===//
#pragma once

#include "frontend/CheckFile.h"
#include "frontend/Counts.h"
#include "frontend/Opened.h"
#include "tools/lsp/Text.h"

#include <map>
#include <memory>
#include <string>

namespace weft::lsp {

/// Rows of models that no recipe of the file trains.
constexpr int64_t kUsualPositions = 1024;

/// One text with the files that it uses, checked. Where the text can't be parsed
/// whole, names are those of the statements that can.
class Analysis {
public:
  Analysis(const std::string &path, const std::string &text, const lang::OpenText &open);
  Analysis(const Analysis &) = delete;

  lang::SourceFiles sources;
  lang::Diagnostics diagnostics;
  lang::ast::File file;
  lang::NameIndex names;
  lang::FileStatements statements;
  int32_t own = 0; // the text's number in `sources`

  /// Null when the model was refused. Counts are made when they are first asked for.
  const lang::ModelCounts *countsOf(const std::string &model);
  /// Positions of a row: the first recipe's, or kUsualPositions.
  int64_t positionsOf(const std::string &model) const;
  /// The editor's range of a place in any of the files.
  Range rangeOf(const lang::Place &place);
  std::string uriOf(int32_t source) const;

private:
  std::map<std::string, std::unique_ptr<lang::ModelCounts>> counts;
  std::map<int32_t, Text> texts;
};

} // namespace weft::lsp

//===- Analysis.cpp - What the checker says of one open text ---------------===//

#include "tools/lsp/Analysis.h"

#include <filesystem>

namespace weft::lsp {

Analysis::Analysis(const std::string &path, const std::string &text, const lang::OpenText &open) {
  file = lang::parseOpened(path, text, open, sources, diagnostics);
  // What a text that is not whole leaves out would be missed everywhere: only
  // the parser's errors are told, and names are taken from what there is.
  lang::Diagnostics untold;
  lang::Diagnostics &told = diagnostics.hasErrors() ? untold : diagnostics;
  statements = lang::checkStatements(file, own, sources, {}, told, &names);
  lang::indexStatements(file, names);
}

int64_t Analysis::positionsOf(const std::string &model) const {
  auto found = statements.positions.find(model);
  return found == statements.positions.end() ? kUsualPositions : found->second.front();
}

const lang::ModelCounts *Analysis::countsOf(const std::string &model) {
  auto found = statements.checked.find(model);
  if (found == statements.checked.end() || !found->second)
    return nullptr;
  std::unique_ptr<lang::ModelCounts> &made = counts[model];
  if (!made)
    made = std::make_unique<lang::ModelCounts>(*found->second, positionsOf(model));
  return made.get();
}

Range Analysis::rangeOf(const lang::Place &place) {
  const Text &text = texts.try_emplace(place.file, sources.file(place.file).text).first->second;
  return text.rangeOf(static_cast<size_t>(place.offset), static_cast<size_t>(place.length));
}

std::string Analysis::uriOf(int32_t source) const {
  const std::string &path = sources.file(source).path;
  return path.find("://") != std::string::npos || path.starts_with("untitled:") ? path : uriOfPath(path);
}

} // namespace weft::lsp

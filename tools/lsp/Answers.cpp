//===- Answers.cpp - Requests about texts ----------------------------------===//

#include "frontend/Format.h"
#include "tools/lsp/Completion.h"
#include "tools/lsp/Hover.h"
#include "tools/lsp/Server.h"
#include "tools/lsp/Symbols.h"

#include "absl/strings/str_cat.h"

#include <set>

namespace weft::lsp {

const std::map<std::string, Server::Method, std::less<>> &Server::requests() {
  static const std::map<std::string, Method, std::less<>> methods = {
      {"initialize", &Server::initialize},
      {"shutdown", &Server::shutdown},
      {"textDocument/hover", &Server::hover},
      {"textDocument/definition", &Server::definition},
      {"textDocument/references", &Server::references},
      {"textDocument/documentHighlight", &Server::highlight},
      {"textDocument/documentSymbol", &Server::symbols},
      {"textDocument/completion", &Server::completion},
      {"textDocument/formatting", &Server::formatting},
      {"textDocument/codeAction", &Server::codeAction},
  };
  return methods;
}

const std::map<std::string, Server::Method, std::less<>> &Server::notifications() {
  static const std::map<std::string, Method, std::less<>> methods = {
      {"initialized", &Server::ignore},
      {"textDocument/didOpen", &Server::open},
      {"textDocument/didChange", &Server::change},
      {"textDocument/didClose", &Server::close},
  };
  return methods;
}

rt::Json Server::locationOf(Analysis &analysis, const lang::Place &place) {
  return {{"uri", analysis.uriOf(place.file)}, {"range", jsonOf(analysis.rangeOf(place))}};
}

Server::Answer Server::hover(const rt::Json &params) {
  absl::StatusOr<Target> at = target(params);
  if (!at.ok())
    return at.status();
  std::optional<HoverPage> page = hoverAt(*at->analysis, at->offset);
  if (!page)
    return rt::Json();
  return rt::Json{{"contents", {{"kind", "markdown"}, {"value", page->markdown}}},
                  {"range", jsonOf(at->analysis->rangeOf(page->place))}};
}

Server::Answer Server::definition(const rt::Json &params) {
  absl::StatusOr<Target> at = target(params);
  if (!at.ok())
    return at.status();
  const lang::NameEntry *entry = at->analysis->names.at(at->analysis->own, static_cast<int32_t>(at->offset));
  if (!entry || entry->declared.length == 0)
    return rt::Json();
  return locationOf(*at->analysis, entry->declared);
}

/// In every open text that reads the file of the declaration.
Server::Answer Server::references(const rt::Json &params) {
  absl::StatusOr<Target> at = target(params);
  if (!at.ok())
    return at.status();
  bool declarations = true;
  if (auto context = params.find("context"); context != params.end() && context->is_object())
    declarations = context->value("includeDeclaration", rt::Json(true)) != rt::Json(false);
  rt::Json list = rt::Json::array();
  const lang::NameEntry *entry = at->analysis->names.at(at->analysis->own, static_cast<int32_t>(at->offset));
  if (!entry || entry->declared.length == 0)
    return list;
  const rt::Json declared = locationOf(*at->analysis, entry->declared);
  std::set<std::string> seen;
  for (auto &[uri, document] : documents) {
    Analysis &analysis = analysisOf(document);
    for (const lang::NameEntry *use : analysis.names.all()) {
      if (use->declared.length == 0 || use->name != entry->name ||
          locationOf(analysis, use->declared) != declared || (!declarations && use->isDeclaration()))
        continue;
      rt::Json location = locationOf(analysis, use->place);
      if (seen.insert(rt::dumpJson(location)).second)
        list.push_back(std::move(location));
    }
  }
  return list;
}

Server::Answer Server::highlight(const rt::Json &params) {
  absl::StatusOr<Target> at = target(params);
  if (!at.ok())
    return at.status();
  rt::Json list = rt::Json::array();
  const lang::NameEntry *entry = at->analysis->names.at(at->analysis->own, static_cast<int32_t>(at->offset));
  if (!entry || entry->declared.length == 0)
    return list;
  for (const lang::NameEntry *use : at->analysis->names.usesOf(entry->declared))
    if (use->place.file == at->analysis->own)
      list.push_back({{"range", jsonOf(at->analysis->rangeOf(use->place))}});
  return list;
}

Server::Answer Server::symbols(const rt::Json &params) {
  absl::StatusOr<Target> at = document(params);
  return at.ok() ? Answer(symbolsOf(analysisOf(*at->document))) : at.status();
}

Server::Answer Server::completion(const rt::Json &params) {
  absl::StatusOr<Target> at = target(params);
  return at.ok() ? Answer(completionsAt(*at->analysis, at->offset)) : at.status();
}

/// One edit over the lines that are laid out otherwise.
Server::Answer Server::formatting(const rt::Json &params) {
  absl::StatusOr<Target> at = document(params);
  if (!at.ok())
    return at.status();
  const Text &text = at->document->text;
  absl::StatusOr<std::string> laidOut = lang::formatText(at->document->path, text.bytes());
  if (!laidOut.ok()) {
    const std::string why(laidOut.status().message());
    return absl::FailedPreconditionError(why.substr(0, why.find('\n')));
  }
  const std::string &old = text.bytes();
  size_t start = 0, end = 0;
  for (size_t i = 0; i < std::min(old.size(), laidOut->size()) && old[i] == (*laidOut)[i]; ++i)
    start = old[i] == '\n' ? i + 1 : start;
  const size_t room = std::min(old.size(), laidOut->size()) - start;
  for (size_t i = 1; i <= room && old[old.size() - i] == (*laidOut)[laidOut->size() - i]; ++i)
    end = old[old.size() - i] == '\n' ? i - 1 : end;
  rt::Json edits = rt::Json::array();
  if (*laidOut != old)
    edits.push_back({{"range", jsonOf(text.rangeOf(start, old.size() - start - end))},
                     {"newText", laidOut->substr(start, laidOut->size() - start - end)}});
  return edits;
}

Server::Answer Server::codeAction(const rt::Json &params) {
  absl::StatusOr<Target> at = document(params);
  if (!at.ok())
    return at.status();
  absl::StatusOr<const rt::Json *> member = rt::memberOf(params, "range", "params");
  absl::StatusOr<Range> range = member.ok() ? rangeOf(**member) : member.status();
  if (!range.ok())
    return range.status();
  return fixesOf(analysisOf(*at->document), at->uri, *range, pages);
}

} // namespace weft::lsp

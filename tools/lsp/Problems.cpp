//===- Problems.cpp - Errors and their quick fixes -------------------------===//

#include "tools/lsp/Problems.h"

#include "frontend/Explain.h"
#include "runtime/core/File.h"
#include "tools/lsp/Context.h"

#include "absl/strings/str_cat.h"

#include <cctype>
#include <filesystem>
#include <set>

namespace weft::lsp {
namespace {

enum Severity { kError = 1, kWarning = 2 };

/// The place of a problem in the analysed text: where it is, or the `use` of the
/// file that it lies in, or the text's start.
lang::Place placeIn(const Analysis &analysis, const lang::Diagnostic &entry) {
  if (entry.hasPlace && entry.place.file == analysis.own)
    return entry.place;
  for (const lang::ast::Use &use : analysis.file.uses)
    if (use.place.file == analysis.own)
      return use.place;
  return analysis.sources.placeAt(analysis.own, 0);
}

bool liesElsewhere(const Analysis &analysis, const lang::Diagnostic &entry) {
  return entry.hasPlace && entry.place.file != analysis.own;
}

rt::Json problem(Analysis &analysis, const lang::Diagnostic &entry, ErrorPages &pages) {
  const std::string code(lang::codeName(entry.code));
  std::string message = entry.message;
  if (liesElsewhere(analysis, entry))
    message = absl::StrCat(analysis.sources.describe(entry.place), ": ", message);
  if (!entry.help.empty())
    absl::StrAppend(&message, "\nhelp: ", entry.help);
  rt::Json made = {{"range", jsonOf(analysis.rangeOf(placeIn(analysis, entry)))},
                   {"severity", entry.warning ? kWarning : kError},
                   {"code", code},
                   {"source", "weft"},
                   {"message", message}};
  if (const std::string uri = pages.uriOf(code); !uri.empty())
    made["codeDescription"] = {{"href", uri}};
  rt::Json related = rt::Json::array();
  for (const lang::Note &note : entry.notes)
    related.push_back(
        {{"location",
          {{"uri", analysis.uriOf(note.place.file)}, {"range", jsonOf(analysis.rangeOf(note.place))}}},
         {"message", note.message}});
  if (!related.empty())
    made["relatedInformation"] = std::move(related);
  return made;
}

/// `embed` of "did you mean embed?" or "did you mean `embed`?".
std::string suggestionOf(const std::string &help) {
  constexpr std::string_view kAsk = "did you mean ";
  if (!help.starts_with(kAsk) || !help.ends_with('?'))
    return "";
  std::string name = help.substr(kAsk.size(), help.size() - kAsk.size() - 1);
  if (name.size() > 2 && name.front() == '`' && name.back() == '`')
    name = name.substr(1, name.size() - 2);
  return name;
}

/// The word inside the error's place that the suggestion is near to.
std::optional<lang::Place> misspelled(const Analysis &analysis, const lang::Place &place,
                                      const std::string &suggestion) {
  const std::string text(analysis.sources.textAt(place));
  for (size_t at = 0; at < text.size();) {
    const std::string word = wordAt(text, at);
    if (!word.empty() && word != suggestion && !lang::nearest(word, {suggestion}).empty())
      return analysis.sources.placeAt(place.file, place.offset + static_cast<int32_t>(at),
                                      static_cast<int32_t>(word.size()));
    at += std::max<size_t>(word.size(), 1);
  }
  return std::nullopt;
}

bool before(const Position &a, const Position &b) {
  return a.line < b.line || (a.line == b.line && a.character < b.character);
}

bool touch(const Range &a, const Range &b) { return !before(a.end, b.start) && !before(b.end, a.start); }

} // namespace

std::string ErrorPages::uriOf(const std::string &code) {
  if (folder.empty())
    return "";
  auto [entry, isNew] = known.try_emplace(code);
  std::optional<std::string> page = isNew ? lang::explain(code) : std::nullopt;
  if (page) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    const std::string path = absl::StrCat(folder, "/", code, ".md");
    const bool there = std::filesystem::exists(path, error) && rt::readFile(path).value_or("") == *page;
    if (there || rt::writeFileAtomic(path, *page).ok())
      entry->second = uriOfPath(path);
  }
  return entry->second;
}

rt::Json problemsOf(Analysis &analysis, ErrorPages &pages) {
  rt::Json list = rt::Json::array();
  std::set<int32_t> told; // files whose first error stands at a `use`
  for (const lang::Diagnostic &entry : analysis.diagnostics.sorted())
    if (!liesElsewhere(analysis, entry) || told.insert(entry.place.file).second)
      list.push_back(problem(analysis, entry, pages));
  return list;
}

rt::Json fixesOf(Analysis &analysis, const std::string &uri, const Range &range, ErrorPages &pages) {
  rt::Json list = rt::Json::array();
  for (const lang::Diagnostic &entry : analysis.diagnostics.sorted()) {
    const std::string suggestion = suggestionOf(entry.help);
    if (suggestion.empty() || !entry.hasPlace || liesElsewhere(analysis, entry) ||
        !touch(analysis.rangeOf(entry.place), range))
      continue;
    std::optional<lang::Place> word = misspelled(analysis, entry.place, suggestion);
    if (!word)
      continue;
    rt::Json edit = {{"range", jsonOf(analysis.rangeOf(*word))}, {"newText", suggestion}};
    rt::Json fix = {
        {"title", absl::StrCat("change ", std::string(analysis.sources.textAt(*word)), " to ", suggestion)},
        {"kind", "quickfix"},
        {"isPreferred", true}};
    fix["diagnostics"] = rt::Json::array({problem(analysis, entry, pages)});
    fix["edit"]["changes"][uri] = rt::Json::array({edit});
    list.push_back(std::move(fix));
  }
  return list;
}

} // namespace weft::lsp

//===- Diagnostics.cpp - Errors with places, collected --------------------===//

#include "frontend/Diagnostics.h"

#include "absl/strings/str_cat.h"

#include "nlohmann/json.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace weft::lang {
namespace {

struct CodeEntry {
  std::string_view name, title;
};

constexpr CodeEntry kCodes[] = {
#define WEFT_CODE(code, title) {#code, title},
#include "frontend/Codes.def"
#undef WEFT_CODE
};

constexpr std::string_view kRed = "\033[1;31m", kYellow = "\033[1;33m", kBold = "\033[1m",
                           kBlue = "\033[1;34m", kReset = "\033[0m";

struct Painter {
  bool colour;
  std::string operator()(std::string_view paint, std::string_view text) const {
    if (!colour)
      return std::string(text);
    return std::string(paint).append(text).append(kReset);
  }
};

absl::string_view view(std::string_view text) { return {text.data(), text.size()}; }

bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Cuts a long line to what stands around [column, end), which then counts from the
/// new line's start. Characters stay whole.
void cutAround(std::string &line, size_t &column, size_t &end) {
  constexpr size_t kWidest = 200, kBefore = 80;
  if (line.size() <= kWidest)
    return;
  size_t first = column > kBefore ? column - kBefore : 0, last = std::min(line.size(), first + kWidest);
  while (first > 0 && isContinuation(line[first]))
    --first;
  while (last < line.size() && isContinuation(line[last]))
    ++last;
  const std::string before = first > 0 ? "..." : "", after = last < line.size() ? "..." : "";
  column = std::min(column, line.size()) - first + before.size();
  end = std::max(std::min(end, last) - std::min(first, end) + before.size(), column);
  line = before + line.substr(first, last - first) + after;
}

/// The source line and a line of carets under it. Tabs stay tabs and other
/// control characters become spaces, so that both lines align in a terminal.
std::string excerpt(const SourceFiles &sources, const Place &place, const Painter &paint) {
  std::string line(sources.lineText(place.file, place.line));
  size_t column = static_cast<size_t>(std::max(place.column, 1)) - 1;
  size_t end = std::min(line.size(), column + static_cast<size_t>(std::max(place.length, 1)));
  cutAround(line, column, end);
  std::string pad, carets;
  for (size_t i = 0; i < line.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(line[i]);
    if (c < 0x20 && c != '\t')
      line[i] = ' ';
    if (i < column && !isContinuation(line[i]))
      pad += line[i] == '\t' ? '\t' : ' ';
    if (i >= column && i < end && !isContinuation(line[i]))
      carets += carets.empty() ? '^' : '~';
  }
  if (carets.empty())
    carets = "^";
  std::string number = std::to_string(place.line);
  std::string gutter(number.size(), ' ');
  return absl::StrCat(view(paint(kBlue, absl::StrCat(" ", number, " | "))), line, "\n",
                      view(paint(kBlue, absl::StrCat(" ", gutter, " | "))), pad, view(paint(kRed, carets)),
                      "\n");
}

bool before(const Diagnostic &a, const Diagnostic &b) {
  return std::tie(b.hasPlace, a.place.file, a.place.line, a.place.column) <
         std::tie(a.hasPlace, b.place.file, b.place.line, b.place.column);
}

bool samePlace(const Place &a, const Place &b) {
  return a.file == b.file && a.offset == b.offset && a.length == b.length;
}

/// Insertions, deletions, changes and swaps of neighbours that make `a` of `b`.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> older, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    older = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], older[j - 2] + 1);
    }
  }
  return row[b.size()];
}

nlohmann::ordered_json placeJson(const SourceFiles &sources, const Place &place) {
  return {{"file", sources.file(place.file).path},
          {"line", place.line},
          {"column", place.column},
          {"length", place.length}};
}

} // namespace

std::string_view codeName(Code code) { return kCodes[static_cast<size_t>(code)].name; }
std::string_view codeTitle(Code code) { return kCodes[static_cast<size_t>(code)].title; }

std::optional<Code> codeNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(kCodes); ++i)
    if (kCodes[i].name == name)
      return static_cast<Code>(i);
  return std::nullopt;
}

Diagnostic &Diagnostics::error(Code code, const Place &place, std::string message) {
  ++errors;
  return entries.emplace_back(Diagnostic{code, place, std::move(message), {}, {}});
}

Diagnostic &Diagnostics::warning(Code code, const Place &place, std::string message) {
  Diagnostic &entry = entries.emplace_back(Diagnostic{code, place, std::move(message), {}, {}});
  entry.warning = true;
  return entry;
}

Diagnostic &Diagnostics::errorAnywhere(Code code, std::string message) {
  Diagnostic &entry = error(code, Place{}, std::move(message));
  entry.hasPlace = false;
  return entry;
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> result = entries;
  std::stable_sort(result.begin(), result.end(), before);
  auto same = [](const Diagnostic &a, const Diagnostic &b) {
    return a.code == b.code && a.hasPlace == b.hasPlace && samePlace(a.place, b.place) &&
           a.message == b.message;
  };
  result.erase(std::unique(result.begin(), result.end(), same), result.end());
  return result;
}

std::string Diagnostics::render(const SourceFiles &sources, bool colour, int limit) const {
  Painter paint{colour};
  std::string text;
  int shown = 0, hidden = 0;
  for (const Diagnostic &entry : sorted()) {
    if (!entry.warning && shown == limit) {
      ++hidden;
      continue;
    }
    shown += entry.warning ? 0 : 1;
    std::string label = absl::StrCat(entry.warning ? "warning[" : "error[", view(codeName(entry.code)), "]");
    if (entry.hasPlace)
      text += paint(kBold, sources.describe(entry.place)) + ": ";
    text += paint(entry.warning ? kYellow : kRed, label) + ": " + paint(kBold, entry.message) + "\n";
    if (entry.hasPlace)
      text += excerpt(sources, entry.place, paint);
    for (const Note &note : entry.notes)
      text += paint(kBold, sources.describe(note.place)) + ": note: " + note.message + "\n" +
              excerpt(sources, note.place, paint);
    if (!entry.help.empty())
      text += paint(kBlue, "help:") + " " + entry.help + "\n";
  }
  if (hidden > 0)
    absl::StrAppend(&text, "and ", hidden, hidden == 1 ? " more error\n" : " more errors\n");
  return text;
}

std::string Diagnostics::renderJson(const SourceFiles &sources) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Diagnostic &entry : sorted()) {
    nlohmann::ordered_json item = {{"code", codeName(entry.code)},
                                   {"severity", entry.warning ? "warning" : "error"}};
    if (entry.hasPlace)
      item.update(placeJson(sources, entry.place));
    item["message"] = entry.message;
    item["notes"] = nlohmann::ordered_json::array();
    for (const Note &note : entry.notes) {
      nlohmann::ordered_json noteItem = placeJson(sources, note.place);
      noteItem["message"] = note.message;
      item["notes"].push_back(std::move(noteItem));
    }
    if (!entry.help.empty())
      item["help"] = entry.help;
    list.push_back(std::move(item));
  }
  // Messages can quote bytes that are no UTF-8: they are replaced, not thrown at.
  return list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::Status Diagnostics::status(const SourceFiles &sources) const {
  if (!hasErrors())
    return absl::OkStatus();
  return absl::InvalidArgumentError(render(sources));
}

std::string nearest(std::string_view name, const std::vector<std::string> &candidates) {
  constexpr size_t kLongest = 100; // of a name that a slip is looked for in
  std::string best;
  if (name.size() > kLongest)
    return best;
  size_t bestDistance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string &candidate : candidates) {
    if (candidate.size() > 2 * kLongest)
      continue;
    size_t distance = editDistance(name, candidate);
    if (distance < bestDistance && distance > 0) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

} // namespace weft::lang

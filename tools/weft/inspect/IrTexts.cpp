//===- IrTexts.cpp - The IR after each pass, sharing what is equal ---------===//
#include "tools/weft/inspect/IrTexts.h"

#include <algorithm>
#include <charconv>

namespace weft::inspect {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWord(char c) { return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

} // namespace

Numbered withoutNumbers(std::string_view line) {
  constexpr size_t kMostDigits = 15; // more are no value's number
  Numbered result;
  for (size_t i = 0; i < line.size(); ++i) {
    result.text += line[i];
    if (line[i] != '%')
      continue;
    size_t end = i + 1;
    while (end < line.size() && isDigit(line[end]))
      ++end;
    if (end < line.size() && isWord(line[end]))
      continue; // %arg0: all of it is text
    const size_t digits = end - i - 1;
    // A number that would not come back as it was written stays text.
    const bool plain = digits > 0 && digits <= kMostDigits && (digits == 1 || line[i + 1] != '0');
    if (!plain && digits > 0)
      continue;
    int64_t number = -1;
    if (plain)
      std::from_chars(line.data() + i + 1, line.data() + end, number);
    result.numbers.push_back(number);
    i = end - 1;
  }
  return result;
}

std::string withNumbers(const Numbered &line) {
  std::string text;
  size_t next = 0;
  for (size_t i = 0; i < line.text.size(); ++i) {
    text += line.text[i];
    const bool place = line.text[i] == '%' && (i + 1 == line.text.size() || !isWord(line.text[i + 1]));
    if (!place)
      continue;
    const int64_t number = line.numbers[next++];
    if (number >= 0)
      text += std::to_string(number);
  }
  return text;
}

int32_t IrTexts::place(const std::string &key, const rt::OrderedJson &value) {
  auto [found, isNew] = placeOf.try_emplace(key, static_cast<int32_t>(places.size()));
  if (isNew)
    places.push_back(value);
  return found->second;
}

int32_t IrTexts::lineOf(const std::string &text, int32_t place) {
  auto [found, isNew] = templateOf.try_emplace(text, static_cast<int32_t>(templates.size()));
  if (isNew)
    templates.push_back(&found->first);
  auto [line, isNewLine] = numberOf.try_emplace({found->second, place}, static_cast<int32_t>(lines.size()));
  if (isNewLine)
    lines.emplace_back(found->second, place);
  return line->second;
}

TextChange IrTexts::add(std::string_view text, const std::vector<int32_t> &placeOfLine) {
  std::vector<int32_t> now;
  rt::OrderedJson numbers = rt::OrderedJson::array();
  int64_t current = -1;
  for (size_t begin = 0, row = 0; begin < text.size(); ++row) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const Numbered line = withoutNumbers(text.substr(begin, end - begin));
    now.push_back(lineOf(line.text, row < placeOfLine.size() ? placeOfLine[row] : 0));
    for (size_t i = 0; i < line.numbers.size(); ++i) {
      numbers.push_back(i == 0 ? line.numbers[i] - (current + 1) : current - line.numbers[i]);
      if (i == 0)
        current = line.numbers[i];
    }
    begin = end + 1;
  }
  TextChange change;
  change.lines = static_cast<int64_t>(now.size());
  rt::OrderedJson edits = rt::OrderedJson::array();
  for (const Edit &edit : diffLines(last, now)) {
    rt::OrderedJson entry = rt::OrderedJson::array({edit.keep, edit.drop});
    for (const int32_t line : edit.add)
      entry.push_back(line);
    edits.push_back(std::move(entry));
    change.dropped += edit.drop;
    change.added += static_cast<int64_t>(edit.add.size());
  }
  if (texts.empty() || text != lastText)
    texts.push_back({{"edits", std::move(edits)}, {"numbers", std::move(numbers)}});
  change.text = texts.size() - 1;
  last = std::move(now);
  lastText = text;
  return change;
}

rt::OrderedJson IrTexts::toJson() const {
  rt::OrderedJson json = {{"templates", rt::OrderedJson::array()},
                          {"places", places},
                          {"lines", rt::OrderedJson::array()},
                          {"texts", texts}};
  for (const std::string *text : templates)
    json["templates"].push_back(*text);
  for (const auto &[text, place] : lines) {
    json["lines"].push_back(text);
    json["lines"].push_back(place);
  }
  return json;
}

} // namespace weft::inspect

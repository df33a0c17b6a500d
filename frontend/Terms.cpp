#include "frontend/Terms.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <cmath>
#include <cstdio>

namespace weft::lang {

std::string numberText(double number) { return Value::ofNumber(number).text(); }

std::string listed(const std::vector<std::string> &words) { return absl::StrJoin(words, ", "); }

bool isWord(const ast::Term &term, std::string_view word) {
  return term.kind == ast::Term::Kind::Word && term.text == word;
}

bool isWhole(double number) {
  return std::floor(number) == number && std::fabs(number) <= 9007199254740992.0;
}

std::string Bounds::text() const {
  bool below = std::isfinite(high), above = std::isfinite(low);
  if (below && above)
    return absl::StrCat(openLow ? "above " : "from ", numberText(low), openLow ? " up to " : " to ",
                        numberText(high));
  if (above)
    return absl::StrCat(openLow ? "above " : "at least ", numberText(low));
  return absl::StrCat("at most ", numberText(high));
}

const ast::Option *OptionReader::find(std::string_view key) {
  known.emplace_back(key);
  for (const ast::Option &option : options)
    if (option.key.text == key)
      return &option;
  return nullptr;
}

void OptionReader::bad(const Place &place, std::string_view key, std::string_view expected) {
  std::string found(sources.textAt(place));
  diagnostics.error(codes.badValue, place,
                    absl::StrCat(owner, ": `", std::string(key), "` takes ", std::string(expected),
                                 ", found `", found, "`"));
}

void OptionReader::outside(const Place &place, std::string_view key, const Bounds &bounds, double found) {
  diagnostics.error(codes.outOfRange, place,
                    absl::StrCat(owner, ": `", std::string(key), "` must be ", bounds.text(), ", found ",
                                 numberText(found)));
}

const ast::Phrase *OptionReader::phrase(std::string_view key, std::string_view expected) {
  const ast::Option *option = find(key);
  if (!option)
    return nullptr;
  if (option->values.size() == 1 && !option->values[0].terms.empty())
    return &option->values[0];
  bad(option->place, key, expected);
  return nullptr;
}

const ast::Term *OptionReader::term(std::string_view key, std::string_view expected) {
  const ast::Phrase *only = phrase(key, expected);
  if (!only)
    return nullptr;
  if (only->terms.size() == 1)
    return &only->terms[0];
  bad(only->place, key, expected);
  return nullptr;
}

std::string OptionReader::choice(std::string_view key, const std::vector<std::string> &words) {
  const ast::Option *option = find(key);
  if (!option)
    return words[0];
  const ast::Term *only = nullptr;
  if (option->values.size() == 1 && option->values[0].terms.size() == 1)
    only = &option->values[0].terms[0];
  if (only && only->kind == ast::Term::Kind::Word)
    for (const std::string &word : words)
      if (only->text == word)
        return word;
  const Place &place = option->values.empty() ? option->place : option->values[0].place;
  diagnostics
      .error(codes.badValue, place,
             absl::StrCat(owner, ": `", std::string(key), "` takes one of ", listed(words), ", found `",
                          std::string(sources.textAt(place)), "`"))
      .advise(only && !nearest(only->text, words).empty()
                  ? absl::StrCat("did you mean `", nearest(only->text, words), "`?")
                  : std::string());
  return words[0];
}

double OptionReader::number(std::string_view key, double byDefault, Bounds bounds) {
  const ast::Term *only = term(key, "a number");
  if (!only)
    return byDefault;
  if (only->kind != ast::Term::Kind::Number) {
    bad(only->place, key, "a number");
    return byDefault;
  }
  if (!bounds.contain(only->number)) {
    outside(only->place, key, bounds, only->number);
    return byDefault;
  }
  return only->number;
}

int64_t OptionReader::whole(std::string_view key, int64_t byDefault, int64_t low, int64_t high) {
  const ast::Term *only = term(key, "a whole number");
  if (!only)
    return byDefault;
  if (only->kind != ast::Term::Kind::Number || !lang::isWhole(only->number)) {
    bad(only->place, key, "a whole number");
    return byDefault;
  }
  Bounds bounds{static_cast<double>(low), high == std::numeric_limits<int64_t>::max()
                                              ? std::numeric_limits<double>::infinity()
                                              : static_cast<double>(high)};
  if (!bounds.contain(only->number)) {
    outside(only->place, key, bounds, only->number);
    return byDefault;
  }
  return static_cast<int64_t>(only->number);
}

double OptionReader::share(std::string_view key, double byDefault, Bounds bounds) {
  const ast::Term *only = term(key, "a percentage such as `5%`");
  if (!only)
    return byDefault;
  if (only->kind != ast::Term::Kind::Percent) {
    bad(only->place, key, "a percentage such as `5%`");
    return byDefault;
  }
  if (!bounds.contain(only->number / 100)) {
    Bounds percent{bounds.low * 100, bounds.high * 100, bounds.openLow};
    outside(only->place, key, percent, only->number);
    return byDefault;
  }
  return only->number / 100;
}

int64_t OptionReader::counted(std::string_view key, std::string_view unit, int64_t byDefault, int64_t low) {
  std::string expected = absl::StrCat("a whole number of ", std::string(unit), ", such as `", byDefault, " ",
                                      std::string(unit), "`");
  const ast::Phrase *only = phrase(key, expected);
  if (!only)
    return byDefault;
  bool fits = only->terms.size() == 2 && only->terms[0].kind == ast::Term::Kind::Number &&
              lang::isWhole(only->terms[0].number) && isWord(only->terms[1], unit);
  if (!fits) {
    bad(only->place, key, expected);
    return byDefault;
  }
  if (only->terms[0].number < static_cast<double>(low)) {
    outside(only->place, key, {static_cast<double>(low)}, only->terms[0].number);
    return byDefault;
  }
  return static_cast<int64_t>(only->terms[0].number);
}

std::optional<uint64_t> OptionReader::seed(std::string_view key) {
  const ast::Term *only = term(key, "`run` or a whole number");
  if (!only || isWord(*only, "run"))
    return std::nullopt;
  if (only->kind != ast::Term::Kind::Number || !lang::isWhole(only->number) || only->number < 0) {
    bad(only->place, key, "`run` or a whole number");
    return std::nullopt;
  }
  return static_cast<uint64_t>(only->number);
}

void OptionReader::finish() {
  for (const ast::Option &option : options) {
    for (const ast::Option *other = options.data(); other != &option; ++other)
      if (other->key.text == option.key.text) {
        diagnostics
            .error(Code::W0109, option.key.place,
                   absl::StrCat(owner, ": `", option.key.text, "` stands twice"))
            .note(other->key.place, "the first one is here");
        break;
      }
    bool isKnown = false;
    for (const std::string &key : known)
      isKnown |= key == option.key.text;
    if (isKnown)
      continue;
    std::string near = nearest(option.key.text, known);
    diagnostics
        .error(codes.unknownOption, option.key.place,
               absl::StrCat(owner, " has no option `", option.key.text, "`; its options are ", listed(known)))
        .advise(near.empty() ? std::string() : absl::StrCat("did you mean `", near, "`?"));
  }
}

} // namespace weft::lang

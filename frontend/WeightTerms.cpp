//===- WeightTerms.cpp - What stands in a weight table's lines ------------===//

#include "frontend/WeightTerms.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <charconv>

namespace weft::lang {

using ast::Term;

namespace {

std::vector<std::vector<std::string>> keysOf(const ast::Phrase &phrase) {
  std::vector<std::vector<std::string>> keys;
  for (size_t i = 0; i < phrase.terms.size(); ++i) {
    const Term &term = phrase.terms[i];
    if (i % 2 == 1) {
      if (!isWord(term, "or"))
        return {};
      continue;
    }
    if (term.segments.empty())
      return {};
    keys.emplace_back();
    for (const ast::Segment &segment : term.segments) {
      if (segment.indexed || segment.names.size() != 1)
        return {};
      keys.back().push_back(segment.names[0].text);
    }
  }
  return phrase.terms.size() % 2 == 1 ? keys : std::vector<std::vector<std::string>>{};
}

} // namespace

SizeSource sourceOf(const std::string &setting, const ast::Phrase &phrase) {
  SizeSource source{setting, keysOf(phrase), false};
  if (source.keys.size() > 1 && source.keys.back() == std::vector<std::string>{"default"}) {
    source.keys.pop_back();
    source.optional = true;
  }
  return source;
}

std::optional<std::string> jsonOf(const Term &term) {
  if (term.kind == Term::Kind::String)
    return absl::StrCat("\"", absl::StrReplaceAll(term.text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
  if (term.kind == Term::Kind::Number) {
    char digits[32];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, term.number).ptr);
  }
  if (isWord(term, "true") || isWord(term, "false"))
    return term.text;
  if (isWord(term, "absent"))
    return "";
  return std::nullopt;
}

std::optional<WeightTable> weightSizes(const ast::File &file, std::string_view name, std::string_view model) {
  for (const ast::Weights &tree : file.weights) {
    if (tree.model.text != model || (!name.empty() && tree.name.text != name))
      continue;
    WeightTable table;
    table.name = tree.name.text;
    table.model = std::string(model);
    for (const ast::Clause &clause : tree.clauses)
      if (clause.verb.text == "sizes" && clause.phrases.size() == 1 && clause.phrases[0].terms.size() == 1) {
        table.sizesFile = clause.phrases[0].terms[0].text;
        for (const ast::Option &option : clause.options)
          if (option.values.size() == 1)
            if (SizeSource source = sourceOf(option.key.text, option.values[0]); !source.keys.empty())
              table.sizes.push_back(std::move(source));
      }
    return table;
  }
  return std::nullopt;
}

} // namespace weft::lang

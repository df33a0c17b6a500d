#include "frontend/PlanRead.h"

#include "absl/strings/str_cat.h"

namespace weft::lang {

using ast::Term;

std::optional<std::string> fileOf(const Term &term) {
  if (term.kind != Term::Kind::Call || term.text != "file" || term.arguments.size() != 1)
    return std::nullopt;
  const ast::Argument &argument = term.arguments[0];
  if (!argument.key.text.empty() || argument.value.terms.size() != 1 ||
      argument.value.terms[0].kind != Term::Kind::String)
    return std::nullopt;
  return argument.value.terms[0].text;
}

void PlanReader::misfit(const ast::Clause &clause, const Term *found, std::string_view expected) {
  std::string text = found ? absl::StrCat("found `", std::string(sources.textAt(found->place)), "`")
                           : std::string("found the end of the statement");
  diagnostics.error(Code::W0404, found ? found->place : clause.place,
                    absl::StrCat("`", clause.verb.text, "` expects ", std::string(expected), ", ", text));
}

bool PlanReader::singlePhrase(const ast::Clause &clause) {
  if (clause.phrases.size() == 1)
    return true;
  const Term *second =
      clause.phrases.size() > 1 && !clause.phrases[1].terms.empty() ? &clause.phrases[1].terms[0] : nullptr;
  misfit(clause, second, second ? "one subject, no comma" : "something to work on");
  return false;
}

std::optional<When> PlanReader::when(const ast::Clause &clause, TermCursor &cursor) {
  const char *expected = "`step N` or `P% of steps`";
  const Term *first = cursor.peek();
  if (cursor.takeWord("step")) {
    const Term *number = cursor.peek();
    if (!number || number->kind != Term::Kind::Number || !isWhole(number->number) || number->number < 0) {
      misfit(clause, number, "a whole number of steps");
      return std::nullopt;
    }
    ++cursor.at;
    return When{false, number->number};
  }
  if (!first || first->kind != Term::Kind::Percent) {
    misfit(clause, first, expected);
    return std::nullopt;
  }
  ++cursor.at;
  if (!cursor.takeWord("of") || !cursor.takeWord("steps")) {
    misfit(clause, cursor.peek(), "`of steps` after the percentage");
    return std::nullopt;
  }
  if (first->number < 0 || first->number > 100) {
    diagnostics.error(
        Code::W0407, first->place,
        absl::StrCat("a time must be from 0% to 100% of steps, found ", numberText(first->number), "%"));
    return std::nullopt;
  }
  return When{true, first->number / 100};
}

std::optional<std::vector<int64_t>> PlanReader::windowList(const Term &list) {
  std::vector<int64_t> windows;
  for (const ast::Argument &argument : list.arguments) {
    const Term *term =
        argument.key.text.empty() && argument.value.terms.size() == 1 ? &argument.value.terms[0] : nullptr;
    bool number = term && term->kind == Term::Kind::Number && isWhole(term->number);
    if (!term || (!number && !isWord(*term, "full"))) {
      diagnostics.error(Code::W0404, argument.value.place,
                        absl::StrCat("a list of windows holds whole numbers and `full`, found `",
                                     std::string(sources.textAt(argument.value.place)), "`"));
      return std::nullopt;
    }
    if (number && term->number < 1) {
      diagnostics.error(Code::W0407, term->place,
                        absl::StrCat("a window must be at least 1, found ", numberText(term->number)));
      return std::nullopt;
    }
    windows.push_back(number ? static_cast<int64_t>(term->number) : kFullWindow);
  }
  if (windows.empty()) {
    diagnostics.error(Code::W0404, list.place, "a list of windows holds at least one, found `[]`");
    return std::nullopt;
  }
  return windows;
}

bool PlanReader::increasing(const Term &list, const std::vector<int64_t> &windows) {
  for (size_t i = 1; i < windows.size(); ++i)
    if (windows[i] <= windows[i - 1]) {
      diagnostics
          .error(Code::W0413, list.arguments[i].value.place,
                 absl::StrCat("candidates of `windows adaptive` must increase, found `",
                              std::string(sources.textAt(list.arguments[i].value.place)), "` after `",
                              std::string(sources.textAt(list.arguments[i - 1].value.place)), "`"))
          .advise("write them from the smallest to the largest; `full` can only be the last");
      return false;
    }
  return true;
}

bool PlanReader::windowsKind(const ast::Clause &clause, TermCursor &cursor, ReadWindows &read) {
  const char *expected = "a number, `full`, a list, file(\"...\"), random [...] or adaptive [...]";
  const Term *first = cursor.peek();
  if (!first) {
    misfit(clause, nullptr, expected);
    return false;
  }
  WindowsRule &rule = read.rule;
  ++cursor.at;
  if (first->kind == Term::Kind::Number) {
    if (!isWhole(first->number) || first->number < 1) {
      diagnostics.error(
          Code::W0407, first->place,
          absl::StrCat("a window must be a whole number of at least 1, found ", numberText(first->number)));
      return false;
    }
    rule.windows = {static_cast<int64_t>(first->number)};
    return true;
  }
  if (isWord(*first, "full")) {
    rule.windows = {kFullWindow};
    return true;
  }
  if (std::optional<std::string> file = fileOf(*first)) {
    rule.kind = WindowsRule::Kind::File;
    rule.file = *file;
    return true;
  }
  const Term *list = first->kind == Term::Kind::List ? first : nullptr;
  rule.kind = WindowsRule::Kind::Listed;
  if (isWord(*first, "random") || isWord(*first, "adaptive")) {
    bool adaptive = first->text == "adaptive";
    rule.kind = adaptive ? WindowsRule::Kind::Adaptive : WindowsRule::Kind::Random;
    if (cursor.peek() && cursor.peek()->kind == Term::Kind::List)
      list = &cursor.terms[cursor.at++];
    else if (adaptive) {
      rule.windows = {512, 1024, 2048, kFullWindow};
      return true;
    }
  }
  if (!list) {
    misfit(clause, rule.kind == WindowsRule::Kind::Random ? cursor.peek() : first,
           rule.kind == WindowsRule::Kind::Random ? "a list of windows after `random`" : expected);
    return false;
  }
  std::optional<std::vector<int64_t>> windows = windowList(*list);
  if (!windows)
    return false;
  rule.windows = std::move(*windows);
  return rule.kind != WindowsRule::Kind::Adaptive || increasing(*list, rule.windows);
}

std::optional<ReadWindows> PlanReader::windows(const ast::Clause &clause) {
  ReadWindows read;
  read.rule.place = clause.place;
  if (!singlePhrase(clause))
    return std::nullopt;
  TermCursor cursor{clause.phrases[0].terms};
  if (!windowsKind(clause, cursor, read))
    return std::nullopt;
  if (cursor.takeWord("on")) {
    read.address = cursor.peek();
    if (!read.address || read.address->segments.empty()) {
      misfit(clause, read.address, "an address after `on`, such as `block[..].attn.heads[..]`");
      return std::nullopt;
    }
    ++cursor.at;
  }
  if (cursor.takeWord("from")) {
    std::optional<When> from = when(clause, cursor);
    if (!from)
      return std::nullopt;
    read.rule.from = *from;
  }
  if (cursor.peek()) {
    misfit(clause, cursor.peek(), "`on ADDRESS`, `from step N` or options in braces");
    return std::nullopt;
  }
  if (read.rule.kind == WindowsRule::Kind::Adaptive)
    adaptiveOptions(clause, read);
  else
    randomOptions(clause, read.rule);
  return read;
}

bool PlanReader::freezeSubject(const ast::Clause &clause, TermCursor &cursor, ReadFreeze &read) {
  const char *expected = "`25% of ADDRESS`, a number of heads `of ADDRESS`, an address or file(\"...\")";
  const Term *first = cursor.peek();
  if (!first) {
    misfit(clause, nullptr, expected);
    return false;
  }
  ++cursor.at;
  FreezeRule &rule = read.rule;
  if (std::optional<std::string> file = fileOf(*first)) {
    rule.amount = FreezeRule::Amount::File;
    rule.file = *file;
    return true;
  }
  if (first->kind == Term::Kind::Percent || first->kind == Term::Kind::Number) {
    bool share = first->kind == Term::Kind::Percent;
    rule.amount = share ? FreezeRule::Amount::Share : FreezeRule::Amount::Count;
    if (share ? first->number <= 0 || first->number > 100 : first->number < 1 || !isWhole(first->number)) {
      diagnostics.error(
          Code::W0407, first->place,
          absl::StrCat("`", clause.verb.text, "` takes above 0% up to 100% of the heads, or a whole number",
                       " of at least 1, found `", std::string(sources.textAt(first->place)), "`"));
      return false;
    }
    rule.share = share ? first->number / 100 : 0;
    rule.count = share ? 0 : static_cast<int64_t>(first->number);
    if (!cursor.takeWord("of")) {
      misfit(clause, cursor.peek(), "`of ADDRESS` after the amount");
      return false;
    }
    first = cursor.peek();
    if (first)
      ++cursor.at;
  } else {
    rule.amount = FreezeRule::Amount::Named;
  }
  if (!first || first->segments.empty()) {
    misfit(clause, first, expected);
    return false;
  }
  read.address = first;
  return true;
}

std::optional<ReadFreeze> PlanReader::freeze(const ast::Clause &clause, bool prune) {
  ReadFreeze read;
  read.rule.place = clause.place;
  read.rule.prune = prune;
  if (!singlePhrase(clause))
    return std::nullopt;
  TermCursor cursor{clause.phrases[0].terms};
  if (!freezeSubject(clause, cursor, read))
    return std::nullopt;
  if (cursor.takeWord("at")) {
    std::optional<When> at = when(clause, cursor);
    if (!at)
      return std::nullopt;
    read.rule.at = *at;
  }
  if (cursor.peek()) {
    misfit(clause, cursor.peek(), "`at step N`, `at P% of steps` or options in braces");
    return std::nullopt;
  }
  freezeOptions(clause, read.rule);
  return read;
}

std::optional<ReadDrop> PlanReader::drop(const ast::Clause &clause) {
  ReadDrop read;
  DropRule &rule = read.rule;
  rule.place = clause.place;
  if (!singlePhrase(clause))
    return std::nullopt;
  TermCursor cursor{clause.phrases[0].terms};
  read.address = cursor.peek();
  if (!read.address || read.address->segments.empty()) {
    misfit(clause, read.address, "the address of a branch, such as `block[..].ffn`");
    return std::nullopt;
  }
  ++cursor.at;
  if (cursor.takeWord("match")) {
    const Term *word = cursor.peek();
    if (cursor.takeWord("params"))
      rule.match = DropRule::Match::Params;
    else if (cursor.takeWord("flops"))
      rule.match = DropRule::Match::Flops;
    else if (!cursor.takeWord("depth")) {
      misfit(clause, word, "depth, params or flops after `match`");
      return std::nullopt;
    }
  } else if (cursor.takeWord("depth")) {
    const Term *number = cursor.peek();
    if (!number || number->kind != Term::Kind::Number || !isWhole(number->number) || number->number < 1) {
      misfit(clause, number, "a whole number of at least 1 after `depth`");
      return std::nullopt;
    }
    ++cursor.at;
    rule.match = DropRule::Match::Explicit;
    rule.newDepth = static_cast<int64_t>(number->number);
  }
  if (cursor.peek()) {
    misfit(clause, cursor.peek(), "`match depth | params | flops`, `depth N` or options in braces");
    return std::nullopt;
  }
  OptionReader options("drop", clause.options, sources, diagnostics, kPlanCodes);
  rule.count = options.choice("count", {"full", "causal", "executed"});
  rule.length = options.whole("length", 0, 1);
  rule.nearest = options.choice("round", {"down", "nearest"}) == "nearest";
  rule.tolerance = options.share("tolerance", rule.match == DropRule::Match::Flops ? 0.06 : 0.001, {0, 1});
  options.finish();
  return read;
}

} // namespace weft::lang

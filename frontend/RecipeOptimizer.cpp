#include "frontend/RecipeRead.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace weft::lang {

using ast::Term;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Term *onlyTerm(const ast::Argument &argument) {
  return argument.value.terms.size() == 1 ? &argument.value.terms[0] : nullptr;
}

/// A number argument of an optimiser: where it goes and how far it may.
struct Field {
  const char *key;
  double rt::Optimizer::*member;
  Bounds bounds;
};

const std::vector<Field> &fieldsOf(rt::Optimizer::Kind kind) {
  static const std::vector<Field> adamw = {{"lr", &rt::Optimizer::lr, {0, kInfinity, true}},
                                           {"eps", &rt::Optimizer::eps, {0, kInfinity, true}},
                                           {"decay", &rt::Optimizer::decay, {0, kInfinity}}};
  static const std::vector<Field> muon = {{"lr", &rt::Optimizer::lr, {0, kInfinity, true}},
                                          {"momentum", &rt::Optimizer::momentum, {0, 0.999999}},
                                          {"decay", &rt::Optimizer::decay, {0, kInfinity}}};
  return kind == rt::Optimizer::Kind::AdamW ? adamw : muon;
}

std::vector<std::string> argumentsOf(rt::Optimizer::Kind kind) {
  if (kind == rt::Optimizer::Kind::AdamW)
    return {"lr", "betas", "eps", "decay"};
  return {"lr", "momentum", "nesterov", "iterations", "decay"};
}

} // namespace

void RecipeReader::optimizerArgument(const ast::Argument &argument, rt::Optimizer &optimizer) {
  const std::string &key = argument.key.text;
  std::string owner = optimizer.kind == rt::Optimizer::Kind::AdamW ? "adamw" : "muon";
  std::vector<std::string> known = argumentsOf(optimizer.kind);
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    std::string near = nearest(key, known);
    diagnostics
        .error(Code::W0510, key.empty() ? argument.value.place : argument.key.place,
               key.empty() ? absl::StrCat(owner, " takes named arguments: ", listed(known))
                           : absl::StrCat(owner, " has no argument `", key, "`; it has ", listed(known)))
        .advise(near.empty() ? std::string() : absl::StrCat("did you mean `", near, "`?"));
    return;
  }
  const Term *term = onlyTerm(argument);
  if (key == "betas") {
    bool fits = term && term->kind == Term::Kind::Group && term->arguments.size() == 2;
    for (size_t i = 0; fits && i < 2; ++i) {
      const Term *beta = onlyTerm(term->arguments[i]);
      fits = beta && beta->kind == Term::Kind::Number && beta->number >= 0 && beta->number < 1;
      if (fits)
        (i ? optimizer.beta2 : optimizer.beta1) = beta->number;
    }
    if (!fits)
      reader.bad(argument.value.place, "betas", "two numbers from 0 to below 1, such as `(0.9, 0.95)`");
    return;
  }
  if (key == "nesterov") {
    if (term && (isWord(*term, "yes") || isWord(*term, "no")))
      optimizer.nesterov = term->text == "yes";
    else
      reader.bad(argument.value.place, key, "yes or no");
    return;
  }
  if (!term || term->kind != Term::Kind::Number) {
    reader.bad(argument.value.place, key, "a number");
    return;
  }
  if (key == "iterations") {
    if (!isWhole(term->number) || term->number < 1 || term->number > 100)
      reader.outside(term->place, key, {1, 100}, term->number);
    else
      optimizer.iterations = static_cast<int>(term->number);
    return;
  }
  for (const Field &field : fieldsOf(optimizer.kind))
    if (key == field.key) {
      if (field.bounds.contain(term->number))
        optimizer.*field.member = term->number;
      else
        reader.outside(term->place, key, field.bounds, term->number);
    }
}

std::optional<rt::ParameterSet> RecipeReader::parameterSet(std::string_view key, const ast::Phrase &phrase,
                                                           size_t first) {
  using Kind = rt::ParameterSet::Kind;
  const std::vector<Term> &terms = phrase.terms;
  size_t count = terms.size() - std::min(first, terms.size());
  if (count == 1 && terms[first].kind == Term::Kind::Word) {
    const std::string &word = terms[first].text;
    if (word == "all")
      return rt::ParameterSet{Kind::All, {}};
    if (word == "matrices")
      return rt::ParameterSet{Kind::Matrices, {}};
    if (word == "kernels")
      return rt::ParameterSet{Kind::Kernels, {}};
    if (word == "rest" && key == "optimizer")
      return rt::ParameterSet{Kind::Rest, {}};
  }
  bool matrices = count == 2 && isWord(terms[first + 1], "matrices");
  if ((count == 1 || matrices) && !terms[first].segments.empty())
    return rt::ParameterSet{matrices ? Kind::Matrices : Kind::Paths, {written(terms[first].place)}};
  reader.bad(phrase.place, key,
             key == "optimizer"
                 ? "after `on`: all, matrices, kernels, rest, an address or an address and `matrices`"
                 : "matrices, kernels, all or addresses");
  return std::nullopt;
}

std::optional<rt::Optimizer> RecipeReader::optimizer(const ast::Phrase &phrase, bool several) {
  const std::vector<Term> &terms = phrase.terms;
  const Term *call = terms.empty() ? nullptr : &terms[0];
  bool named = call && (call->kind == Term::Kind::Call || call->kind == Term::Kind::Word);
  if (!named || (call->text != "adamw" && call->text != "muon")) {
    diagnostics.error(
        Code::W0510, phrase.place,
        absl::StrCat("the optimisers are adamw(...) and muon(...), found `", written(phrase.place), "`"));
    return std::nullopt;
  }
  rt::Optimizer optimizer;
  if (call->text == "muon") {
    optimizer.kind = rt::Optimizer::Kind::Muon;
    optimizer.lr = 0.02;
  }
  for (const ast::Argument &argument : call->arguments)
    optimizerArgument(argument, optimizer);
  optimizer.on.kind = rt::ParameterSet::Kind::All;
  if (terms.size() > 1) {
    if (!isWord(terms[1], "on") || terms.size() < 3) {
      reader.bad(terms[1].place, "optimizer", "`on` and a set of parameters after the optimiser");
      return std::nullopt;
    }
    std::optional<rt::ParameterSet> set = parameterSet("optimizer", phrase, 2);
    if (!set)
      return std::nullopt;
    optimizer.on = std::move(*set);
  } else if (several) {
    reader.bad(phrase.place, "optimizer", "`on SET` at each optimiser where there are several");
    return std::nullopt;
  }
  return optimizer;
}

void RecipeReader::readOptimizers(rt::Recipe &recipe) {
  const ast::Option *option = reader.find("optimizer");
  if (!option)
    return;
  std::vector<rt::Optimizer> optimizers;
  for (const ast::Phrase &phrase : option->values)
    if (std::optional<rt::Optimizer> one = optimizer(phrase, option->values.size() > 1))
      optimizers.push_back(std::move(*one));
  if (!optimizers.empty())
    recipe.optimizers = std::move(optimizers);
}

void RecipeReader::readClip(rt::Recipe &recipe) {
  const char *expected = "a number above 0 or `none`";
  const Term *clip = reader.term("clip", expected);
  if (!clip || isWord(*clip, "none"))
    return;
  Bounds bounds{0, kInfinity, true};
  if (clip->kind != Term::Kind::Number)
    reader.bad(clip->place, "clip", expected);
  else if (!bounds.contain(clip->number))
    reader.outside(clip->place, "clip", bounds, clip->number);
  else
    recipe.clip = clip->number;
}

void RecipeReader::readDecay(rt::Recipe &recipe) {
  const ast::Option *option = reader.find("decay_on");
  if (!option)
    return;
  rt::ParameterSet all;
  for (const ast::Phrase &phrase : option->values) {
    std::optional<rt::ParameterSet> set = parameterSet("decay_on", phrase, 0);
    if (!set)
      return;
    if (option->values.size() > 1 && set->kind != rt::ParameterSet::Kind::Paths) {
      reader.bad(phrase.place, "decay_on", "one word, or addresses with commas between them");
      return;
    }
    all.kind = set->kind;
    all.paths.insert(all.paths.end(), set->paths.begin(), set->paths.end());
  }
  recipe.decayOn = std::move(all);
}

std::optional<rt::Duration> RecipeReader::duration(std::string_view key, const ast::Phrase &phrase) {
  const std::vector<Term> &terms = phrase.terms;
  if (terms.size() == 1 && terms[0].kind == Term::Kind::Percent && terms[0].number >= 0 &&
      terms[0].number <= 100)
    return rt::Duration{terms[0].number / 100, true};
  if (terms.size() == 2 && terms[0].kind == Term::Kind::Number && isWhole(terms[0].number) &&
      terms[0].number >= 0 && isWord(terms[1], "steps"))
    return rt::Duration{terms[0].number, false};
  reader.bad(phrase.place, key, "`N steps` or a percentage of all steps, such as `2%`");
  return std::nullopt;
}

void RecipeReader::readSchedule(rt::Recipe &recipe) {
  const char *expected = "constant, cosine(...), linear(...) or wsd(...)";
  const Term *term = reader.term("schedule", expected);
  if (!term)
    return;
  using Kind = rt::Schedule::Kind;
  rt::Schedule &schedule = recipe.schedule;
  std::vector<std::string> known = {"warmup", "floor"};
  if (term->text == "constant")
    known = {"warmup"};
  else if (term->text == "cosine")
    schedule.kind = Kind::Cosine;
  else if (term->text == "linear")
    schedule.kind = Kind::Linear;
  else if (term->text == "wsd") {
    schedule.kind = Kind::Wsd;
    known = {"warmup", "decay", "floor"};
  } else {
    diagnostics.error(Code::W0510, term->place,
                      absl::StrCat("the schedules are ", expected, ", found `", written(term->place), "`"));
    return;
  }
  for (const ast::Argument &argument : term->arguments) {
    const std::string &key = argument.key.text;
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      diagnostics.error(Code::W0510, key.empty() ? argument.value.place : argument.key.place,
                        absl::StrCat(term->text, " has no argument `", key, "`; it has ", listed(known)));
    } else if (key == "floor") {
      const Term *floor = onlyTerm(argument);
      if (floor && floor->kind == Term::Kind::Percent && floor->number >= 0 && floor->number <= 100)
        schedule.floor = floor->number / 100;
      else
        reader.bad(argument.value.place, key, "a percentage from 0% to 100%");
    } else if (std::optional<rt::Duration> length = duration(key, argument.value)) {
      (key == "warmup" ? schedule.warmup : schedule.decay) = *length;
    }
  }
  bool sameUnit = schedule.warmup.fraction == schedule.decay.fraction;
  double sum = schedule.warmup.amount + schedule.decay.amount;
  bool tooLong = sameUnit && schedule.warmup.fraction && sum > 1;
  if (recipe.steps && !lengthFromOutside)
    tooLong = schedule.warmup.steps(*recipe.steps) + schedule.decay.steps(*recipe.steps) > *recipe.steps;
  if (tooLong)
    diagnostics
        .error(Code::W0515, term->place,
               recipe.steps
                   ? absl::StrCat("warm-up and decay take ", schedule.warmup.steps(*recipe.steps), " + ",
                                  schedule.decay.steps(*recipe.steps), " steps of ", *recipe.steps)
                   : absl::StrCat("warm-up and decay take ", numberText(100 * sum), "% of all steps"))
        .advise("shorten one of them");
}

} // namespace weft::lang

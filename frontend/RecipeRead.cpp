#include "frontend/RecipeRead.h"

#include "absl/strings/str_cat.h"

namespace weft::lang {

using ast::Term;

namespace {

bool isCount(const Term &term) {
  return term.kind == Term::Kind::Number && isWhole(term.number) && term.number >= 1;
}

int64_t countOf(const Term &term) { return static_cast<int64_t>(term.number); }

} // namespace

rt::Recipe RecipeReader::read() {
  rt::Recipe recipe;
  readData(recipe);
  readBatch(recipe);
  readLength(recipe);
  readOptimizers(recipe);
  const double factor = reader.number("rate_factor", 1, {0, std::numeric_limits<double>::infinity(), true});
  for (rt::Optimizer &optimizer : recipe.optimizers)
    optimizer.lr *= factor;
  readDecay(recipe);
  readSchedule(recipe);
  readClip(recipe);
  readRhythm(recipe);
  readReports(recipe);
  recipe.seed = reader.seed("seed").value_or(0);
  reader.finish();
  return recipe;
}

void RecipeReader::readData(rt::Recipe &recipe) {
  const char *dataText = "file names in double quotes";
  if (const ast::Option *data = reader.find("data")) {
    for (const ast::Phrase &phrase : data->values) {
      if (phrase.terms.size() == 1 && phrase.terms[0].kind == Term::Kind::String &&
          !phrase.terms[0].text.empty())
        recipe.data.push_back(phrase.terms[0].text);
      else
        reader.bad(phrase.place, "data", dataText);
    }
  } else {
    diagnostics.error(Code::W0507, place, "the recipe has no `data`")
        .advise("say what is trained on, such as `data = \"builtin:austen\"`");
  }
  const char *heldText = "`last 5%`, a file name in double quotes or `none`";
  if (const ast::Phrase *held = reader.phrase("held_out", heldText)) {
    const std::vector<Term> &terms = held->terms;
    if (terms.size() == 1 && terms[0].kind == Term::Kind::String && !terms[0].text.empty())
      recipe.heldOut = {rt::HeldOut::Kind::Source, 0, terms[0].text};
    else if (terms.size() == 2 && isWord(terms[0], "last") && terms[1].kind == Term::Kind::Percent) {
      recipe.heldOut = {rt::HeldOut::Kind::LastFraction, terms[1].number / 100, {}};
      if (terms[1].number <= 0 || terms[1].number >= 100)
        reader.outside(terms[1].place, "held_out", {0, 99, true}, terms[1].number);
    } else if (terms.size() != 1 || !isWord(terms[0], "none"))
      reader.bad(held->place, "held_out", heldText);
  }
  recipe.portion = reader.share("portion", 1, {0, 1, true});
  const char *tokenizerText = "bytes, gpt2, gpt2(N) or a file name in double quotes";
  if (const Term *term = reader.term("tokenizer", tokenizerText)) {
    bool cut = term->kind == Term::Kind::Call && term->text == "gpt2" && term->arguments.size() == 1 &&
               term->arguments[0].key.text.empty() && term->arguments[0].value.terms.size() == 1 &&
               isCount(term->arguments[0].value.terms[0]);
    if (cut) {
      const Term &count = term->arguments[0].value.terms[0];
      recipe.tokenizer = "gpt2";
      recipe.tokenizerCut = countOf(count);
      // The first 256 ids are the bytes, and the last is the separator.
      if (count.number < 257 || count.number > 50257)
        reader.outside(count.place, "tokenizer", {257, 50257}, count.number);
    } else if (isWord(*term, "bytes") || isWord(*term, "gpt2") ||
               (term->kind == Term::Kind::String && !term->text.empty()))
      recipe.tokenizer = term->text;
    else
      reader.bad(term->place, "tokenizer", tokenizerText);
  }
  recipe.documentsApart = reader.choice("documents", {"apart", "joined"}) == "apart";
  recipe.boundaryCount = reader.choice("boundary", {"skip", "count"}) == "count";
  recipe.packWhole = reader.choice("packing", {"split", "whole"}) == "whole";
  recipe.longDrop = reader.choice("long", {"split", "drop"}) == "drop";
}

void RecipeReader::readBatch(rt::Recipe &recipe) {
  const char *expected = "rows x positions, such as `16 x 256` or `480 x 1024 in 40`";
  const ast::Option *option = reader.find("batch");
  if (!option) {
    diagnostics.error(Code::W0507, place, "the recipe has no `batch`")
        .advise("say `batch = 16 x 256`: rows x positions of one step");
    return;
  }
  const ast::Phrase *batch = reader.phrase("batch", expected);
  if (!batch)
    return;
  const std::vector<Term> &terms = batch->terms;
  bool fits = (terms.size() == 3 || terms.size() == 5) && isCount(terms[0]) && isWord(terms[1], "x") &&
              isCount(terms[2]);
  fits = fits && (terms.size() == 3 || (isWord(terms[3], "in") && isCount(terms[4])));
  if (!fits) {
    reader.bad(batch->place, "batch", expected);
    return;
  }
  recipe.rows = countOf(terms[0]);
  recipe.positions = countOf(terms[2]);
  recipe.microBatches = terms.size() == 5 ? countOf(terms[4]) : 1;
  if (recipe.rows % recipe.microBatches != 0)
    diagnostics
        .error(
            Code::W0509, batch->place,
            absl::StrCat("rows / micro-batches = ", recipe.rows, " / ", recipe.microBatches, " is not whole"))
        .advise("choose a number of micro-batches that divides the rows");
}

void RecipeReader::readLength(rt::Recipe &recipe) {
  const ast::Option *first = nullptr;
  for (const char *key : {"steps", "tokens", "epochs"}) {
    const ast::Option *option = reader.find(key);
    if (!option)
      continue;
    if (first)
      diagnostics
          .error(
              Code::W0508, option->key.place,
              absl::StrCat("the length of training is given twice: `", first->key.text, "` and `", key, "`"))
          .note(first->key.place, absl::StrCat("`", first->key.text, "` is here"))
          .advise("keep one of the two");
    first = option;
  }
  if (!first)
    diagnostics.error(Code::W0507, place, "the recipe does not say how long it trains")
        .advise("give one of `steps`, `tokens` and `epochs`");
  if (reader.find("steps"))
    recipe.steps = reader.whole("steps", 1, 1);
  if (reader.find("tokens"))
    recipe.tokens = reader.number("tokens", 1, {1});
  if (reader.find("epochs"))
    recipe.epochs = reader.number("epochs", 1, {0, std::numeric_limits<double>::infinity(), true});
}

int64_t RecipeReader::every(std::string_view key, const ast::Phrase &phrase, std::string_view expected) {
  const std::vector<Term> &terms = phrase.terms;
  if (terms.size() >= 3 && isWord(terms[0], "every") && isCount(terms[1]) &&
      (isWord(terms[2], "steps") || isWord(terms[2], "step")))
    return countOf(terms[1]);
  reader.bad(phrase.place, key, expected);
  return 0;
}

void RecipeReader::readRhythm(rt::Recipe &recipe) {
  const char *evalText = "`every N steps`, then `on all` or `on N rows`";
  if (const ast::Phrase *eval = reader.phrase("eval", evalText);
      eval && (recipe.evalEvery = every("eval", *eval, evalText))) {
    const std::vector<Term> &terms = eval->terms;
    bool rows = terms.size() == 6 && isWord(terms[3], "on") && isCount(terms[4]) && isWord(terms[5], "rows");
    bool everything = terms.size() == 5 && isWord(terms[3], "on") && isWord(terms[4], "all");
    if (rows)
      recipe.evalRows = countOf(terms[4]);
    else if (terms.size() != 3 && !everything)
      reader.bad(eval->place, "eval", evalText);
  }
  const char *saveText = "`every N steps`, then `keep N`";
  if (const ast::Phrase *save = reader.phrase("save", saveText);
      save && (recipe.saveEvery = every("save", *save, saveText))) {
    const std::vector<Term> &terms = save->terms;
    if (terms.size() == 5 && isWord(terms[3], "keep") && isCount(terms[4]))
      recipe.saveKeep = countOf(terms[4]);
    else if (terms.size() != 3)
      reader.bad(save->place, "save", saveText);
  }
  const char *logText = "`every N steps`";
  if (const ast::Phrase *log = reader.phrase("log", logText)) {
    if (int64_t steps = every("log", *log, logText))
      recipe.logEvery = steps;
    if (log->terms.size() > 3)
      reader.bad(log->place, "log", logText);
  }
  std::string precision = reader.choice("precision", {"auto", "fp32", "bf16"});
  using Precision = rt::Recipe::Precision;
  recipe.precision = precision == "fp32"   ? Precision::Fp32
                     : precision == "bf16" ? Precision::Bf16
                                           : Precision::Auto;
  std::string memory = reader.choice("memory", {"auto", "fast", "lean", "tight"});
  using Memory = rt::Recipe::Memory;
  recipe.memory = memory == "fast"    ? Memory::Fast
                  : memory == "lean"  ? Memory::Lean
                  : memory == "tight" ? Memory::Tight
                                      : Memory::Auto;
}

void RecipeReader::readReports(rt::Recipe &recipe) {
  if (const ast::Option *regions = reader.find("regions"))
    for (const ast::Phrase &phrase : regions->values) {
      const std::vector<Term> &terms = phrase.terms;
      if (terms.size() != 2 || terms[0].kind != Term::Kind::Word || terms[1].kind != Term::Kind::String ||
          terms[1].text.empty()) {
        reader.bad(phrase.place, "regions", "names with markers, such as `answer \"<|answer|>\"`");
        continue;
      }
      for (const rt::Region &other : recipe.regions)
        if (other.name == terms[0].text || other.marker == terms[1].text) {
          diagnostics.error(Code::W0518, phrase.place,
                            absl::StrCat("region `", terms[0].text,
                                         "` has the name or the marker of another: `", other.name, " \"",
                                         other.marker, "\"`"));
          break;
        }
      recipe.regions.push_back({terms[0].text, terms[1].text});
    }
  if (const ast::Option *watch = reader.find("watch"))
    for (const ast::Phrase &phrase : watch->values) {
      const Term *call = phrase.terms.size() == 1 ? &phrase.terms[0] : nullptr;
      bool fits = call && call->kind == Term::Kind::Call && call->arguments.size() == 1 &&
                  (call->text == "sigmoid" || call->text == "stable_rank" || call->text == "norm" ||
                   call->text == "mean");
      if (fits)
        recipe.watch.push_back(written(phrase.place));
      else
        reader.bad(phrase.place, "watch", "sigmoid(NAME), mean(NAME), norm(SET) or stable_rank(SET)");
    }
}

} // namespace weft::lang

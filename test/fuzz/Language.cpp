// The language: a text, checked as the commands check it.
#include "test/frontend/error-pages.h"
#include "test/fuzz/Targets.h"

#include "frontend/Explain.h"
#include "frontend/Format.h"
#include "frontend/Opened.h"

namespace weft::fuzz {
namespace {

/// Starts a first line that asks as the examples of docs/errors do: `# weft: model=n --set half=2`.
constexpr std::string_view kAsked = "# weft:";

std::set<lang::Code> reached;

/// Codes of the errors, in order of places; warnings are reached as well.
std::string codesOf(const lang::Diagnostics &diagnostics, const lang::SourceFiles &sources) {
  std::string codes;
  for (const lang::Diagnostic &entry : diagnostics.sorted())
    reached.insert(entry.code);
  const std::string text = diagnostics.render(sources);
  for (size_t at = 0; (at = text.find("error[W", at)) != std::string::npos && codes.size() < 40; ++at)
    codes += text.substr(at + 6, 5);
  return codes;
}

/// The shipped models by file name, and a name that no file has.
const std::map<std::string, std::optional<std::string>> &files() {
  static const std::map<std::string, std::optional<std::string>> all = [] {
    std::map<std::string, std::optional<std::string>> made = {{"missing.weft", std::nullopt}};
    for (const char *name :
         {"gpt2.weft", "gpt_rope.weft", "nano.weft", "peer.weft", "qwen3.weft", "san.weft", "tiny.weft"})
      made[name] = sourceFile(std::string("models/") + name);
    return made;
  }();
  return all;
}

/// `use` would read files of the machine: its word is broken, unless it names a plan or one of `files`.
std::string withoutOtherFiles(std::string text) {
  auto known = [&](size_t at) {
    const std::string rest = text.substr(at, 24);
    for (const auto &[name, held] : files())
      if (rest.starts_with("use \"" + name + "\""))
        return true;
    return rest.size() > 4 && rest[3] == ' ' && rest[4] >= 'a' && rest[4] <= 'z';
  };
  for (size_t at = 0; (at = text.find("use", at)) != std::string::npos; at += 3)
    if (!known(at))
      text[at] = 'U';
  return text;
}

lang::ast::File parse(const std::string &text, lang::SourceFiles &sources, lang::Diagnostics &diagnostics) {
  auto open = [](const std::string &path) {
    const auto held = files().find(path.substr(path.rfind('/') + 1));
    return held == files().end() ? std::nullopt : held->second;
  };
  return lang::parseOpened(WEFT_SOURCE_DIR "/models/input.weft", text, open, sources, diagnostics);
}

/// What the first line asks for; nothing when it does not.
lang::Asked askedBy(const std::string &text) {
  lang::Example example;
  if (text.compare(0, kAsked.size(), kAsked) == 0) {
    std::istringstream words(text.substr(kAsked.size(), text.find('\n') - kAsked.size()));
    for (std::string word; words >> word;)
      example.words.push_back(word);
  }
  return lang::askedBy(example);
}

void check(const lang::ast::File &file, const lang::SourceFiles &sources, const lang::Asked &asked,
           lang::Diagnostics &diagnostics) {
  if (asked.model)
    return lang::checkOne(file, sources, *asked.model, asked, diagnostics);
  for (const lang::ast::Model &model : file.models)
    lang::checkOne(file, sources, model.name.text, asked, diagnostics);
}

constexpr const char *kStatementsForNano = R"(
plan chosen for nano {
  windows adaptive [16, 32, full] on block[0].attn { every = 5 steps, start = 32, hierarchy = [2], ramp = 10..20 }
  windows random [16, full] on block[1].attn.heads[0] { share = [0.5, 0.5], redraw = yes, seed = 3 }
  windows [8] on block[1].attn.heads[1] from step 20
}
plan frozen for nano {
  freeze 50% of block[..].attn.heads[..] at 25% of steps { by = forward_kl, order = highest, pattern = sharp, calibrate = 16 rows }
}
plan pruned for nano { prune 1 of block[0].attn.heads[..] at step 10 { by = gate_taylor, scope = layer } }
plan dropped for nano { drop block[0..1].ffn }
train other for nano {
  data = "builtin:austen", batch = 4 x 64 in 2, tokens = 100000, eval = every 10 steps on 8 rows
  optimizer = muon(lr = 0.02) on kernels, adamw(lr = 1e-3) on rest
  schedule = wsd(warmup = 2%, decay = 20%, floor = 0%)
  save = every 50 steps keep 3, watch = norm(all), precision = fp32
}
weights flat for nano {
  sizes "config.json" { vocab = n_vocab, dim = width or hidden_size, hidden = inner or default }
  expect activation "gelu", scaling absent, eps 1e-6 or absent
  prefix "model." or ""
  embed              <-> "embed.weight"             [vocab, dim]
  final_gain         <-> "norm.weight"              [dim]
  block[i].attn.gain <-> "h.{i}.norm1.weight"       [dim]
  block[i].attn.(wq, wk, wv) <-> "h.{i}.qkv.weight" [(3, heads, head), dim]
  block[i].attn.wo   <-> "h.{i}.out.weight"         [dim, (heads, head)]
  block[i].ffn.gain  <-> "h.{i}.norm2.weight"       [dim]
  block[i].ffn.up    <-> "h.{i}.up.weight"          [hidden, dim]
  block[i].ffn.down  <-> "h.{i}.down.weight"        [dim, hidden]
  tied embed         ==  "head.weight"              [vocab, dim]
  ignore "h.{i}.mask"
}
)";

/// The examples of docs/errors that are `kind` (right or wrong), each with what it asks for.
std::vector<std::string> examples(const char *kind) {
  std::vector<std::string> texts;
  for (const std::string &code : lang::explainedCodes())
    for (const lang::Example &example : lang::examplesOf(*lang::explain(code))) {
      if (!example.has(kind))
        continue;
      std::string asked(kAsked);
      for (const std::string &word : example.words)
        asked += word == kind ? "" : " " + word;
      texts.push_back((asked.size() == kAsked.size() ? "" : asked + "\n") + example.text);
    }
  return texts;
}

} // namespace

std::string language(const std::string &input) {
  lang::SourceFiles sources;
  lang::Diagnostics diagnostics;
  const std::string text = withoutOtherFiles(input);
  const lang::ast::File file = parse(text, sources, diagnostics);
  const bool parsed = !diagnostics.hasErrors();
  // As an editor does: what could be parsed is checked, whatever could not.
  lang::Diagnostics rest;
  check(file, sources, askedBy(text), parsed ? diagnostics : rest);
  // The one form is a fixed point, and as right as the text was.
  absl::StatusOr<std::string> once = lang::formatText("input.weft", text);
  require(once.ok() || !parsed, "fmt refuses what parses");
  if (once.ok()) {
    absl::StatusOr<std::string> twice = lang::formatText("input.weft", *once);
    require(twice.ok() && *twice == *once, "fmt of fmt differs");
    lang::Diagnostics after;
    parse(*once, sources, after);
    require(after.hasErrors() == !parsed, "fmt changes what the text means");
  }
  const std::string codes = codesOf(diagnostics, sources), others = codesOf(rest, sources);
  return diagnostics.hasErrors() ? codes + " " + others : "ok";
}

/// `error codes: 97 of 113; never: W0005 ...`
std::string codesReached() {
  std::string never;
  size_t all = 0;
  for (const std::string &name : lang::explainedCodes()) {
    const std::optional<lang::Code> code = lang::codeNamed(name);
    if (!code)
      continue;
    ++all;
    if (!reached.count(*code))
      never += " " + name;
  }
  return "error codes: " + std::to_string(reached.size()) + " of " + std::to_string(all) + "; never:" + never;
}

std::vector<std::string> modelTexts() {
  std::vector<std::string> texts = {sourceFile("models/nano.weft") + kStatementsForNano};
  for (const char *name : {"nano", "tiny", "gpt2", "san", "qwen3"})
    texts.push_back(sourceFile(std::string("models/") + name + ".weft"));
  return texts;
}

std::vector<std::string> languageSeeds() {
  std::vector<std::string> seeds = examples("right");
  for (std::string &text : modelTexts())
    seeds.push_back(std::move(text));
  return seeds;
}

/// The wrong examples, and what pages tell in words: bytes that are no text, a chain that is too long, a
/// branch as a value.
std::vector<std::string> languageOthers() {
  std::vector<std::string> others = examples("wrong");
  const std::string head = "model m(n = 8, d = 4) {\n  input t : int[batch, pos]\n"
                           "  param e : [n, d] init 1\n  x = e[t]\n";
  std::string chain = "  x = x";
  for (int i = 0; i < lang::kChainLimit; ++i)
    chain += "+x";
  for (const std::string &line :
       {std::string("  x = x \xff"), chain,
        std::string("  y = branch b {\n    param g : [d] init 1\n    x * g\n  }\n  x = b")})
    others.push_back(head + line + "\n  output y = x\n}\n");
  return others;
}

const std::vector<std::string> &languageWords() {
  static const std::vector<std::string> words = {"model m(a = 1) { ",
                                                 "layer block[",
                                                 "branch ",
                                                 "param w : [",
                                                 "] init ",
                                                 "if ",
                                                 "else ",
                                                 "let ",
                                                 "def f(x) = ",
                                                 "attend(",
                                                 "loss = ",
                                                 "output y = ",
                                                 " @ ",
                                                 "**",
                                                 "(",
                                                 ")",
                                                 "[",
                                                 "]",
                                                 "{",
                                                 "}",
                                                 "<->",
                                                 "..",
                                                 "%",
                                                 "\"",
                                                 "#",
                                                 "\r\n",
                                                 "plan p for nano { ",
                                                 "train t for nano { ",
                                                 "weights w for nano { ",
                                                 "freeze 25% of ",
                                                 "windows ",
                                                 "drop ",
                                                 "expect a \"b\" or absent",
                                                 "\xef\xbb\xbf",
                                                 "\xc3\xbc",
                                                 "# weft: --set dim=",
                                                 "use \"nano.weft\"\n"};
  return words;
}

} // namespace weft::fuzz

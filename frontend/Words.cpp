//===- Words.cpp - The words of the language, to offer and explain ---------===//

#include "frontend/Words.h"

#include <algorithm>

namespace weft::lang {

const std::vector<LanguageWord> &languageWords() {
  using enum WordPlace;
  static const std::vector<LanguageWord> words = {
      {File, "use", "everything in another file can be named here: `use \"other.weft\"`", ""},
      {File, "model", "a model: `model NAME(settings) { ... }`", ""},
      {File, "plan", "how heads and layers of a model are thinned: `plan NAME for MODEL { ... }`", ""},
      {File, "train", "a recipe: `train NAME for MODEL { ... }`", ""},
      {File, "weights",
       "names and layouts of a model's parameters in another program's files: `weights NAME for MODEL { ... "
       "}`",
       ""},
      {Model, "input", "values that come with the data: `input NAMES : int[batch, pos]`", ""},
      {Model, "param", "trained tensors: `param NAMES : [axes] init INIT`", ""},
      {Model, "let", "a derived size or number: `let NAME = formula`", ""},
      {Model, "def", "text with a name, pasted where it is called: `def NAME(args) = expr`", ""},
      {Model, "layer", "statements that repeat: `layer NAME[count] { ... }`, `layer NAME[i < count] { ... }`",
       ""},
      {Model, "branch", "a block whose last line is its value; a plan may drop it: `branch NAME { ... }`",
       ""},
      {Model, "if", "one of several texts, chosen before anything runs: `if test { ... } else { ... }`", ""},
      {Model, "else", "the other side of an `if`", ""},
      {Model, "output", "a result that can be asked for by name: `output NAME = expr`", ""},
      {Model, "loss", "what training makes small, one number: `loss = expr`", ""},
      {Model, "init",
       "how a parameter starts: a formula, `normal(std)`, `truncated(std)`, `uniform(low, high)`, "
       "`orthogonal(gain)`",
       ""},
      {Model, "normal", "initialiser: mean 0, deviation `std`", ""},
      {Model, "truncated", "initialiser: as `normal`, drawn again beyond 2 `std`", ""},
      {Model, "uniform", "initialiser: evenly in [-bound, bound] or [low, high]", ""},
      {Model, "orthogonal", "initialiser: orthogonal rows or columns times `gain`", ""},
      {Model, "is", "compares words and numbers: `act is gated`", ""},
      {Model, "mod", "the remainder of whole numbers", ""},
      {Model, "and", "both tests hold", ""},
      {Model, "or", "one of two tests holds", ""},
      {Model, "not", "a test does not hold", ""},
      {Model, "full", "the window without a bound", ""},
      {Model, "position", "`int[batch, pos]`: the index inside the document", ""},
      {Model, "document", "`int[batch, pos]`: the number of the document in its row", ""},
      {Plan, "use", "pastes another plan of the same model first: `use NAME`", ""},
      {Plan, "windows",
       "windows of heads: `windows N [on ADDRESS] [from WHEN]`, `windows [n, ..., full]`, `windows random "
       "[..]`, `windows adaptive [..]`, `windows file(\"..\")`",
       ""},
      {Plan, "freeze",
       "fixed patterns instead of scores and softmax: `freeze AMOUNT of ADDRESS [at WHEN] { ... }`", ""},
      {Plan, "prune", "heads leave the model: `prune AMOUNT of ADDRESS [at WHEN] { ... }`", ""},
      {Plan, "drop", "branches leave the model: `drop ADDRESS [match depth|params|flops | depth N] { ... }`",
       ""},
      {Recipe, "data", "text files, token shards, patterns with `*` or `builtin:NAME`",
       "a string, or several with commas"},
      {Recipe, "held_out", "what is never trained on", "none, `last 5%`, a string"},
      {Recipe, "portion", "only this first share of the training tokens is used", "`100%`, a share"},
      {Recipe, "tokenizer", "how text becomes ids", "`bytes`, `gpt2`, `gpt2(N)`, a string"},
      {Recipe, "documents", "whether attention, positions and masks stop at a document's end",
       "`apart`, `joined`"},
      {Recipe, "boundary", "the target that would cross a document's end", "`skip`, `count`"},
      {Recipe, "packing", "rows cut documents, or hold whole ones", "`split`, `whole`"},
      {Recipe, "long", "a document longer than a row", "`split`, `drop`"},
      {Recipe, "batch", "rows and positions of one step, in M micro-batches", "`R x T`, `R x T in M`"},
      {Recipe, "steps", "how long training lasts, in steps", "a number"},
      {Recipe, "tokens", "how long training lasts, in tokens", "a number"},
      {Recipe, "epochs", "how long training lasts, in passes over the data", "a number"},
      {Recipe, "optimizer", "what steps parameters",
       "`adamw(...)`, `muon(...)`, each with `on SET` when there are several"},
      {Recipe, "rate_factor", "multiplies the rates of all optimisers", "`1`, a number"},
      {Recipe, "decay_on", "what weight decay takes", "`matrices`, `kernels`, `all`, addresses"},
      {Recipe, "schedule", "of the rate",
       "`constant`, `cosine(warmup, floor)`, `linear(warmup, floor)`, `wsd(warmup, decay, floor)`"},
      {Recipe, "clip", "largest norm of all gradients together", "`none`, a number"},
      {Recipe, "eval", "when held-out loss is measured",
       "at the end, `every N steps`, `every N steps on R rows`, `... on all`"},
      {Recipe, "save", "when checkpoints are written", "at the end, `every N steps`, `every N steps keep K`"},
      {Recipe, "log", "how often a line is written", "`every 10 steps`"},
      {Recipe, "precision", "of products", "`auto`, `fp32`, `bf16`"},
      {Recipe, "memory", "what gradients find saved; less is made again",
       "`auto`, `fast` (all), `lean` (no elementwise or row results), `tight` (no products either)"},
      {Recipe, "regions", "parts of documents whose loss is reported apart", "`NAME \"marker\", ...`"},
      {Recipe, "watch", "reported at every evaluation",
       "`sigmoid(NAME)`, `mean(NAME)`, `norm(SET)`, `stable_rank(SET)`"},
      {Recipe, "seed", "of everything that is drawn", "`0`"},
      {Table, "sizes", "settings from a JSON file: `sizes \"FILE\" { setting = key, ... }`", ""},
      {Table, "expect", "what that file must say: `expect key VALUE or VALUE, ...`", ""},
      {Table, "prefix", "in front of every name: `prefix \"a\" or \"b\"`", ""},
      {Table, "tied", "a second copy: `tied NAME == \"key\" [layout]`", ""},
      {Table, "ignore", "tensors that are no parameters: `ignore \"key\", ...`", ""},
      {Windows, "every", "between control updates", "`5 steps`"},
      {Windows, "apply",
       "decided windows are in force from the next step; `same` looks ahead inside the sequence",
       "`next`, `same`"},
      {Windows, "control", "`off` keeps every head at the start", "`on`, `off`"},
      {Windows, "start", "where the resolution average starts", "`full`, a number"},
      {Windows, "least", "no window is smaller", "`smallest`, a number"},
      {Windows, "grouping", "how heads are joined", "`features`, `none`, `random`, `index`"},
      {Windows, "hierarchy", "children a parent, bottom level first",
       "`[2, 2, 2, 2]` (`[2]` where topology = freeze)"},
      {Windows, "capped", "at most half of the heads as items of a level", "`yes`, `no`"},
      {Windows, "kept", "when `freeze` and `reuse_heads` take what they keep", "`warmup`, `update N`"},
      {Windows, "topology", "what is rebuilt at an update", "`refresh`, `freeze`, `reuse_heads`"},
      {Windows, "threshold", "cosine that joins a head to a level-0 group, -1 to 1", "`0.99`"},
      {Windows, "penalty", "weight of the norm difference above level 0", "`16.0`"},
      {Windows, "features", "share that is kept, 0 to 1", "`average(0.9)`, `latest`"},
      {Windows, "scoring", "siblings are scored together or alone", "`joint`, `independent`"},
      {Windows, "scorers", "an option", "`per_layer`, `shared`"},
      {Windows, "widths", "hidden layer of the scorer of one item, of two siblings", "`[64, 256]`"},
      {Windows, "activation", "of the scorers", "`tanh`, `relu`"},
      {Windows, "parents", "whether a child's window is at most its parent's", "`clamp`, `free`"},
      {Windows, "resolution", "share that is kept; above 0.5 windows stall and the plan is refused",
       "`average(0.15)`, `latest`"},
      {Windows, "shuffle", "control: deal the chosen windows out to other heads", "`no`, `yes`"},
      {Windows, "ramp", "steps over which windows become free", "`none`, `A..B`"},
      {Windows, "passthrough", "windows stay from then on", "`never`, `after N steps`"},
      {Windows, "unit", "an option", "`head`, `kv_group`"},
      {Windows, "evaluation", "an option", "`cached`, `live`"},
      {Windows, "seed", "scorers, random grouping", "`run`, a number"},
      {Windows, "share", "of heads, one a candidate; the sum is 1", "equal shares, `[0.5, 0.3, ...]`"},
      {Windows, "redraw", "every 5 steps, as a control update", "`no`, `yes`"},
      {Windows, "permuted", "`file` only: dealt out anew inside each layer", "`no`, `yes`"},
      {Freeze, "by", "the score",
       "`variance` (`gate_taylor` for prune), `forward_kl`, `residual_cosine`, `qk_gradient`, `rank_sum`, "
       "`gradient_veto`, `gate_taylor`, `random(matched)`, `random(unmatched)`"},
      {Freeze, "order", "which end is taken", "`lowest`, `highest`"},
      {Freeze, "scope", "ranked over the model or inside each layer", "`global`, `layer`"},
      {Freeze, "unit", "an option", "`head`, `kv_group`"},
      {Freeze, "pattern", "what replaces attention",
       "`mean`, `sharp`, `uniform`, `resample`, `gaussian`, `dirichlet(A)`, `structured`, `zero`, "
       "`file(\"p.safetensors\")`"},
      {Freeze, "form",
       "`dense` keeps a number a pair of places: a control, T <= 2048; the drawn patterns `resample`, "
       "`gaussian` and `dirichlet` are always dense",
       "`compact`, `dense`"},
      {Freeze, "tolerance",
       "nats a row; a head whose fitted pattern is worse is passed over, also one that is named",
       "`0.2`, `none`"},
      {Freeze, "calibrate", "from a split used for nothing else; at least 16", "`16 rows`"},
      {Freeze, "rounds", "of the fit, at most", "`200`"},
      {Freeze, "stop", "of a row, in every moment", "`1e-4`"},
      {Freeze, "schedule", "an option",
       "`once`, `groups(N, from = 25%, to = 75%)`, `budget(1%)`, `trigger(0.5%)`"},
      {Freeze, "patterns", "`trained` needs `form = compact`", "`fixed`, `trained`"},
      {Freeze, "negligible", "mass of a row that may be left out", "`2 ** -11`, `0`"},
      {Freeze, "cut",
       "where it is left out: beyond a window, or between a document's first places and the window; `middle` "
       "needs `form = compact`",
       "`far`, `middle`"},
      {Freeze, "seed", "an option", "`run`, a number"},
      {Drop, "count", "for `match flops`: which attention is counted", "`full`, `causal`, `executed`"},
      {Drop, "length", "for `match flops`: T; the model's `context` where it has one", "a number"},
      {Drop, "round", "the depth between two", "`down`, `nearest`"},
      {Drop, "tolerance", "refused beyond it, with the two nearest depths", "`0.1%` (`6%` for flops)"},
  };
  return words;
}

const LanguageWord *languageWord(WordPlace place, std::string_view name) {
  for (const LanguageWord &word : languageWords())
    if (word.place == place && word.name == name)
      return &word;
  return nullptr;
}

const std::vector<LanguageFunction> &languageFunctions() {
  static const std::vector<LanguageFunction> functions = {
      {"exp", "exp(x)", "e to the power of each element"},
      {"log", "log(x)", "the natural logarithm of each element"},
      {"sqrt", "sqrt(x)", "the square root of each element"},
      {"tanh", "tanh(x)", "of each element"},
      {"sigmoid", "sigmoid(x)", "1 / (1 + exp(-x))"},
      {"relu", "relu(x)", "max(x, 0)"},
      {"silu", "silu(x)", "x sigmoid(x)"},
      {"gelu", "gelu(x)", "x (1 + erf(x / sqrt 2)) / 2"},
      {"gelu_tanh", "gelu_tanh(x)", "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2"},
      {"layer_norm", "layer_norm(x, eps = 1e-5)", "(x - mean) / sqrt(variance + eps) over the last axis"},
      {"rms_norm", "rms_norm(x, eps = 1e-6)", "x / sqrt(mean of x^2 + eps) over the last axis"},
      {"softmax", "softmax(x)", "exp(x) / sum of exp(x) over the last axis"},
      {"rope", "rope(x, base = 1e4)",
       "rotary positions inside documents: element i of the first half turns with element i of the second by "
       "position base^(-2 i / size)"},
      {"attend", "attend(q, k, v, window = full, scale = size of q's last axis ** -0.5)",
       "row i: the sum over j of softmax_j(scale q_i . k_j) v_j, j from max(document start, i - window + 1) "
       "to i"},
      {"dropout", "dropout(x, rate)",
       "in training, elements are 0 with chance rate, the others divided by 1 - rate"},
      {"cross_entropy", "cross_entropy(logits, targets, weight, z = 0, smoothing = 0)",
       "the mean over counted targets of -log softmax(logits)[target], in nats"},
      {"min", "min(a, b, ...)", "the smallest of numbers known before anything runs"},
      {"max", "max(a, b, ...)", "the largest of numbers known before anything runs"},
      {"floor", "floor(x)", "the whole number below"},
      {"ceil", "ceil(x)", "the whole number above"},
      {"round", "round(x)", "the nearest whole number"},
      {"abs", "abs(x)", "the number without its sign"},
      {"@", "a @ b", "sums over the axes that both sides share, data axes excepted"},
      {"+", "a + b", "of each element; names line up, and what one side lacks is repeated"},
      {"-", "a - b", "of each element; names line up, and what one side lacks is repeated"},
      {"*", "a * b", "of each element; names line up, and what one side lacks is repeated"},
      {"/", "a / b", "of each element; the quotient of two whole numbers of a formula must be whole"},
      {"mod", "a mod b", "the remainder of whole numbers"},
  };
  return functions;
}

const LanguageFunction *languageFunction(std::string_view name) {
  const std::vector<LanguageFunction> &functions = languageFunctions();
  auto found = std::find_if(functions.begin(), functions.end(),
                            [&](const LanguageFunction &function) { return function.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

} // namespace weft::lang

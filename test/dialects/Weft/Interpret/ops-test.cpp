//===- ops-test.cpp - Every op against NumPy -------------------------------===//
//
// Each case runs one op in the interpreter and writes operands and results to a
// file; test/numpy/check_ops.py computes the results again, in vectorised NumPy.
//
//===----------------------------------------------------------------------===//
#include "test/dialects/Weft/Interpret/Fixture.h"

#include <cstdlib>
#include <fstream>

using namespace weft;
using namespace weft::test;

namespace {

/// An operand: its role in the Python function, type, and numbers unless drawn.
struct Operand {
  std::string role;
  Axes axes;
  std::string element = "f64";
  std::vector<double> data = {};
};
struct Case {
  std::string name, op, attrs; // attrs: JSON for Python
  std::vector<Operand> operands;
  std::vector<Operand> results;
  std::string text; // %role stands for operands
  double low = -2, high = 2;
};

std::string number(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value > 0 ? "Infinity" : "-Infinity";
  char buffer[40];
  snprintf(buffer, sizeof buffer, "%.17g", value);
  return buffer;
}

std::string describe(const Operand &operand, const Array &array) {
  std::string axes, shape, data;
  for (const auto &[name, size] : operand.axes) {
    axes += (axes.empty() ? "\"" : ", \"") + name + "\"";
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  }
  for (double value : array.data)
    data += (data.empty() ? "" : ", ") + number(value);
  return "{\"role\": \"" + operand.role + "\", \"axes\": [" + axes + "], \"shape\": [" + shape +
         "], \"data\": [" + data + "]}";
}

std::string moduleOf(const Case &c) {
  std::string arguments, types, values;
  for (const Operand &operand : c.operands)
    arguments +=
        (arguments.empty() ? "%" : ", %") + operand.role + ": " + tensor(operand.axes, operand.element);
  for (size_t i = 0; i < c.results.size(); ++i) {
    types += (i ? ", " : "") + tensor(c.results[i].axes, c.results[i].element);
    values += (i ? ", %r#" : "%r#") + std::to_string(i);
  }
  return "func.func @f(" + arguments + ") -> (" + types + ") {\n  %r:" + std::to_string(c.results.size()) +
         " = " + c.text + "\n  return " + values + " : " + types + "\n}";
}

/// " : (operand types) -> result types".
std::string signature(const Case &c) {
  std::string in, out;
  for (const Operand &operand : c.operands)
    in += (in.empty() ? "" : ", ") + tensor(operand.axes, operand.element);
  for (const Operand &result : c.results)
    out += (out.empty() ? "" : ", ") + tensor(result.axes, result.element);
  return " : (" + in + ") -> (" + out + ")";
}

class Cases {
public:
  void add(Case c) {
    c.text += signature(c);
    Fixture fixture;
    auto module = fixture.parse(moduleOf(c));
    if (!module)
      return;
    llvm::SmallVector<Array> inputs;
    std::string operands, results;
    auto function = module->lookupSymbol<mlir::func::FuncOp>("f");
    for (size_t i = 0; i < c.operands.size(); ++i) {
      const Operand &operand = c.operands[i];
      Array array = randomArray(function.getArgument(i).getType(), c.name + operand.role, c.low, c.high);
      if (!operand.data.empty())
        array.data = operand.data;
      operands += (i ? ", " : "") + describe(operand, array);
      inputs.push_back(std::move(array));
    }
    auto answers = fixture.run(*module, inputs);
    ASSERT_TRUE(answers) << c.name << ": " << fixture.messages;
    for (size_t i = 0; i < c.results.size(); ++i)
      results += (i ? ", " : "") + describe(c.results[i], (*answers)[i]);
    json += (json.empty() ? "" : ",\n") + std::string("{\"name\": \"") + c.name + "\", \"op\": \"" + c.op +
            "\", \"attrs\": " + (c.attrs.empty() ? "{}" : c.attrs) + ", \"operands\": [" + operands +
            "], \"results\": [" + results + "]}";
  }
  void check(const std::string &family) {
    std::string path = std::string(WEFT_BINARY_DIR) + "/ops-" + family + ".json";
    std::ofstream(path) << "[" << json << "]\n";
    std::string command = "/usr/bin/python3 " WEFT_SOURCE_DIR "/test/numpy/check_ops.py " + path;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

private:
  std::string json;
};

const Axes kRows = {{"batch", 2}, {"pos", 3}, {"dim", 5}};

TEST(OpsAgainstNumpy, Elementwise) {
  Cases cases;
  for (std::string fn :
       {"neg", "exp", "log", "sqrt", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "relu"}) {
    bool positive = fn == "log" || fn == "sqrt";
    cases.add({"unary " + fn,
               "unary",
               "{\"fn\": \"" + fn + "\"}",
               {{"x", kRows}},
               {{"y", kRows}},
               "weft.unary " + fn + " %x",
               positive ? 0.1 : -3,
               3});
  }
  for (std::string fn : {"add", "sub", "mul", "div", "pow"}) {
    std::string attrs = "{\"fn\": \"" + fn + "\"}", text = "weft.binary " + fn + " %x, %y";
    // Axes line up by name: by position, a (dim, pos) operand would mix them up.
    for (const Axes &other :
         std::vector<Axes>{kRows, {{"dim", 5}}, {{"batch", 2}, {"dim", 5}}, {}, {{"dim", 5}, {"pos", 3}}})
      cases.add(
          {"binary " + fn, "binary", attrs, {{"x", kRows}, {"y", other}}, {{"z", kRows}}, text, 0.2, 2});
    cases.add({"binary left " + fn,
               "binary",
               attrs,
               {{"x", {{"pos", 3}}}, {"y", kRows}},
               {{"z", kRows}},
               text,
               0.2,
               2});
  }
  cases.check("elementwise");
}

TEST(OpsAgainstNumpy, Sums) {
  Cases cases;
  cases.add({"sum all", "sum_to", "", {{"x", kRows}}, {{"r", {}}}, "weft.sum_to %x"});
  cases.add({"sum to dim", "sum_to", "", {{"x", kRows}}, {{"r", {{"dim", 5}}}}, "weft.sum_to %x"});
  cases.add(
      {"sum, turned", "sum_to", "", {{"x", kRows}}, {{"r", {{"dim", 5}, {"batch", 2}}}}, "weft.sum_to %x"});
  cases.add({"sum, init",
             "sum_to",
             "",
             {{"x", kRows}, {"init", {{"pos", 3}}}},
             {{"r", {{"pos", 3}}}},
             "weft.sum_to %x init %init"});
  // 6 rows in 4 chunks: chunks of 1, 2, 1, 2 rows.
  cases.add({"partial sum",
             "partial_sum",
             "{\"rows\": 2}",
             {{"x", kRows}},
             {{"r", {{"chunk", 4}, {"dim", 5}}}},
             "weft.partial_sum %x over [\"batch\", \"pos\"]"});
  cases.add({"partial sum, scalar",
             "partial_sum",
             "{\"rows\": 2}",
             {{"x", kRows}},
             {{"r", {{"chunk", 4}}}},
             "weft.partial_sum %x over [\"batch\", \"pos\"]"});
  cases.check("sums");
}

TEST(OpsAgainstNumpy, Rows) {
  Cases cases;
  for (double eps : {1e-5, 0.5}) { // a large eps shows where it is added
    std::string attrs = "{\"eps\": " + number(eps) + "}";
    char text[64];
    snprintf(text, sizeof text, " %%x {eps = %.17e : f64}", eps);
    cases.add({"layer_norm",
               "layer_norm",
               attrs,
               {{"x", kRows}},
               {{"y", kRows}},
               std::string("weft.layer_norm") + text});
    cases.add(
        {"rms_norm", "rms_norm", attrs, {{"x", kRows}}, {{"y", kRows}}, std::string("weft.rms_norm") + text});
  }
  cases.add({"softmax", "softmax", "", {{"x", kRows}}, {{"y", kRows}}, "weft.softmax %x"});
  Axes heads = {{"batch", 2}, {"pos", 3}, {"head", 2}, {"channel", 6}};
  for (std::string inverse : {"", " inverse"})
    cases.add({"rope" + inverse,
               "rope",
               inverse.empty() ? "{\"base\": 10000}" : "{\"base\": 10000, \"inverse\": true}",
               {{"x", heads}, {"position", {{"batch", 2}, {"pos", 3}}, "i32", {0, 1, 131071, 5, 0, 1}}},
               {{"y", heads}},
               "weft.rope %x, %position" + inverse + " {base = 1.0e4 : f64}"});
  cases.check("rows");
}

TEST(OpsAgainstNumpy, Products) {
  Cases cases;
  auto contraction = [&](const std::string &name, Axes a, Axes b, Axes r, bool init = false) {
    Case c{"contract " + name, "contract", "", {{"a", a}, {"b", b}}, {{"r", r}}, "weft.contract %a, %b"};
    if (init)
      c.operands.push_back({"init", r}), c.text += " init %init";
    cases.add(c);
  };
  contraction("plain", kRows, {{"dim", 5}, {"hidden", 7}}, {{"batch", 2}, {"pos", 3}, {"hidden", 7}});
  contraction("transposed", kRows, {{"hidden", 7}, {"dim", 5}}, {{"batch", 2}, {"pos", 3}, {"hidden", 7}},
              true);
  contraction("two summed", kRows, {{"batch", 2}, {"pos", 3}, {"hidden", 4}}, {{"hidden", 4}, {"dim", 5}},
              true);
  contraction("batched", {{"head", 3}, {"pos", 2}, {"dim", 5}}, {{"dim", 5}, {"head", 3}, {"out", 4}},
              {{"pos", 2}, {"out", 4}, {"head", 3}});
  contraction("outer", {{"m", 3}}, {{"n", 4}}, {{"n", 4}, {"m", 3}});
  contraction("dot", {{"m", 3}}, {{"m", 3}}, {});
  Axes index = {{"batch", 2}, {"pos", 3}};
  std::vector<double> rows = {4, 0, 4, 1, 0, 4}; // repeated rows add up
  cases.add({"gather",
             "gather",
             "",
             {{"table", {{"vocab", 5}, {"dim", 3}}}, {"index", index, "i32", rows}},
             {{"y", {{"batch", 2}, {"pos", 3}, {"dim", 3}}}},
             "weft.gather %table, %index"});
  cases.add({"gather_grad",
             "gather_grad",
             "",
             {{"index", index, "i32", rows},
              {"dy", {{"batch", 2}, {"pos", 3}, {"dim", 3}}},
              {"init", {{"vocab", 5}, {"dim", 3}}}},
             {{"r", {{"vocab", 5}, {"dim", 3}}}},
             "weft.gather_grad %index, %dy init %init"});
  Axes places = {{"batch", 2}, {"pos", 5}};
  std::vector<double> starts = {0, 0, 2, 3, 3, 0, 1, 1, 1, 1};
  cases.add({"position",
             "position",
             "",
             {{"doc_start", places, "i32", starts}},
             {{"r", places, "i32"}},
             "weft.position %doc_start"});
  cases.add({"position, offset",
             "position",
             "",
             {{"doc_start", places, "i32", starts}, {"offset", {}, "i32", {11}}},
             {{"r", places, "i32"}},
             "weft.position %doc_start offset %offset"});
  cases.add({"document",
             "document",
             "",
             {{"doc_start", places, "i32", starts}},
             {{"r", places, "i32"}},
             "weft.document %doc_start"});
  cases.check("products");
}

constexpr int64_t kPlaces = 7;
const std::vector<double> kOneDocument(2 * kPlaces, 0.0);
const std::vector<double> kDocuments = {0, 0, 0, 3, 4, 4, 4, 0, 1, 2, 2, 2, 2, 6}; // one-token ones too

/// Attention of 6 heads with the key axes `kv`, of the given windows and documents.
Case attention(const std::string &name, const Axes &heads, const Axes &kv, std::vector<double> windows,
               const std::vector<double> &documents) {
  Axes rows = {{"batch", 2}, {"pos", kPlaces}};
  auto with = [&](const Axes &inner, int64_t width, const char *last) {
    Axes axes = rows;
    axes.insert(axes.end(), inner.begin(), inner.end());
    axes.push_back({last, width});
    return axes;
  };
  Axes lse = with(heads, 1, "");
  lse.pop_back();
  Operand windowOperand{"windows", {{"heads", static_cast<int64_t>(windows.size())}}, "i32", windows};
  return {name,
          "attend",
          "{\"scale\": 0.4}",
          {{"q", with(heads, 4, "channel")},
           {"k", with(kv, 4, "channel")},
           {"v", with(kv, 3, "value")},
           windowOperand,
           {"doc_start", rows, "i32", documents}},
          {{"out", with(heads, 3, "value")}, {"lse", lse}},
          "weft.attend %q, %k, %v windows %windows documents %doc_start "
          "{scale = 4.0e-1 : f64}"};
}

/// Six query heads that read three key-value heads by a table; with `statistics`,
/// what the controller is told of them.
Case byTable(bool statistics, bool padded) {
  Axes rows = {{"batch", 2}, {"pos", kPlaces}}, q = rows, k = rows, v = rows, out = rows, lse = rows;
  q.insert(q.end(), {{"live", 6}, {"channel", 4}});
  k.insert(k.end(), {{"kv", 3}, {"channel", 4}});
  v.insert(v.end(), {{"kv", 3}, {"value", 3}});
  out.insert(out.end(), {{"live", 6}, {"value", 3}});
  lse.push_back({"live", 6});
  Operand windows{"windows", {{"heads", 6}}, "i32", {1, 2, 3, 6, 7, 2147483647}};
  Operand table{"kv_of", {{"heads", 6}}, "i32", {2, 0, 0, 1, 2, 1}},
      starts{"doc_start", rows, "i32", kDocuments};
  if (!statistics)
    return {
        "attend by table",
        "attend",
        "{\"scale\": 0.4}",
        {{"q", q}, {"k", k}, {"v", v}, windows, starts, table},
        {{"out", out}, {"lse", lse}},
        "weft.attend %q, %k, %v windows %windows documents %doc_start kv_of %kv_of {scale = 4.0e-1 : f64}"};
  Case c{
      "statistics",
      "head_statistics",
      "",
      {{"q", q}, {"k", k}, {"v", v}, {"out", out}, {"entropy", lse}, windows, starts, table},
      {{"r", {{"head", 6}, {"statistic", 12}}}},
      "weft.head_statistics %q, %k, %v, %out, %entropy windows %windows documents %doc_start kv_of %kv_of"};
  if (padded) { // the last document of the second row counts nothing
    c.operands.push_back({"targets", rows, "i32", {3, 0, -1, -1, 2, 2, -1, 1, -1, 0, -1, 5, -1, -1}});
    c.text += " targets %targets";
  }
  return c;
}

/// Documents of two rows, the longest first: five, three, two and two places of them.
Case calibration(const Axes &heads, const Axes &kv, std::vector<double> windows, bool table) {
  Axes rows = {{"batch", 2}, {"pos", kPlaces}}, q = rows, k = rows, lse = rows;
  q.insert(q.end(), heads.begin(), heads.end());
  lse.insert(lse.end(), heads.begin(), heads.end());
  k.insert(k.end(), kv.begin(), kv.end());
  q.push_back({"channel", 4}), k.push_back({"channel", 4});
  const Axes pattern = {{"live", 6}, {"place", kPlaces}};
  Case c{"calibration",
         "pattern_statistics",
         "{\"scale\": 0.4}",
         {{"q", q},
          {"k", k},
          {"lse", lse},
          {"windows", {{"heads", 6}}, "i32", std::move(windows)},
          {"documents", {{"slot", 4}}, "i32", {7, 2, 0, 12}},
          {"reach", {{"row", kPlaces}}, "i32", {4, 4, 2, 1, 1, 0, 0}},
          {"a", pattern},
          {"distance", pattern},
          {"z", pattern}},
         {{"columns", pattern}, {"diagonals", pattern}, {"sums", {{"live", 6}, {"sum", 8}}}},
         "weft.pattern_statistics %q, %k, %lse windows %windows documents %documents reach %reach "
         "pattern %a, %distance, %z "};
  if (table) {
    c.operands.push_back({"kv_of", {{"heads", 6}}, "i32", {2, 0, 0, 1, 2, 1}});
    c.text += "kv_of %kv_of ";
  }
  c.text += "{scale = 4.0e-1 : f64}";
  return c;
}

// Catches: rows that a document lacks but counted, places from the row's start, a mean
// over all documents where some are too short, a distance counted the other way.
TEST(OpsAgainstNumpy, Calibration) {
  Cases cases;
  for (std::vector<double> windows : {std::vector<double>(6, 2147483647), {1, 2, 3, 4, 5, 2147483647}}) {
    cases.add(calibration({{"head", 6}}, {{"head", 6}}, windows, false));
    cases.add(calibration({{"kv", 2}, {"group", 3}}, {{"kv", 2}}, windows, false));
    cases.add(calibration({{"live", 6}}, {{"kv", 3}}, windows, true));
  }
  cases.check("calibration");
}

// Catches: a window or document bound off by one, tiled instead of repeated
// groups, swapped group axes, a missing scale.
TEST(OpsAgainstNumpy, Attend) {
  Cases cases;
  std::vector<std::pair<std::string, std::pair<Axes, Axes>>> groups = {
      {"plain", {{{"head", 6}}, {{"head", 6}}}},
      {"one key head", {{{"head", 6}}, {}}},
      {"grouped", {{{"kv", 2}, {"group", 3}}, {{"kv", 2}}}},
      {"grouped, inner", {{{"group", 3}, {"kv", 2}}, {{"kv", 2}}}},
      {"grouped, turned", {{{"kv", 2}, {"group", 3}}, {{"group", 3}, {"kv", 2}}}}};
  std::vector<double> mixed = {1, 2, 3, kPlaces - 1, kPlaces, 2147483647};
  for (const auto &[name, axes] : groups) {
    cases.add(attention("attend " + name, axes.first, axes.second, mixed, kOneDocument));
    cases.add(attention("attend documents " + name, axes.first, axes.second, mixed, kDocuments));
    Case observed = attention("attend entropies " + name, axes.first, axes.second, mixed, kDocuments);
    observed.results.push_back({"entropy", observed.results[1].axes});
    observed.text.insert(observed.text.find("{scale") + 1, "entropies, ");
    cases.add(observed);
  }
  for (double window : mixed)
    cases.add(
        attention("attend window", {{"head", 6}}, {{"head", 6}}, std::vector<double>(6, window), kDocuments));
  cases.add(byTable(false, false));
  cases.add(byTable(true, false));
  cases.add(byTable(true, true));
  Axes q = {{"batch", 2}, {"pos", 1}, {"kv", 2}, {"group", 2}, {"channel", 4}};
  Axes cache = {{"batch", 2}, {"cached", 9}, {"kv", 2}, {"channel", 4}};
  cases.add(
      {"attend cache",
       "attend",
       "{\"scale\": 0.5}",
       {{"q", q},
        {"k", cache},
        {"v", cache},
        {"windows", {{"heads", 4}}, "i32", {1, 3, 6, 100}},
        {"doc_start", {{"batch", 2}, {"pos", 1}}, "i32", {0, 2}},
        {"offset", {}, "i32", {6}}},
       {{"out", q}, {"lse", {{"batch", 2}, {"pos", 1}, {"kv", 2}, {"group", 2}}}},
       "weft.attend %q, %k, %v windows %windows documents %doc_start offset %offset {scale = 5.0e-1 : f64}"});
  cases.add({"cache_update",
             "cache_update",
             "",
             {{"cache", cache},
              {"value", {{"batch", 2}, {"pos", 2}, {"kv", 2}, {"channel", 4}}},
              {"offset", {}, "i32", {5}}},
             {{"r", cache}},
             "weft.cache_update %cache, %value, %offset"});
  cases.check("attention");
}

TEST(OpsAgainstNumpy, Losses) {
  Cases cases;
  Axes rows = {{"batch", 2}, {"pos", 3}};
  std::vector<double> targets = {4, -1, 0, 2, 6, -1};
  for (std::string settings : {"0 0", "0.01 0.1", "0.5 0"}) {
    double z = std::atof(settings.c_str()), smoothing = std::atof(settings.c_str() + settings.find(' '));
    std::string attrs = "{\"z\": " + number(z) + ", \"smoothing\": " + number(smoothing) + "}";
    char text[96];
    snprintf(text, sizeof text, " {z = %.17e : f64, smoothing = %.17e : f64}", z, smoothing);
    for (bool weighted : {false, true}) {
      std::string weight = weighted ? " weight %weight" : "";
      std::vector<Operand> tail = {{"targets", rows, "i32", targets}};
      if (weighted)
        tail.push_back({"weight", rows});
      std::vector<Operand> plain = {{"logits", {{"batch", 2}, {"pos", 3}, {"vocab", 7}}}};
      plain.insert(plain.end(), tail.begin(), tail.end());
      cases.add({"cross_entropy " + settings,
                 "cross_entropy",
                 attrs,
                 plain,
                 {{"loss", {}}},
                 "weft.cross_entropy %logits, %targets" + weight + text});
      for (Axes table : {Axes{{"vocab", 7}, {"dim", 5}}, Axes{{"dim", 5}, {"vocab", 7}}}) {
        std::vector<Operand> head = {{"x", kRows}, {"table", table}};
        head.insert(head.end(), tail.begin(), tail.end());
        cases.add({"loss_head " + settings,
                   "loss_head",
                   attrs,
                   head,
                   {{"loss", {}}},
                   "weft.loss_head %x, %table, %targets" + weight + text});
      }
    }
  }
  cases.check("losses");
}

TEST(OpsAgainstNumpy, Optimiser) {
  Cases cases;
  cases.add({"norm", "norm", "", {{"x", kRows}, {"factor", {}}}, {{"r", {}}}, "weft.norm %x, %factor"});
  // L5: 100 values of 1e20 have the norm 1e21, and 0.1 each after clipping at 1.
  cases.add({"norm, large",
             "norm",
             "",
             {{"x", {{"dim", 100}}, "f64", std::vector<double>(100, 1e20)}, {"factor", {}, "f64", {1}}},
             {{"r", {}}},
             "weft.norm %x, %factor"});
  for (double norm : {0.5, 4.0, double(INFINITY), double(NAN)})
    for (double clip : {0.0, 1.0})
      cases.add({"clip_scale",
                 "clip_scale",
                 "{\"clip\": " + number(clip) + "}",
                 {{"norm", {}, "f64", {norm}}, {"factor", {}, "f64", {0.25}}},
                 {{"r", {}}},
                 "weft.clip_scale %norm, %factor " + std::string(clip ? "1.0" : "0.0")});
  Axes flat = {{"dim", 9}};
  cases.add(
      {"adamw",
       "adamw",
       "{\"beta1\": 0.9, \"beta2\": 0.95, \"eps\": 1e-8, \"decay\": 0.1}",
       {{"p", flat}, {"m", flat}, {"v", flat}, {"grad", flat}, {"hyper", {{"hyper", 3}}}, {"scale", {}}},
       {{"p2", flat}, {"m2", flat}, {"v2", flat}},
       "weft.adamw %p, %m, %v, %grad hyper %hyper scale %scale betas 0.9, 0.95 eps 1.0e-8 decay 0.1",
       0.01,
       0.5});
  cases.check("optimiser");
}

// Documents, windows, shared values, and a cache that a query reads the end of.
TEST(OpsAgainstNumpy, Patterns) {
  Cases cases;
  const std::vector<double> documents = {0, 0, 2, 2, 2, 0, 1, 1, 1, 4}, kvOf = {1, 0, 1};
  const Axes values = {{"batch", 2}, {"pos", 5}, {"kv", 2}, {"channel", 3}},
             table = {{"frozen", 3}, {"place", 6}};
  const Axes out = {{"batch", 2}, {"pos", 5}, {"frozen", 3}, {"channel", 3}},
             rows = {{"batch", 2}, {"pos", 5}, {"frozen", 3}};
  for (const std::vector<double> &windows : {std::vector<double>{1, 2, 100}, {5, 4, 3}}) {
    const Operand a{"a", table}, r{"distance", table}, w{"windows", {{"heads", 3}}, "i32", windows},
        d{"doc_start", {{"batch", 2}, {"pos", 5}}, "i32", documents},
        kv{"kv_of", {{"heads", 3}}, "i32", kvOf};
    cases.add({"mix",
               "mix",
               "",
               {{"v", values}, a, r, w, d, kv},
               {{"out", out}, {"lse", rows}},
               "weft.mix %v, %a, %distance windows %windows documents %doc_start kv_of %kv_of"});
  }
  // First places of documents behind the windows.
  std::vector<double> starts(2 * 150, 0);
  std::fill(starts.begin() + 20, starts.begin() + 150, 20);
  cases.add({"mix of first places",
             "mix",
             "",
             {{"v", {{"batch", 2}, {"pos", 150}, {"kv", 2}, {"channel", 3}}},
              {"a", {{"frozen", 3}, {"place", 151}}},
              {"distance", {{"frozen", 3}, {"place", 151}}},
              {"windows", {{"heads", 6}}, "i32", {1, 70, 20, 64, 64, 0}},
              {"doc_start", {{"batch", 2}, {"pos", 150}}, "i32", starts},
              {"kv_of", {{"heads", 3}}, "i32", kvOf}},
             {{"out", {{"batch", 2}, {"pos", 150}, {"frozen", 3}, {"channel", 3}}},
              {"lse", {{"batch", 2}, {"pos", 150}, {"frozen", 3}}}},
             "weft.mix %v, %a, %distance windows %windows documents %doc_start kv_of %kv_of"});
  const Operand square{"p", {{"frozen", 3}, {"row", 6}, {"place", 6}}},
      begins{"doc_start", {{"batch", 2}, {"pos", 5}}, "i32", documents},
      readers{"kv_of", {{"heads", 3}}, "i32", kvOf};
  cases.add({"mix by whole patterns",
             "mix_dense",
             "",
             {{"v", values}, square, begins, readers},
             {{"out", out}},
             "weft.mix_dense %v, %p documents %doc_start kv_of %kv_of"});
  cases.add({"mix by whole patterns in a cache",
             "mix_dense",
             "",
             {{"v", {{"batch", 2}, {"cache", 7}, {"frozen", 2}, {"channel", 3}}},
              {"p", {{"frozen", 2}, {"row", 7}, {"place", 7}}},
              {"doc_start", {{"batch", 2}, {"pos", 1}}, "i32", {0, 2}},
              {"offset", {}, "i32", {4}}},
             {{"out", {{"batch", 2}, {"pos", 1}, {"frozen", 2}, {"channel", 3}}}},
             "weft.mix_dense %v, %p documents %doc_start offset %offset"});
  cases.add({"mix in a cache",
             "mix",
             "",
             {{"v", {{"batch", 2}, {"cache", 7}, {"frozen", 2}, {"channel", 3}}},
              {"a", {{"frozen", 2}, {"place", 7}}},
              {"distance", {{"frozen", 2}, {"place", 7}}},
              {"windows", {{"heads", 2}}, "i32", {3, 100}},
              {"doc_start", {{"batch", 2}, {"pos", 1}}, "i32", {0, 2}},
              {"offset", {}, "i32", {4}}},
             {{"out", {{"batch", 2}, {"pos", 1}, {"frozen", 2}, {"channel", 3}}},
              {"lse", {{"batch", 2}, {"pos", 1}, {"frozen", 2}}}},
             "weft.mix %v, %a, %distance windows %windows documents %doc_start offset %offset"});
  cases.add({"take",
             "take",
             "{\"axes\": [\"kv\", \"group\"], \"indices\": [5, 0, 5]}",
             {{"x", {{"dim", 2}, {"kv", 2}, {"group", 3}, {"head", 4}}}},
             {{"y", {{"dim", 2}, {"live", 3}, {"head", 4}}}},
             "weft.take %x [\"kv\", \"group\"] as \"live\" at [5, 0, 5]"});
  cases.add({"put",
             "put",
             "{\"axes\": [\"kv\", \"group\"], \"indices\": [5, 0, 5]}",
             {{"y", {{"dim", 2}, {"live", 3}, {"head", 4}}}},
             {{"x", {{"dim", 2}, {"kv", 2}, {"group", 3}, {"head", 4}}}},
             "weft.put %y from \"live\" to [\"kv\", \"group\"] at [5, 0, 5]"});
  cases.check("patterns");
}

} // namespace

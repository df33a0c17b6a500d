// Weight tables: the shipped ones name every tensor; errors are the W062x.
#include "frontend/Weights.h"
#include "test/frontend/error-pages.h"

#include <gtest/gtest.h>

#include <map>

namespace weft::lang {
namespace {

struct Read {
  SourceFiles sources;
  Diagnostics diagnostics;
  ast::File file;
  std::optional<Model> model;
  std::optional<WeightTable> table;
};

Read readShipped(const std::string &name) {
  Read read;
  read.file = parseFile(WEFT_SOURCE_DIR "/models/" + name + ".weft", read.sources, read.diagnostics);
  read.model = checkModel(read.file, read.sources, name, {}, read.diagnostics);
  if (read.model)
    read.table = checkWeights(read.file, read.sources, "huggingface", *read.model, read.diagnostics);
  return read;
}

const WeightEntry *entryOf(const WeightTable &table, const std::string &key) {
  for (const WeightEntry &entry : table.entries)
    if (entry.key == key)
      return &entry;
  return nullptr;
}

// Shapes as the released files have them.
TEST(Weights, Gpt2MatchesTheReleasedShapes) {
  Read read = readShipped("gpt2");
  ASSERT_TRUE(read.table) << read.diagnostics.render(read.sources);
  const WeightTable &table = *read.table;
  EXPECT_EQ(table.entries.size(), 4u + 12 * 12 + 1);
  const WeightEntry *qkv = entryOf(table, "h.11.attn.c_attn.weight");
  ASSERT_TRUE(qkv);
  EXPECT_EQ(qkv->shape(), (std::vector<int64_t>{768, 2304}));
  EXPECT_EQ(qkv->parameters,
            (std::vector<std::string>{"block.11.attn.wq", "block.11.attn.wk", "block.11.attn.wv"}));
  EXPECT_TRUE(qkv->layout[1].stack);
  EXPECT_EQ(qkv->layout[1].axes, (std::vector<std::string>{"heads", "head"}));
  EXPECT_EQ(entryOf(table, "h.0.attn.c_attn.bias")->shape(), (std::vector<int64_t>{2304}));
  EXPECT_EQ(entryOf(table, "h.0.mlp.c_fc.weight")->shape(), (std::vector<int64_t>{768, 3072}));
  EXPECT_TRUE(entryOf(table, "lm_head.weight")->tied);
  EXPECT_EQ(table.prefixes, (std::vector<std::string>{"transformer.", ""}));
  EXPECT_EQ(table.ignored.size(), 2u);
  ASSERT_EQ(table.sizes.size(), 6u);
  EXPECT_FALSE(table.sizes[2].optional);
  EXPECT_EQ(table.sizes[5].keys, (std::vector<std::vector<std::string>>{{"n_inner"}}));
  EXPECT_TRUE(table.sizes[5].optional); // `or default`
  EXPECT_EQ(table.sizes[2].setting, "dim");
  EXPECT_EQ(table.sizes[2].keys[0], std::vector<std::string>{"n_embd"});
}

TEST(Weights, Qwen3TransposesAndLooksInTwoPlaces) {
  Read read = readShipped("qwen3");
  ASSERT_TRUE(read.table) << read.diagnostics.render(read.sources);
  const WeightEntry *q = entryOf(*read.table, "layers.27.self_attn.q_proj.weight");
  ASSERT_TRUE(q);
  EXPECT_EQ(q->shape(), (std::vector<int64_t>{2048, 1024}));
  EXPECT_EQ(entryOf(*read.table, "layers.0.self_attn.k_proj.weight")->shape(),
            (std::vector<int64_t>{1024, 1024}));
  EXPECT_EQ(entryOf(*read.table, "layers.0.mlp.down_proj.weight")->shape(),
            (std::vector<int64_t>{1024, 3072}));
  const SizeSource &theta = read.table->sizes.back();
  EXPECT_EQ(theta.setting, "theta");
  ASSERT_EQ(theta.keys.size(), 2u);
  EXPECT_EQ(theta.keys[0], (std::vector<std::string>{"rope_parameters", "rope_theta"}));
  EXPECT_EQ(theta.keys[1], std::vector<std::string>{"rope_theta"});
}

// Texts, numbers, words; `absent` is the empty text, and stands where it was written.
TEST(Weights, ExpectationsAreJson) {
  Read gpt2 = readShipped("gpt2"), qwen3 = readShipped("qwen3");
  ASSERT_TRUE(gpt2.table && qwen3.table);
  std::map<std::string, std::vector<std::string>> allowed;
  for (const WeightTable *table : {&*gpt2.table, &*qwen3.table})
    for (const Expectation &expectation : table->expected)
      allowed[table->model + "/" + expectation.key.back()] = expectation.allowed;
  using Values = std::vector<std::string>;
  EXPECT_EQ(allowed["gpt2/activation_function"], (Values{"\"gelu_new\"", "\"gelu_pytorch_tanh\"", ""}));
  EXPECT_EQ(allowed["gpt2/layer_norm_epsilon"], (Values{"1e-05", ""}));
  EXPECT_EQ(allowed["gpt2/tie_word_embeddings"], (Values{"", "true"}));
  EXPECT_EQ(allowed["qwen3/rope_scaling"], Values{""});
  EXPECT_EQ(allowed["qwen3/rope_type"], (Values{"\"default\"", ""}));
}

// Each is one W0623 at its line, and the others are still read.
TEST(Weights, ExpectationsThatAreNone) {
  Read nano;
  std::string text = "use \"nano.weft\"\nweights w for nano {\n  expect act\n  expect \"act\" \"gelu\"\n"
                     "  expect act gelu\n  expect act \"a\" \"b\"\n  expect h[0].act \"a\"\n"
                     "  expect act \"a\" or\n}\n";
  nano.file = parseText(WEFT_SOURCE_DIR "/models/none.weft", text, nano.sources, nano.diagnostics);
  ASSERT_FALSE(nano.diagnostics.hasErrors()) << nano.diagnostics.render(nano.sources);
  nano.model = checkModel(nano.file, nano.sources, "nano", {}, nano.diagnostics);
  ASSERT_TRUE(nano.model);
  EXPECT_FALSE(checkWeights(nano.file, nano.sources, "w", *nano.model, nano.diagnostics));
  const std::string found = nano.diagnostics.render(nano.sources);
  for (int line = 3; line <= 8; ++line)
    EXPECT_NE(found.find("none.weft:" + std::to_string(line) + ":3: error[W0623]"), std::string::npos)
        << line << "\n"
        << found;
}

TEST(Weights, SizesCanBeReadBeforeTheModel) {
  SourceFiles sources;
  Diagnostics diagnostics;
  ast::File file = parseFile(WEFT_SOURCE_DIR "/models/qwen3.weft", sources, diagnostics);
  std::optional<WeightTable> table = weightSizes(file, "", "qwen3");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->sizesFile, "config.json");
  EXPECT_EQ(table->sizes.size(), 9u);
  EXPECT_FALSE(weightSizes(file, "", "gpt2"));
}

} // namespace
} // namespace weft::lang

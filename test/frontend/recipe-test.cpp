// Recipes: the shipped ones, overrides, groups of parameters.
#include "frontend/Recipe.h"
#include "test/frontend/error-pages.h"

#include <gtest/gtest.h>

namespace weft::lang {
namespace {

struct Read {
  SourceFiles sources;
  Diagnostics diagnostics;
  ast::File file;
  std::optional<Model> model;
  std::optional<rt::Recipe> recipe;
};

Read readShipped(const std::string &name, const Overrides &overrides = {}) {
  Read read;
  read.file = parseFile(WEFT_SOURCE_DIR "/models/" + name + ".weft", read.sources, read.diagnostics);
  read.model = checkModel(read.file, read.sources, name, {}, read.diagnostics);
  if (read.model)
    read.recipe = checkRecipe(read.file, read.sources, "", *read.model, read.diagnostics, overrides);
  return read;
}

std::set<std::string> codes(const Diagnostics &diagnostics) {
  std::set<std::string> result;
  for (const Diagnostic &entry : diagnostics.sorted())
    result.insert(std::string(codeName(entry.code)));
  return result;
}

// Both groups: multiplying AdamW's rate alone leaves Muon at 0.02.
TEST(Recipe, TheFactorMultipliesEveryRate) {
  Read plain = readShipped("san"), twice = readShipped("san", {{"rate_factor", "2"}, {"portion", "25%"}});
  ASSERT_TRUE(plain.recipe && twice.recipe) << twice.diagnostics.render(twice.sources);
  ASSERT_EQ(twice.recipe->optimizers.size(), 2u);
  EXPECT_DOUBLE_EQ(twice.recipe->optimizers[0].lr, 0.04);
  EXPECT_DOUBLE_EQ(twice.recipe->optimizers[1].lr, 6e-4);
  EXPECT_DOUBLE_EQ(plain.recipe->portion, 1);
  EXPECT_DOUBLE_EQ(twice.recipe->portion, 0.25);
  for (const Overrides &wrong :
       {Overrides{{"rate_factor", "0"}}, Overrides{{"portion", "0%"}}, Overrides{{"portion", "120%"}}})
    EXPECT_FALSE(readShipped("san", wrong).recipe) << wrong[0].second;
}

// A word that is none is refused, not taken for `auto`.
TEST(Recipe, MemoryIsAPolicy) {
  using Memory = rt::Recipe::Memory;
  EXPECT_EQ(readShipped("nano").recipe->memory, Memory::Auto);
  for (auto [word, policy] : {std::pair("auto", Memory::Auto), std::pair("fast", Memory::Fast),
                              std::pair("lean", Memory::Lean), std::pair("tight", Memory::Tight)}) {
    Read read = readShipped("nano", {{"memory", word}});
    ASSERT_TRUE(read.recipe) << read.diagnostics.render(read.sources);
    EXPECT_EQ(read.recipe->memory, policy) << word;
  }
  EXPECT_FALSE(readShipped("nano", {{"memory", "most"}}).recipe);
}

TEST(Recipe, Gpt2IsReadAsWritten) {
  Read read = readShipped("gpt2");
  ASSERT_TRUE(read.recipe) << read.diagnostics.render(read.sources);
  const rt::Recipe &r = *read.recipe;
  EXPECT_EQ(r.name, "pretrain");
  EXPECT_EQ(r.data, std::vector<std::string>{"shards/train-*.bin"});
  EXPECT_EQ(r.heldOut.kind, rt::HeldOut::Kind::Source);
  EXPECT_EQ(r.heldOut.source, "shards/val-*.bin");
  EXPECT_EQ(r.tokenizer, "gpt2");
  EXPECT_TRUE(r.documentsApart);
  EXPECT_FALSE(r.boundaryCount);
  EXPECT_EQ(r.rows, 480);
  EXPECT_EQ(r.positions, 1024);
  EXPECT_EQ(r.microBatches, 40);
  EXPECT_EQ(r.steps, 600000);
  ASSERT_EQ(r.optimizers.size(), 1u);
  EXPECT_DOUBLE_EQ(r.optimizers[0].lr, 6e-4);
  EXPECT_DOUBLE_EQ(r.optimizers[0].beta1, 0.9);
  EXPECT_DOUBLE_EQ(r.optimizers[0].beta2, 0.95);
  EXPECT_DOUBLE_EQ(r.optimizers[0].decay, 0.1);
  EXPECT_EQ(r.schedule.kind, rt::Schedule::Kind::Cosine);
  EXPECT_EQ(r.schedule.warmup.steps(600000), 2000);
  EXPECT_DOUBLE_EQ(r.schedule.floor, 0.1);
  EXPECT_DOUBLE_EQ(r.clip, 1.0);
  EXPECT_EQ(r.evalEvery, 1000);
  EXPECT_EQ(r.evalRows, 0);
  EXPECT_EQ(r.saveEvery, 1000);
  EXPECT_EQ(r.saveKeep, 2);
  EXPECT_NE(r.text.find("train pretrain"), std::string::npos);
}

TEST(Recipe, SanHasTwoOptimizersThatShareNoParameter) {
  Read read = readShipped("san");
  ASSERT_TRUE(read.recipe) << read.diagnostics.render(read.sources);
  const rt::Recipe &r = *read.recipe;
  EXPECT_EQ(r.tokenizerCut, 16384);
  EXPECT_TRUE(r.packWhole);
  EXPECT_FALSE(r.longDrop);
  EXPECT_DOUBLE_EQ(r.heldOut.fraction, 0.05);
  EXPECT_DOUBLE_EQ(*r.tokens, 5e9);
  ASSERT_EQ(r.optimizers.size(), 2u);
  EXPECT_EQ(r.optimizers[0].kind, rt::Optimizer::Kind::Muon);
  EXPECT_EQ(r.optimizers[0].on.paths, std::vector<std::string>{"block[..]"});
  EXPECT_EQ(r.optimizers[1].on.kind, rt::ParameterSet::Kind::Rest);
  EXPECT_EQ(r.schedule.kind, rt::Schedule::Kind::Wsd);
  EXPECT_EQ(r.schedule.decay.steps(1000), 200);
  ASSERT_EQ(r.regions.size(), 3u);
  EXPECT_EQ(r.regions[2].marker, "<|answer|>");
  EXPECT_EQ(r.watch, (std::vector<std::string>{"sigmoid(gate)", "stable_rank(matrices)"}));

  ParameterGroups groups = parameterGroups(r, *read.model);
  EXPECT_EQ(groups.optimizer.at("block.3.attn.wq"), 0);
  EXPECT_EQ(groups.optimizer.at("block.3.attn.gamma_q"), 1);
  EXPECT_EQ(groups.optimizer.at("block.3.attn.gate"), 1);
  EXPECT_EQ(groups.optimizer.at("embed"), 1);
  EXPECT_EQ(groups.decayed.count("embed"), 0u); // kernels: matrices of the layers
  EXPECT_EQ(groups.decayed.count("block.19.attn.wo"), 1u);
}

// Catches: deciding by the number of axes alone. GPT-2's biases of q, k and v have two.
TEST(Recipe, BiasesOfTwoAxesAreNoMatrices) {
  Read read = readShipped("gpt2");
  ParameterGroups groups = parameterGroups(*read.recipe, *read.model);
  EXPECT_EQ(groups.decayed.count("block.0.attn.bq"), 0u);
  EXPECT_EQ(groups.decayed.count("block.0.attn.wq"), 1u);
  EXPECT_EQ(groups.decayed.count("place"), 1u);
}

TEST(Recipe, OverridesWin) {
  Read read = readShipped(
      "tiny", {{"steps", "7"}, {"data", "my file.txt"}, {"steps", "9"}, {"held_out", "last 10%"}});
  ASSERT_TRUE(read.recipe) << read.diagnostics.render(read.sources);
  EXPECT_EQ(read.recipe->steps, 9);
  EXPECT_EQ(read.recipe->data, std::vector<std::string>{"my file.txt"});
  EXPECT_DOUBLE_EQ(read.recipe->heldOut.fraction, 0.1);
  EXPECT_EQ(read.recipe->rows, 8);

  Read epochs = readShipped("tiny", {{"epochs", "2"}});
  ASSERT_TRUE(epochs.recipe) << epochs.diagnostics.render(epochs.sources);
  EXPECT_FALSE(epochs.recipe->steps);
  EXPECT_DOUBLE_EQ(*epochs.recipe->epochs, 2);
}

TEST(Recipe, BadOverridesAreErrorsWithoutAPlace) {
  for (const auto &[key, value, code] :
       {std::tuple("steps", "-3", "W0506"), std::tuple("steps", "many", "W0505"),
        std::tuple("bacth", "1 x 2", "W0504"), std::tuple("batch", "(", "W0514"),
        std::tuple("steps", "5\n}", "W0514")}) {
    Read read = readShipped("tiny", {{key, value}});
    EXPECT_FALSE(read.recipe) << key << "=" << value;
    EXPECT_TRUE(codes(read.diagnostics).contains(code)) << read.diagnostics.render(read.sources);
  }
}

TEST(Recipe, AllIndependentErrorsAreReported) {
  SourceFiles sources;
  Diagnostics diagnostics;
  ast::File file =
      parseText(WEFT_SOURCE_DIR "/models/x.weft",
                "use \"nano.weft\"\ntrain t for nano {\n  batch = 3 x 64 in 2\n  clip = -1\n  sed = 4\n"
                "  schedule = cosin(floor = 1%)\n}\n",
                sources, diagnostics);
  std::optional<Model> model = checkModel(file, sources, "nano", {}, diagnostics);
  EXPECT_FALSE(checkRecipe(file, sources, "t", *model, diagnostics));
  EXPECT_EQ(codes(diagnostics), (std::set<std::string>{"W0504", "W0506", "W0507", "W0509", "W0510"}))
      << diagnostics.render(sources);
}

TEST(Recipe, AddressesCoverWhatLiesUnderThem) {
  EXPECT_TRUE(addressCovers("block[..].attn", "block.3.attn.wq"));
  EXPECT_TRUE(addressCovers("block[0..3]", "block.3.attn.wq"));
  EXPECT_FALSE(addressCovers("block[0..2]", "block.3.attn.wq"));
  EXPECT_TRUE(addressCovers("block[0, 3]", "block.3.attn.wq"));
  EXPECT_TRUE(addressCovers("block[2..].attn.wq", "block.3.attn.wq"));
  EXPECT_FALSE(addressCovers("block[..2]", "block.3.attn.wq"));
  EXPECT_FALSE(addressCovers("block[..].att", "block.3.attn.wq"));
  EXPECT_FALSE(addressCovers("embed", "embedding"));
  EXPECT_FALSE(addressCovers("embed.x", "embed"));
}

} // namespace
} // namespace weft::lang

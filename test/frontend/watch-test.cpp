// What `watch` looks at, and which axes of a matrix are its rows.
#include "frontend/Watch.h"

#include "frontend/Parser.h"
#include "frontend/Recipe.h"

#include <gtest/gtest.h>

namespace weft::lang {
namespace {

struct Shipped {
  SourceFiles sources;
  Diagnostics diagnostics;
  ast::File file;
  std::optional<Model> model;
};

Shipped readShipped(const std::string &name, const Overrides &overrides = {}) {
  Shipped read;
  read.file = parseFile(WEFT_SOURCE_DIR "/models/" + name + ".weft", read.sources, read.diagnostics);
  read.model = checkModel(read.file, read.sources, name, overrides, read.diagnostics);
  EXPECT_TRUE(read.model) << read.diagnostics.render(read.sources);
  return read;
}

// wq and wo must not be cut at the same axis: both cut after the first gives wo [heads, head x dim].
TEST(Watch, RowsAreTheAxesThatAProductSums) {
  std::map<std::string, int64_t> rows = matrixRowAxes(*readShipped("san", {{"hidden", "64"}}).model);
  EXPECT_EQ(rows.at("block.3.attn.wq"), 1);
  EXPECT_EQ(rows.at("block.3.attn.wv"), 1);
  EXPECT_EQ(rows.at("block.3.attn.wo"), 3);
  EXPECT_EQ(rows.at("block.19.ffn.down"), 1);
  EXPECT_EQ(rows.at("embed"), 1); // read as [vocab, dim], its last axis summed
  EXPECT_EQ(matrixRowAxes(*readShipped("gpt2").model).at("block.0.attn.wo"), 2);
}

TEST(Watch, NamesSetsAndAddresses) {
  Shipped read = readShipped("san", {{"depth", "3"}, {"hidden", "64"}});
  rt::Recipe recipe;
  recipe.watch = {"sigmoid(gate)", "stable_rank(matrices)", "norm(kernels)", "mean(block[1..2].ffn)",
                  "norm(all)",     "stable_rank(gate)"};
  std::vector<WatchItem> items = watchItems(recipe, *read.model);
  ASSERT_EQ(items.size(), 6u);
  EXPECT_EQ(items[0].function, "sigmoid");
  EXPECT_EQ(items[0].paths,
            (std::vector<std::string>{"block.0.attn.gate", "block.0.ffn.gate", "block.1.attn.gate",
                                      "block.1.ffn.gate", "block.2.attn.gate", "block.2.ffn.gate"}));
  EXPECT_EQ(items[1].paths.size(), 1u + 3 * 7);
  EXPECT_EQ(items[2].paths.size(), 3u * 7);
  EXPECT_EQ(items[3].paths.size(), 2u * 5);
  EXPECT_EQ(items[4].paths.size(), parametersOf(*read.model).size());
  EXPECT_TRUE(items[5].paths.empty());
}

} // namespace
} // namespace weft::lang

// The reference of the language: its examples are models, plans, recipes and tables that check.
#include "test/frontend/error-pages.h"

#include <gtest/gtest.h>

namespace weft::lang {
namespace {

TEST(Docs, ExamplesOfTheReferenceCheck) {
  std::vector<Example> examples = examplesOf(slurp(WEFT_SOURCE_DIR "/docs/language.md"));
  EXPECT_GE(examples.size(), 4u);
  for (const Example &example : examples) {
    std::string rendered;
    EXPECT_TRUE(codesOf(example, &rendered).empty()) << example.text << rendered;
  }
}

// Catches: a key that the checker takes and the reference does not explain.
TEST(Docs, TheReferenceNamesEveryRecipeKey) {
  std::string text = slurp(WEFT_SOURCE_DIR "/docs/language.md");
  for (const std::string &key : recipeKeys())
    EXPECT_NE(text.find("`" + key + "`"), std::string::npos) << key;
}

} // namespace
} // namespace weft::lang

// Every code has a page, every page a code, and the examples do what they say.
#include "frontend/Explain.h"
#include "test/frontend/error-pages.h"

#include <gtest/gtest.h>

namespace weft::lang {
namespace {

const std::vector<std::string> kCodes = {
#define WEFT_CODE(code, title) #code,
#include "frontend/Codes.def"
#undef WEFT_CODE
};

// Codes whose cause cannot be printed on a page, or is no text.
const std::set<std::string> kWithoutWrongExample = {"W0002", "W0005", "W0104", "W0215"};

TEST(Explain, EveryCodeHasAPageAndEveryPageACode) {
  std::vector<std::string> codes = kCodes;
  std::sort(codes.begin(), codes.end());
  EXPECT_EQ(explainedCodes(), codes);
}

TEST(Explain, PagesStartWithTheirTitle) {
  for (const std::string &code : kCodes) {
    std::optional<std::string> page = explain(code);
    ASSERT_TRUE(page) << code;
    std::string title = "# " + code + ": " + std::string(codeTitle(*codeNamed(code))) + "\n";
    EXPECT_EQ(page->substr(0, title.size()), title);
  }
}

TEST(Explain, ForgivesCaseAndTheLetter) {
  EXPECT_EQ(explain("w0301"), explain("W0301"));
  EXPECT_EQ(explain("0301"), explain("W0301"));
  EXPECT_FALSE(explain("W9999"));
  EXPECT_FALSE(explain(""));
}

TEST(Explain, WrongExamplesGiveTheirCode) {
  for (const std::string &code : kCodes) {
    int wrong = 0;
    for (const Example &example : examplesOf(explain(code).value_or(""))) {
      if (!example.has("wrong"))
        continue;
      ++wrong;
      std::string rendered;
      EXPECT_TRUE(codesOf(example, &rendered).contains(code)) << code << " gives\n" << rendered;
    }
    EXPECT_EQ(wrong == 0, kWithoutWrongExample.contains(code)) << code;
  }
}

TEST(Explain, RightExamplesGiveNothing) {
  for (const std::string &code : kCodes) {
    int right = 0;
    for (const Example &example : examplesOf(explain(code).value_or(""))) {
      if (!example.has("right"))
        continue;
      ++right;
      std::string rendered;
      EXPECT_TRUE(codesOf(example, &rendered).empty()) << code << " gives\n" << rendered;
    }
    EXPECT_GE(right, 1) << code;
  }
}

} // namespace
} // namespace weft::lang

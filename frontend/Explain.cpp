#include "frontend/Explain.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace weft::lang {
namespace {

struct Page {
  std::string_view code, text;
};

// Written at configuration time from docs/errors/*.md, sorted by code.
constexpr auto kPages = std::to_array<Page>({
#include "frontend/ErrorPages.inc"
});

} // namespace

std::optional<std::string> explain(std::string_view code) {
  std::string name;
  for (char c : code)
    name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (!name.empty() && name[0] != 'W')
    name.insert(name.begin(), 'W');
  for (const Page &page : kPages)
    if (page.code == name)
      return std::string(page.text);
  return std::nullopt;
}

std::vector<std::string> explainedCodes() {
  std::vector<std::string> codes;
  for (const Page &page : kPages)
    codes.emplace_back(page.code);
  return codes;
}

} // namespace weft::lang

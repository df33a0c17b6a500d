//===- Page.cpp - A document as an HTML page --------------------------------===//

#include "tools/weft/inspect/Document.h"

#include "llvm/Support/Base64.h"
#include "llvm/Support/SHA256.h"

#include <string_view>

using namespace weft;

namespace {

/// kPage, kStyle and kScript: page.html, page.css and the .js files.
#include "tools/weft/inspect/Page.inc"

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text)
    result += c == '<'   ? "&lt;"
              : c == '>' ? "&gt;"
              : c == '&' ? "&amp;"
              : c == '"' ? "&quot;"
                         : std::string(1, c);
  return result;
}

/// JSON that can't end its block or begin a comment or another script: `<` stays only
/// before a digit, as in tensor<12x64xf32, where no tag and no comment can begin.
std::string inScript(const std::string &json) {
  std::string result;
  result.reserve(json.size() + json.size() / 8);
  for (size_t i = 0; i < json.size(); ++i) {
    const bool digit = i + 1 < json.size() && json[i + 1] >= '0' && json[i + 1] <= '9';
    if (json[i] == '<' && !digit)
      result += "\\u003c";
    else
      result += json[i];
  }
  return result;
}

std::string hashOf(std::string_view text) {
  llvm::SHA256 hash;
  hash.update(llvm::StringRef(text.data(), text.size()));
  return llvm::encodeBase64(hash.final());
}

} // namespace

std::string weft::inspect::pageOf(const rt::OrderedJson &document, const std::string &title) {
  const std::pair<std::string_view, std::string> fields[] = {{"TITLE", escaped(title)},
                                                             {"STYLE", kStyle},
                                                             {"SCRIPT", kScript},
                                                             {"STYLE_HASH", hashOf(kStyle)},
                                                             {"SCRIPT_HASH", hashOf(kScript)},
                                                             {"DOCUMENT", inScript(rt::dumpJson(document))}};
  std::string page;
  std::string_view rest = kPage;
  // In one pass: what is put in is not looked at again.
  for (size_t at; (at = rest.find("{{")) != std::string_view::npos;) {
    const size_t end = rest.find("}}", at);
    page += rest.substr(0, at);
    for (const auto &[name, text] : fields)
      if (rest.substr(at + 2, end - at - 2) == name)
        page += text;
    rest.remove_prefix(end + 2);
  }
  page += rest;
  return page;
}

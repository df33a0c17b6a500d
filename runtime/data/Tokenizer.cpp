//===- Tokenizer.cpp - Text to ids and back -------------------------------===//
#include "runtime/data/Tokenizer.h"

#include "runtime/core/File.h"
#include "runtime/data/BytePair.h"
#include "runtime/data/DataFolder.h"
#include "runtime/data/Markers.h"

#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

class BytesTokenizer : public Tokenizer {
public:
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    for (char c : text)
      ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids)
      if (id >= 0 && id < 256)
        text += static_cast<char>(id);
      else
        text += "\xEF\xBF\xBD";
    return text;
  }
  int64_t vocabulary() const override { return 256; }
  std::optional<int32_t> separator() const override { return std::nullopt; }
};

constexpr int64_t kGpt2Vocabulary = 50257;

absl::StatusOr<std::shared_ptr<const Tokenizer>> makeGpt2(int64_t cut) {
  if (cut < 257 || cut > kGpt2Vocabulary)
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer gpt2(", cut,
                     ") does not exist: expected a number of ids between 257 (the bytes "
                     "and the separator) and ",
                     kGpt2Vocabulary));
  absl::StatusOr<std::string> ranks = readDataFile("gpt2/r50k_base.tiktoken", "gpt2");
  if (!ranks.ok())
    return ranks.status();
  return makeBytePairTokenizer(*ranks, "gpt2/r50k_base.tiktoken", cut);
}

} // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> makeTokenizer(const std::string &name, int64_t cut) {
  if (name == "bytes")
    return std::make_shared<const BytesTokenizer>();
  if (name == "gpt2")
    return makeGpt2(cut == 0 ? kGpt2Vocabulary : cut);
  if (name.starts_with("gpt2(") && name.ends_with(")")) {
    if (!absl::SimpleAtoi(name.substr(5, name.size() - 6), &cut))
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer ", name, ": expected a number of ids in parentheses, as in gpt2(16384)"));
    return makeGpt2(cut);
  }
  if (std::error_code error; !std::filesystem::exists(name, error))
    return absl::InvalidArgumentError(
        absl::StrCat("no tokenizer or file `", name, "`: expected bytes, gpt2, gpt2(N) or a file of ranks"));
  absl::StatusOr<std::string> ranks = readFile(name);
  if (!ranks.ok())
    return ranks.status();
  std::string_view text = *ranks;
  absl::StatusOr<std::vector<std::string>> markers = takeMarkers(text, name);
  if (!markers.ok())
    return markers.status();
  absl::StatusOr<std::shared_ptr<const Tokenizer>> base = makeBytePairTokenizer(text, name, cut);
  return base.ok() ? withMarkers(*std::move(base), *std::move(markers)) : base;
}

absl::StatusOr<std::vector<int32_t>> encodePrompt(const Tokenizer &tokenizer, std::string_view text) {
  if (!text.empty())
    return tokenizer.encode(text);
  if (tokenizer.separator())
    return std::vector<int32_t>{*tokenizer.separator()};
  return absl::InvalidArgumentError(
      "the prompt is empty and this tokenizer has no separator to begin with: give at least one character");
}

} // namespace weft::rt

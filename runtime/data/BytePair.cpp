//===- BytePair.cpp - Byte-pair encoding by rank --------------------------===//
#include "runtime/data/BytePair.h"

#include "runtime/data/PreSplit.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr int32_t kNone = -1;

class BytePairTokenizer : public Tokenizer {
public:
  BytePairTokenizer(std::vector<std::string> texts, PreSplit split)
      : texts(std::move(texts)), split(std::move(split)) {
    for (size_t id = 0; id < this->texts.size(); ++id) {
      ids.emplace(this->texts[id], static_cast<int32_t>(id));
      longest = std::max(longest, this->texts[id].size());
    }
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> result;
    split.run(text, [&](std::string_view piece) {
      if (int32_t whole = idOf(piece); whole != kNone)
        result.push_back(whole);
      else
        merge(piece, result);
    });
    return result;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (int32_t id : tokens)
      if (id >= 0 && id < *separator())
        text += texts[id];
      else
        text += id == *separator() ? "<|endoftext|>" : "\xEF\xBF\xBD";
    return text;
  }

  int64_t vocabulary() const override { return static_cast<int64_t>(texts.size()) + 1; }
  std::optional<int32_t> separator() const override { return static_cast<int32_t>(texts.size()); }

private:
  int32_t idOf(std::string_view bytes) const {
    if (bytes.size() > longest)
      return kNone;
    auto found = ids.find(bytes);
    return found == ids.end() ? kNone : found->second;
  }
  void merge(std::string_view piece, std::vector<int32_t> &result) const;

  std::vector<std::string> texts;                    // by id
  std::unordered_map<std::string_view, int32_t> ids; // views of `texts`
  PreSplit split;
  size_t longest = 0;
};

/// Parts form a linked list over the bytes where they begin. The queue holds
/// candidate merges; one whose two parts have changed since is skipped.
void BytePairTokenizer::merge(std::string_view piece, std::vector<int32_t> &result) const {
  struct Part {
    size_t end, previous;
    int32_t id;
  };
  struct Candidate {
    int32_t id;
    size_t left, end; // parts [left, ...) and (..., end) joined
    bool operator>(const Candidate &other) const {
      return id != other.id ? id > other.id : left > other.left;
    }
  };
  size_t size = piece.size();
  std::vector<Part> parts(size);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  auto offer = [&](size_t left) {
    size_t right = parts[left].end;
    if (right == size)
      return;
    size_t end = parts[right].end;
    if (int32_t id = idOf(piece.substr(left, end - left)); id != kNone)
      queue.push({id, left, end});
  };
  for (size_t i = 0; i < size; ++i)
    parts[i] = {i + 1, i - 1, idOf(piece.substr(i, 1))};
  for (size_t i = 0; i < size; ++i)
    offer(i);
  while (!queue.empty()) {
    Candidate best = queue.top();
    queue.pop();
    Part &left = parts[best.left];
    // Stale: the left part was swallowed (end 0) or one of the two has grown.
    if (left.end == 0 || left.end == size || parts[left.end].end != best.end)
      continue;
    size_t right = left.end;
    parts[right].end = 0;
    left.end = best.end;
    left.id = best.id;
    if (best.end < size)
      parts[best.end].previous = best.left;
    offer(best.left);
    if (best.left > 0)
      offer(left.previous);
  }
  for (size_t i = 0; i < size; i = parts[i].end)
    result.push_back(parts[i].id);
}

absl::Status lineError(const std::string &path, size_t line, const std::string &what) {
  return absl::DataLossError(absl::StrCat(path, ": line ", line, ": ", what,
                                          "; fetch the file again (tools/get-text gpt2 for GPT-2's)"));
}

absl::StatusOr<std::vector<std::string>> parseRanks(std::string_view text, const std::string &path) {
  std::vector<std::string> texts;
  size_t line = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = text.substr(at, end - at);
    at = end + 1;
    ++line;
    size_t space = row.find(' ');
    std::string bytes;
    int64_t id = -1;
    if (space == std::string_view::npos ||
        !absl::Base64Unescape(absl::string_view(row.data(), space), &bytes) || bytes.empty() ||
        !absl::SimpleAtoi(absl::string_view(row.data() + space + 1, row.size() - space - 1), &id))
      return lineError(path, line, "expected BASE64 ID");
    if (id != static_cast<int64_t>(texts.size()))
      return lineError(path, line, absl::StrCat("expected id ", texts.size(), ", found ", id));
    texts.push_back(std::move(bytes));
  }
  return texts;
}

} // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> makeBytePairTokenizer(std::string_view ranks,
                                                                       const std::string &path, int64_t cut) {
  absl::StatusOr<std::vector<std::string>> texts = parseRanks(ranks, path);
  if (!texts.ok())
    return texts.status();
  int64_t count = static_cast<int64_t>(texts->size());
  int64_t kept = cut == 0 ? count : cut - 1;
  if (kept < 256 || kept > count)
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected between 257 and ", count + 1,
                                                   " ids with the separator, found ", kept + 1));
  texts->resize(kept);
  bool byte[256] = {};
  for (const std::string &text : *texts)
    if (text.size() == 1)
      byte[static_cast<unsigned char>(text[0])] = true;
  if (const bool *missing = std::find(byte, byte + 256, false); missing != byte + 256)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": byte ", missing - byte, " has no id among the first ", kept, ": every byte needs one"));
  absl::StatusOr<PreSplit> split = PreSplit::make();
  if (!split.ok())
    return split.status();
  return std::make_shared<const BytePairTokenizer>(*std::move(texts), *std::move(split));
}

} // namespace weft::rt

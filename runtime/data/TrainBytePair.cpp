//===- TrainBytePair.cpp - A byte-pair tokenizer of your own text ---------===//
#include "runtime/data/TrainBytePair.h"

#include "runtime/data/Markers.h"

#include "runtime/data/PreSplit.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

/// A distinct piece, where its parts begin (its size last), how often it occurs.
struct Word {
  std::string text;
  std::vector<uint32_t> bounds;
  int64_t count = 0;
};

/// The joinings of neighbours are counted by their bytes, as the encoder finds
/// them, whatever two parts they come from.
class Trainer {
public:
  explicit Trainer(const std::map<std::string, int64_t> &pieces) {
    for (const auto &[text, count] : pieces) {
      Word word{text, {}, count};
      for (uint32_t i = 0; i <= text.size(); ++i)
        word.bounds.push_back(i);
      words.push_back(std::move(word));
    }
    for (size_t i = 0; i < words.size(); ++i)
      addJoinings(i, 1);
    offerChanged();
  }

  /// Makes the most frequent joining one part everywhere; empty when none
  /// occurs twice.
  std::string next() {
    while (!queue.empty()) {
      auto [count, bytes] = queue.top();
      queue.pop();
      auto found = joinings.find(bytes);
      if (found == joinings.end() || found->second.count != count)
        continue; // a newer entry stands in the queue
      std::vector<uint32_t> touched = std::move(found->second.words);
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      changed.clear();
      for (uint32_t word : touched)
        join(word, bytes);
      joinings.erase(bytes);
      offerChanged();
      return bytes;
    }
    return {};
  }

private:
  struct Joining {
    int64_t count = 0;
    std::vector<uint32_t> words; // that hold it, or held it
  };
  using Entry = std::pair<int64_t, std::string>;
  struct Later {
    bool operator()(const Entry &a, const Entry &b) const {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    }
  };

  /// Adds (sign 1) or takes away (-1) the joinings of one word.
  void addJoinings(uint32_t index, int sign) {
    const Word &word = words[index];
    for (size_t i = 0; i + 2 < word.bounds.size(); ++i) {
      std::string bytes = word.text.substr(word.bounds[i], word.bounds[i + 2] - word.bounds[i]);
      Joining &joining = joinings[bytes];
      joining.count += sign * word.count;
      if (sign > 0)
        joining.words.push_back(index);
      changed.push_back(std::move(bytes));
    }
  }

  void join(uint32_t index, const std::string &bytes) {
    addJoinings(index, -1);
    Word &word = words[index];
    std::vector<uint32_t> kept;
    for (size_t i = 0; i < word.bounds.size(); ++i) {
      kept.push_back(word.bounds[i]);
      bool joins = i + 2 < word.bounds.size() && word.bounds[i + 2] - word.bounds[i] == bytes.size() &&
                   word.text.compare(word.bounds[i], bytes.size(), bytes) == 0;
      if (joins)
        ++i; // the bound between the two goes
    }
    word.bounds = std::move(kept);
    addJoinings(index, 1);
  }

  void offerChanged() {
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (std::string &bytes : changed) {
      auto found = joinings.find(bytes);
      if (found == joinings.end())
        continue;
      if (found->second.count == 0)
        joinings.erase(found);
      else if (found->second.count > 1)
        queue.push({found->second.count, std::move(bytes)});
    }
    changed.clear();
  }

  std::vector<Word> words;
  std::unordered_map<std::string, Joining> joinings;
  std::priority_queue<Entry, std::vector<Entry>, Later> queue;
  std::vector<std::string> changed;
};

} // namespace

absl::StatusOr<std::string> trainBytePairs(std::span<const std::string> texts, int64_t ids,
                                           const std::vector<std::string> &markers) {
  const int64_t learned = ids - static_cast<int64_t>(markers.size()) - 1; // bytes and joinings
  if (learned < 256)
    return absl::InvalidArgumentError(absl::StrCat("a tokenizer of ", ids, " ids: expected at least ",
                                                   257 + markers.size(),
                                                   ", the bytes, the markers and the separator"));
  absl::StatusOr<PreSplit> split = PreSplit::make();
  if (!split.ok())
    return split.status();
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string &text : texts)
    splitAtMarkers(
        text, markers,
        [&](std::string_view part) {
          split->run(part, [&](std::string_view piece) { ++counts[std::string(piece)]; });
        },
        [](size_t) {});
  Trainer trainer(std::map<std::string, int64_t>(counts.begin(), counts.end()));
  std::string ranks;
  auto add = [&](const std::string &bytes, int64_t id) {
    absl::StrAppend(&ranks, absl::Base64Escape(bytes), " ", id, "\n");
  };
  for (int byte = 0; byte < 256; ++byte)
    add(std::string(1, static_cast<char>(byte)), byte);
  for (int64_t id = 256; id < learned; ++id) {
    std::string bytes = trainer.next();
    if (bytes.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("expected text for ", ids, " ids, found enough for ", id + ids - learned,
                       ": no two neighbours occur twice any more; use more text or "
                       "fewer ids"));
    add(bytes, id);
  }
  for (const std::string &marker : markers)
    absl::StrAppend(&ranks, "marker ", absl::Base64Escape(marker), "\n");
  return ranks;
}

} // namespace weft::rt

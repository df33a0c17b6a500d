//===- Mqar.cpp - Associative recall of key-value pairs --------------------===//
#include "runtime/data/Mqar.h"

#include "runtime/core/Philox.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr std::string_view kName = "builtin:mqar";

absl::Status setOption(MqarOptions &options, std::string_view key, std::string_view value) {
  const std::string text(value);
  int64_t *number = key == "pairs"    ? &options.pairs
                    : key == "vocab"  ? &options.vocabulary
                    : key == "rows"   ? &options.rows
                    : key == "passes" ? &options.passes
                                      : nullptr;
  bool fits = false;
  if (number)
    fits = absl::SimpleAtoi(text, number) && *number > 0;
  else if (key == "seed")
    fits = absl::SimpleAtoi(text, &options.seed);
  else if (key == "a")
    fits = absl::SimpleAtod(text, &options.a) && std::isfinite(options.a);
  else if (key == "filler") {
    fits = text == "on" || text == "off";
    options.filler = text == "on";
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(kName), "\": there is no option `", std::string(key),
                     "`; there are pairs, vocab, rows, passes, a, filler, seed"));
  }
  if (fits)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", std::string(kName), "\": ", std::string(key), " = ",
                                                 text, " has no meaning; expected ",
                                                 key == "filler" ? "on or off"
                                                 : key == "a"    ? "a number"
                                                                 : "a whole number above 0"));
}

/// `count` distinct numbers of [0, size), uniform, in the order drawn: the head
/// of a shuffle. `next` counts the random numbers used.
std::vector<int64_t> distinct(const Philox &philox, uint64_t &next, int64_t size, int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  for (int64_t i = 0; i < count; ++i) {
    auto skip = static_cast<int64_t>(philox.uniform(next++) * static_cast<double>(size - i));
    std::swap(all[static_cast<size_t>(i)], all[static_cast<size_t>(i + skip)]);
  }
  all.resize(static_cast<size_t>(count));
  return all;
}

/// `count` distinct slots of [0, size), one after another with weights
/// (g+1)^(a-1): the largest of (a-1) log(g+1) + Gumbel noise, in that order.
std::vector<int64_t> weighted(const Philox &philox, uint64_t &next, int64_t size, int64_t count, double a) {
  std::vector<std::pair<double, int64_t>> scores;
  for (int64_t g = 0; g < size; ++g) {
    double u = philox.uniform(next++) + 0x1p-54; // in (0, 1)
    scores.emplace_back((a - 1) * std::log(static_cast<double>(g + 1)) - std::log(-std::log(u)), g);
  }
  std::partial_sort(scores.begin(), scores.begin() + count, scores.end(),
                    [](const auto &x, const auto &y) { return x.first > y.first; });
  std::vector<int64_t> slots;
  for (int64_t i = 0; i < count; ++i)
    slots.push_back(scores[static_cast<size_t>(i)].second);
  return slots;
}

constexpr int64_t kMostIds = 1 << 24; // a row draws from a list of half of them

} // namespace

absl::StatusOr<std::optional<MqarOptions>> parseMqar(std::string_view source, MqarOptions given) {
  if (source != kName && !source.starts_with(std::string(kName) + "/"))
    return std::optional<MqarOptions>();
  std::string_view rest = source.substr(std::min(source.size(), kName.size() + 1));
  while (!rest.empty()) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", std::string(source), "\": expected key=value after the /, found `", std::string(item), "`"));
    if (absl::Status status = setOption(given, item.substr(0, equals), item.substr(equals + 1)); !status.ok())
      return status;
  }
  return std::optional<MqarOptions>(given);
}

absl::StatusOr<Mqar> Mqar::make(const MqarOptions &options) {
  const auto refuse = [&](auto... why) {
    return absl::InvalidArgumentError(absl::StrCat("mqar with ", options.pairs, " pairs in ", options.length,
                                                   " positions of a vocabulary of ", options.vocabulary, ": ",
                                                   why...));
  };
  if (options.pairs < 1 || options.passes < 1)
    return refuse("expected at least one pair and one pass");
  if (options.vocabulary > kMostIds)
    return refuse("expected at most ", kMostIds, " ids");
  if (options.length % 2 != 0)
    return refuse("expected an even number of positions");
  if (options.vocabulary <= options.length)
    return refuse("expected more ids than positions");
  if (options.pairs > options.length || options.passes > options.length)
    return refuse("the pairs and a place for each query need more positions");
  if (int64_t needed = 2 * options.pairs * (options.passes + 1); needed > options.length)
    return refuse("the pairs and a place for each query need ", needed, " positions");
  if (options.pairs > options.vocabulary / 2 - 1)
    return refuse("only ", options.vocabulary / 2 - 1, " ids are keys");
  return Mqar(options);
}

void Mqar::layOut(std::span<const int32_t> keys, std::span<const int32_t> values,
                  std::span<const int64_t> slots, std::span<int32_t> inputs,
                  std::span<int32_t> targets) const {
  std::ranges::fill(inputs, 0);
  std::ranges::fill(targets, -1);
  const size_t pairs = keys.size(), context = 2 * pairs * static_cast<size_t>(choices.passes);
  for (size_t i = 0; i < context / 2; ++i) {
    inputs[2 * i] = keys[i % pairs];
    inputs[2 * i + 1] = values[i % pairs];
  }
  for (size_t i = 0; i < pairs; ++i) {
    size_t place = context + 2 * static_cast<size_t>(slots[i]);
    inputs[place] = keys[i];
    targets[place] = values[i];
  }
}

void Mqar::row(int64_t index, std::span<int32_t> inputs, std::span<int32_t> targets) const {
  // A row has 2^20 numbers of its stream to itself, far more than it draws.
  const Philox philox(choices.seed, choices.test ? "mqar/test" : "mqar/train");
  uint64_t next = static_cast<uint64_t>(index) << 20;
  const int64_t half = choices.vocabulary / 2;
  std::vector<int32_t> keys, values;
  for (int64_t key : distinct(philox, next, half - 1, choices.pairs))
    keys.push_back(static_cast<int32_t>(key + 1));
  for (int64_t value : distinct(philox, next, choices.vocabulary - half, choices.pairs))
    values.push_back(static_cast<int32_t>(value + half));
  layOut(keys, values, weighted(philox, next, slots(), choices.pairs, choices.a), inputs, targets);
  if (!choices.filler)
    return;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] == 0)
      inputs[i] = static_cast<int32_t>(philox.uniform(next++) * static_cast<double>(choices.vocabulary));
}

} // namespace weft::rt

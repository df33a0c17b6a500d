//===- CalibrationSplit.cpp - Rows that are never trained on --------------===//
#include "runtime/data/CalibrationSplit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr double kShare = 0.005;
constexpr size_t kManyDocuments = 200; // 0.5% of them is one

/// The start of the last `tokens`, moved back to the start of a document.
int64_t cutOf(const TokenStream &stream, int64_t tokens) {
  const int64_t cut = stream.size() - tokens;
  if (stream.documents().size() < kManyDocuments)
    return cut;
  auto after = std::upper_bound(stream.documents().begin(), stream.documents().end(), cut,
                                [](int64_t place, const auto &document) { return place < document.begin; });
  return after == stream.documents().begin() ? cut : std::prev(after)->begin;
}

struct Cut {
  std::shared_ptr<const TokenStream> left, end;
  std::shared_ptr<const EvalData> rows; // of the end, one a batch
};

absl::StatusOr<Cut> cutRows(const TokenStream &stream, const Recipe &recipe, int64_t wanted) {
  Recipe all = recipe;
  all.evalRows = 0;
  int64_t found = 0;
  // Ends of documents cost rows their last token: more text is then needed.
  for (int64_t tokens = std::max<int64_t>(static_cast<int64_t>(kShare * static_cast<double>(stream.size())),
                                          wanted * recipe.positions + 1);
       tokens <= stream.size() / 2; tokens += std::max<int64_t>(recipe.positions, tokens / 4)) {
    const int64_t cut = cutOf(stream, tokens);
    if (cut < stream.size() / 2)
      break;
    auto end = std::make_shared<const TokenStream>(stream.slice(cut, stream.size()));
    absl::StatusOr<EvalData> rows = EvalData::make(end, all, 1);
    if (!rows.ok())
      return rows.status();
    found = rows->batches();
    if (found >= wanted)
      return Cut{std::make_shared<const TokenStream>(stream.slice(0, cut)), end,
                 std::make_shared<const EvalData>(*std::move(rows))};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "calibration needs ", wanted, " rows of ", recipe.positions,
      " tokens that are never trained on, from at most ", "half of the training text, which has ",
      stream.size(), " tokens: found ", std::max(found, (stream.size() / 2 - 1) / recipe.positions),
      " rows; add text or shorten the rows"));
}

} // namespace

absl::StatusOr<CalibrationSplit> splitCalibration(const std::shared_ptr<const TokenStream> &train,
                                                  const Recipe &recipe, int64_t wanted, bool budget) {
  absl::StatusOr<Cut> rows = cutRows(*train, recipe, wanted);
  if (!rows.ok())
    return rows.status();
  CalibrationSplit split{rows->left, rows->rows, nullptr};
  if (budget) {
    absl::StatusOr<Cut> second = cutRows(*split.train, recipe, wanted);
    if (!second.ok())
      return second.status();
    split.train = second->left;
    Recipe all = recipe;
    all.evalRows = 0;
    absl::StatusOr<EvalData> batches = EvalData::make(second->end, all);
    if (!batches.ok())
      return batches.status();
    split.budget = std::make_shared<const EvalData>(*std::move(batches));
  }
  return split;
}

} // namespace weft::rt

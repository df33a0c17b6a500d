//===- Packing.cpp - Which tokens stand in which row ----------------------===//
#include "runtime/data/Packing.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::rt {

int64_t Packing::inputs(int64_t rows) const {
  int64_t end = rows == 0 ? 0 : ends[rows - 1];
  return std::accumulate(pieces.begin(), pieces.begin() + end, int64_t{0},
                         [](int64_t sum, const Piece &piece) { return sum + piece.length; });
}

void Packing::add(Piece piece, bool opensRow) {
  pieces.push_back(piece);
  if (opensRow)
    ends.push_back(0);
  ends.back() = static_cast<int64_t>(pieces.size());
}

void Packing::dropLastRow() {
  ends.pop_back();
  pieces.resize(ends.empty() ? 0 : ends.back());
}

namespace {

/// The inputs of each document: all tokens but the last, which is a target
/// only, unless the recipe counts the target across the document's end.
std::vector<Piece> inputsOf(const TokenStream &stream, const Recipe &recipe, bool training,
                            int64_t &dropped) {
  if (!recipe.documentsApart)
    return {{0, std::max<int64_t>(stream.size() - 1, 0)}};
  std::vector<Piece> result;
  for (const TokenStream::Document &doc : stream.documents()) {
    bool counts = recipe.boundaryCount && doc.begin + doc.length < stream.size();
    int64_t length = counts ? doc.length : doc.length - 1;
    bool drop = training && recipe.longDrop && length > recipe.positions;
    dropped += drop ? length : 0;
    if (length > 0 && !drop)
      result.push_back({doc.begin, length});
  }
  return result;
}

Packing packSplit(const std::vector<Piece> &documents, int64_t positions) {
  Packing packing(positions);
  int64_t space = 0;
  for (Piece rest : documents)
    while (rest.length > 0) {
      bool opensRow = space == 0;
      if (opensRow)
        space = positions;
      int64_t length = std::min(space, rest.length);
      packing.add({rest.begin, length}, opensRow);
      rest = {rest.begin + length, rest.length - length};
      space -= length;
    }
  return packing;
}

/// Best fit, longest first: each piece goes where it leaves least space.
Packing packWhole(const std::vector<Piece> &documents, int64_t positions) {
  std::vector<Piece> items;
  for (Piece rest : documents)
    for (; rest.length > 0;) {
      int64_t length = std::min(positions, rest.length);
      items.push_back({rest.begin, length});
      rest = {rest.begin + length, rest.length - length};
    }
  std::stable_sort(items.begin(), items.end(),
                   [](const Piece &a, const Piece &b) { return a.length > b.length; });
  std::map<int64_t, std::vector<int64_t>> open;    // space left to rows
  std::vector<std::pair<int64_t, int64_t>> places; // row, item
  int64_t rows = 0;
  for (size_t item = 0; item < items.size(); ++item) {
    auto fit = open.lower_bound(items[item].length);
    int64_t row = rows, space = positions;
    if (fit == open.end()) {
      ++rows;
    } else {
      space = fit->first;
      row = fit->second.back();
      fit->second.pop_back();
      if (fit->second.empty())
        open.erase(fit);
    }
    places.emplace_back(row, item);
    if (space > items[item].length)
      open[space - items[item].length].push_back(row);
  }
  std::sort(places.begin(), places.end());
  Packing packing(positions);
  for (auto [row, item] : places)
    packing.add(items[item], row == packing.rows());
  return packing;
}

} // namespace

Packing pack(const TokenStream &stream, const Recipe &recipe, bool training) {
  int64_t dropped = 0;
  std::vector<Piece> documents = inputsOf(stream, recipe, training, dropped);
  bool whole = recipe.documentsApart && recipe.packWhole;
  Packing packing = whole ? packWhole(documents, recipe.positions) : packSplit(documents, recipe.positions);
  packing.drop(dropped);
  if (whole)
    return packing;
  int64_t rows = packing.rows();
  bool shortLast = rows > 0 && packing.inputs(rows) % recipe.positions != 0;
  if (training && !recipe.documentsApart && shortLast)
    packing.dropLastRow();
  return packing;
}

} // namespace weft::rt

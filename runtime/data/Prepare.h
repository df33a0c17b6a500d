//===- Prepare.h - Text to token files, and a look at sources ---*- C++ -*-===//
//
// What `weft data prepare` and `weft data show` do.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::rt {

struct PrepareOptions {
  std::vector<std::string> sources; // as in a recipe's `data`
  std::string folder;               // where relative sources start; "": the working folder
  std::string tokenizer = "gpt2";
  std::string out; // "shards/train": shards/train-000000.bin, ...
  int64_t shardTokens = 100'000'000;
};

struct Prepared {
  std::vector<std::string> files;
  int64_t documents = 0, tokens = 0, vocabulary = 0;
};

/// Writes the tokens of the sources as shards of at most `shardTokens` each. A
/// document goes to the next shard when it doesn't fit, and is cut only when
/// longer than a shard. A tokenizer without a separator can't mark documents
/// inside a file, so then each document has files of its own. Shards that an
/// earlier call left under the following numbers are removed.
/// Memory    all tokens, 4 bytes each
/// Errors    InvalidArgument for shardTokens < 1, no output name, no tokens, more
///           than a million shards; those of expandSources, readTokens, writeShard
absl::StatusOr<Prepared> prepareData(const PrepareOptions &options);

struct DataSummary {
  std::vector<std::string> sources; // expanded
  int64_t documents = 0, tokens = 0, vocabulary = 0;
  int64_t shortest = 0, longest = 0; // tokens of a document
  int64_t highest = 0;               // largest id that occurs
  int64_t distinct = 0;              // ids that occur
  std::string head;                  // text of the first tokens of the chosen document
};

/// Reads the sources as a recipe would and counts. `document` (from 0) is the one
/// whose first `headTokens` tokens are shown.
/// Errors: OutOfRange when there is no such document; those of readTokens.
absl::StatusOr<DataSummary> summarizeData(const std::vector<std::string> &sources, const std::string &folder,
                                          const std::string &tokenizer, int64_t document = 0,
                                          int64_t headTokens = 100);

/// A few lines for people, or one line of JSON with the names above.
std::string describe(const DataSummary &summary, bool json);

} // namespace weft::rt

//===- Corpus.h - Where documents come from ---------------------*- C++ -*-===//
#pragma once

#include "runtime/Recipe.h"
#include "runtime/data/Mqar.h"
#include "runtime/data/TokenStream.h"
#include "runtime/data/Tokenizer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::rt {

/// A text with its name: "builtin:austen/emma", or a path.
struct TextDocument {
  std::string name, text;
};

/// A built-in text: `austen` (emma, mansfield_park, northanger_abbey,
/// persuasion, pride_and_prejudice, sense_and_sensibility: six documents) or
/// `sotu` (one a speech, by year), or one document, `austen/persuasion`.
/// Errors: NotFound with the names there are, or with what to run.
absl::StatusOr<std::vector<TextDocument>> readBuiltin(const std::string &name);

/// The documents in the bytes of an R lazy-load file: character vectors, their
/// lines each ended by a newline. Errors: DataLoss with the offset.
absl::StatusOr<std::vector<std::string>> readRdb(std::string_view bytes);

/// A source: "builtin:NAME", a text file (one document), a token shard (*.bin),
/// or a pattern of * ? [..] for either; a relative path starts at `folder`.
/// Expanded to built-in documents and paths, in order of names, each once.
/// Errors: NotFound when a source names nothing.
absl::StatusOr<std::vector<std::string>> expandSources(const std::vector<std::string> &sources,
                                                       const std::string &folder);

/// Reads expanded sources. Each text document begins with the tokenizer's
/// separator, if it has one; an empty text is then the separator alone. Shards
/// hold ids already; documents in them begin at the separator.
/// `vocabulary`: ids must be below it. Errors: InvalidArgument names file,
/// token and id; DataLoss a damaged shard.
absl::StatusOr<TokenStream> readTokens(const std::vector<std::string> &expanded, const Tokenizer &tokenizer,
                                       int64_t vocabulary);

struct Dataset {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const TokenStream> train;
  std::shared_ptr<const TokenStream> heldOut;         // null when nothing is held out
  std::shared_ptr<const Mqar> trainTask, heldOutTask; // `builtin:mqar/...`: instead of a stream
};

/// The data of a recipe. What is held out by name is left out of training; a
/// share of the end is cut at a token: round(share x tokens), at least 2.
/// `builtin:mqar/pairs=8` (runtime/data/Mqar.h) draws rows of the recipe's
/// length; held out, it draws others.
/// `vocabulary`: the model's, or 0 for the tokenizer's; `folder`: where relative
/// paths start, "" for the working folder.
/// Errors: InvalidArgument when the tokenizer has more ids than `vocabulary`,
/// or when nothing is left to train on; those of readTokens.
absl::StatusOr<Dataset> loadDataset(const Recipe &recipe, int64_t vocabulary = 0,
                                    const std::string &folder = "");

} // namespace weft::rt

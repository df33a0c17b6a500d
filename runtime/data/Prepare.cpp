//===- Prepare.cpp - Text to token files, and a look at sources -----------===//
#include "runtime/data/Prepare.h"

#include "runtime/core/File.h"
#include "runtime/core/Json.h"
#include "runtime/data/Corpus.h"
#include "runtime/data/Shard.h"

#include <algorithm>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::rt {
namespace {

struct Loaded {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::string> names;
  TokenStream stream;
};

absl::StatusOr<Loaded> load(const std::vector<std::string> &sources, const std::string &folder,
                            const std::string &tokenizerName) {
  Loaded loaded;
  absl::StatusOr<std::shared_ptr<const Tokenizer>> tokenizer = makeTokenizer(tokenizerName);
  if (!tokenizer.ok())
    return tokenizer.status();
  loaded.tokenizer = *tokenizer;
  absl::StatusOr<std::vector<std::string>> names = expandSources(sources, folder);
  if (!names.ok())
    return names.status();
  loaded.names = *std::move(names);
  absl::StatusOr<TokenStream> stream =
      readTokens(loaded.names, *loaded.tokenizer, loaded.tokenizer->vocabulary());
  if (!stream.ok())
    return stream.status();
  loaded.stream = *std::move(stream);
  if (loaded.stream.size() == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("the data sources hold no tokens: ", loaded.names.size(), " files, all empty"));
  return loaded;
}

/// Where shards end in the stream, ascending.
std::vector<int64_t> shardEnds(const TokenStream &stream, int64_t limit, bool documentAlone) {
  std::vector<int64_t> ends;
  int64_t begin = 0;
  for (const TokenStream::Document &doc : stream.documents()) {
    int64_t end = doc.begin + doc.length;
    if (doc.begin > begin && (documentAlone || end - begin > limit)) {
      ends.push_back(doc.begin);
      begin = doc.begin;
    }
    for (; end - begin > limit; begin += limit)
      ends.push_back(begin + limit);
  }
  if (begin < stream.size())
    ends.push_back(stream.size());
  return ends;
}

} // namespace

absl::StatusOr<Prepared> prepareData(const PrepareOptions &options) {
  if (options.shardTokens < 1 || options.out.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("expected an output name, as in shards/train, and at least 1 token a shard, found \"",
                     options.out, "\" and ", options.shardTokens));
  absl::StatusOr<Loaded> data = load(options.sources, options.folder, options.tokenizer);
  if (!data.ok())
    return data.status();
  std::vector<int64_t> ends = shardEnds(data->stream, options.shardTokens, !data->tokenizer->separator());
  // Six digits keep the order of names the order of tokens.
  if (ends.size() > 1'000'000)
    return absl::InvalidArgumentError(absl::StrCat("expected at most 1000000 shards, found ", ends.size(),
                                                   " of at most ", options.shardTokens,
                                                   " tokens; allow more tokens a shard"));
  Prepared result;
  std::string parent = std::filesystem::path(options.out).parent_path().string();
  if (!parent.empty())
    if (absl::Status status = makeFolders(parent); !status.ok())
      return status;
  int64_t begin = 0;
  result.vocabulary = data->tokenizer->vocabulary();
  for (int64_t end : ends) {
    std::string path = absl::StrFormat("%s-%06d.bin", options.out, result.files.size());
    if (absl::Status status = writeShard(path, data->stream.slice(begin, end), result.vocabulary);
        !status.ok())
      return status;
    result.files.push_back(std::move(path));
    begin = end;
  }
  // A pattern that names the new shards must not name longer-numbered old ones.
  for (size_t old = ends.size();; ++old)
    if (std::error_code error;
        !std::filesystem::remove(absl::StrFormat("%s-%06d.bin", options.out, old), error))
      break;
  result.documents = static_cast<int64_t>(data->stream.documents().size());
  result.tokens = data->stream.size();
  return result;
}

absl::StatusOr<DataSummary> summarizeData(const std::vector<std::string> &sources, const std::string &folder,
                                          const std::string &tokenizer, int64_t document,
                                          int64_t headTokens) {
  absl::StatusOr<Loaded> data = load(sources, folder, tokenizer);
  if (!data.ok())
    return data.status();
  const std::vector<TokenStream::Document> &documents = data->stream.documents();
  DataSummary summary;
  summary.sources = data->names;
  summary.documents = static_cast<int64_t>(documents.size());
  summary.tokens = data->stream.size();
  summary.vocabulary = data->tokenizer->vocabulary();
  if (document < 0 || document >= summary.documents)
    return absl::OutOfRangeError(
        absl::StrCat("no document ", document, ": there are ", summary.documents, ", counted from 0"));
  auto byLength = [](const auto &a, const auto &b) { return a.length < b.length; };
  auto [shortest, longest] = std::minmax_element(documents.begin(), documents.end(), byLength);
  summary.shortest = shortest->length;
  summary.longest = longest->length;
  std::vector<bool> seen(summary.vocabulary);
  std::vector<int32_t> ids(1 << 16);
  for (int64_t at = 0; at < summary.tokens; at += static_cast<int64_t>(ids.size())) {
    int64_t count = std::min<int64_t>(ids.size(), summary.tokens - at);
    data->stream.copy(at, count, ids.data());
    for (int64_t i = 0; i < count; ++i)
      seen[ids[i]] = true;
  }
  for (int64_t id = 0; id < summary.vocabulary; ++id)
    if (seen[id])
      ++summary.distinct, summary.highest = id;
  ids.resize(std::clamp<int64_t>(headTokens, 0, documents[document].length));
  data->stream.copy(documents[document].begin, static_cast<int64_t>(ids.size()), ids.data());
  summary.head = data->tokenizer->decode(ids);
  return summary;
}

std::string describe(const DataSummary &summary, bool json) {
  if (json) {
    OrderedJson line;
    line["sources"] = summary.sources;
    line["documents"] = summary.documents;
    line["tokens"] = summary.tokens;
    line["vocabulary"] = summary.vocabulary;
    line["shortest"] = summary.shortest;
    line["longest"] = summary.longest;
    line["distinct"] = summary.distinct;
    line["highest"] = summary.highest;
    line["head"] = summary.head;
    return dumpJson(line) + "\n";
  }
  std::string text;
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < std::min(kShown, summary.sources.size()); ++i)
    absl::StrAppend(&text, i == 0 ? "sources    " : "           ", summary.sources[i], "\n");
  if (summary.sources.size() > kShown)
    absl::StrAppend(&text, "           and ", summary.sources.size() - kShown, " more\n");
  absl::StrAppend(&text, "documents  ", summary.documents, ", of ", summary.shortest, " to ", summary.longest,
                  " tokens\n");
  absl::StrAppend(&text, "tokens     ", summary.tokens, "\n");
  absl::StrAppend(&text, "ids        ", summary.distinct, " of ", summary.vocabulary,
                  " occur, the highest is ", summary.highest, "\n\n", summary.head, "\n");
  return text;
}

} // namespace weft::rt

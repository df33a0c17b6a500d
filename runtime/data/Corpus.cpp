//===- Corpus.cpp - Where documents come from -----------------------------===//
#include "runtime/data/Corpus.h"

#include "runtime/core/File.h"
#include "runtime/data/Shard.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <glob.h>
#include <map>
#include <set>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr std::string_view kBuiltin = "builtin:";

/// Paths that `pattern` names, sorted. The folder's own characters are no pattern.
absl::StatusOr<std::vector<std::string>> expandPattern(const std::string &pattern,
                                                       const std::string &folder) {
  std::string full;
  if (!folder.empty() && !pattern.starts_with("/")) {
    for (char c : folder)
      full += std::string_view("*?[\\").find(c) == std::string_view::npos ? std::string(1, c)
                                                                          : std::string{'\\', c};
    full += "/";
  }
  full += pattern;
  glob_t found = {};
  int code = glob(full.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + (code == 0 ? found.gl_pathc : 0));
  globfree(&found);
  if (!paths.empty())
    return paths;
  std::string where = !folder.empty() && !pattern.starts_with("/") ? " in " + folder : "";
  return absl::NotFoundError(absl::StrCat("data source \"", pattern, "\" names no file", where,
                                          ": expected a path, a pattern as in \"shards/train-*.bin\", or "
                                          "builtin:austen, builtin:sotu"));
}

/// Documents of the sources: text for builtin names and text files.
class TextReader {
public:
  absl::StatusOr<std::string> read(const std::string &name) {
    if (!name.starts_with(kBuiltin))
      return readFile(name);
    std::string set = name.substr(kBuiltin.size(), name.find('/') - kBuiltin.size());
    if (auto known = texts.find(name); known != texts.end())
      return known->second;
    absl::StatusOr<std::vector<TextDocument>> documents = readBuiltin(set);
    if (!documents.ok())
      return documents.status();
    for (TextDocument &document : *documents)
      texts[document.name] = std::move(document.text);
    return texts[name];
  }

private:
  std::map<std::string, std::string> texts; // built-in documents by name
};

/// Texts to ids on all cores; the result does not depend on their number.
std::vector<std::vector<int32_t>> encodeAll(const std::vector<std::string> &texts,
                                            const Tokenizer &tokenizer) {
  std::vector<std::vector<int32_t>> result(texts.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < texts.size(); i = next++) {
      if (tokenizer.separator())
        result[i].push_back(*tokenizer.separator());
      std::vector<int32_t> ids = tokenizer.encode(texts[i]);
      result[i].insert(result[i].end(), ids.begin(), ids.end());
    }
  };
  std::vector<std::jthread> threads;
  for (size_t w = 1; w < std::min<size_t>(std::thread::hardware_concurrency(), texts.size()); ++w)
    threads.emplace_back(work);
  work();
  threads.clear(); // joins
  return result;
}

bool isShard(const std::string &name) { return !name.starts_with(kBuiltin) && name.ends_with(".bin"); }

absl::Status checkVocabulary(const Tokenizer &tokenizer, int64_t vocabulary) {
  if (tokenizer.vocabulary() <= vocabulary)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the tokenizer has ", tokenizer.vocabulary(), " ids, but the model's vocabulary has ",
                   vocabulary, ": set the model's vocabulary to at least ", tokenizer.vocabulary(),
                   " or choose a smaller tokenizer, as in gpt2(", std::max<int64_t>(vocabulary, 257), ")"));
}

using Stream = std::shared_ptr<const TokenStream>;

/// Cuts the last share off `data.train`.
absl::Status holdOutEnd(Dataset &data, double fraction) {
  int64_t size = data.train->size();
  int64_t held = std::max<int64_t>(2, std::llround(fraction * static_cast<double>(size)));
  if (fraction <= 0 || fraction >= 1 || held >= size)
    return absl::InvalidArgumentError(
        absl::StrCat("held_out = last ", fraction * 100,
                     "%: expected a share between 0 and 100% that leaves tokens "
                     "to train on, of ",
                     size));
  data.heldOut = std::make_shared<const TokenStream>(data.train->slice(size - held, size));
  data.train = std::make_shared<const TokenStream>(data.train->slice(0, size - held));
  return absl::OkStatus();
}

/// The task that `source` names, or null when it names documents.
absl::StatusOr<std::shared_ptr<const Mqar>> taskOf(const std::string &source, const Recipe &recipe,
                                                   int64_t vocabulary, bool test) {
  MqarOptions given;
  given.length = recipe.positions;
  given.seed = recipe.seed;
  given.vocabulary = vocabulary > 0 ? vocabulary : given.vocabulary;
  given.test = test;
  absl::StatusOr<std::optional<MqarOptions>> options = parseMqar(source, given);
  if (!options.ok())
    return options.status();
  if (!options->has_value())
    return std::shared_ptr<const Mqar>();
  if (vocabulary > 0 && (*options)->vocabulary > vocabulary)
    return absl::InvalidArgumentError(absl::StrCat("\"", source, "\" draws ids up to ",
                                                   (*options)->vocabulary,
                                                   ", but the model's vocabulary has ", vocabulary));
  absl::StatusOr<Mqar> task = Mqar::make(**options);
  if (!task.ok())
    return task.status();
  return std::make_shared<const Mqar>(*std::move(task));
}

/// Tasks among the sources of `recipe`. Errors: a task beside other sources.
absl::Status loadTasks(Dataset &data, const Recipe &recipe, int64_t vocabulary) {
  for (const std::string &source : recipe.data) {
    absl::StatusOr<std::shared_ptr<const Mqar>> task = taskOf(source, recipe, vocabulary, false);
    if (!task.ok())
      return task.status();
    if (*task && recipe.data.size() > 1)
      return absl::InvalidArgumentError(
          absl::StrCat("recipe: data = \"", source, "\" stands beside other sources; it must stand alone"));
    data.trainTask = *task;
  }
  if (recipe.heldOut.kind == HeldOut::Kind::LastFraction && data.trainTask)
    return absl::InvalidArgumentError(
        "recipe: mqar has no end that could be held out; hold out a task of its "
        "own: held_out = \"builtin:mqar/pairs=8,rows=1000\"");
  if (recipe.heldOut.kind != HeldOut::Kind::Source)
    return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<const Mqar>> task = taskOf(recipe.heldOut.source, recipe, vocabulary, true);
  if (task.ok())
    data.heldOutTask = *task;
  return task.status();
}

} // namespace

absl::StatusOr<std::vector<std::string>> expandSources(const std::vector<std::string> &sources,
                                                       const std::string &folder) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const std::string &source : sources) {
    std::vector<std::string> found;
    if (source.starts_with(kBuiltin)) {
      absl::StatusOr<std::vector<TextDocument>> documents = readBuiltin(source.substr(kBuiltin.size()));
      if (!documents.ok())
        return documents.status();
      for (const TextDocument &document : *documents)
        found.push_back(document.name);
    } else {
      absl::StatusOr<std::vector<std::string>> paths = expandPattern(source, folder);
      if (!paths.ok())
        return paths.status();
      found = *std::move(paths);
    }
    for (std::string &name : found)
      if (seen.insert(name).second)
        names.push_back(std::move(name));
  }
  return names;
}

absl::StatusOr<TokenStream> readTokens(const std::vector<std::string> &expanded, const Tokenizer &tokenizer,
                                       int64_t vocabulary) {
  TokenStream stream;
  TextReader reader;
  std::vector<std::string> texts;
  // Texts between two shards are encoded together; the order of sources stays.
  auto flush = [&] {
    for (std::vector<int32_t> &ids : encodeAll(texts, tokenizer))
      stream.add(std::move(ids));
    texts.clear();
  };
  for (const std::string &name : expanded) {
    if (isShard(name)) {
      flush();
      if (absl::Status status = addShard(stream, name, tokenizer.separator(), vocabulary); !status.ok())
        return status;
      continue;
    }
    absl::StatusOr<std::string> text = reader.read(name);
    if (!text.ok())
      return text.status();
    texts.push_back(*std::move(text));
  }
  flush();
  return stream;
}

absl::StatusOr<Dataset> loadDataset(const Recipe &recipe, int64_t vocabulary, const std::string &folder) {
  Dataset data;
  std::string name = recipe.tokenizer;
  bool isPath = name != "bytes" && !name.starts_with("gpt2") && !name.starts_with("/");
  if (isPath && !folder.empty())
    name = folder + "/" + name;
  absl::StatusOr<std::shared_ptr<const Tokenizer>> tokenizer = makeTokenizer(name, recipe.tokenizerCut);
  if (!tokenizer.ok())
    return tokenizer.status();
  data.tokenizer = *tokenizer;
  int64_t ids = vocabulary > 0 ? vocabulary : data.tokenizer->vocabulary();
  if (absl::Status status = checkVocabulary(*data.tokenizer, ids); !status.ok())
    return status;
  if (absl::Status status = loadTasks(data, recipe, vocabulary); !status.ok())
    return status;
  absl::StatusOr<std::vector<std::string>> names =
      expandSources(data.trainTask ? std::vector<std::string>() : recipe.data, folder);
  if (!names.ok())
    return names.status();
  auto read = [&](const std::vector<std::string> &sources) -> absl::StatusOr<Stream> {
    absl::StatusOr<TokenStream> stream = readTokens(sources, *data.tokenizer, ids);
    if (!stream.ok())
      return stream.status();
    return std::make_shared<const TokenStream>(*std::move(stream));
  };
  if (recipe.heldOut.kind == HeldOut::Kind::Source && !data.heldOutTask) {
    absl::StatusOr<std::vector<std::string>> held = expandSources({recipe.heldOut.source}, folder);
    if (!held.ok())
      return held.status();
    std::set<std::string> out(held->begin(), held->end());
    std::erase_if(*names, [&](const std::string &source) { return out.contains(source); });
    absl::StatusOr<Stream> stream = read(*held);
    if (!stream.ok())
      return stream.status();
    data.heldOut = *stream;
  }
  if (data.trainTask)
    return data;
  if (names->empty())
    return absl::InvalidArgumentError(absl::StrCat("recipe: nothing is left to train on: held_out = \"",
                                                   recipe.heldOut.source, "\" takes every source of data"));
  absl::StatusOr<Stream> stream = read(*names);
  if (!stream.ok())
    return stream.status();
  data.train = *stream;
  if (recipe.heldOut.kind == HeldOut::Kind::LastFraction)
    if (absl::Status status = holdOutEnd(data, recipe.heldOut.fraction); !status.ok())
      return status;
  if (recipe.portion < 1) {
    auto tokens = static_cast<int64_t>(std::ceil(recipe.portion * static_cast<double>(data.train->size())));
    data.train = std::make_shared<const TokenStream>(data.train->slice(0, tokens));
  }
  return data;
}

} // namespace weft::rt

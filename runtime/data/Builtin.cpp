//===- Builtin.cpp - Texts that are known by name -------------------------===//
#include "runtime/core/File.h"
#include "runtime/data/Corpus.h"
#include "runtime/data/DataFolder.h"

#include <algorithm>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

// In the order of the package's file.
constexpr const char *kNovels[] = {"emma",       "mansfield_park",      "northanger_abbey",
                                   "persuasion", "pride_and_prejudice", "sense_and_sensibility"};

absl::StatusOr<std::vector<TextDocument>> readAusten() {
  absl::StatusOr<std::string> bytes = readDataFile("austen/Rdata.rdb", "austen");
  if (!bytes.ok())
    return bytes.status();
  absl::StatusOr<std::vector<std::string>> texts = readRdb(*bytes);
  if (!texts.ok())
    return texts.status();
  if (texts->size() != std::size(kNovels))
    return absl::DataLossError(absl::StrCat(dataFolder(), "/austen/Rdata.rdb: expected ", std::size(kNovels),
                                            " novels, found ", texts->size(),
                                            "; run: tools/get-text austen"));
  std::vector<TextDocument> documents;
  for (size_t i = 0; i < texts->size(); ++i)
    documents.push_back({absl::StrCat("builtin:austen/", kNovels[i]), std::move((*texts)[i])});
  return documents;
}

absl::StatusOr<std::vector<TextDocument>> readSpeeches() {
  std::string folder = dataFolder() + "/sotu";
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".txt")
      names.push_back(entry->path().stem().string());
  if (names.empty())
    return absl::NotFoundError(absl::StrCat(folder, " holds no speeches; run: tools/get-text sotu "
                                                    "(WEFT_DATA_DIR names another data folder)"));
  std::sort(names.begin(), names.end()); // they begin with the year
  std::vector<TextDocument> documents;
  for (const std::string &name : names) {
    absl::StatusOr<std::string> text = readFile(absl::StrCat(folder, "/", name, ".txt"));
    if (!text.ok())
      return text.status();
    documents.push_back({"builtin:sotu/" + name, *std::move(text)});
  }
  return documents;
}

} // namespace

absl::StatusOr<std::vector<TextDocument>> readBuiltin(const std::string &name) {
  std::string set = name.substr(0, name.find('/'));
  if (set != "austen" && set != "sotu")
    return absl::NotFoundError(
        absl::StrCat("no built-in text `builtin:", name, "`: there are builtin:austen and builtin:sotu"));
  absl::StatusOr<std::vector<TextDocument>> documents = set == "austen" ? readAusten() : readSpeeches();
  if (!documents.ok() || name == set)
    return documents;
  std::string known;
  for (TextDocument &document : *documents) {
    if (document.name == "builtin:" + name)
      return std::vector<TextDocument>{std::move(document)};
    if (&document - documents->data() < 6)
      absl::StrAppend(&known, known.empty() ? "" : ", ", document.name);
  }
  return absl::NotFoundError(absl::StrCat("no document `builtin:", name, "` among ", documents->size(),
                                          " of builtin:", set, ": ", known,
                                          documents->size() > 6 ? ", ..." : ""));
}

} // namespace weft::rt

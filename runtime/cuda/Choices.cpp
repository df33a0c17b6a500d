//===- Choices.cpp --------------------------------------------------------===//
#include "runtime/cuda/Choices.h"

#include "runtime/core/File.h"
#include "runtime/core/Json.h"
#include "runtime/cuda/CubinCache.h"

#include "absl/strings/str_cat.h"

namespace weft::rt::cuda {
namespace {

constexpr const char *kFolder = "/products";
constexpr uint64_t kMostBytes = 4 << 20;

std::string listHash(const std::vector<LtHeuristic> &proposals) {
  std::string bytes;
  for (const LtHeuristic &proposal : proposals) {
    bytes.append(reinterpret_cast<const char *>(&proposal.algorithm), sizeof(proposal.algorithm));
    absl::StrAppend(&bytes, " ", proposal.workspaceBytes, " ");
  }
  return hashOf(std::vector<std::string_view>{bytes});
}

} // namespace

Choices::Choices(const std::string &folder, std::string identity) : identity(std::move(identity)) {
  if (folder.empty())
    return;
  path = absl::StrCat(folder, kFolder, "/", cuda::hashOf({std::string_view(this->identity)}), ".json");
  read();
}

void Choices::read() {
  absl::StatusOr<std::string> text = readFile(path, kMostBytes);
  if (absl::IsNotFound(text.status()))
    return;
  auto parse = [&]() -> absl::Status {
    if (!text.ok())
      return text.status();
    absl::StatusOr<Json> json = parseJson(*text, path);
    if (!json.ok())
      return json.status();
    absl::StatusOr<std::string> of = stringOf(*json, "identity", path);
    if (!of.ok())
      return of.status();
    if (*of != identity)
      return absl::DataLossError(absl::StrCat(path, ": is of '", *of, "', expected '", identity, "'"));
    absl::StatusOr<const Json *> list = memberOf(*json, "choices", path);
    if (!list.ok())
      return list.status();
    if (!(*list)->is_array())
      return absl::DataLossError(absl::StrCat(path, ": 'choices': expected an array"));
    for (const Json &entry : **list) {
      absl::StatusOr<std::string> problem = stringOf(entry, "problem", path),
                                  proposals = stringOf(entry, "proposals", path);
      absl::StatusOr<uint64_t> number = uint64Of(entry, "number", path);
      for (const absl::Status &status : {problem.status(), proposals.status(), number.status()})
        if (!status.ok())
          return status;
      choices[*problem] = {*proposals, *number};
    }
    return absl::OkStatus();
  };
  if (absl::Status status = parse(); !status.ok()) {
    choices.clear();
    why = absl::StrCat("choices of algorithms are left alone, products are timed again: ",
                       std::string(status.message()));
  }
}

std::optional<size_t> Choices::find(const std::string &problem,
                                    const std::vector<LtHeuristic> &proposals) const {
  auto found = choices.find(problem);
  if (found == choices.end() || found->second.number >= proposals.size() ||
      found->second.proposals != listHash(proposals))
    return std::nullopt;
  return found->second.number;
}

void Choices::keep(const std::string &problem, const std::vector<LtHeuristic> &proposals, size_t number) {
  choices[problem] = {listHash(proposals), number};
  changed = true;
}

void Choices::write() const {
  if (!changed || path.empty())
    return;
  Json list = Json::array();
  for (const auto &[problem, choice] : choices)
    list.push_back({{"problem", problem}, {"proposals", choice.proposals}, {"number", choice.number}});
  if (makeFolders(path.substr(0, path.rfind('/'))).ok())
    writeFileAtomic(path, dumpJson({{"identity", identity}, {"choices", list}}, 1)).IgnoreError();
}

} // namespace weft::rt::cuda

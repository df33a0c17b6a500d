//===- BenchAgainst.cpp - Kernels' times beside earlier ones --------------===//
#include "tools/weft/BenchAgainst.h"

#include "runtime/core/File.h"
#include "tools/weft/Output.h"

#include "absl/strings/str_cat.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace weft;

namespace {

constexpr double kShareOfOwn = 0.03, kShareOfRun = 0.001; // less is noise
constexpr const char *kSame[] = {"model", "program", "batch", "positions", "micros", "documents"};

/// Seconds of a run, before and now; negative: not there.
struct Pair {
  std::string name, kind;
  double before = -1, now = -1;

  double difference() const { return std::max(now, 0.0) - std::max(before, 0.0); }
  void add(double &to, double seconds) { to = std::max(to, 0.0) + seconds; }
};

/// `loss_rows` of `loss_rows_50e61cff`.
std::string familyOf(const std::string &name) {
  constexpr size_t kDigits = 8;
  size_t line = name.rfind('_');
  bool hashed = line != std::string::npos && name.size() - line - 1 == kDigits &&
                name.find_first_not_of("0123456789abcdef", line + 1) == std::string::npos;
  return hashed ? name.substr(0, line) : name;
}

const char *verdictOf(const Pair &pair, double run) {
  if (pair.before < 0)
    return "new";
  if (pair.now < 0)
    return "gone";
  double difference = pair.difference();
  if (std::abs(difference) < kShareOfOwn * pair.before || std::abs(difference) < kShareOfRun * run)
    return "same";
  return difference > 0 ? "slower" : "faster";
}

/// Kernels of one name first, then what is left over by family.
std::vector<Pair> pairUp(const rt::Json &before, const rt::OrderedJson &now) {
  std::map<std::string, Pair> named, families;
  auto fill = [](std::map<std::string, Pair> &pairs, const auto &kernel, double Pair::*side,
                 const std::string &name) {
    Pair &pair = pairs[name];
    pair.name = name, pair.kind = kernel["kind"].template get<std::string>();
    pair.add(pair.*side, kernel["seconds"].template get<double>());
  };
  for (const rt::Json &kernel : before)
    fill(named, kernel, &Pair::before, kernel["name"].get<std::string>());
  for (const rt::OrderedJson &kernel : now)
    fill(named, kernel, &Pair::now, kernel["name"].get<std::string>());
  std::vector<Pair> pairs;
  for (auto &[name, pair] : named) {
    if (pair.before >= 0 && pair.now >= 0) {
      pairs.push_back(pair);
      continue;
    }
    Pair &family = families[familyOf(name)];
    family.name = familyOf(name), family.kind = pair.kind;
    for (double Pair::*side : {&Pair::before, &Pair::now})
      if (pair.*side >= 0)
        family.add(family.*side, pair.*side);
  }
  for (auto &[name, pair] : families)
    pairs.push_back(pair);
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair &a, const Pair &b) {
    return std::abs(a.difference()) > std::abs(b.difference());
  });
  return pairs;
}

} // namespace

absl::StatusOr<EarlierTimes> EarlierTimes::read(const std::string &path) {
  constexpr uint64_t kMostBytes = 64 << 20;
  EarlierTimes earlier;
  earlier.path = path;
  absl::StatusOr<std::string> text = rt::readFile(path, kMostBytes);
  if (!text.ok())
    return text.status();
  absl::StatusOr<rt::Json> json = rt::parseJson(*text, path);
  if (!json.ok())
    return json.status();
  earlier.run = *std::move(json);
  absl::StatusOr<const rt::Json *> times = rt::memberOf(earlier.run, "times", path);
  if (!times.ok())
    return absl::DataLossError(absl::StrCat(std::string(times.status().message()),
                                            "; weft bench --kernels --json writes such files"));
  absl::StatusOr<const rt::Json *> kernels = rt::memberOf(**times, "kernels", path);
  if (!kernels.ok())
    return kernels.status();
  if (!(*kernels)->is_array())
    return absl::DataLossError(absl::StrCat(path, ": 'kernels': expected an array"));
  for (const rt::Json &kernel : **kernels) {
    for (const char *key : {"name", "kind"})
      if (auto word = rt::stringOf(kernel, key, path); !word.ok())
        return word.status();
    absl::StatusOr<double> seconds = rt::numberOf(kernel, "seconds", path);
    if (!seconds.ok())
      return seconds.status();
    if (!std::isfinite(*seconds) || *seconds < 0)
      return absl::DataLossError(absl::StrCat(path, ": 'seconds': expected a time, found ", *seconds));
  }
  return earlier;
}

absl::Status EarlierTimes::checkSame(const rt::OrderedJson &now) const {
  for (const char *key : kSame) {
    const std::string then = run.contains(key) ? rt::dumpJson(run[key]) : "nothing",
                      here = rt::dumpJson(now.at(key));
    if (then != here)
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": its times are of ", key, " ", then, ", expected ", here,
                       " as here: compare runs of the same model and sizes"));
  }
  return absl::OkStatus();
}

rt::OrderedJson EarlierTimes::compare(const rt::OrderedJson &times) const {
  const std::vector<Pair> pairs = pairUp(run["times"]["kernels"], times["kernels"]);
  double before = 0, now = 0;
  for (const Pair &pair : pairs)
    before += std::max(pair.before, 0.0), now += std::max(pair.now, 0.0);
  rt::OrderedJson json{{"file", path}, {"before_seconds", before}, {"seconds", now}};
  json["kernels"] = rt::OrderedJson::array();
  for (const Pair &pair : pairs)
    json["kernels"].push_back({{"name", pair.name},
                               {"kind", pair.kind},
                               {"before_seconds", std::max(pair.before, 0.0)},
                               {"seconds", std::max(pair.now, 0.0)},
                               {"verdict", verdictOf(pair, std::min(before, now))}});
  return json;
}

std::string weft::againstText(const rt::OrderedJson &compared) {
  auto milliseconds = [](double seconds) -> std::string { return llvm::formatv("{0:F3}", seconds * 1e3); };
  auto change = [](double before, double now) -> std::string {
    return before > 0 && now > 0 ? llvm::formatv("{0:F1}%", 100 * (now / before - 1)) : std::string("-");
  };
  Table table({"kernel", "kind", "", "ms before", "ms now", "change"}, {0, 1, 2});
  size_t same = 0;
  for (const rt::OrderedJson &kernel : compared["kernels"]) {
    const double before = kernel["before_seconds"].get<double>(), now = kernel["seconds"].get<double>();
    const std::string verdict = kernel["verdict"].get<std::string>();
    if (verdict == "same")
      ++same;
    else
      table.add({kernel["name"].get<std::string>(), kernel["kind"].get<std::string>(), verdict,
                 milliseconds(before), milliseconds(now), change(before, now)});
  }
  const double before = compared["before_seconds"].get<double>(), now = compared["seconds"].get<double>();
  return llvm::formatv("against {0}: all kernels {1} ms before, {2} ms now, {3}; {4} kernels the same\n",
                       compared["file"].get<std::string>(), milliseconds(before), milliseconds(now),
                       change(before, now), same)
             .str() +
         (same < compared["kernels"].size() ? table.text() : "");
}

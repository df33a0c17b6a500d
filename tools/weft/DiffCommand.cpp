//===- DiffCommand.cpp - weft diff ------------------------------------------===//
//
// What two runs were told, how far they came, and how far apart their weights are.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Measure.h"
#include "tools/weft/Output.h"

#include "runtime/core/File.h"
#include "runtime/core/Safetensors.h"
#include "runtime/train/Checkpoint.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <cmath>

using namespace weft;
namespace cl = llvm::cl;

namespace {

/// Lines of the run's text without spaces around them and comments.
std::vector<std::string> linesOf(const std::string &source) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(source, '\n')) {
    if (const size_t at = line.find('#'); at != absl::string_view::npos)
      line = line.substr(0, at);
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty())
      lines.emplace_back(line.data(), line.size());
  }
  return lines;
}

/// `- line` of the first alone, `+ line` of the second alone, in order: what a longest
/// common subsequence leaves. Texts too long for its table have all lines between
/// their common head and tail as changes.
std::vector<std::string> changesOf(std::vector<std::string> a, std::vector<std::string> b) {
  constexpr size_t kLargestTable = 4'000'000;
  while (!a.empty() && !b.empty() && a.back() == b.back())
    a.pop_back(), b.pop_back();
  size_t head = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head])
    ++head;
  a.erase(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(head));
  b.erase(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(head));
  std::vector<std::vector<uint32_t>> common;
  if (a.size() * b.size() <= kLargestTable)
    common.assign(a.size() + 1, std::vector<uint32_t>(b.size() + 1));
  for (size_t i = common.empty() ? 0 : a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::vector<std::string> changes;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const bool both = i < a.size() && j < b.size();
    if (both && !common.empty() && a[i] == b[j])
      ++i, ++j;
    else if (i < a.size() && (!both || common.empty() || common[i + 1][j] >= common[i][j + 1]))
      changes.push_back("- " + a[i++]);
    else
      changes.push_back("+ " + b[j++]);
  }
  return changes;
}

struct Side {
  std::string path, checkpoint;
  rt::CheckpointInfo info;
  double loss = NAN, heldOut = NAN; // the last ones in its log
};

double lastOf(const std::string &run, const std::string &kind) {
  absl::StatusOr<std::vector<rt::Json>> lines = logLines(run, kind);
  if (!lines.ok() || lines->empty() || !lines->back().contains("loss") || !lines->back()["loss"].is_number())
    return NAN;
  return lines->back()["loss"].get<double>();
}

absl::StatusOr<Side> sideOf(const std::string &path) {
  absl::StatusOr<std::string> checkpoint = rt::findCheckpoint(path);
  if (!checkpoint.ok())
    return checkpoint.status();
  absl::StatusOr<rt::CheckpointInfo> info = rt::readCheckpointInfo(*checkpoint);
  if (!info.ok())
    return info.status();
  return Side{path, *checkpoint, *std::move(info), lastOf(path, "train"), lastOf(path, "eval")};
}

/// |b - a| / |a| in the Frobenius norm; |b| where a is 0.
struct TensorDiff {
  std::string name;
  double relative = 0, largest = 0;
};

struct WeightsDiff {
  std::vector<TensorDiff> tensors; // in both, with equal shapes
  std::vector<std::string> notes;  // on one side alone, or of unlike shapes
};

absl::StatusOr<WeightsDiff> compareWeights(const Side &left, const Side &right) {
  WeightsDiff diff;
  absl::StatusOr<rt::SafetensorsFile> a = rt::SafetensorsFile::open(left.checkpoint + "/model.safetensors");
  if (!a.ok())
    return a.status();
  absl::StatusOr<rt::SafetensorsFile> b = rt::SafetensorsFile::open(right.checkpoint + "/model.safetensors");
  if (!b.ok())
    return b.status();
  for (const auto &[name, info] : a->tensors()) {
    auto other = b->tensors().find(name);
    if (other == b->tensors().end()) {
      diff.notes.push_back("- " + name);
      continue;
    }
    if (other->second.shape != info.shape) {
      diff.notes.push_back(absl::StrCat("! ", name, " ", rt::describeShape(info.shape), " and ",
                                        rt::describeShape(other->second.shape)));
      continue;
    }
    absl::StatusOr<rt::Tensor> x = a->readAs(name, rt::ElementType::F64);
    if (!x.ok())
      return x.status();
    absl::StatusOr<rt::Tensor> y = b->readAs(name, rt::ElementType::F64);
    if (!y.ok())
      return y.status();
    TensorDiff tensor{name};
    double apart = 0, size = 0;
    for (size_t i = 0; i < x->as<double>().size(); ++i) {
      const double from = x->as<double>()[i], step = y->as<double>()[i] - from;
      apart += step * step;
      size += from * from;
      tensor.largest = std::max(tensor.largest, std::abs(step));
    }
    tensor.relative = std::sqrt(apart) / (size > 0 ? std::sqrt(size) : 1);
    diff.tensors.push_back(tensor);
  }
  for (const auto &[name, info] : b->tensors())
    if (!a->tensors().contains(name))
      diff.notes.push_back("+ " + name);
  return diff;
}

rt::OrderedJson toJson(const Side &side) {
  return {{"run", side.path},       {"checkpoint", side.checkpoint},
          {"step", side.info.step}, {"tokens", side.info.tokens},
          {"loss", side.loss},      {"held_out", side.heldOut}};
}

std::string number(double value) { return std::isnan(value) ? "-" : llvm::formatv("{0:F4}", value).str(); }

void printSides(const Side &left, const Side &right) {
  Table table({"", "step", "tokens", "loss", "held out"});
  for (const Side *side : {&left, &right})
    table.add({side->path, grouped(side->info.step), grouped(side->info.tokens), number(side->loss),
               number(side->heldOut)});
  llvm::outs() << table.text();
}

void printWeights(const WeightsDiff &diff) {
  std::vector<TensorDiff> apart;
  for (const TensorDiff &tensor : diff.tensors)
    if (tensor.largest > 0)
      apart.push_back(tensor);
  std::ranges::sort(apart, [](const TensorDiff &a, const TensorDiff &b) { return a.relative > b.relative; });
  for (const std::string &note : diff.notes)
    llvm::outs() << note << "\n";
  llvm::outs() << apart.size() << " of " << diff.tensors.size() << " tensors differ\n";
  if (apart.empty())
    return;
  constexpr size_t kShown = 12;
  Table table({"tensor", "|b - a| / |a|", "largest"});
  for (size_t i = 0; i < std::min(apart.size(), kShown); ++i)
    table.add({apart[i].name, llvm::formatv("{0:E3}", apart[i].relative).str(),
               llvm::formatv("{0:E3}", apart[i].largest).str()});
  llvm::outs() << table.text();
}

} // namespace

int weft::diffCommand(int argc, const char **argv) {
  cl::opt<std::string> first(cl::Positional, cl::Required, cl::desc("RUN"), cl::cat(flagCategory()));
  cl::opt<std::string> second(cl::Positional, cl::Required, cl::desc("RUN"), cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("one JSON object, with every tensor"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "what two runs were told, how far they came, how far apart their weights are",
                  "  weft diff runs/first runs/second\n"))
    return kUsage;
  absl::StatusOr<Side> left = sideOf(first), right = sideOf(second);
  if (!left.ok() || !right.ok())
    return fail(left.ok() ? right.status() : left.status());
  const std::vector<std::string> changes = changesOf(linesOf(left->info.source), linesOf(right->info.source));
  absl::StatusOr<WeightsDiff> weights = compareWeights(*left, *right);
  if (!weights.ok())
    return fail(weights.status());
  if (json) {
    rt::OrderedJson tensors = rt::OrderedJson::array();
    for (const TensorDiff &tensor : weights->tensors)
      tensors.push_back({{"name", tensor.name}, {"relative", tensor.relative}, {"largest", tensor.largest}});
    printJson({{"runs", {toJson(*left), toJson(*right)}},
               {"text", changes},
               {"tensors", tensors},
               {"unlike", weights->notes}});
    return 0;
  }
  for (const std::string &change : changes)
    llvm::outs() << change << "\n";
  llvm::outs() << (changes.empty() ? "the texts are the same\n" : "");
  printSides(*left, *right);
  printWeights(*weights);
  return 0;
}

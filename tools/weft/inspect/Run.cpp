//===- Run.cpp - The page of a run ------------------------------------------===//

#include "tools/weft/inspect/Curves.h"
#include "tools/weft/inspect/Document.h"

#include "tools/weft/Loaded.h"
#include "tools/weft/WindowPlans.h"

#include "runtime/core/File.h"
#include "runtime/train/Checkpoint.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

using namespace weft;
using namespace weft::inspect;

namespace {

/// Whole lines of `text`; what follows the last line end is `torn`.
struct TextLines {
  std::vector<std::string_view> lines;
  bool torn = false;
};

TextLines linesOf(std::string_view text) {
  TextLines result;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1)
    result.lines.push_back(text.substr(begin, end - begin));
  result.torn = begin < text.size();
  return result;
}

//===----------------------------------------------------------------------===//
// Windows over time
//===----------------------------------------------------------------------===//

/// Windows of all heads at steps of the log, as texts of one code a head.
class Frames {
public:
  void add(int64_t step, const rt::Json &windows) {
    std::vector<int64_t> frame;
    std::vector<size_t> counts;
    for (const rt::Json &site : windows) {
      if (!site.is_array())
        return;
      counts.push_back(site.size());
      for (const rt::Json &window : site)
        frame.push_back(window.is_number_integer() ? std::max<int64_t>(window.get<int64_t>(), 0) : -1);
    }
    if (!frames.empty() && counts != heads)
      return; // of another model: the log was put together by hand
    heads = std::move(counts);
    ++lines;
    if (frames.empty() || frames.back().second != frame)
      frames.emplace_back(step, std::move(frame));
  }

  /// {"lines", "changes", "heads": [by site], "palette": [window], "width", "frames": [[step, codes]...]}
  rt::OrderedJson toJson() const {
    constexpr size_t kMostFrames = 400, kMostCells = 400000;
    if (frames.empty())
      return nullptr;
    const size_t cells = std::max<size_t>(frames.front().second.size(), 1);
    const size_t most = std::clamp<size_t>(kMostCells / cells, 2, kMostFrames);
    std::vector<size_t> shown;
    if (frames.size() <= most)
      for (size_t i = 0; i < frames.size(); ++i)
        shown.push_back(i);
    else
      for (size_t i = 0; i < most; ++i)
        shown.push_back(i * (frames.size() - 1) / (most - 1));
    std::map<int64_t, size_t> codeOf;
    for (const size_t i : shown)
      for (const int64_t window : frames[i].second)
        codeOf.try_emplace(window, 0);
    rt::OrderedJson palette = rt::OrderedJson::array();
    for (auto &[window, code] : codeOf) {
      code = palette.size();
      palette.push_back(window);
    }
    size_t width = 1;
    for (size_t room = kAlphabet.size(); room < codeOf.size(); room *= kAlphabet.size())
      ++width;
    rt::OrderedJson list = rt::OrderedJson::array();
    for (const size_t i : shown)
      list.push_back({frames[i].first, encoded(frames[i].second, codeOf, width)});
    return {{"lines", lines},     {"changes", frames.size()}, {"heads", heads}, {"alphabet", kAlphabet},
            {"palette", palette}, {"width", width},           {"frames", list}};
  }

private:
  static constexpr std::string_view kAlphabet =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:";

  static std::string encoded(const std::vector<int64_t> &frame, const std::map<int64_t, size_t> &codeOf,
                             size_t width) {
    std::string text;
    for (const int64_t window : frame) {
      std::string digits;
      for (size_t code = codeOf.at(window), i = 0; i < width; ++i, code /= kAlphabet.size())
        digits.insert(digits.begin(), kAlphabet[code % kAlphabet.size()]);
      text += digits;
    }
    return text;
  }

  std::vector<std::pair<int64_t, std::vector<int64_t>>> frames;
  std::vector<size_t> heads;
  size_t lines = 0;
};

//===----------------------------------------------------------------------===//
// The log
//===----------------------------------------------------------------------===//

constexpr size_t kMostPoints = 2000; // of a curve
constexpr size_t kMostCurves = 64, kMostEvents = 200, kMostNamed = 20, kMostHeads = 2000;

class Log {
public:
  void read(std::string_view text) {
    const TextLines all = linesOf(text);
    torn = all.torn;
    for (size_t i = 0; i < all.lines.size(); ++i) {
      ++count;
      absl::StatusOr<rt::Json> line = rt::parseJson(all.lines[i], "log.jsonl");
      if (!line.ok() || !add(*line)) {
        if (++damaged <= kMostNamed)
          damagedLines.push_back(i + 1);
      }
    }
  }

  rt::OrderedJson toJson() const {
    rt::OrderedJson list = rt::OrderedJson::array();
    for (const auto &[name, curve] : curves) {
      const ThinCurve thin = thinned(curve, kMostPoints);
      list.push_back({{"kind", name.first},
                      {"key", name.second},
                      {"points", thin.points},
                      {"steps", thin.steps},
                      {"values", thin.values},
                      {"broken", thin.broken},
                      {"broken_steps", thin.brokenSteps}});
    }
    return {{"lines", count},     {"torn", torn},
            {"damaged", damaged}, {"damaged_lines", damagedLines},
            {"curves", list},     {"windows", frames.toJson()},
            {"freezes", freezes}, {"freeze_count", freezeCount},
            {"last", last}};
  }

private:
  /// false: a line that says nothing a page could show.
  bool add(const rt::Json &line) {
    if (!line.is_object() || !line.contains("kind") || !line["kind"].is_string() || !line.contains("step") ||
        !line["step"].is_number_integer())
      return false;
    const std::string kind = line["kind"].get<std::string>();
    const auto step = line["step"].get<int64_t>();
    if (kind == "freeze" || kind == "freeze_budget")
      return addFreeze(line);
    if (kind == "windows" && line.contains("windows") && line["windows"].is_array())
      frames.add(step, line["windows"]);
    if (kind == "watch" && line.contains("kinds") && line["kinds"].is_object())
      for (const auto &item : line["kinds"].items())
        addPoint(kind, absl::StrCat(line.value("watch", rt::Json("")).dump(), " ", item.key()), step,
                 item.value());
    if (kind == "train" || kind == "eval" || kind == "windows") {
      last[kind] = rt::OrderedJson::object();
      for (const auto &item : line.items())
        if (item.key() != "kind" && item.key() != "step" &&
            (item.value().is_number() || item.value().is_null())) {
          addPoint(kind, item.key(), step, item.value());
          last[kind][item.key()] = item.value();
        }
      last[kind]["step"] = step;
    }
    return true;
  }

  void addPoint(const std::string &kind, const std::string &key, int64_t step, const rt::Json &value) {
    const std::pair<std::string, std::string> name{kind, key};
    if (!curves.contains(name) && curves.size() == kMostCurves)
      return;
    Curve &curve = curves[name];
    curve.steps.push_back(static_cast<double>(step));
    curve.values.push_back(value.is_number() ? value.get<double>()
                                             : std::numeric_limits<double>::quiet_NaN());
  }

  /// Whether a line about freezing has what the page shows, in the types that it has there.
  static bool isFreeze(const rt::Json &line) {
    auto all = [&](std::initializer_list<const char *> keys, auto &&test) {
      return std::ranges::all_of(keys,
                                 [&](const char *key) { return line.contains(key) && test(line[key]); });
    };
    auto text = [](const rt::Json &value) { return value.is_string(); };
    auto number = [](const rt::Json &value) { return value.is_number() || value.is_null(); };
    if (line["kind"] == "freeze_budget")
      return all({"statement"}, text) && all({"rise", "spent", "limit"}, number);
    auto named = [](const rt::Json &head) {
      return head.is_object() && head.contains("site") && head["site"].is_string() && head.contains("head") &&
             head["head"].is_number_integer();
    };
    auto heads = [&](const rt::Json &list) { return list.is_array() && std::ranges::all_of(list, named); };
    return all({"statement", "action", "by"}, text) && all({"chosen", "eligible"}, number) &&
           all({"installed", "heads"}, heads);
  }

  bool addFreeze(const rt::Json &line) {
    if (!isFreeze(line))
      return false;
    if (++freezeCount > kMostEvents)
      return true;
    rt::OrderedJson event = rt::OrderedJson::object();
    for (const auto &item : line.items()) {
      const rt::Json &value = item.value();
      event[item.key()] = value.is_array() && value.size() > kMostHeads
                              ? rt::Json(rt::Json::array_t(
                                    value.begin(), value.begin() + static_cast<std::ptrdiff_t>(kMostHeads)))
                              : value;
    }
    freezes.push_back(std::move(event));
    return true;
  }

  std::map<std::pair<std::string, std::string>, Curve> curves;
  Frames frames;
  rt::OrderedJson freezes = rt::OrderedJson::array(), last = rt::OrderedJson::object();
  std::vector<size_t> damagedLines;
  size_t count = 0, damaged = 0, freezeCount = 0;
  bool torn = false;
};

//===----------------------------------------------------------------------===//
// The rest of the folder
//===----------------------------------------------------------------------===//

/// What console.log says of the machine and of going on.
rt::OrderedJson consoleJson(const std::string &run) {
  constexpr size_t kHead = 12, kTail = 12, kMostResumes = 200;
  rt::OrderedJson head = rt::OrderedJson::array(), tail = rt::OrderedJson::array(),
                  resumes = rt::OrderedJson::array();
  absl::StatusOr<std::string> text = rt::readFile(run + "/console.log");
  if (!text.ok())
    return {{"head", head}, {"tail", tail}, {"resumes", resumes}};
  const TextLines all = linesOf(*text);
  auto shown = [](std::string_view line) { return std::string(line.substr(0, 500)); };
  for (size_t i = 0; i < all.lines.size(); ++i) {
    if (i < kHead)
      head.push_back(shown(all.lines[i]));
    else if (i + kTail >= all.lines.size())
      tail.push_back(shown(all.lines[i]));
    if (all.lines[i].starts_with("resuming '") && resumes.size() < kMostResumes)
      resumes.push_back(shown(all.lines[i]));
  }
  return {{"head", head}, {"tail", tail}, {"resumes", resumes}};
}

rt::OrderedJson checkpointsJson(const std::string &run) {
  rt::OrderedJson list = rt::OrderedJson::array();
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(run + "/checkpoints", error), end; !error && at != end;
       at.increment(error))
    if (const std::string name = at->path().filename().string(); name.starts_with("step-"))
      names.push_back(name);
  std::ranges::sort(names);
  for (const std::string &name : names) {
    rt::OrderedJson entry = {{"name", name}};
    uintmax_t bytes = 0;
    for (std::filesystem::directory_iterator at(run + "/checkpoints/" + name, error), end;
         !error && at != end; at.increment(error))
      if (const uintmax_t size = at->file_size(error); !error)
        bytes += size;
    entry["bytes"] = bytes;
    absl::StatusOr<rt::CheckpointInfo> info = rt::readCheckpointInfo(run + "/checkpoints/" + name);
    if (info.ok())
      entry.update({{"step", info->step},
                    {"total", info->totalSteps},
                    {"tokens", info->tokens},
                    {"skipped", info->skipped},
                    {"seconds", info->seconds},
                    {"build", info->build},
                    {"model", info->model}});
    else
      entry["problem"] = std::string(info.status().message());
    list.push_back(std::move(entry));
  }
  return list;
}

/// The model as the newest checkpoint has it, else as the text of the run says.
absl::StatusOr<rt::OrderedJson> headsOf(const std::string &run, rt::OrderedJson &summary,
                                        rt::OrderedJson &patterns) {
  Request request;
  request.path = run;
  request.needsRecipe = true;
  request.quiet = true;
  absl::StatusOr<LoadedText> loaded = loadText(request);
  if (!loaded.ok()) {
    request = {};
    request.path = run + "/run.weft";
    request.needsRecipe = request.quiet = request.fromRun = true;
    loaded = loadText(request);
  }
  if (!loaded.ok())
    return loaded.status();
  const Program &program = *loaded->program;
  int64_t parameters = 0;
  for (const lang::ParameterInfo &info : lang::parametersOf(program.model)) {
    int64_t elements = 1;
    for (const int64_t size : info.shape)
      elements *= size;
    parameters += elements;
  }
  rt::OrderedJson plans = rt::OrderedJson::array();
  for (const lang::Plan &plan : program.plans)
    plans.push_back(plan.name);
  summary.update({{"model", program.model.name},
                  {"parameters", parameters},
                  {"plans", plans},
                  {"rows", program.recipe->rows},
                  {"positions", program.recipe->positions},
                  {"micro_batches", program.recipe->microBatches},
                  {"seed", program.recipe->seed}});
  absl::StatusOr<std::unique_ptr<rt::WindowControl>> control = recallWindows(program, loaded->checkpoint);
  if (!control.ok())
    return control.status();
  absl::StatusOr<rt::OrderedJson> pictures = patternList(program, loaded->checkpoint);
  if (!pictures.ok())
    return pictures.status();
  patterns = *std::move(pictures);
  return headMap(program, control->get());
}

} // namespace

absl::StatusOr<rt::OrderedJson> weft::inspect::runDocument(const std::string &run) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run, ignored))
    return absl::NotFoundError(absl::StrCat("'", run, "': expected the folder of a run"));
  rt::OrderedJson summary = {{"run", run}}, problems = rt::OrderedJson::array();
  auto note = [&](const absl::Status &status) { problems.push_back(std::string(status.message())); };
  absl::StatusOr<std::string> source = rt::readFile(run + "/run.weft");
  if (!source.ok())
    note(source.status());
  absl::StatusOr<std::string> text = rt::readFile(run + "/log.jsonl");
  if (!text.ok())
    note(text.status());
  Log log;
  if (text.ok())
    log.read(*text);
  rt::OrderedJson patterns = rt::OrderedJson::array();
  absl::StatusOr<rt::OrderedJson> heads = headsOf(run, summary, patterns);
  if (!heads.ok())
    note(heads.status());
  rt::OrderedJson files = rt::OrderedJson::array();
  if (source.ok())
    files.push_back({{"path", "run.weft"}, {"text", *source}});
  return rt::OrderedJson{
      {"kind", "run"},
      {"version", 1},
      {"summary", summary},
      {"problems", problems},
      {"sources",
       {{"files", files}, {"marks", rt::OrderedJson::array()}, {"costs", rt::OrderedJson::array()}}},
      {"heads", heads.ok() ? *heads : rt::OrderedJson()},
      {"patterns", patterns},
      {"log", log.toJson()},
      {"checkpoints", checkpointsJson(run)},
      {"console", consoleJson(run)}};
}

//===- WindowsCommand.cpp - weft windows -----------------------------------===//
//
// The windows of a run, a checkpoint or a model as a map of layers and heads.
// Nothing is compiled.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Loaded.h"
#include "tools/weft/Output.h"
#include "tools/weft/WindowMap.h"
#include "tools/weft/WindowPlans.h"

#include "runtime/control/WindowRatios.h"
#include "runtime/control/WindowsFile.h"
#include "runtime/core/File.h"
#include "runtime/train/Checkpoint.h"

#include "llvm/Support/FormatVariadic.h"

#include "absl/strings/str_cat.h"

#include <filesystem>
#include <unistd.h>

using namespace weft;
namespace cl = llvm::cl;

namespace {

std::vector<int64_t> flattened(const std::vector<std::vector<int64_t>> &windows) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t> &site : windows)
    all.insert(all.end(), site.begin(), site.end());
  return all;
}

/// First places in sight behind the windows, of all heads.
std::vector<int64_t> placesOf(const WindowMap &map) {
  std::vector<std::vector<int64_t>> places;
  for (const rt::WindowSite &site : map.sites)
    places.push_back(site.placesOfHeads());
  return flattened(places);
}

rt::OrderedJson featuresJson(const rt::WindowControl &control, size_t site) {
  rt::OrderedJson list = rt::OrderedJson::array();
  for (const rt::WindowControl::Layer &layer : control.layers())
    if (layer.site == site)
      for (int64_t head : layer.controller.heads())
        if (const std::optional<rt::Feature> &feature =
                layer.controller.state().smoothed[static_cast<size_t>(head)])
          list.push_back({{"head", head}, {"features", *feature}});
  return list;
}

rt::OrderedJson mapJson(const WindowMap &map, const rt::WindowControl &control) {
  const std::vector<int64_t> all = flattened(map.windows);
  rt::OrderedJson json = {{"length", map.positions},
                          {"acr", rt::contextRatio(all, map.positions, placesOf(map))},
                          {"pair_ratio", rt::pairRatio(all, map.positions, placesOf(map))},
                          {"sites", rt::OrderedJson::array()}};
  for (size_t site = 0; site < map.sites.size(); ++site) {
    rt::OrderedJson windows = rt::OrderedJson::array(), left = rt::OrderedJson::array();
    for (int64_t window : map.windows[site])
      windows.push_back(rt::windowJson(window));
    for (const auto &[head, window] : map.sites[site].left)
      left.push_back(head);
    json["sites"].push_back(
        {{"site", map.sites[site].path},
         {"windows", windows},
         {"acr", rt::contextRatio(map.windows[site], map.positions, map.sites[site].placesOfHeads())},
         {"left", left},
         {"features", featuresJson(control, site)}});
  }
  return json;
}

void printMap(const WindowMap &map) {
  const std::vector<int64_t> all = flattened(map.windows);
  const char *noColour = std::getenv("NO_COLOR");
  const bool colour = isatty(STDOUT_FILENO) && (!noColour || !*noColour);
  llvm::outs() << map.title << "\n" << windowText(map, colour);
  llvm::outs() << llvm::formatv("ACR {0:F4} (sum of windows / heads x {1}), pairs {2:F4} of full attention\n",
                                rt::contextRatio(all, map.positions, placesOf(map)), map.positions,
                                rt::pairRatio(all, map.positions, placesOf(map)));
  for (const auto &[window, count] : rt::windowCounts(all, map.positions))
    llvm::outs() << llvm::formatv("  {0,6}  {1} of {2} heads ({3:P1})\n",
                                  window >= map.positions ? std::string("full") : windowWord(window), count,
                                  all.size(), static_cast<double>(count) / static_cast<double>(all.size()));
}

} // namespace

int weft::windowsCommand(int argc, const char **argv) {
  ModelFlags flags;
  cl::opt<bool> json("json", cl::desc("one JSON object, with the features of each head"),
                     cl::cat(flagCategory()));
  cl::opt<std::string> out("o", cl::desc("write the map as SVG (of a run: RUN/windows.svg)"),
                           cl::value_desc("FILE"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "a map of the windows of a run, a checkpoint or a model: layers by heads",
                  "  weft windows runs/first\n  weft windows runs/first -o map.svg\n  weft windows "
                  "models/gpt2.weft --plan models/plans.weft:listed --json\n"))
    return kUsage;
  Request request = flags.request(true);
  absl::StatusOr<LoadedText> text = loadText(request);
  if (!text.ok())
    return fail(text.status());
  absl::StatusOr<std::unique_ptr<rt::WindowControl>> control =
      recallWindows(*text->program, text->checkpoint);
  if (!control.ok())
    return fail(control.status());
  if (!*control)
    return fail(absl::InvalidArgumentError(absl::StrCat(
        std::string(flags.path), ": no plan gives windows here: every head has the window of the model")));
  const rt::WindowPlan &plan = (*control)->plan();
  WindowMap map{
      absl::StrCat("windows of ", text->checkpoint.empty() ? std::string(flags.path) : text->checkpoint),
      plan.positions, plan.sites, (*control)->windows()};
  if (json)
    printJson(mapJson(map, **control));
  else
    printMap(map);
  std::error_code ignored;
  std::string file = out;
  if (file.empty() && std::filesystem::exists(flags.path + "/run.weft", ignored))
    file = flags.path + "/windows.svg";
  if (file.empty())
    return 0;
  if (absl::Status status = rt::writeFileAtomic(file, windowPicture(map)); !status.ok())
    return fail(status);
  if (!json)
    llvm::outs() << "map written to " << file << "\n";
  return 0;
}

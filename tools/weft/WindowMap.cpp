//===- WindowMap.cpp - Windows of layers and heads as a picture -----------===//

#include "tools/weft/WindowMap.h"

#include "llvm/Support/FormatVariadic.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace weft;

namespace {

/// 0: full, 1: a window of one key; by doublings.
double shortness(int64_t window, int64_t positions) {
  const double all = std::log2(static_cast<double>(std::max<int64_t>(positions, 2)));
  const double part =
      std::log2(static_cast<double>(std::clamp<int64_t>(window, 1, std::max<int64_t>(positions, 2))));
  return 1 - part / all;
}

struct Colour {
  int red, green, blue;
};

/// From pale to dark blue; pruned heads are grey.
Colour colourOf(int64_t window, int64_t positions) {
  if (window == 0)
    return {190, 190, 190};
  const double share =
      std::min(1.0, 1.6 * shortness(window, positions)); // T / 8 of 4096 is a quarter of the way
  auto mix = [&](int from, int to) { return from + static_cast<int>(share * (to - from)); };
  return {mix(224, 8), mix(236, 48), mix(248, 107)};
}

bool isDark(Colour colour) { return colour.red + colour.green + colour.blue < 380; }

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text)
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

size_t mostHeads(const WindowMap &map) {
  size_t most = 0;
  for (const std::vector<int64_t> &windows : map.windows)
    most = std::max(most, windows.size());
  return most;
}

} // namespace

std::string weft::windowWord(int64_t window) {
  return window >= rt::kNoBound ? "full" : window == 0 ? "-" : std::to_string(window);
}

std::string weft::windowText(const WindowMap &map, bool colour) {
  size_t name = 0, cell = 4;
  for (size_t site = 0; site < map.sites.size(); ++site) {
    name = std::max(name, map.sites[site].path.size());
    for (int64_t window : map.windows[site])
      cell = std::max(cell, windowWord(window).size());
  }
  auto padded = [](std::string text, size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
  };
  std::string text = std::string(name, ' ');
  for (size_t head = 0; head < mostHeads(map); ++head)
    text += " " + padded(std::to_string(head), cell) + " ";
  text += "\n";
  for (size_t site = 0; site < map.sites.size(); ++site) {
    text += map.sites[site].path + std::string(name - map.sites[site].path.size(), ' ');
    for (size_t head = 0; head < map.windows[site].size(); ++head) {
      const int64_t window = map.windows[site][head];
      const bool left = map.sites[site].left.contains(static_cast<int64_t>(head));
      const std::string word = padded(windowWord(window), cell) + (left && window > 0 ? "f" : " ");
      const Colour shade = colourOf(window, map.positions);
      text +=
          " " + (colour ? llvm::formatv("\x1b[{0};48;2;{1};{2};{3}m{4}\x1b[0m", isDark(shade) ? "97" : "30",
                                        shade.red, shade.green, shade.blue, word)
                              .str()
                        : word);
    }
    text += "\n";
  }
  return text;
}

std::string weft::windowPicture(const WindowMap &map) {
  constexpr int kCell = 44, kRow = 24, kTop = 54;
  size_t name = 0;
  std::set<int64_t> seen;
  for (size_t site = 0; site < map.sites.size(); ++site) {
    name = std::max(name, map.sites[site].path.size());
    seen.insert(map.windows[site].begin(), map.windows[site].end());
  }
  const int left = 20 + 8 * static_cast<int>(name);
  const int width = std::max(left + kCell * static_cast<int>(mostHeads(map)) + 20, 480);
  const int height = kTop + kRow * static_cast<int>(map.sites.size()) + 60;
  std::string svg = llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                                  "font-family=\"sans-serif\" font-size=\"11\">\n"
                                  "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
                                  "<text x=\"10\" y=\"20\" font-size=\"13\">{2}</text>\n",
                                  width, height, escaped(map.title));
  auto box = [&](int x, int y, int64_t window, bool gone) {
    const Colour shade = colourOf(window, map.positions);
    svg += llvm::formatv(
               "<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" fill=\"rgb({4},{5},{6})\"{7}/>\n"
               "<text x=\"{8}\" y=\"{9}\" text-anchor=\"middle\" fill=\"{10}\">{11}</text>\n",
               x, y, kCell - 2, kRow - 2, shade.red, shade.green, shade.blue,
               gone ? " stroke=\"rgb(200,80,0)\" stroke-width=\"2\"" : "", x + kCell / 2 - 1, y + 15,
               isDark(shade) ? "white" : "black", windowWord(window))
               .str();
  };
  for (size_t head = 0; head < mostHeads(map); ++head)
    svg += llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n",
                         left + kCell * static_cast<int>(head) + kCell / 2, kTop - 8, head)
               .str();
  for (size_t site = 0; site < map.sites.size(); ++site) {
    const int y = kTop + kRow * static_cast<int>(site);
    svg +=
        llvm::formatv("<text x=\"10\" y=\"{0}\">{1}</text>\n", y + 15, escaped(map.sites[site].path)).str();
    for (size_t head = 0; head < map.windows[site].size(); ++head)
      box(left + kCell * static_cast<int>(head), y, map.windows[site][head],
          map.sites[site].left.contains(static_cast<int64_t>(head)));
  }
  int x = left;
  const int legend = height - 40;
  svg += llvm::formatv("<text x=\"10\" y=\"{0}\">window</text>\n", legend + 15).str();
  for (int64_t window : seen) {
    box(x, legend, window, false);
    x += kCell;
  }
  return svg + "</svg>\n";
}

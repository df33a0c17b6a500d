//===- Chart.cpp - Lines and points as an SVG picture ----------------------===//
#include "runtime/measure/Chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::rt {
namespace {

constexpr double kLeft = 70, kTop = 36, kWidth = 470, kHeight = 350;
constexpr const char *kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e",
                                    "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"};

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text)
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  return result;
}

/// One axis: values to pixels.
struct Scale {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double from = 0, to = 1; // pixels
  bool log = false;

  bool shows(double value) const { return std::isfinite(value) && (!log || value > 0); }
  double mapped(double value) const { return log ? std::log10(value) : value; }
  void include(double value) {
    low = std::min(low, mapped(value));
    high = std::max(high, mapped(value));
  }
  void settle() {
    const double room = high > low ? 0.04 * (high - low) : std::max(std::abs(low) * 0.1, 1e-3);
    low -= room;
    high += room;
  }
  double at(double value) const { return from + (mapped(value) - low) / (high - low) * (to - from); }
  std::vector<double> ticks() const;
};

std::vector<double> Scale::ticks() const {
  std::vector<double> result;
  if (log) {
    for (double power = std::floor(low); power <= high; ++power)
      for (double digit : {1.0, 2.0, 5.0})
        if (double value = digit * std::pow(10, power); mapped(value) >= low && mapped(value) <= high)
          result.push_back(value);
    return result;
  }
  const double rough = (high - low) / 6, power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (double digit : {1.0, 2.0, 5.0, 10.0})
    if (digit * power >= rough) {
      step = digit * power;
      break;
    }
  for (double number = std::ceil(low / step); number * step <= high; ++number)
    result.push_back(number == 0 ? 0 : number * step);
  return result;
}

void drawAxes(std::string &out, const Chart &chart, const Scale &x, const Scale &y) {
  for (double tick : x.ticks())
    absl::StrAppendFormat(&out,
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
                          x.at(tick), kTop, x.at(tick), kTop + kHeight, x.at(tick), kTop + kHeight + 16,
                          tick);
  for (double tick : y.ticks())
    absl::StrAppendFormat(&out,
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                          kLeft, y.at(tick), kLeft + kWidth, y.at(tick), kLeft - 6, y.at(tick) + 4, tick);
  absl::StrAppendFormat(
      &out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#444\"/>\n",
      kLeft, kTop, kWidth, kHeight);
  absl::StrAppendFormat(&out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                        kLeft + kWidth / 2, kTop + kHeight + 38, escaped(chart.x));
  absl::StrAppendFormat(
      &out, "<text x=\"16\" y=\"%.1f\" text-anchor=\"middle\" transform=\"rotate(-90 16 %.1f)\">%s</text>\n",
      kTop + kHeight / 2, kTop + kHeight / 2, escaped(chart.y));
}

void drawSeries(std::string &out, const Series &series, size_t index, const Scale &x, const Scale &y) {
  const char *colour = kColours[index % std::size(kColours)];
  const std::string name = escaped(series.name);
  std::string path, marks;
  for (auto [px, py] : series.points) {
    if (!x.shows(px) || !y.shows(py))
      continue;
    absl::StrAppendFormat(&path, "%s%.1f,%.1f", path.empty() ? "" : " ", x.at(px), y.at(py));
    absl::StrAppendFormat(
        &marks, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"><title>%s: %g, %g</title></circle>\n",
        x.at(px), y.at(py), colour, name, px, py);
  }
  absl::StrAppendFormat(&out,
                        "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n%s",
                        path, colour, marks);
  const double place = kTop + 12 + 16 * static_cast<double>(index);
  absl::StrAppendFormat(&out,
                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>"
                        "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                        kLeft + kWidth + 12, place - 9, colour, kLeft + kWidth + 26, place, name);
}

} // namespace

std::string svg(const Chart &chart) {
  Scale x, y;
  x.log = chart.logX;
  x.from = kLeft;
  x.to = kLeft + kWidth;
  y.from = kTop + kHeight;
  y.to = kTop;
  bool any = false;
  for (const Series &series : chart.series)
    for (auto [px, py] : series.points)
      if (x.shows(px) && y.shows(py)) {
        x.include(px);
        y.include(py);
        any = true;
      }
  const double height = std::max(440.0, kTop + 20 + 16 * static_cast<double>(chart.series.size()));
  std::string out = absl::StrFormat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"%.0f\" "
                                    "font-family=\"sans-serif\" font-size=\"11\">\n"
                                    "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                                    "<text x=\"%.1f\" y=\"20\" font-size=\"14\">%s</text>\n",
                                    height, kLeft, escaped(chart.title));
  if (!any)
    return absl::StrCat(out, "<text x=\"70\" y=\"60\">nothing to show</text>\n</svg>\n");
  x.settle();
  y.settle();
  drawAxes(out, chart, x, y);
  for (size_t i = 0; i < chart.series.size(); ++i)
    drawSeries(out, chart.series[i], i, x, y);
  return out + "</svg>\n";
}

} // namespace weft::rt

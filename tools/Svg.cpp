// SPDX-License-Identifier: Apache-2.0
// Draws charts; coordinates are rounded to a tenth of a pixel.
#include "tools/Svg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace sluice {

static constexpr double width = 900, height = 380, left = 80, bottom = 50, top = 10, right = 190;

static const char *colour(size_t i) {
  static const char *const colours[] = {"#1b6ca8", "#c0392b", "#27863d", "#8e44ad", "#d68910",
                                        "#16807a", "#7f6000", "#555",    "#c71585", "#2c3e50"};
  return colours[i % 10];
}

std::string escaped(const std::string &text) {
  std::string out;
  for (char c : text)
    switch (c) {
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '&':
      out += "&amp;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += c;
    }
  return out;
}

std::string reportStyle() {
  return "body{font:15px sans-serif;max-width:1000px;margin:2em auto;padding:0 "
         "1em;color:#222}table{border-collapse:collapse}"
         "td,th{padding:2px 10px;border-bottom:1px solid "
         "#ddd;text-align:left}.n{text-align:right}svg{width:100%;height:auto}"
         "text{font:12px sans-serif;fill:#333}";
}

static double tenth(double v) { return std::round(v * 10) / 10; }

/// A round step that gives about five ticks.
static double tickStep(double range) {
  const double raw = std::max(range, 1e-12) / 5, power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power)
      return factor * power;
  return 10 * power;
}

std::string Chart::lines() const {
  double x0 = std::numeric_limits<double>::max(), x1 = -x0, y1 = 0;
  for (const Series &s : all)
    for (auto [x, y] : s.points) {
      x0 = std::min(x0, x);
      x1 = std::max(x1, x);
      y1 = std::max(y1, y);
    }
  if (x1 < x0)
    return "<p>nothing to draw</p>\n";
  x1 = std::max(x1, x0 + 1e-9);
  y1 = std::max(y1, 1e-12) * 1.05;
  auto px = [&](double x) { return tenth(left + (x - x0) / (x1 - x0) * (width - left - right)); };
  auto py = [&](double y) { return tenth(height - bottom - y / y1 * (height - bottom - top)); };
  std::ostringstream svg;
  svg << "<svg viewBox=\"0 0 " << width << " " << height << "\">\n";
  for (double y = 0; y <= y1; y += tickStep(y1))
    svg << "<line x1=" << left << " x2=" << width - right << " y1=" << py(y) << " y2=" << py(y)
        << " stroke=#ddd /><text x=" << left - 8 << " y=" << py(y) + 4 << " text-anchor=end>" << y << "</text>\n";
  for (double x = std::ceil(x0 / tickStep(x1 - x0)) * tickStep(x1 - x0); x <= x1; x += tickStep(x1 - x0))
    svg << "<text x=" << px(x) << " y=" << height - bottom + 18 << " text-anchor=middle>" << x << "</text>\n";
  svg << "<text x=" << (left + width - right) / 2 << " y=" << height - 8 << " text-anchor=middle>" << escaped(xLabel)
      << "</text><text transform=\"translate(16 " << (height - bottom) / 2 << ") rotate(-90)\" text-anchor=middle>"
      << escaped(yLabel) << "</text>\n";
  for (size_t i = 0; i < all.size(); ++i) {
    svg << "<polyline fill=none stroke-width=2 stroke=\"" << colour(i) << "\" points=\"";
    for (auto [x, y] : all[i].points)
      svg << px(x) << "," << py(y) << " ";
    svg << "\"/><text x=" << width - right + 12 << " y=" << top + 16 * (i + 1) << " style=\"fill:" << colour(i) << "\">"
        << escaped(all[i].name) << "</text>\n";
  }
  svg << "</svg>\n";
  return svg.str();
}

std::string barChart(const std::vector<std::string> &rows, const std::vector<Bar> &bars, double total) {
  const double rowHeight = 34;
  std::ostringstream svg;
  svg << "<svg viewBox=\"0 0 " << width << " " << rowHeight * rows.size() + 30 << "\">\n";
  for (size_t r = 0; r < rows.size(); ++r)
    svg << "<text x=" << left - 8 << " y=" << rowHeight * r + 22 << " text-anchor=end>" << escaped(rows[r])
        << "</text>\n";
  for (const Bar &bar : bars) {
    const double x = left + bar.start / std::max(total, 1e-12) * (width - left - 20),
                 w = (bar.end - bar.start) / std::max(total, 1e-12) * (width - left - 20);
    svg << "<rect x=" << tenth(x) << " y=" << rowHeight * bar.row + 6 << " width=" << std::max(0.2, tenth(w))
        << " height=" << rowHeight - 10 << " fill=\"" << (bar.dark ? "#7b241c" : colour(bar.row))
        << "\" fill-opacity=0.8 stroke=white stroke-width=0.2><title>" << escaped(bar.title) << "</title></rect>\n";
  }
  svg << "<text x=" << left << " y=" << rowHeight * rows.size() + 20 << ">0 s</text><text x=" << width - 20
      << " y=" << rowHeight * rows.size() + 20 << " text-anchor=end>" << total << " s</text>\n</svg>\n";
  return svg.str();
}

} // namespace sluice

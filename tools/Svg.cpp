// SPDX-License-Identifier: Apache-2.0
// Draws charts; coordinates are rounded to a tenth of a pixel.
#include "tools/Svg.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>

namespace sluice {

static constexpr double width = 980, height = 400, left = 78, bottom = 52, top = 14, right = 200;

/// Okabe and Ito's palette, readable without red and green, and four more; lines of later rounds are dotted.
static const char *colour(size_t i) {
  static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b",
                                        "#56b4e9", "#7f3c8d", "#8c564b", "#555555", "#6b8e23"};
  return colours[i % 10];
}

/// Surrogates, the marks that change the direction of writing, and the two non-characters of a plane.
static bool isForbidden(uint32_t code) {
  return (code >= 0xd800 && code < 0xe000) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || (code & 0xfffe) == 0xfffe;
}

/// Length of the UTF-8 sequence at `i`, 0 when it is none or encodes a control character.
static size_t sequenceLength(const std::string &text, size_t i) {
  const unsigned char first = text[i];
  if (first < 0x80)
    return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  if (length == 0 || i + length > text.size())
    return 0;
  uint32_t code = first & (0xff >> (length + 1));
  for (size_t k = 1; k < length; ++k) {
    const unsigned char next = text[i + k];
    if ((next & 0xc0) != 0x80)
      return 0;
    code = code << 6 | (next & 0x3f);
  }
  const uint32_t least = length == 2 ? 0xa0 : length == 3 ? 0x800 : 0x10000;
  return code < least || code > 0x10ffff || isForbidden(code) ? 0 : length;
}

/// What stands for a character that is markup; null for all others.
static const char *entityOf(char c) {
  switch (c) {
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '&':
    return "&amp;";
  case '"':
    return "&quot;";
  case '\'':
    return "&#39;";
  default:
    return nullptr;
  }
}

std::string escaped(const std::string &text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequenceLength(text, i);
    if (length == 0)
      out += "\xef\xbf\xbd";
    else if (const char *entity = entityOf(text[i]))
      out += entity;
    else
      out += text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return out;
}

static double tenth(double v) { return std::round(v * 10) / 10; }

static std::string opening(double h) {
  std::ostringstream svg;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << " " << h
      << "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n<rect width=\"" << width << "\" height=\"" << h
      << "\" fill=\"#fff\"/>\n";
  return svg.str();
}

static std::string text(double x, double y, const char *anchor, const std::string &words) {
  std::ostringstream svg;
  svg << "<text x=\"" << tenth(x) << "\" y=\"" << tenth(y) << "\" text-anchor=\"" << anchor << "\">" << escaped(words)
      << "</text>";
  return svg.str();
}

static std::string line(double x1, double y1, double x2, double y2, const char *stroke) {
  std::ostringstream svg;
  svg << "<line x1=\"" << tenth(x1) << "\" y1=\"" << tenth(y1) << "\" x2=\"" << tenth(x2) << "\" y2=\"" << tenth(y2)
      << "\" stroke=\"" << stroke << "\"/>";
  return svg.str();
}

static std::string number(double v) {
  std::ostringstream out;
  if (std::abs(v) < 1e-12)
    return "0"; // not -0
  if (v != 0 && (std::abs(v) >= 1e7 || std::abs(v) < 1e-3))
    out.precision(3);
  else
    out.precision(8);
  out << v;
  return out.str();
}

namespace {

/// One axis: from data to pixels, and where its ticks are.
class Axis {
public:
  Axis(double low, double high, double from, double to, bool logs)
      : low(low), high(high), from(from), to(to), logs(logs) {}

  double at(double v) const {
    return logs ? from + std::log(v / low) / std::log(high / low) * (to - from)
                : from + (v - low) / (high - low) * (to - from);
  }

  std::vector<double> ticks() const {
    std::vector<double> values;
    if (logs) {
      const bool few = high / low < 50;
      for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10)
        for (double factor : {1.0, 2.0, 5.0})
          if (power * factor >= low * (1 - 1e-9) && power * factor <= high * (1 + 1e-9) && (few || factor == 1))
            values.push_back(power * factor);
      return values;
    }
    const double raw = (high - low) / 6, power = std::pow(10, std::floor(std::log10(raw)));
    double step = 10 * power;
    for (double factor : {5.0, 2.0, 1.0})
      if (raw <= factor * power)
        step = factor * power;
    for (double k = std::ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); ++k)
      values.push_back(k * step);
    return values;
  }

private:
  double low, high, from, to;
  bool logs;
};

struct Range {
  double low = std::numeric_limits<double>::max(), high = -std::numeric_limits<double>::max();
  void take(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  /// With some air around it, and never empty.
  void widen(double share, bool logs) {
    if (logs) {
      low /= 1 + share;
      high *= 1 + share;
      return;
    }
    const double air = std::max({(high - low) * share, 1e-3 * std::abs(high), 1e-12});
    low -= air;
    high += air;
  }
};

} // namespace

/// Colour and pattern of a line, as attributes.
static std::string stroke(const Series &series, size_t index) {
  if (series.style == Series::Style::Dashed)
    return " stroke=\"#000\" stroke-dasharray=\"7 4\"";
  if (series.style == Series::Style::Ground)
    return " stroke=\"#bbb\"";
  return std::string(" stroke=\"") + colour(index) + "\"" + (index >= 10 ? " stroke-dasharray=\"2 3\"" : "");
}

static std::string drawn(const Series &series, size_t index, const Axis &x, const Axis &y) {
  std::ostringstream svg, points;
  for (auto [px, py] : series.points)
    points << tenth(x.at(px)) << "," << tenth(y.at(py)) << " ";
  const bool ground = series.style == Series::Style::Ground;
  if ((ground || series.style == Series::Style::Filled) && !series.points.empty())
    svg << "<polygon fill=\"" << (ground ? "#ddd" : colour(index)) << "\" fill-opacity=\"" << (ground ? 1 : 0.3)
        << "\" points=\"" << tenth(x.at(series.points[0].first)) << "," << tenth(y.at(0)) << " " << points.str()
        << tenth(x.at(series.points.back().first)) << "," << tenth(y.at(0)) << "\"/>\n";
  svg << "<polyline fill=\"none\" stroke-width=\"2\"" << stroke(series, index) << " points=\"" << points.str()
      << "\"/>\n";
  if (series.style == Series::Style::Line)
    for (auto [px, py] : series.points)
      svg << "<circle cx=\"" << tenth(x.at(px)) << "\" cy=\"" << tenth(y.at(py)) << "\" r=\"3\" fill=\""
          << colour(index) << "\"><title>" << escaped(series.name) << ": " << number(px) << ", " << number(py)
          << "</title></circle>\n";
  return svg.str();
}

static std::string legendEntry(const Series &series, size_t index, double y) {
  const double x = width - right + 14;
  std::ostringstream svg;
  svg << "<line x1=\"" << x << "\" y1=\"" << y - 4 << "\" x2=\"" << x + 24 << "\" y2=\"" << y - 4
      << "\" stroke-width=\"" << (series.style == Series::Style::Ground ? 9 : 3) << "\"" << stroke(series, index)
      << "/>" << text(x + 30, y, "start", series.name) << "\n";
  return svg.str();
}

std::string Chart::svg() const {
  std::vector<Series> series = all;
  Range xs, ys;
  for (Series &s : series) {
    if (logs)
      s.points.erase(
          std::remove_if(s.points.begin(), s.points.end(), [](const auto &p) { return p.first <= 0 || p.second <= 0; }),
          s.points.end());
    for (auto [x, y] : s.points) {
      xs.take(x);
      ys.take(y);
    }
  }
  if (xs.high < xs.low)
    return "<p>nothing to draw</p>\n";
  xs.widen(logs ? 0.1 : 0.01, logs);
  ys.widen(logs ? 0.3 : 0.06, logs);
  if (zero)
    ys.low = 0;
  const Axis x(xs.low, xs.high, left, width - right, logs), y(ys.low, ys.high, height - bottom, top, logs);
  std::ostringstream svg;
  svg << opening(std::max(height, top + 18.0 * series.size() + 20));
  for (double v : y.ticks())
    svg << line(left, y.at(v), width - right, y.at(v), "#ddd") << text(left - 8, y.at(v) + 4, "end", number(v)) << "\n";
  for (double v : x.ticks())
    svg << line(x.at(v), top, x.at(v), height - bottom, "#eee")
        << text(x.at(v), height - bottom + 18, "middle", number(v)) << "\n";
  svg << line(left, height - bottom, width - right, height - bottom, "#888")
      << line(left, top, left, height - bottom, "#888")
      << text((left + width - right) / 2, height - 10, "middle", xLabel) << "<text transform=\"translate(15 "
      << (top + height - bottom) / 2 << ") rotate(-90)\" text-anchor=\"middle\">" << escaped(yLabel) << "</text>\n";
  for (size_t i = series.size(); i-- > 0;) // the first lie on top
    svg << drawn(series[i], i, x, y) << legendEntry(series[i], i, top + 18.0 * (i + 1));
  svg << "</svg>\n";
  return svg.str();
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Line charts as SVG files without scripts.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;                         ///< by increasing x
  enum class Style { Line, Dashed, Filled, Ground } style = Style::Line; ///< Ground: a grey area without an outline
};

/// A line chart with a legend at its right.
class Chart {
public:
  Chart(std::string xLabel, std::string yLabel) : xLabel(std::move(xLabel)), yLabel(std::move(yLabel)) {}
  void add(Series series) { all.push_back(std::move(series)); }
  /// The y axis starts at 0 instead of a little below the lowest point.
  Chart &fromZero() { return zero = true, *this; }
  /// Both axes are logarithmic; points at 0 or below are left out.
  Chart &logarithmic() { return logs = true, *this; }
  std::string svg() const;

private:
  std::string xLabel, yLabel;
  std::vector<Series> all;
  bool zero = false, logs = false;
};

/// Text for HTML and SVG. Names come from models: markup is escaped, and bytes that are no printable UTF-8 become
/// U+FFFD.
std::string escaped(const std::string &text);

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Small drawings for reports: line charts and bars by row, as inline SVG without scripts.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// A line chart with axes from 0 (y) and from the smallest x.
class Chart {
public:
  Chart(std::string xLabel, std::string yLabel) : xLabel(std::move(xLabel)), yLabel(std::move(yLabel)) {}
  void add(Series series) { all.push_back(std::move(series)); }
  std::string lines() const;

private:
  std::string xLabel, yLabel;
  std::vector<Series> all;
};

struct Bar {
  int row;
  double start, end;
  std::string title; ///< shown when pointed at
  bool dark;
};

std::string barChart(const std::vector<std::string> &rows, const std::vector<Bar> &bars, double width);

/// Text for HTML.
std::string escaped(const std::string &text);

/// CSS of the reports.
std::string reportStyle();

} // namespace sluice

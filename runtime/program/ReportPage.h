// SPDX-License-Identifier: Apache-2.0
// A report is one HTML file that needs no network: the viewer (Viewer.html), which is the same for all, and data as
// JSON. The data are a list of sections, each of a kind that the viewer draws: facts, text, chart, timeline, table.
// Names in them come from models and are untrusted: the viewer makes text of them, never markup.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

using ReportJson = nlohmann::ordered_json;

/// What every report begins with.
inline constexpr char reportMark[] =
    "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=generator content=sluice>";

using ReportPoints = std::vector<std::pair<double, double>>;

/// Line: with its points; Dashed: a limit or a bound; Filled: an area under a line; Ground: a grey area without one.
enum class ReportLine { Line, Dashed, Filled, Ground };

/// A line chart. Points that are no finite numbers are left out.
class ReportChart {
public:
  ReportChart(const std::string &title, const std::string &x, const std::string &y);
  ReportChart &add(const std::string &name, const ReportPoints &points, ReportLine line = ReportLine::Line);
  /// The y axis starts at 0 instead of near the lowest point.
  ReportChart &fromZero();
  /// Values are shown at the points themselves, not between them.
  ReportChart &onlyAtPoints();
  /// The y axis ends where nearly all values are; the page says what lies above it.
  ReportChart &cutOutliers();
  /// Long lines are drawn with a running mean, whose weight the reader chooses.
  ReportChart &smoothed();
  bool isEmpty() const;
  ReportJson json;
};

/// Rows of bars on a common axis of time.
class ReportTimeline {
public:
  ReportTimeline(const std::string &title, const std::string &unit, const std::vector<std::string> &rows,
                 const std::vector<std::string> &kinds);
  /// `row` and `kind` are indices of the lists above.
  void add(int row, int kind, double start, double end, const std::string &what);
  ReportJson json;
};

/// A table whose cells are strings, or numbers, which stand at the right and are written with `digits` decimals at
/// most.
class ReportTable {
public:
  ReportTable(const std::string &title, const std::vector<std::string> &columns, int digits = 3);
  void add(std::vector<ReportJson> cells);
  /// Numbers in these columns are bytes, shown as KiB, MiB and so on.
  void bytes(const std::vector<int> &columns);
  ReportJson json;
};

class Report {
public:
  explicit Report(const std::string &title);
  void text(const std::string &paragraph);
  void heading(const std::string &words);
  /// Pairs of a name and a value.
  void facts(const std::vector<std::pair<std::string, std::string>> &rows);
  void add(const ReportJson &section);
  /// The whole file.
  std::string page() const;

private:
  ReportJson json;
};

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// JSON inside of <script> must not hold "</script" nor "<!--": '<' is written as an escape, and so is all that is not
// ASCII.

#include "runtime/program/ReportPage.h"

#include <cmath>

namespace sluice {

/// Viewer.html, see Embed.cmake.
extern const char reportViewer[];

/// Where the data stand in it.
static constexpr char dataMark[] = "@DATA@";

ReportChart::ReportChart(const std::string &title, const std::string &x, const std::string &y)
    : json({{"kind", "chart"}, {"title", title}, {"x", x}, {"y", y}, {"series", ReportJson::array()}}) {}

ReportChart &ReportChart::add(const std::string &name, const ReportPoints &points, ReportLine line) {
  static const char *const styles[] = {"line", "dashed", "filled", "ground"};
  ReportJson list = ReportJson::array();
  for (auto [x, y] : points)
    if (std::isfinite(x) && std::isfinite(y))
      list.push_back({x, y});
  if (!list.empty())
    json["series"].push_back({{"name", name}, {"style", styles[static_cast<int>(line)]}, {"points", std::move(list)}});
  return *this;
}

ReportChart &ReportChart::fromZero() {
  json["zero"] = true;
  return *this;
}

ReportChart &ReportChart::onlyAtPoints() {
  json["discrete"] = true;
  return *this;
}

ReportChart &ReportChart::cutOutliers() {
  json["robust"] = true;
  return *this;
}

ReportChart &ReportChart::smoothed() {
  json["smooth"] = true;
  return *this;
}

bool ReportChart::isEmpty() const { return json["series"].empty(); }

ReportTimeline::ReportTimeline(const std::string &title, const std::string &unit, const std::vector<std::string> &rows,
                               const std::vector<std::string> &kinds)
    : json({{"kind", "timeline"},
            {"title", title},
            {"unit", unit},
            {"rows", rows},
            {"kinds", kinds},
            {"bars", ReportJson::array()}}) {}

void ReportTimeline::add(int row, int kind, double start, double end, const std::string &what) {
  json["bars"].push_back({row, kind, start, end, what});
}

ReportTable::ReportTable(const std::string &title, const std::vector<std::string> &columns, int digits)
    : json({{"kind", "table"},
            {"title", title},
            {"columns", columns},
            {"digits", digits},
            {"rows", ReportJson::array()}}) {}

void ReportTable::add(std::vector<ReportJson> cells) { json["rows"].push_back(std::move(cells)); }

void ReportTable::bytes(const std::vector<int> &columns) { json["bytes"] = columns; }

Report::Report(const std::string &title) : json({{"title", title}, {"sections", ReportJson::array()}}) {}

void Report::text(const std::string &paragraph) { add({{"kind", "text"}, {"text", paragraph}}); }
void Report::heading(const std::string &words) { add({{"kind", "heading"}, {"title", words}}); }

void Report::facts(const std::vector<std::pair<std::string, std::string>> &rows) {
  ReportJson section = {{"kind", "facts"}, {"rows", ReportJson::array()}};
  for (const auto &[name, value] : rows)
    section["rows"].push_back(ReportJson::array({name, value}));
  add(section);
}

void Report::add(const ReportJson &section) { json["sections"].push_back(section); }

std::string Report::page() const {
  std::string data;
  for (char c : json.dump(-1, ' ', /*ensure_ascii=*/true, ReportJson::error_handler_t::replace))
    data += c == '<' ? std::string("\\u003c") : std::string(1, c);
  std::string page = reportViewer;
  page.replace(page.find(dataMark), sizeof dataMark - 1, data);
  return reportMark + page;
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Drawings are inline SVG.
#include "tools/PlanReport.h"

#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "tools/Svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

namespace sluice {

using namespace planner;

static constexpr double mebibyte = 1048576.0;

static std::string fixed(double value, int digits) {
  std::ostringstream out;
  out.setf(std::ios::fixed);
  out.precision(digits);
  out << value;
  return out.str();
}

static std::string mebibytes(Bytes bytes) { return fixed(static_cast<double>(bytes) / mebibyte, 1) + " MiB"; }
static std::string size(Bytes bytes) {
  const double kibibytes = static_cast<double>(bytes) / 1024;
  return bytes < 1024       ? std::to_string(bytes) + " B"
         : kibibytes < 1024 ? fixed(kibibytes, 1) + " KiB"
                            : mebibytes(bytes);
}
static std::string milliseconds(Seconds s) { return fixed(1000 * s, s < 0.01 ? 3 : 1) + " ms"; }

/// Points above this many times keep's time would squeeze all others in the chart; the table below it has them.
static constexpr double slowestDrawn = 2;

static std::string curves(const Sweep &sweep) {
  Chart chart("device memory (MiB)", "predicted time of a step (ms)");
  Series bound{"lower bound", {}, Series::Style::Dashed};
  for (const SweepCurve &curve : sweep.curves) {
    Series series{curve.strategy, {}, Series::Style::Line};
    for (const SweepPoint &p : curve.points) {
      const double x = static_cast<double>(p.budget) / mebibyte;
      if (p.plan && p.makespan <= slowestDrawn * sweep.keepSeconds)
        series.points.push_back({x, 1000 * p.makespan});
      if (bound.points.size() < curve.points.size() && std::isfinite(p.bound))
        bound.points.push_back({x, 1000 * p.bound});
    }
    if (!series.points.empty())
      chart.add(series);
  }
  chart.add(bound);
  return chart.svg();
}

/// The points of the curves in figures, because many curves coincide.
static std::string overheads(const Sweep &sweep) {
  const auto full =
      std::find_if(sweep.curves.begin(), sweep.curves.end(), [](const auto &c) { return !c.points.empty(); });
  if (full == sweep.curves.end())
    return "";
  std::ostringstream html;
  html << "<p>Time above keeping everything, by device memory in MiB; an empty cell: infeasible.</p>\n<table "
          "class=wide><tr><th>strategy</th>";
  for (const SweepPoint &p : full->points)
    html << "<th class=n>" << fixed(static_cast<double>(p.budget) / mebibyte, p.budget < 100 * mebibyte ? 1 : 0)
         << "</th>";
  html << "</tr>\n";
  auto cell = [&](Seconds s) { html << "<td class=n>" << fixed(100 * (s / sweep.keepSeconds - 1), 1) << " %</td>"; };
  for (const SweepCurve &curve : sweep.curves) {
    if (curve.points.empty())
      continue;
    html << "<tr><td>" << escaped(curve.strategy) << "</td>";
    for (const SweepPoint &p : curve.points)
      if (p.plan)
        cell(p.makespan);
      else
        html << "<td></td>";
    html << "</tr>\n";
  }
  html << "<tr><td><i>lower bound</i></td>";
  for (const SweepPoint &p : full->points)
    if (std::isfinite(p.bound))
      cell(p.bound);
    else
      html << "<td></td>";
  html << "</tr>\n</table>\n";
  return html.str();
}

/// Strategies without a point, each with its reason.
static std::string remarks(const Sweep &sweep) {
  std::ostringstream html;
  for (const SweepCurve &curve : sweep.curves) {
    std::string why = curve.refused;
    Bytes smallest = 0;
    size_t slow = 0;
    for (const SweepPoint &p : curve.points) {
      smallest = std::max(smallest, p.plan ? 0 : p.smallestMemory);
      slow += p.plan && p.makespan > slowestDrawn * sweep.keepSeconds;
    }
    if (why.empty() &&
        std::none_of(curve.points.begin(), curve.points.end(), [](auto &p) { return p.plan.has_value(); }))
      why = "fits none of these budgets; the smallest that it names is " + mebibytes(smallest);
    if (why.empty() && slow > 0)
      why = std::to_string(slow) + " points above twice keep's time are not drawn";
    if (!why.empty())
      html << "<li><b>" << escaped(curve.strategy) << "</b>: " << escaped(why) << "</li>\n";
  }
  return html.str().empty() ? "" : "<ul>\n" + html.str() + "</ul>\n";
}

static Series liveSeries(const Sweep &sweep, const SweepPoint &point, const Timeline &timeline) {
  const std::vector<Bytes> live = liveBytes(sweep.problem, expand(sweep.problem, *point.plan));
  Series series{"live bytes", {}, Series::Style::Filled};
  size_t step = 0;
  for (const Event &e : timeline.events)
    if ((e.what == Event::What::Run || e.what == Event::What::Rerun) && step < live.size()) {
      const double bytes = static_cast<double>(live[step++]) / mebibyte;
      series.points.push_back({1000 * e.start, bytes});
      series.points.push_back({1000 * e.end, bytes});
    }
  return series;
}

static std::string memoryOverTime(const Sweep &sweep, const SweepPoint &point, const Timeline &timeline) {
  Chart chart("time (ms)", "device memory (MiB)");
  chart.fromZero();
  auto level = [&](const char *name, Bytes bytes, Series::Style style) {
    chart.add({name,
               {{0, static_cast<double>(bytes) / mebibyte},
                {1000 * timeline.makespan, static_cast<double>(bytes) / mebibyte}},
               style});
  };
  level("parameters and states", sweep.problem.base, Series::Style::Ground);
  chart.add(liveSeries(sweep, point, timeline));
  level("budget", point.budget, Series::Style::Dashed);
  return chart.svg();
}

static std::string streams(const Sweep &sweep, const Timeline &timeline) {
  std::vector<Bar> bars;
  bool codec = false;
  for (const Event &e : timeline.events) {
    const bool ran = e.what == Event::What::Run || e.what == Event::What::Rerun;
    const std::string what = ran ? sweep.problem.ops[e.op].name : sweep.problem.buffers[e.buffer].name;
    const Phase phase = ran ? sweep.problem.ops[e.op].phase : Phase::Forward;
    int kind = e.stream == Stream::Compute ? 5 : 4;
    if (ran)
      kind = e.what == Event::What::Rerun ? 1 : phase == Phase::Forward ? 0 : phase == Phase::Backward ? 2 : 3;
    codec = codec || e.stream == Stream::Codec;
    bars.push_back({static_cast<int>(e.stream), kind, 1000 * e.start, 1000 * e.end,
                    what + ": " + milliseconds(e.start) + " to " + milliseconds(e.end)});
  }
  std::vector<std::string> rows = {"compute", "to host", "to device"};
  if (codec)
    rows.push_back("codec");
  return barChart(rows, {"forward", "forward again", "backward", "update", "copy", "encode, decode, invert"}, bars,
                  1000 * timeline.makespan, "time (ms)");
}

static const char *nameOf(Action action) {
  static const char *const names[] = {"keep", "offload", "compress", "encode", "invert", "recompute"};
  return names[static_cast<int>(action)];
}

/// What the plan does with how much, in one line an action.
static std::string totals(const Problem &problem, const Plan &plan) {
  std::map<std::string, std::pair<int, Bytes>> sums;
  for (size_t b = 0; b < problem.buffers.size(); ++b)
    if (problem.buffers[b].activation) {
      auto &[count, bytes] = sums[nameOf(plan.decisions[b].action)];
      ++count;
      bytes += problem.buffers[b].bytes;
    }
  std::ostringstream html;
  html << "<table><tr><th>action</th><th class=n>activations</th><th class=n>MiB</th></tr>\n";
  for (const auto &[action, sum] : sums)
    html << "<tr><td>" << action << "</td><td class=n>" << sum.first << "</td><td class=n>"
         << fixed(static_cast<double>(sum.second) / mebibyte, 2) << "</td></tr>\n";
  html << "</table>\n";
  return html.str();
}

static std::string tensors(const Problem &problem, const Plan &plan) {
  const std::vector<Accesses> accesses = accessesOf(problem);
  auto opName = [&](int op) { return op < 0 ? std::string() : problem.ops[op].name; };
  std::ostringstream table;
  table << "<table><tr><th>tensor</th><th>written by</th><th "
           "class=n>size</th><th>ops</th><th>action</th><th>reason</th><th>away "
           "during ops</th></tr>\n";
  for (size_t b = 0; b < problem.buffers.size(); ++b) {
    const Decision &d = plan.decisions[b];
    const Accesses &a = accesses[b];
    if (!problem.buffers[b].activation)
      continue;
    table << "<tr class=" << nameOf(d.action) << "><td class=t>" << escaped(problem.buffers[b].name)
          << "</td><td class=t>" << escaped(opName(a.firstWrite)) << "</td><td class=n>"
          << size(problem.buffers[b].bytes) << "</td><td>" << a.first << " to " << a.last << "</td><td>"
          << nameOf(d.action) << (d.codec.empty() ? "" : " " + escaped(d.codec)) << "</td><td>" << escaped(d.reason)
          << "</td><td>";
    if (d.freeBefore >= 0)
      table << d.freeBefore << (d.prefetchAfter >= 0 ? " to " + std::to_string(d.prefetchAfter) : " on");
    table << "</td></tr>\n";
  }
  table << "</table>\n";
  return table.str();
}

/// The fastest plan at about half of keep's activations.
static const SweepPoint *shown(const Sweep &sweep) {
  if (sweep.chosen)
    return &*sweep.chosen;
  const SweepPoint *best = nullptr;
  const Bytes half = sweep.problem.base + (sweep.keep.arenaBytes - sweep.problem.base) / 2;
  for (const SweepCurve &curve : sweep.curves)
    for (const SweepPoint &p : curve.points)
      if (p.plan && (!best || std::pair(std::abs(p.budget - half), p.makespan) <
                                  std::pair(std::abs(best->budget - half), best->makespan)))
        best = &p;
  return best;
}

static const char *style() {
  return "body{font:15px/1.45 sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
         "table{border-collapse:collapse;font-size:13px}td,th{padding:3px 10px;border-bottom:1px solid #ddd;"
         "text-align:left;vertical-align:top}td.t{overflow-wrap:anywhere}table.wide{font-size:12px}table.wide "
         "td,table.wide "
         "th{padding:2px 6px}td.n,th.n{text-align:right;white-space:nowrap}"
         "svg{width:100%;height:auto}tr.offload{background:#eef5fb}tr.recompute{background:#fdf1e7}"
         "tr.encode,tr.compress,tr.invert{background:#eaf7f2}";
}

static std::string explained(const Sweep &sweep, const SweepPoint &point) {
  const Timeline timeline = simulate(sweep.problem, *point.plan);
  std::ostringstream html;
  html << "<h2>" << (sweep.chosen ? "Plan of " : "An example: plan of ") << escaped(point.plan->strategy) << " for "
       << mebibytes(point.budget) << "</h2>\n<p>" << milliseconds(point.makespan) << " a step, "
       << fixed(100 * (point.makespan / sweep.keepSeconds - 1), 1) << " % above keeping everything; the arena takes "
       << mebibytes(point.plan->arenaBytes) << ", host memory " << mebibytes(timeline.hostBytes)
       << ". Compute is busy for " << milliseconds(timeline.busy) << ".</p>\n"
       << totals(sweep.problem, *point.plan) << "<h3>Memory over time</h3>\n"
       << memoryOverTime(sweep, point, timeline) << "<h3>Streams</h3>\n<p>Point at a bar for its name.</p>\n"
       << streams(sweep, timeline) << "<h3>Tensors</h3>\n<p>Ops are numbered in program order.</p>\n"
       << tensors(sweep.problem, *point.plan);
  return html.str();
}

std::string htmlOf(const Sweep &sweep) {
  std::ostringstream html;
  html << "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=generator content=sluice><title>"
       << escaped(sweep.title) << "</title>\n<style>" << style() << "</style></head><body>\n<h1>"
       << escaped(sweep.title) << "</h1>\n<p>Planned for the device profile " << escaped(sweep.device)
       << ". Keeping everything takes " << mebibytes(sweep.keep.arenaBytes) << ", of which "
       << mebibytes(sweep.problem.base) << " live through the whole step, and " << milliseconds(sweep.keepSeconds)
       << " a step; no plan of whole tensors goes below " << mebibytes(sweep.floor)
       << ".</p>\n<h2>Time over memory</h2>\n"
       << curves(sweep) << overheads(sweep) << remarks(sweep);
  if (const SweepPoint *point = shown(sweep))
    html << explained(sweep, *point);
  html << "</body></html>\n";
  return html.str();
}

} // namespace sluice

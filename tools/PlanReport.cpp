// SPDX-License-Identifier: Apache-2.0
// Runs the sweep and writes it as CSV and HTML; drawings are inline SVG.
#include "tools/PlanReport.h"

#include "passes/planner/Bounds.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "tools/Svg.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace sluice {

using namespace planner;

static std::string nameAndKnobs(const std::string &text, Options &options) {
  std::istringstream stream(text);
  std::string name, knob;
  std::getline(stream, name, ',');
  while (std::getline(stream, knob, ',')) {
    const size_t equals = std::min(knob.find('='), knob.size());
    options.knobs[knob.substr(0, equals)] = equals < knob.size() ? knob.substr(equals + 1) : "";
  }
  return name;
}

static SweepPoint pointOf(const Problem &problem, Bytes budget, const std::string &name, const Options &options,
                          std::string &refused) {
  SweepPoint point;
  point.budget = budget;
  point.bound = exactBound(problem, budget, {});
  Answer answer = runStrategy(problem, budget, name, options);
  if (auto *why = std::get_if<Refused>(&answer))
    refused = why->reason;
  if (auto *none = std::get_if<Infeasible>(&answer))
    point.smallestMemory = none->smallestMemory;
  if (auto *plan = std::get_if<Plan>(&answer)) {
    point.makespan = simulate(problem, *plan).makespan;
    point.plan = std::move(*plan);
  }
  return point;
}

Sweep sweepOf(Problem problem, const std::string &title, const std::string &device,
              const std::vector<std::string> &strategies, const Options &options, int steps) {
  Sweep sweep;
  sweep.title = title;
  sweep.device = device;
  sweep.problem = std::move(problem);
  Answer keep = runStrategy(sweep.problem, Bytes(1) << 60, "keep");
  if (auto *refused = std::get_if<Refused>(&keep)) {
    sweep.curves.push_back({"keep", refused->reason, {}});
    return sweep;
  }
  sweep.keep = std::get<Plan>(keep);
  sweep.keepSeconds = simulate(sweep.problem, sweep.keep).makespan;
  sweep.floor = memoryFloor(sweep.problem);
  for (const std::string &text : strategies) {
    SweepCurve curve;
    curve.strategy = text;
    Options own = options;
    const std::string name = nameAndKnobs(text, own);
    for (int step = 0; step <= steps && curve.refused.empty(); ++step) {
      const Bytes budget = sweep.floor + (sweep.keep.arenaBytes - sweep.floor) * step / steps;
      curve.points.push_back(
          pointOf(sweep.problem, step == steps ? sweep.keep.arenaBytes : budget / 256 * 256, name, own, curve.refused));
    }
    if (!curve.refused.empty())
      curve.points.clear();
    sweep.curves.push_back(std::move(curve));
  }
  return sweep;
}

std::string csvOf(const Sweep &sweep) {
  std::ostringstream csv;
  csv.precision(9);
  csv << "strategy,budget_bytes,share_of_activations,feasible,makespan_seconds,overhead,arena_bytes,peak_bytes,lower_"
         "bound_seconds,"
         "smallest_memory\n";
  const double activations = static_cast<double>(std::max<Bytes>(1, sweep.keep.arenaBytes - sweep.problem.base));
  for (const SweepCurve &curve : sweep.curves)
    for (const SweepPoint &p : curve.points) {
      csv << '"' << curve.strategy << "\"," << p.budget << "," << (p.budget - sweep.problem.base) / activations << ","
          << (p.plan ? 1 : 0) << ",";
      if (p.plan)
        csv << p.makespan << "," << p.makespan / sweep.keepSeconds - 1 << "," << p.plan->arenaBytes << ","
            << p.plan->peakBytes << "," << p.bound << ",";
      else
        csv << ",,,," << p.bound << "," << p.smallestMemory;
      csv << "\n";
    }
  return csv.str();
}

static std::string curves(const Sweep &sweep) {
  Chart chart("device memory (MiB)", "seconds a step");
  Series bound{"lower bound", {}};
  for (const SweepCurve &curve : sweep.curves) {
    Series series{curve.strategy, {}};
    for (const SweepPoint &p : curve.points) {
      if (p.plan)
        series.points.push_back({p.budget / 1048576.0, p.makespan});
      if (bound.points.size() < curve.points.size() && std::isfinite(p.bound))
        bound.points.push_back({p.budget / 1048576.0, p.bound});
    }
    chart.add(series);
  }
  chart.add(bound);
  return chart.lines();
}

static std::string memoryOverTime(const Sweep &sweep, const Plan &plan, const Timeline &timeline) {
  Chart chart("seconds", "live bytes (MiB)");
  const std::vector<Bytes> live = liveBytes(sweep.problem, expand(sweep.problem, plan));
  Series series{plan.strategy, {}};
  size_t step = 0;
  for (const Event &e : timeline.events)
    if ((e.what == Event::What::Run || e.what == Event::What::Rerun) && step < live.size()) {
      series.points.push_back({e.start, live[step] / 1048576.0});
      series.points.push_back({e.end, live[step++] / 1048576.0});
    }
  chart.add(series);
  return chart.lines();
}

static std::string streams(const Sweep &sweep, const Timeline &timeline) {
  std::vector<Bar> bars;
  for (const Event &e : timeline.events) {
    const bool copy = e.stream != Stream::Compute;
    const std::string what = copy || e.op < 0 ? sweep.problem.buffers[e.buffer].name : sweep.problem.ops[e.op].name;
    bars.push_back({static_cast<int>(e.stream), e.start, e.end, what, e.what == Event::What::Rerun});
  }
  return barChart({"compute", "to host", "to device", "codec"}, bars, timeline.makespan);
}

static const char *nameOf(Action action) {
  static const char *const names[] = {"keep", "offload", "compress", "encode", "invert", "recompute"};
  return names[static_cast<int>(action)];
}

static std::string tensors(const Problem &problem, const Plan &plan) {
  std::ostringstream table;
  table << "<table><tr><th>tensor</th><th>bytes</th><th>action</th><th>reason</th><th>away during ops</th></tr>\n";
  for (size_t b = 0; b < problem.buffers.size(); ++b) {
    const Decision &d = plan.decisions[b];
    if (!problem.buffers[b].activation)
      continue;
    table << "<tr><td>" << escaped(problem.buffers[b].name) << "</td><td class=n>" << problem.buffers[b].bytes
          << "</td><td>" << nameOf(d.action) << (d.codec.empty() ? "" : " " + d.codec) << "</td><td>"
          << escaped(d.reason) << "</td><td>";
    if (d.freeBefore >= 0)
      table << d.freeBefore << (d.prefetchAfter >= 0 ? " to " + std::to_string(d.prefetchAfter) : " on");
    table << "</td></tr>\n";
  }
  table << "</table>\n";
  return table.str();
}

/// The fastest plan at about half of the activations that moves or drops something.
static const SweepPoint *shown(const Sweep &sweep) {
  const SweepPoint *best = nullptr;
  const Bytes half = sweep.problem.base + (sweep.keep.arenaBytes - sweep.problem.base) / 2;
  for (const SweepCurve &curve : sweep.curves)
    for (const SweepPoint &p : curve.points)
      if (p.plan && (!best || std::pair(std::abs(p.budget - half), p.makespan) <
                                  std::pair(std::abs(best->budget - half), best->makespan)))
        best = &p;
  return best;
}

std::string htmlOf(const Sweep &sweep) {
  std::ostringstream html;
  html << "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>" << escaped(sweep.title)
       << "</title>\n<style>" << reportStyle() << "</style></head><body>\n<h1>" << escaped(sweep.title)
       << "</h1>\n<p>Device profile " << escaped(sweep.device) << ". Keeping everything needs " << sweep.keep.arenaBytes
       << " bytes, of which " << sweep.problem.base << " live through the whole step, and takes " << sweep.keepSeconds
       << " s; no plan of whole tensors goes below " << sweep.floor << " bytes.</p>\n<h2>Time over memory</h2>\n"
       << curves(sweep);
  for (const SweepCurve &curve : sweep.curves)
    if (!curve.refused.empty())
      html << "<p>" << escaped(curve.strategy) << ": " << escaped(curve.refused) << "</p>\n";
  if (const SweepPoint *point = shown(sweep)) {
    const Timeline timeline = simulate(sweep.problem, *point->plan);
    html << "<h2>Plan of " << escaped(point->plan->strategy) << " at " << point->budget << " bytes</h2>\n<p>"
         << point->makespan << " s, " << 100 * (point->makespan / sweep.keepSeconds - 1) << " % above keep; arena "
         << point->plan->arenaBytes << " bytes.</p>\n<h3>Memory over time</h3>\n"
         << memoryOverTime(sweep, *point->plan, timeline) << "<h3>Streams</h3>\n<p>Darker: run again.</p>\n"
         << streams(sweep, timeline) << "<h3>Tensors</h3>\n"
         << tensors(sweep.problem, *point->plan);
  }
  html << "</body></html>\n";
  return html.str();
}

} // namespace sluice

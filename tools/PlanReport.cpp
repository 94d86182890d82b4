// SPDX-License-Identifier: Apache-2.0
// Sections for the viewer of reports, which draws them.
#include "tools/PlanReport.h"

#include "passes/planner/Errors.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"
#include "runtime/program/ReportPage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

namespace sluice {

using namespace planner;

static constexpr double mebibyte = 1048576.0;

static double inMebibytes(Bytes bytes) { return static_cast<double>(bytes) / mebibyte; }

static std::string fixed(double value, int digits) {
  std::ostringstream out;
  out.setf(std::ios::fixed);
  out.precision(digits);
  out << value;
  return out.str();
}

/// So that neighbouring budgets of small models differ, too.
static std::string sizeText(Bytes bytes) {
  if (bytes < 10 * mebibyte)
    return fixed(static_cast<double>(bytes) / 1024, 0) + " KiB";
  return fixed(inMebibytes(bytes), bytes < 100 * mebibyte ? 1 : 0) + " MiB";
}
static std::string milliseconds(Seconds s) { return fixed(1000 * s, s < 0.01 ? 3 : 1) + " ms"; }

/// Points above this many times keep's time would squeeze all others in the chart; the table below it has them.
static constexpr double slowestDrawn = 2;

/// The bound has a point at each budget of the curve with the most budgets.
static ReportJson curves(const Sweep &sweep) {
  ReportChart chart("Time over memory", "device memory (MiB)", "predicted time of a step (ms)");
  chart.onlyAtPoints(); // between two budgets, and beside them, nothing is known
  ReportPoints bound;
  for (const SweepCurve &curve : sweep.curves) {
    ReportPoints points;
    for (const SweepPoint &p : curve.points) {
      if (p.plan && p.makespan <= slowestDrawn * sweep.keepSeconds)
        points.push_back({inMebibytes(p.budget), 1000 * p.makespan});
      if (bound.size() < curve.points.size())
        bound.push_back({inMebibytes(p.budget), 1000 * p.bound});
    }
    chart.add(curve.strategy, points);
  }
  return chart.add("lower bound", bound, ReportLine::Dashed).json;
}

/// By how many percent the fastest plan for a budget of the curves exceeds the bound; empty without a plan.
static ReportJson gapAt(const Sweep &sweep, size_t budget) {
  double least = HUGE_VAL;
  for (const SweepCurve &curve : sweep.curves)
    if (budget < curve.points.size() && curve.points[budget].plan)
      least = std::min(least, curve.points[budget].makespan / curve.points[budget].bound);
  return std::isfinite(least) ? ReportJson(100 * (least - 1)) : ReportJson();
}

/// The points of the curves in figures, because many curves coincide.
static void addOverheads(Report &report, const Sweep &sweep) {
  const auto full =
      std::find_if(sweep.curves.begin(), sweep.curves.end(), [](const auto &c) { return !c.points.empty(); });
  if (full == sweep.curves.end())
    return;
  std::vector<std::string> columns = {"strategy"};
  for (const SweepPoint &p : full->points)
    columns.push_back(sizeText(p.budget));
  ReportTable table("Time above keeping everything, in percent, by device memory", columns, 1);
  auto percent = [&](Seconds s) { return 100 * (s / sweep.keepSeconds - 1); };
  for (const SweepCurve &curve : sweep.curves) {
    if (curve.points.empty())
      continue;
    std::vector<ReportJson> cells = {curve.strategy};
    for (const SweepPoint &p : curve.points)
      cells.push_back(p.plan ? ReportJson(percent(p.makespan)) : ReportJson());
    table.add(std::move(cells));
  }
  std::vector<ReportJson> bounds = {"lower bound"}, gaps = {"fastest above it"};
  for (size_t i = 0; i < full->points.size(); ++i)
    bounds.push_back(std::isfinite(full->points[i].bound) ? ReportJson(percent(full->points[i].bound)) : ReportJson()),
        gaps.push_back(gapAt(sweep, i));
  table.add(std::move(bounds));
  table.add(std::move(gaps));
  report.add(table.json);
  report.text("An empty cell: infeasible.");
}

/// Why a curve has no points, or not all; empty where it has.
static std::string reasonOf(const Sweep &sweep, const SweepCurve &curve) {
  if (!curve.refused.empty())
    return curve.refused;
  Bytes smallest = 0;
  size_t slow = 0;
  bool fits = false;
  for (const SweepPoint &p : curve.points) {
    smallest = std::max(smallest, p.plan ? 0 : p.smallestMemory);
    slow += p.plan && p.makespan > slowestDrawn * sweep.keepSeconds;
    fits = fits || p.plan.has_value();
  }
  if (!fits)
    return "fits none of these budgets; the smallest that it names is " + sizeText(smallest);
  if (slow > 0)
    return std::to_string(slow) + (slow == 1 ? " point above twice keep's time is not drawn"
                                             : " points above twice keep's time are not drawn");
  return "";
}

/// Strategies without a point, those with the same reason together.
static void addRemarks(Report &report, const Sweep &sweep) {
  std::vector<std::pair<std::string, std::string>> rows; // strategies, reason
  for (const SweepCurve &curve : sweep.curves) {
    std::string why = reasonOf(sweep, curve);
    const std::string subject = "strategy '" + curve.strategy + "' ";
    if (why.compare(0, subject.size(), subject) == 0)
      why.erase(0, subject.size());
    if (why.empty())
      continue;
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const auto &row) { return row.second == why; });
    if (same == rows.end())
      rows.push_back({curve.strategy, why});
    else
      same->first += ", " + curve.strategy;
  }
  ReportTable table("Strategies that are not drawn, or not wholly", {"strategies", "reason"});
  for (const auto &[strategies, why] : rows)
    table.add({strategies, why});
  if (!rows.empty())
    report.add(table.json);
}

/// The fastest plans, by rising budgets, of mixed (what is compiled without --strategy is not slower), or of all where
/// that was not asked for; the first is the smallest that fits.
static std::vector<const SweepPoint *> bestPoints(const Sweep &sweep) {
  const bool mixed = std::any_of(sweep.curves.begin(), sweep.curves.end(),
                                 [](const auto &curve) { return curve.strategy == "mixed"; });
  std::map<Bytes, const SweepPoint *> best;
  for (const SweepCurve &curve : sweep.curves)
    for (const SweepPoint &p : curve.points) {
      if (!p.plan || (mixed && curve.strategy != "mixed"))
        continue;
      const SweepPoint *&place = best[p.budget];
      if (!place || p.makespan < place->makespan)
        place = &p;
    }
  std::vector<const SweepPoint *> points;
  for (const auto &[budget, point] : best)
    points.push_back(point);
  return points;
}

/// Whole percents of what keeping everything takes, as --memory-budget takes them, not below the budget.
static int64_t percentOf(const Sweep &sweep, Bytes budget) {
  return (100 * budget + sweep.keep.arenaBytes - 1) / sweep.keep.arenaBytes;
}

/// Which budget to take: for each price in time the smallest.
static void addBudgets(Report &report, const Sweep &sweep) {
  const std::vector<const SweepPoint *> points = bestPoints(sweep);
  if (points.empty() || sweep.keepSeconds <= 0)
    return;
  constexpr double usual = 10;
  ReportTable table("Budgets to choose from",
                    {"a step takes at most", "--memory-budget", "device memory", "saved %", "ms a step", "strategy"});
  table.bytes({2});
  const SweepPoint *before = nullptr, *recommended = nullptr;
  const auto add = [&](const std::string &price, const SweepPoint &point) {
    const int64_t percent = percentOf(sweep, point.budget);
    table.add({price, std::to_string(percent) + "%", point.budget, 100 - percent, 1000 * point.makespan,
               point.plan->strategy});
    before = &point;
  };
  for (const double most : {0.5, 2.0, 5.0, usual, 25.0, 50.0, 100.0}) {
    const auto found = std::find_if(points.begin(), points.end(), [&](const SweepPoint *p) {
      return p->makespan <= (1 + most / 100) * sweep.keepSeconds;
    });
    if (found == points.end())
      continue;
    // The list rises: the last one that is not beyond `usual` stays.
    if (most <= usual)
      recommended = *found;
    if (*found != before)
      add(most < 1 ? "as without a budget" : fixed(most, 0) + " % longer", **found);
  }
  if (points.front() != before)
    add("the smallest that fits", *points.front());
  if (recommended && recommended->budget < sweep.keep.arenaBytes)
    report.text("Recommended to begin with: --memory-budget=" + std::to_string(percentOf(sweep, recommended->budget)) +
                "%, " + sizeText(recommended->budget) + ": a step takes " +
                fixed(100 * (recommended->makespan / sweep.keepSeconds - 1), 1) + " % longer than without a budget.");
  else
    report.text("No smaller budget is recommended: each makes a step more than " + fixed(usual, 0) + " % longer.");
  report.add(table.json);
}

static ReportPoints livePoints(const Sweep &sweep, const SweepPoint &point, const Timeline &timeline) {
  const std::vector<Bytes> live = liveBytes(sweep.problem, expand(sweep.problem, *point.plan));
  ReportPoints points;
  size_t step = 0;
  for (const Event &e : timeline.events)
    if ((e.what == Event::What::Run || e.what == Event::What::Rerun) && step < live.size()) {
      const double bytes = inMebibytes(live[step++]);
      points.push_back({1000 * e.start, bytes});
      points.push_back({1000 * e.end, bytes});
    }
  return points;
}

static ReportJson memoryOverTime(const Sweep &sweep, const SweepPoint &point, const Timeline &timeline) {
  const double end = 1000 * timeline.makespan, base = inMebibytes(sweep.problem.base),
               budget = inMebibytes(point.budget);
  return ReportChart("Memory over time", "time (ms)", "device memory (MiB)")
      .fromZero()
      .add("parameters and states", {{0, base}, {end, base}}, ReportLine::Ground)
      .add("live bytes", livePoints(sweep, point, timeline), ReportLine::Filled)
      .add("budget", {{0, budget}, {end, budget}}, ReportLine::Dashed)
      .json;
}

/// Rows for streams that do something, and for the copies' own, whose emptiness says something as well.
static ReportJson streams(const Sweep &sweep, const Timeline &timeline) {
  std::vector<std::string> rows;
  auto rowOf = forEachStream(0);
  for (const StreamFacts &stream : streamTable) {
    rowOf[indexOf(stream.id)] = static_cast<int>(rows.size());
    const ArenaFacts &home = factsOf(sweep.problem.home);
    if (stream.id == home.out || stream.id == home.in ||
        std::any_of(timeline.events.begin(), timeline.events.end(),
                    [&](const Event &e) { return e.stream == stream.id; }))
      rows.push_back(stream.label);
  }
  ReportTimeline chart("Streams", "ms", rows,
                       {"forward", "forward again", "backward", "update", "copy", "encode, decode, invert"});
  for (const Event &e : timeline.events) {
    const bool ran = e.what == Event::What::Run || e.what == Event::What::Rerun || e.what == Event::What::Exchange;
    const std::string what = ran ? sweep.problem.ops[e.op].name : sweep.problem.buffers[e.buffer].name;
    const Phase phase = ran ? sweep.problem.ops[e.op].phase : Phase::Forward;
    int kind = e.stream == Stream::Compute ? 5 : 4;
    if (ran && e.what != Event::What::Exchange)
      kind = e.what == Event::What::Rerun ? 1 : phase == Phase::Forward ? 0 : phase == Phase::Backward ? 2 : 3;
    chart.add(rowOf[indexOf(e.stream)], kind, 1000 * e.start, 1000 * e.end, what);
  }
  return chart.json;
}

/// What the plan does with how much, in one line an action.
static ReportJson totals(const Problem &problem, const Plan &plan) {
  std::map<std::string, std::pair<int, Bytes>> sums;
  for (size_t b = 0; b < problem.buffers.size(); ++b)
    if (problem.buffers[b].activation || plan.decisions[b].action != Action::Keep) {
      auto &[count, bytes] = sums[actionName(plan.decisions[b].action)];
      ++count;
      bytes += problem.buffers[b].bytes;
    }
  ReportTable table("Actions", {"action", "tensors", "bytes"});
  table.bytes({2});
  for (const auto &[action, sum] : sums)
    table.add({action, sum.first, sum.second});
  return table.json;
}

/// The ops during which the bytes are gone.
static std::string awayText(const Absence &absence, int ops) {
  const std::string from = std::to_string(absence.freeBefore), to = std::to_string(absence.returnAfter);
  const bool begins = absence.returnAfter >= 0, ends = absence.freeBefore < ops;
  switch (absence.kind()) {
  case AbsenceKind::Between:
    return from + (begins ? " to " + to : " on");
  case AbsenceKind::AroundEnd:
    return (begins ? "up to " + to : "") + (begins && ends ? ", " : "") + (ends ? from + " on" : "");
  }
  return {};
}

static ReportJson tensors(const Problem &problem, const Plan &plan) {
  const std::vector<Accesses> accesses = accessesOf(problem);
  auto opName = [&](int op) { return op < 0 ? std::string() : problem.ops[op].name; };
  ReportTable table("Tensors", {"tensor", "written by", "bytes", "first op", "last op", "action", "reason",
                                "away during ops", "error of gradients"});
  table.bytes({2});
  for (size_t b = 0; b < problem.buffers.size(); ++b) {
    const Decision &d = plan.decisions[b];
    const Accesses &a = accesses[b];
    if (!problem.buffers[b].activation && d.action == Action::Keep)
      continue;
    std::string away;
    for (const Absence &absence : d.absences)
      away += (away.empty() ? "" : ", ") + awayText(absence, static_cast<int>(problem.ops.size()));
    table.add({problem.buffers[b].name, opName(a.firstWrite), problem.buffers[b].bytes, a.first, a.last,
               decisionName(d), d.reason, away,
               problem.errorBudget && errorOf(problem.buffers[b], d) > 0 ? ReportJson(errorOf(problem.buffers[b], d))
                                                                         : ReportJson()});
  }
  return table.json;
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

static void addExplanation(Report &report, const Sweep &sweep, const SweepPoint &point) {
  const Timeline timeline = simulate(sweep.problem, *point.plan);
  report.heading((sweep.chosen ? "Plan of " : "An example: plan of ") + point.plan->strategy + " for " +
                 sizeText(point.budget));
  report.text(milliseconds(point.makespan) + " a step, " + fixed(100 * (point.makespan / sweep.keepSeconds - 1), 1) +
              " % above keeping everything; the arena takes " + sizeText(point.plan->arenaBytes) + ", " +
              factsOf(sweep.problem.home).label + " " + sizeText(timeline.hostBytes) + ". Compute is busy for " +
              milliseconds(timeline.busy) + ".");
  if (sweep.problem.errorBudget)
    report.text("Lossy actions are expected to change the gradients by " +
                shortNumber(totalError(sweep.problem, *point.plan)) +
                " of themselves, the root of the sum of squares of " + "all tensors' errors; the error budget is " +
                shortNumber(*sweep.problem.errorBudget) + "." +
                (sweep.problem.errorsAreDefaults ? " Errors that no profile says are what codecs usually do." : ""));
  report.add(totals(sweep.problem, *point.plan));
  report.add(memoryOverTime(sweep, point, timeline));
  report.add(streams(sweep, timeline));
  report.add(tensors(sweep.problem, *point.plan));
  report.text("Ops are numbered in program order.");
}

std::string htmlOf(const Sweep &sweep) {
  Report report(sweep.title);
  report.text("Planned for the device profile " + sweep.device + ". Keeping everything takes " +
              sizeText(sweep.keep.arenaBytes) + ", of which " + sizeText(sweep.problem.base) +
              " live through the whole step, and " + milliseconds(sweep.keepSeconds) +
              " a step; no plan of whole tensors goes below " + sizeText(sweep.floor) + ".");
  if (!sweep.options.executable.has(Action::Offload))
    report.text("Memory is all that the program plans, the slots of the next batch included, so that nothing is "
                "offloaded: --host-budget=SIZE gives that a memory of its own.");
  addBudgets(report, sweep);
  report.add(curves(sweep));
  addOverheads(report, sweep);
  addRemarks(report, sweep);
  if (const SweepPoint *point = shown(sweep))
    addExplanation(report, sweep, *point);
  return report.page();
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Runs strategies over budgets and writes what becomes of each as a table.
#include "tools/Sweep.h"

#include "passes/planner/Bounds.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"

#include <algorithm>
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

std::vector<std::string> sweepStrategies() {
  std::vector<std::string> names = {"mixed"}; // drawn first, so that its line lies on top
  for (const Strategy &strategy : strategies())
    if (strategy.name != "auto" && strategy.name != "mixed")
      names.push_back(strategy.name);
  return names;
}

/// A published strategy may do more than programs can execute: its curve is a comparison, not a promise. Without an
/// arena to offload to, none may offload.
SweepPoint pointOf(const Sweep &sweep, Bytes budget, const std::string &strategy) {
  Options options = sweep.options;
  options.knobs.clear();
  const std::string name = nameAndKnobs(strategy, options);
  if (name != "mixed" && name != "auto") {
    const bool offloads = sweep.options.executable.has(Action::Offload); // else there is nowhere to offload to
    options.executable = options.allowLossy = allActions();
    if (!offloads)
      options.executable.remove(Action::Offload);
  }
  SweepPoint point;
  point.budget = budget;
  point.bound = actionBound(sweep.problem, budget, allowedActions(options));
  Answer answer = runStrategy(sweep.problem, budget, name, options);
  if (auto *why = std::get_if<Refused>(&answer))
    point.refused = why->reason;
  if (auto *none = std::get_if<Infeasible>(&answer))
    point.smallestMemory = none->smallestMemory;
  if (auto *plan = std::get_if<Plan>(&answer)) {
    point.makespan = simulate(sweep.problem, *plan).makespan;
    point.plan = std::move(*plan);
  }
  return point;
}

/// keepSeconds stays 0 where keep is refused, by which addCurves() knows.
Sweep sweepOf(Problem problem, const Options &options, const std::string &title, const std::string &device) {
  Sweep sweep;
  sweep.options = options;
  sweep.title = title;
  sweep.device = device;
  sweep.problem = std::move(problem);
  Answer keep = runStrategy(sweep.problem, noBudget, "keep");
  if (auto *refused = std::get_if<Refused>(&keep)) {
    sweep.curves.push_back({"keep", refused->reason, {}});
    return sweep;
  }
  sweep.keep = std::get<Plan>(keep);
  sweep.keepSeconds = simulate(sweep.problem, sweep.keep).makespan;
  sweep.floor = memoryFloor(sweep.problem);
  return sweep;
}

/// Budgets below that of keep are multiples of 256 bytes, as offsets are.
void addCurves(Sweep &sweep, const std::vector<std::string> &strategies, int steps) {
  if (sweep.keepSeconds == 0)
    return; // not even keep could be planned
  for (const std::string &text : strategies) {
    SweepCurve curve;
    curve.strategy = text;
    // From the top: that budget shows first whether the strategy plans this problem at all.
    for (int step = steps; step >= 0 && curve.refused.empty(); --step) {
      const Bytes budget = sweep.floor + (sweep.keep.arenaBytes - sweep.floor) * step / steps;
      curve.points.push_back(pointOf(sweep, step == steps ? sweep.keep.arenaBytes : budget / 256 * 256, text));
      curve.refused = curve.points.back().refused;
    }
    std::reverse(curve.points.begin(), curve.points.end());
    if (!curve.refused.empty())
      curve.points.clear();
    sweep.curves.push_back(std::move(curve));
  }
}

/// A cell of CSV: quotes are doubled.
static std::string quoted(const std::string &text) {
  std::string cell = "\"";
  for (char c : text)
    cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
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
      csv << quoted(curve.strategy) << "," << p.budget << "," << (p.budget - sweep.problem.base) / activations << ","
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

} // namespace sluice

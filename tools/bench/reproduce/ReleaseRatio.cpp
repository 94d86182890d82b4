// SPDX-License-Identifier: Apache-2.0
// dynprog with whole-tensor release against the optimum with partial release, on random chains.
#include "tools/bench/reproduce/Pages.h"

#include "passes/strategies/Registry.h"
#include "test/unit/planner/RandomChains.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace sluice::bench {

using namespace planner;

namespace {

std::string cell(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", v);
  return text;
}

/// Ratios of both makespans over `chains` chains with L = last, where the partial optimum exists and must offload.
std::vector<double> ratiosOf(int last, int chains) {
  std::vector<double> ratios;
  for (unsigned seed = 0; static_cast<int>(ratios.size()) < chains; ++seed) {
    const Chain c = test::randomChain(seed, last);
    const double floor = chainFloor(c), peak = chainPeak(c);
    const double memory = floor + (seed % 10) / 10.0 * (peak - floor);
    if (memory >= peak)
      continue;
    const ChainAnswer whole = runStrategy(c, memory, Release::Whole, "dynprog");
    const ChainAnswer partial = runStrategy(c, memory, Release::Partial, "dynprog");
    const auto *w = std::get_if<ChainPlan>(&whole), *p = std::get_if<ChainPlan>(&partial);
    if (w && p)
      ratios.push_back(w->timeline.makespan / p->timeline.makespan);
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

} // namespace

void releaseRatio(std::ostream &page) {
  page << "# Experiment 4: whole-tensor release against the partial optimum\n\n"
          "Random chains of small integers (test/unit/planner/RandomChains.h), budgets from the chain's smallest in "
          "steps of a tenth of\n"
          "its range. With partial release dynprog is the optimum over ordered schedules (equal to the linear program "
          "of the unit test\n"
          "`DynProgOracle`). With whole release its best sets are simulated as they run. Entries: whole makespan over "
          "partial makespan.\n\n"
          "| stages | chains | equal | mean | median | 95 % | largest |\n|---|---|---|---|---|---|---|\n";
  for (int last : {2, 4, 6, 9, 14, 19}) {
    const int chains = last < 10 ? 400 : 200;
    const std::vector<double> ratios = ratiosOf(last, chains);
    double sum = 0;
    int equal = 0;
    for (double r : ratios) {
      sum += r;
      equal += r <= 1 + 1e-9;
    }
    page << "| " << last + 1 << " | " << chains << " | " << cell(100.0 * equal / chains) << " % | "
         << cell(sum / chains) << " | " << cell(ratios[chains / 2]) << " | " << cell(ratios[chains * 95 / 100]) << " | "
         << cell(ratios.back()) << " |\n";
  }
}

} // namespace sluice::bench

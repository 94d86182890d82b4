// SPDX-License-Identifier: Apache-2.0
// Experiments 1 to 3: chain strategies over budgets on the V100-PCIe profile.
#include "tools/bench/reproduce/Networks.h"
#include "tools/bench/reproduce/Pages.h"

#include "passes/planner/Bounds.h"
#include "passes/strategies/DynProg.h"
#include "passes/strategies/Registry.h"
#include "passes/strategies/Stages.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

namespace sluice::bench {

using namespace planner;

namespace {

const char *const networks[] = {"resnet18",    "resnet34",    "resnet50",    "resnet101",   "resnet152",
                                "densenet121", "densenet161", "densenet169", "densenet201", "inception_v3"};

Chain chainOf(const std::string &name, const Profile &profile) {
  NetworkOptions options;
  options.encodings = false; // the paper knows none
  options.nested = true;
  return Stages(network(name, profile, 32, name == "inception_v3" ? 299 : 224, options)).tensorChain();
}

std::string cell(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", v);
  return text;
}

Profile v100() { return *loadProfile("v100-pcie"); }

/// The bytes that are missing at the peak have left before it and return after it.
Seconds windowBound(const Chain &chain, double memory) {
  const Seconds compute = chainCompute(chain);
  Seconds bound = compute, forward = 0, backward = compute;
  for (int i = 0; i <= chain.last(); ++i) {
    backward -= chain.uB[i];
    for (auto [bytes, before] : {std::pair(forwardBytes(chain, i), forward), {backwardBytes(chain, i), backward}})
      bound = std::max(bound, splitBound(before, compute - before, bytes - memory,
                                         {{bytes, 1 / chain.bandwidth, 1 / chain.bandwidth}}, {}));
    forward += chain.uF[i];
  }
  return bound;
}

/// What dynprog's ratio can be held against: the optimum with partial release, and the bound by windows.
void certificates(std::ostream &page, const Chain &chain) {
  const double floor = chainFloor(chain), peak = chainPeak(chain);
  std::string partial = "| partial |", window = "| window |";
  for (int step = 0; step <= 10; ++step) {
    const double memory = floor + step / 10.0 * (peak - floor), bound = chainBound(chain, memory);
    bool exact = true;
    const std::vector<DynProgSet> sets = dynprogSets(chain, memory, 1, 0, exact);
    partial += sets.empty() ? " - |" : " " + std::string(exact ? "" : "~") + cell(sets[0].makespan / bound) + " |";
    window += " " + cell(std::max(1.0, windowBound(chain, memory) / bound)) + " |";
  }
  page << partial << "\n" << window << "\n";
}

} // namespace

void chainRatios(std::ostream &page) {
  page
      << "# Experiment 1: makespan over lower bound (Beaumont et al., Euro-Par 2020, Figure 2)\n\n"
         "Batch 32, fp32, V100-PCIe profile, whole-tensor release; budgets at equal steps from the chain's smallest "
         "feasible one (0 %) to\n"
         "its peak (100 %). The paper's text: dynprog always below 1.2; greedy and dynprog beat vdnn in all cases; "
         "tflms absent at low\n"
         "memory. Its plots carry no numbers, so orderings and the 1.2 are what can be compared. `-`: infeasible.\n"
         "Every saved tensor is an x of the chain, so it leaves and returns as a whole, alone. `partial`: dynprog with "
         "partial release,\n"
         "the optimum over ordered schedules unless a `~` says that states were sampled; no ordered schedule of whole "
         "tensors is faster.\n"
         "`window`: what no schedule at all can beat: the missing bytes leave before the peak and return after it.\n\n";
  const Profile profile = v100();
  double worst = 0;
  int wins = 0, cells = 0, aboveGreedy = 0;
  for (const char *name : networks) {
    const Chain chain = chainOf(name, profile);
    const double floor = chainFloor(chain), peak = chainPeak(chain);
    page << "## " << name << ", " << chain.uF.size() << " tensors\n\n| strategy |";
    for (int step = 0; step <= 10; ++step)
      page << " " << 10 * step << " % |";
    page << "\n|---|" << std::string(11 * 4, '-') << "|\n";
    std::map<std::string, std::vector<double>> rows;
    for (const char *strategy : {"dynprog", "greedy", "vdnn", "autoswap", "tflms"}) {
      page << "| " << strategy << " |";
      for (int step = 0; step <= 10; ++step) {
        const double memory = floor + step / 10.0 * (peak - floor);
        const ChainAnswer answer = runStrategy(chain, memory, Release::Whole, strategy);
        const auto *plan = std::get_if<ChainPlan>(&answer);
        const double ratio = plan ? plan->timeline.makespan / chainBound(chain, memory) : -1;
        rows[strategy].push_back(ratio);
        page << " " << (plan ? cell(ratio) : "-") << " |";
      }
      page << "\n";
    }
    certificates(page, chain);
    page << "\n";
    for (int step = 0; step <= 10; ++step) {
      const double d = rows["dynprog"][step], v = rows["vdnn"][step];
      worst = std::max(worst, d);
      ++cells;
      wins += v < 0 || d <= v + 1e-9;
      aboveGreedy += d > rows["greedy"][step] + 1e-9;
    }
  }
  page << "Worst dynprog ratio: " << cell(worst) << " (paper: below 1.2). dynprog at most vdnn in " << wins << " of "
       << cells << " cells; above greedy in " << aboveGreedy << ".\n";
}

void throughput(std::ostream &page) {
  page << "# Experiments 2 and 3: images a second over memory, offloading against rematerialization (Figure 3); "
          "planning time\n\n"
          "Paper: at the measured bandwidth rematerialization wins except at the highest memory; at two and three "
          "times it offloading\n"
          "reaches full throughput over a wide range. dynprog plans every instance in less than 25 s.\n\n";
  const Profile profile = v100();
  double longest = 0;
  for (const char *name : {"resnet50", "resnet101", "densenet121"}) {
    Chain chain = chainOf(name, profile);
    const double bandwidth = chain.bandwidth, floor = chainFloor(chain), peak = chainPeak(chain);
    page << "## " << name
         << "\n\n| memory (GB) | dynprog | dynprog, 2x link | dynprog, 3x link | rotor | mixed "
            "|\n|---|---|---|---|---|---|\n";
    for (int step = 0; step <= 10; ++step) {
      const double memory = floor + step / 10.0 * (peak - floor);
      page << "| " << cell(memory / 1e9);
      for (auto [strategy, factor] :
           {std::pair("dynprog", 1.0), {"dynprog", 2.0}, {"dynprog", 3.0}, {"rotor", 1.0}, {"mixed", 1.0}}) {
        chain.bandwidth = factor * bandwidth;
        const auto start = std::chrono::steady_clock::now();
        const ChainAnswer answer = runStrategy(chain, memory, Release::Whole, strategy);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (std::string(strategy) == "dynprog")
          longest = std::max(longest, took.count());
        const auto *plan = std::get_if<ChainPlan>(&answer);
        page << " | " << (plan ? cell(32 / plan->timeline.makespan) : "-");
      }
      page << " |\n";
    }
    page << "\n";
  }
  page << "Longest dynprog run: " << cell(longest) << " s (paper: below 25 s).\n";
}

} // namespace sluice::bench

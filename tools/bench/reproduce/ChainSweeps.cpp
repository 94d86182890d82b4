// SPDX-License-Identifier: Apache-2.0
// Experiments 1 to 3: chain strategies over budgets on the V100-PCIe profile.
#include "tools/bench/reproduce/Networks.h"
#include "tools/bench/reproduce/Pages.h"

#include "passes/planner/Bounds.h"
#include "passes/strategies/DynProg.h"
#include "passes/strategies/Registry.h"
#include "passes/strategies/Stages.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <string>

namespace sluice::bench {

using namespace planner;

namespace {

const char *const networks[] = {"resnet18",    "resnet34",    "resnet50",    "resnet101",   "resnet152",
                                "densenet121", "densenet161", "densenet169", "densenet201", "inception_v3"};

/// Edge of the images that the network is made for; the paper's 224 stands for it.
int ownImage(const std::string &name) { return name == "inception_v3" ? 299 : 224; }

Stages stagesOf(Problem &problem, const std::string &name, const Profile &profile, int batch, int image) {
  NetworkOptions options;
  options.encodings = false; // the paper knows none
  options.nested = true;
  problem = network(name, profile, batch, image, options);
  return Stages(problem);
}

Chain chainOf(const std::string &name, const Profile &profile, int batch, int image) {
  Problem problem;
  return stagesOf(problem, name, profile, batch, image).tensorChain();
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

/// Where dynprog is above the paper's 1.2: whether any schedule is not.
class AboveGoal {
public:
  void look(const std::string &name, int percent, const Chain &chain, double memory, double ratio) {
    if (ratio <= goal)
      return;
    const double bound = chainBound(chain, memory);
    const auto ordered = dynprogBound(chain, memory, 6000);
    const double least = ordered ? *ordered / bound : ratio;
    ++points;
    proved += least > goal;
    rows += "| " + name + " | " + std::to_string(percent) + " % | " + cell(ratio) + " | " + cell(least) + " | " +
            cell(std::max(1.0, windowBound(chain, memory) / bound)) + " | " + (least > goal ? "none" : "not proved") +
            " |\n";
  }

  void write(std::ostream &page) const {
    page
        << "\n## Above 1.2\n\n`ordered`: what no ordered schedule beats, whether tensors leave as a whole or in parts: "
           "dynprog's recursion with states that are too many merged\ninto better ones. `window` is what no schedule "
           "at "
           "all beats.\n\n| network | budget | dynprog | ordered | window | ordered schedules within 1.2 "
           "|\n|---|---|---|---|---|---|\n"
        << rows << "\nOf " << points << " points above 1.2 no ordered schedule reaches it at " << proved << ".\n";
  }

private:
  static constexpr double goal = 1.2;
  std::string rows;
  int points = 0, proved = 0;
};

} // namespace

void chainRatios(std::ostream &page) {
  page
      << "# Experiment 1: makespan over lower bound (Beaumont et al., Euro-Par 2020, Figure 2)\n\n"
         "Batch 32, images of 224 pixels (Inception v3: 299), fp32, V100-PCIe profile, whole-tensor release; budgets "
         "at equal steps from the\nchain's smallest feasible one (0 %) to its peak (100 %). The paper's text: dynprog "
         "always below 1.2; greedy and dynprog beat vdnn in\n"
         "all cases; tflms absent at low memory. Its plots carry no numbers, so orderings and the 1.2 are what can be "
         "compared. `-`: infeasible.\n"
         "![makespan over bound](1-makespan-over-bound.svg)\n"
         "Every saved tensor is an x of the chain, so it leaves and returns as a whole, alone. `partial`: dynprog with "
         "partial release,\n"
         "the optimum over ordered schedules unless a `~` says that states were sampled; no ordered schedule of whole "
         "tensors is faster.\n"
         "`window`: what no schedule at all can beat: the missing bytes leave before the peak and return after it.\n\n";
  const Profile profile = v100();
  double worst = 0;
  int wins = 0, cells = 0, aboveGreedy = 0;
  std::string losses;
  AboveGoal aboveGoal;
  for (const char *name : networks) {
    const Chain chain = chainOf(name, profile, 32, ownImage(name));
    const double floor = chainFloor(chain), peak = chainPeak(chain);
    page << "## " << name << ", " << chain.uF.size() << " tensors\n\n| strategy |";
    for (int step = 0; step <= 10; ++step)
      page << " " << 10 * step << " % |";
    page << "\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
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
      aboveGoal.look(name, 10 * step, chain, floor + step / 10.0 * (peak - floor), d);
      worst = std::max(worst, d);
      ++cells;
      wins += v < 0 || d <= v + 1e-9;
      aboveGreedy += d > rows["greedy"][step] + 1e-9;
      if (v > 0 && rows["greedy"][step] > v + 0.0005)
        losses += (losses.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(10 * step) + " %";
    }
  }
  page << "Worst dynprog ratio: " << cell(worst) << " (paper: below 1.2). dynprog at most vdnn in " << wins << " of "
       << cells << " cells; above greedy in " << aboveGreedy << ".\n\nThe "
       << "paper's greedy beats vdnn in all cases; ours loses to it at: " << (losses.empty() ? "none" : losses)
       << ". vdnn tries every threshold and may leave out\ntensors that greedy's prefix, whole, must take. The paper's "
          "autoswap is inconsistent; ours, whose search begins with each score alone and always\ndraws the same "
          "numbers, is not.\n";
  aboveGoal.write(page);
}

namespace {

/// Images a second of the chain's plan; 0: none.
double rateOf(const Chain &chain, double memory, const char *strategy) {
  const ChainAnswer answer = runStrategy(chain, memory, Release::Whole, strategy);
  const auto *plan = std::get_if<ChainPlan>(&answer);
  return plan ? 32 / plan->timeline.makespan : 0;
}

std::string cellOrDash(double v) { return v > 0 ? cell(v) : "-"; }

/// Rotor at its best: on blocks, as it is published, and on the tensors that the others move.
double rotorRate(const Chain &tensors, const Chain &blocks, double memory) {
  return std::max(rateOf(tensors, memory, "rotor"), rateOf(blocks, memory, "rotor"));
}

} // namespace

void throughput(std::ostream &page) {
  page
      << "# Experiments 2 and 3: images a second over memory, offloading against rematerialization (Figure 3); "
         "planning time\n\n"
         "Batch 32, images of 224 pixels (Inception v3: 299), V100-PCIe profile. Paper: at the measured bandwidth "
         "rematerialization wins except at\nthe highest memory; at two and three times it offloading reaches full "
         "throughput over a wide range. dynprog plans every instance in less\nthan 25 s. rotor is the better of two: "
         "on the network's blocks, ungrouped, and on single tensors. Its table counts memory in slots, so\nthat it has "
         "no plan at the very smallest.\n\n"
         "![images a second over memory](2-throughput.svg)\n\n";
  const Profile profile = v100();
  double longest = 0;
  int remat = 0, offload = 0;
  for (const char *name : networks) {
    Problem problem;
    const Stages stages = stagesOf(problem, name, profile, 32, ownImage(name));
    Chain chain = stages.tensorChain();
    const Chain blocks = stages.chain();
    const double bandwidth = chain.bandwidth, floor = chainFloor(chain), peak = chainPeak(chain);
    page << "## " << name << ", " << blocks.uF.size()
         << " blocks\n\n| memory (GB) | dynprog | dynprog, 2x link | dynprog, 3x link | rotor "
            "|\n|---|---|---|---|---|\n";
    for (int step = 0; step <= 10; step += 2) {
      const double memory = floor + step / 10.0 * (peak - floor);
      page << "| " << cell(memory / 1e9);
      double own = 0;
      for (double factor : {1.0, 2.0, 3.0}) {
        chain.bandwidth = factor * bandwidth;
        const std::clock_t start = std::clock();
        const double rate = rateOf(chain, memory, "dynprog");
        longest = std::max(longest, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
        own = factor == 1 ? rate : own;
        page << " | " << cellOrDash(rate);
      }
      chain.bandwidth = bandwidth;
      const double again = rotorRate(chain, blocks, memory);
      remat += again > 1.001 * own;
      offload += own > 1.001 * again;
      page << " | " << cellOrDash(again) << " |\n";
    }
    page << "\n";
  }
  page << "At the measured bandwidth rotor is ahead in " << remat << " cells, dynprog in " << offload
       << ", the rest are ties. Longest dynprog run: " << cell(longest) << " s of a processor (paper: below 25 s).\n";
}

void imageSizes(std::ostream &page) {
  page << "# Experiment 1, larger images: makespan over lower bound (Beaumont et al., Euro-Par 2020, Figure 2's "
          "text)\n\n"
          "The paper plans images of 224, 500 and 1000 at batches that are powers of two, and shows those of 224 alone "
          "as representative. "
          "Which batch goes with which size\nis not printed; ours have about the pixels of page 1's batches of 32. "
          "Whole-tensor "
          "release; columns are budgets as on page 1.\n\n| network | image, batch | strategy | 0 % | 20 % | 40 % | 60 "
          "% | 80 % "
          "|\n|---|---|---|---|---|---|---|---|\n";
  const Profile profile = v100();
  double worst = 0;
  for (const char *name : {"resnet18", "resnet50", "resnet101", "densenet121", "inception_v3"})
    for (auto [image, batch] : {std::pair(500, 8), {1000, 2}}) {
      const Chain chain = chainOf(name, profile, batch, image);
      const double floor = chainFloor(chain), peak = chainPeak(chain);
      for (const char *strategy : {"dynprog", "greedy", "vdnn", "tflms"}) {
        page << "| " << name << " | " << image << ", " << batch << " | " << strategy;
        for (int step = 0; step < 10; step += 2) {
          const double memory = floor + step / 10.0 * (peak - floor);
          const ChainAnswer answer = runStrategy(chain, memory, Release::Whole, strategy);
          const auto *plan = std::get_if<ChainPlan>(&answer);
          const double ratio = plan ? plan->timeline.makespan / chainBound(chain, memory) : 0;
          worst = std::string(strategy) == "dynprog" ? std::max(worst, ratio) : worst;
          page << " | " << cellOrDash(ratio);
        }
        page << " |\n";
      }
    }
  page << "\nWorst dynprog ratio: " << cell(worst) << ".\n";
}

} // namespace sluice::bench

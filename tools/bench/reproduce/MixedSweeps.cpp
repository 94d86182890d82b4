// SPDX-License-Identifier: Apache-2.0
// Experiment 16: mixed against the other strategies on op-level programs, V100-PCIe profile, exact actions; and how
// planning time grows.
#include "tools/bench/reproduce/Networks.h"
#include "tools/bench/reproduce/Pages.h"

#include "passes/planner/Bounds.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"
#include "passes/strategies/Registry.h"

#include <cstdio>
#include <ctime>
#include <string>

namespace sluice::bench {

using namespace planner;

namespace {

/// Ops of the largest graphs that checkmate's relaxed program is solved for: minutes a budget for more.
constexpr size_t largestProgram = 200;

std::string percent(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * v);
  return text;
}

Options exactOptions() {
  Options options;
  options.executable = exactActions();
  return options;
}

void sweep(std::ostream &page, const std::string &name, const Profile &profile) {
  const Problem p = network(name, profile, 32, name.substr(0, 4) == "unet" ? 256 : 224);
  const Plan keep = std::get<Plan>(runStrategy(p, Bytes(1) << 55, "keep"));
  const Seconds base = simulate(p, keep).makespan;
  const double activations = static_cast<double>(keep.arenaBytes - p.base);
  page << "## " << name << "\n\n"
       << p.ops.size() << " ops; keep needs " << keep.arenaBytes / 1048576 << " MiB, of which " << p.base / 1048576
       << " live through the step; floor at " << percent((memoryFloor(p) - p.base) / activations)
       << " of the activations.\n\n| strategy | 30 % | 40 % | 60 % | 80 % | smallest |\n|---|---|---|---|---|---|\n";
  for (const char *strategy : {"mixed", "greedy", "dynprog", "vdnn", "vdnn-all", "vdnnpp", "autoswap", "tflms", "rotor",
                               "chen", "dtr", "pofo", "checkmate", "superneurons", "capuchin", "gist"}) {
    Options options = exactOptions();
    if (std::string(strategy) == "checkmate") {
      if (p.ops.size() > largestProgram)
        continue;
      options.knobs["relaxed"] = std::to_string(largestProgram);
    }
    page << "| " << strategy;
    for (double share : {0.3, 0.4, 0.6, 0.8}) {
      const Answer answer =
          runStrategy(p, p.base + static_cast<Bytes>(share * activations) / 256 * 256, strategy, options);
      const auto *plan = std::get_if<Plan>(&answer);
      page << " | " << (plan ? percent(simulate(p, *plan).makespan / base - 1) : "-");
    }
    const Answer least = runStrategy(p, p.base, strategy, options);
    const auto *none = std::get_if<Infeasible>(&least);
    page << " | " << (none ? percent((none->smallestMemory - p.base) / activations) : "-") << " |\n";
  }
  page << "| lower bound";
  for (double share : {0.3, 0.4, 0.6, 0.8})
    page << " | "
         << percent(actionBound(p, p.base + static_cast<Bytes>(share * activations), exactActions()) / base - 1);
  page << " | |\n| mixed over its bound";
  for (double share : {0.3, 0.4, 0.6, 0.8}) {
    const Bytes budget = p.base + static_cast<Bytes>(share * activations) / 256 * 256;
    const Answer answer = runStrategy(p, budget, "mixed", exactOptions());
    const auto *plan = std::get_if<Plan>(&answer);
    page << " | " << (plan ? percent(simulate(p, *plan).makespan / actionBound(p, budget, exactActions()) - 1) : "-");
  }
  page << " | |\n\n";
}

/// Smallest budget of mixed over the floor, and its overhead at the floor plus ten points of the activations.
void floors(std::ostream &page, const std::string &name, const Profile &profile) {
  const Problem p = network(name, profile, 32, name.substr(0, 4) == "unet" ? 256 : 224);
  const Plan keep = std::get<Plan>(runStrategy(p, Bytes(1) << 55, "keep"));
  const Bytes floor = memoryFloor(p);
  const Answer least = runStrategy(p, p.base, "mixed", exactOptions());
  const auto *none = std::get_if<Infeasible>(&least);
  const Answer above = runStrategy(p, floor + (keep.arenaBytes - p.base) / 10, "mixed", exactOptions());
  const auto *plan = std::get_if<Plan>(&above);
  page << "| " << name << " | " << floor / 1048576 << " MiB | "
       << (none ? percent(static_cast<double>(none->smallestMemory) / floor) : "-") << " | "
       << (plan ? percent(simulate(p, *plan).makespan / simulate(p, keep).makespan - 1) : "-") << " |\n";
}

} // namespace

void mixedSweep(std::ostream &page) {
  page
      << "# Experiment 16: overhead over keep of every exact strategy\n\n"
         "Batch 32, fp32, 224x224 (U-Nets 256x256), V100-PCIe profile. Columns: share of keep's activations that fits "
         "(`40%act` and so\n"
         "on); entries: makespan over keep's, less one; `-`: infeasible. The packed arena of every entry is within "
         "its budget. The bound\n"
         "is the one of passes/planner/Bounds.h: what is missing at the highest positions leaves before them and "
         "returns after them,\n"
         "or costs re-runs; encodings are free and every byte counts once, so it is not always reachable. checkmate is "
         "solved\nrelaxed and rounded (knob `relaxed`), for networks of "
      << largestProgram
      << " ops at most. No strategy is slower with more memory: where its own plan for a smaller\ntenth of the "
         "activations is faster, that one is taken.\n\n";
  const Profile profile = *loadProfile("v100-pcie");
  for (const char *name : {"resnet50", "resnet152", "densenet121", "mobilenet_v2", "unet_bn", "vgg16", "vgg19", "unet"})
    sweep(page, name, profile);
  page << "## Near the floor\n\n| network | floor | smallest budget of mixed over it | overhead at the floor + 10 "
          "points "
          "|\n|---|---|---|---|\n";
  for (const char *name : {"vgg16", "vgg19", "unet", "unet_bn", "mobilenet_v2", "resnet50"})
    floors(page, name, profile);
  page << "\n## Time to plan with auto, half of the activations\n\n| network | ops | processor seconds "
          "|\n|---|---|---|\n";
  for (const char *name : {"vgg16", "mobilenet_v2", "resnet50", "resnet152", "densenet201"}) {
    const Problem p = network(name, profile, 32, 224);
    const Bytes keep = std::get<Plan>(runStrategy(p, Bytes(1) << 55, "keep")).arenaBytes;
    const std::clock_t start = std::clock();
    runStrategy(p, p.base + (keep - p.base) / 2, "auto", exactOptions());
    const double took = double(std::clock() - start) / CLOCKS_PER_SEC;
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", took);
    page << "| " << name << " | " << p.ops.size() << " | " << text << " |\n";
  }
}

} // namespace sluice::bench

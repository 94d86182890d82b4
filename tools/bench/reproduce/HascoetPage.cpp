// SPDX-License-Identifier: Apache-2.0
// Experiments 10 and 11: Hascoet et al.'s ablation, networks and trade-off.
#include "tools/bench/reproduce/Outcome.h"
#include "tools/bench/reproduce/Pages.h"

namespace sluice::bench {

using namespace planner;

void hascoetTables(std::ostream &page) {
  page << "# Experiment 11 (and 10): offloading inputs of convolutions and pools, inverting BatchNorm (Hascoet et al., "
          "2019)\n\n"
          "No figures of these tables are published; ours are, on the GTX 1080 Ti profile, batch 64. Table 1 "
          "(allocation and rates "
          "of pinned and\npageable memory) cannot be simulated: the link's rate is the profile's, pageable memory is "
          "taken at half.\n\n"
          "## Table 2: ablation at the most that is offloaded, ms a step, BatchNorm not inverted\n\n"
          "| network | nothing offloaded | one after the other, pageable | pinned | and fp16 | and parallel streams |\n"
          "|---|---|---|---|---|---|\n";
  const Profile profile = profileOf("gtx-1080ti");
  NetworkOptions lossy;
  lossy.packed = lossy.leaky = true;
  const char *const names[] = {"alexnet", "vgg16", "resnet18", "resnet50", "mobilenet_v2"};
  for (const char *name : names) {
    const Problem p = network(name, profile, 64, std::string(name) == "alexnet" ? 227 : 224, lossy);
    const Outcome keep = outcome(p, "keep"), raw = outcome(p, "hascoet", {{"fp16", "0"}, {"invert", "0"}}),
                  half = outcome(p, "hascoet", {{"invert", "0"}});
    const Seconds both = 2 * raw.host / profile.link.d2h;
    page << "| " << name;
    for (Seconds s :
         {keep.seconds, keep.seconds + 2 * both, keep.seconds + both, keep.seconds + both / 2, half.seconds})
      page << " | " << digits(1000 * s, 0);
    page << " |\n";
  }
  page << "\n## Table 3: time and memory against keeping everything\n\nLeaky ReLU, as the paper trains. The paper "
          "expects "
          "residual networks to save less, since skips keep the inputs of blocks.\n\n"
          "| network | overhead, fp16 copies | memory saved | overhead, and inversion | memory saved "
          "|\n|---|---|---|---|---|\n";
  for (const char *name : names) {
    const Problem p = network(name, profile, 64, std::string(name) == "alexnet" ? 227 : 224, lossy);
    const Outcome keep = outcome(p, "keep"), half = outcome(p, "hascoet", {{"invert", "0"}}),
                  full = outcome(p, "hascoet");
    page << "| " << name;
    for (const Outcome &o : {half, full})
      page << " | " << percent(o.seconds / keep.seconds - 1) << " | " << percent(1 - double(o.arena) / keep.arena);
    page << " |\n";
  }
  const Profile titan = profileOf("titan-x");
  const Problem vgg = network("vgg19", titan, 64, 224, lossy);
  const Outcome keep = outcome(vgg, "keep"), moved = outcome(vgg, "hascoet"), again = leastOf(vgg, "chen");
  page << "\n## Abstract: VGG-19 on Titan X (experiment 10)\n\nPaper: 35 % less memory for 21 % more time, better than "
          "gradient "
          "checkpointing. Ours, batch 64: "
       << percent(1 - double(moved.arena) / keep.arena) << " less for " << percent(moved.seconds / keep.seconds - 1)
       << ";\ncheckpointing (chen, at its smallest memory): " << percent(1 - double(again.arena) / keep.arena)
       << " less for " << percent(again.seconds / keep.seconds - 1)
       << ". torchvision's VGG-19 without BatchNorm, so nothing is inverted.\n";
}

} // namespace sluice::bench

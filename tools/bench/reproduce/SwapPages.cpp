// SPDX-License-Identifier: Apache-2.0
// Experiments 5, 8 and 11: what a layer's copy hides behind, vDNN against vDNN++, and Hascoet et al.'s ablation. Times
// are the profiles' rooflines, so that ratios can be compared, not milliseconds.
#include "tools/bench/reproduce/Outcome.h"
#include "tools/bench/reproduce/Pages.h"

#include <cstdio>

namespace sluice::bench {

using namespace planner;

namespace {

std::string paperOrDash(double v) { return v > 0 ? digits(v, 0) : "-"; }

/// One line of experiment 8: paper's milliseconds (0: none given) and ours.
struct SwapRow {
  const char *name;
  int batch, mode; ///< 1 all, 2 conv, 3 aconv
  double base, vdnn, vdnnpp;
};

void swapRow(std::ostream &page, const SwapRow &row, const Profile &profile) {
  static const char *const modes[] = {"", "all", "conv", "aconv"};
  const Problem p = network(row.name, profile, row.batch, std::string(row.name) == "alexnet" ? 227 : 224);
  const Outcome keep = outcome(p, "keep");
  const std::string mode = std::to_string(row.mode);
  const Outcome waits = outcome(p, "vdnnpp", {{"mode", mode}, {"synchronous", "1"}}),
                flows = outcome(p, "vdnnpp", {{"mode", mode}});
  const double over = waits.seconds - keep.seconds;
  page << "| " << row.name << " (" << row.batch << ") | " << modes[row.mode] << " | " << paperOrDash(row.base) << " / "
       << paperOrDash(row.vdnn) << " / " << paperOrDash(row.vdnnpp) << " | " << digits(1000 * keep.seconds, 0) << " / "
       << digits(1000 * waits.seconds, 0) << " / " << digits(1000 * flows.seconds, 0) << " | "
       << (row.base > 0 ? percent((row.vdnn - row.vdnnpp) / (row.vdnn - row.base)) : "-") << " | "
       << (over > 1e-9 * keep.seconds ? percent((waits.seconds - flows.seconds) / over) : "nothing to gain") << " | "
       << digits(keep.arena / 1e9, 1) << " | " << digits(flows.arena / 1e9, 1) << " |\n";
}

} // namespace

void layerTimes(std::ostream &page) {
  page << "# Experiment 5: one layer against its copy (Shriram et al., IPDPS 2019, Table I)\n\n"
          "Input 112x112x64, batch 128, GTX 1080 Ti; ms. Paper: only the 3x3 and the 5x5 convolution hide the copy of "
          "their "
          "input. It gives no\nnumber of filters and does not say whether backward is included, so ours has 64 and 256 "
          "filters, "
          "forward only.\n\n| layer | paper | ours, 64 filters | ours, 256 filters |\n|---|---|---|---|\n";
  const Profile profile = profileOf("gtx-1080ti");
  const double input = 128.0 * 64 * 112 * 112 * 4, pixels = 128.0 * 112 * 112;
  page << "| pool 2x2 | 3 | ";
  const Seconds pool = profile.estimate(OpKind::Pool, 0, input * 1.25);
  page << digits(1000 * pool, 1) << " | " << digits(1000 * pool, 1) << " |\n";
  for (auto [kernel, paper] : {std::pair(1, 19), {3, 80}, {5, 200}}) {
    page << "| " << kernel << "x" << kernel << " convolution | " << paper;
    for (int filters : {64, 256})
      page << " | "
           << digits(1000 * profile.estimate(OpKind::Conv, 2 * pixels * 64 * filters * kernel * kernel,
                                             input * (1 + filters / 64.0)),
                     1);
    page << " |\n";
  }
  const std::string copy = digits(1000 * (input / profile.link.d2h + profile.link.latency), 1);
  page << "| copy | 62 | " << copy << " | " << copy
       << " |\n\nThe link's rate and the profile's convolution efficiency come from this table, so the copy agrees by "
          "construction; "
          "the roofline is\nkinder to pool and 1x1 than cuDNN 7 was. The ordering holds with 256 filters; with 64 no "
          "forward "
          "convolution hides its copy.\n";
}

void vdnnTimes(std::ostream &page) {
  page << "# Experiment 8: an iteration of vDNN and of vDNN++ (Shriram et al., IPDPS 2019, Tables III and IV, Figure "
          "9)\n\n"
          "GTX 1080 Ti profile; ms of base (everything kept) / vDNN / vDNN++. vDNN ends every layer when its copy has "
          "ended, "
          "too; both are the\nstrategy vdnnpp. The paper's relative improvement is (vDNN - vDNN++) / (vDNN - base), at "
          "most 60 % "
          "over its networks. `GB`: arena of base and of\nvDNN++, planned without a limit. vgg116 and vgg191 are "
          "VGG-16 with 20 "
          "and 35 convolutions more in every group, `stacked` is the network of\nTable III. The paper's kernels are "
          "cuDNN's "
          "fastest (p) for the VGGs and its smallest (m) for `stacked`.\n\n"
          "| network (batch) | mode | paper | ours | paper's improvement | ours | base GB | vDNN++ GB |\n"
          "|---|---|---|---|---|---|---|---|\n";
  const Profile profile = profileOf("gtx-1080ti");
  for (const SwapRow &row : {SwapRow{"stacked", 64, 2, 2091, 2491, 2261},
                             {"alexnet", 128, 1, 0, 0, 0},
                             {"alexnet", 256, 1, 0, 0, 0},
                             {"vgg16", 64, 1, 0, 0, 0},
                             {"vgg16", 64, 3, 0, 0, 0},
                             {"vgg116", 32, 2, 0, 3055, 3018},
                             {"vgg116", 32, 1, 0, 3170, 3129},
                             {"vgg116", 32, 3, 0, 2717, 2468},
                             {"vgg191", 32, 2, 0, 5139, 5097},
                             {"vgg191", 32, 1, 0, 5244, 5209}})
    swapRow(page, row, profile);
  page << "\n`stacked` has batch 64 here: with the paper's 256 its base would need some 40 GB of a GPU with 11. vDNN++ "
          "is never "
          "slower than vDNN.\nWhere ours differs: the paper's kernels for the deep VGGs hide nearly every copy, so "
          "conv and all gain "
          "little there, while ours are bound by the\nlink (the roofline's convolutions of VGG-16's first groups take "
          "less than "
          "their copies); the order of the modes, aconv first, is the paper's.\n";
}

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

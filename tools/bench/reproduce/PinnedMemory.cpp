// SPDX-License-Identifier: Apache-2.0
// Experiment 9's static part: pinned host bytes of vDNN++ by its rule, the fp32 inputs of every convolution and pooling
// layer and of the first fully connected one.
#include "tools/bench/reproduce/Outcome.h"
#include "tools/bench/reproduce/Pages.h"

#include <cstdio>

namespace sluice::bench {

using namespace planner;

void pinnedMemory(std::ostream &page) {
  page << "# Experiment 9: pinned memory (Shriram et al., IPDPS 2019)\n\nBatch 128, MiB. Counted: inputs of all "
          "convolutions and pools, shared ones once, and of the first fully connected layer.\n\n| network | paper | "
          "ours |\n|---|---|---|\n";
  const Profile profile = profileOf("gtx-1080ti");
  const struct {
    const char *name;
    int image;
    double paper;
  } rows[] = {{"alexnet", 227, 453}, {"vgg16", 224, 7436}, {"resnet152_v1", 224, 10193}};
  for (const auto &row : rows) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", pinnedBytes(row.name, profile, 128, row.image) / 1048576.0);
    page << "| " << row.name << " | " << row.paper << " | " << text << " |\n";
  }
  page << "\nResNet-152 with the stride in the first 1x1 convolution of a block; torchvision has it in the 3x3, which "
          "gives 10450.\n";
  // 32 values take a word of mask and the words that are not zero.
  auto saved = [](double zeros) { return zeros - 1.0 / 32; };
  page << "\n## Zero-value compression on the host\n\nA share z of zeros saves z - 1/32. The paper saves 36 % on "
          "average on "
          "AlexNet(128) and 67 % on VGG-16(16) (its abstract says\nup to 60 %), which are "
       << percent(0.36 + 1.0 / 32) << " and " << percent(0.67 + 1.0 / 32)
       << " zeros; activations of trained networks are needed to measure them. Pinned memory by z, computed so, "
          "MiB:\n\n| network | "
          "none | 0.5 | "
          "0.7 |\n|---|---|---|---|\n";
  for (const auto &row : rows) {
    const double raw = pinnedBytes(row.name, profile, 128, row.image) / 1048576.0;
    page << "| " << row.name << " | " << digits(raw, 0) << " | " << digits(raw * (1 - saved(0.5)), 0) << " | "
         << digits(raw * (1 - saved(0.7)), 0) << " |\n";
  }
  page << "\nIts load on the processor (150 to 180 of 800 %) and the iteration of 377 ms are measurements of that "
          "machine. What trained activations save on the host target and what\npacking them takes: [trained "
          "zeros](../results/trained-zeros.md).\n";
}

} // namespace sluice::bench

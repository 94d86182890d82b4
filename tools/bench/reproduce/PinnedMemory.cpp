// SPDX-License-Identifier: Apache-2.0
// Experiment 9's static part: pinned host bytes of vDNN++ by its rule, the fp32 inputs of every convolution and pooling
// layer and of the first fully connected one.
#include "tools/bench/reproduce/Networks.h"
#include "tools/bench/reproduce/Pages.h"

#include <cstdio>

namespace sluice::bench {

using namespace planner;

void pinnedMemory(std::ostream &page) {
  page << "# Experiment 9: pinned memory (Shriram et al., IPDPS 2019)\n\nBatch 128, MiB.\n\n| network | paper | ours "
          "|\n|---|---|---|\n";
  Profile profile;
  std::string error;
  loadProfile("gtx-1080ti", profile, error);
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
}

} // namespace sluice::bench

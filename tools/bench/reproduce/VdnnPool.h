// SPDX-License-Identifier: Apache-2.0
// What vDNN allocates and frees in one iteration: S. Shriram, A. Garg, P. Kulkarni, Dynamic Memory Management for
// GPU-Based Training of Deep Neural Networks, IPDPS 2019, Sections II to IV. Linear networks, fp32. The order within a
// layer is not published; this one gives the paper's tables.
#pragma once

#include "passes/planner/Pool.h"

#include <string>
#include <vector>

namespace sluice::bench {

using planner::Bytes;

struct VdnnIteration {
  std::string network; ///< "alexnet" (227x227, ungrouped) or "vgg16" (224x224)
  int batch = 1;
  std::string mode;             ///< "none", "all", "conv" or "aconv"
  bool derivativeFirst = false; ///< a layer's gradients are allocated before the prefetch that it issues, not after it
  bool inputStays = false;      ///< the batch's bytes are not freed when they leave, as the paper's pool sizes have it
  bool highEnd = false;         ///< inputs of layers that are not offloaded go to the high end
  int heavyLayer = -1;          ///< the layer whose backward step takes `workspace`
  Bytes workspace = 0;
  bool forwardOnly = false; ///< ends where the backward half begins
};

/// Sizes are rounded up to CNMeM's 512 bytes.
std::vector<planner::PoolRequest> vdnnRequests(const VdnnIteration &iteration);

/// Number of a network's layer: its `nth` convolution, from 1 on.
int convolution(const std::string &network, int nth);

/// Workspace of cuDNN's non-fused Winograd kernel, F(4x4, 3x3), for that layer: 36 numbers for each channel and tile of
/// 4x4 pixels of input and output, and for each filter.
Bytes winogradWorkspace(const std::string &network, int batch, int layer);

} // namespace sluice::bench

// SPDX-License-Identifier: Apache-2.0
// The memory of vDNN and vDNN++ by their rules: S. Shriram, A. Garg, P. Kulkarni, Dynamic Memory Management for
// GPU-Based Training of Deep Neural Networks, IPDPS 2019, Sections II to IV. Linear networks, fp32, kernels without
// workspace ("(m)").
#pragma once

#include "passes/planner/Problem.h"

#include <string>
#include <vector>

namespace sluice::bench {

using planner::Bytes;

/// What one iteration allocates and frees, in order.
struct PoolEvent {
  int block;
  Bytes bytes;     ///< 0: the block is freed
  bool keptInput;  ///< the input of a layer that is not offloaded
  bool movedInput; ///< the input of a layer that is
};

/// `network`: "alexnet" (227x227, ungrouped) or "vgg16" (224x224). `mode`: "all", "conv" or "aconv". `derivativeFirst`:
/// a layer's gradient is allocated before the prefetch that it issues, not after it.
std::vector<PoolEvent> vdnnIteration(const std::string &network, int batch, const std::string &mode,
                                     bool derivativeFirst);

/// Most bytes allocated at once.
Bytes aggregateOf(const std::vector<PoolEvent> &events);

/// Who goes to the high end of the pool, in the first block from there that is large enough; all others best-fit at the
/// low end. The paper's text and its released code are mirror images.
enum class HighEnd { Nobody, MovedInputs, KeptInputs };

/// The paper's search: from the aggregate on, the pool grows by what the first failing request lacks, and the iteration
/// starts anew. 512 bytes of granularity.
Bytes poolFor(const std::vector<PoolEvent> &events, HighEnd high);

} // namespace sluice::bench

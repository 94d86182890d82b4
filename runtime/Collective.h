// SPDX-License-Identifier: Apache-2.0
// What several ranks compute together, see ir/CollectiveOps.td. On the host alone. One rank computes the same without
// the others.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

/// y = the sum of all ranks' x, enqueued after the last batch of a step; nothing after the others. `weighted`: each
/// rank's x is multiplied by its weight first (Session::unitWeights). `mean`: the sum is multiplied by
/// StepState::meanFactor. Ordered: in the tree of sumInTree(). y may be x. Scratch: what it receives.
class AllReduce : public Kernel {
public:
  AllReduce(Node node, Shape x, bool mean, bool weighted, bool ordered);
  void run(Stream &, const Tensor &x, const Tensor &y, const Tensor &scratch) const;

  /// Elements that are summed at a time, and those of scratch.
  static constexpr int64_t piece = int64_t{1} << 18;
  static int64_t scratchElements(int64_t elements);

private:
  Shape x;
  bool mean, weighted, ordered;
};

/// x of this batch, times StepState::unitWeight where it is weighted, joins the sums of the batches of a step, which
/// are the digits of a binary counter, the last one open upwards. After the last batch the last one has the sum of all.
void sumBatches(Stream &, const Tensor &x, TensorList sums, bool weighted, Node node);

/// to[i] = factor * the sum over the leaves of leaf[i] * its weight: leaves are carried into a binary counter one after
/// the other, and what remains is added from the smallest part to the largest. Two leaves of 2^k parts each, made so,
/// add up to the same bits as all of their parts. Weights may be null: all are 1. `to` may be a leaf.
void sumInTree(const std::vector<const float *> &leaves, const float *weights, float factor, float *to, int64_t count);

/// shares [2, C] = momentum * (1 - momentum)^(units - 1 - unit) of mean and of the unbiased variance of this batch; see
/// UpdateStatistics for the variance.
class BatchStatistics : public Kernel {
public:
  BatchStatistics(Node node, int64_t channels, int64_t count, float momentum, float epsilon);
  void run(Stream &, const Tensor &mean, const Tensor &rstd, const Tensor &shares) const;

private:
  int64_t channels, count;
  float momentum, epsilon;
};

/// running = (1 - momentum)^units * running + sum, in place, after the last batch of a step.
void applyStatistics(Stream &, const Tensor &sum, const Tensor &runningMean, const Tensor &runningVar, float momentum,
                     Node node);

} // namespace sluice

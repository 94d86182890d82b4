// SPDX-License-Identifier: Apache-2.0
// What several ranks compute together, see ir/CollectiveOps.td, with the same bits on both targets. One rank computes
// the same without the others.
#pragma once

#include "runtime/Kernels.h"
#include "runtime/Ranks.h"

namespace sluice {

/// Elements that are summed at a time. Tensors that are no more together go in one message.
constexpr int64_t reducedPiece = int64_t{1} << 18;
/// The elements of the room that allReduce() needs for `tensors` tensors of so many elements together: where several
/// are packed, and where an ordered sum receives what others send. Of a share that is rounded up, all others' pieces
/// take at most mostRanks elements more than the piece.
constexpr int64_t roomOfSum(size_t tensors, int64_t elements, bool ordered) {
  const int64_t piece = elements < reducedPiece ? elements : reducedPiece;
  return (tensors > 1 ? piece : 0) + (ordered ? piece + mostRanks : 0);
}

/// The same of reduceScatter(): what it receives at a time and, where gradients are weighted, what it sends.
constexpr int64_t roomOfShares(int64_t elements, bool weighted) {
  return (weighted ? 2 : 1) * roomOfSum(1, elements, true);
}
/// The parts of a gradient whose squares GradientNorm and SharesNorm add up each by itself, on either target at least.
constexpr int64_t leastNormParts = 64;
/// The most elements that a part has, of which SharesNorm gets those that other ranks have.
constexpr int64_t roomOfNorm(int64_t elements) { return (elements + leastNormParts - 1) / leastNormParts; }

/// ys[i] = the sum of all ranks' xs[i], F32, enqueued after the last batch of a step; nothing after the others. Several
/// tensors have reducedPiece elements at most together. `weighted`: each rank's tensors are multiplied by its weight
/// first (Session::unitWeights). `mean`: sums are multiplied by StepState::meanFactor. Ordered: in the tree of
/// sumInTree(). ys[i] may be xs[i]. Room: roomOfSum(), absent where that is 0.
void allReduce(Stream &, const Tensor &room, TensorList xs, TensorList ys, bool mean, bool weighted, bool ordered,
               Node node);

/// As allReduce() with `mean`, ordered, but that each rank gets its share of each sum alone (shareOf() in Ranks.h), in
/// front of ys[i]. Room: roomOfShares() of the elements of all tensors.
void reduceScatter(Stream &, const Tensor &room, TensorList xs, TensorList ys, bool weighted, Node node);

/// norm = that of GradientNorm, with its bits, of a gradient of so many elements of which each rank has its share, in
/// front of `gradient`; after the last batch of a step. All ranks get it. Room: roomOfNorm().
class SharesNorm : public Kernel {
public:
  SharesNorm(Node node, int64_t elements);
  void run(Stream &, const Tensor &gradient, const Tensor &before, const Tensor &room, const Tensor &norm,
           const Tensor &scratch) const;

private:
  int64_t elements;
};

/// Each rank gets from each other one the share of these F32 parameters that that one has updated (shareOf() in
/// Ranks.h), in place, after the last batch of a step.
void allGather(Stream &, TensorList parameters, Node node);

/// whole = a parameter of which each rank has its share (shareOf() in Ranks.h) in front of `share`, F32, in every batch
/// and in evaluations.
void gatherShares(Stream &, const Tensor &share, const Tensor &whole, Node node);

/// x of this batch, times StepState::unitWeight where it is weighted, joins the sums of the batches of a step, which
/// are the digits of a binary counter, the last one open upwards. After the last batch the last one has the sum of all.
void sumBatches(Stream &, const Tensor &x, TensorList sums, bool weighted, Node node);

/// to[i] = factor * the sum over the leaves of leaf[i] * its weight: leaves are carried into a binary counter one after
/// the other, and what remains is added from the smallest part to the largest. Two leaves of 2^k parts each, made so,
/// add up to the same bits as all of their parts. Weights may be null: all are 1. `to` may be a leaf.
void sumInTree(const std::vector<const float *> &leaves, const float *weights, float factor, float *to, int64_t count);

/// shares [2, C] = momentum * (1 - momentum)^(units - 1 - unit) of mean and of the unbiased variance of this batch; see
/// UpdateStatistics for the variance. Statistics that `ranks` ranks have in common are those of unit % (units / ranks)
/// of units / ranks; the shares of all but the first of these ranks are 0.
class BatchStatistics : public Kernel {
public:
  BatchStatistics(Node node, int64_t channels, int64_t count, float momentum, float epsilon, int64_t ranks = 1);
  void run(Stream &, const Tensor &mean, const Tensor &rstd, const Tensor &shares) const;

private:
  int64_t channels, count;
  float momentum, epsilon;
  int64_t ranks;
};

/// running = (1 - momentum)^(units / ranks) * running + sum, in place, after the last batch of a step.
void applyStatistics(Stream &, const Tensor &sum, const Tensor &runningMean, const Tensor &runningVar, float momentum,
                     int64_t ranks, Node node);

/// The bytes in which `ranks` ranks meet, with two vectors each.
constexpr int64_t synchronizedScratch(int64_t channels, int64_t ranks) {
  return 2 * channels * ranks * static_cast<int64_t>(sizeof(float));
}

/// What a BatchNorm over the batches of several ranks takes of them, of `channels` channels: of R ranks this one meets
/// those whose number differs by a multiple of R / ranks, which is whole. In every batch; each has the same bits.
/// Tensors are F32 of [channels]; scratch has workspace bytes. Throws std::invalid_argument for other numbers of ranks.
class SynchronizedNorm : public Kernel {
public:
  SynchronizedNorm(Node node, int64_t channels, int64_t ranks, float epsilon);
  /// Of the ranks' mean and 1/sqrt(biased variance + epsilon), each over as many elements, the same of all together.
  void statistics(Stream &, const Tensor &mean, const Tensor &rstd, const Tensor &jointMean, const Tensor &jointRstd,
                  const Tensor &scratch) const;
  /// In the tree of sumInTree().
  void sums(Stream &, const Tensor &dscale, const Tensor &dbias, const Tensor &jointDscale, const Tensor &jointDbias,
            const Tensor &scratch) const;

private:
  struct Meeting;
  Meeting meet(Stream &, const Tensor &one, const Tensor &other, const Tensor &scratch, const char *what) const;

  int64_t channels, ranks;
  float epsilon;
};

/// weight [] = StepState::unitWeight.
void unitWeight(Stream &, const Tensor &weight, Node node);

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Samples of several shapes in batches of one shape each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace sluice {

/// A batch: `samples` places of an order from `first` on, all of which its bucket holds.
struct BucketBatch {
  int64_t first = 0, samples = 0;
  int bucket = 0;
};

/// The batches of an epoch. Those of training are full and follow one another; samples that are in none come last.
struct BucketBatches {
  std::vector<uint32_t> order; ///< indices of samples
  std::vector<BucketBatch> list;

  /// The batch that has this place of the order; it has to be in one.
  const BucketBatch &at(int64_t place) const;
};

/// Which buckets there are, from the smallest to the largest, and which of them a sample is of.
struct BucketSorting {
  int64_t batch = 1; ///< samples
  /// Of each bucket the first larger one that holds its samples; -1: none.
  std::vector<int> larger;
  std::function<int(uint32_t index)> bucketOf;

  /// Full batches of one bucket each, taken in the given order. What does not fill one moves up to the bucket that
  /// holds it. With a key the batches come in an order that is drawn from it, else in that of their first samples.
  BucketBatches forTraining(const std::vector<uint32_t> &order, std::optional<uint64_t> key) const;
  /// How many that are, whatever the order, with so many samples of each bucket.
  int64_t trainingBatches(std::vector<int64_t> samples) const;
  /// Every sample once, bucket by bucket; the last batch of each may be smaller.
  BucketBatches sorted(const std::vector<uint32_t> &order) const;
  /// Every sample once, in the given order: a batch ends where a sample of another bucket begins.
  BucketBatches inOrder(const std::vector<uint32_t> &order) const;
};

} // namespace sluice

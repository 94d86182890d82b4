// SPDX-License-Identifier: Apache-2.0
// All of it follows from the order, the buckets of samples and the key, so that a run can go on anywhere in an epoch.

#include "runtime/program/BucketBatches.h"

#include "runtime/Random.h"

#include <algorithm>

namespace sluice {

const BucketBatch &BucketBatches::at(int64_t place) const {
  const auto behind = std::upper_bound(list.begin(), list.end(), place,
                                       [](int64_t wanted, const BucketBatch &batch) { return wanted < batch.first; });
  return *std::prev(behind);
}

namespace {

/// Samples of a batch while batches have no places yet.
struct Drawn {
  std::vector<uint32_t> samples;
  size_t firstPlace = 0; ///< in the order, of the first of them
  int bucket = 0;
};

struct Waiting {
  uint32_t index;
  size_t place;
};

BucketBatches laidOut(const std::vector<Drawn> &drawn) {
  BucketBatches batches;
  for (const Drawn &one : drawn) {
    batches.list.push_back(
        {static_cast<int64_t>(batches.order.size()), static_cast<int64_t>(one.samples.size()), one.bucket});
    batches.order.insert(batches.order.end(), one.samples.begin(), one.samples.end());
  }
  return batches;
}

} // namespace

BucketBatches BucketSorting::forTraining(const std::vector<uint32_t> &order, std::optional<uint64_t> key) const {
  std::vector<std::vector<Waiting>> waiting(larger.size());
  for (size_t place = 0; place < order.size(); ++place)
    waiting[static_cast<size_t>(bucketOf(order[place]))].push_back({order[place], place});
  std::vector<Drawn> drawn;
  std::vector<uint32_t> left;
  for (size_t bucket = 0; bucket < larger.size(); ++bucket) {
    std::vector<Waiting> &own = waiting[bucket];
    const size_t whole = own.size() / static_cast<size_t>(batch) * static_cast<size_t>(batch);
    for (size_t first = 0; first < whole; first += static_cast<size_t>(batch)) {
      Drawn &one = drawn.emplace_back();
      one.bucket = static_cast<int>(bucket);
      one.firstPlace = own[first].place;
      for (size_t i = first; i < first + static_cast<size_t>(batch); ++i)
        one.samples.push_back(own[i].index);
    }
    for (size_t i = whole; i < own.size(); ++i)
      if (larger[bucket] >= 0)
        waiting[static_cast<size_t>(larger[bucket])].push_back(own[i]);
      else
        left.push_back(own[i].index);
  }
  std::stable_sort(drawn.begin(), drawn.end(),
                   [](const Drawn &a, const Drawn &b) { return a.firstPlace < b.firstPlace; });
  for (size_t i = drawn.size(); key && i > 1; --i)
    std::swap(drawn[i - 1], drawn[randomBits64(*key, i) % i]);
  BucketBatches batches = laidOut(drawn);
  batches.order.insert(batches.order.end(), left.begin(), left.end());
  return batches;
}

int64_t BucketSorting::trainingBatches(std::vector<int64_t> samples) const {
  int64_t sum = 0;
  for (size_t bucket = 0; bucket < larger.size(); ++bucket) {
    sum += samples[bucket] / batch;
    if (larger[bucket] >= 0)
      samples[static_cast<size_t>(larger[bucket])] += samples[bucket] % batch;
  }
  return sum;
}

BucketBatches BucketSorting::sorted(const std::vector<uint32_t> &order) const {
  std::vector<uint32_t> byBucket = order;
  std::stable_sort(byBucket.begin(), byBucket.end(),
                   [this](uint32_t a, uint32_t b) { return bucketOf(a) < bucketOf(b); });
  return inOrder(byBucket);
}

BucketBatches BucketSorting::inOrder(const std::vector<uint32_t> &order) const {
  std::vector<Drawn> drawn;
  for (const uint32_t index : order) {
    const int bucket = bucketOf(index);
    if (drawn.empty() || drawn.back().bucket != bucket || static_cast<int64_t>(drawn.back().samples.size()) == batch) {
      drawn.emplace_back();
      drawn.back().bucket = bucket;
    }
    drawn.back().samples.push_back(index);
  }
  return laidOut(drawn);
}

} // namespace sluice

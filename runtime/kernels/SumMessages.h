// SPDX-License-Identifier: Apache-2.0
// Which messages sums over ranks are made of, and what each rank adds up: for both targets.
#pragma once

#include "runtime/Collective.h"
#include "runtime/Random.h"

namespace sluice {

/// What a rank adds up of all ranks: its own, and what came of the others in their order, one behind the other.
struct Leaves {
  const float *own, *received;
  int64_t count; ///< of each
  int rank, ranks;

  SLUICE_KERNEL const float *of(int leaf) const {
    return leaf == rank ? own : received + (leaf < rank ? leaf : leaf - 1) * count;
  }
};

/// One element of what sumInTree() sums, without weights, with the same bits: value(i) is that of leaf i.
template <typename Value> SLUICE_KERNEL float treeSum(int leaves, Value &&value) {
  constexpr int digits = 11;
  static_assert(1 << (digits - 1) >= mostRanks, "a digit for each power of two up to mostRanks");
  float sums[digits], carried = 0;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    carried = value(leaf);
    int digit = 0;
    for (; leaf >> digit & 1; ++digit)
      carried = sums[digit] + carried;
    sums[digit] = carried;
  }
  // What is open: the digits of the number of leaves, of which the last leaf has added up the smallest.
  int digit = 0;
  while (!(leaves >> digit & 1))
    ++digit;
  while (leaves >> ++digit)
    if (leaves >> digit & 1)
      carried = sums[digit] + carried;
  return carried;
}

/// A sum in the tree of sumInTree(): this rank sends and receives, adds up its leaves to `sum`, and sends and receives
/// again.
struct RankSum {
  std::vector<Message> before, after;
  Leaves leaves;
  float *sum;
};

/// Of `count` elements at x, to y, which may be x. Each rank adds up its share of the elements: it gets that share from
/// all others and sends them the sum of it, twice the tensor's bytes to and fro for any number of ranks. Elements so
/// few that those of all ranks fit the `room` at `received` are sent whole, once, and added up by each.
RankSum sumOfRanks(const Ranks &ranks, const float *x, float *y, float *received, int64_t room, int64_t count);

/// What allReduce() is asked for: the elements of its tensors. Throws std::invalid_argument naming `node` where the
/// room is too small or the tensors are too many for one message.
int64_t checkedElements(const char *node, const Tensor &room, TensorList xs, TensorList ys, bool ordered);

/// Some floats.
struct FloatRange {
  float *data;
  int64_t count;
};

/// A tensor of which each rank gets its share of the sum over all ranks, at y.
struct ScatteredSum {
  const float *x;
  float *y;
  int64_t count;
};

/// Floats that are copied.
struct FloatCopy {
  const float *from;
  float *to;
  int64_t count;
};

/// Some elements of the shares of such tensors, as many as the room holds what comes of them: this rank sends others
/// theirs and receives its own, then adds up its leaves.
struct ScatterRound {
  std::vector<FloatCopy> copies; ///< of what is sent and of this rank's own, before the messages
  std::vector<Message> messages;
  struct Sum {
    Leaves leaves;
    float *to;
  };
  std::vector<Sum> sums;
};

/// One after the other; all ranks have as many. `copies`: what is sent lies in the room first, so that it can be
/// multiplied on its way; then the room is roomOfShares(elements, true).
std::vector<ScatterRound> roundsOfShares(const Ranks &ranks, const std::vector<ScatteredSum> &tensors, FloatRange room,
                                         bool copies);

/// Throws std::invalid_argument naming `node` where there are no other ranks, the room is too small for
/// reduceScatter(), or a y for its share.
void checkScattered(const char *node, const Session &session, const Tensor &room, TensorList xs, TensorList ys,
                    bool weighted);
/// Of what that has checked.
inline std::vector<ScatteredSum> scatteredSums(const Stream &stream, TensorList xs, TensorList ys) {
  std::vector<ScatteredSum> all;
  for (size_t i = 0; i < xs.count; ++i)
    all.push_back({stream.data<float>(xs.first[i]), stream.data<float>(ys.first[i]), xs.first[i].shape.elements()});
  return all;
}

/// Which of the `parts` of a gradient, each of elements [n * i / parts, n * (i + 1) / parts), a rank adds up that has a
/// share of it: those that begin in its share.
struct NormParts {
  int64_t first, end;
  const float *share;
  int64_t shareFirst, elements, parts;
  const float *last; ///< where the last of them lies that ends in the shares of others; null: none does

  SLUICE_KERNEL int64_t begin(int64_t part) const { return elements * part / parts; }
  SLUICE_KERNEL const float *data(int64_t part) const {
    return last && part == end - 1 ? last : share + (begin(part) - shareFirst);
  }
};

/// What it sends and receives for that.
struct NormShare {
  NormParts own;
  FloatCopy begun;               ///< of the last part to the room, before the messages; empty where it is all here
  std::vector<Message> ends;     ///< of parts, to the room
  std::vector<Message> partials; ///< by which each rank gets the sums of all parts
};
/// Throws std::invalid_argument naming `node` where there are no other ranks, or the gradient or the room is too small.
void checkNormShare(const char *node, const Session &session, int64_t elements, const Tensor &gradient,
                    const Tensor &room);
NormShare normShare(const Ranks &ranks, const float *share, int64_t elements, int64_t parts, float *room,
                    double *partials);

/// By which each rank gets from each other one the share of these that that one has.
std::vector<Message> messagesOfShares(const Ranks &ranks, const std::vector<FloatRange> &tensors);

/// By which each rank gets all of a tensor of which each has its share at `share`, and where its own goes.
struct GatheredShares {
  FloatCopy own;
  std::vector<Message> messages;
};
/// Throws std::invalid_argument naming `node` where there are no other ranks, or the share is too small.
GatheredShares gatheredShares(const char *node, const Session &session, FloatRange share, FloatRange whole);

/// The ranks that normalize together: `members`, whose numbers are equally far apart, and which of them this one is.
struct NormRanks {
  int members, own, apart;
};
/// Throws std::invalid_argument naming `node` where `members` does not divide the ranks, or there is none but this.
NormRanks normRanks(const char *node, const Ranks *ranks, int64_t members);
/// By which each of them gets the blocks of the others: `blocks` has one of `count` floats for each, in their order.
std::vector<Message> messagesOfBlocks(const Ranks &ranks, const NormRanks &together, float *blocks, int64_t count);

} // namespace sluice

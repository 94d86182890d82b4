// SPDX-License-Identifier: Apache-2.0
// The lists of messages. Each rank makes its own; those of two ranks agree in order and size.
#include "runtime/kernels/SumMessages.h"

#include <stdexcept>

namespace sluice {

static size_t bytesOf(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

/// Everybody gets all of everybody.
static RankSum sumWhole(const Ranks &ranks, const float *x, float *y, float *received, int64_t count) {
  RankSum sum{{}, {}, {x, received, count, ranks.rank(), ranks.size()}, y};
  for (int peer = 0; peer < ranks.size(); ++peer) {
    if (peer == ranks.rank())
      continue;
    sum.before.push_back({peer, const_cast<float *>(x), bytesOf(count), true});
    sum.before.push_back({peer, received, bytesOf(count), false});
    received += count;
  }
  return sum;
}

/// Everybody adds up a share.
static RankSum sumShares(const Ranks &ranks, const float *x, float *y, float *received, int64_t count) {
  const auto shareOfRank = [&](int rank) { return shareOf(count, rank, ranks.size()); };
  const Share own = shareOfRank(ranks.rank());
  RankSum sum{{}, {}, {x + own.first, received, own.count, ranks.rank(), ranks.size()}, y + own.first};
  for (int peer = 0; peer < ranks.size(); ++peer) {
    if (peer == ranks.rank())
      continue;
    const Share theirs = shareOfRank(peer);
    sum.before.push_back({peer, const_cast<float *>(x + theirs.first), bytesOf(theirs.count), true});
    sum.before.push_back({peer, received, bytesOf(own.count), false});
    sum.after.push_back({peer, y + own.first, bytesOf(own.count), true});
    sum.after.push_back({peer, y + theirs.first, bytesOf(theirs.count), false});
    received += own.count;
  }
  return sum;
}

RankSum sumOfRanks(const Ranks &ranks, const float *x, float *y, float *received, int64_t room, int64_t count) {
  const bool whole = (ranks.size() - 1) * count <= room;
  return whole ? sumWhole(ranks, x, y, received, count) : sumShares(ranks, x, y, received, count);
}

int64_t checkedElements(const char *node, const Tensor &room, TensorList xs, TensorList ys, bool ordered) {
  int64_t elements = 0;
  for (const Tensor &x : xs)
    elements += x.shape.elements();
  const int64_t needed = roomOfSum(xs.count, elements, ordered);
  if (xs.count != ys.count || (xs.count > 1 && elements > reducedPiece) ||
      (needed > 0 && (!room.present || room.shape.elements() < needed)))
    throw std::invalid_argument(std::string("'") + node + "': a sum of " + std::to_string(elements) +
                                " elements needs room for " + std::to_string(needed));
  return elements;
}

std::vector<Message> messagesOfShares(const Ranks &ranks, const std::vector<FloatRange> &tensors) {
  std::vector<Message> messages;
  for (int peer = 0; peer < ranks.size(); ++peer)
    for (const FloatRange &tensor : tensors) {
      const auto part = [&](int rank, bool sends) {
        const Share share = shareOf(tensor.count, rank, ranks.size());
        messages.push_back({peer, tensor.data + share.first, bytesOf(share.count), sends});
      };
      if (peer != ranks.rank())
        part(ranks.rank(), true), part(peer, false);
    }
  return messages;
}

NormRanks normRanks(const char *node, const Ranks *ranks, int64_t members) {
  const int64_t size = ranks ? ranks->size() : 1;
  if (!ranks || size % members != 0)
    throw std::invalid_argument(std::string("'") + node + "' normalizes the batches of " + std::to_string(members) +
                                " ranks together, which do not divide " + std::to_string(size));
  const auto apart = static_cast<int>(size / members);
  return {static_cast<int>(members), ranks->rank() / apart, apart};
}

std::vector<Message> messagesOfBlocks(const Ranks &ranks, const NormRanks &together, float *blocks, int64_t count) {
  std::vector<Message> messages;
  for (int member = 0; member < together.members; ++member) {
    const int peer = ranks.rank() % together.apart + member * together.apart;
    if (member == together.own)
      continue;
    messages.push_back({peer, blocks + together.own * count, bytesOf(count), true});
    messages.push_back({peer, blocks + member * count, bytesOf(count), false});
  }
  return messages;
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// The lists of messages. Each rank makes its own; those of two ranks agree in order and size.
#include "runtime/kernels/SumMessages.h"

#include <algorithm>
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

GatheredShares gatheredShares(const char *node, const Session &session, FloatRange share, FloatRange whole) {
  const Share own = shareOf(whole.count, session.state.rank, session.state.ranks);
  if (!session.ranks || share.count < own.count)
    throw std::invalid_argument(std::string("'") + node + "': a share of " + std::to_string(own.count) +
                                " elements of " + std::to_string(whole.count) + " has room for " +
                                std::to_string(share.count) + " and needs other ranks");
  GatheredShares all{{share.data, whole.data + own.first, own.count}, messagesOfShares(*session.ranks, {whole})};
  for (Message &message : all.messages)
    if (message.sends)
      message.data = share.data;
  return all;
}

static int64_t clampedTo(int64_t count, int64_t most) { return std::clamp<int64_t>(count, 0, most); }

/// Elements [first, first + count) of each rank's share of a tensor, with `place` for what of it lies in the room.
static void addSegment(ScatterRound &round, const Ranks &ranks, const ScatteredSum &tensor, int64_t first,
                       int64_t count, float *place, bool copies) {
  const auto countOf = [&](int rank) {
    return clampedTo(shareOf(tensor.count, rank, ranks.size()).count - first, count);
  };
  const int64_t own = countOf(ranks.rank());
  float *received = place, *sent = place + (ranks.size() - 1) * count;
  const auto there = [&](int rank) {
    const float *from = tensor.x + std::min(shareOf(tensor.count, rank, ranks.size()).first + first, tensor.count);
    if (!copies)
      return from;
    round.copies.push_back({from, sent + rank * count, countOf(rank)});
    return static_cast<const float *>(sent + rank * count);
  };
  for (int peer = 0; peer < ranks.size(); ++peer) {
    if (peer == ranks.rank())
      continue;
    round.messages.push_back({peer, const_cast<float *>(there(peer)), bytesOf(countOf(peer)), true});
    round.messages.push_back({peer, received, bytesOf(own), false});
    received += own;
  }
  round.sums.push_back({{there(ranks.rank()), place, own, ranks.rank(), ranks.size()}, tensor.y + first});
}

std::vector<ScatterRound> roundsOfShares(const Ranks &ranks, const std::vector<ScatteredSum> &tensors, FloatRange room,
                                         bool copies) {
  const int64_t each = std::max(1, ranks.size() - 1 + (copies ? ranks.size() : 0)), most = room.count / each;
  std::vector<ScatterRound> rounds(1);
  int64_t used = 0; // of `most`
  for (const ScatteredSum &tensor : tensors) {
    const int64_t longest = shareOf(tensor.count, 0, ranks.size()).count;
    for (int64_t first = 0, count; first < longest; first += count) {
      if (used == most)
        rounds.emplace_back(), used = 0;
      count = std::min(longest - first, most - used);
      addSegment(rounds.back(), ranks, tensor, first, count, room.data + used * each, copies);
      used += count;
    }
  }
  return rounds;
}

void checkScattered(const char *node, const Session &session, const Tensor &room, TensorList xs, TensorList ys,
                    bool weighted) {
  if (!session.ranks)
    throw std::invalid_argument(std::string("'") + node + "' has shares of one process");
  int64_t elements = 0;
  for (size_t i = 0; i < xs.count && i < ys.count; ++i) {
    const int64_t count = xs.first[i].shape.elements(),
                  share = shareOf(count, session.state.rank, session.state.ranks).count;
    elements += count;
    if (ys.first[i].shape.elements() < share)
      throw std::invalid_argument(std::string("'") + node + "': " + std::to_string(ys.first[i].shape.elements()) +
                                  " elements for a share of " + std::to_string(share));
  }
  const int64_t needed = roomOfShares(elements, weighted);
  if (xs.count != ys.count || !room.present || room.shape.elements() < needed)
    throw std::invalid_argument(std::string("'") + node + "': shares of a sum of " + std::to_string(elements) +
                                " elements need room for " + std::to_string(needed));
}

void checkNormShare(const char *node, const Session &session, int64_t elements, const Tensor &gradient,
                    const Tensor &room) {
  const int64_t share = shareOf(elements, session.state.rank, session.state.ranks).count;
  if (!session.ranks || gradient.shape.elements() < share || !room.present ||
      room.shape.elements() < roomOfNorm(elements))
    throw std::invalid_argument(std::string("'") + node + "': the norm of a share of " + std::to_string(share) +
                                " elements of " + std::to_string(elements) + " needs them, other ranks, and room for " +
                                std::to_string(roomOfNorm(elements)));
}

/// Of the ends of parts: what this rank has of one that begins before its share, which goes to who has the beginning,
/// and what others have of its own last part.
static void addEnds(NormShare &norm, const Ranks &ranks, float *room) {
  const NormParts &own = norm.own;
  const auto shareOfRank = [&](int rank) { return shareOf(own.elements, rank, ranks.size()); };
  const Share share = shareOfRank(ranks.rank());
  const int64_t shareEnd = share.first + share.count, before = own.first - 1,
                overlap = before < 0 ? 0 : std::min(own.begin(own.first), shareEnd) - share.first;
  if (share.count > 0 && overlap > 0) {
    const auto owner = static_cast<int>(own.begin(before) / shareOfRank(0).count);
    norm.ends.push_back({owner, const_cast<float *>(own.share), bytesOf(overlap), true});
  }
  const int64_t lastBegin = own.begin(own.end - 1), lastEnd = own.begin(own.end);
  if (own.first == own.end || lastEnd <= shareEnd)
    return;
  norm.begun = {own.share + (lastBegin - share.first), room, shareEnd - lastBegin};
  norm.own.last = room;
  for (int peer = ranks.rank() + 1; peer < ranks.size(); ++peer)
    if (const Share theirs = shareOfRank(peer); theirs.count > 0 && theirs.first < lastEnd)
      norm.ends.push_back({peer, room + (theirs.first - lastBegin),
                           bytesOf(std::min(theirs.first + theirs.count, lastEnd) - theirs.first), false});
}

NormShare normShare(const Ranks &ranks, const float *share, int64_t elements, int64_t parts, float *room,
                    double *partials) {
  const auto firstPart = [&](int rank) { // that begins in the share of this rank or of one behind it
    const Share theirs = shareOf(elements, rank, ranks.size());
    return (theirs.first * parts + elements - 1) / elements;
  };
  const auto endPart = [&](int rank) { return rank + 1 < ranks.size() ? firstPart(rank + 1) : parts; };
  const int own = ranks.rank();
  NormShare norm{
      {firstPart(own), endPart(own), share, shareOf(elements, own, ranks.size()).first, elements, parts, nullptr},
      {},
      {},
      {}};
  addEnds(norm, ranks, room);
  for (int peer = 0; peer < ranks.size(); ++peer) {
    const auto pass = [&](int rank, bool sends) {
      norm.partials.push_back({peer, partials + firstPart(rank),
                               static_cast<size_t>(endPart(rank) - firstPart(rank)) * sizeof(double), sends});
    };
    if (peer != own)
      pass(own, true), pass(peer, false);
  }
  return norm;
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

// SPDX-License-Identifier: Apache-2.0
// Sums over ranks in device memory: kernels, and between them messages that are enqueued on the same stream, so that
// captured steps have both. Kernels read from the step's state which batch it is; messages, which a graph has or has
// not, are enqueued in the last batch alone, of which Session::enqueue() makes graphs of their own.
#include "runtime/Collective.h"

#include "runtime/cuda/Device.h"
#include "runtime/cuda/Gather.h"
#include "runtime/kernels/SumMessages.h"

namespace sluice {

namespace {

constexpr int mostSums = 24; ///< of a rank's batches: more than an int of batches has use for

using Moved = FloatCopy; ///< between a tensor and where several of them are packed

/// What floats are multiplied by on their way.
struct Scaling {
  bool weight, mean; ///< by DeviceState::unitWeight, by DeviceState::meanFactor
};

/// After the last batch.
__global__ void moveKernel(Pieces<Moved> all, Scaling scaling, const DeviceState *state) {
  if (!state->update.lastBatch)
    return;
  const int own = all.own();
  const Moved &p = all.piece[own];
  const float weight = scaling.weight ? state->unitWeight : 1, factor = scaling.mean ? state->meanFactor : 1;
  for (int64_t i = all.thread(own); i < p.count; i += all.threads(own))
    p.to[i] = p.from[i] * weight * factor;
}

void moveAll(cudaStream_t stream, const std::vector<Moved> &list, Scaling scaling, const DeviceState *state) {
  Pieces<Moved> pieces{};
  const auto launch = [&] {
    if (pieces.count > 0)
      moveKernel<<<pieces.blocks(), blockThreads, 0, stream>>>(pieces, scaling, state);
    pieces = {};
  };
  for (const Moved &one : list) {
    if (one.from == one.to && !scaling.weight && !scaling.mean)
      continue;
    pieces.add(one, one.count);
    if (pieces.full())
      launch();
  }
  launch();
}

/// An element each of what sumInTree() does, with the same bits.
__global__ void treeKernel(Leaves leaves, float *to, bool mean, const DeviceState *state) {
  const float factor = mean ? state->meanFactor : 1;
  SLUICE_GRID_LOOP(i, leaves.count)
  to[i] = treeSum(leaves.ranks, [&](int leaf) { return leaves.of(leaf)[i]; }) * factor;
}

/// The sums of a rank's batches, the smallest first.
struct Counter {
  float *sum[mostSums];
  int count;
};

/// Which sums are added, the smallest first, and which one takes what comes of it, follows from the number of the
/// batch.
__global__ void sumBatchesKernel(const float *x, Counter counter, int64_t count, bool weighted,
                                 const DeviceState *state) {
  const int64_t batch = state->batch;
  const float weight = weighted ? state->unitWeight : 1;
  const int top = counter.count - 1;
  int into = 0;
  while (into < top && (state->update.lastBatch || (batch >> into & 1)))
    ++into;
  SLUICE_GRID_LOOP(i, count) {
    float value = x[i] * weight;
    for (int digit = 0; digit < into; ++digit)
      if (batch >> digit & 1)
        value = counter.sum[digit][i] + value;
    if (into == top && batch >> top > 0)
      value = counter.sum[top][i] + value;
    counter.sum[into][i] = value;
  }
}

/// What allReduce() sums: tensors, and where they lie for that, one behind the other.
struct Summed {
  std::vector<Moved> in, out;
  float *packed;
  int64_t elements;
};

Summed summedOf(Stream &stream, const Tensor &room, TensorList xs, TensorList ys, int64_t elements) {
  const bool packs = xs.count > 1;
  Summed all{{}, {}, packs ? stream.data<float>(room) : stream.data<float>(*ys.begin()), elements};
  float *place = all.packed;
  for (size_t i = 0; i < xs.count; ++i) {
    const int64_t count = xs.first[i].shape.elements();
    all.in.push_back({stream.data<float>(xs.first[i]), place, count});
    all.out.push_back({place, stream.data<float>(ys.first[i]), count});
    place += count;
  }
  return all;
}

/// In its place, piece by piece, with what others send behind `received`.
void sumInOrder(Stream &stream, Ranks &ranks, const Summed &all, float *received, bool mean, const Awaited &awaited) {
  const DeviceState *state = deviceState(stream);
  const int64_t room = roomOfSum(1, all.elements, true);
  for (int64_t begin = 0; begin < all.elements; begin += reducedPiece) {
    float *piece = all.packed + begin;
    const RankSum sum = sumOfRanks(ranks, piece, piece, received, room, std::min(reducedPiece, all.elements - begin));
    ranks.onDevices()->exchange(sum.before, stream.native(), awaited);
    if (sum.leaves.count > 0)
      treeKernel<<<blocksFor(sum.leaves.count, blockThreads), blockThreads, 0, native(stream)>>>(sum.leaves, sum.sum,
                                                                                                 mean, state);
    ranks.onDevices()->exchange(sum.after, stream.native(), awaited);
  }
}

} // namespace

// Each rank multiplies what it has by its own weight before it sends it: the bits are those of weights in the tree.
void allReduce(Stream &stream, const Tensor &room, TensorList xs, TensorList ys, bool mean, bool weighted, bool ordered,
               Node node) {
  const Summed all = summedOf(stream, room, xs, ys, checkedElements(node, room, xs, ys, ordered));
  Ranks *ranks = stream.session.ranks;
  if (ranks && !stream.session.state.lastBatch())
    return;
  const DeviceState *state = deviceState(stream);
  const Awaited awaited = {"the sum over all ranks", node.name, stream.session.state.step};
  float *place = stream.data<float>(room);
  stream.launch(node.as(OpRole::Reduce), "all_reduce", [&] {
    moveAll(native(stream), all.in, {weighted, mean && (!ordered || !ranks)}, state);
    if (ranks && ordered)
      sumInOrder(stream, *ranks, all, place + (xs.count > 1 ? all.elements : 0), mean, awaited);
    else if (ranks)
      ranks->onDevices()->add(all.packed, static_cast<size_t>(all.elements), stream.native(), awaited);
    moveAll(native(stream), all.out, {false, false}, state);
  });
}

// What is sent is multiplied on its way into the room, as xs may be read by others, too.
void reduceScatter(Stream &stream, const Tensor &room, TensorList xs, TensorList ys, bool weighted, Node node) {
  const Session &session = stream.session;
  checkScattered(node, session, room, xs, ys, weighted);
  const std::vector<ScatteredSum> all = scatteredSums(stream, xs, ys);
  const FloatRange place{stream.data<float>(room), room.shape.elements()};
  if (!session.state.lastBatch())
    return;
  Ranks *ranks = session.ranks;
  const DeviceState *state = deviceState(stream);
  const Awaited awaited = {"the sum over all ranks", node.name, session.state.step};
  stream.launch(node.as(OpRole::Reduce), "reduce_scatter", [&] {
    for (const ScatterRound &round : roundsOfShares(*ranks, all, place, weighted)) {
      moveAll(native(stream), round.copies, {weighted, false}, state);
      ranks->onDevices()->exchange(round.messages, stream.native(), awaited);
      for (const ScatterRound::Sum &sum : round.sums)
        if (sum.leaves.count > 0)
          treeKernel<<<blocksFor(sum.leaves.count, blockThreads), blockThreads, 0, native(stream)>>>(sum.leaves, sum.to,
                                                                                                     true, state);
    }
  });
}

void allGather(Stream &stream, TensorList parameters, Node node) {
  Ranks *ranks = stream.session.ranks;
  if (!ranks || !stream.session.state.lastBatch())
    return;
  std::vector<FloatRange> all;
  for (const Tensor &parameter : parameters)
    all.push_back({stream.data<float>(parameter), parameter.shape.elements()});
  const Awaited awaited = {"the parameters of all ranks", node.name, stream.session.state.step};
  stream.launch(node.as(OpRole::Gather), "all_gather",
                [&] { ranks->onDevices()->exchange(messagesOfShares(*ranks, all), stream.native(), awaited); });
}

void gatherShares(Stream &stream, const Tensor &share, const Tensor &whole, Node node) {
  const Session &session = stream.session;
  const GatheredShares all = gatheredShares(node, session, {stream.data<float>(share), share.shape.elements()},
                                            {stream.data<float>(whole), whole.shape.elements()});
  const Awaited awaited = {"the parameter of all ranks", node.name, session.state.step};
  stream.launch(node.as(OpRole::Gather), "gather_shares", [&] {
    checkCuda(cudaMemcpyAsync(all.own.to, all.own.from, static_cast<size_t>(all.own.count) * sizeof(float),
                              cudaMemcpyDeviceToDevice, native(stream)),
              "cannot copy a share");
    session.ranks->onDevices()->exchange(all.messages, stream.native(), awaited);
  });
}

void sumBatches(Stream &stream, const Tensor &x, TensorList sums, bool weighted, Node node) {
  if (sums.count > mostSums)
    throw std::invalid_argument(std::string("'") + node.name + "': " + std::to_string(sums.count) +
                                " sums of batches, of which there are " + std::to_string(mostSums) + " at most");
  Counter counter{};
  for (const Tensor &sum : sums)
    counter.sum[counter.count++] = stream.data<float>(sum);
  const float *px = stream.data<float>(x);
  const int64_t count = x.shape.elements();
  const DeviceState *state = deviceState(stream);
  stream.launch(node.as(OpRole::Update), "sum_batches", [&] {
    sumBatchesKernel<<<blocksFor(count, blockThreads), blockThreads, 0, native(stream)>>>(px, counter, count, weighted,
                                                                                          state);
  });
}

} // namespace sluice

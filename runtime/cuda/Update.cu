// SPDX-License-Identifier: Apache-2.0
// Optimizer updates, what gradients go through before them, and the step's hyperparameters in device memory, from which
// they, losses and dropout read: a captured graph sees what a step changed.
#include "runtime/cuda/Cut.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Gather.h"
#include "runtime/cuda/HomeUpdate.h"
#include "runtime/kernels/SumMessages.h"

namespace sluice {

namespace {

// No constructor runs for device variables; storeState() writes it before anything reads it.
__device__ alignas(DeviceState) unsigned char stateBytes[sizeof(DeviceState)];

__global__ void storeState(DeviceState state) { *reinterpret_cast<DeviceState *>(stateBytes) = state; }

/// The tensors of an update, from where it begins. States that a rule has not are the one before, or w, which it leaves
/// alone.
struct Pointers {
  float *w, *first, *second;
  const float *dw, *norm;
  int64_t count;
  ParameterGroup group;
  int width;                             ///< elements that a thread takes at once: 4, where all tensors lie so
  bool decoupled = false, plain = false; ///< weight decay; whatever the momentum is

  Pointers() = default;
  Pointers(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm, const Tensor &first,
           const Tensor &second, UpdatedShare share)
      : w(stream.data<float>(w) + share.first), first(first.present ? stream.data<float>(first) : this->w),
        second(second.present ? stream.data<float>(second) : this->first), dw(stream.data<float>(dw) + share.gradient),
        norm(stream.data<float>(norm)), count(share.count), group(stream.session.groupOf(id)),
        width(share.first % 4 == 0 && share.gradient % 4 == 0 ? 4 : 1) {}
};

/// Of an update with states of their own.
Pointers pointersOf(Stream &stream, Node node, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                    const Tensor &first, const Tensor &second) {
  const UpdatedShare share = updatedShare(stream.session, node, w.shape, dw, {first, second});
  return {stream, id, w, dw, norm, first, second, share};
}

/// Neighbours from i on, p.width of them at once.
template <typename Rule>
__device__ void updateFour(const Pointers &p, int64_t i, const UpdateFactors &f, float factor) {
  const int64_t rest = p.count - i, count = rest < p.width ? rest : p.width;
  const bool hasFirst = p.first != p.w, hasSecond = p.second != p.first;
  float w[4] = {}, dw[4] = {}, first[4] = {}, second[4] = {};
  loadFour(w, p.w + i, count);
  loadFour(dw, p.dw + i, count);
  if (hasFirst)
    loadFour(first, p.first + i, count);
  if (hasSecond)
    loadFour(second, p.second + i, count);
  for (int k = 0; k < 4; ++k)
    Rule::apply(w[k], f.elementOf(dw[k]) * factor, first[k], second[k], f);
  storeFour(p.w + i, w, count);
  if (hasFirst)
    storeFour(p.first + i, first, count);
  if (hasSecond)
    storeFour(p.second + i, second, count);
}

/// Without momentum Plain. In all but the last batch of a step updates find nothing to do: one graph serves every
/// batch.
template <typename Rule, typename Plain> __global__ void updateKernel(Pieces<Pointers> all, const DeviceState *state) {
  if (!state->update.changes())
    return;
  const int own = all.own();
  const Pointers &p = all.piece[own];
  const UpdateFactors f = state->update.of(p.group, p.decoupled);
  const float factor = f.clipFactor(p.norm);
  const bool plain = p.plain || f.momentum == 0;
  for (int64_t i = p.width * all.thread(own); i < p.count; i += p.width * all.threads(own))
    if (plain)
      updateFour<Plain>(p, i, f, factor);
    else
      updateFour<Rule>(p, i, f, factor);
}

/// Updates the moments with the gradient; sums of squares of part blockIdx.x of w and of the direction.
__global__ void lambPart(Pointers p, double *weights, double *directions, const DeviceState *state) {
  __shared__ double shared[blockThreads / 32];
  if (!state->update.changes())
    return;
  const UpdateFactors f = state->update.of(p.group, false);
  const float factor = f.clipFactor(p.norm);
  const int64_t begin = p.count * blockIdx.x / gridDim.x, end = p.count * (blockIdx.x + 1) / gridDim.x;
  double ofWeights = 0, ofDirections = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockThreads) {
    lambMoments(f.elementOf(p.dw[i]) * factor, p.first[i], p.second[i], f);
    ofWeights += squareOf(p.w[i]);
    ofDirections += squareOf(lambDirection(p.w[i], p.first[i], p.second[i], f));
  }
  ofWeights = blockSum(ofWeights, shared);
  ofDirections = blockSum(ofDirections, shared);
  if (threadIdx.x == 0)
    weights[blockIdx.x] = ofWeights, directions[blockIdx.x] = ofDirections;
}

/// The sum of partial sums, in thread 0; one block.
__device__ double sumOfParts(const double *partials, double *shared) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < cuda::normParts; i += blockThreads)
    sum += partials[i];
  return blockSum(sum, shared);
}

__global__ void lambRatio(ParameterGroup group, const double *weights, const double *directions, float *ratio,
                          const DeviceState *state) {
  __shared__ double shared[blockThreads / 32];
  const double w = sumOfParts(weights, shared), u = sumOfParts(directions, shared);
  if (threadIdx.x == 0)
    *ratio = trustRatio(w, u, state->update.of(group, false));
}

__global__ void lambApply(Pointers p, const float *ratio, const DeviceState *state) {
  if (!state->update.changes())
    return;
  const UpdateFactors f = state->update.of(p.group, false);
  const float size = f.rate * *ratio;
  SLUICE_GRID_LOOP(i, p.count)
  p.w[i] -= size * lambDirection(p.w[i], p.first[i], p.second[i], f);
}

__global__ void squaresPart(const float *gradient, int64_t count, double *partials, const DeviceState *state) {
  __shared__ double shared[blockThreads / 32];
  const UpdateFactors f = state->update;
  const int64_t begin = count * blockIdx.x / gridDim.x, end = count * (blockIdx.x + 1) / gridDim.x;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockThreads)
    sum += squareOf(f.elementOf(gradient[i]));
  sum = blockSum(sum, shared);
  if (threadIdx.x == 0)
    partials[blockIdx.x] = sum;
}

/// As squaresPart() of the whole gradient, of the parts that one rank adds up.
__global__ void squaresOfShare(NormParts own, double *partials, const DeviceState *state) {
  __shared__ double shared[blockThreads / 32];
  const UpdateFactors f = state->update;
  const int64_t part = own.first + blockIdx.x, count = own.begin(part + 1) - own.begin(part);
  const float *data = own.data(part);
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockThreads)
    sum += squareOf(f.elementOf(data[i]));
  sum = blockSum(sum, shared);
  if (threadIdx.x == 0)
    partials[part] = sum;
}

__global__ void joinNorm(const double *partials, const float *before, float *norm) {
  __shared__ double shared[blockThreads / 32];
  const double sum = sumOfParts(partials, shared);
  if (threadIdx.x == 0)
    *norm = static_cast<float>(sqrt((before ? squareOf(*before) : 0) + sum));
}

/// A tensor that is added to another one.
struct Addition {
  const float *from;
  float *to;
  int64_t count;
};

/// to = sum(from, to), element by element.
template <typename Sum> __device__ void addTo(const Pieces<Addition> &all, Sum &&sum) {
  const int own = all.own();
  const Addition &p = all.piece[own];
  for (int64_t i = 4 * all.thread(own); i < p.count; i += 4 * all.threads(own)) {
    float from[4] = {}, to[4] = {};
    loadFour(from, p.from + i, p.count - i);
    loadFour(to, p.to + i, p.count - i);
    for (int k = 0; k < 4; ++k)
      to[k] = sum(from[k], to[k]);
    storeFour(p.to + i, to, p.count - i);
  }
}

__global__ void accumulateKernel(Pieces<Addition> all, const DeviceState *state) {
  const UpdateFactors f = state->update;
  addTo(all, [&](float from, float to) { return joinedElement(from, to, f); });
}

__global__ void averageKernel(Pieces<Addition> all, const DeviceState *state) {
  if (!state->update.changes())
    return;
  const float keep = state->update.first ? 0 : state->update.averageDecay;
  addTo(all, [&](float from, float to) { return averagedElement(from, to, keep); });
}

template <typename Rule, typename Plain>
void updatePieces(cudaStream_t stream, const Pieces<Pointers> &all, const DeviceState *state) {
  const auto kernel = updateKernel<Rule, Plain>;
  kernel<<<all.blocks(), blockThreads, 0, stream>>>(all, state);
}

void accumulatePieces(cudaStream_t stream, const Pieces<Addition> &all, const DeviceState *state) {
  accumulateKernel<<<all.blocks(), blockThreads, 0, stream>>>(all, state);
}

void averagePieces(cudaStream_t stream, const Pieces<Addition> &all, const DeviceState *state) {
  averageKernel<<<all.blocks(), blockThreads, 0, stream>>>(all, state);
}

/// On the stream `home` all tensors are in host memory.
template <typename Rule, typename Plain = Rule>
void launchUpdate(Stream &stream, Node node, const char *op, Pointers p, bool decoupled = false, bool plain = false) {
  p.decoupled = decoupled, p.plain = plain;
  if (stream.id == StreamId::Home)
    return updateAtHome<Rule, Plain>(stream, node, op,
                                     {p.w, p.first, p.second, p.dw, p.norm, p.count, p.group, p.decoupled, p.plain});
  launchPiece<Pointers>(stream, node.as(OpRole::Update), op, updatePieces<Rule, Plain>, p, p.count);
}

} // namespace

void storeDeviceState(cudaStream_t stream, const DeviceState &state) {
  storeState<<<1, 1, 0, stream>>>(state);
  checkCuda(cudaPeekAtLastError(), "cannot store the step's state");
}

DeviceState *deviceStateAddress() {
  static void *const address = [] {
    void *found = nullptr;
    checkCuda(cudaGetSymbolAddress(&found, stateBytes), "cannot find the step's state");
    return found;
  }();
  return static_cast<DeviceState *>(address);
}

bool deviceCodeRuns() {
  cudaFuncAttributes attributes;
  const bool runs = cudaFuncGetAttributes(&attributes, storeState) == cudaSuccess;
  cudaGetLastError();
  return runs;
}

std::string deviceCodeArchitectures() { return SLUICE_CUDA_ARCHITECTURES; }

void updateSgd(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
               const Tensor &momentum, Node node) {
  launchUpdate<MomentumSgd, PlainSgd>(
      stream, node, "update_sgd", pointersOf(stream, node, id, w, dw, norm, momentum, none), false, !momentum.present);
}

void updateAdam(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                const Tensor &expAvg, const Tensor &expAvgSq, WeightDecay decay, Node node) {
  const bool decoupled = decay == WeightDecay::Decoupled;
  launchUpdate<AdamRule>(stream, node, decoupled ? "update_adamw" : "update_adam",
                         pointersOf(stream, node, id, w, dw, norm, expAvg, expAvgSq), decoupled);
}

void updateAdagrad(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                   const Tensor &sum, Node node) {
  launchUpdate<AdagradRule>(stream, node, "update_adagrad", pointersOf(stream, node, id, w, dw, norm, sum, none));
}

void updateRmsProp(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                   const Tensor &squareAvg, const Tensor &momentum, Node node) {
  launchUpdate<MomentumRmsProp, PlainRmsProp>(stream, node, "update_rmsprop",
                                              pointersOf(stream, node, id, w, dw, norm, squareAvg, momentum));
}

void updateLion(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                const Tensor &expAvg, Node node) {
  launchUpdate<LionRule>(stream, node, "update_lion", pointersOf(stream, node, id, w, dw, norm, expAvg, none), true);
}

Lamb::Lamb(Node node, Shape w) : Kernel(node), w(w) { workspace = static_cast<size_t>(cuda::lambScratch); }

void Lamb::update(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                  const Tensor &expAvg, const Tensor &expAvgSq, const Tensor &scratch) const {
  checkUpdate(node, this->w, {w, dw, expAvg, expAvgSq});
  const Pointers p(stream, id, w, dw, norm, expAvg, expAvgSq, {{0, w.shape.elements()}, 0});
  double *weights = stream.data<double>(scratch), *directions = weights + cuda::normParts;
  auto *ratio = reinterpret_cast<float *>(directions + cuda::normParts);
  const DeviceState *state = deviceState(stream);
  stream.launch(node.as(OpRole::Update), "update_lamb", [&] {
    lambPart<<<cuda::normParts, blockThreads, 0, native(stream)>>>(p, weights, directions, state);
    lambRatio<<<1, blockThreads, 0, native(stream)>>>(p.group, weights, directions, ratio, state);
    lambApply<<<blocksFor(p.count, blockThreads), blockThreads, 0, native(stream)>>>(p, ratio, state);
  });
}

GradientNorm::GradientNorm(Node node, Shape gradient) : Kernel(node), gradient(gradient) {
  workspace = static_cast<size_t>(cuda::normScratch);
}

void GradientNorm::run(Stream &stream, const Tensor &gradient, const Tensor &before, const Tensor &norm,
                       const Tensor &scratch) const {
  checkUpdate(node, this->gradient, {gradient});
  const float *pg = stream.data<float>(gradient), *others = stream.data<float>(before);
  float *result = stream.data<float>(norm);
  double *partials = stream.data<double>(scratch);
  const int64_t count = gradient.shape.elements();
  const DeviceState *state = deviceState(stream);
  stream.launch(node.as(OpRole::Update), "gradient_norm", [&] {
    squaresPart<<<cuda::normParts, blockThreads, 0, native(stream)>>>(pg, count, partials, state);
    joinNorm<<<1, blockThreads, 0, native(stream)>>>(partials, others, result);
  });
}

SharesNorm::SharesNorm(Node node, int64_t elements) : Kernel(node), elements(elements) {
  workspace = static_cast<size_t>(cuda::normScratch);
}

void SharesNorm::run(Stream &stream, const Tensor &gradient, const Tensor &before, const Tensor &room,
                     const Tensor &norm, const Tensor &scratch) const {
  static_assert(cuda::normParts >= leastNormParts, "the room has place for a part");
  const Session &session = stream.session;
  checkNormShare(node, session, elements, gradient, room);
  if (!session.state.lastBatch())
    return;
  const float *pg = stream.data<float>(gradient), *others = stream.data<float>(before);
  float *result = stream.data<float>(norm);
  double *partials = stream.data<double>(scratch);
  DeviceRanks &devices = *session.ranks->onDevices();
  const NormShare share = normShare(*session.ranks, pg, elements, cuda::normParts, stream.data<float>(room), partials);
  const DeviceState *state = deviceState(stream);
  const Awaited awaited = {"the norm of the gradient", node, session.state.step};
  stream.launch(Node(node).as(OpRole::Reduce), "shares_norm", [&] {
    if (share.begun.count > 0)
      checkCuda(cudaMemcpyAsync(share.begun.to, share.begun.from,
                                static_cast<size_t>(share.begun.count) * sizeof(float), cudaMemcpyDeviceToDevice,
                                native(stream)),
                "cannot copy a part of a gradient");
    devices.exchange(share.ends, stream.native(), awaited);
    if (const auto blocks = static_cast<unsigned>(share.own.end - share.own.first))
      squaresOfShare<<<blocks, blockThreads, 0, native(stream)>>>(share.own, partials, state);
    devices.exchange(share.partials, stream.native(), awaited);
    joinNorm<<<1, blockThreads, 0, native(stream)>>>(partials, others, result);
  });
}

void accumulateGradient(Stream &stream, const Tensor &dw, const Tensor &sum, Node node) {
  checkUpdate(node, sum.shape, {dw});
  const Addition piece{stream.data<float>(dw), stream.data<float>(sum), sum.shape.elements()};
  launchPiece<Addition>(stream, node.as(OpRole::Update), "accumulate", accumulatePieces, piece, piece.count);
}

void averageWeights(Stream &stream, const Tensor &w, const Tensor &average, Node node) {
  checkUpdate(node, w.shape, {average});
  const Addition piece{stream.data<float>(w), stream.data<float>(average), w.shape.elements()};
  if (stream.id == StreamId::Home)
    return averageAtHome(stream, node, "average_weights", piece.from, piece.to, piece.count);
  launchPiece<Addition>(stream, node.as(OpRole::Update), "average_weights", averagePieces, piece, piece.count);
}

} // namespace sluice

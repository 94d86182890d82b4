// SPDX-License-Identifier: Apache-2.0
// Replays the layers of AlexNet and VGG-16 through vDNN's rules, see VdnnPool.h.
#include "tools/bench/reproduce/VdnnPool.h"

namespace sluice::bench {

using planner::PoolRequest;

namespace {

struct Layer {
  char kind; ///< 'C' convolution, 'P' pooling, 'F' fully connected; activations are in place
  Bytes input, output, parameters;
  Bytes channels, outChannels, outEdge;
};

std::vector<Layer> layersOf(const std::string &network, Bytes batch) {
  std::vector<Layer> layers;
  Bytes channels = 3, edge = network == "alexnet" ? 227 : 224;
  auto push = [&](char kind, Bytes outChannels, Bytes outEdge, Bytes parameters) {
    layers.push_back({kind, 4 * batch * channels * edge * edge, 4 * batch * outChannels * outEdge * outEdge,
                      4 * parameters, channels, outChannels, outEdge});
    channels = outChannels;
    edge = outEdge;
  };
  auto conv = [&](Bytes out, Bytes kernel, Bytes stride, Bytes pad) {
    push('C', out, (edge + 2 * pad - kernel) / stride + 1, channels * out * kernel * kernel + out);
  };
  auto pool = [&](Bytes kernel) { push('P', channels, (edge - kernel) / 2 + 1, 0); };
  auto fullyConnected = [&](Bytes out) { push('F', out, 1, channels * edge * edge * out + out); };
  if (network == "alexnet") {
    conv(96, 11, 4, 0), pool(3), conv(256, 5, 1, 2), pool(3);
    conv(384, 3, 1, 1), conv(384, 3, 1, 1), conv(256, 3, 1, 1), pool(3);
  } else {
    const int table[][2] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
    for (const auto &[out, count] : table) {
      for (int i = 0; i < count; ++i)
        conv(out, 3, 1, 1);
      pool(2);
    }
  }
  for (Bytes out : {4096, 4096, 1000})
    fullyConnected(out);
  return layers;
}

std::vector<bool> offloadedInputs(const std::vector<Layer> &layers, const std::string &mode) {
  std::vector<bool> off(layers.size(), false);
  bool take = true;
  for (size_t i = 0; i + 1 < layers.size(); ++i) { // the last layer is never offloaded
    const bool conv = layers[i].kind == 'C';
    off[i] = mode == "all" ? layers[i].kind != 'F' : conv && (mode == "conv" || (mode == "aconv" && take));
    take = take != conv;
  }
  return off;
}

/// What backward layer m brings back: the nearest offloaded input below that is away, no further than the next
/// convolution; -1: nothing.
int prefetched(const std::vector<Layer> &layers, const std::vector<bool> &away, int m) {
  for (int i = m - 1; i >= 0; --i) {
    if (away[i])
      return i;
    if (layers[i].kind == 'C')
      break;
  }
  return -1;
}

class Recorder {
public:
  Recorder(const VdnnIteration &iteration, const std::vector<Layer> &layers)
      : it(iteration), layers(layers), n(static_cast<int>(layers.size())), off(offloadedInputs(layers, it.mode)),
        away(off), x(n + 1), dx(n + 1, -1) {}

  std::vector<PoolRequest> run() {
    for (const Layer &layer : layers)
      if (layer.parameters > 0)
        allocate(layer.parameters);
    x[0] = input(0);
    for (int i = 0; i < n; ++i) {
      x[i + 1] = input(i + 1);
      if (off[i] && (i > 0 || !it.inputStays))
        release(x[i]);
    }
    if (it.forwardOnly)
      return requests;
    dx[n] = allocate(layers[n - 1].output);
    for (int m = n - 1; m >= 0; --m)
      backward(m);
    return requests;
  }

private:
  void backward(int m) {
    bringBack(m); // nobody looked that far ahead
    const int below = prefetched(layers, away, m);
    if (!it.derivativeFirst)
      bringBack(below);
    if (m > 0)
      dx[m] = allocate(layers[m].input);
    const int dw = layers[m].parameters > 0 ? allocate(layers[m].parameters) : -1;
    if (it.derivativeFirst)
      bringBack(below);
    if (m == it.heavyLayer)
      release(allocate(it.workspace));
    if (dw >= 0)
      release(dw);
    release(x[m + 1]);
    release(dx[m + 1]);
  }

  int allocate(Bytes bytes, bool high = false) {
    requests.push_back(
        {high ? PoolRequest::What::AllocateHigh : PoolRequest::What::Allocate, next, (bytes + 511) / 512 * 512});
    return next++;
  }
  void release(int block) { requests.push_back({PoolRequest::What::Free, block, 0}); }

  int input(int i) { return allocate(i < n ? layers[i].input : layers[n - 1].output, it.highEnd && i < n && !off[i]); }
  void bringBack(int i) {
    if (i >= 0 && away[i]) {
      x[i] = input(i);
      away[i] = false;
    }
  }

  const VdnnIteration &it;
  const std::vector<Layer> &layers;
  const int n;
  const std::vector<bool> off;
  std::vector<bool> away;
  std::vector<int> x, dx; ///< blocks
  std::vector<PoolRequest> requests;
  int next = 0;
};

} // namespace

std::vector<PoolRequest> vdnnRequests(const VdnnIteration &iteration) {
  const std::vector<Layer> layers = layersOf(iteration.network, iteration.batch);
  return Recorder(iteration, layers).run();
}

int convolution(const std::string &network, int nth) {
  const std::vector<Layer> layers = layersOf(network, 1);
  int layer = -1;
  while (nth > 0)
    nth -= layers[++layer].kind == 'C';
  return layer;
}

Bytes winogradWorkspace(const std::string &network, int batch, int layer) {
  const Layer l = layersOf(network, batch)[layer];
  const Bytes tiles = (l.outEdge + 3) / 4 * ((l.outEdge + 3) / 4) * batch;
  return 4 * 36 * ((l.channels + l.outChannels) * tiles + l.channels * l.outChannels);
}

} // namespace sluice::bench

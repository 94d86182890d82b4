// SPDX-License-Identifier: Apache-2.0
// Builds op-level training problems of well-known networks without a model file, for planner benchmarks and
// reproductions: fp32, NCHW, op times from a device profile's roofline, parameters and momentum in the base, weight
// gradients updated at once.
#pragma once

#include "passes/planner/Problem.h"
#include "passes/planner/Profile.h"

#include <string>
#include <vector>

namespace sluice::bench {

using planner::Bytes;

struct NetworkOptions {
  bool encodings = true; ///< offer mask and argmax forms, as the compiler does
  bool nested =
      false; ///< dense blocks concatenate step by step, which makes every layer a stage, as chain planners write them
  bool inPlace = true; ///< activations overwrite their input where nobody reads it later
  bool halves = false; ///< offer fp16 copies, at the profile's rate
  double zfpBits = 0;  ///< offer zfp forms of so many bits a value, by the compiler's rule of who has them; 0: none
  bool leaky = false;  ///< ReLUs are leaky, so that what BatchNorm reads can be rebuilt from what they wrote
};

struct LayerBytes {
  Bytes total = 0, largest = 0;
};

/// Records forward layers; build() adds the backward half. Values are numbers that layers return.
class NetworkBuilder {
public:
  NetworkBuilder(const planner::Profile &profile, int batch, NetworkOptions options = {});

  int input(int channels, int height, int width);
  int conv(int x, int channels, int kernel, int stride = 1, int pad = -1, int groups = 1, int kernelWidth = -1,
           int padWidth = -1);
  int transposedConv(int x, int channels, int kernel, int stride);
  int norm(int x);
  int relu(int x);
  int maxPool(int x, int kernel, int stride, int pad = 0);
  int averagePool(int x, int kernel, int stride, int pad = 0);
  int globalPool(int x);
  int add(int a, int b);
  int concat(const std::vector<int> &parts);
  int fullyConnected(int x, int features);
  int dropout(int x);
  void loss(int x);

  int convNormRelu(int x, int channels, int kernel, int stride = 1, int pad = -1, int groups = 1) {
    return relu(norm(conv(x, channels, kernel, stride, pad, groups)));
  }

  /// Following layers belong to the next stage.
  void cut() { ++stage; }
  bool nested() const { return options.nested; }
  int channels(int x) const { return shapes[x].c; }
  int height(int x) const { return shapes[x].h; }

  planner::Problem build();

  /// fp32 bytes of the outputs of all layers: of every one, in place or not, and the largest.
  LayerBytes layerBytes() const;

  /// fp32 bytes of the inputs of all convolutions and max-pools, shared ones once, and of the first fully connected
  /// layer.
  Bytes pinnedBytes() const;

private:
  struct Shape {
    int c, h, w;
  };
  enum class Type { Input, Conv, Norm, Relu, MaxPool, AveragePool, Add, Concat, FullyConnected, Dropout, Loss };
  struct Layer {
    Type type;
    std::vector<int> inputs;
    int output;
    int stage;
    double flops;     ///< of one direction
    Bytes parameters; ///< bytes
    double area;      ///< of a convolution's filter, which samples of the profile tell kernels apart by
    std::string name;
  };

  int push(Type type, const char *name, const std::vector<int> &inputs, Shape shape, double flops = 0,
           Bytes parameters = 0, double area = 0);
  Bytes bytes(int value) const;
  void forward(const Layer &layer);
  void backward(const Layer &layer);
  bool overwrites(size_t layer) const;
  void offerPackings(const std::vector<int> &reluReaders);
  std::vector<int> maskReaders(int buffer) const;
  void offerInversions();
  int addBuffer(const std::string &name, Bytes size, int stage);
  int gradientOf(int value, int stage, bool &fresh);
  planner::Op op(const Layer &layer, const std::string &what, OpKind kind, planner::Phase phase, double flops,
                 Bytes moved) const;

  const planner::Profile &profile;
  const int batch;
  const NetworkOptions options;
  int stage = 0;
  std::vector<Shape> shapes;
  std::vector<Layer> layers;
  planner::Problem problem;
  std::vector<int> bufferOf, gradient, side; ///< per value; side: statistics or pool indices
  std::vector<int> readers;                  ///< forward layers that read a value
};

} // namespace sluice::bench

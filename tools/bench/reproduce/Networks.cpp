// SPDX-License-Identifier: Apache-2.0
// Layer tables of the networks, after their papers and torchvision's definitions. Every block is one stage.
#include "tools/bench/reproduce/Networks.h"

#include <map>
#include <stdexcept>

namespace sluice::bench {

using planner::Problem;
using planner::Profile;

namespace {

/// `full`: with the published LRN of the first two layers, which moves what a norm moves, and dropout.
int alexNet(NetworkBuilder &b, int x, bool full) {
  int blocks = 0;
  auto block = [&](int channels, int kernel, int stride, int pad, bool pool) {
    x = b.relu(b.conv(x, channels, kernel, stride, pad));
    if (full && blocks++ < 2)
      x = b.norm(x);
    b.cut();
    if (pool)
      x = b.maxPool(x, 3, 2);
    b.cut();
  };
  auto wide = [&] {
    x = b.relu(b.fullyConnected(x, 4096));
    x = full ? b.dropout(x) : x;
    b.cut();
  };
  block(96, 11, 4, 0, true);
  block(256, 5, 1, 2, true);
  block(384, 3, 1, 1, false);
  block(384, 3, 1, 1, false);
  block(256, 3, 1, 1, true);
  wide();
  wide();
  return b.fullyConnected(x, 1000);
}

/// The network of vDNN++'s Table III: convolutions that are fast and slow in turn. The table lists no activations.
int stacked(NetworkBuilder &b, int x) {
  auto conv = [&](int channels, int kernel) {
    x = b.conv(x, channels, kernel);
    b.cut();
  };
  conv(64, 3);
  for (int i = 0; i < 5; ++i) {
    conv(64, 1);
    conv(64, 5);
  }
  x = b.maxPool(x, b.height(x), 1);
  b.cut();
  conv(3, 1);
  return b.fullyConnected(x, 2);
}

/// K. He et al., CVPR 2016, Section 4.2: three groups of five basic blocks.
int cifarResNet32(NetworkBuilder &b, int x) {
  x = b.convNormRelu(x, 16, 3);
  b.cut();
  for (int g = 0; g < 3; ++g)
    for (int i = 0; i < 5; ++i) {
      const int width = 16 << g, stride = g > 0 && i == 0 ? 2 : 1;
      const int y = b.norm(b.conv(b.convNormRelu(x, width, 3, stride), width, 3));
      const int shortcut = stride == 1 ? x : b.norm(b.conv(x, width, 1, stride));
      x = b.relu(b.add(y, shortcut));
      b.cut();
    }
  return b.fullyConnected(b.globalPool(x), 10);
}

int vgg(NetworkBuilder &b, int x, const std::vector<int> &groups, bool norms) {
  const int channels[] = {64, 128, 256, 512, 512};
  for (size_t g = 0; g < groups.size(); ++g) {
    for (int i = 0; i < groups[g]; ++i) {
      x = b.conv(x, channels[g], 3);
      x = b.relu(norms ? b.norm(x) : x);
      b.cut();
    }
    x = b.maxPool(x, 2, 2);
    b.cut();
  }
  for (int i = 0; i < 2; ++i) {
    x = b.relu(b.fullyConnected(x, 4096));
    b.cut();
  }
  return b.fullyConnected(x, 1000);
}

/// A convolution with norm and ReLU outside of any block: the convolution's output separates the graph, so it ends a
/// stage.
int stem(NetworkBuilder &b, int x, int channels, int kernel, int stride = 1, int pad = -1) {
  x = b.conv(x, channels, kernel, stride, pad);
  b.cut();
  x = b.relu(b.norm(x));
  b.cut();
  return x;
}

/// `early`: stride in the first 1x1 convolution of a block (the original paper), not in the 3x3 (torchvision).
int resNet(NetworkBuilder &b, int x, const std::vector<int> &blocks, bool bottleneck, bool early) {
  x = stem(b, x, 64, 7, 2, 3);
  x = b.maxPool(x, 3, 2, 1);
  b.cut();
  for (size_t g = 0; g < blocks.size(); ++g)
    for (int i = 0; i < blocks[g]; ++i) {
      const int width = 64 << g, out = bottleneck ? 4 * width : width, stride = g > 0 && i == 0 ? 2 : 1;
      int y = bottleneck ? b.convNormRelu(b.convNormRelu(x, width, 1, early ? stride : 1), width, 3, early ? 1 : stride)
                         : b.convNormRelu(x, width, 3, stride);
      y = b.norm(b.conv(y, out, bottleneck ? 1 : 3));
      const int shortcut = b.channels(x) == out && stride == 1 ? x : b.norm(b.conv(x, out, 1, stride));
      x = b.relu(b.add(y, shortcut));
      b.cut();
    }
  x = b.globalPool(x);
  b.cut();
  return b.fullyConnected(x, 1000);
}

int denseNet(NetworkBuilder &b, int x, const std::vector<int> &blocks, int growth, int first) {
  x = stem(b, x, first, 7, 2, 3);
  x = b.maxPool(x, 3, 2, 1);
  b.cut();
  for (size_t g = 0; g < blocks.size(); ++g) {
    std::vector<int> parts = {x};
    for (int i = 0; i < blocks[g]; ++i) {
      const int all = parts.size() == 1 ? parts[0] : b.concat(parts);
      const int squeezed = b.conv(b.relu(b.norm(all)), 4 * growth, 1);
      const int fresh = b.conv(b.relu(b.norm(squeezed)), growth, 3);
      if (!b.nested()) {
        parts.push_back(fresh);
        continue;
      }
      // Everything so far in one tensor: every layer of the block is a stage.
      parts = {b.concat({all, fresh})};
      b.cut();
    }
    x = b.relu(b.norm(parts.size() == 1 ? parts[0] : b.concat(parts)));
    b.cut();
    if (g + 1 < blocks.size()) {
      x = b.averagePool(b.conv(x, b.channels(x) / 2, 1), 2, 2);
      b.cut();
    }
  }
  return b.fullyConnected(b.globalPool(x), 1000);
}

int mobileNetV2(NetworkBuilder &b, int x) {
  x = stem(b, x, 32, 3, 2);
  const int table[][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                          {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  for (const auto &[expand, channels, repeats, firstStride] : table)
    for (int i = 0; i < repeats; ++i) {
      const int stride = i == 0 ? firstStride : 1, in = b.channels(x), hidden = in * expand;
      int y = expand == 1 ? x : b.convNormRelu(x, hidden, 1);
      y = b.convNormRelu(y, hidden, 3, stride, -1, hidden);
      y = b.norm(b.conv(y, channels, 1));
      x = stride == 1 && in == channels ? b.add(y, x) : y;
      b.cut();
    }
  x = stem(b, x, 1280, 1);
  return b.fullyConnected(b.globalPool(x), 1000);
}

static int convReluTwice(NetworkBuilder &b, int x, int channels, bool norms) {
  for (int i = 0; i < 2; ++i) {
    x = b.conv(x, channels, 3);
    x = b.relu(norms ? b.norm(x) : x);
  }
  return x;
}

/// One stage: its long skips leave no cut point.
int uNet(NetworkBuilder &b, int x, bool norms) {
  std::vector<int> skips;
  for (int channels : {64, 128, 256, 512}) {
    x = convReluTwice(b, x, channels, norms);
    skips.push_back(x);
    x = b.maxPool(x, 2, 2);
  }
  x = convReluTwice(b, x, 1024, norms);
  for (int channels : {512, 256, 128, 64}) {
    x = b.concat({skips.back(), b.transposedConv(x, channels, 2, 2)});
    skips.pop_back();
    x = convReluTwice(b, x, channels, norms);
  }
  return b.conv(x, 2, 1);
}

int inceptionV3(NetworkBuilder &b, int x) {
  auto cbr = [&](int v, int channels, int kernel, int stride = 1, int pad = 0) {
    return b.convNormRelu(v, channels, kernel, stride, pad);
  };
  auto wide = [&](int v, int channels, int kh, int kw) {
    return b.relu(b.norm(b.conv(v, channels, kh, 1, kh / 2, 1, kw, kw / 2)));
  };
  auto stage = [&](int v) {
    b.cut();
    return v;
  };
  x = stem(b, x, 32, 3, 2, 0);
  x = stem(b, x, 32, 3, 1, 0);
  x = stem(b, x, 64, 3);
  x = stage(b.maxPool(x, 3, 2));
  x = stem(b, x, 80, 1);
  x = stem(b, x, 192, 3, 1, 0);
  x = stage(b.maxPool(x, 3, 2));
  for (int pool : {32, 64, 64}) {
    const int five = cbr(cbr(x, 48, 1), 64, 5, 1, 2), three = cbr(cbr(cbr(x, 64, 1), 96, 3, 1, 1), 96, 3, 1, 1);
    x = stage(b.concat({cbr(x, 64, 1), five, three, cbr(b.averagePool(x, 3, 1, 1), pool, 1)}));
  }
  x = stage(b.concat({cbr(x, 384, 3, 2), cbr(cbr(cbr(x, 64, 1), 96, 3, 1, 1), 96, 3, 2), b.maxPool(x, 3, 2)}));
  for (int c : {128, 160, 160, 192}) {
    const int single = wide(wide(cbr(x, c, 1), c, 1, 7), 192, 7, 1);
    const int twofold = wide(wide(wide(wide(cbr(x, c, 1), c, 7, 1), c, 1, 7), c, 7, 1), 192, 1, 7);
    x = stage(b.concat({cbr(x, 192, 1), single, twofold, cbr(b.averagePool(x, 3, 1, 1), 192, 1)}));
  }
  x = stage(b.concat({cbr(cbr(x, 192, 1), 320, 3, 2), cbr(wide(wide(cbr(x, 192, 1), 192, 1, 7), 192, 7, 1), 192, 3, 2),
                      b.maxPool(x, 3, 2)}));
  for (int i = 0; i < 2; ++i) {
    const int a = cbr(x, 384, 1), d = cbr(cbr(x, 448, 1), 384, 3, 1, 1);
    x = stage(b.concat({cbr(x, 320, 1), wide(a, 384, 1, 3), wide(a, 384, 3, 1), wide(d, 384, 1, 3), wide(d, 384, 3, 1),
                        cbr(b.averagePool(x, 3, 1, 1), 192, 1)}));
  }
  return b.fullyConnected(b.dropout(b.globalPool(x)), 1000);
}

int layersOf(const std::string &name, NetworkBuilder &b, int x) {
  static const std::map<std::string, std::vector<int>> vggs = {{"vgg16", {2, 2, 3, 3, 3}},
                                                               {"vgg19", {2, 2, 4, 4, 4}},
                                                               {"vgg19_bn", {2, 2, 4, 4, 4}},
                                                               {"vgg116", {22, 22, 23, 23, 23}},
                                                               {"vgg191", {37, 37, 38, 38, 38}}};
  static const std::map<std::string, std::vector<int>> resNets = {
      {"resnet18", {2, 2, 2, 2}},   {"resnet34", {3, 4, 6, 3}},   {"resnet50", {3, 4, 6, 3}},
      {"resnet101", {3, 4, 23, 3}}, {"resnet152", {3, 8, 36, 3}}, {"resnet152_v1", {3, 8, 36, 3}},
      {"resnet256", {3, 8, 70, 3}}};
  static const std::map<std::string, std::vector<int>> denseNets = {{"densenet121", {6, 12, 24, 16}},
                                                                    {"densenet161", {6, 12, 36, 24}},
                                                                    {"densenet169", {6, 12, 32, 32}},
                                                                    {"densenet201", {6, 12, 48, 32}}};
  if (vggs.count(name))
    return vgg(b, x, vggs.at(name), name == "vgg19_bn");
  if (resNets.count(name))
    return resNet(b, x, resNets.at(name), name != "resnet18" && name != "resnet34", name == "resnet152_v1");
  if (denseNets.count(name))
    return denseNet(b, x, denseNets.at(name), name == "densenet161" ? 48 : 32, name == "densenet161" ? 96 : 64);
  if (name == "alexnet" || name == "alexnet_lrn")
    return alexNet(b, x, name == "alexnet_lrn");
  if (name == "stacked")
    return stacked(b, x);
  if (name == "resnet32")
    return cifarResNet32(b, x);
  if (name == "mobilenet_v2")
    return mobileNetV2(b, x);
  if (name == "inception_v3")
    return inceptionV3(b, x);
  if (name == "unet" || name == "unet_bn")
    return uNet(b, x, name == "unet_bn");
  throw std::invalid_argument("no network '" + name + "'");
}

} // namespace

Problem network(const std::string &name, const Profile &profile, int batch, int image, NetworkOptions options) {
  NetworkBuilder builder(profile, batch, options);
  const int x = builder.input(3, image, image);
  const int logits = layersOf(name, builder, x);
  builder.cut();
  builder.loss(logits);
  return builder.build();
}

Bytes pinnedBytes(const std::string &name, const Profile &profile, int batch, int image) {
  NetworkBuilder builder(profile, batch);
  layersOf(name, builder, builder.input(3, image, image));
  return builder.pinnedBytes();
}

LayerBytes layerBytes(const std::string &name, int batch, int image) {
  const Profile none;
  NetworkBuilder builder(none, batch);
  layersOf(name, builder, builder.input(3, image, image));
  return builder.layerBytes();
}

} // namespace sluice::bench

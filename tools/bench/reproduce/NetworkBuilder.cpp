// SPDX-License-Identifier: Apache-2.0
// Turns recorded layers into a Problem: one op a forward layer, one or two a backward layer, as the compiler lowers
// them.
#include "tools/bench/reproduce/NetworkBuilder.h"

#include "passes/planner/Packings.h"
#include "runtime/Codec.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace sluice::bench {

using namespace planner;

NetworkBuilder::NetworkBuilder(const Profile &profile, int batch, NetworkOptions options)
    : profile(profile), batch(batch), options(options) {}

int NetworkBuilder::push(Type type, const char *name, const std::vector<int> &inputs, Shape shape, double flops,
                         Bytes parameters, double area) {
  const int output = shapes.size();
  shapes.push_back(shape);
  layers.push_back({type, inputs, output, stage, flops, parameters, area, name + std::to_string(layers.size())});
  return output;
}

int NetworkBuilder::input(int channels, int height, int width) {
  return push(Type::Input, "input", {}, {channels, height, width});
}

int NetworkBuilder::conv(int x, int channels, int kernel, int stride, int pad, int groups, int kernelWidth,
                         int padWidth) {
  const Shape in = shapes[x];
  const int kw = kernelWidth < 0 ? kernel : kernelWidth, p = pad < 0 ? kernel / 2 : pad,
            pw = padWidth >= 0 ? padWidth
                 : pad < 0     ? kw / 2
                               : pad;
  const Shape out = {channels, (in.h + 2 * p - kernel) / stride + 1, (in.w + 2 * pw - kw) / stride + 1};
  const double weights = double(channels) * in.c / groups * kernel * kw;
  return push(Type::Conv, "conv", {x}, out, 2.0 * batch * out.h * out.w * weights, static_cast<Bytes>(weights) * 4,
              double(kernel) * kw);
}

int NetworkBuilder::transposedConv(int x, int channels, int kernel, int stride) {
  const Shape in = shapes[x];
  const double weights = double(channels) * in.c * kernel * kernel;
  return push(Type::Conv, "deconv", {x}, {channels, in.h * stride, in.w * stride}, 2.0 * batch * in.h * in.w * weights,
              static_cast<Bytes>(weights) * 4, double(kernel) * kernel);
}

int NetworkBuilder::norm(int x) { return push(Type::Norm, "bn", {x}, shapes[x], 0, Bytes(shapes[x].c) * 16); }
int NetworkBuilder::relu(int x) { return push(Type::Relu, "relu", {x}, shapes[x]); }

static int pooled(int size, int kernel, int stride, int pad) { return (size + 2 * pad - kernel) / stride + 1; }

int NetworkBuilder::maxPool(int x, int kernel, int stride, int pad) {
  const Shape in = shapes[x];
  return push(Type::MaxPool, "maxpool", {x},
              {in.c, pooled(in.h, kernel, stride, pad), pooled(in.w, kernel, stride, pad)});
}

int NetworkBuilder::averagePool(int x, int kernel, int stride, int pad) {
  const Shape in = shapes[x];
  return push(Type::AveragePool, "avgpool", {x},
              {in.c, pooled(in.h, kernel, stride, pad), pooled(in.w, kernel, stride, pad)});
}

int NetworkBuilder::globalPool(int x) { return push(Type::AveragePool, "globalpool", {x}, {shapes[x].c, 1, 1}); }
int NetworkBuilder::add(int a, int b) { return push(Type::Add, "add", {a, b}, shapes[a]); }
int NetworkBuilder::dropout(int x) { return push(Type::Dropout, "dropout", {x}, shapes[x]); }
void NetworkBuilder::loss(int x) { push(Type::Loss, "loss", {x}, {shapes[x].c, 1, 1}); }

int NetworkBuilder::concat(const std::vector<int> &parts) {
  Shape out = shapes[parts[0]];
  out.c = 0;
  for (int part : parts)
    out.c += shapes[part].c;
  return push(Type::Concat, "concat", parts, out);
}

int NetworkBuilder::fullyConnected(int x, int features) {
  const double weights = double(shapes[x].c) * shapes[x].h * shapes[x].w * features;
  return push(Type::FullyConnected, "fc", {x}, {features, 1, 1}, 2.0 * batch * weights,
              static_cast<Bytes>(weights) * 4);
}

Bytes NetworkBuilder::bytes(int value) const {
  return Bytes(batch) * shapes[value].c * shapes[value].h * shapes[value].w * 4;
}

int NetworkBuilder::addBuffer(const std::string &name, Bytes size, int stage) {
  Buffer buffer;
  buffer.name = name;
  buffer.bytes = size;
  buffer.stage = stage;
  problem.buffers.push_back(buffer);
  return static_cast<int>(problem.buffers.size()) - 1;
}

Op NetworkBuilder::op(const Layer &layer, const std::string &what, OpKind kind, Phase phase, double flops,
                      Bytes moved) const {
  Op op;
  op.name = layer.name + what;
  op.kind = kind;
  op.phase = phase;
  op.stage = layer.stage;
  op.seconds = kind == OpKind::Conv
                   ? profile.estimate({kind, flops, static_cast<double>(moved), "fp32", "conv", {layer.area}})
                   : profile.estimate(kind, flops, static_cast<double>(moved));
  return op;
}

/// ReLU, dropout and add may write over their first input when nobody reads that later; a convolution's or norm's own
/// output only.
bool NetworkBuilder::overwrites(size_t index) const {
  const Layer &layer = layers[index];
  if (!options.inPlace || (layer.type != Type::Relu && layer.type != Type::Dropout && layer.type != Type::Add))
    return false;
  const int x = layer.inputs[0];
  if (readers[x] != 1)
    return false;
  for (const Layer &producer : layers)
    if (producer.output == x) // gradients of these do not read their output
      return producer.type == Type::Norm || producer.type == Type::Add ||
             (producer.type == Type::Conv && layer.type != Type::Add) || producer.type == Type::FullyConnected;
  return false;
}

static OpKind kindOf(int type) {
  static const OpKind kinds[] = {OpKind::Other,          OpKind::Conv,    OpKind::Norm, OpKind::Activation,
                                 OpKind::Pool,           OpKind::Pool,    OpKind::Join, OpKind::Concat,
                                 OpKind::FullyConnected, OpKind::Dropout, OpKind::Loss};
  return kinds[type];
}

void NetworkBuilder::forward(const Layer &layer) {
  const size_t index = &layer - layers.data();
  if (layer.type == Type::Input)
    return; // batch slots are part of the base
  Bytes moved = bytes(layer.output) + layer.parameters;
  for (int x : layer.inputs)
    moved += bytes(x);
  if (layer.type == Type::Norm)
    moved += bytes(layer.inputs[0]); // statistics first
  Op o = op(layer, "", kindOf(static_cast<int>(layer.type)), Phase::Forward, layer.flops, moved);
  for (int x : layer.inputs)
    if (bufferOf[x] >= 0)
      o.reads.push_back(bufferOf[x]);
  const bool inPlace = overwrites(index);
  bufferOf[layer.output] =
      inPlace ? bufferOf[layer.inputs[0]] : addBuffer(layer.name, bytes(layer.output), layer.stage);
  o.writes = {bufferOf[layer.output]};
  const bool hasSide = layer.type == Type::Norm || layer.type == Type::MaxPool;
  if (hasSide) {
    // Norm: mean and deviation. Max-pool: native indices of 8 bits, half of that when packed.
    const Bytes size = layer.type == Type::Norm ? Bytes(shapes[layer.output].c) * 8 : bytes(layer.output) / 4;
    side[layer.output] = addBuffer(layer.name + ".side", size, layer.stage);
    o.writes.push_back(side[layer.output]);
  }
  if (layer.type == Type::Norm) {
    // Again with the statistics of the first run: one pass over the input less.
    const Seconds again = profile.estimate(OpKind::Norm, 0, static_cast<double>(2 * bytes(layer.output)));
    o.rerun = Rerun{again, 0, o.reads, {bufferOf[layer.output]}};
    o.rerun->reads.push_back(side[layer.output]);
  }
  problem.ops.push_back(o);
}

int NetworkBuilder::gradientOf(int value, int stage, bool &fresh) {
  fresh = gradient[value] < 0;
  if (fresh)
    gradient[value] = addBuffer("d." + std::to_string(value), bytes(value), stage);
  return gradient[value];
}

void NetworkBuilder::backward(const Layer &layer) {
  if (layer.type == Type::Input)
    return;
  const OpKind kind = kindOf(static_cast<int>(layer.type));
  const Bytes in = bytes(layer.inputs[0]), out = bytes(layer.output);
  bool fresh = false;
  const int dy = layer.type == Type::Loss ? -1 : gradientOf(layer.output, layer.stage, fresh);
  auto emit = [&](const std::string &what, double flops, Bytes moved, std::vector<int> reads, std::vector<int> writes) {
    Op o = op(layer, what, kind, Phase::Backward, flops, moved);
    for (int b : reads)
      if (b >= 0)
        o.reads.push_back(b);
    for (int b : writes)
      if (b >= 0)
        o.writes.push_back(b);
    problem.ops.push_back(o);
  };
  if (layer.parameters > 0 && layer.type != Type::Norm) {
    const int dw = addBuffer(layer.name + ".dw", layer.parameters, layer.stage);
    emit(".dw", layer.flops, in + out, {dy, bufferOf[layer.inputs[0]]}, {dw});
    Op update = op(layer, ".update", OpKind::Update, Phase::Update, 0, layer.parameters * 4);
    update.reads = {dw};
    problem.ops.push_back(update);
  }
  for (int x : layer.inputs) {
    if (bufferOf[x] < 0)
      continue; // the input batch needs no gradient
    const bool passes = layer.type == Type::Relu || layer.type == Type::Dropout || layer.type == Type::Add;
    if (passes && dy >= 0 && gradient[x] < 0 && x == layer.inputs[0]) {
      // The gradient is rewritten in place, or simply is the output's.
      gradient[x] = dy;
      if (layer.type != Type::Add)
        emit(".dx", 0, 2 * out, {dy, layer.type == Type::Relu ? bufferOf[layer.output] : -1}, {dy});
      continue;
    }
    const int dx = gradientOf(x, layer.stage, fresh);
    std::vector<int> reads = {dy};
    if (!fresh)
      reads.push_back(dx);
    if (layer.type == Type::Norm) {
      reads.push_back(bufferOf[x]);
      reads.push_back(side[layer.output]);
    }
    if (layer.type == Type::Relu || layer.type == Type::Loss)
      reads.push_back(bufferOf[layer.output]);
    if (layer.type == Type::MaxPool)
      reads.push_back(side[layer.output]);
    const Bytes moved = bytes(x) * (fresh ? 1 : 2) + (layer.type == Type::Concat ? bytes(x) : out) +
                        (layer.type == Type::Norm ? 3 * in : 0);
    emit(".dx", layer.flops, moved, reads, {dx});
  }
}

Bytes NetworkBuilder::pinnedBytes() const {
  std::set<int> inputs;
  bool first = true;
  for (const Layer &layer : layers) {
    const bool pool = layer.type == Type::MaxPool || layer.type == Type::AveragePool;
    if (layer.type == Type::Conv || pool || (layer.type == Type::FullyConnected && first))
      inputs.insert(layer.inputs[0]);
    first = first && layer.type != Type::FullyConnected;
  }
  Bytes total = 0;
  for (int value : inputs)
    total += bytes(value);
  return total;
}

Problem NetworkBuilder::build() {
  problem = {};
  problem.link = profile.link;
  problem.codecContention = profile.codecContention.value_or(0);
  bufferOf.assign(shapes.size(), -1);
  gradient = side = bufferOf;
  readers.assign(shapes.size(), 0);
  for (const Layer &layer : layers)
    for (int x : layer.inputs)
      ++readers[x];
  for (const Layer &layer : layers) {
    problem.base += layer.type == Type::Input ? 2 * bytes(layer.output) : 2 * layer.parameters;
    forward(layer);
  }
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
    backward(*layer);
  std::vector<int> otherReaders(problem.buffers.size(), 0), reluReaders(problem.buffers.size(), 0);
  for (const Op &o : problem.ops) {
    if (o.phase == Phase::Forward)
      for (int b : o.writes)
        problem.buffers[b].producers.push_back(&o - problem.ops.data());
    else
      for (int b : o.reads)
        if (!problem.buffers[b].producers.empty()) {
          problem.buffers[b].activation = problem.buffers[b].offloadable = true;
          ++(o.kind == OpKind::Activation ? reluReaders : otherReaders)[b];
        }
  }
  for (size_t b = 0; options.encodings && b < problem.buffers.size(); ++b)
    if (reluReaders[b] > 0 && otherReaders[b] == 0)
      problem.buffers[b].encodings.push_back({Codec::Mask, (problem.buffers[b].bytes + 31) / 32, 0, 0});
  offerPackings(reluReaders);
  if (options.leaky)
    offerInversions();
  return problem;
}

/// The published rates are no whole numbers of bits, so sizes are not those of the runtime's blocks; a mask is.
void NetworkBuilder::offerPackings(const std::vector<int> &reluReaders) {
  if (const auto fp16 = profile.codecs.find(Codec::Fp16); options.halves && fp16 != profile.codecs.end())
    problem.codecRates.push_back(*fp16);
  for (size_t b = 0; options.zfpBits > 0 && b < problem.buffers.size(); ++b) {
    Buffer &buffer = problem.buffers[b];
    const auto bytesOf = [&](Codec codec) -> Bytes {
      const Bytes mask = codec.mask ? 9 * signBlocks(buffer.bytes / 4) : 0;
      const double values = static_cast<double>(buffer.bytes) / 4;
      return codec.kind == Codec::Zfp ? static_cast<Bytes>(std::ceil(values * options.zfpBits / 8)) + mask : 0;
    };
    const Comparison compared = reluReaders[b] > 0 ? Comparison::AboveZero : Comparison::None;
    if (buffer.activation)
      for (Encoding &form : packingsOf(buffer.bytes, compared, profile, bytesOf)) {
        if (form.codec.mask)
          form.maskReaders = maskReaders(static_cast<int>(b));
        buffer.encodings.push_back(std::move(form));
      }
  }
}

/// The gradients of ReLUs, which read nothing else of what a ReLU wrote.
std::vector<int> NetworkBuilder::maskReaders(int buffer) const {
  std::vector<int> readers;
  for (size_t k = 0; k < problem.ops.size(); ++k) {
    const Op &o = problem.ops[k];
    if (o.phase == Phase::Backward && o.kind == OpKind::Activation &&
        std::count(o.reads.begin(), o.reads.end(), buffer) > 0)
      readers.push_back(static_cast<int>(k));
  }
  return readers;
}

void NetworkBuilder::offerInversions() {
  for (const Layer &relu : layers)
    for (const Layer &norm : layers) {
      if (relu.type != Type::Relu || norm.type != Type::Norm || norm.output != relu.inputs[0] ||
          bufferOf[relu.output] != bufferOf[norm.output] || bufferOf[norm.inputs[0]] < 0)
        continue;
      Buffer &x = problem.buffers[bufferOf[norm.inputs[0]]];
      x.inversion = Inversion{{bufferOf[relu.output]}, profile.estimate(OpKind::Norm, 0, 2.0 * x.bytes)};
    }
}

LayerBytes NetworkBuilder::layerBytes() const {
  LayerBytes sum;
  for (const Layer &layer : layers)
    if (layer.type != Type::Input) {
      sum.total += bytes(layer.output);
      sum.largest = std::max(sum.largest, bytes(layer.output));
    }
  return sum;
}

} // namespace sluice::bench

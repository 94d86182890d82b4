// SPDX-License-Identifier: Apache-2.0
// Speed of the host kernels: every convolution of a network, forward and both backward passes, in GFLOP/s, and the
// elementwise and reduction kernels of a BatchNorm network in GB/s, see MemoryBench.h. Best of several runs; use an
// idle machine. `links` prints what --profile-out measures of copies between the arenas, five times; `codecs` what
// CodecBench.h says, `products` what ProductBench.h. FORM: the first algorithm that is offered whose name begins so
// ('wide'), instead of the first one.
//
// `attention`, of BATCH texts and 12 heads of 64 columns, and `rows`, of BATCH rows, print milliseconds of forward and
// backward, for transformer_kernels.py to read.
//
//   kernel-bench [resnet18|resnet50|mobilenet|densenet|vgg16] [BATCH] [THREADS] [bf16 [FORM]]
//   kernel-bench [elementwise|pools|links|codecs] [BATCH] [THREADS]
//   kernel-bench products [BATCH] [THREADS] [bf16]
//   kernel-bench attention BATCH THREADS TOKENS [causal]
//   kernel-bench rows BATCH THREADS COLUMNS
#include "runtime/Runtime.h"
#include "runtime/host/ConvEngine.h"
#include "runtime/program/Links.h"
#include "tools/bench/CodecBench.h"
#include "tools/bench/MemoryBench.h"
#include "tools/bench/ProductBench.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>

using namespace sluice;

namespace {

using Layer =
    std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>; ///< in, extent, out, kernel, stride, groups
using Network = std::map<Layer, int>;                                 ///< how often each occurs

Network resnet50() {
  Network net{{{3, 224, 64, 7, 2, 1}, 1}};
  int64_t in = 64, extent = 56;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < blocks[stage]; ++block) {
      const int64_t width = 64 << stage, stride = block == 0 && stage > 0 ? 2 : 1;
      ++net[{in, extent, width, 1, 1, 1}];
      ++net[{width, extent, width, 3, stride, 1}];
      if (block == 0)
        ++net[{in, extent, 4 * width, 1, stride, 1}];
      extent /= stride;
      ++net[{width, extent, 4 * width, 1, 1, 1}];
      in = 4 * width;
    }
  return net;
}

Network resnet18() {
  Network net{{{3, 224, 64, 7, 2, 1}, 1}};
  int64_t in = 64, extent = 56;
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = 64 << stage, stride = stage > 0 ? 2 : 1;
    ++net[{in, extent, width, 3, stride, 1}];
    if (stride > 1)
      ++net[{in, extent, width, 1, stride, 1}];
    extent /= stride;
    net[{width, extent, width, 3, 1, 1}] += 3;
    in = width;
  }
  return net;
}

Network mobilenet() {
  Network net{{{3, 224, 32, 3, 2, 1}, 1}};
  int64_t in = 32, extent = 112;
  const int64_t rows[][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}; // expansion, out, blocks, stride
  for (const auto &row : rows)
    for (int64_t block = 0; block < row[2]; ++block) {
      const int64_t stride = block ? 1 : row[3], wide = in * row[0];
      if (row[0] > 1)
        ++net[{in, extent, wide, 1, 1, 1}];
      ++net[{wide, extent, wide, 3, stride, wide}];
      extent = (extent + stride - 1) / stride;
      ++net[{wide, extent, row[1], 1, 1, 1}];
      in = row[1];
    }
  ++net[{in, extent, 1280, 1, 1, 1}];
  return net;
}

Network densenet() {
  Network net{{{3, 224, 64, 7, 2, 1}, 1}};
  int64_t in = 64, extent = 56;
  for (int layers : {6, 12, 24, 16}) {
    for (int layer = 0; layer < layers; ++layer, in += 32) {
      ++net[{in, extent, 128, 1, 1, 1}];
      ++net[{128, extent, 32, 3, 1, 1}];
    }
    if (extent > 7)
      ++net[{in, extent, in / 2, 1, 1, 1}];
    in /= 2, extent /= 2;
  }
  return net;
}

Network vgg16() {
  Network net;
  int64_t in = 3, extent = 224;
  for (int64_t out : {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512}) {
    if (out == 0) {
      extent /= 2;
      continue;
    }
    ++net[{in, extent, out, 3, 1, 1}];
    in = out;
  }
  return net;
}

/// In which type convolutions are measured, and by algorithms of which form.
struct Kind {
  DataType type = DataType::F32;
  std::string form;
};

ConvCandidate candidate(const ConvGeometry &geometry, const std::string &form) {
  const std::vector<ConvCandidate> all = convCandidates(geometry, false);
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto &c) { return c.name.rfind(form, 0) == 0; });
  return found == all.end() ? all.front() : *found;
}

/// Seconds of one pass; prints its rate.
double measure(const Layer &layer, int64_t batch, ConvPass pass, const Kind &kind) {
  const auto [in, extent, out, kernel, stride, groups] = layer;
  const int64_t pad = kernel / 2, side = (extent + 2 * pad - kernel) / stride + 1;
  const Shape x{batch, in, extent, extent}, w{out, in / groups, kernel, kernel}, y{batch, out, side, side};
  const ConvCandidate found = candidate(
      {pass, x, w, y, {{kernel, kernel}, {stride, stride}, {pad, pad, pad, pad}}, groups, kind.type}, kind.form);
  const Conv conv(
      "conv", pass, x, w, y, {{kernel, kernel}, {stride, stride}, {pad, pad, pad, pad}},
      ConvOptions().withGroups(groups).withType(kind.type).withAlgorithm({found.name.c_str(), found.parts}));
  buildPrimitives();
  const Tensor tx = device(0, x, Layout::NHWC, kind.type), ty = device(tx.bytes(), y, Layout::NHWC, kind.type);
  const DataType weights = pass == ConvPass::BackwardWeight ? DataType::F32 : kind.type;
  const Tensor tw = device(ty.offset + ty.bytes(), w, Layout::RowMajor, weights);
  const size_t end = (tw.offset + tw.bytes() + 63) / 64 * 64;
  const Tensor space = scratch(end, static_cast<int64_t>(conv.workspaceBytes()));
  Session session(end + space.bytes(), 0, 0);
  Stream &stream = session.compute;
  const double seconds = bestSeconds(session, [&] {
    if (pass == ConvPass::Forward)
      conv.forward(stream, tx, tw, none, ty, space);
    else if (pass == ConvPass::BackwardData)
      conv.backwardData(stream, ty, tw, tx, space);
    else
      conv.backwardWeight(stream, ty, tx, tw, none, space);
  });
  const double flops = 2.0 * static_cast<double>(y.elements() * w[1] * kernel * kernel);
  printf(" %8.2f ms %5.0f GF/s %6.2f MiB %-28s|", seconds * 1e3, flops / seconds * 1e-9,
         static_cast<double>(conv.workspaceBytes()) / 1048576,
         (found.name + " " + std::to_string(found.parts)).c_str());
  return seconds;
}

void convolutions(const Network &net, int64_t batch, const Kind &kind) {
  double totals[3] = {};
  puts("  in extent  out k s groups times | forward, backward data, backward weight: time, rate, workspace, algorithm "
       "and its parts");
  for (const auto &[layer, count] : net) {
    const auto [in, extent, out, kernel, stride, groups] = layer;
    printf("%4d %6d %4d %d %d %6d %5d |", static_cast<int>(in), static_cast<int>(extent), static_cast<int>(out),
           static_cast<int>(kernel), static_cast<int>(stride), static_cast<int>(groups), count);
    for (ConvPass pass : {ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight})
      totals[static_cast<int>(pass)] += count * measure(layer, batch, pass, kind);
    putchar('\n');
  }
  printf("all: forward %.3f s, backward data %.3f s, backward weight %.3f s\n", totals[0], totals[1], totals[2]);
}

void attention(int64_t batch, int64_t tokens, bool causal) {
  const Shape shape{batch, 12, tokens, 64};
  const Attention forward("attention", AttentionPass::Forward, shape, shape, shape, 0.125f,
                          AttentionOptions().withCausal(causal)),
      backward("attention", AttentionPass::Backward, shape, shape, shape, 0.125f,
               AttentionOptions().withCausal(causal));
  size_t end = 0;
  auto tensor = [&end](Shape extents) { return device(std::exchange(end, end + device(0, extents).bytes()), extents); };
  Tensor t[8];
  for (Tensor &one : t)
    one = tensor(shape);
  const Tensor sums = tensor({batch, 12, tokens});
  const size_t space = std::max(forward.workspaceBytes(), backward.workspaceBytes());
  const Tensor work = scratch(end, static_cast<int64_t>(space));
  Session session(end + space, 0, 0);
  for (int64_t i = 0; i < 3 * shape.elements(); ++i)
    session.compute.data<float>(t[0])[i] = normal(1, static_cast<uint64_t>(i));
  const double a =
      bestSeconds(session, [&] { forward.forward(session.compute, t[0], t[1], t[2], none, none, t[3], sums, work); });
  const double b = bestSeconds(session, [&] {
    backward.backward(session.compute, t[4], t[0], t[1], t[2], none, none, t[3], sums, t[5], t[6], t[7], work);
  });
  printf("attention %.3f %.3f ms, %zu bytes of scratch\n", a * 1e3, b * 1e3, space);
}

struct Gelu {
  static constexpr int inputs = 1, outputs = 1, sums = 0;
  SLUICE_KERNEL Values<1> operator()(float x) const {
    return {{x * (0.5f * (1.0f + errorFunction(x * 0.707106769f)))}};
  }
};
struct GeluBackward {
  static constexpr int inputs = 2, outputs = 1, sums = 0;
  SLUICE_KERNEL Values<1> operator()(float dy, float x) const {
    const float below = 0.5f * (1.0f + errorFunction(x * 0.707106769f));
    return {{dy * (below + x * (0.398942292f * exponential(-0.5f * (x * x))))}};
  }
};

/// Layer normalization, softmax and gelu of [rows, columns].
void rowKernels(int64_t rows, int64_t columns) {
  const Shape shape{rows, columns};
  size_t end = 0;
  auto tensor = [&end](Shape extents) { return device(std::exchange(end, end + device(0, extents).bytes()), extents); };
  const Tensor x = tensor(shape), y = tensor(shape), dy = tensor(shape), dx = tensor(shape);
  const Tensor scale = tensor({columns}), bias = tensor({columns}), mean = tensor({rows, 1}), rstd = tensor({rows, 1});
  const LayerNorm norm("norm", shape, 1e-5f);
  const Softmax softmax("softmax", shape, 1, false);
  const Fused<Gelu> gelu("gelu", shape, Layout::RowMajor, {x}, {y}, {});
  const Fused<GeluBackward> back("back", shape, Layout::RowMajor, {dy, x}, {dx}, {});
  Session session(end, 0, 0);
  Stream &stream = session.compute;
  for (int64_t i = 0; i < shape.elements(); ++i)
    stream.data<float>(x)[i] = normal(1, static_cast<uint64_t>(i));
  auto line = [&](const char *name, auto &&forward, auto &&backward) {
    const double a = bestSeconds(session, forward), b = bestSeconds(session, backward);
    printf("%s %.3f %.3f ms\n", name, a * 1e3, b * 1e3);
  };
  line(
      "layer_norm", [&] { norm.forward(stream, x, scale, bias, y, mean, rstd); },
      [&] { norm.backward(stream, dy, x, scale, mean, rstd, dx); });
  line("softmax", [&] { softmax.forward(stream, x, y); }, [&] { softmax.backward(stream, dy, y, dx); });
  line("gelu", [&] { gelu.run(stream, {x}, {y}, {}, none); }, [&] { back.run(stream, {dy, x}, {dx}, {}, none); });
}

void links() {
  puts("GB/s to host, to device, each of both | seconds that compute loses per GB copied beside it, per second of "
       "packing");
  for (int i = 0; i < 5; ++i) {
    const LinkRates rates = measureLinks();
    printf("%6.2f %6.2f %6.2f | %6.4f %6.4f\n", rates.toHost * 1e-9, rates.toDevice * 1e-9, rates.duplex * 1e-9,
           rates.contention.value_or(0) * 1e9, rates.packingContention.value_or(0));
    for (const auto &[codec, rate] : rates.codecs)
      printf("  %s %.2f GB/s\n", codecName(codec).c_str(), rate * 1e-9);
  }
}

} // namespace

int main(int argc, char **argv) {
  ensureOpenMP(argc, argv);
  const std::string what = argc > 1 ? argv[1] : "resnet50";
  const int64_t batch = argc > 2 ? atoll(argv[2]) : 16;
  if (argc > 3)
    setThreads(atoi(argv[3]));
  const std::map<std::string, Network (*)()> networks{{"resnet18", resnet18},
                                                      {"resnet50", resnet50},
                                                      {"mobilenet", mobilenet},
                                                      {"densenet", densenet},
                                                      {"vgg16", vgg16}};
  printf("%s, batch %d, %d threads\n", what.c_str(), static_cast<int>(batch), threads());
  if (what == "elementwise") {
    benchElementwise(batch);
  } else if (what == "pools") {
    benchPools(batch);
  } else if (what == "attention" && argc > 4) {
    attention(batch, atoll(argv[4]), argc > 5);
  } else if (what == "rows" && argc > 4) {
    rowKernels(batch, atoll(argv[4]));
  } else if (what == "links") {
    links();
  } else if (what == "codecs") {
    benchCodecs(batch);
  } else if (what == "products") {
    benchProducts(batch, argc > 4 && strcmp(argv[4], "bf16") == 0 ? DataType::BF16 : DataType::F32);
  } else if (networks.count(what)) {
    convolutions(networks.at(what)(), batch,
                 {argc > 4 && strcmp(argv[4], "bf16") == 0 ? DataType::BF16 : DataType::F32, argc > 5 ? argv[5] : ""});
  } else {
    fprintf(stderr, "kernel-bench: unknown benchmark '%s'\n", what.c_str());
    return 2;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Every sample is the best of a few runs. Small operands go round in twice their bytes, large ones in the whole arena:
// steps of small networks stay in caches, those of large ones do not. Sizes are those of common networks on images,
// from the few large channels at their end to the many pixels at their beginning, and of small ones. What is measured
// late is what a slow machine has no time for.
#include "tools/Calibrate.h"

#include "runtime/host/AttentionEngine.h"
#include "runtime/host/MatmulEngine.h"
#include "runtime/program/Links.h"
#include "tools/CalibrationBench.h"

#include <iostream>
#include <stdexcept>
#include <sys/resource.h>

using namespace sluice;
using nlohmann::json;

namespace {

/// Of the cores' time that a measurement must get.
constexpr double leastShare = 0.7;

double secondsOf(const rusage &use) {
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

template <DataType Type> struct Multiply {
  static constexpr int inputs = 2, outputs = 1, sums = 0;
  static constexpr DataType types[] = {Type, Type, Type};
  SLUICE_KERNEL Values<1> operator()(float x, float y) const { return {{x * y}}; }
};

/// A convolution to measure; x is [batch,in,extent,extent].
struct Layer {
  int64_t in, out, extent, kernel, stride, batch, groups = 1; ///< extent: of the input
};

void measurePass(Bench &bench, const Layer &l, ConvPass pass) {
  const int64_t pad = l.kernel / 2, side = (l.extent + 2 * pad - l.kernel) / l.stride + 1;
  const Shape x{l.batch, l.in, l.extent, l.extent}, w{l.out, l.in / l.groups, l.kernel, l.kernel},
      y{l.batch, l.out, side, side};
  const Conv conv("calibrate", pass, x, w, y, {{l.kernel, l.kernel}, {l.stride, l.stride}, {pad, pad, pad, pad}},
                  ConvOptions().withGroups(l.groups).withType(bench.type));
  if (!Bench::fits(conv.workspaceBytes()))
    return;
  buildPrimitives();
  const size_t width = byteWidth(bench.type), bytes = width * static_cast<size_t>(x.elements() + y.elements()) +
                                                      4 * static_cast<size_t>(w.elements()) + conv.workspaceBytes();
  const DataType ofWeights = pass == ConvPass::BackwardWeight ? DataType::F32 : bench.type;
  auto run = [&](Stream &stream) {
    const Tensor tx = bench.place(x, Layout::NHWC, bench.type), ty = bench.place(y, Layout::NHWC, bench.type),
                 tw = bench.place(w, Layout::RowMajor, ofWeights);
    const Tensor space = bench.space(conv.workspaceBytes());
    if (pass == ConvPass::Forward)
      conv.forward(stream, tx, tw, none, ty, space);
    else if (pass == ConvPass::BackwardData)
      conv.backwardData(stream, ty, tw, tx, space);
    else
      conv.backwardWeight(stream, ty, tx, tw, none, space);
  };
  static const char *const passes[] = {"forward", "backward_data", "backward_weight"};
  const double extent = double(side), pixels = double(l.batch * side * side), area = double(l.kernel * l.kernel),
               stride = double(l.stride);
  const bool depthwise = l.groups == l.in;
  bench.sample((depthwise      ? "depthwise_"
                : l.groups > 1 ? "grouped_"
                               : "conv_") +
                   std::string(passes[static_cast<int>(pass)]),
               depthwise
                   ? planner::depthwiseSize(double(l.groups), extent, pixels, area, stride)
                   : planner::convSize(double(l.in / l.groups), double(l.out / l.groups), extent, pixels, area, stride),
               2.0 * static_cast<double>(y.elements() * w.elements() / l.out), bytes, run);
}

// In, out, extent, kernel, stride, batch
const Layer layers[] = {{3, 64, 224, 7, 2, 2},
                        {3, 64, 224, 3, 1, 1},
                        {1024, 1000, 1, 1, 1, 16},
                        {64, 64, 112, 3, 1, 2},
                        {64, 128, 112, 3, 1, 1},
                        {128, 128, 56, 3, 1, 2},
                        {64, 64, 56, 1, 1, 8},
                        {64, 256, 56, 1, 1, 4},
                        {256, 64, 56, 1, 1, 4},
                        {64, 64, 56, 3, 1, 4},
                        {256, 128, 56, 1, 1, 4},
                        {128, 128, 56, 3, 2, 4},
                        {128, 512, 28, 1, 1, 8},
                        {512, 128, 28, 1, 1, 8},
                        {128, 128, 28, 3, 1, 8},
                        {256, 512, 56, 1, 2, 4},
                        {256, 256, 28, 3, 1, 2},
                        {256, 1024, 14, 1, 1, 16},
                        {1024, 256, 14, 1, 1, 16},
                        {256, 256, 14, 3, 1, 16},
                        {512, 2048, 7, 1, 1, 16},
                        {2048, 512, 7, 1, 1, 16},
                        {512, 512, 7, 3, 1, 16},
                        {512, 512, 14, 3, 1, 4},
                        {128, 32, 56, 3, 1, 8},
                        {128, 32, 28, 3, 1, 16},
                        {128, 32, 14, 3, 1, 16},
                        {128, 32, 7, 3, 1, 16},
                        {512, 128, 14, 1, 1, 16},
                        {768, 128, 7, 1, 1, 16},
                        {256, 128, 28, 1, 1, 16},
                        {1, 16, 8, 3, 1, 64},
                        {16, 16, 8, 3, 1, 64},
                        {16, 32, 8, 3, 2, 64},
                        {16, 32, 8, 1, 2, 64},
                        {32, 32, 4, 3, 1, 64},
                        {32, 64, 4, 3, 2, 64},
                        {64, 64, 2, 3, 1, 64},
                        {16, 96, 56, 1, 1, 8},
                        {96, 24, 56, 1, 1, 8},
                        {32, 192, 28, 1, 1, 16},
                        {192, 32, 28, 1, 1, 16},
                        {96, 96, 56, 3, 1, 4, 96},
                        {144, 144, 56, 3, 2, 4, 144},
                        {384, 384, 14, 3, 1, 16, 384},
                        {960, 960, 7, 3, 1, 16, 960},
                        {128, 128, 56, 3, 1, 4, 32},
                        {256, 256, 14, 3, 1, 8, 32},
                        // few pixels, for which much of the time goes into the weights
                        {960, 160, 2, 1, 1, 8},
                        {160, 960, 2, 1, 1, 8},
                        {320, 1280, 2, 1, 1, 8},
                        {64, 384, 4, 1, 1, 8},
                        {384, 64, 4, 1, 1, 8},
                        {512, 512, 2, 3, 1, 8},
                        {256, 256, 4, 3, 1, 8},
                        {128, 128, 8, 3, 1, 8},
                        {256, 512, 4, 3, 2, 8},
                        {512, 2048, 2, 1, 1, 8},
                        {2048, 512, 2, 1, 1, 8},
                        {256, 1024, 4, 1, 1, 8},
                        {1024, 256, 4, 1, 1, 8},
                        {256, 64, 16, 1, 1, 8},
                        {64, 64, 16, 3, 1, 8},
                        {24, 144, 16, 1, 1, 8},
                        {144, 24, 16, 1, 1, 8},
                        {32, 16, 32, 1, 1, 8},
                        {32, 32, 32, 3, 1, 8, 32},
                        {96, 96, 32, 3, 2, 8, 96},
                        {144, 144, 16, 3, 1, 8, 144},
                        {192, 192, 8, 3, 1, 8, 192},
                        {576, 576, 4, 3, 2, 8, 576},
                        {960, 960, 2, 3, 1, 8, 960}};

void measureConvolutions(Bench &bench) {
  constexpr size_t apart = 7; // neighbours are alike
  for (size_t first = 0; first < apart; ++first)
    for (size_t i = first; i < std::size(layers); i += apart)
      for (ConvPass pass : {ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight})
        if (!bench.late() && (layers[i].in > 3 || pass != ConvPass::BackwardData)) // no gradient of the image is wanted
          measurePass(bench, layers[i], pass);
}

void measureProducts(Bench &bench) {
  // rows, inner, columns; a linear layer's three products have the batch in each of the places
  static const int64_t shapes[][3] = {{16, 2048, 1000}, {16, 4096, 4096},   {64, 64, 10},     {2048, 16, 1000},
                                      {4096, 16, 4096}, {8, 1280, 1000},    {16, 8192, 4096}, {8192, 16, 4096},
                                      {256, 512, 512},  {1024, 1024, 1024}, {1280, 8, 1000},  {2048, 384, 1536},
                                      {384, 2048, 1536}};
  for (const auto &[m, k, n] : shapes)
    for (bool transposed : {false, true}) {
      const Shape a{m, k}, b = transposed ? Shape{n, k} : Shape{k, n}, c{m, n};
      MatmulOptions options = MatmulOptions().withTransposeB(transposed).withFactors(bench.type).withResult(bench.type);
      const std::string fastest = matmulCandidates({a, b, c, options}).front().name;
      options.algorithm.name = fastest.c_str();
      const Matmul product("calibrate", a, b, c, options);
      buildPrimitives();
      const size_t bytes =
          byteWidth(bench.type) * static_cast<size_t>(m * k + k * n + m * n) + product.workspaceBytes();
      bench.sample("product", planner::productSize(double(m), double(k), double(n)), 2.0 * double(m * k * n), bytes,
                   [&](Stream &stream) {
                     const auto place = [&](const Shape &of) { return bench.place(of, Layout::RowMajor, bench.type); };
                     product.run(stream, place(a), place(b), none, place(c), bench.space(product.workspaceBytes()));
                   });
    }
}

/// Queries, keys and values as one projection leaves them, which most models have: [batch, row, which, head, depth].
struct Heads {
  int64_t batch, heads, rows, depth;

  Shape each() const { return {batch, heads, rows, depth}; }
  Shape packed() const { return {batch, rows, 3, heads, depth}; }
  Shape view(int64_t which) const {
    return {which * heads * depth, rows * 3 * heads * depth, depth, 3 * heads * depth};
  }
  Shape result() const { return {0, rows * heads * depth, depth, heads * depth}; }
};

void measurePass(Bench &bench, const Heads &h, AttentionPass pass) {
  const Shape shape = h.each(), sums{h.batch, h.heads, h.rows};
  AttentionOptions options = AttentionOptions().withType(bench.type).withQView(h.view(0)).withKView(h.view(1));
  options.withVView(h.view(2)).withYView(h.result());
  const AttentionGeometry geometry("calibrate", shape, shape, shape, {}, {}, options.views());
  const std::string fastest = attentionCandidates(pass, geometry, bench.type).front().name;
  const Attention attention("calibrate", pass, shape, shape, shape, 0.125f, options.withAlgorithm({fastest.c_str()}));
  const bool backward = pass == AttentionPass::Backward;
  const double products = backward ? 5 : 2;
  const size_t bytes =
      byteWidth(bench.type) * static_cast<size_t>((backward ? 8 : 4) * shape.elements()) + attention.workspaceBytes();
  bench.sample(backward ? "attention_backward" : "attention_forward",
               planner::attentionSize(double(h.rows), double(h.rows), double(h.depth)),
               2.0 * products * double(h.batch * h.heads * h.rows * h.rows * h.depth), bytes, [&](Stream &stream) {
                 const auto place = [&](const Shape &of) { return bench.place(of, Layout::RowMajor, bench.type); };
                 const Tensor all = place(h.packed()), y = place(shape), logs = bench.place(sums),
                              space = bench.space(attention.workspaceBytes());
                 if (!backward)
                   return attention.forward(stream, all, all, all, none, none, y, logs, space);
                 const Tensor gradient = place(h.packed());
                 attention.backward(stream, place(shape), all, all, all, none, none, y, logs, gradient, gradient,
                                    gradient, space);
               });
}

void measureAttention(Bench &bench) {
  for (const Heads &heads : {Heads{8, 8, 64, 32}, {4, 6, 197, 64}, {4, 6, 256, 64}, {1, 4, 1024, 64}})
    for (AttentionPass pass : {AttentionPass::Forward, AttentionPass::Backward})
      measurePass(bench, heads, pass);
}

/// Kernels that wait for memory: bytes touched in a second, by bytes.
template <DataType Type> void measureTraffic(Bench &bench) {
  constexpr int64_t channels = 64;
  for (int64_t batch : {1, 8, 32, 128})
    for (int64_t extent : {4, 16, 48}) {
      const Shape x{batch, channels, extent, extent};
      const double width = double(byteWidth(Type)), bytes = width * static_cast<double>(x.elements());
      if (!Bench::fits(static_cast<size_t>(3 * bytes)))
        continue;
      const Tensor any = device(0, x, Layout::NHWC, Type);
      const auto place = [&](const Shape &of) { return bench.place(of, Layout::NHWC, Type); };
      const Fused<Multiply<Type>> multiply("calibrate", x, Layout::NHWC, {any, any}, {any}, {});
      bench.sample("elementwise", {3 * bytes}, 3 * bytes, static_cast<size_t>(3 * bytes), [&](Stream &stream) {
        const Tensor a = place(x), b = place(x);
        multiply.run(stream, {a, b}, {place(x)}, {}, none);
      });
      const BatchNormStatistics statistics("calibrate", x, 1e-5f);
      bench.sample("norm", {bytes}, bytes, static_cast<size_t>(bytes), [&](Stream &stream) {
        const Tensor mean = bench.place({channels}), rstd = bench.place({channels});
        statistics.run(stream, place(x), mean, rstd, bench.space(statistics.workspaceBytes()));
      });
      for (int64_t window : {2, 3}) {
        const Shape y{batch, channels, extent / 2, extent / 2};
        const MaxPool pool("calibrate", x, y, {{window, window}, {2, 2}, {0, 0, window - 2, window - 2}});
        const double moved = bytes + (width + 1) * static_cast<double>(y.elements());
        bench.sample("pool", {moved}, moved, static_cast<size_t>(moved), [&](Stream &stream) {
          const Tensor indices = bench.place(y, Layout::NHWC, DataType::U8), space = bench.space(pool.workspaceBytes());
          pool.forward(stream, place(x), place(y), indices, space);
        });
        bench.sample("pool_backward", {moved}, moved, static_cast<size_t>(moved), [&](Stream &stream) {
          const Tensor indices = bench.place(y, Layout::NHWC, DataType::U8), space = bench.space(pool.workspaceBytes());
          pool.backward(stream, place(y), indices, place(x), space);
        });
      }
    }
}

double launchSeconds(Bench &bench) {
  const Shape x{64};
  const Tensor any = device(0, x);
  const Fused<Multiply<DataType::F32>> multiply("calibrate", x, Layout::RowMajor, {any, any}, {any}, {});
  return bench.seconds(4096, [&](Stream &stream) { multiply.run(stream, {any, any}, {any}, {}, none); });
}

} // namespace

/// Puts into `busy` what other work takes of the cores beside a kernel that could use them all, if that is much; throws
/// it unless `insist`.
static void lookForWork(Bench &bench, bool insist, std::string &busy) {
  constexpr int64_t side = 1024;
  const Shape square{side, side};
  const Matmul product("calibrate", square, square, square);
  buildPrimitives();
  double best = 0;
  for (int i = 0; i < 3 && best < leastShare; ++i) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    const double seconds = bench.total(8, [&](Stream &stream) {
      product.run(stream, bench.place(square), bench.place(square), none, bench.place(square),
                  bench.space(product.workspaceBytes()));
    });
    getrusage(RUSAGE_SELF, &after);
    best = std::max(best, (secondsOf(after) - secondsOf(before)) / (seconds * threads()));
  }
  if (best >= leastShare)
    return;
  busy = "other work takes " + std::to_string(static_cast<int>(100 * (1 - best))) + " % of the " +
         std::to_string(threads()) + " cores";
  if (!insist)
    throw std::runtime_error(busy);
}

/// With a time of their own.
static json samplesOfHalves() {
  Bench bench(DataType::BF16);
  measureProducts(bench);
  measureAttention(bench);
  measureTraffic<DataType::BF16>(bench);
  measureConvolutions(bench);
  return bench.samples;
}

std::string sluice::calibrate(const std::string &folder, bool halves, bool insist, const std::function<void()> &begin) {
  json profile;
  for (const auto &[name, text] : planner::shippedProfiles())
    if (name == "host")
      profile = json::parse(text);
  profile["threads"] = threads();
  {
    Bench bench(DataType::F32);
    std::string busy;
    lookForWork(bench, insist, busy);
    begin();
    profile["rates"]["launch_seconds"] = launchSeconds(bench);
    measureProducts(bench);
    measureAttention(bench);
    measureTraffic<DataType::F32>(bench);
    measureConvolutions(bench);
    profile["samples"] = bench.samples;
    if (halves)
      for (const json &sample : samplesOfHalves())
        profile["samples"].push_back(sample);
    lookForWork(bench, insist, busy);
    if (!busy.empty())
      std::cerr << "sluicec: warning: " << busy
                << ": times will be predicted too long; repeat --calibrate when it does not" << std::endl;
  }
  const LinkRates links = measureLinks(3);
  profile["links"].update({{"d2h", links.toHost}, {"h2d", links.toDevice}, {"duplex", links.duplex}});
  profile["links"]["contention"] = links.contention.value_or(0);
  profile["codec_contention"] = profile["packing_contention"] = links.packingContention.value_or(0);
  for (const auto &[codec, rate] : links.codecs)
    profile["codecs"][codecName(codec)] = rate;
  if (const std::optional<StorageRates> storage = measureStorage(folder))
    profile["links"]["storage"] = {
        {"d2h", storage->write}, {"h2d", storage->read}, {"latency_seconds", storage->latency}};
  else
    profile["links"].erase("storage");
  profile["provenance"] = "measured on this machine by sluicec --calibrate";
  return profile.dump(1) + "\n";
}

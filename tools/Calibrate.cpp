// SPDX-License-Identifier: Apache-2.0
// Every sample is the best of a few runs. Small operands go round in twice their bytes, large ones in the whole arena:
// steps of small networks stay in caches, those of large ones do not. Sizes are those of common networks on images,
// from the few large channels at their end to the many pixels at their beginning, and of small ones. What is measured
// late is what a slow machine has no time for.
#include "tools/Calibrate.h"

#include "passes/planner/Profile.h"
#include "runtime/Runtime.h"
#include "runtime/program/Links.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <sys/resource.h>

using namespace sluice;
using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;

/// Of the cores' time that a measurement must get.
constexpr double leastShare = 0.7;

double secondsOf(const rusage &use) {
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

struct Multiply {
  static constexpr int inputs = 2, outputs = 1, sums = 0;
  SLUICE_KERNEL Values<1> operator()(float x, float y) const { return {{x * y}}; }
};

/// Kernels in an arena whose places they go round.
class Bench {
public:
  Bench() : session(arenaBytes, 0, 0) {
    clear(session.compute, device(0, {static_cast<int64_t>(arenaBytes)}, Layout::RowMajor, DataType::U8), "calibrate");
  }

  /// Place for a tensor, after the last one; the arena is a ring.
  Tensor place(Shape shape, Layout layout = Layout::RowMajor, DataType type = DataType::F32) {
    Tensor tensor = device(0, shape, layout, type);
    const size_t bytes = (tensor.bytes() + 255) / 256 * 256;
    if (next + bytes > ring)
      next = 0;
    tensor.offset = next;
    next += bytes;
    return tensor;
  }
  Tensor space(size_t bytes) { return place({static_cast<int64_t>(bytes)}, Layout::RowMajor, DataType::U8); }

  /// Whether a kernel that touches so many bytes can be measured.
  static bool fits(size_t bytes) { return bytes <= arenaBytes / 2; }

  /// Seconds of so many runs.
  template <typename Run> double total(int repeats, Run &&run) {
    session.synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < repeats; ++i)
      run(session.compute);
    session.synchronize();
    return std::max(1e-9, std::chrono::duration<double>(Clock::now() - begin).count());
  }

  /// Whether the time that sampling may take is over.
  bool late() const { return Clock::now() - begin > std::chrono::duration<double>(mostSeconds); }

  /// Seconds of one `run`, whose operands go round in so many bytes; short ones are repeated to two milliseconds.
  template <typename Run> double seconds(size_t around, Run &&run) {
    ring = around;
    next = 0;
    double best = once(1, run);
    const int repeats = std::clamp(static_cast<int>(2e-3 / best), 1, 200), rounds = best > 5e-3 ? 1 : 2;
    for (int i = 0; i < rounds; ++i) // so many in a row that waking the threads counts for nothing
      best = std::min(best, once(repeats, run));
    return best;
  }

  /// Files how fast a kernel that takes places for so many bytes does that amount: with operands that were touched a
  /// moment ago and, where caches would hold them, with some that were not.
  template <typename Run>
  void sample(const std::string &kind, std::vector<double> size, double amount, size_t bytes, Run &&run) {
    const size_t near = std::min<size_t>(arenaBytes, 2 * (bytes + 4096));
    size.push_back(0);
    for (size_t around : {near, bytes < cachedBytes ? arenaBytes : near}) {
      size.back() = planner::surroundings(static_cast<double>(around));
      samples.push_back({{"kind", kind}, {"size", size}, {"rate", amount / seconds(around, run)}});
      if (around == arenaBytes || bytes >= cachedBytes)
        break;
    }
  }

  Session session;
  json samples = json::array();

private:
  static constexpr double mostSeconds = 3.5;
  const Clock::time_point begin = Clock::now();

  template <typename Run> double once(int repeats, Run &&run) { return total(repeats, run) / repeats; }

  static constexpr size_t arenaBytes = size_t{192} << 20, cachedBytes = size_t{4} << 20;
  size_t next = 0, ring = arenaBytes;
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
                  ConvOptions().withGroups(l.groups));
  if (!Bench::fits(conv.workspaceBytes()))
    return;
  buildPrimitives();
  const size_t bytes = 4 * static_cast<size_t>(x.elements() + w.elements() + y.elements()) + conv.workspaceBytes();
  auto run = [&](Stream &stream) {
    const Tensor tx = bench.place(x, Layout::NHWC), ty = bench.place(y, Layout::NHWC), tw = bench.place(w);
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
                                      {256, 512, 512},  {1024, 1024, 1024}, {1280, 8, 1000}};
  for (const auto &[m, k, n] : shapes)
    for (bool transposed : {false, true}) {
      const Shape a{m, k}, b = transposed ? Shape{n, k} : Shape{k, n}, c{m, n};
      const Matmul product("calibrate", a, b, c, MatmulOptions().withTransposeB(transposed));
      buildPrimitives();
      const size_t bytes = 4 * static_cast<size_t>(m * k + k * n + m * n) + product.workspaceBytes();
      bench.sample("product", planner::productSize(double(m), double(k), double(n)), 2.0 * double(m * k * n), bytes,
                   [&](Stream &stream) {
                     product.run(stream, bench.place(a), bench.place(b), none, bench.place(c),
                                 bench.space(product.workspaceBytes()));
                   });
    }
}

/// Kernels that wait for memory: bytes touched in a second, by bytes.
void measureTraffic(Bench &bench) {
  constexpr int64_t channels = 64;
  for (int64_t batch : {1, 8, 32, 128})
    for (int64_t extent : {4, 16, 48}) {
      const Shape x{batch, channels, extent, extent};
      const double bytes = 4.0 * static_cast<double>(x.elements());
      if (!Bench::fits(static_cast<size_t>(3 * bytes)))
        continue;
      const Tensor any = device(0, x, Layout::NHWC);
      const Fused<Multiply> multiply("calibrate", x, Layout::NHWC, {any, any}, {any}, {});
      bench.sample("elementwise", {3 * bytes}, 3 * bytes, static_cast<size_t>(3 * bytes), [&](Stream &stream) {
        const Tensor a = bench.place(x, Layout::NHWC), b = bench.place(x, Layout::NHWC);
        multiply.run(stream, {a, b}, {bench.place(x, Layout::NHWC)}, {}, none);
      });
      const BatchNormStatistics statistics("calibrate", x, 1e-5f);
      bench.sample("norm", {bytes}, bytes, static_cast<size_t>(bytes), [&](Stream &stream) {
        const Tensor mean = bench.place({channels}), rstd = bench.place({channels});
        statistics.run(stream, bench.place(x, Layout::NHWC), mean, rstd, bench.space(statistics.workspaceBytes()));
      });
      for (int64_t window : {2, 3}) {
        const Shape y{batch, channels, extent / 2, extent / 2};
        const MaxPool pool("calibrate", x, y, {{window, window}, {2, 2}, {0, 0, window - 2, window - 2}});
        const double moved = bytes + 5.0 * static_cast<double>(y.elements());
        bench.sample("pool", {moved}, moved, static_cast<size_t>(moved), [&](Stream &stream) {
          const Tensor indices = bench.place(y, Layout::NHWC, DataType::U8), space = bench.space(pool.workspaceBytes());
          pool.forward(stream, bench.place(x, Layout::NHWC), bench.place(y, Layout::NHWC), indices, space);
        });
        bench.sample("pool_backward", {moved}, moved, static_cast<size_t>(moved), [&](Stream &stream) {
          const Tensor indices = bench.place(y, Layout::NHWC, DataType::U8), space = bench.space(pool.workspaceBytes());
          pool.backward(stream, bench.place(y, Layout::NHWC), indices, bench.place(x, Layout::NHWC), space);
        });
      }
    }
}

double launchSeconds(Bench &bench) {
  const Shape x{64};
  const Tensor any = device(0, x);
  const Fused<Multiply> multiply("calibrate", x, Layout::RowMajor, {any, any}, {any}, {});
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

std::string sluice::calibrate(const std::string &folder, bool insist, const std::function<void()> &begin) {
  json profile;
  for (const auto &[name, text] : planner::shippedProfiles())
    if (name == "host")
      profile = json::parse(text);
  profile["threads"] = threads();
  {
    Bench bench;
    std::string busy;
    lookForWork(bench, insist, busy);
    begin();
    profile["rates"]["launch_seconds"] = launchSeconds(bench);
    measureProducts(bench);
    measureTraffic(bench);
    measureConvolutions(bench);
    lookForWork(bench, insist, busy);
    if (!busy.empty())
      std::cerr << "sluicec: warning: " << busy
                << ": times will be predicted too long; repeat --calibrate when it does not" << std::endl;
    profile["samples"] = bench.samples;
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

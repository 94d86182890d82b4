// SPDX-License-Identifier: Apache-2.0
// Arithmetic: a product and a convolution that are large and square, whichever is faster. Memory: the mean of gradients
// over the batches of a step, which reads two tensors and writes over one of them, of several sizes again and again.
#include "runtime/program/Peaks.h"

#include "runtime/Update.h"

#include <algorithm>
#include <chrono>

namespace sluice {

namespace {

/// Tensors one after another in an arena.
struct Arena {
  Tensor place(Shape shape, Layout layout, DataType type) {
    const Tensor tensor = device(bytes, shape, layout, type);
    bytes += (tensor.bytes() + 255) / 256 * 256;
    return tensor;
  }
  size_t bytes = 0;
};

/// Of one run, the best of several rounds of a few milliseconds.
template <typename Run> double bestSeconds(Session &session, Run &&run) {
  using Clock = std::chrono::steady_clock;
  const auto secondsOf = [&](int repeats) {
    session.synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < repeats; ++i)
      run(session.compute);
    session.synchronize();
    return std::max(1e-9, std::chrono::duration<double>(Clock::now() - begin).count() / repeats);
  };
  secondsOf(1); // touches pages and fills caches
  const int repeats = std::clamp(static_cast<int>(5e-3 / secondsOf(1)), 1, 1000);
  double best = secondsOf(repeats);
  for (int round = 0; round < 4; ++round)
    best = std::min(best, secondsOf(repeats));
  return best;
}

double productRate(DataType type) {
  constexpr int64_t side = 1024;
  const Matmul product("peak", {side, side}, {side, side}, {side, side},
                       MatmulOptions().withFactors(type).withResult(type));
  buildPrimitives();
  Arena arena;
  const auto square = [&] { return arena.place({side, side}, Layout::RowMajor, type); };
  const Tensor a = square(), b = square(), c = square();
  const Tensor space = arena.place({static_cast<int64_t>(product.workspaceBytes())}, Layout::RowMajor, DataType::U8);
  Session session(arena.bytes, 0, 0);
  clear(session.compute, a, "peak");
  clear(session.compute, b, "peak");
  return 2.0 * side * side * side /
         bestSeconds(session, [&](Stream &stream) { product.run(stream, a, b, none, c, space); });
}

double convolutionRate(DataType type) {
  constexpr int64_t batch = 8, channels = 128, side = 28, window = 3;
  const Shape image{batch, channels, side, side}, weights{channels, channels, window, window};
  const Conv conv("peak", ConvPass::Forward, image, weights, image, {{window, window}, {1, 1}, {1, 1, 1, 1}},
                  ConvOptions().withType(type));
  buildPrimitives();
  Arena arena;
  const Tensor x = arena.place(image, Layout::NHWC, type), y = arena.place(image, Layout::NHWC, type),
               w = arena.place(weights, Layout::RowMajor, type),
               space = arena.place({static_cast<int64_t>(conv.workspaceBytes())}, Layout::RowMajor, DataType::U8);
  Session session(arena.bytes, 0, 0);
  clear(session.compute, x, "peak");
  clear(session.compute, w, "peak");
  return 2.0 * static_cast<double>(image.elements() * channels * window * window) /
         bestSeconds(session, [&](Stream &stream) { conv.forward(stream, x, w, none, y, space); });
}

double flopsIn(DataType type) { return std::max(productRate(type), convolutionRate(type)); }

std::vector<Peaks::Bandwidth> measureMemory() {
  constexpr int64_t largest = int64_t{16} << 20; // elements
  Arena arena;
  const Tensor gradient = arena.place({largest}, Layout::RowMajor, DataType::F32),
               mean = arena.place({largest}, Layout::RowMajor, DataType::F32);
  Session session(arena.bytes, 0, 0);
  clear(session.compute, gradient, "peak");
  clear(session.compute, mean, "peak");
  session.state.batch = 1, session.state.batches = 2, session.state.batchShare = 0.5f; // so that both are read
  std::vector<Peaks::Bandwidth> found;
  for (int64_t elements = largest; elements >= largest >> 8; elements /= 4) {
    Tensor some = gradient, sum = mean;
    some.shape = sum.shape = {elements};
    const double bytes = 3.0 * sizeof(float) * static_cast<double>(elements),
                 rate = bytes /
                        bestSeconds(session, [&](Stream &stream) { accumulateGradient(stream, some, sum, "peak"); });
    found.push_back({bytes, found.empty() ? rate : std::max(rate, found.back().rate)});
  }
  std::reverse(found.begin(), found.end());
  return found;
}

} // namespace

double Peaks::bandwidthFor(double bytes) const {
  for (const Bandwidth &row : memory)
    if (bytes <= row.bytes)
      return row.rate;
  return memory.back().rate;
}

Peaks measurePeaks(bool halves) {
  Peaks peaks;
  peaks.flops = flopsIn(DataType::F32);
  if (halves)
    peaks.halfFlops = std::max(peaks.flops, flopsIn(DataType::BF16)); // kernels may make floats of them
  peaks.memory = measureMemory();
  return peaks;
}

} // namespace sluice

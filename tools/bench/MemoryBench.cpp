// SPDX-License-Identifier: Apache-2.0
// Kernels that memory bounds.
#include "tools/bench/MemoryBench.h"

#include "runtime/Runtime.h"
#include "tools/bench/CodecBench.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace sluice {

namespace {

struct NormalizeRelu {
  static constexpr int inputs = 5, outputs = 1, sums = 0;
  SLUICE_KERNEL Values<1> operator()(float x, float mean, float rstd, float scale, float bias) const {
    const float v = (x - mean) * rstd * scale + bias;
    return {{v > 0 ? v : 0}};
  }
};
struct ReluBackwardReduce {
  static constexpr int inputs = 4, outputs = 1, sums = 2;
  SLUICE_KERNEL Values<3> operator()(float dy, float x, float mean, float rstd) const {
    const float normal = (x - mean) * rstd, d = normal > 0 ? dy : 0;
    return {{d, d, d * normal}};
  }
};

/// Pairs of tensors one after the other, more than caches hold: in a step, what a kernel reads has mostly left them.
struct Pairs {
  Shape shape;
  int64_t count, next = 0;
  explicit Pairs(const Shape &shape)
      : shape(shape), count(1 + (int64_t(768) << 20) / static_cast<int64_t>(2 * bytes())) {}
  size_t bytes() const { return device(0, shape).bytes(); }
  size_t end() const { return static_cast<size_t>(2 * count) * bytes(); }
  Tensor at(int64_t index) const { return device(static_cast<size_t>(index) * bytes(), shape, Layout::NHWC); }
  Tensor x() { return at(2 * (++next % count)); }
  Tensor y() const { return at(2 * (next % count) + 1); }
};

} // namespace

void benchElementwise(int64_t batch) {
  puts("channels extent | statistics, normalize + relu, relu backward + sums, copy on one core: GB/s");
  for (auto [channels, extent] : {std::pair<int64_t, int64_t>{16, 112}, {64, 112}, {256, 56}, {512, 28}, {2048, 7}}) {
    const Shape shape{batch, channels, extent, extent};
    Pairs pairs(shape);
    auto vector = [&, c = channels](size_t i) { return device(pairs.end() + i * 16384, {c}); };
    const Tensor mean = channel(vector(0)), rstd = channel(vector(1)), scale = channel(vector(2)),
                 bias = channel(vector(3)), x = pairs.at(0), y = pairs.at(1);
    const BatchNormStatistics statistics("bn", shape, 1e-5f);
    const Fused<NormalizeRelu> relu("relu", shape, Layout::NHWC, {x, mean, rstd, scale, bias}, {y}, {});
    const Fused<ReluBackwardReduce> back("back", shape, Layout::NHWC, {y, x, mean, rstd}, {y}, {vector(2), vector(3)});
    const size_t space = std::max(statistics.workspaceBytes(), back.workspaceBytes()), end = pairs.end() + 65536;
    const Tensor work = scratch(end, static_cast<int64_t>(space));
    Session session(end + space, 0, 0);
    Stream &stream = session.compute;
    memset(stream.address(x), 0, end);
    const double gigabytes = static_cast<double>(x.bytes()) * 1e-9;
    const double a = bestSeconds(session, [&] { statistics.run(stream, pairs.x(), vector(0), vector(1), work); });
    const double b =
        bestSeconds(session, [&] { relu.run(stream, {pairs.x(), mean, rstd, scale, bias}, {pairs.y()}, {}, none); });
    const double c = bestSeconds(session, [&] {
      const Tensor from = pairs.x(), to = pairs.y();
      back.run(stream, {to, from, mean, rstd}, {to}, {vector(2), vector(3)}, work);
    });
    const double d = bestSeconds(session, [&] {
      const Tensor from = pairs.x();
      memcpy(stream.address(pairs.y()), stream.address(from), from.bytes());
    });
    printf("%8d %6d | %6.1f %6.1f %6.1f %6.1f\n", static_cast<int>(channels), static_cast<int>(extent), gigabytes / a,
           2 * gigabytes / b, 3 * gigabytes / c, 2 * gigabytes / d);
  }
}

void benchPools(int64_t batch) {
  puts("channels extent | maximum, its gradient: ms");
  for (auto [channels, extent] : {std::pair<int64_t, int64_t>{64, 112}, {256, 56}}) {
    const Shape shape{batch, channels, extent, extent}, half{batch, channels, extent / 2, extent / 2};
    const Window window{{3, 3}, {2, 2}, {1, 1, 1, 1}};
    const MaxPool pool("pool", shape, half, window);
    const Tensor x = device(0, shape, Layout::NHWC), y = device(x.bytes(), half, Layout::NHWC),
                 indices = device(x.bytes() + y.bytes(), half, Layout::NHWC, DataType::U8);
    Session session(indices.offset + indices.bytes(), 0, 0);
    Stream &stream = session.compute;
    for (int64_t i = 0; i < shape.elements(); ++i)
      stream.data<float>(x)[i] = normal(1, static_cast<uint64_t>(i));
    const double a = bestSeconds(session, [&] { pool.forward(stream, x, y, indices, none); });
    const double b = bestSeconds(session, [&] { pool.backward(stream, y, indices, x, none); });
    printf("%8d %6d | %6.2f %6.2f\n", static_cast<int>(channels), static_cast<int>(extent), a * 1e3, b * 1e3);
  }
}

} // namespace sluice

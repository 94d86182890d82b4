// SPDX-License-Identifier: Apache-2.0
// Kernels that wait for memory, each in the bytes that its op is said to move (Costed::bytesMoved), under the name by
// which programs record it.
#include "runtime/Embedding.h"
#include "runtime/Join.h"
#include "tools/CalibrationBench.h"

using namespace sluice;

namespace {

double bytesOf(const Bench &bench, const Shape &shape) {
  return double(byteWidth(bench.type)) * double(shape.elements());
}

template <DataType Type> struct Multiply {
  static constexpr int inputs = 2, outputs = 1, sums = 0;
  static constexpr DataType types[] = {Type, Type, Type};
  SLUICE_KERNEL Values<1> operator()(float x, float y) const { return {{x * y}}; }
};

/// As BatchNorm with a residual does.
template <DataType Type> struct Normalize {
  static constexpr int inputs = 4, outputs = 1, sums = 0;
  static constexpr DataType types[] = {Type, Type, DataType::F32, DataType::F32, Type};
  SLUICE_KERNEL Values<1> operator()(float x, float y, float mean, float rstd) const {
    return {{(x - mean) * rstd + y}};
  }
};

/// As its gradients do: nothing is written but sums.
template <DataType Type> struct Reduce {
  static constexpr int inputs = 4, outputs = 0, sums = 2;
  static constexpr DataType types[] = {Type, Type, DataType::F32, DataType::F32};
  SLUICE_KERNEL Values<2> operator()(float dy, float x, float mean, float rstd) const {
    return {{dy, dy * ((x - mean) * rstd)}};
  }
};

using Tensors = std::initializer_list<Tensor>;

template <DataType Type> void measureRegions(Bench &bench, const Shape &x) {
  const double bytes = bytesOf(bench, x);
  const Tensor any = device(0, x, Layout::NHWC, Type), vector = device(0, {x.dims[1]}),
               channels = device(0, {1, x.dims[1], 1, 1});
  const auto multiply =
      std::make_shared<Fused<Multiply<Type>>>("calibrate", x, Layout::NHWC, Tensors{any, any}, Tensors{any}, Tensors{});
  bench.sampleTraffic("elementwise", 3 * bytes, [&bench, multiply, x](Stream &stream) {
    const Tensor a = bench.placeOwn(x, Layout::NHWC), b = bench.placeOwn(x, Layout::NHWC);
    multiply->run(stream, {a, b}, {bench.placeOwn(x, Layout::NHWC)}, {}, none);
  });
  const auto normalize = std::make_shared<Fused<Normalize<Type>>>(
      "calibrate", x, Layout::NHWC, Tensors{any, any, channels, channels}, Tensors{any}, Tensors{});
  bench.sampleTraffic("fused_channels", 3 * bytes, [&bench, normalize, x, vector](Stream &stream) {
    const Tensor a = bench.placeOwn(x, Layout::NHWC), b = bench.placeOwn(x, Layout::NHWC);
    const Tensor mean = bench.place(vector.shape), rstd = bench.place(vector.shape);
    normalize->run(stream, {a, b, mean, rstd}, {bench.placeOwn(x, Layout::NHWC)}, {}, none);
  });
  const auto reduce = std::make_shared<Fused<Reduce<Type>>>(
      "calibrate", x, Layout::NHWC, Tensors{any, any, channels, channels}, Tensors{}, Tensors{vector, vector});
  bench.sampleTraffic("fused_sums", 2 * bytes, [&bench, reduce, x, vector](Stream &stream) {
    const Tensor a = bench.placeOwn(x, Layout::NHWC), b = bench.placeOwn(x, Layout::NHWC);
    const Tensor mean = bench.place(vector.shape), rstd = bench.place(vector.shape);
    const Tensor one = bench.place(vector.shape), other = bench.place(vector.shape);
    reduce->run(stream, {a, b, mean, rstd}, {}, {one, other}, bench.space(reduce->workspaceBytes()));
  });
}

void measureImage(Bench &bench, const Shape &x) {
  const double width = double(byteWidth(bench.type)), bytes = bytesOf(bench, x);
  const auto statistics = std::make_shared<BatchNormStatistics>("calibrate", x, 1e-5f);
  bench.sampleTraffic("norm", bytes, [&bench, statistics, x](Stream &stream) {
    const Tensor mean = bench.place({x.dims[1]}), rstd = bench.place({x.dims[1]});
    statistics->run(stream, bench.placeOwn(x, Layout::NHWC), mean, rstd, bench.space(statistics->workspaceBytes()));
  });
  const Shape y{x.dims[0], x.dims[1], x.dims[2] / 2, x.dims[3] / 2};
  for (int64_t window : {2, 3}) {
    const auto pool =
        std::make_shared<MaxPool>("calibrate", x, y, Window{{window, window}, {2, 2}, {0, 0, window - 2, window - 2}});
    const double moved = bytes + (width + 1) * static_cast<double>(y.elements());
    bench.sampleTraffic("pool", moved, [&bench, pool, x, y](Stream &stream) {
      const Tensor indices = bench.place(y, Layout::NHWC, DataType::U8);
      pool->forward(stream, bench.placeOwn(x, Layout::NHWC), bench.placeOwn(y, Layout::NHWC), indices,
                    bench.space(pool->workspaceBytes()));
    });
    bench.sampleTraffic("pool_backward", moved, [&bench, pool, x, y](Stream &stream) {
      const Tensor indices = bench.place(y, Layout::NHWC, DataType::U8);
      pool->backward(stream, bench.placeOwn(y, Layout::NHWC), indices, bench.placeOwn(x, Layout::NHWC),
                     bench.space(pool->workspaceBytes()));
    });
  }
}

void measureResize(Bench &bench, const Shape &x, ResizeMode mode) {
  const Shape y{x.dims[0], x.dims[1], 2 * x.dims[2], 2 * x.dims[3]};
  const auto resize = std::make_shared<Resize>("calibrate", x, y, 2.0f, 2.0f, mode, ResizeCoordinates::HalfPixel,
                                               NearestRounding::RoundPreferFloor);
  const double bytes = bytesOf(bench, x) + bytesOf(bench, y);
  bench.sampleTraffic("resize", bytes, [&bench, resize, x, y](Stream &stream) {
    resize->forward(stream, bench.placeOwn(x, Layout::NHWC), bench.placeOwn(y, Layout::NHWC));
  });
  bench.sampleTraffic("resize_backward", bytes, [&bench, resize, x, y](Stream &stream) {
    resize->backward(stream, bench.placeOwn(y, Layout::NHWC), bench.placeOwn(x, Layout::NHWC));
  });
}

/// Means over images, as of squeezing and at the end of a network, and back.
void measureMeans(Bench &bench, const Shape &x) {
  const Shape y{x.dims[0], x.dims[1], 1, 1};
  const Tensor tx = device(0, x, Layout::NHWC, bench.type), ty = device(0, y, Layout::NHWC);
  const double bytes = bytesOf(bench, x);
  const auto sum = std::make_shared<SumTo>("calibrate", tx, ty);
  bench.sampleTraffic("sum_to", bytes, [&bench, sum, x, y](Stream &stream) {
    sum->run(stream, bench.placeOwn(x, Layout::NHWC), bench.place(y, Layout::NHWC), bench.space(sum->workspaceBytes()));
  });
  const auto pool = std::make_shared<AveragePool>("calibrate", x, y, Window{{x.dims[2], x.dims[3]}, {1, 1}, {}}, true);
  bench.sampleTraffic("average_pool", bytes, [&bench, pool, x, y](Stream &stream) {
    pool->forward(stream, bench.placeOwn(x, Layout::NHWC), bench.placeOwn(y, Layout::NHWC), none);
  });
  bench.sampleTraffic("average_pool_backward", bytes, [&bench, pool, x, y](Stream &stream) {
    pool->backward(stream, bench.placeOwn(y, Layout::NHWC), bench.placeOwn(x, Layout::NHWC), none);
  });
  const auto spread = std::make_shared<BroadcastTo>("calibrate", ty, tx);
  bench.sampleTraffic("broadcast_to", bytes, [&bench, spread, x, y](Stream &stream) {
    spread->run(stream, bench.place(y, Layout::NHWC), bench.placeOwn(x, Layout::NHWC));
  });
}

/// Sums over each channel of images in the other order, as gradients of what scales channels are.
void measureNeighbours(Bench &bench, const Shape &x) {
  const Shape y{x.dims[0], x.dims[1], 1, 1};
  const auto sum = std::make_shared<SumTo>("calibrate", device(0, x, Layout::RowMajor, bench.type), device(0, y));
  bench.sampleTraffic("sum_to_neighbours", bytesOf(bench, x), [&bench, sum, x, y](Stream &stream) {
    sum->run(stream, bench.placeOwn(x), bench.place(y), bench.space(sum->workspaceBytes()));
  });
}

/// What is done to rows of so many numbers.
void measureRows(Bench &bench, const Shape &x) {
  const double bytes = bytesOf(bench, x);
  const Shape columns{x.dims[1]}, rows{x.dims[0], 1};
  const auto norm = std::make_shared<LayerNorm>("calibrate", x, 1e-5f);
  bench.sampleTraffic("layer_norm", 2 * bytes, [&bench, norm, x, columns, rows](Stream &stream) {
    const Tensor tx = bench.placeOwn(x), scale = bench.place(columns), bias = bench.place(columns);
    norm->forward(stream, tx, scale, bias, bench.placeOwn(x), bench.place(rows), bench.place(rows));
  });
  bench.sampleTraffic("layer_norm_backward", 3 * bytes, [&bench, norm, x, columns, rows](Stream &stream) {
    const Tensor dy = bench.placeOwn(x), tx = bench.placeOwn(x), scale = bench.place(columns);
    norm->backward(stream, dy, tx, scale, bench.place(rows), bench.place(rows), bench.placeOwn(x));
  });
  const auto softmax = std::make_shared<Softmax>("calibrate", x, 1, false);
  bench.sampleTraffic("softmax", 2 * bytes, [&bench, softmax, x](Stream &stream) {
    const Tensor tx = bench.placeOwn(x);
    softmax->forward(stream, tx, bench.placeOwn(x));
  });
  bench.sampleTraffic("softmax_backward", 3 * bytes, [&bench, softmax, x](Stream &stream) {
    const Tensor dy = bench.placeOwn(x), y = bench.placeOwn(x);
    softmax->backward(stream, dy, y, bench.placeOwn(x));
  });
  const auto sum = std::make_shared<SumTo>("calibrate", device(0, x, Layout::RowMajor, bench.type), device(0, columns));
  bench.sampleTraffic("sum_to", bytes, [&bench, sum, x, columns](Stream &stream) {
    sum->run(stream, bench.placeOwn(x), bench.place(columns), bench.space(sum->workspaceBytes()));
  });
}

/// Logits of floats, whatever the bench has: [N,K] of samples or tokens, [N,K,H,W] of pixels.
void measureLoss(Bench &bench, const Shape &x) {
  Shape targets = x;
  for (int i = 2; i < x.rank; ++i)
    targets.dims[i - 1] = x.dims[i];
  --targets.rank;
  const auto loss = std::make_shared<Loss>("calibrate", LossKind::SoftmaxCrossEntropy, x);
  const double bytes = 4 * double(x.elements()), ofTargets = 8 * double(targets.elements());
  bench.sampleTraffic("loss", bytes + ofTargets, [&bench, loss, x, targets](Stream &stream) {
    loss->forward(stream, bench.place(x), bench.zeros(targets), bench.place({1}), bench.space(loss->workspaceBytes()));
  });
  bench.sampleTraffic("loss_backward", 2 * bytes + ofTargets, [&bench, loss, x, targets](Stream &stream) {
    const Tensor tx = bench.place(x);
    loss->backward(stream, tx, bench.zeros(targets), bench.place(x), bench.space(loss->workspaceBytes()));
  });
}

/// Heads of attention beside one another, images in the other order, and channels that are shuffled in groups.
void measureOrders(Bench &bench) {
  const auto sample = [&](const Shape &x, Layout from, const Shape &y, Layout to, std::initializer_list<int> order) {
    const auto reorder =
        std::make_shared<Reorder>("calibrate", device(0, x, from, bench.type), device(0, y, to, bench.type), order);
    bench.sampleTraffic("reorder", 2 * bytesOf(bench, x), [&bench, reorder, x, from, y, to](Stream &stream) {
      const Tensor tx = bench.placeOwn(x, from);
      reorder->run(stream, tx, bench.placeOwn(y, to));
    });
  };
  const auto rowMajor = Layout::RowMajor;
  sample({8, 256, 6, 64}, rowMajor, {8, 6, 256, 64}, rowMajor, {0, 2, 1, 3});
  sample({8, 96, 28, 28}, Layout::NHWC, {8, 96, 28, 28}, rowMajor, {0, 1, 2, 3});
  sample({16, 28, 28, 2, 58}, rowMajor, {16, 28, 28, 58, 2}, rowMajor, {0, 1, 2, 4, 3});
}

/// Weights, on their way into products of halves.
void measureCasts(Bench &bench) {
  for (const Shape &x : {Shape{64, 64}, Shape{512, 512}, Shape{2048, 1024}}) {
    const auto cast = std::make_shared<Reorder>("calibrate", device(0, x), device(0, x, Layout::RowMajor, bench.type),
                                                std::initializer_list<int>{});
    bench.sampleTraffic("cast", 4 * double(x.elements()) + bytesOf(bench, x), [&bench, cast, x](Stream &stream) {
      const Tensor tx = bench.place(x);
      cast->run(stream, tx, bench.placeOwn(x));
    });
  }
}

void measureSlabs(Bench &bench, const Shape &small) {
  Shape large = small;
  large.dims[1] *= 2;
  const auto slab = std::make_shared<Slab>("calibrate", device(0, large, Layout::NHWC, bench.type),
                                           device(0, small, Layout::NHWC, bench.type), 1, small.dims[1]);
  bench.sampleTraffic("extract", 2 * bytesOf(bench, small), [&bench, slab, small, large](Stream &stream) {
    const Tensor from = bench.placeOwn(large, Layout::NHWC);
    slab->extract(stream, from, bench.placeOwn(small, Layout::NHWC));
  });
  bench.sampleTraffic("insert", 4 * bytesOf(bench, small), [&bench, small, large](Stream &stream) {
    const Tensor a = bench.placeOwn(small, Layout::NHWC), b = bench.placeOwn(small, Layout::NHWC);
    join(stream, bench.placeOwn(large, Layout::NHWC), {a, b}, 1, "calibrate");
  });
}

void measureTable(Bench &bench) {
  const Shape table{8192, 512}, ids{16, 128}, y{16, 128, 512};
  const auto embedding = std::make_shared<Embedding>("calibrate", table, ids);
  const double bytes = bytesOf(bench, y), ofTable = 4 * double(table.elements());
  bench.sampleTraffic("embedding", 2 * bytes, [&bench, embedding, table, ids, y](Stream &stream) {
    embedding->forward(stream, bench.place(table), bench.zeros(ids), bench.placeOwn(y));
  });
  bench.sampleTraffic("embedding_backward", 2 * bytes + ofTable, [&bench, embedding, table, ids, y](Stream &stream) {
    embedding->backward(stream, bench.placeOwn(y), bench.zeros(ids), bench.place(table),
                        bench.space(embedding->workspaceBytes()));
  });
}

} // namespace

void sluice::measureTraffic(Bench &bench) {
  const bool halves = bench.type == DataType::BF16;
  for (int64_t batch : {1, 8, 32, 128})
    for (int64_t extent : {4, 16, 48}) {
      const Shape x{batch, 64, extent, extent};
      halves ? measureRegions<DataType::BF16>(bench, x) : measureRegions<DataType::F32>(bench, x);
      if (batch == 8 || batch == 32)
        measureImage(bench, x);
    }
  for (const Shape &x : {Shape{8, 256, 7, 7}, Shape{8, 96, 28, 28}, Shape{8, 144, 56, 56}}) {
    measureMeans(bench, x);
    measureNeighbours(bench, x);
    measureSlabs(bench, x);
    measureResize(bench, x, ResizeMode::Nearest);
    measureResize(bench, x, ResizeMode::Linear);
  }
  for (const Shape &x : {Shape{128, 64}, Shape{2048, 384}, Shape{6272, 192}, Shape{25088, 96}})
    measureRows(bench, x);
  measureOrders(bench);
  measureTable(bench);
  if (halves)
    measureCasts(bench);
  else
    for (const Shape &x : {Shape{16, 1000}, Shape{2048, 1024}, Shape{4, 4, 192, 192}})
      measureLoss(bench, x);
}

double sluice::launchSeconds(Bench &bench) {
  const Shape x{64};
  const Tensor any = device(0, x);
  const Fused<Multiply<DataType::F32>> multiply("calibrate", x, Layout::RowMajor, {any, any}, {any}, {});
  return bench.seconds(4096, [&](Stream &stream) { multiply.run(stream, {any, any}, {any}, {}, none); });
}

// SPDX-License-Identifier: Apache-2.0
// Convolutions whose engines of cuDNN compute BatchNorm's sums in their epilogues. Where there is none, a convolution
// and the kernel that would run behind it. An engine's sums of y and y * y are f32: the variance loses as many bits as
// the squared mean exceeds it by, which bf16 has lost in y before; our own kernel takes distances from a row of each
// chunk (Norm.cu). Engines sum what they rounded to bf16 or did not; either is within the rounding of y.
#include "runtime/ConvNorm.h"

#include "runtime/Fused.h"
#include "runtime/cuda/ConvEngine.h"
#include "runtime/cuda/SharedEngine.h"

namespace sluice {

namespace {

/// mean and rstd from sums of values and of their squares.
__global__ void finishMoments(const float *sums, int64_t channels, double count, float epsilon, float *mean,
                              float *rstd) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= channels)
    return;
  const double m = static_cast<double>(sums[c]) / count, squares = static_cast<double>(sums[channels + c]) / count;
  mean[c] = static_cast<float>(m);
  rstd[c] = static_cast<float>(1 / sqrt(fmax(0.0, squares - m * m) + static_cast<double>(epsilon)));
}

/// What fuse makes of relu_backward and normalize_reduce. The result may be dx's bytes.
struct MaskedGradient {
  static constexpr int inputs = 5, outputs = 1, sums = 2;
  static constexpr bool steps[] = {true, true, true, true, true};
  static constexpr DataType types[] = {DataType::BF16, DataType::BF16, DataType::BF16,
                                       DataType::F32,  DataType::F32,  DataType::BF16};
  SLUICE_KERNEL Values<3> operator()(float dy, float z, float x, float mean, float rstd) const {
    const float dz = z <= 0.0f ? 0.0f : dy;
    return {{dz, dz * ((x - mean) * rstd), dz}};
  }
};
struct MaskedGradientOfSum {
  static constexpr int inputs = 6, outputs = 1, sums = 2;
  static constexpr bool steps[] = {true, true, true, true, true, true};
  static constexpr DataType types[] = {DataType::BF16, DataType::BF16, DataType::BF16, DataType::F32,
                                       DataType::F32,  DataType::BF16, DataType::BF16};
  SLUICE_KERNEL Values<3> operator()(float dy, float z, float x, float mean, float rstd, float addend) const {
    return MaskedGradient()(dy + addend, z, x, mean, rstd);
  }
};

} // namespace

/// The engine, and what stands in for it.
struct ConvNorm::Impl : Buildable {
  Impl(const char *node, const ConvGeometry &g, bool addend, Algorithm algorithm, float epsilon)
      : node(node), geometry(g), addend(addend), algorithm(algorithm), epsilon(epsilon),
        sums(cuda::convNormSums(g.pass, g.y)), ownStatistics(node, g.y, epsilon) {
    const int64_t limit = grantedWorkspace(algorithm);
    scratch = cuda::convNormScratch(limit, g.pass, g.x, g.w, g.y);
    const Epilogue epilogue = g.pass == ConvPass::Forward ? Epilogue::Statistics
                              : addend                    ? Epilogue::GradientOfSum
                                                          : Epilogue::Gradient;
    const int64_t bytes = scratch - sums;
    shared =
        SharedEngine<ConvEngine>::of(engineKey(g, bytes, Precision::BF16, epilogue), node,
                                     "leaves BatchNorm's sums to a kernel of their own: ", [=](std::string &reason) {
                                       return ConvEngine::choose(g, bytes, Precision::BF16, reason, "", epilogue);
                                     });
    const Tensor x = device(0, g.x, Layout::NHWC, DataType::BF16), vector = device(0, {g.x[1]}), c = channel(vector);
    if (epilogue == Epilogue::Gradient)
      masked = std::make_unique<Fused<MaskedGradient>>(node, g.x, Layout::NHWC, List{x, x, x, c, c}, List{x},
                                                       List{vector, vector});
    if (epilogue == Epilogue::GradientOfSum)
      maskedSum = std::make_unique<Fused<MaskedGradientOfSum>>(node, g.x, Layout::NHWC, List{x, x, x, c, c, x}, List{x},
                                                               List{vector, vector});
  }

  void build() override {
    if (shared->get() || conv)
      return;
    conv = std::make_unique<Conv>(node, geometry.pass, geometry.x, geometry.w, geometry.y, geometry.window,
                                  geometry.groups, false, algorithm, DataType::BF16);
    buildPrimitives(); // the engine of that one
  }
  /// Null where there is none; also of objects that buildPrimitives() never saw.
  const ConvEngine *engine() {
    build();
    return shared->get();
  }

  using List = std::initializer_list<Tensor>;
  const char *node;
  ConvGeometry geometry;
  bool addend;
  Algorithm algorithm;
  float epsilon;
  int64_t scratch = 0, sums; ///< bytes in all, of which `sums` come behind the engine's workspace
  std::shared_ptr<SharedEngine<ConvEngine>> shared;
  std::unique_ptr<Conv> conv; ///< null: the engine
  BatchNormStatistics ownStatistics;
  std::unique_ptr<Fused<MaskedGradient>> masked; ///< of a gradient; with an addend the other one
  std::unique_ptr<Fused<MaskedGradientOfSum>> maskedSum;
};

ConvNorm::ConvNorm(const char *node, ConvPass pass, Shape x, Shape w, Shape y, Window window, int64_t groups,
                   bool addend, Algorithm algorithm, float epsilon)
    : Kernel(node) {
  checkConvolution(node, x, w, y, window, groups);
  impl = std::make_shared<Impl>(node, ConvGeometry{pass, x, w, y, window, groups, DataType::BF16}, addend, algorithm,
                                epsilon);
  workspace = static_cast<size_t>(impl->scratch);
  buildLater(impl);
}

ConvNorm::~ConvNorm() = default;
ConvNorm::ConvNorm(ConvNorm &&) = default;

void ConvNorm::statistics(Stream &stream, const Tensor &x, const Tensor &w, const Tensor &y, const Tensor &mean,
                          const Tensor &rstd, const Tensor &scratch) const {
  const ConvEngine *engine = impl->engine();
  if (!engine) {
    impl->conv->forward(stream, x, w, none, y, scratch);
    return impl->ownStatistics.run(stream, y, mean, rstd, scratch);
  }
  const void *px = stream.address(x), *pw = stream.address(w);
  void *py = stream.address(y);
  float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd);
  char *workspace = stream.data<char>(scratch);
  stream.launch(node, "conv_statistics", [&] {
    const Shape &shape = impl->geometry.y;
    const int64_t channels = shape[1];
    float *sums = reinterpret_cast<float *>(workspace + impl->scratch - impl->sums);
    engine->run(native(stream), 0, px, pw, py, workspace, {sums, sums + channels});
    const double count = static_cast<double>(shape.elements() / channels);
    const unsigned blocks = static_cast<unsigned>((channels + Cut::threads - 1) / Cut::threads);
    const float epsilon = impl->epsilon;
    finishMoments<<<blocks, Cut::threads, 0, native(stream)>>>(sums, channels, count, epsilon, pMean, pRstd);
  });
}

void ConvNorm::gradient(Stream &stream, const Tensor &dy, const Tensor &w, const Tensor &z, const Tensor &x,
                        const Tensor &mean, const Tensor &rstd, const Tensor &addend, const Tensor &dz,
                        const Tensor &dscale, const Tensor &dbias, const Tensor &scratch) const {
  const ConvEngine *engine = impl->engine();
  if (!engine) {
    impl->conv->backwardData(stream, dy, w, dz, scratch);
    const Tensor m = channel(mean), r = channel(rstd);
    return impl->maskedSum ? impl->maskedSum->run(stream, {dz, z, x, m, r, addend}, {dz}, {dscale, dbias}, scratch)
                           : impl->masked->run(stream, {dz, z, x, m, r}, {dz}, {dscale, dbias}, scratch);
  }
  auto at = [&](const Tensor &tensor) { return stream.address(tensor); };
  const void *pdy = at(dy), *pw = at(w), *pz = at(z), *px = at(x), *pMean = at(mean), *pRstd = at(rstd);
  void *pdz = at(dz), *pScale = at(dscale), *pBias = at(dbias), *workspace = at(scratch);
  const void *pAddend = impl->addend ? at(addend) : nullptr;
  stream.launch(node, "conv_backward_norm", [&] {
    if (pAddend)
      engine->run(native(stream), 0, pdy, pw, pdz, workspace, {pz, px, pMean, pRstd, pScale, pBias, pAddend});
    else
      engine->run(native(stream), 0, pdy, pw, pdz, workspace, {pz, px, pMean, pRstd, pScale, pBias});
  });
}

} // namespace sluice

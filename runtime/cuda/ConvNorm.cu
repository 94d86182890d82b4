// SPDX-License-Identifier: Apache-2.0
// Convolutions whose engines of cuDNN compute BatchNorm's sums in their epilogues. Where there is none, a convolution
// and the kernel that would run after it. An engine's sums of y and y * y are f32: the variance loses as many bits as
// the squared mean exceeds it by, which halves have lost in y before; our own kernel takes distances from a row of each
// chunk (Norm.cu). Engines sum what they rounded or did not; either is within the rounding of y.
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
template <DataType Half> struct MaskedGradient {
  static constexpr int inputs = 5, outputs = 1, sums = 2;
  static constexpr bool steps[inputs] = {true, true, true, true, true};
  static constexpr DataType types[inputs + outputs] = {Half, Half, Half, DataType::F32, DataType::F32, Half};
  SLUICE_KERNEL Values<3> operator()(float dy, float z, float x, float mean, float rstd) const {
    const float dz = z <= 0.0f ? 0.0f : dy;
    return {{dz, dz * ((x - mean) * rstd), dz}};
  }
};
template <DataType Half> struct MaskedGradientOfSum {
  static constexpr int inputs = 6, outputs = 1, sums = 2;
  static constexpr bool steps[inputs] = {true, true, true, true, true, true};
  static constexpr DataType types[inputs + outputs] = {Half, Half, Half, DataType::F32, DataType::F32, Half, Half};
  SLUICE_KERNEL Values<3> operator()(float dy, float z, float x, float mean, float rstd, float addend) const {
    return MaskedGradient<Half>()(dy + addend, z, x, mean, rstd);
  }
};

/// The kernel where no engine has the epilogue of a gradient.
struct MaskedRegion {
  virtual ~MaskedRegion() = default;
  virtual void run(Stream &stream, const Tensor &dz, const Tensor &z, const Tensor &x, const Tensor &mean,
                   const Tensor &rstd, const Tensor &addend, const Tensor &dscale, const Tensor &dbias,
                   const Tensor &scratch) const = 0;
};

template <DataType Half, bool Addend> struct MaskedRegionOf : MaskedRegion {
  using Rule = std::conditional_t<Addend, MaskedGradientOfSum<Half>, MaskedGradient<Half>>;

  MaskedRegionOf(Node node, const Tensor &x, const Tensor &vector) : region(made(node, x, vector)) {}
  static Fused<Rule> made(Node node, const Tensor &x, const Tensor &vector) {
    const Tensor c = channel(vector);
    if constexpr (Addend)
      return {node, x.shape, x.layout, {x, x, x, c, c, x}, {x}, {vector, vector}};
    else
      return {node, x.shape, x.layout, {x, x, x, c, c}, {x}, {vector, vector}};
  }
  void run(Stream &stream, const Tensor &dz, const Tensor &z, const Tensor &x, const Tensor &mean, const Tensor &rstd,
           const Tensor &addend, const Tensor &dscale, const Tensor &dbias, const Tensor &scratch) const override {
    const Tensor m = channel(mean), r = channel(rstd);
    if constexpr (Addend)
      region.run(stream, {dz, z, x, m, r, addend}, {dz}, {dscale, dbias}, scratch);
    else
      region.run(stream, {dz, z, x, m, r}, {dz}, {dscale, dbias}, scratch);
  }
  Fused<Rule> region;
};

template <DataType Half>
std::unique_ptr<MaskedRegion> maskedRegion(Node node, bool addend, const Tensor &x, const Tensor &vector) {
  if (addend)
    return std::make_unique<MaskedRegionOf<Half, true>>(node, x, vector);
  return std::make_unique<MaskedRegionOf<Half, false>>(node, x, vector);
}

Precision precisionOf(DataType type) { return type == DataType::F16 ? Precision::FP16 : Precision::BF16; }

} // namespace

/// The engine, and what stands in for it.
struct ConvNorm::Impl : Buildable {
  Impl(Node node, const ConvGeometry &g, bool addend, Algorithm algorithm, float epsilon)
      : node(node), geometry(g), addend(addend), algorithm(algorithm), epsilon(epsilon),
        sums(cuda::convNormSums(g.pass, g.y)), ownStatistics(node, g.y, epsilon) {
    const int64_t limit = grantedWorkspace(algorithm);
    scratch = cuda::convNormScratch(limit, g.pass, g.x, g.w, g.y);
    const Epilogue epilogue = g.pass == ConvPass::Forward ? Epilogue::Statistics
                              : addend                    ? Epilogue::GradientOfSum
                                                          : Epilogue::Gradient;
    const ConvTask task{g, scratch - sums, precisionOf(g.type), epilogue};
    shared = SharedEngine<ConvEngine>::of(task.text(), node, "leaves BatchNorm's sums to a kernel of their own: ",
                                          [task](std::string &reason) { return ConvEngine::choose(task, reason); });
    const Tensor x = device(0, g.x, Layout::NHWC, g.type), vector = device(0, {g.x[1]});
    if (epilogue != Epilogue::Statistics)
      masked = g.type == DataType::F16 ? maskedRegion<DataType::F16>(node, addend, x, vector)
                                       : maskedRegion<DataType::BF16>(node, addend, x, vector);
  }

  void build() override {
    if (shared->get() || conv)
      return;
    conv = std::make_unique<Conv>(
        node, geometry.pass, geometry.x, geometry.w, geometry.y, geometry.window,
        ConvOptions().withGroups(geometry.groups).withAlgorithm(algorithm).withType(geometry.type));
  }
  /// Null where there is none; also of objects that buildPrimitives() never saw.
  const ConvEngine *engine() {
    build();
    return shared->get();
  }

  Node node;
  ConvGeometry geometry;
  bool addend;
  Algorithm algorithm;
  float epsilon;
  int64_t scratch = 0, sums; ///< bytes in all, of which `sums` come after the engine's workspace
  std::shared_ptr<SharedEngine<ConvEngine>> shared;
  std::unique_ptr<Conv> conv; ///< null: the engine
  BatchNormStatistics ownStatistics;
  std::unique_ptr<MaskedRegion> masked; ///< of a gradient
};

ConvNorm::ConvNorm(Node node, ConvPass pass, Shape x, Shape w, Shape y, Window window, ConvNormOptions options)
    : Kernel(node) {
  checkConvolution(node, x, w, y, window, options.groups);
  impl = std::make_shared<Impl>(node, ConvGeometry{pass, x, w, y, window, options.groups, options.type}, options.addend,
                                options.algorithm, options.epsilon);
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
    return impl->masked->run(stream, dz, z, x, mean, rstd, addend, dscale, dbias, scratch);
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

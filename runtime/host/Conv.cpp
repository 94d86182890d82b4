// SPDX-License-Identifier: Apache-2.0
// Convolutions through oneDNN. Activations are NHWC; oneDNN chooses the weights' format, so each call reorders them
// inside scratch: [reordered weights | oneDNN's scratchpad]. Layers of one shape share one description (and its
// compiled code).
//
// oneDNN 2.6's backward-data kernel drops to half its rate on wide rows of many channels (measured on AVX-512: 28
// pixels, 256 channels: 119 instead of 235 GFLOP/s). There, with stride 1, we run the forward kernel on turned weights
// instead: channels exchanged, window rotated by half a turn.
#include "runtime/common/Windows.h"
#include "runtime/host/Dnnl.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace sluice {

using dnnl::memory;

/// What all convolutions of one geometry share. `reorder` brings weights into oneDNN's format, or gradients out of it.
struct Conv::Impl {
  memory::desc x, y, plainWeights, weights, bias;
  Primitive convolution, reorder;
  size_t reordered = 0; ///< scratch bytes of weights as the primitive wants them; 0: they are row-major
  size_t turned = 0;    ///< bytes of turned weights, in front of the reorder's scratchpad; 0: not turned
  Shape weightShape;

  char *pad(char *scratch) const { return scratch + scratchPart(reordered); }
  /// The reorder and the convolution never run at the same time.
  size_t workspace() const {
    return scratchPart(reordered) +
           std::max(convolution.scratchpadBytes(), scratchPart(turned) + reorder.scratchpadBytes());
  }
  void turn(const float *from, float *to) const;
  const void *prepareWeights(const float *w, char *scratch) const;
};

/// [O,I,kh,kw] becomes [I,O,kh,kw] with every window rotated; small blocks, so that both sides stay in the cache.
void Conv::Impl::turn(const float *from, float *to) const {
  constexpr int64_t block = 16;
  const int64_t outs = weightShape[0], ins = weightShape[1], window = weightShape[2] * weightShape[3];
  parallelFor((ins + block - 1) / block, [&](int64_t band) {
    for (int64_t first = 0; first < outs; first += block)
      for (int64_t i = band * block; i < std::min(ins, (band + 1) * block); ++i)
        for (int64_t o = first; o < std::min(outs, first + block); ++o)
          for (int64_t k = 0; k < window; ++k)
            to[(i * outs + o) * window + window - 1 - k] = from[(o * ins + i) * window + k];
  });
}

const void *Conv::Impl::prepareWeights(const float *w, char *scratch) const {
  const float *plain = w;
  if (turned) {
    auto *to = reinterpret_cast<float *>(reorder ? pad(scratch) : scratch);
    turn(w, to);
    plain = to;
  }
  if (!reorder)
    return plain;
  reorder.execute({{DNNL_ARG_FROM, &plainWeights, plain}, {DNNL_ARG_TO, &weights, scratch}},
                  pad(scratch) + scratchPart(turned));
  return scratch;
}

namespace {

struct Geometry {
  ConvPass pass;
  Shape x, w, y;
  Window window;
  int64_t groups;
  bool bias;

  std::vector<int64_t> key() const {
    std::vector<int64_t> key{static_cast<int64_t>(pass), groups, bias, threads()};
    for (const Shape *shape : {&x, &w, &y})
      key.insert(key.end(), shape->dims, shape->dims + 4);
    for (int i = 0; i < 2; ++i)
      key.insert(key.end(), {window.strides[i], window.dilations[i], window.pads[i], window.pads[i + 2]});
    return key;
  }

  bool turns() const {
    for (int i = 0; i < 2; ++i)
      if (window.strides[i] != 1 || std::max(window.pads[i], window.pads[2 + i]) > window.dilations[i] * (w[2 + i] - 1))
        return false; // a window that sees nothing but padding would need negative pads
    return groups == 1 && w[2] * w[3] > 1 && x[1] >= 256 && y[3] > 16;
  }
};

memory::dims dims(const Shape &shape) { return memory::dims(shape.dims, shape.dims + shape.rank); }

memory::dims weightDims(const Geometry &g) {
  if (g.groups == 1)
    return dims(g.w);
  return {g.groups, g.w[0] / g.groups, g.w[1], g.w[2], g.w[3]};
}

memory::desc nhwc(const Shape &shape) { return {dims(shape), memory::data_type::f32, memory::format_tag::nhwc}; }

struct Descriptions {
  memory::desc x, y, anyWeights, bias;
  memory::dims strides, dilations, begin, end;

  explicit Descriptions(const Geometry &g)
      : x(nhwc(g.x)), y(nhwc(g.y)), anyWeights(weightDims(g), memory::data_type::f32, memory::format_tag::any),
        strides(g.window.strides, g.window.strides + 2), dilations{g.window.dilations[0] - 1,
                                                                   g.window.dilations[1] - 1},
        begin{g.window.pads[0], g.window.pads[1]}, end{g.window.pads[2], g.window.pads[3]} {
    if (g.bias)
      bias = memory::desc({g.w[0]}, memory::data_type::f32, memory::format_tag::x);
  }

  dnnl::convolution_forward::primitive_desc forward(bool withBias) const {
    const auto kind = dnnl::prop_kind::forward_training;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const auto desc =
        withBias
            ? dnnl::convolution_forward::desc(kind, algorithm, x, anyWeights, bias, y, strides, dilations, begin, end)
            : dnnl::convolution_forward::desc(kind, algorithm, x, anyWeights, y, strides, dilations, begin, end);
    return {desc, userScratchpad(), dnnlEngine()};
  }
};

template <typename Primitive_, typename Description> Primitive lazily(const Description &pd) {
  return Primitive([pd] { return Primitive_(pd); }, pd.scratchpad_desc());
}

void describeForward(const Descriptions &d, Conv::Impl &impl) {
  const auto pd = d.forward(!d.bias.is_zero());
  impl.weights = pd.weights_desc();
  impl.convolution = lazily<dnnl::convolution_forward>(pd);
  impl.reorder = dnnlReorder(impl.plainWeights, impl.weights);
}

void describeBackwardData(const Descriptions &d, Conv::Impl &impl) {
  const dnnl::convolution_backward_data::desc desc(dnnl::algorithm::convolution_direct, d.x, d.anyWeights, d.y,
                                                   d.strides, d.dilations, d.begin, d.end);
  const dnnl::convolution_backward_data::primitive_desc pd(desc, userScratchpad(), dnnlEngine(), d.forward(false));
  impl.weights = pd.weights_desc();
  impl.convolution = lazily<dnnl::convolution_backward_data>(pd);
  impl.reorder = dnnlReorder(impl.plainWeights, impl.weights);
}

void describeTurned(const Geometry &g, const Descriptions &d, Conv::Impl &impl) {
  memory::dims begin, end;
  for (int i = 0; i < 2; ++i) {
    const int64_t reach = g.window.dilations[i] * (g.w[2 + i] - 1);
    begin.push_back(reach - g.window.pads[i]);
    end.push_back(g.x[2 + i] + reach - g.y[2 + i] - begin.back());
  }
  const memory::desc anyWeights({g.w[1], g.w[0], g.w[2], g.w[3]}, memory::data_type::f32, memory::format_tag::any);
  const dnnl::convolution_forward::primitive_desc pd({dnnl::prop_kind::forward_training,
                                                      dnnl::algorithm::convolution_direct, d.y, anyWeights, d.x,
                                                      d.strides, d.dilations, begin, end},
                                                     userScratchpad(), dnnlEngine());
  impl.plainWeights = {anyWeights.dims(), memory::data_type::f32, memory::format_tag::oihw};
  impl.weights = pd.weights_desc();
  impl.convolution = lazily<dnnl::convolution_forward>(pd);
  impl.reorder = dnnlReorder(impl.plainWeights, impl.weights);
  impl.turned = impl.plainWeights.get_size();
}

void describeBackwardWeight(const Descriptions &d, Conv::Impl &impl) {
  using Backward = dnnl::convolution_backward_weights;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto desc =
      d.bias.is_zero()
          ? Backward::desc(algorithm, d.x, d.anyWeights, d.y, d.strides, d.dilations, d.begin, d.end)
          : Backward::desc(algorithm, d.x, d.anyWeights, d.bias, d.y, d.strides, d.dilations, d.begin, d.end);
  const Backward::primitive_desc pd(desc, userScratchpad(), dnnlEngine(), d.forward(!d.bias.is_zero()));
  impl.weights = pd.diff_weights_desc();
  impl.convolution = lazily<Backward>(pd);
  impl.reorder = dnnlReorder(impl.weights, impl.plainWeights);
}

std::shared_ptr<Conv::Impl> describeConvolution(const Geometry &g) {
  static std::mutex mutex;
  static std::map<std::vector<int64_t>, std::shared_ptr<Conv::Impl>> known;
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Conv::Impl> &impl = known[g.key()];
  if (impl)
    return impl;
  auto fresh = std::make_shared<Conv::Impl>();
  const Descriptions d(g);
  fresh->x = d.x, fresh->y = d.y, fresh->bias = d.bias;
  fresh->plainWeights = {weightDims(g), memory::data_type::f32,
                         g.groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw};
  if (g.pass == ConvPass::Forward)
    describeForward(d, *fresh);
  else if (g.pass == ConvPass::BackwardData && g.turns())
    describeTurned(g, d, *fresh);
  else if (g.pass == ConvPass::BackwardData)
    describeBackwardData(d, *fresh);
  else
    describeBackwardWeight(d, *fresh);
  fresh->weightShape = g.w;
  fresh->reordered = fresh->reorder || fresh->turned ? fresh->weights.get_size() : 0;
  return impl = fresh;
}

} // namespace

Conv::Conv(const char *node, ConvPass pass, Shape x, Shape w, Shape y, Window window, int64_t groups, bool bias,
           DataType type)
    : Kernel(node) {
  requireF32(node, type);
  const Geometry geometry{pass, x, w, y, window, groups, bias && pass != ConvPass::BackwardData};
  checkConvolution(node, x, w, y, window, groups);
  impl = describe(node, "convolution", [&] { return describeConvolution(geometry); });
  workspace = impl->workspace();
}

Conv::~Conv() = default;
Conv::Conv(Conv &&) = default;

void Conv::forward(Stream &stream, const Tensor &x, const Tensor &w, const Tensor &bias, const Tensor &y,
                   const Tensor &scratch) const {
  const float *px = stream.data<float>(x), *pw = stream.data<float>(w), *pb = stream.data<float>(bias);
  float *py = stream.data<float>(y);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv", [impl = impl.get(), px, pw, pb, py, part] {
    const void *weights = impl->prepareWeights(pw, part);
    if (impl->bias.is_zero())
      impl->convolution.execute(
          {{DNNL_ARG_SRC, &impl->x, px}, {DNNL_ARG_WEIGHTS, &impl->weights, weights}, {DNNL_ARG_DST, &impl->y, py}},
          impl->pad(part));
    else
      impl->convolution.execute({{DNNL_ARG_SRC, &impl->x, px},
                                 {DNNL_ARG_WEIGHTS, &impl->weights, weights},
                                 {DNNL_ARG_BIAS, &impl->bias, pb},
                                 {DNNL_ARG_DST, &impl->y, py}},
                                impl->pad(part));
  });
}

void Conv::backwardData(Stream &stream, const Tensor &dy, const Tensor &w, const Tensor &dx,
                        const Tensor &scratch) const {
  const float *pdy = stream.data<float>(dy), *pw = stream.data<float>(w);
  float *pdx = stream.data<float>(dx);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv_backward_data", [impl = impl.get(), pdy, pw, pdx, part] {
    const void *weights = impl->prepareWeights(pw, part);
    const bool turned = impl->turned > 0;
    impl->convolution.execute({{turned ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, &impl->y, pdy},
                               {DNNL_ARG_WEIGHTS, &impl->weights, weights},
                               {turned ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, &impl->x, pdx}},
                              impl->pad(part));
  });
}

void Conv::backwardWeight(Stream &stream, const Tensor &dy, const Tensor &x, const Tensor &dw, const Tensor &dbias,
                          const Tensor &scratch) const {
  const float *pdy = stream.data<float>(dy), *px = stream.data<float>(x);
  float *pdw = stream.data<float>(dw), *pdb = stream.data<float>(dbias);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv_backward_weight", [impl = impl.get(), pdy, px, pdw, pdb, part] {
    void *weights = impl->reorder ? static_cast<void *>(part) : pdw;
    if (impl->bias.is_zero())
      impl->convolution.execute({{DNNL_ARG_DIFF_DST, &impl->y, pdy},
                                 {DNNL_ARG_SRC, &impl->x, px},
                                 {DNNL_ARG_DIFF_WEIGHTS, &impl->weights, weights}},
                                impl->pad(part));
    else
      impl->convolution.execute({{DNNL_ARG_DIFF_DST, &impl->y, pdy},
                                 {DNNL_ARG_SRC, &impl->x, px},
                                 {DNNL_ARG_DIFF_WEIGHTS, &impl->weights, weights},
                                 {DNNL_ARG_DIFF_BIAS, &impl->bias, pdb}},
                                impl->pad(part));
    if (impl->reorder)
      impl->reorder.execute({{DNNL_ARG_FROM, &impl->weights, part}, {DNNL_ARG_TO, &impl->plainWeights, pdw}},
                            impl->pad(part));
  });
}

} // namespace sluice

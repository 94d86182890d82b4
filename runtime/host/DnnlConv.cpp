// SPDX-License-Identifier: Apache-2.0
// oneDNN's convolutions as engines, see DnnlConv.h.
#include "runtime/host/DnnlConv.h"

#include "runtime/host/Dnnl.h"
#include "runtime/host/Parallel.h"

#include <algorithm>
#include <functional>

namespace sluice {

using dnnl::memory;

namespace {

memory::dims dims(const Shape &shape) { return memory::dims(shape.dims, shape.dims + shape.rank); }

memory::dims weightDims(const ConvGeometry &g) {
  if (g.groups == 1)
    return dims(g.w);
  memory::dims grouped = dims(g.w);
  grouped[0] /= g.groups;
  grouped.insert(grouped.begin(), g.groups);
  return grouped;
}

memory::desc nhwc(const Shape &shape, DataType type) {
  return {dims(shape), dnnlType(type), shape.rank == 5 ? memory::format_tag::ndhwc : memory::format_tag::nhwc};
}

/// Of weights or their gradient, which is of floats whatever the weights are.
DataType weightType(const ConvGeometry &g) { return g.pass == ConvPass::BackwardWeight ? DataType::F32 : g.type; }

/// How the program has them: floats row-major, bf16 with the channels last.
memory::format_tag weightFormat(const ConvGeometry &g) {
  using Tag = memory::format_tag;
  const bool rows = weightType(g) == DataType::F32, grouped = g.groups > 1;
  if (g.w.rank == 5)
    return rows ? (grouped ? Tag::goidhw : Tag::oidhw) : (grouped ? Tag::godhwi : Tag::odhwi);
  return rows ? (grouped ? Tag::goihw : Tag::oihw) : (grouped ? Tag::gohwi : Tag::ohwi);
}

/// One implementation, described: its primitive, in which format it wants weights, and how to build it.
struct Description {
  std::string name;
  memory::desc weights, scratchpad;
  std::function<dnnl::primitive()> make;
};

/// What a geometry looks like to oneDNN.
struct Geometry {
  memory::desc x, y, anyWeights, bias;
  memory::desc forwardWeights; ///< those that a hint for a gradient has
  memory::dims strides, dilations, begin, end;
  ConvPass pass;

  Geometry(const ConvGeometry &g, bool withBias)
      : x(nhwc(g.x, g.type)), y(nhwc(g.y, g.type)),
        anyWeights(weightDims(g), dnnlType(weightType(g)), memory::format_tag::any),
        forwardWeights(weightDims(g), dnnlType(g.type), memory::format_tag::any), pass(g.pass) {
    for (int i = 0, spatial = g.x.rank - 2; i < spatial; ++i) {
      strides.push_back(g.window.strides[i]);
      dilations.push_back(g.window.dilations[i] - 1);
      begin.push_back(g.window.pads[i]);
      end.push_back(g.window.pads[spatial + i]);
    }
    if (withBias)
      bias = memory::desc({g.w[0]}, memory::data_type::f32, memory::format_tag::x);
  }

  /// The data gradient of images as the forward pass from dy to dx.
  static Geometry rotated(const ConvGeometry &g) {
    Geometry t(g, false);
    std::swap(t.x, t.y);
    t.anyWeights = {{g.w[1], g.w[0], g.w[2], g.w[3]}, memory::data_type::f32, memory::format_tag::any};
    t.forwardWeights = t.anyWeights;
    for (int i = 0; i < 2; ++i) {
      const int64_t reach = g.window.dilations[i] * (g.w[2 + i] - 1), first = reach - g.window.pads[i];
      t.begin[static_cast<size_t>(i)] = first;
      t.end[static_cast<size_t>(i)] = g.x[2 + i] + reach - g.y[2 + i] - first;
    }
    t.pass = ConvPass::Forward;
    return t;
  }

  dnnl::convolution_forward::primitive_desc forward() const {
    using Forward = dnnl::convolution_forward;
    const auto kind = dnnl::prop_kind::forward_training;
    const auto direct = dnnl::algorithm::convolution_direct;
    const auto desc = bias.is_zero()
                          ? Forward::desc(kind, direct, x, forwardWeights, y, strides, dilations, begin, end)
                          : Forward::desc(kind, direct, x, forwardWeights, bias, y, strides, dilations, begin, end);
    return {desc, userScratchpad(), dnnlEngine()};
  }
  /// `hint`: iterating over implementations of a gradient reads it, so it outlives that.
  using Hint = dnnl::convolution_forward::primitive_desc;
  dnnl::convolution_backward_data::primitive_desc backwardData(const Hint &hint) const {
    const dnnl::convolution_backward_data::desc desc(dnnl::algorithm::convolution_direct, x, anyWeights, y, strides,
                                                     dilations, begin, end);
    return {desc, userScratchpad(), dnnlEngine(), hint};
  }
  dnnl::convolution_backward_weights::primitive_desc backwardWeight(const Hint &hint) const {
    using Backward = dnnl::convolution_backward_weights;
    const auto direct = dnnl::algorithm::convolution_direct;
    const auto desc = bias.is_zero() ? Backward::desc(direct, x, anyWeights, y, strides, dilations, begin, end)
                                     : Backward::desc(direct, x, anyWeights, bias, y, strides, dilations, begin, end);
    return {desc, userScratchpad(), dnnlEngine(), hint};
  }

  /// Calls `take` with one implementation after the other until it returns true.
  void each(const std::function<bool(const Description &)> &take) const {
    auto walk = [&](auto pd, auto *primitive, auto weights) {
      using Primitive_ = std::remove_pointer_t<decltype(primitive)>;
      do {
        const std::string name = pd.impl_info_str();
        if (name.find("gemm") != std::string::npos || name.find("ref") != std::string::npos)
          return; // they are the last
        if (take({name, weights(pd), pd.scratchpad_desc(), [pd] { return Primitive_(pd); }}))
          return;
        // What oneDNN 2.6.3 looks at after its brgemm kernels divides by what it did not set, now and then by zero.
        if (name.compare(0, 3, "brg") == 0 || name.compare(0, 3, "brd") == 0)
          return;
      } while (pd.next_impl());
    };
    auto read = [](const auto &pd) { return pd.weights_desc(); };
    const Hint hint = forward();
    if (pass == ConvPass::Forward)
      walk(hint, static_cast<dnnl::convolution_forward *>(nullptr), read);
    else if (pass == ConvPass::BackwardData)
      walk(backwardData(hint), static_cast<dnnl::convolution_backward_data *>(nullptr), read);
    else
      walk(backwardWeight(hint), static_cast<dnnl::convolution_backward_weights *>(nullptr),
           [](const auto &pd) { return pd.diff_weights_desc(); });
  }
};

class DnnlConv : public ConvEngine {
public:
  DnnlConv(const ConvGeometry &whole, const Geometry &part, const Description &chosen, bool rotated, int64_t parts)
      : pass(whole.pass), weightShape(whole.w), rotated(rotated), parts(parts), x(part.x), y(part.y),
        weights(chosen.weights), bias(part.bias), convolution(chosen.make, chosen.scratchpad) {
    if (rotated)
      std::swap(x, y);
    plainWeights = {part.anyWeights.dims(), dnnlType(weightType(whole)), weightFormat(whole)};
    const bool out = pass == ConvPass::BackwardWeight;
    reorder = out ? dnnlReorder(weights, plainWeights) : dnnlReorder(plainWeights, weights);
    reordered = reorder || rotated ? weights.get_size() : 0;
    rotatedBytes = rotated ? plainWeights.get_size() : 0;
    added = out && parts > 1 ? scratchPart(weights.get_size()) + scratchPart(bias.get_size()) : 0;
  }

  /// The reorder and the convolution never run at the same time.
  size_t workspaceBytes() const override {
    return scratchPart(reordered) + added +
           std::max(convolution.scratchpadBytes(), scratchPart(rotatedBytes) + reorder.scratchpadBytes());
  }

  void run(const void *from, const void *second, void *to, float *biases, char *scratch) const override {
    const auto *first = static_cast<const char *>(from);
    if (pass == ConvPass::BackwardWeight)
      return runBackwardWeight(first, static_cast<const char *>(second), static_cast<float *>(to), biases, scratch);
    const void *prepared = prepareWeights(second, scratch);
    auto *result = static_cast<char *>(to);
    const bool forward = pass == ConvPass::Forward;
    const size_t read = (forward ? x : y).get_size(), written = (forward ? y : x).get_size();
    for (int64_t part = 0; part < parts; ++part, first += read, result += written)
      if (!forward)
        convolution.execute({{rotated ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, &y, first},
                             {DNNL_ARG_WEIGHTS, &weights, prepared},
                             {rotated ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, &x, result}},
                            pad(scratch));
      else if (bias.is_zero())
        convolution.execute(
            {{DNNL_ARG_SRC, &x, first}, {DNNL_ARG_WEIGHTS, &weights, prepared}, {DNNL_ARG_DST, &y, result}},
            pad(scratch));
      else
        convolution.execute({{DNNL_ARG_SRC, &x, first},
                             {DNNL_ARG_WEIGHTS, &weights, prepared},
                             {DNNL_ARG_BIAS, &bias, biases},
                             {DNNL_ARG_DST, &y, result}},
                            pad(scratch));
  }

private:
  char *pad(char *scratch) const { return scratch + scratchPart(reordered) + added; }

  /// [O,I,kh,kw] becomes [I,O,kh,kw] with every window rotated; small blocks, so that both sides stay in the cache.
  void turn(const float *from, float *to) const {
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

  const void *prepareWeights(const void *w, char *scratch) const {
    const void *plain = w;
    if (rotated) {
      auto *to = reinterpret_cast<float *>(reorder ? pad(scratch) : scratch);
      turn(static_cast<const float *>(w), to);
      plain = to;
    }
    if (!reorder)
      return plain;
    reorder.execute({{DNNL_ARG_FROM, &plainWeights, plain}, {DNNL_ARG_TO, &weights, scratch}},
                    pad(scratch) + scratchPart(rotatedBytes));
    return scratch;
  }

  void runBackwardWeight(const char *dy, const char *px, float *dw, float *dbias, char *scratch) const {
    float *sum = reorder ? reinterpret_cast<float *>(scratch) : dw;
    char *partial = scratch + scratchPart(reordered);
    for (int64_t part = 0; part < parts; ++part) {
      auto *to = part ? reinterpret_cast<float *>(partial) : sum;
      auto *toBias = part ? reinterpret_cast<float *>(partial + scratchPart(weights.get_size())) : dbias;
      runPart(dy, px, to, toBias, pad(scratch));
      if (part) {
        add(to, weights.get_size(), sum);
        add(toBias, bias.get_size(), dbias);
      }
      dy += y.get_size(), px += x.get_size();
    }
    if (reorder)
      reorder.execute({{DNNL_ARG_FROM, &weights, scratch}, {DNNL_ARG_TO, &plainWeights, dw}}, pad(scratch));
  }

  void runPart(const void *dy, const void *px, float *dw, float *dbias, char *scratchpad) const {
    if (bias.is_zero())
      convolution.execute({{DNNL_ARG_DIFF_DST, &y, dy}, {DNNL_ARG_SRC, &x, px}, {DNNL_ARG_DIFF_WEIGHTS, &weights, dw}},
                          scratchpad);
    else
      convolution.execute({{DNNL_ARG_DIFF_DST, &y, dy},
                           {DNNL_ARG_SRC, &x, px},
                           {DNNL_ARG_DIFF_WEIGHTS, &weights, dw},
                           {DNNL_ARG_DIFF_BIAS, &bias, dbias}},
                          scratchpad);
  }

  static void add(const float *from, size_t bytes, float *to) {
    parallelRanges(static_cast<int64_t>(bytes / sizeof(float)), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        to[i] += from[i];
    });
  }

  ConvPass pass;
  Shape weightShape;
  bool rotated;
  int64_t parts;
  memory::desc x, y, plainWeights, weights, bias; ///< x and y of one part
  Primitive convolution, reorder;
  size_t reordered;    ///< bytes of weights as the primitive wants them; 0: they are row-major
  size_t rotatedBytes; ///< of rotated weights, in front of the reorder's scratchpad
  size_t added;        ///< of the gradient of a part
};

ConvGeometry partOf(ConvGeometry g, int64_t parts) {
  g.x.dims[0] /= parts, g.y.dims[0] /= parts;
  return g;
}

} // namespace

bool rotatesWeights(const ConvGeometry &g) {
  if (g.pass != ConvPass::BackwardData || g.x.rank != 4 || isHalf(g.type))
    return false;
  for (int i = 0; i < 2; ++i)
    if (g.window.strides[i] != 1 ||
        std::max(g.window.pads[i], g.window.pads[2 + i]) > g.window.dilations[i] * (g.w[2 + i] - 1))
      return false; // a window that sees nothing but padding would need negative pads
  return g.groups == 1 && g.w[2] * g.w[3] > 1 && g.x[1] >= 256 && g.y[3] > 16;
}

/// What oneDNN 2.6.3 sums up wrongly: with AMX the weight gradient of dilated windows where channels do not fill whole
/// vectors.
static bool isWrong(const ConvGeometry &g, const std::string &name) {
  const int64_t dilations = *std::max_element(g.window.dilations, g.window.dilations + g.x.rank - 2);
  return g.pass == ConvPass::BackwardWeight && dilations > 1 && g.w[1] % 16 != 0 && name == "jit:avx512_core_amx_bf16";
}

static Geometry describe(const ConvGeometry &geometry, bool bias, bool rotated, int64_t parts) {
  const ConvGeometry part = partOf(geometry, parts);
  return rotated ? Geometry::rotated(part) : Geometry(part, bias && geometry.pass != ConvPass::BackwardData);
}

std::vector<DnnlConvOffer> dnnlConvOffers(const ConvGeometry &geometry, bool bias, bool rotated, int64_t parts) {
  std::vector<DnnlConvOffer> offers;
  const Geometry description = describe(geometry, bias, rotated, parts);
  try {
    description.each([&](const Description &d) {
      if (!isWrong(geometry, d.name))
        offers.push_back({d.name, DnnlConv(geometry, description, d, rotated, parts).workspaceBytes()});
      return false;
    });
  } catch (const dnnl::error &) { // it has none at all
  }
  return offers;
}

std::unique_ptr<ConvEngine> makeDnnlConv(const ConvGeometry &geometry, bool bias, const std::string &name, bool rotated,
                                         int64_t parts) {
  std::unique_ptr<ConvEngine> engine;
  const Geometry description = describe(geometry, bias, rotated, parts);
  description.each([&](const Description &d) {
    if (d.name == name && !isWrong(geometry, name))
      engine = std::make_unique<DnnlConv>(geometry, description, d, rotated, parts);
    return engine != nullptr;
  });
  return engine;
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Scratch: [the first operand | the second one | the result, or gradients of a part | the engine's own].
#include "runtime/host/WideConv.h"

#include "runtime/host/Dnnl.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"

namespace sluice {

namespace {

constexpr int64_t grain = 1 << 14; ///< elements of a task

/// Floats of the three operands of a part, and of the bias's gradient.
struct Sizes {
  int64_t first, second, result, bias;
  Sizes(const ConvGeometry &g, bool withBias, int64_t parts) {
    const int64_t x = g.x.elements() / parts, y = g.y.elements() / parts, w = g.w.elements();
    const bool forward = g.pass == ConvPass::Forward, weight = g.pass == ConvPass::BackwardWeight;
    first = forward ? x : y;
    second = weight ? x : w;
    result = forward ? y : weight ? (parts > 1 ? w : 0) : x; // of one part dw itself is written
    bias = weight && withBias && parts > 1 ? g.w[0] : 0;
  }
};

size_t floatBytes(int64_t count) { return scratchPart(sizeof(float) * static_cast<size_t>(count)); }

void widen(const BFloat16 *from, int64_t count, float *to) {
  parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[i] = widened(from[i]);
  });
}
void narrow(const float *from, int64_t count, BFloat16 *to) {
  parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      store(to + i, from[i]);
  });
}
void add(const float *from, int64_t count, float *to) {
  parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[i] += from[i];
  });
}

class WideConv : public ConvEngine {
public:
  WideConv(const ConvGeometry &g, bool bias, int64_t parts, std::unique_ptr<ConvEngine> floats)
      : g(g), sizes(g, bias, parts), parts(parts), floats(std::move(floats)), own(wideConvBytes(g, bias, parts)) {}

  size_t workspaceBytes() const override { return own + floats->workspaceBytes(); }

  void run(const void *first, const void *second, void *result, float *bias, char *scratch) const override {
    auto *wideFirst = reinterpret_cast<float *>(scratch);
    auto *wideSecond = reinterpret_cast<float *>(scratch + floatBytes(sizes.first));
    auto *wideResult = reinterpret_cast<float *>(scratch + floatBytes(sizes.first) + floatBytes(sizes.second));
    const auto *from = static_cast<const BFloat16 *>(first), *other = static_cast<const BFloat16 *>(second);
    const bool weight = g.pass == ConvPass::BackwardWeight;
    if (!weight)
      widenWeights(other, wideSecond);
    for (int64_t part = 0; part < parts; ++part) {
      widen(from + part * sizes.first, sizes.first, wideFirst);
      if (weight) {
        widen(other + part * sizes.second, sizes.second, wideSecond);
        addGradient(part, wideFirst, wideSecond, static_cast<float *>(result), bias, wideResult, scratch + own);
        continue;
      }
      floats->run(wideFirst, wideSecond, wideResult, bias, scratch + own);
      narrow(wideResult, sizes.result, static_cast<BFloat16 *>(result) + part * sizes.result);
    }
  }

private:
  /// [O,kh,kw,I] becomes [O,I,kh,kw].
  void widenWeights(const BFloat16 *from, float *to) const {
    const int64_t ins = g.w[1], taps = g.w.elements() / g.w[0] / ins, filter = ins * taps;
    parallelRanges(g.w[0], std::max<int64_t>(1, grain / filter), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o)
        for (int64_t tap = 0; tap < taps; ++tap)
          for (int64_t i = 0; i < ins; ++i)
            to[o * filter + i * taps + tap] = widened(from[o * filter + tap * ins + i]);
    });
  }

  void addGradient(int64_t part, const float *dy, const float *x, float *dw, float *dbias, float *partial,
                   char *scratch) const {
    float *partialBias = dbias ? partial + floatBytes(sizes.result) / sizeof(float) : nullptr;
    if (part == 0)
      return floats->run(dy, x, dw, dbias, scratch);
    floats->run(dy, x, partial, partialBias, scratch);
    add(partial, sizes.result, dw);
    if (dbias)
      add(partialBias, sizes.bias, dbias);
  }

  ConvGeometry g;
  Sizes sizes;
  int64_t parts;
  std::unique_ptr<ConvEngine> floats;
  size_t own;
};

} // namespace

ConvGeometry wideGeometry(const ConvGeometry &geometry, int64_t parts) {
  ConvGeometry part = geometry;
  part.x.dims[0] /= parts, part.y.dims[0] /= parts;
  part.type = DataType::F32;
  return part;
}

size_t wideConvBytes(const ConvGeometry &geometry, bool bias, int64_t parts) {
  const Sizes sizes(geometry, bias, parts);
  return floatBytes(sizes.first) + floatBytes(sizes.second) + floatBytes(sizes.result) + floatBytes(sizes.bias);
}

std::unique_ptr<ConvEngine> makeWideConv(const ConvGeometry &geometry, bool bias, int64_t parts,
                                         std::unique_ptr<ConvEngine> floats) {
  return std::make_unique<WideConv>(geometry, bias, parts, std::move(floats));
}

} // namespace sluice

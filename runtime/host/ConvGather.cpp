// SPDX-License-Identifier: Apache-2.0
// Index arithmetic of our own convolutions, see ConvGather.h.
#include "runtime/host/ConvGather.h"

#include <algorithm>
#include <map>

namespace sluice {

static std::vector<ConvPhase> forwardPhases(const ConvGeometry &g, int axis) {
  ConvPhase phase;
  phase.count = g.y[2 + axis];
  phase.advance = g.window.strides[axis];
  for (int64_t k = 0; k < g.w[2 + axis]; ++k)
    phase.taps.push_back({k, tapPosition(g.window, axis, 0, k)});
  return {phase};
}

/// Target position t sees window o through tap k where o * stride = t + pad - k * dilation. By the rest of that: no
/// more phases than taps, however large the stride.
static std::vector<ConvPhase> backwardPhases(const ConvGeometry &g, int axis) {
  const int64_t stride = g.window.strides[axis], pad = g.window.pads[axis], dilation = g.window.dilations[axis];
  std::map<int64_t, ConvPhase> byRest;
  for (int64_t k = g.w[2 + axis] - 1; k >= 0; --k) { // from left to right in the source
    const int64_t rest = k * dilation % stride, first = ((rest - pad) % stride + stride) % stride;
    if (first >= g.x[2 + axis])
      continue;
    ConvPhase &phase = byRest[rest];
    phase.step = stride;
    phase.first = first;
    phase.count = (g.x[2 + axis] - first + stride - 1) / stride;
    phase.taps.push_back({k, (first + pad - k * dilation) / stride});
  }
  std::vector<ConvPhase> phases;
  for (auto &[rest, phase] : byRest)
    phases.push_back(std::move(phase));
  return phases;
}

std::vector<ConvPhase> convPhases(const ConvGeometry &g, int axis) {
  return g.pass == ConvPass::BackwardData ? backwardPhases(g, axis) : forwardPhases(g, axis);
}

std::vector<ConvGather> convGathers(const ConvGeometry &g, int64_t groups) {
  const bool backward = g.pass == ConvPass::BackwardData;
  const Shape &source = backward ? g.y : g.x, &target = backward ? g.x : g.y;
  std::vector<ConvGather> gathers;
  for (const ConvPhase &deep : convPhases(g, 0))
    for (const ConvPhase &vertical : convPhases(g, 1))
      for (const ConvPhase &horizontal : convPhases(g, 2))
        gathers.push_back({deep, vertical, horizontal, source, target, source[1] / groups});
  return gathers;
}

bool ConvGather::isPlain() const {
  bool plain = taps() == 1 && everyPixel();
  for (const ConvPhase *phase : {&deep, &vertical, &horizontal})
    plain = plain && phase->advance == 1 && phase->taps[0].base == 0;
  return plain && source[2] == target[2] && source[3] == target[3] && source[4] == target[4];
}

bool ConvGather::joinsTaps() const {
  for (size_t t = 1; t < horizontal.taps.size(); ++t)
    if (horizontal.taps[t].base != horizontal.taps[t - 1].base + 1)
      return false;
  return channels == source[1];
}

void ConvGather::copy(const float *from, int64_t first, int64_t rows, int64_t begin, int64_t end, float *to,
                      int64_t rowStep) const {
  // A run of the depth that lies together in the source: one tap, or all taps of a line.
  const auto across = static_cast<int64_t>(horizontal.taps.size());
  const int64_t tapsEach = joinsTaps() ? across : 1, length = tapsEach * channels;
  for (int64_t row = 0; row < rows; ++row, to += rowStep) {
    const Pixel p = pixel(first + row);
    float *next = to;
    for (int64_t k = begin; k < end;) {
      const int64_t tap = k / length * tapsEach, within = k % length, stop = std::min(length, within + end - k);
      const Pixel at = sourcePixel(p, tap);
      // Of the run's pixels [0, tapsEach) those in [low, high) lie in the source.
      const bool outside = at.z < 0 || at.z >= source[2] || at.y < 0 || at.y >= source[3];
      const int64_t low = outside ? tapsEach : std::clamp<int64_t>(-at.x, 0, tapsEach);
      const int64_t high = outside ? tapsEach : std::clamp<int64_t>(source[4] - at.x, low, tapsEach);
      const int64_t begins = std::clamp(low * channels, within, stop), ends = std::clamp(high * channels, begins, stop);
      const float *line = from + offsetOf(source, at);
      next = std::fill_n(next, begins - within, 0.0f);
      if (ends > begins)
        next = std::copy_n(line + begins, ends - begins, next);
      next = std::fill_n(next, stop - ends, 0.0f);
      k += stop - within;
    }
  }
}

} // namespace sluice

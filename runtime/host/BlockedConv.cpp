// SPDX-License-Identifier: Apache-2.0
// Forward pass and data gradient, see BlockedConv.h. A block of gathered pixels meets all panels of weights while it is
// in the cache. Scratch: [packed weights | one block for each thread].
#include "runtime/host/BlockedConv.h"

#include "runtime/host/BlockedConvBlocks.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Tile.h"

#include <algorithm>
#include <cassert>

namespace sluice {

using namespace blocked;

static int64_t mergedGroups(const ConvGeometry &g) {
  const int64_t channels = std::max(g.w[1], g.w[0] / g.groups);
  int64_t merged = 1;
  while (2 * merged * channels <= tile::form().lanes && g.groups % (2 * merged) == 0)
    merged *= 2;
  return merged;
}

BlockedConv::BlockedConv(const ConvGeometry &geometry, int64_t parts)
    : g(geometry.asVolume()), parts(parts), merged(mergedGroups(g)), groups(g.groups / merged),
      gathers(convGathers(g, groups)), results((g.pass == ConvPass::BackwardData ? g.x[1] : g.y[1]) / groups),
      grain(g.pass == ConvPass::BackwardWeight ? tile::form().rows : tile::panelColumns(results)) {
  const int64_t source = (g.pass == ConvPass::BackwardData ? g.y : g.x).elements();
  int64_t depth = 1;
  for (const ConvGather &gather : gathers)
    depth = std::max(depth, std::min(depthAtOnce, gather.depth()));
  rows = g.pass == ConvPass::BackwardWeight ? rowsWithin(source, columnsAtOnce(gathers[0].depth()), 16, mostPixels)
                                            : rowsWithin(source, depth, tile::form().rows, mostRows);
}

int64_t BlockedConv::mostParts() const {
  const bool nothingPacked = g.pass == ConvPass::BackwardWeight && window() * merged == 1;
  return depthwise() || nothingPacked ? 1 : (results + grain - 1) / grain;
}

int64_t BlockedConv::packed() const {
  if (depthwise())
    return g.pass == ConvPass::BackwardWeight ? depthwiseChunks * g.w.elements() : g.w.elements();
  int64_t depth = 0, channels = 0;
  for (const ConvGather &gather : gathers)
    depth += gather.depth();
  eachPart([&](const Part &part) { channels = std::max(channels, part.count); });
  if (g.pass == ConvPass::BackwardWeight) // in the order (output, tap, input); that of dw where there is one tap
    return mostParts() == 1 && window() * merged == 1 ? 0 : channels * depth;
  return depth * ((channels + grain - 1) / grain * grain);
}

int64_t BlockedConv::gathered() const {
  if (depthwise())
    return 0;
  if (g.pass == ConvPass::BackwardWeight)
    return rows * columnsAtOnce(gathers[0].depth());
  int64_t most = 0;
  for (const ConvGather &gather : gathers)
    if (!gather.isPlain())
      most = std::max(most, rows * std::min(depthAtOnce, gather.depth()));
  return most;
}

size_t BlockedConv::workspaceBytes() const {
  return sizeof(float) * static_cast<size_t>(rounded(packed()) + threads() * rounded(gathered()));
}

/// Panels of [depth][columns].
void BlockedConv::packWeights(const Part &part, const ConvGather &gather, const float *w, float *to) const {
  const bool backward = g.pass == ConvPass::BackwardData;
  const int64_t width = tile::panelColumns(results), outsEach = g.w[0] / g.groups, outs = g.w[0] / groups * part.group;
  parallelFor((part.count + width - 1) / width * gather.taps(), [&](int64_t task) {
    const int64_t panel = task / gather.taps(), tap = task % gather.taps(), first = part.first + panel * width;
    const int64_t position = gather.position(tap, g.w);
    const int64_t columns = std::min(width, part.first + part.count - first);
    float *rows = to + (panel * gather.depth() + tap * gather.channels) * width;
    for (int64_t k = 0; k < gather.channels; ++k, rows += width) {
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t out = backward ? k : first + i, in = backward ? first + i : k;
        const bool together = out / outsEach == in / g.w[1];
        rows[i] = together ? w[((outs + out) * g.w[1] + in % g.w[1]) * window() + position] : 0;
      }
      std::fill(rows + columns, rows + width, 0.0f);
    }
  });
}

void BlockedConv::productBlock(const Part &part, const ConvGather &gather, int64_t index, const float *source,
                               const float *weights, const float *bias, float *target, float *work) const {
  const Rows block = rowsOf(gather, rows, index);
  const int64_t depth = gather.depth(), width = tile::panelColumns(results), across = gather.source[1];
  source += part.group * gather.channels;
  const int64_t channel = part.group * results + part.first, step = gather.target[1] * gather.horizontal.step;
  float *to = target + gather.targetOffset(gather.pixel(block.first)) + channel;
  for (int64_t begin = 0; begin < depth; begin += depthAtOnce) {
    const int64_t end = std::min(depth, begin + depthAtOnce);
    tile::Factors f{work, end - begin, 1, nullptr, width, end - begin};
    if (gather.isPlain()) {
      f.a = source + block.first * across + begin;
      f.rowStep = across;
    } else {
      gather.copy(source, block.first, block.count, begin, end, work, end - begin);
    }
    for (int64_t first = 0; first < part.count; first += width) {
      f.b = weights + first * depth + begin * width;
      tile::multiply(f, block.count, to + first, step, std::min(width, part.count - first), width > tile::lanes,
                     begin > 0);
    }
  }
  for (int64_t row = 0; row < block.count && bias; ++row)
    for (int64_t i = 0; i < part.count; ++i)
      to[row * step + i] += bias[channel + i];
}

void BlockedConv::product(const float *source, const float *w, const float *bias, float *target, char *scratch) const {
  assert(tile::form() == tile::compiled);
  auto *packedWeights = reinterpret_cast<float *>(scratch);
  float *work = packedWeights + rounded(packed());
  const Shape &image = g.pass == ConvPass::BackwardData ? g.x : g.y;
  int64_t pixels = 0;
  for (const ConvGather &gather : gathers)
    pixels += gather.pixels();
  if (pixels * image[1] < image.elements()) // the others see no tap
    parallelRanges(image.elements(), int64_t(1) << 16,
                   [=](int64_t begin, int64_t end) { std::fill(target + begin, target + end, 0.0f); });
  if (depthwise())
    return depthwiseProduct(source, w, bias, target, packedWeights);
  eachPart([&](const Part &part) {
    float *weights = packedWeights;
    for (const ConvGather &gather : gathers) {
      packWeights(part, gather, w, weights);
      const int64_t count = blocks(gather, rows), tasks = std::min<int64_t>(threads(), count);
      parallelFor(tasks, [&](int64_t task) {
        for (int64_t block = task; block < count; block += tasks)
          productBlock(part, gather, block, source, weights, bias, target, work + task * rounded(gathered()));
      });
      weights += gather.depth() * ((part.count + grain - 1) / grain * grain);
    }
  });
}

void BlockedConv::forward(const float *x, const float *w, const float *bias, float *y, char *scratch) const {
  product(x, w, bias, y, scratch);
}

void BlockedConv::backwardData(const float *dy, const float *w, float *dx, char *scratch) const {
  product(dy, w, nullptr, dx, scratch);
}

/// Weights as [tap][channel]; a pixel's channels are summed in a register block at a time.
void BlockedConv::depthwiseProduct(const float *source, const float *w, const float *bias, float *target,
                                   float *weights) const {
  const int64_t channels = g.x[1];
  for (int64_t k = 0; k < window(); ++k)
    for (int64_t c = 0; c < channels; ++c)
      weights[k * channels + c] = w[c * window() + k];
  auto pixel = [&](const ConvGather &gather, const Pixel &p) {
    float *to = target + gather.targetOffset(p);
    for (int64_t first = 0; first < channels; first += channelsAtOnce) {
      const int64_t count = std::min(channelsAtOnce, channels - first);
      float sums[channelsAtOnce] = {};
      for (int64_t tap = 0; tap < gather.taps(); ++tap) {
        const int64_t offset = gather.sourceOffset(p, tap);
        if (offset < 0)
          continue;
        const float *from = source + offset + first;
        const float *factors = weights + first + channels * gather.position(tap, g.w);
        for (int64_t c = 0; c < count; ++c)
          sums[c] += from[c] * factors[c];
      }
      for (int64_t c = 0; c < count; ++c)
        to[first + c] = sums[c] + (bias ? bias[first + c] : 0);
    }
  };
  for (const ConvGather &gather : gathers)
    parallelRanges(gather.pixels(), mostRows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        pixel(gather, gather.pixel(i));
    });
}

} // namespace sluice

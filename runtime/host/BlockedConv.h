// SPDX-License-Identifier: Apache-2.0
// Convolutions of our own, for geometries in which oneDNN's best implementation needs more workspace than is granted,
// is much slower, or does not pass its trial: products of gathered pixels with packed weights (K. Goto, R. van de
// Geijn, Anatomy of High-Performance Matrix Multiplication, TOMS 2008), for whole groups and strides; depthwise ones
// channel by channel. Every element of a result is one sum in a fixed order, so that bits do not depend on the number
// of threads.
#pragma once

#include "runtime/host/ConvGather.h"

#include <algorithm>
#include <vector>

namespace sluice {

class BlockedConv {
public:
  /// The result channels of each group are made in `parts`, one after the other, which gather the same pixels again.
  explicit BlockedConv(const ConvGeometry &geometry, int64_t parts = 1);
  /// Most parts that make the workspace smaller.
  int64_t mostParts() const;

  /// Of one group and part, packed weights or their gradient in packed order, and blocks of gathered pixels for each of
  /// threads() threads.
  size_t workspaceBytes() const;

  /// x, y and their gradients in NHWC, w and dw row-major OIHW or OIDHW; `bias` may be null. Synchronous, on the
  /// calling thread and those of parallelFor. `scratch` has workspaceBytes(), at a multiple of 64.
  void forward(const float *x, const float *w, const float *bias, float *y, char *scratch) const;
  void backwardData(const float *dy, const float *w, float *dx, char *scratch) const;
  /// `dbias` may be null.
  void backwardWeight(const float *dy, const float *x, float *dw, float *dbias, char *scratch) const;

private:
  bool depthwise() const { return g.groups > 1 && g.w[1] == 1 && g.w[0] == g.groups; }
  int64_t gathered() const;                                   ///< floats of one thread's block
  int64_t packed() const;                                     ///< floats of packed weights
  int64_t window() const { return g.w[2] * g.w[3] * g.w[4]; } ///< positions
  struct Part;                                                ///< of one group's result channels
  template <typename Take> void eachPart(Take &&take) const;
  void packWeights(const Part &part, const ConvGather &gather, const float *w, float *to) const;
  void product(const float *source, const float *w, const float *bias, float *target, char *scratch) const;
  void productBlock(const Part &part, const ConvGather &gather, int64_t index, const float *source,
                    const float *weights, const float *bias, float *target, float *work) const;
  void weightPart(const Part &part, const float *dy, const float *x, float *result, float *work) const;
  void depthwiseProduct(const float *source, const float *w, const float *bias, float *target, float *weights) const;
  void depthwiseWeights(const float *dy, const float *x, float *dw, float *partial) const;

  ConvGeometry g; ///< over volumes
  int64_t parts;
  int64_t merged; ///< groups of few channels that are computed as one, with zeros between them: whole vectors instead
  int64_t groups; ///< what remains
  std::vector<ConvGather> gathers;
  int64_t results; ///< result channels of one such group: of x in the data gradient, else of y
  int64_t grain;   ///< channels that stay together: a panel, or a tile's rows
  int64_t rows;    ///< gathered at once by a thread
};

struct BlockedConv::Part {
  int64_t group, first, count;
};

/// Calls `take` for the parts of all groups in order.
template <typename Take> void BlockedConv::eachPart(Take &&take) const {
  const int64_t grains = (results + grain - 1) / grain, each = (grains + parts - 1) / parts * grain;
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t first = 0; first < results; first += each)
      take(Part{group, first, std::min(each, results - first)});
}

} // namespace sluice

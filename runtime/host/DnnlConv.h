// SPDX-License-Identifier: Apache-2.0
// Convolutions through oneDNN, of floats, or of bf16 where it has them. Activations are NHWC; oneDNN chooses the
// weights' format, so each call reorders them inside scratch: [reordered weights | oneDNN's scratchpad]. Of a batch in
// parts the weight gradients are added up: [the sum, where dw itself cannot hold it | a part's gradient | scratchpad].
//
// oneDNN 2.6's backward-data kernel drops to half its rate on wide rows of many channels (measured on AVX-512: 28
// pixels, 256 channels: 119 instead of 235 GFLOP/s). There, with stride 1, the forward kernel runs on rotated weights
// instead ("rotated NAME"): channels exchanged, window rotated by half a turn.
#pragma once

#include "runtime/host/ConvEngine.h"

namespace sluice {

/// What oneDNN offers for a geometry, best first in its own order; `form` is "" or "rotated ".
struct DnnlConvOffer {
  std::string name;
  size_t workspace;
};
std::vector<DnnlConvOffer> dnnlConvOffers(const ConvGeometry &geometry, bool bias, bool rotated, int64_t parts);

/// Whether the data gradient may, and should, run as a forward pass on rotated weights.
bool rotatesWeights(const ConvGeometry &geometry);

/// `name` without its form; null where oneDNN does not offer it.
std::unique_ptr<ConvEngine> makeDnnlConv(const ConvGeometry &geometry, bool bias, const std::string &name, bool rotated,
                                         int64_t parts);

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions of bf16 whose window is 1x1, as one product of oneDNN's: dx = dy w, dw = dy^T x. With AMX
// that takes 0.4 to 0.9 of the time of its convolutions, which have no kernels of their own for these gradients there
// (2.6.3). With strides the pixels of x that windows see are gathered before, or those of dx scattered after, in
// scratch: [these pixels | oneDNN's scratchpad].
#pragma once

#include "runtime/host/ConvEngine.h"

namespace sluice {

/// What it would be called after its form, and its workspace; `name` is empty where the geometry is none of these, or
/// oneDNN has no product for it that uses AMX.
struct ProductConvOffer {
  std::string name;
  size_t workspace;
};
ProductConvOffer productConvOffer(const ConvGeometry &geometry, bool bias);

/// `name` without its form; null where it is not on offer.
std::unique_ptr<ConvEngine> makeProductConv(const ConvGeometry &geometry, bool bias, const std::string &name);

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Convolutions of bf16 by engines of floats, where oneDNN has none or slow ones ("wide NAME"): a part of the batch
// becomes floats in scratch, is convolved there, and its result is rounded. Weights become row-major floats once a
// call.
#pragma once

#include "runtime/host/ConvEngine.h"

namespace sluice {

/// The convolution of one part of the batch in floats.
ConvGeometry wideGeometry(const ConvGeometry &geometry, int64_t parts);

/// Bytes that such an engine needs beside those of its engine of floats.
size_t wideConvBytes(const ConvGeometry &geometry, bool bias, int64_t parts);

/// `floats` is an engine of wideGeometry(). Gradients of weights are added up over the parts in order.
std::unique_ptr<ConvEngine> makeWideConv(const ConvGeometry &geometry, bool bias, int64_t parts,
                                         std::unique_ptr<ConvEngine> floats);

} // namespace sluice

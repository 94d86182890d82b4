// SPDX-License-Identifier: Apache-2.0
// Concatenation: one launch for all operands, where Slab::insert would be one for each.
#pragma once

#include "runtime/Stream.h"

namespace sluice {

/// y = xs side by side along `axis`. Same layout and type, any but Bit, in all of them. Throws std::invalid_argument
/// naming `node` where they are not y's slabs.
void join(Stream &, const Tensor &y, TensorList xs, int axis, Node node);

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Speed of products by weights in fewer bits, on the host.
#pragma once

#include "runtime/Tensor.h"

namespace sluice {

/// Prints what matrix products of so many texts of 512 tokens, and of one token, take by weights of `type`, and how
/// many times as long by the forms of --frozen: medians of alternating runs.
void benchProducts(int64_t batch, DataType type);

} // namespace sluice

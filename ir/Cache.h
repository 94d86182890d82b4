// SPDX-License-Identifier: Apache-2.0
// The ops of caches (CacheOps.td), for those who make decode steps, and how variables say that they are caches.
#pragma once

#include "ir/Train.h"

#define GET_OP_CLASSES
#include "ir/CacheOps.h.inc"

namespace sluice::train {

/// Of a variable with role gradient, whose content means nothing to a later run: evaluations leave in it what decode
/// steps read.
constexpr const char *cacheAttribute = "train.cache";

} // namespace sluice::train

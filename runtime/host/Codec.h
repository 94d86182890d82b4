// SPDX-License-Identifier: Apache-2.0
// The codecs as functions on memory, split into tasks on our own threads. They allocate nothing large.
#pragma once

#include "runtime/Codec.h"

namespace sluice {

/// All throw ValueNotStorable with `node` in the message for values that the codec refuses.
void packHalf(const float *x, int64_t elements, void *packed, const char *node);
void unpackHalf(const void *packed, int64_t elements, float *x);

/// `bytes`: of the packed form. Without libzfp both throw std::runtime_error.
void packZfp(const float *x, ZfpGrid grid, int rate, void *packed, const char *node);
void unpackZfp(const void *packed, ZfpGrid grid, int rate, float *x);

/// Returns the bytes of the slot that are in use.
int64_t packZeroValues(const float *x, int64_t elements, void *slot);
/// Throws std::runtime_error when the slot's content cannot be what packZeroValues() wrote.
void unpackZeroValues(const void *slot, int64_t elements, float *x, const char *node);

} // namespace sluice

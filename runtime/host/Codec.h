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

/// Bytes that packing takes, at most packedBytes(); `offsets`, zvcParts(elements) + 1 of them, is where the parts lie.
int64_t measureZeroValues(const float *x, int64_t elements, int64_t *offsets);
/// `offsets` are measureZeroValues()'s, which may have lain at the beginning of `slot` already.
void packZeroValues(const float *x, int64_t elements, const int64_t *offsets, void *slot);
/// `bytes`: of the slot. Throws std::runtime_error when its content cannot be what packZeroValues() wrote.
void unpackZeroValues(const void *slot, size_t bytes, int64_t elements, float *x, const char *node);

} // namespace sluice

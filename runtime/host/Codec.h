// SPDX-License-Identifier: Apache-2.0
// The codecs as functions on memory, split into tasks on our own threads. They allocate nothing large.
#pragma once

#include "runtime/Codec.h"

namespace sluice {

/// Those that pack throw ValueNotStorable with `node` in the message for values that the codec refuses. All are
/// synchronous; packed forms are as long as formBytes() says. T: float, or BFloat16, which is packed as the floats that
/// it is, and rounded where it comes back.
void packHalf(const float *x, int64_t elements, void *packed, const char *node);
void unpackHalf(const void *packed, int64_t elements, float *x);

/// `rate`: bits a value. A runtime without libzfp throws std::runtime_error.
template <typename T> void packZfp(const T *x, ZfpGrid grid, int rate, void *packed, const char *node);
template <typename T> void unpackZfp(const void *packed, ZfpGrid grid, int rate, T *x);

/// Every other codec of floats, with its mask if it has one. `like`: the shape of what `x` points to, and its layout,
/// which zfp alone asks for.
template <typename T> void packForm(Codec codec, const T *x, const Tensor &like, void *packed, const char *node);
template <typename T> void unpackForm(Codec codec, const void *packed, T *x, const Tensor &like);

/// Into a slot of packedBytes(), in one pass. Returns the bytes that are in use, those of the table included.
template <typename T> int64_t packZeroValues(const T *x, int64_t elements, void *slot);
/// The parts one after the other, as far as `room` bytes hold them. Returns the bytes that all of them take with the
/// table; when these are more than `room`, what was written is of no use.
template <typename T> int64_t packZeroValuesDensely(const T *x, int64_t elements, void *to, int64_t room);
/// `bytes`: of the slot, or of what packZeroValuesDensely() wrote. Throws std::runtime_error when its content cannot be
/// what either wrote.
template <typename T>
void unpackZeroValues(const void *slot, size_t bytes, int64_t elements, T *x, const char *node, bool densely = false);

} // namespace sluice

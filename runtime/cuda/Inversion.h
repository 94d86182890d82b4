// SPDX-License-Identifier: Apache-2.0
// Inversions that lost too much: kernels cannot throw, so they leave a note in device memory.
#pragma once

namespace sluice {

/// Throws MemoryNotAvailable when more channels were guarded than the plan has slots for, and ValueNotStorable when a
/// difference lost its digits, since the last call. No stream may be running. Reads the note only in programs that
/// invert.
void checkInversions();

} // namespace sluice

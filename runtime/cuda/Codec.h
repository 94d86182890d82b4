// SPDX-License-Identifier: Apache-2.0
// Values that a codec refused: kernels cannot throw, so they leave a note in device memory.
#pragma once

namespace sluice {

/// Throws ValueNotStorable when a kernel has met such a value since the last call. No stream may be running. Reads the
/// note only in programs that pack.
void checkRefused();

} // namespace sluice

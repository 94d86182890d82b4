// SPDX-License-Identifier: Apache-2.0
// Ids that name nothing: kernels cannot throw, so they leave a note in device memory.
#pragma once

namespace sluice {

/// Throws wrongId() when a kernel has noted one since the last call. No stream may be running. Reads the note only in
/// programs that asked for one.
void checkIds();

} // namespace sluice

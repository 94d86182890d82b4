// SPDX-License-Identifier: Apache-2.0
// What kernels of both runtimes share.
#include "runtime/Kernels.h"

namespace sluice {

void Kernel::checkWorkspace(const Tensor &slot) const {
  if (slot.bytes() < workspace)
    throw MemoryNotAvailable(std::string("'") + node + "' needs " + std::to_string(workspace) +
                             " bytes of workspace on this machine, " + "but the plan reserved " +
                             std::to_string(slot.bytes()));
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// What kernels of both runtimes share.
#include "runtime/kernels/UpdateRules.h"

namespace sluice {

void Kernel::checkWorkspace(const Tensor &slot) const {
  if (slot.bytes() < workspace)
    throw MemoryNotAvailable(std::string("'") + node + "' needs " + std::to_string(workspace) +
                             " bytes of workspace on this machine, " + "but the plan reserved " +
                             std::to_string(slot.bytes()));
}

void checkUpdate(const char *node, const Shape &w, std::initializer_list<Tensor> others) {
  for (const Tensor &other : others)
    if (other.present && other.shape.elements() != w.elements())
      throw std::invalid_argument(std::string("update of '") + node + "': " + std::to_string(w.elements()) +
                                  " weights and " + std::to_string(other.shape.elements()) +
                                  " elements of gradient or state");
}

void checkStatistics(const char *node, const Shape &x) {
  if (x.rank < 2)
    throw std::invalid_argument(std::string("batch statistics of '") + node + "' over rank " + std::to_string(x.rank) +
                                ", expected at least 2");
}

} // namespace sluice

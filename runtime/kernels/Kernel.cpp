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

Share updatedShare(const Session &session, const char *node, const Shape &w, const Tensor &dw,
                   std::initializer_list<Tensor> states) {
  checkUpdate(node, w, {dw});
  if (!session.sharesStates) {
    checkUpdate(node, w, states);
    return {0, w.elements()};
  }
  const Share share = shareOf(w.elements(), session.state.rank, session.state.ranks);
  for (const Tensor &state : states)
    if (state.present && state.shape.elements() < share.count)
      throw std::invalid_argument(std::string("update of '") + node + "': states of " +
                                  std::to_string(state.shape.elements()) + " elements for a share of " +
                                  std::to_string(share.count));
  return share;
}

void checkStatistics(const char *node, const Shape &x) {
  if (x.rank < 2)
    throw std::invalid_argument(std::string("batch statistics of '") + node + "' over rank " + std::to_string(x.rank) +
                                ", expected at least 2");
}

} // namespace sluice

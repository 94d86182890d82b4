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

UpdatedShare updatedShare(const Session &session, const char *node, const Shape &w, const Tensor &dw,
                          std::initializer_list<Tensor> states) {
  if (!session.sharesStates) {
    checkUpdate(node, w, {dw});
    checkUpdate(node, w, states);
    return {{0, w.elements()}, 0};
  }
  // Of w that is as long as its states each rank has its share alone; states of a whole one are shorter.
  const bool isShare = w.elements() > 1 && states.size() > 0 && states.begin()->present &&
                       states.begin()->shape.elements() == w.elements();
  const Share share = isShare ? Share{0, w.elements()} : shareOf(w.elements(), session.state.rank, session.state.ranks);
  const bool isWhole = dw.shape.elements() == w.elements();
  const auto check = [&](const Tensor &tensor, const char *what) {
    if (tensor.present && tensor.shape.elements() < share.count)
      throw std::invalid_argument(std::string("update of '") + node + "': " + what + " of " +
                                  std::to_string(tensor.shape.elements()) + " elements for a share of " +
                                  std::to_string(share.count));
  };
  check(dw, "a gradient");
  for (const Tensor &state : states)
    check(state, "states");
  return {share, isWhole ? share.first : 0};
}

void checkStatistics(const char *node, const Shape &x) {
  if (x.rank < 2)
    throw std::invalid_argument(std::string("batch statistics of '") + node + "' over rank " + std::to_string(x.rank) +
                                ", expected at least 2");
}

} // namespace sluice

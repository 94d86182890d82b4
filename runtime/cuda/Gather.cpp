// SPDX-License-Identifier: Apache-2.0
// When launches of one kind are kept back, and when they start.
#include "runtime/cuda/Gather.h"

#include "runtime/Stream.h"

#include <utility>

namespace sluice {

void gather(Stream &stream) { gatherState(stream.session).on = true; }

void launchKept(Stream &stream) {
  if (!gathers(stream))
    return;
  if (std::unique_ptr<KeptLaunch> kept = std::move(gatherState(stream.session).kept))
    kept->launch(stream);
}

void launchGathered(Stream &stream) {
  launchKept(stream);
  gatherState(stream.session).on = false;
}

} // namespace sluice

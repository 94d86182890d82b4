// SPDX-License-Identifier: Apache-2.0
// Which engines of a vendor's library run the convolutions. A library ranks them by heuristics; a profile may hold
// which ones were fastest (--profile-out times them, sluicec --profile writes them into the program), so that results
// depend on that file and never on the moment. Cuda; the host runtime chooses its algorithms when compiling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

/// The engine of every convolution that is described by these words (ConvTask::text()).
struct EngineChoice {
  const char *convolution, *engine; ///< cuDNN's name of engine and knobs
  int64_t parts;                    ///< of the batch, one run each
};

/// What a profile recorded; before the first kernel is created. The list must outlive all kernels. Engines that the
/// library does not offer (any more) are noted, see memoryNotes(), and the ranking's first one runs instead.
void setRecordedEngines(const EngineChoice *choices, int count);

struct EngineTime {
  std::string convolution, engine;
  int64_t parts;
  double seconds, rankedSeconds; ///< of all parts: of this engine, and of the one that has run
};

/// The fastest engine of each kind of convolution that this program has run, among the deterministic ones that the
/// library ranks first, that fit its workspace and cut the batch into as many parts; the one that has run where none is
/// faster by 3 %, or where a profile has recorded it. The largest convolutions come first, and after a
/// minute the others are left out. Blocks; takes memory of its own, no more than a step did, so that it is for when the
/// program's arenas are gone. Throws MemoryNotAvailable, DeviceError.
std::vector<EngineTime> measureEngines();

} // namespace sluice

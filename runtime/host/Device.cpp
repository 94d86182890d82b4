// SPDX-License-Identifier: Apache-2.0
// The host as a device: nothing besides its arenas.
#include "runtime/Engines.h"
#include "runtime/Kernels.h"

namespace sluice {

Target runtimeTarget() { return Target::Host; }

void setKernelPolicy(size_t, Precision precision) {
  if (precision != Precision::FP32)
    throw std::invalid_argument("the host runtime computes in fp32 only");
}

// Algorithms are chosen when compiling.
void setRecordedEngines(const EngineChoice *, int) {}
std::vector<EngineTime> measureEngines() { return {}; }

std::string deviceName() { return "host"; }
std::string memoryNotes() { return ""; }
size_t Session::driverBytes() const { return 0; }

} // namespace sluice

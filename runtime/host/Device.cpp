// SPDX-License-Identifier: Apache-2.0
// The host as a device: nothing besides its arenas.
#include "runtime/Engines.h"
#include "runtime/Kernels.h"
#include "runtime/host/Dnnl.h"

namespace sluice {

Target runtimeTarget() { return Target::Host; }

static Precision policy = Precision::FP32;
Precision kernelPrecision() { return policy; }

void setKernelPolicy(size_t, Precision precision) {
  if (precision != Precision::FP32 && precision != Precision::BF16)
    throw std::invalid_argument("the host runtime computes in fp32 and bf16");
  policy = precision;
}

// Algorithms are chosen when compiling.
void setRecordedEngines(const EngineChoice *, int) {}
std::vector<EngineTime> measureEngines() { return {}; }

std::string deviceName() { return "host"; }
std::string memoryNotes() { return ""; }
size_t Session::driverBytes() const { return 0; }

} // namespace sluice

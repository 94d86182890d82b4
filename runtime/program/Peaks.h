// SPDX-License-Identifier: Apache-2.0
// What this machine's cores and memory reach at most with the runtime's own kernels, for --roofline.
#pragma once

#include "runtime/Kernels.h"

#include <vector>

namespace sluice {

/// Per second.
struct Peaks {
  /// Kernels that move so many bytes have had this rate at most. What is moved lies in a cache while that is small.
  struct Bandwidth {
    double bytes, rate;
  };
  double flops = 0;              ///< of products and convolutions in fp32
  double halfFlops = 0;          ///< in bf16; 0: not measured
  std::vector<Bandwidth> memory; ///< by bytes, rates fall

  double flopsOf(Precision arithmetic) const { return arithmetic == Precision::FP32 ? flops : halfFlops; }
  /// That no kernel which moves so many bytes should exceed.
  double bandwidthFor(double bytes) const;
};

/// The best of several runs of large kernels, with the threads of the program; takes about half a second and 128 MiB.
/// Run it when the program's arenas are gone, on the host. `halves`: of bf16, too.
Peaks measurePeaks(bool halves);

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Elementwise regions. The compiler prints one small function object per region; this template turns it into a kernel that walks all
// operands once. The same function object is compiled for either target. Generated files are compiled without contraction of a*b+c, so
// how ops are grouped into regions changes no bit.
//
//   struct NormalizeRelu {
//     static constexpr int inputs = 5, outputs = 1, sums = 0;
//     SLUICE_KERNEL Values<1> operator()(float x, float mean, float rstd, float scale, float bias) const {
//       float v0 = (x - mean) * rstd * scale + bias;
//       return {v0 > 0 ? v0 : 0};
//     }
//   };
//   const Fused<NormalizeRelu> relu1{"/bn1/BatchNormalization, /relu1/Relu", shape, NHWC, {x, mean, rstd, scale, bias}, {y}, {}};
//   relu1.run(s.compute, {x, mean, rstd, scale, bias}, {y}, {}, scratch);
//
// Every operand is F32 and broadcasts to `shape` by numpy's rules, except that [C] against rank 4 may also be given as a per-channel
// vector (`channel`). Outputs have the full shape. A sum is a [C] vector (or a scalar): the region's value summed over all other
// dimensions, in a fixed order that does not depend on the number of threads.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

template <int Count> struct Values {
  float v[Count];
};

} // namespace sluice

#if defined(__CUDACC__)
#define SLUICE_KERNEL __host__ __device__ inline
#else
#define SLUICE_KERNEL inline
#endif

// SPDX-License-Identifier: Apache-2.0
// The ways to run one matrix product on the host, for the compiler to choose from; see ConvEngine.h.
#pragma once

#include "runtime/Kernels.h"

#include <string>
#include <vector>

namespace sluice {

constexpr const char *blockedMatmul = "blocked";

/// Arguments of Matmul.
struct MatmulGeometry {
  Shape a, b, c;
  bool transposeA, transposeB;
  float alpha = 1, beta = 1;
  Shape bias;
  DataType factors = DataType::F32, result = DataType::F32;
};

/// As ConvCandidate.
struct MatmulCandidate {
  std::string name;
  size_t workspace;
  double slowness;
};

/// Fastest first; never empty.
std::vector<MatmulCandidate> matmulCandidates(const MatmulGeometry &geometry);

} // namespace sluice

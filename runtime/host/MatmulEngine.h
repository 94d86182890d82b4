// SPDX-License-Identifier: Apache-2.0
// The ways to run one matrix product on the host, for the compiler to choose from; see ConvEngine.h.
#pragma once

#include "runtime/Dequantize.h"

#include <string>
#include <vector>

namespace sluice {

constexpr const char *blockedMatmul = "blocked";

/// Arguments of Matmul.
struct MatmulGeometry {
  Shape a, b, c;
  MatmulOptions options;
};

/// As ConvCandidate.
struct MatmulCandidate {
  std::string name;
  size_t workspace;
  double slowness;
};

/// Fastest first; never empty.
std::vector<MatmulCandidate> matmulCandidates(const MatmulGeometry &geometry);

/// The same of QuantizedMatmul: the ways to multiply by one of its blocks.
std::vector<MatmulCandidate> quantizedMatmulCandidates(const Shape &a, const Shape &b, const MatmulOptions &options);

} // namespace sluice

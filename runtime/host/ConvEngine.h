// SPDX-License-Identifier: Apache-2.0
// The ways to run one convolution on the host. The compiler lists them with their workspaces, has them tried, chooses
// one and writes it into the program (Algorithm), so that bits never depend on timing or budget.
//
// Of oneDNN's implementations those count that run in the scratchpad given to them; its gemm ones, which need tens of
// times the workspace and allocate more on their own, and its reference ones are replaced by ours ("blocked"). Of bf16
// the others are engines of floats that see a part of the batch at a time ("wide NAME", WideConv.h): in the smallest
// parts everywhere, in others too where products of bf16 are slow. Gradients of pixels may be products ("product NAME",
// ProductConv.h).
#pragma once

#include "runtime/kernels/DirectConv.h"

#include <memory>
#include <string>
#include <vector>

namespace sluice {

/// A convolution of one geometry by one algorithm.
class ConvEngine {
public:
  virtual ~ConvEngine() = default;
  virtual size_t workspaceBytes() const = 0;
  /// x, w (and bias) -> y; dy, w -> dx; dy, x -> dw (and dbias), of the geometry's type, but for dw and biases, which
  /// are floats, and in its layouts (ConvGeometry of kernels/DirectConv.h). Synchronous; `bias` is read forward,
  /// written in the weight gradient, and null where the engine was made without. `scratch` has workspaceBytes(), at a
  /// multiple of 64.
  virtual void run(const void *first, const void *second, void *result, float *bias, char *scratch) const = 0;
};

/// A way to run a geometry. `slowness` is its predicted time over that of the best kernel for this processor, which is
/// 1; it follows from names and extents alone.
struct ConvCandidate {
  std::string name;
  int64_t parts;
  size_t workspace;
  double slowness;

  Algorithm algorithm() const { return {name.c_str(), parts}; }
};

/// All ways, fastest first; never empty. Depends on the processor (DNNL_MAX_CPU_ISA counts) and on threads().
std::vector<ConvCandidate> convCandidates(const ConvGeometry &geometry, bool bias);

/// Throws MemoryNotAvailable where this processor does not offer the algorithm, dnnl::error where oneDNN fails.
std::unique_ptr<ConvEngine> makeConvEngine(const ConvGeometry &geometry, bool bias, const Algorithm &algorithm);

/// Runs an algorithm on random values, for as few images as show what it does, and compares some of its results with
/// sums by the definition. May never return where the implementation is broken: the caller limits its time.
bool convolutionWorks(const ConvGeometry &geometry, bool bias, const Algorithm &algorithm);

} // namespace sluice

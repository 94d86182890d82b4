// SPDX-License-Identifier: Apache-2.0
// What the host runtime's kernels say about themselves at compile time.
#pragma once

#include "ir/RuntimeTypes.h"
#include "passes/kernels/ChooseAlgorithms.h"
#include "runtime/FusedGeometry.h"
#include "runtime/kernels/DirectConv.h"

#include <optional>

namespace sluice {

/// Upper limit of the threads of one program.
constexpr int mostThreads = 1024;

/// What workspaces and algorithms of host programs depend on.
struct HostMachine {
  int threads = 0; ///< that programs will have; 0: this machine's
  int level = 0;   ///< that they are built for (runtime/CpuTable.h); 0: this machine's
  Precision precision = Precision::FP32;
};
/// Kernels of this process are from now on those of such a program. One process can serve one level: oneDNN chooses its
/// instructions once.
void adoptMachine(const HostMachine &machine);
/// What such a program may use of vendor kernels, as far as this machine can tell: of a level that it does not reach,
/// of ARM, or of another family, what it has.
int reachableLevel(int level);

/// In which ways the op's kernel can compute once this process has become `machine`, fastest first, each with its
/// scratch bytes. Without a choice: what the very kernel object needs that the generated program will build, 0
/// for ops without one. An error names an op that no kernel computes.
mlir::FailureOr<std::vector<KernelAlgorithm>> hostAlgorithms(mlir::Operation *op, const HostMachine &machine);

/// A convolution to be tried, with the algorithm; the others are products of oneDNN's that every test runs, or ours.
struct HostTrialCase {
  ConvGeometry geometry;
  bool bias;
  std::string name;
  int64_t parts;
  bool operator<(const HostTrialCase &other) const;
};
std::optional<HostTrialCase> trialOf(mlir::Operation *op, const KernelAlgorithm &algorithm);
/// Runs it, in this process.
bool works(const HostTrialCase &trial);

/// How the kernel of a fused region, on either target, walks its operands; outputs, which never shape it, are left out.
FusedGeometry geometryOf(train::FusedOp region);

/// The one call of the op's kernel that takes a scratch, null without one; an error where there are more.
mlir::FailureOr<sched::CallAttr> callWithScratch(mlir::Operation *op);

} // namespace sluice

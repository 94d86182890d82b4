// SPDX-License-Identifier: Apache-2.0
// In which ways the kernel of an op can compute, and which of them the program takes. The choice depends on the op, the
// processor, the limit and the step's other ops; never on times, so that bits do not depend on a profile.
#pragma once

#include "ir/Train.h"

#include <string>
#include <vector>

namespace sluice {

/// One way in which a kernel computes, and what it takes. `granted` is what the kernel is allowed, `workspace` what it
/// then uses, which is what the slot has.
struct KernelAlgorithm {
  std::string name;      ///< see Algorithm
  int64_t parts = 1;     ///< see Algorithm
  int64_t granted = 0;   ///< Algorithm::workspace
  double slowness = 1;   ///< predicted time over that of the fastest
  int64_t workspace = 0; ///< bytes

  /// The attribute `train.algorithm`.
  train::AlgorithmAttr attribute(mlir::MLIRContext *context) const;
};

/// What one op can do, fastest first; one entry without a name where there is nothing to choose.
struct AlgorithmChoice {
  mlir::Operation *op;
  std::vector<KernelAlgorithm> offered;
  /// Bytes that no plan takes away while the op runs: what it reads and writes, and gradients that live across it.
  int64_t resident = 0;
  double fastest = offered.front().slowness; ///< of all that were offered; what a profile's rates speak of
  int chosen = -1;                           ///< index into `offered`
  /// Those that no other beats in both time and workspace, the chosen one first.
  std::vector<int> unbeaten() const;
};

/// The ops of a train function that have kernels, in order, with what `offers` says of each; it reports its failures.
mlir::FailureOr<std::vector<AlgorithmChoice>>
choicesOf(mlir::func::FuncOp function,
          llvm::function_ref<mlir::FailureOr<std::vector<KernelAlgorithm>>(mlir::Operation *)> offers);

/// Which algorithm each op takes: the fastest within the limit. A limit of 0 follows from the step: no workspace beyond
/// its largest activation, and none that would raise the largest sum of resident bytes and workspace, unless everything
/// else is twice as slow. Host algorithms are tried before they are taken (HostTrial.h), with `alternatives` also
/// those that a plan may take instead; what fails is removed from the offers. An error names an op of which nothing
/// fits the limit, with both numbers.
mlir::LogicalResult chooseAlgorithms(std::vector<AlgorithmChoice> &choices, int64_t limit, bool alternatives);

} // namespace sluice

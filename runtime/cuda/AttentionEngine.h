// SPDX-License-Identifier: Apache-2.0
// Which of cuDNN's engines runs an attention of halves. The first of cuDNN's own ranking that is deterministic; the
// backward ones have a matrix [rows, keys] of halves for each member in their workspace, and what a dropout keeps is
// another one in front of it, in both passes, so that the members are cut into as few parts as it fits. A mask is
// cuDNN's bias; rows that it hides entirely are computed by kernels of our own (AttentionHidden.h), and so is all of an
// attention where numbers take the place of scores (AttentionTiles.h).
#pragma once

#include "runtime/cuda/AttentionTiles.h"

#include <memory>
#include <string>

namespace sluice {

class AttentionEngine {
public:
  /// The engine for the present device, or, without a GPU, for one that `device` describes as cuDNN writes it
  /// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION); that one cannot run. Null, with a reason, where there is none within
  /// `bytes` of workspace.
  static std::unique_ptr<AttentionEngine> choose(const AttentionProblem &problem, int64_t bytes, std::string &reason,
                                                 const std::string &device = "");
  ~AttentionEngine();

  /// Of the members, one run each.
  int64_t parts() const { return count; }
  int64_t workspaceBytes() const;
  /// cuDNN's name of the engine and its knobs.
  std::string name() const;

  /// Enqueues all parts; `workspace` has as many bytes as were granted, `state` is the step's where there is dropout.
  /// Throws DeviceError.
  void run(cudaStream_t stream, const AttentionOperands &operands, const DeviceState *state, void *workspace) const;

private:
  struct Plan;
  AttentionEngine(const AttentionProblem &problem, int64_t count, std::unique_ptr<Plan> plan);

  AttentionProblem problem;
  int64_t count;
  std::unique_ptr<Plan> plan;
};

} // namespace sluice

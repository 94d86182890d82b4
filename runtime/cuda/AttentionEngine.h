// SPDX-License-Identifier: Apache-2.0
// Which of cuDNN's engines runs an attention of halves. The first of cuDNN's own ranking that is deterministic; the
// backward ones have a matrix [rows, keys] of halves for each member in their workspace, so that the members are cut
// into as few parts as it fits. cuDNN takes neither our dropout's draws nor, as far as is documented, rows that a mask
// hides entirely: those stay with our own kernels (AttentionTiles.h).
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

  /// Enqueues all parts; `workspace` has as many bytes as were granted. Throws DeviceError.
  void run(cudaStream_t stream, const AttentionOperands &operands, void *workspace) const;

private:
  struct Plan;
  AttentionEngine(const AttentionProblem &problem, int64_t count, std::unique_ptr<Plan> plan);

  AttentionProblem problem;
  int64_t count;
  std::unique_ptr<Plan> plan;
};

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Which engine of cuDNN runs the convolutions of one geometry. The first of cuDNN's own ranking that is deterministic,
// has the precision asked for and fits the workspace, so that it depends on geometry, precision and workspace alone.
// Those that use tensor cores pad an image's three channels in the workspace, for the whole batch: where only slower
// ones fit, or none, the batch is cut into halves, quarters and so on.
#pragma once

#include "runtime/cuda/DirectConv.h"

#include <memory>
#include <string>

namespace sluice {

class ConvEngine {
public:
  /// The engine for the present device, or, without a GPU, for one that `device` describes as cuDNN writes it
  /// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION); that one cannot run. Null, with a reason, where there is none within
  /// `bytes` of workspace.
  static std::unique_ptr<ConvEngine> choose(const ConvGeometry &geometry, int64_t bytes, Precision precision,
                                            std::string &reason, const std::string &device = "");
  ~ConvEngine();

  /// Of the batch, one run each.
  int64_t parts() const { return count; }
  int64_t workspaceBytes() const;
  /// cuDNN's name of the engine and its knobs.
  std::string name() const;

  /// Enqueues one part. Addresses are those of the whole tensors, weights in [O,H,W,I]: x, w -> y; dy, w -> dx; dy, x
  /// -> dw, of this part alone. `workspace` has as many bytes as were granted. Throws DeviceError.
  void run(cudaStream_t stream, int64_t part, const void *first, const void *second, void *result,
           void *workspace) const;

private:
  struct Plan;
  ConvEngine(const ConvGeometry &geometry, int64_t count, std::unique_ptr<Plan> plan);

  ConvGeometry geometry;
  int64_t count;
  std::unique_ptr<Plan> plan;
};

} // namespace sluice

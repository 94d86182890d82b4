// SPDX-License-Identifier: Apache-2.0
// Which BatchNormalization nodes take each batch's statistics in a training step, and which their running ones. No MLIR
// in here.
#ifndef SLUICE_FRONTEND_BATCH_NORM_FORMS_H
#define SLUICE_FRONTEND_BATCH_NORM_FORMS_H

#include "frontend/TrainingSpec.h"
#include <set>
#include <string>
#include <vector>

namespace onnx {
class NodeProto;
}

namespace sluice {

struct BatchNormForms {
  std::set<const onnx::NodeProto *>
      byBatch;        ///< nodes that take each batch's statistics, which the running ones take in
  std::string remark; ///< a line for the user where nodes of inference form decide what he may not expect; else empty

  /// By the flags, or as the node says: by the metadata of torch.export, training_mode since opset 14, or the outputs
  /// for new statistics before. Statistics that --init draws anew normalize nothing, so that nodes of inference form
  /// take each batch's then. An error names an expression of --batch-norm that matches no node.
  static Result<BatchNormForms> find(const std::vector<const onnx::NodeProto *> &nodes, int64_t opset,
                                     const TrainingSpec &spec);
};

} // namespace sluice

#endif

// SPDX-License-Identifier: Apache-2.0
// Which engine of cuDNN runs the convolutions of one geometry. The first of cuDNN's own ranking that is deterministic,
// has the precision asked for and fits the workspace, so that it depends on geometry, precision and workspace alone.
// Those that use tensor cores pad an image's three channels in the workspace, for the whole batch: where only slower
// ones fit, or none, the batch is cut into halves, quarters and so on.
#pragma once

#include "runtime/cuda/DirectConv.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace sluice {

/// What an engine computes besides the convolution, from what it has in registers, in sums that are the same bits from
/// run to run; Graph API of cuDNN 9.11 or newer, where no parts are cut. Its further operands, in the order in which
/// run() takes them: Statistics: sums of y over all but channels, sums of y * y. Gradient: z, x, mean, rstd, dscale,
/// dbias and, with an addend, that; see ConvNorm.
enum class Epilogue { None, Statistics, Gradient, GradientOfSum };

/// The same for engines that are the same.
std::vector<int64_t> engineKey(const ConvGeometry &geometry, int64_t bytes, Precision precision, Epilogue epilogue);

class ConvEngine {
public:
  /// The engine for the present device, or, without a GPU, for one that `device` describes as cuDNN writes it
  /// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION); that one cannot run. Null, with a reason, where there is none within
  /// `bytes` of workspace.
  static std::unique_ptr<ConvEngine> choose(const ConvGeometry &geometry, int64_t bytes, Precision precision,
                                            std::string &reason, const std::string &device = "",
                                            Epilogue epilogue = Epilogue::None);
  ~ConvEngine();

  /// Of the batch, one run each.
  int64_t parts() const { return count; }
  int64_t workspaceBytes() const;
  /// cuDNN's name of the engine and its knobs.
  std::string name() const;

  /// Enqueues one part. Addresses are those of the whole tensors, weights in [O,H,W,I]: x, w -> y; dy, w -> dx; dy, x
  /// -> dw, of this part alone. `workspace` has as many bytes as were granted; `more` are the epilogue's operands.
  /// Throws DeviceError.
  void run(cudaStream_t stream, int64_t part, const void *first, const void *second, void *result, void *workspace,
           std::initializer_list<const void *> more = {}) const;

private:
  struct Plan;
  ConvEngine(const ConvGeometry &geometry, int64_t count, std::unique_ptr<Plan> plan);

  ConvGeometry geometry;
  int64_t count;
  std::unique_ptr<Plan> plan;
};

} // namespace sluice

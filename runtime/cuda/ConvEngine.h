// SPDX-License-Identifier: Apache-2.0
// Which engine of cuDNN runs the convolutions of one geometry. The one that a profile recorded, else the first of
// cuDNN's own ranking that is deterministic, has the precision asked for and fits the workspace, so that it depends on
// geometry, precision, workspace and the program alone. Those that use tensor cores pad an image's three channels in
// the workspace, for the whole batch: where only slower ones fit, or none, the batch is cut into halves, quarters and
// so on.
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

/// What an engine is chosen by.
struct ConvTask {
  ConvGeometry geometry;
  int64_t bytes; ///< of workspace at most
  Precision precision;
  Epilogue epilogue = Epilogue::None;

  /// All of it in words: the same for tasks that share an engine, and what profiles call them.
  std::string text() const;
};

class ConvEngine {
public:
  /// The engine for the present device, or, without a GPU, for one that `device` describes as cuDNN writes it
  /// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION); that one cannot run. Null, with a reason, where there is none within
  /// the task's workspace. An engine with a reason stands in for a recorded one that cuDNN does not offer.
  static std::unique_ptr<ConvEngine> choose(const ConvTask &task, std::string &reason, const std::string &device = "");
  ~ConvEngine();

  /// Those that may run instead of it, in as many parts, in cuDNN's ranking, itself among them; `most` at most.
  std::vector<std::unique_ptr<ConvEngine>> alternatives(size_t most) const;

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
  ConvEngine(const ConvTask &task, int64_t count, std::unique_ptr<Plan> plan);

  ConvTask task;
  int64_t count;
  std::unique_ptr<Plan> plan;
};

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Lines on the loss and on statistics; what was decided about roles is in RoleReport.cpp.
#include "frontend/ImportRemarks.h"

#include "ir/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace sluice {
namespace {

/// Scores [batch, tokens, classes] of ids [batch, tokens] have their classes last, which the default loss has second.
void remarkOnTokens(ModuleOp module, const TrainingSpec &spec, std::vector<std::string> &remarks) {
  if (!spec.losses.empty() || !spec.turns.empty() || spec.loss != AttachedLoss::SoftmaxCrossEntropy)
    return;
  std::string remark;
  module.walk([&](train::SoftmaxCrossEntropyOp loss) {
    const ArrayRef<int64_t> scores = cast<RankedTensorType>(loss.getX().getType()).getShape();
    for (Value argument : loss->getParentOfType<func::FuncOp>().getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType());
          scores.size() == 3 && type.getElementType().isInteger(64) && type.getShape() == scores.take_front(2) &&
          argument != loss.getTarget())
        remark = "the loss takes " + std::to_string(scores[1]) + " classes for each of " + std::to_string(scores[2]) +
                 " places; of " + std::to_string(scores[2]) + " classes for each of " + std::to_string(scores[1]) +
                 " tokens it is --loss=token-cross-entropy";
  });
  if (!remark.empty())
    remarks.push_back(std::move(remark));
}

/// BatchNormalization that trains otherwise than its author can have meant: over one value a channel, which PyTorch
/// refuses, and by a cumulative average, which the file has no word for.
void remarkOnStatistics(ModuleOp module, std::vector<std::string> &remarks) {
  std::vector<std::string> single, last;
  module.walk([&](train::UpdateStatisticsOp update) {
    const std::string node = "'" + train::nodeName(update.getLoc()) + "'";
    if (update.getCount() == 1)
      single.push_back(node);
    if (update.getMomentum().convertToDouble() == 1)
      last.push_back(node);
  });
  auto named = [](const std::vector<std::string> &nodes) {
    return nodes.front() + (nodes.size() > 1 ? " and " + std::to_string(nodes.size() - 1) + " more" : "");
  };
  if (!single.empty())
    remarks.push_back(named(single) +
                      " takes statistics of one value a channel: what it gives is its bias, whatever it reads, and its "
                      "running variance shrinks with each step; PyTorch refuses that. Take a larger --batch or image, "
                      "or take its running statistics: --batch-norm=frozen");
  if (!last.empty())
    remarks.push_back("the running statistics of " + named(last) +
                      " become those of the last batch, as momentum=0 in the file says; PyTorch's exporter also writes "
                      "that for momentum=None, a cumulative average");
}

} // namespace

void remarkOnTraining(ModuleOp module, const TrainingSpec &spec, std::vector<std::string> &remarks) {
  remarkOnTokens(module, spec, remarks);
  remarkOnStatistics(module, remarks);
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// The attribute is #train.lossy, in plain values here: reports and code generation know nothing of builders.
#include "ir/LossyPlan.h"

#include "ir/Train.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static constexpr llvm::StringLiteral lossy = "train.lossy";

const LossyTensor *LossyPlan::find(StringRef storage) const {
  for (const LossyTensor &tensor : tensors)
    if (tensor.storage == storage)
      return &tensor;
  return nullptr;
}

static_assert(static_cast<int>(Compared::AboveZero) == static_cast<int>(sluice::Comparison::AboveZero) &&
                  getMaxEnumValForCompared() == static_cast<int>(sluice::Comparison::Otherwise),
              "comparisons of the attribute are those of packed forms");

void train::setLossyPlan(ModuleOp module, const LossyPlan &plan) {
  Builder b(module.getContext());
  SmallVector<LossyTensorAttr> tensors;
  for (const LossyTensor &tensor : plan.tensors)
    tensors.push_back(LossyTensorAttr::get(b.getContext(), b.getStringAttr(tensor.storage),
                                           static_cast<Compared>(tensor.compared), b.getF64FloatAttr(tensor.error)));
  module->setAttr(lossy, LossyAttr::get(b.getContext(), b.getF64FloatAttr(plan.budget), b.getF64FloatAttr(plan.error),
                                        plan.usual, tensors));
}

LossyPlan train::lossyPlanOf(ModuleOp module) {
  LossyPlan plan;
  auto all = module->getAttrOfType<LossyAttr>(lossy);
  if (!all)
    return plan;
  plan.budget = all.getAllowed().getValueAsDouble();
  plan.error = all.getError().getValueAsDouble();
  plan.usual = all.getUsual();
  for (LossyTensorAttr tensor : all.getTensors())
    plan.tensors.push_back({tensor.getStorage().str(), static_cast<sluice::Comparison>(tensor.getCompared()),
                            tensor.getError().getValueAsDouble()});
  return plan;
}

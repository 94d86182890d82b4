// SPDX-License-Identifier: Apache-2.0
// The attribute is a dictionary of plain values: {allowed, error, usual, tensors = {NAME = [comparison, error]}}.
#include "ir/LossyPlan.h"

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

void train::setLossyPlan(ModuleOp module, const LossyPlan &plan) {
  Builder b(module.getContext());
  SmallVector<NamedAttribute> tensors;
  for (const LossyTensor &tensor : plan.tensors)
    tensors.push_back(b.getNamedAttr(
        tensor.storage,
        b.getArrayAttr({b.getI64IntegerAttr(static_cast<int>(tensor.compared)), b.getF64FloatAttr(tensor.error)})));
  module->setAttr(lossy, b.getDictionaryAttr({b.getNamedAttr("allowed", b.getF64FloatAttr(plan.budget)),
                                              b.getNamedAttr("error", b.getF64FloatAttr(plan.error)),
                                              b.getNamedAttr("usual", b.getBoolAttr(plan.usual)),
                                              b.getNamedAttr("tensors", b.getDictionaryAttr(tensors))}));
}

static double numberOf(Attribute attribute) {
  auto number = dyn_cast_or_null<FloatAttr>(attribute);
  return number ? number.getValueAsDouble() : 0;
}

LossyPlan train::lossyPlanOf(ModuleOp module) {
  LossyPlan plan;
  auto all = module->getAttrOfType<DictionaryAttr>(lossy);
  if (!all)
    return plan;
  plan.budget = numberOf(all.get("allowed"));
  plan.error = numberOf(all.get("error"));
  auto usual = all.getAs<BoolAttr>("usual");
  plan.usual = usual && usual.getValue();
  auto tensors = all.getAs<DictionaryAttr>("tensors");
  for (NamedAttribute entry : tensors ? tensors.getValue() : ArrayRef<NamedAttribute>()) {
    auto pair = dyn_cast<ArrayAttr>(entry.getValue());
    auto compared = pair && pair.size() == 2 ? dyn_cast<IntegerAttr>(pair[0]) : IntegerAttr();
    if (!compared || compared.getInt() < 0 || compared.getInt() > static_cast<int>(sluice::Comparison::Otherwise))
      continue;
    plan.tensors.push_back(
        {entry.getName().str(), static_cast<sluice::Comparison>(compared.getInt()), numberOf(pair[1])});
  }
  return plan;
}

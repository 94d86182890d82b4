// SPDX-License-Identifier: Apache-2.0
// The attribute is [[name, @step, @evaluate], ..], in plain values here.
#include "ir/Buckets.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static constexpr llvm::StringLiteral list = "train.buckets";

// No verifier knows the list: entries of another form are left out.
std::vector<Bucket> train::bucketsOf(ModuleOp module) {
  std::vector<Bucket> buckets;
  if (auto all = module->getAttrOfType<ArrayAttr>(list))
    for (auto entry : all.getAsRange<ArrayAttr>()) {
      if (entry.size() != 3)
        continue;
      const auto name = dyn_cast<StringAttr>(entry[0]);
      const auto step = dyn_cast<FlatSymbolRefAttr>(entry[1]), evaluate = dyn_cast<FlatSymbolRefAttr>(entry[2]);
      if (name && step && evaluate)
        buckets.push_back({name.str(), step.getValue().str(), evaluate.getValue().str()});
    }
  if (buckets.empty())
    buckets.push_back({"", "step", "evaluate"});
  return buckets;
}

void train::setBuckets(ModuleOp module, ArrayRef<Bucket> buckets) {
  Builder b(module.getContext());
  SmallVector<Attribute> entries;
  for (const Bucket &bucket : buckets)
    entries.push_back(b.getArrayAttr({b.getStringAttr(bucket.name), FlatSymbolRefAttr::get(b.getContext(), bucket.step),
                                      FlatSymbolRefAttr::get(b.getContext(), bucket.evaluate)}));
  module->setAttr(list, b.getArrayAttr(entries));
}

SmallVector<func::FuncOp> train::stepsOf(ModuleOp module) {
  SmallVector<func::FuncOp> steps;
  for (const Bucket &bucket : llvm::reverse(bucketsOf(module)))
    if (auto step = module.lookupSymbol<func::FuncOp>(bucket.step))
      steps.push_back(step);
  return steps;
}

std::string train::ofBucket(ModuleOp module, StringRef function) {
  for (const Bucket &bucket : bucketsOf(module))
    if (!bucket.name.empty() && (function == bucket.step || function == bucket.evaluate))
      return " of bucket '" + bucket.name + "'";
  return "";
}

// SPDX-License-Identifier: Apache-2.0
// Attributes of modules, by what the command line asks for.
#include "frontend/SpecAttributes.h"

#include "ir/TensorName.h"
#include "ir/Train.h"

using namespace mlir;

namespace sluice {

void setAttributes(ModuleOp module, const TrainingSpec &spec, const OnnxGraph &graph) {
  Builder builder(module.getContext());
  const auto set = [&](const char *name, const std::string &value) {
    module->setAttr(name, builder.getStringAttr(value));
  };
  set("train.optimizer", toString(spec.optimizer));
  set("train.precision", spec.precision);
  for (const auto &[name, wanted] : {std::pair{"train.clip_norm", spec.clipNorm},
                                     {"train.accumulate", spec.accumulate},
                                     {"train.average", spec.average}})
    if (wanted)
      module->setAttr(name, builder.getUnitAttr());
  if (!spec.ranks.empty()) {
    set(train::ranksAttribute, spec.ranks);
    if (spec.shares > 0)
      module->setAttr(train::sharesAttribute, builder.getI64IntegerAttr(spec.shares));
    if (spec.sharesGradients)
      module->setAttr(train::gradientSharesAttribute, builder.getUnitAttr());
    if (spec.sharesParameters)
      module->setAttr(train::parameterSharesAttribute, builder.getUnitAttr());
    if (spec.normRanks > 0)
      module->setAttr(train::normRanksAttribute, builder.getI64IntegerAttr(spec.normRanks));
    if (spec.accumulate)
      module->setAttr(train::sumsAttribute, builder.getI64IntegerAttr(spec.batchSums));
  }
  SmallVector<StringRef> shared;
  for (const GraphInput &input : graph.inputs)
    if (input.shared)
      shared.push_back(input.name);
  train::setShared(module, shared);
}

} // namespace sluice

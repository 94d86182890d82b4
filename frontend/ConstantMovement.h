// SPDX-License-Identifier: Apache-2.0
// The half of constant folding that moves elements: views, slices, joins, reductions of shape vectors.
#ifndef SLUICE_FRONTEND_CONSTANT_MOVEMENT_H
#define SLUICE_FRONTEND_CONSTANT_MOVEMENT_H

#include "frontend/ConstantFolding.h"
#include <functional>
#include <map>
#include <string>

namespace sluice {

/// One node under evaluation.
struct Fold {
  const onnx::NodeProto &node;
  int64_t opset;
  const HostInputs &inputs;

  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  const HostTensor &in(size_t i) const { return *inputs[i]; }
};

void addMovement(std::map<std::string, std::function<Result<HostTensor>(const Fold &)>> &table);

/// How many leading inputs an op cannot do without.
size_t neededInputs(const std::string &opType);

} // namespace sluice

#endif

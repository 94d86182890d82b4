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

using Shape = std::vector<int64_t>;
using Folder = std::function<Result<HostTensor>(const Fold &)>;
using Folders = std::map<std::string, Folder>;

Error tooLarge(const Shape &shape);
/// The integers that an input holds, or the attribute in early opsets; empty when there is neither.
Result<Shape> integers(const Fold &fold, size_t input, const char *name);
/// Axes of the node within `rank`, negative ones counted from the end; empty when none are given.
Result<Shape> axes(const Fold &fold, size_t input, int64_t rank);
/// One axis within `rank`, counted from the front.
Result<int64_t> axisWithin(int64_t axis, int64_t rank);
/// The attribute `axis` within `rank`.
Result<int64_t> axisAttribute(const Fold &fold, int64_t otherwise, int64_t rank);
/// Product of the extents before `axis`, or after it.
int64_t extentBefore(const Shape &shape, int64_t axis);
int64_t extentAfter(const Shape &shape, int64_t axis);

/// Each family adds its op types.
void addMovement(Folders &table);
void addIndexing(Folders &table);
void addConstantReductions(Folders &table);

/// How many leading inputs an op cannot do without.
size_t neededInputs(const std::string &opType);

} // namespace sluice

#endif

// SPDX-License-Identifier: Apache-2.0
// See TallTensors.h.
#include "frontend/TallTensors.h"

#include <set>

using namespace mlir;

namespace sluice {

bool isTall(NodeImport &node, size_t rank) { return static_cast<int64_t>(rank) > node.spec().limits.rank; }

bool readsTall(const std::string &opType) {
  static const std::set<std::string> readers = {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity",
                                                "Shape",   "Size",      "Add",     "Sub",     "Mul",       "Div"};
  return readers.count(opType);
}

Value viewed(NodeImport &node, Value x, ArrayRef<int64_t> shape) {
  const bool isOutput = node.graph().output(node.proto().output(0));
  if (!x || !isTall(node, shape.size()) || isOutput || shape.size() > HostTensor::maximumRank ||
      elementCount(shape.vec()) != typeOf(x).getNumElements())
    return node.reshape(x, shape);
  auto type = RankedTensorType::get(shape, typeOf(x).getElementType());
  return node.folded(train::ReshapeOp::create(node.builder(), node.loc(), type, x));
}

/// From the first dimension on: one joins its neighbour where both operands broadcast in it as they do there, and
/// dimensions of 1 in both go.
std::optional<MergedOperands> mergeOperands(NodeImport &node, Value a, Value b) {
  auto shape = broadcastShapes(shapeOf(a).vec(), shapeOf(b).vec());
  if (!shape) {
    (void)node.error("operands of " + shapeText(shapeOf(a).vec()) + " and " + shapeText(shapeOf(b).vec()) +
                     " do not broadcast");
    return std::nullopt;
  }
  const auto extent = [&](Value x, size_t i) {
    const size_t missing = shape->size() - shapeOf(x).size();
    return i < missing ? 1 : shapeOf(x)[i - missing];
  };
  SmallVector<int64_t> merged[2];
  std::pair<bool, bool> last;
  for (size_t i = 0; i < shape->size(); ++i) {
    if ((*shape)[i] == 1)
      continue;
    const std::pair has = {extent(a, i) != 1, extent(b, i) != 1};
    if (merged[0].empty() || has != last) {
      merged[0].push_back(1);
      merged[1].push_back(1);
    }
    merged[0].back() *= extent(a, i);
    merged[1].back() *= extent(b, i);
    last = has;
  }
  Value x = node.reshape(a, merged[0]), y = node.reshape(b, merged[1]);
  return x && y ? std::optional(MergedOperands{x, y, llvm::to_vector(ArrayRef(*shape))}) : std::nullopt;
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Checked creation of a node's ops and constants. Type inference reports through MLIR diagnostics, which importOnnx
// collects into the node's error.
#include "frontend/NodeImport.h"

using namespace mlir;

namespace sluice {

LogicalResult NodeImport::checkSize(RankedTensorType type, const std::string &what) {
  const Status shape = checkShape(type.getShape().vec(), spec().limits);
  return shape ? success() : error(what + " " + shape.error());
}

/// Infers the types of results and compares them with the limits. An op that fails is erased, so that the function
/// holds valid ops alone: the import goes on after an error, to find all nodes that are not supported.
bool NodeImport::finish(Operation *op) {
  SmallVector<Type> types;
  auto inference = dyn_cast<InferTypeOpInterface>(op);
  bool valid = true;
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.getType()); !type || !type.getElementType().isF32()) {
      // Ids are the one integer operand; who has some asked for them.
      bool ids = isa<train::CastOp>(op) ||
                 (isa<train::SoftmaxCrossEntropyOp, train::EmbeddingOp, train::ScatterRowsOp, train::PickOp>(op) &&
                  operand == op->getOperand(1));
      valid &= ids;
      if (!ids)
        (void)error("operand is not a float32 tensor");
    }
  if (valid && inference) {
    valid =
        succeeded(inference.inferReturnTypes(op->getContext(), location, op->getOperands(), op->getRawDictionaryAttrs(),
                                             op->getPropertiesStorage(), op->getRegions(), types));
    for (auto [value, type] : llvm::zip(op->getResults(), types))
      value.setType(type);
  }
  for (Type type : op->getResultTypes())
    valid = valid && succeeded(checkSize(cast<RankedTensorType>(type), "its result"));
  if (!valid)
    op->erase();
  return valid;
}

Value NodeImport::folded(Operation *op) {
  SmallVector<OpFoldResult> results;
  if (!op || failed(op->fold(results)) || results.empty())
    return op ? op->getResult(0) : Value();
  op->erase();
  return cast<Value>(results.front());
}

Value NodeImport::reshape(Value x, ArrayRef<int64_t> shape) {
  if (!x)
    return x;
  std::vector<int64_t> wanted(shape.begin(), shape.end());
  if (elementCount(wanted) != typeOf(x).getNumElements()) {
    std::vector<int64_t> from = shapeOf(x).vec();
    (void)error("cannot reshape " + shapeText(from) + " (" + std::to_string(typeOf(x).getNumElements()) +
                " elements) to " + shapeText(wanted));
    return {};
  }
  auto type = RankedTensorType::get(shape, typeOf(x).getElementType());
  if (failed(checkSize(type, "its result")))
    return {};
  return folded(train::ReshapeOp::create(function.builder, location, type, x));
}

Value NodeImport::asImageOperand(Value x, int64_t rank) {
  auto shape = shapeOf(x);
  int64_t own = shape.size();
  if (rank != 4 || own == rank || llvm::count_if(shape, [](int64_t extent) { return extent != 1; }) < 2)
    return x;
  SmallVector<int64_t> image(rank - own, 1);
  image.append(shape.begin(), shape.end());
  return reshape(x, image);
}

/// Named by the node's first result, so that equal purposes of two nodes are two variables.
Source NodeImport::inventedSource(const std::string &purpose, std::vector<int64_t> shape, int32_t elementType) const {
  Source source;
  auto named = llvm::find_if(node.output(), [](const std::string &name) { return !name.empty(); });
  source.name = (named == node.output().end() ? std::string() : *named) + "/" + purpose;
  source.shape = std::move(shape);
  source.elementType = elementType;
  source.constantNode = source.invented = true;
  return source;
}

Value NodeImport::filled(std::vector<int64_t> shape, double number, const std::string &purpose) {
  Source source = inventedSource(purpose, std::move(shape), onnx::TensorProto::FLOAT);
  source.value = HostTensor::zeros({}, /*integral=*/false); // one element stands for all
  source.value->floats[0] = number;
  return readSource(source, {});
}

Value NodeImport::indices(HostTensor values, const std::string &purpose) {
  if (failed(countConstant(values)))
    return {};
  Source source = inventedSource(purpose, values.shape, onnx::TensorProto::INT64);
  source.value = std::move(values);
  return readSource(source, {});
}

Value NodeImport::table(HostTensor values, const std::string &purpose) {
  if (failed(countConstant(values)))
    return {};
  Source source = inventedSource(purpose, values.shape, onnx::TensorProto::FLOAT);
  source.value = std::move(values);
  return readSource(source, {});
}

} // namespace sluice

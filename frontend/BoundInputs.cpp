// SPDX-License-Identifier: Apache-2.0
// Samples go back to where the model has them; element types become those of kernels.
#include "frontend/BoundInputs.h"
#include "frontend/InputShapes.h"

#include <onnx/onnx_pb.h>

using namespace mlir;

namespace sluice {

bool isInteger(const GraphInput &input) {
  const int32_t type = input.elementType;
  return type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32 || type == onnx::TensorProto::UINT8 ||
         type == onnx::TensorProto::BOOL;
}

/// The samples of a batch where nodes expect them.
static Value placed(FunctionImport &state, const GraphInput &input, Value argument) {
  auto type = RankedTensorType::get(input.shape, typeOf(argument).getElementType());
  if (input.shared || input.batchDim == 0 || type.getRank() == 0)
    return argument;
  if (input.batchDim == TrainingSpec::noBatch)
    return train::ReshapeOp::create(state.builder, argument.getLoc(), type, argument);
  SmallVector<int64_t> back(type.getRank());
  for (auto [to, from] : llvm::enumerate(batchToFront(type.getRank(), input.batchDim)))
    back[from] = static_cast<int64_t>(to);
  return train::TransposeOp::create(state.builder, argument.getLoc(), type, argument, back);
}

/// Integers that move become floats first, as kernels move nothing else; truth values are limited to 0 and 1, for data
/// may hold any number and nodes compute with these. Both stay integers for what asks of them, in state.integral.
void bindInput(FunctionImport &state, const GraphInput &input, Value argument) {
  const bool isTruth = input.elementType == onnx::TensorProto::BOOL;
  const bool moves = !input.shared && input.batchDim > 0;
  if (isTruth || (moves && isInteger(input))) {
    OpBuilder &b = state.builder;
    auto type = RankedTensorType::get(input.programShape(), b.getF32Type());
    auto limits = [&](double number) { return b.getF32FloatAttr(static_cast<float>(number)); };
    argument = train::CastOp::create(b, argument.getLoc(), type, argument);
    if (isTruth)
      argument = train::ClipOp::create(b, argument.getLoc(), type, argument, limits(0), limits(1));
    state.integral.insert(input.name);
  }
  state.values[input.name] = placed(state, input, argument);
}

} // namespace sluice

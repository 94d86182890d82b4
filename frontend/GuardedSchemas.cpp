// SPDX-License-Identifier: Apache-2.0
// Convolutions (ONNX 1.19.1): the inference counts the spatial extents of input or weights and reads as many of the other, whatever rank that has.
#include "frontend/GuardedSchemas.h"
#include "onnx/defs/schema.h"
#include "onnx/defs/shape_inference.h"
#include <map>
#include <string>

namespace sluice {
namespace {

/// Index of the weights among the operands.
const std::map<std::string, size_t> convolutions = {
    {"Conv", 1}, {"ConvTranspose", 1}, {"ConvInteger", 1}, {"DeformConv", 1}, {"QLinearConv", 3}};

/// Where input and weights have different ranks, or no batch and channels, nothing is inferred: the import says what is wrong.
void guard(onnx::OpSchema &schema, size_t weights) {
  auto library = schema.GetTypeAndShapeInferenceFunction();
  schema.TypeAndShapeInferenceFunction([library, weights](onnx::InferenceContext &context) {
    if (context.getNumInputs() <= weights || !onnx::hasInputShape(context, 0) || !onnx::hasInputShape(context, weights))
      return;
    const int rank = onnx::getInputShape(context, 0).dim_size();
    if (rank >= 3 && onnx::getInputShape(context, weights).dim_size() == rank)
      library(context);
  });
}

} // namespace

void guardShapeInference() {
  static const bool once = [] {
    for (onnx::OpSchema schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
      auto convolution = convolutions.find(schema.Name());
      if (!schema.domain().empty() || convolution == convolutions.end())
        continue;
      guard(schema, convolution->second);
      onnx::DeregisterSchema(schema.Name(), schema.since_version(), schema.domain());
      onnx::RegisterSchema(schema);
    }
    return true;
  }();
  (void)once;
}

} // namespace sluice

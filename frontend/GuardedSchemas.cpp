// SPDX-License-Identifier: Apache-2.0
// ONNX 1.19.1: the inference of convolutions counts the spatial extents of input or weights and reads as many of the
// other, whatever rank that has; that of all windows divides by strides, and that of DepthToSpace by a square in 64
// bits, that of SplitToSequence by its second operand; that of OneHot reads a first number of its depth and a dimension
// at its axis. Those of ops that take a shape give the result as many dimensions as that has elements, Split's as many
// outputs as it counts: gigabytes, by a number in the file.
#include "frontend/GuardedSchemas.h"
#include "onnx/defs/schema.h"
#include "onnx/defs/shape_inference.h"
#include "onnx/defs/tensor_proto_util.h"
#include <algorithm>
#include <limits>
#include <map>
#include <string>

namespace sluice {
namespace {

/// What an op's inference in the library uses without a look. A member that is 0 or "" guards nothing.
struct Guard {
  size_t weights;        ///< index among the operands; 0: none
  const char *divisor;   ///< attribute by whose numbers, or their squares, the inference divides
  size_t number = 0;     ///< index of an operand by which it divides where that is one known number; 0: none
  size_t filled = 0;     ///< index of an operand of which it reads a number where they are known; 0: none
  bool newAxis = false;  ///< reads beside "axis", where its result has a dimension more than the first operand
  size_t extents = none; ///< index of an operand whose elements are the extents of the result, or some of them
  bool counts = false;   ///< makes as many outputs as "num_outputs" says

  static constexpr size_t none = static_cast<size_t>(-1);
};

/// A guard against extents alone.
constexpr Guard shapedBy(size_t operand) { return {0, "", 0, 0, false, operand}; }

constexpr int64_t mostExtents = 1024; ///< no tensor has as many dimensions

const std::map<std::string, Guard> guards = {{"Conv", {1, "strides"}},
                                             {"ConvTranspose", {1, "strides"}},
                                             {"ConvInteger", {1, "strides"}},
                                             {"DeformConv", {1, "strides"}},
                                             {"QLinearConv", {3, "strides"}},
                                             {"MaxPool", {0, "strides"}},
                                             {"AveragePool", {0, "strides"}},
                                             {"LpPool", {0, "strides"}},
                                             {"MaxUnpool", {0, "strides"}},
                                             {"DepthToSpace", {0, "blocksize"}},
                                             {"SpaceToDepth", {0, "blocksize"}},
                                             {"SplitToSequence", {0, "", 1}},
                                             {"OneHot", {0, "", 0, 1, true}},
                                             {"ConstantOfShape", shapedBy(0)},
                                             {"AffineGrid", shapedBy(1)},
                                             {"CenterCropPad", shapedBy(1)},
                                             {"Col2Im", shapedBy(1)},
                                             {"Expand", shapedBy(1)},
                                             {"Reshape", shapedBy(1)},
                                             {"Resize", shapedBy(3)},
                                             {"Tile", shapedBy(1)},
                                             {"Split", {0, "", 0, 0, false, Guard::none, true}}};

/// Input and weights of the same rank, with batch and channels.
bool ranksAgree(onnx::InferenceContext &context, size_t weights) {
  if (context.getNumInputs() <= weights || !onnx::hasInputShape(context, 0) || !onnx::hasInputShape(context, weights))
    return false;
  const int rank = onnx::getInputShape(context, 0).dim_size();
  return rank >= 3 && onnx::getInputShape(context, weights).dim_size() == rank;
}

bool divides(const onnx::AttributeProto *attribute) {
  auto divides = [](int64_t number) { return number >= 1 && number <= std::numeric_limits<int32_t>::max(); };
  return !attribute || (std::all_of(attribute->ints().begin(), attribute->ints().end(), divides) &&
                        (!attribute->has_i() || divides(attribute->i())));
}

bool divides(const onnx::TensorProto *number) {
  if (!number || number->dims_size() > 0)
    return true;
  if (number->data_type() == onnx::TensorProto::INT32) {
    const auto values = onnx::ParseData<int32_t>(number);
    return values.size() == 1 && values[0] >= 1;
  }
  if (number->data_type() != onnx::TensorProto::INT64)
    return false;
  const auto values = onnx::ParseData<int64_t>(number);
  return values.size() == 1 && values[0] >= 1;
}

bool hasNumbers(const onnx::TensorProto *tensor) {
  return !tensor ||
         std::all_of(tensor->dims().begin(), tensor->dims().end(), [](int64_t extent) { return extent > 0; });
}

/// An axis of a tensor with a dimension more than the first operand, as far as its rank is known.
bool isNewAxis(onnx::InferenceContext &context) {
  const onnx::AttributeProto *axis = context.getAttribute("axis");
  if (!axis || !onnx::hasInputShape(context, 0))
    return true;
  const int64_t rank = onnx::getInputShape(context, 0).dim_size() + 1;
  return axis->i() >= -rank && axis->i() < rank;
}

bool areFew(onnx::InferenceContext &context, size_t operand) {
  if (operand >= context.getNumInputs() || !onnx::hasInputShape(context, operand))
    return true;
  const auto &shape = onnx::getInputShape(context, operand).dim();
  return std::none_of(shape.begin(), shape.end(), [](const auto &extent) { return extent.dim_value() > mostExtents; });
}

bool countsOwnOutputs(onnx::InferenceContext &context) {
  const onnx::AttributeProto *count = context.getAttribute("num_outputs");
  return !count || count->i() == static_cast<int64_t>(context.getNumOutputs());
}

/// Where it would index or divide by what is not there, nothing is inferred: the import says what is wrong.
void addGuard(onnx::OpSchema &schema, const Guard &guard) {
  auto library = schema.GetTypeAndShapeInferenceFunction();
  schema.TypeAndShapeInferenceFunction([library, guard](onnx::InferenceContext &context) {
    const bool hasNumber = guard.number > 0 && guard.number < context.getNumInputs();
    const bool mayBeEmpty = guard.filled > 0 && guard.filled < context.getNumInputs();
    if ((guard.weights == 0 || ranksAgree(context, guard.weights)) && divides(context.getAttribute(guard.divisor)) &&
        (!hasNumber || divides(context.getInputData(guard.number))) &&
        (!mayBeEmpty || hasNumbers(context.getInputData(guard.filled))) && (!guard.newAxis || isNewAxis(context)) &&
        areFew(context, guard.extents) && (!guard.counts || countsOwnOutputs(context)))
      library(context);
  });
}

} // namespace

/// Replaces the library's schemas in its registry, which is global; once a process, for an op of each version is
/// registered once. Ops of other domains keep theirs: the import refuses them.
void guardShapeInference() {
  static const bool once = [] {
    for (onnx::OpSchema schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
      auto guard = guards.find(schema.Name());
      if (!schema.domain().empty() || guard == guards.end())
        continue;
      addGuard(schema, guard->second);
      onnx::DeregisterSchema(schema.Name(), schema.since_version(), schema.domain());
      onnx::RegisterSchema(schema);
    }
    return true;
  }();
  (void)once;
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Each rule asks of all that read the tensor, after views.
#include "frontend/ReadTensor.h"

#include "frontend/Attributes.h"
#include "onnx/onnx_pb.h"

#include <re2/re2.h>

#include <cmath>

namespace sluice {
namespace {

constexpr double largestEpsilon = 0.01;
constexpr int mostViews = 100; ///< one after the other

/// Whether a value is a product with a weight of the file that has one column, or channel of results, maybe moved.
bool hasOneColumn(const std::string &value, const GraphReads &reads, const OnnxFile &file) {
  const onnx::NodeProto *product = reads.producerOf(value);
  for (int views = 0; product && isView(*product) && views < mostViews; ++views)
    product = reads.producerOf(product->input(0));
  if (!product || product->input_size() < 2 || !isOp(*product, {"MatMul", "Gemm", "Conv", "ConvTranspose"}))
    return false;
  const FileTensor *weight = file.tensor(product->input(1));
  const std::vector<int64_t> shape = weight ? weight->shape : std::vector<int64_t>();
  if (shape.size() < 2)
    return !shape.empty() && isOp(*product, {"MatMul"}) && shape[0] == 1;
  const Attributes attributes(*product);
  if (isOp(*product, {"Conv"}))
    return shape[0] == 1;
  if (isOp(*product, {"ConvTranspose"}))
    return shape[1] == 1 && attributes.integer("group", 1) == 1;
  return (isOp(*product, {"Gemm"}) && attributes.integer("transB", 0) ? shape[0] : shape.back()) == 1;
}

} // namespace

bool isNorm(const onnx::NodeProto &node) {
  return isOp(node, {"BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization"});
}

bool isWeightRead(const Read &read) {
  const auto &[node, input] = read;
  if (isOp(*node, {"Conv", "ConvTranspose", "PRelu"}) || isNorm(*node))
    return input == 1 || input == 2;
  if (isOp(*node, {"LSTM", "GRU", "RNN"}))
    return input >= 1 && input <= 3;
  return isOp(*node, {"Gemm", "MatMul"});
}
bool isWeight(const ReadTensor &tensor) { return std::any_of(tensor.reads.begin(), tensor.reads.end(), isWeightRead); }

bool isEpsilon(const ReadTensor &tensor, const Read &read, const GraphReads &reads, const OnnxFile &file) {
  const onnx::NodeProto &node = *read.first;
  if (!isOp(node, {"Add", "Max"}) || node.output_size() != 1 || !(std::abs(tensor.first) <= largestEpsilon) ||
      tensor.first == 0)
    return false;
  const std::vector<Read> behind = reads.readsOf(node.output(0));
  return !behind.empty() && std::all_of(behind.begin(), behind.end(), [&](const Read &next) {
    return isOp(*next.first, {"Sqrt", "Log", "Reciprocal"}) || (isOp(*next.first, {"Div"}) && next.second == 1) ||
           (isOp(*next.first, {"Pow"}) && next.second == 0 && takesRoot(*next.first, file));
  });
}

bool isBiasOfOneColumn(const ReadTensor &tensor, const GraphReads &reads, const OnnxFile &file) {
  return !tensor.file.shape.empty() && tensor.scheme != NameScheme::Constant && areAll(tensor, [&](const Read &read) {
    return isOp(*read.first, {"Add"}) && read.first->input_size() == 2 &&
           hasOneColumn(read.first->input(1 - read.second), reads, file);
  });
}

bool isSlope(const Read &read, const GraphReads &reads) {
  if (!isOp(*read.first, {"Mul"}) || read.first->input_size() != 2)
    return false;
  const onnx::NodeProto *below = reads.producerOf(read.first->input(1 - read.second));
  const onnx::NodeProto *negated =
      below && isOp(*below, {"Relu"}) && below->input_size() == 1 ? reads.producerOf(below->input(0)) : nullptr;
  return negated && isOp(*negated, {"Neg"});
}

bool isFactorOfSilu(const ReadTensor &tensor) {
  static const re2::RE2 beta("(.+/)?beta(_\\d+)?:\\d+");
  return tensor.file.shape.empty() && re2::RE2::FullMatch(tensor.name, beta);
}

bool isMask(const ReadTensor &tensor) {
  if (tensor.size < 2 || tensor.uniform)
    return false;
  const bool weighs = areAll(tensor, [](const Read &read) { return isOp(*read.first, {"Mul"}); });
  const bool hides = areAll(tensor, [](const Read &read) { return isOp(*read.first, {"Add", "Sub"}); });
  return (weighs && isGate(tensor.file)) || (hides && hidesScores(tensor.file));
}

bool isOfEstimator(const ReadTensor &tensor) {
  static const re2::RE2 estimator("(coef(ficient)?|intercepts?)\\d*");
  return re2::RE2::FullMatch(tensor.name, estimator);
}

bool isHalfBias(const ReadTensor &tensor) {
  return areAll(tensor,
                [](const Read &read) {
                  const onnx::NodeProto &node = *read.first;
                  return read.second == 3 &&
                         (isOp(node, {"LSTM", "RNN"}) ||
                          (isOp(node, {"GRU"}) && !Attributes(node).integer("linear_before_reset", 0)));
                }) &&
         endsInZeros(tensor.file);
}

bool isRepeated(const ReadTensor &tensor, int64_t batch) {
  if (batch < 2 || tensor.file.shape.size() < 2 || tensor.file.shape[0] != batch || tensor.scheme != NameScheme::Tool ||
      isWeight(tensor) || !hasEqualRows(tensor.file))
    return false;
  const auto isJoined = [](const Read &read) { return isOp(*read.first, {"Concat"}); };
  return std::any_of(tensor.reads.begin(), tensor.reads.end(), isJoined) ||
         (!tensor.uniform && !isMask(tensor) &&
          areAll(tensor, [](const Read &read) { return isOp(*read.first, {"Add", "Mul"}); }));
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// A float tensor of the file with what reads it, and what both say of its role. No MLIR in here.
#ifndef SLUICE_FRONTEND_READ_TENSOR_H
#define SLUICE_FRONTEND_READ_TENSOR_H

#include "frontend/GraphReads.h"

#include <algorithm>

namespace sluice {

/// A float32 tensor that nodes read, with what rules ask of it. Refers to the file.
struct ReadTensor {
  const std::string &name;
  const FileTensor &file;
  bool isConstantNode;
  int64_t size;
  double first; ///< its first element
  bool uniform; ///< of more than one element
  NameScheme scheme;
  std::vector<Read> reads; ///< after views
};

/// Whether all that reads the tensor, something at least, is so.
template <typename Predicate> bool areAll(const ReadTensor &tensor, const Predicate &predicate) {
  return !tensor.reads.empty() && std::all_of(tensor.reads.begin(), tensor.reads.end(), predicate);
}

bool isNorm(const onnx::NodeProto &node);
/// Whether a weight stands there: of convolutions, products, recurrent layers, normalizations, PRelu.
bool isWeightRead(const Read &read);
bool isWeight(const ReadTensor &tensor);

/// Whether the tensor is a small summand, or bound, of what a root, a logarithm or a quotient takes.
bool isEpsilon(const ReadTensor &tensor, const Read &read, const GraphReads &reads, const OnnxFile &file);
/// A bias of Linear(n, 1), or of a convolution with one channel of results, is a tensor of one number.
bool isBiasOfOneColumn(const ReadTensor &tensor, const GraphReads &reads, const OnnxFile &file);
/// Whether the tensor scales what is below zero there, as a PReLU does that is written out.
bool isSlope(const Read &read, const GraphReads &reads);
/// Whether the number is TensorFlow's constant beta of x * sigmoid(beta * x), which has the name of a norm's variable.
bool isFactorOfSilu(const ReadTensor &tensor);
/// Zeros and ones that are factors, zeros and a large negative number that are summands: what weighs or hides elements.
/// No module begins with such parameters.
bool isMask(const ReadTensor &tensor);
/// Whether skl2onnx calls tensors of linear models and perceptrons so; others are of steps before them, or numbers.
bool isOfEstimator(const ReadTensor &tensor);
/// A recurrent layer's bias that may stand for one of TensorFlow's: its cells have one, but for a GRU that resets after
/// the product, where ONNX's have two. The second half of each row is zero.
bool isHalfBias(const ReadTensor &tensor);
/// Whether a tensor that a tool made has a row for each of the batch's samples, all the same, as folding leaves an
/// expanded class token. Zeros may be initial states as well, but where they are put beside activations.
bool isRepeated(const ReadTensor &tensor, int64_t batch);

} // namespace sluice

#endif

// SPDX-License-Identifier: Apache-2.0
// Which value the loss reads, what its target looks like, what the functions return.
#include "frontend/LossAttachment.h"

#include "frontend/ImportNode.h"
#include "frontend/Predicted.h"
#include "ir/TensorName.h"

#include <algorithm>
#include <onnx/onnx_pb.h>

using namespace mlir;

namespace sluice {
namespace {

/// Logits [N,K,1,1] are class scores of whole samples: their targets are [N].
Value squeezed(OpBuilder &builder, Location loc, Value x) {
  auto shape = shapeOf(x);
  if (shape.size() <= 2 || llvm::any_of(shape.drop_front(2), [](int64_t extent) { return extent != 1; }))
    return x;
  auto type = RankedTensorType::get(shape.take_front(2), typeOf(x).getElementType());
  return train::ReshapeOp::create(builder, loc, type, x);
}

/// The dimension of classes; -1 for losses without.
int64_t classDimension(AttachedLoss loss, int64_t rank) {
  return loss == AttachedLoss::SoftmaxCrossEntropy ? 1 : loss == AttachedLoss::TokenCrossEntropy ? rank - 1 : -1;
}

/// With the samples in the first dimension, which `batchDim` counts as GraphInput's does.
Value batchFirst(OpBuilder &builder, Value x, int64_t batchDim) {
  SmallVector<int64_t> shape(shapeOf(x));
  Type element = typeOf(x).getElementType();
  if (batchDim == 0)
    return x;
  if (batchDim == TrainingSpec::noBatch) {
    shape.insert(shape.begin(), 1);
    return train::ReshapeOp::create(builder, x.getLoc(), RankedTensorType::get(shape, element), x);
  }
  std::rotate(shape.begin(), shape.begin() + batchDim, shape.begin() + batchDim + 1);
  return train::TransposeOp::create(builder, x.getLoc(), RankedTensorType::get(shape, element), x,
                                    batchToFront(shape.size(), batchDim));
}

/// The value whose softmax or sigmoid the loss takes itself. Its samples are not in the first dimension yet.
Value absorbed(Value output, AttachedLoss loss, int64_t batchDim) {
  const int64_t rank = typeOf(output).getRank() + (batchDim == TrainingSpec::noBatch ? 1 : 0);
  int64_t classes = classDimension(loss, rank);
  if (classes >= 0 && batchDim == TrainingSpec::noBatch)
    --classes;
  else if (classes >= 0)
    classes = batchToFront(rank, batchDim)[static_cast<size_t>(std::min(classes, rank - 1))];
  if (auto softmax = output.getDefiningOp<train::SoftmaxOp>();
      softmax && static_cast<int64_t>(softmax.getAxis()) == classes)
    return softmax.getX();
  if (auto sigmoid = output.getDefiningOp<train::SigmoidOp>(); sigmoid && loss == AttachedLoss::BceWithLogits)
    return sigmoid.getX();
  return output;
}

bool poolsInCeilMode(const OnnxGraph &graph) {
  return llvm::any_of(graph.nodes, [](const onnx::NodeProto *node) {
    return llvm::any_of(node->attribute(),
                        [](const onnx::AttributeProto &a) { return a.name() == "ceil_mode" && a.i() != 0; });
  });
}

/// Declared and computed shape of the output may differ only where --batch replaced the file's batch, and in rows and
/// columns after a ceil_mode: PyTorch's exporter counts last windows that begin in the padding after the image,
/// PyTorch leaves them out, and so do we.
Status checkDeclared(const OnnxGraph &graph, ArrayRef<int64_t> shape) {
  if (!graph.outputDeclared)
    return Success{};
  const size_t certain = shape.size() == 4 && poolsInCeilMode(graph) ? 2 : shape.size();
  bool same = graph.outputShape.size() == shape.size();
  for (size_t i = 0; same && i < certain; ++i)
    same = graph.outputShape[i] < 1 || graph.outputShape[i] == shape[i] || graph.replacedBatch;
  if (same)
    return Success{};
  return Error{"output '" + graph.output + "' is declared as " + shapeText(graph.outputShape) +
               " but the graph computes " + shapeText(shape.vec())};
}

Value addTarget(FunctionImport &state, func::FuncOp function, Value x) {
  Builder &builder = state.builder;
  SmallVector<int64_t> shape(shapeOf(x));
  Type element = builder.getF32Type();
  if (int64_t classes = classDimension(state.spec.loss, shape.size()); classes >= 0) {
    shape.erase(shape.begin() + classes);
    element = builder.getI64Type();
  }
  unsigned index = function.getNumArguments();
  auto attributes = builder.getDictionaryAttr(builder.getNamedAttr("train.name", builder.getStringAttr("target")));
  (void)function.insertArgument(index, RankedTensorType::get(shape, element), attributes,
                                NameLoc::get(builder.getStringAttr("target")));
  return function.getArgument(index);
}

/// [batch, ..., classes] and [batch, ...] as one row and one target for each token.
void flattenTokens(OpBuilder &b, Location loc, Value &x, Value &target) {
  const int64_t classes = shapeOf(x).back(), tokens = typeOf(target).getNumElements();
  x = train::ReshapeOp::create(b, loc, RankedTensorType::get({tokens, classes}, typeOf(x).getElementType()), x);
  target = train::ReshapeOp::create(b, loc, RankedTensorType::get({tokens}, b.getI64Type()), target);
}

/// A cross-entropy of [N,K,...] whose classes have weights, as ONNX's own loss composes it; null after state.error.
Value weighCrossEntropy(FunctionImport &state, Value x, Value target) {
  constexpr char scores[] = "loss/scores:", labels[] = "loss/target:", weights[] = "loss/class-weights:";
  onnx::NodeProto proto; // no name that a model could have
  proto.set_op_type("SoftmaxCrossEntropyLoss");
  proto.set_name("loss");
  for (const char *input : {scores, labels, weights})
    proto.add_input(input);
  proto.add_output("loss:");
  if (state.spec.ignoreIndex) {
    onnx::AttributeProto &ignored = *proto.add_attribute();
    ignored.set_name("ignore_index");
    ignored.set_type(onnx::AttributeProto::INT);
    ignored.set_i(*state.spec.ignoreIndex);
  }
  state.values[scores] = x;
  state.values[labels] = target;
  HostTensor &known = state.hosts[weights];
  known.integral = false;
  known.floats = state.spec.classWeights;
  known.shape = {static_cast<int64_t>(known.floats.size())};
  NodeImport node(state, proto);
  return succeeded(nodeImporters().at(proto.op_type())(node)) ? state.values.lookup(proto.output(0)) : Value();
}

/// The loss of the spec, which takes tokens as rows of scores; null after state.error.
Value createLoss(FunctionImport &state, Location loc, Value &x, Value &target) {
  auto type = RankedTensorType::get({}, state.builder.getF32Type());
  const std::optional<int64_t> &index = state.spec.ignoreIndex;
  IntegerAttr ignored = index ? state.builder.getI64IntegerAttr(*index) : IntegerAttr();
  switch (state.spec.loss) {
  case AttachedLoss::TokenCrossEntropy:
    if (shapeOf(x).size() > 2)
      flattenTokens(state.builder, loc, x, target);
    [[fallthrough]];
  case AttachedLoss::SoftmaxCrossEntropy:
    if (!state.spec.classWeights.empty())
      return weighCrossEntropy(state, x, target);
    return train::SoftmaxCrossEntropyOp::create(state.builder, loc, type, x, target, ignored);
  case AttachedLoss::Mse:
    return train::MseOp::create(state.builder, loc, type, x, target);
  case AttachedLoss::BceWithLogits:
    return train::BceWithLogitsOp::create(state.builder, loc, type, x, target);
  case AttachedLoss::None:
    return {};
  }
  return {};
}

/// What right answers are counted of: scores and classes; null: nothing.
struct Answers {
  Value scores, classes;

  static Answers of(Value loss) {
    auto entropy = loss.getDefiningOp<train::SoftmaxCrossEntropyOp>();
    return entropy ? Answers{entropy.getX(), entropy.getTarget()} : Answers{};
  }
};

/// `scores`: what @evaluate returns besides, for metrics and predictions; null: nothing.
void returnResults(FunctionImport &state, func::FuncOp function, Value loss, Answers answers, Value scores) {
  SmallVector<Value> results = {loss};
  if (answers.scores && !state.training) {
    auto type = RankedTensorType::get({}, state.builder.getI64Type());
    results.push_back(
        train::CountCorrectOp::create(state.builder, loss.getLoc(), type, answers.scores, answers.classes));
  }
  if (scores && !state.training)
    results.push_back(scores);
  func::ReturnOp::create(state.builder, loss.getLoc(), results);
  SmallVector<Type> types;
  for (Value value : results)
    types.push_back(value.getType());
  function.setType(state.builder.getFunctionType(function.getArgumentTypes(), types));
}

/// Integers and truth values have no gradient, whatever loss stands after them.
Status checkReal(const FunctionImport &state, Value output, const std::string &what) {
  if (typeOf(output).getElementType().isF32() && !state.integral.contains(state.graph.output))
    return Success{};
  std::string others;
  for (const std::string &other : state.graph.otherOutputs)
    others += (others.empty() ? " of '" : ", '") + other + "'";
  return Error{what + " consists of integers or truth values, through which no gradient reaches a parameter; choose " +
               "another value by --output=NAME" + others};
}

/// Why a loss of this kind cannot stand after `x`, as importers say it, or success.
Status checkScores(const TrainingSpec &spec, const OnnxGraph &graph, Value x, const std::string &what) {
  const std::string found = what + " has shape " + shapeText(shapeOf(x).vec());
  const int64_t rank = shapeOf(x).size(), classes = classDimension(spec.loss, rank);
  if (classes >= 0 && rank < 2)
    return Error{found + " but " + toString(spec.loss) + " needs " +
                 (spec.loss == AttachedLoss::SoftmaxCrossEntropy ? "[batch, classes, ...]" : "[batch, ..., classes]") +
                 "; choose another --loss"};
  if (rank == 0 || shapeOf(x)[0] != graph.batch)
    return Error{found + ", which does not begin with the batch of " + std::to_string(graph.batch) +
                 ", so that there is no target for each sample; --batch-dim " + graph.output +
                 "=K says where it has one"};
  if (const size_t weights = spec.classWeights.size(); weights && classes < 0)
    return Error{"--class-weights goes with cross-entropies, not with --loss=" + toString(spec.loss)};
  else if (weights && static_cast<int64_t>(weights) != shapeOf(x)[classes])
    return Error{"--class-weights has " + std::to_string(weights) + " numbers, " + what + " has " +
                 std::to_string(shapeOf(x)[classes]) + " classes"};
  if (!spec.ignoreIndex)
    return Success{};
  if (classes < 0)
    return Error{"--ignore-index=" + std::to_string(*spec.ignoreIndex) +
                 " goes with cross-entropies, not with --loss=" + toString(spec.loss)};
  if (*spec.ignoreIndex >= 0 && *spec.ignoreIndex < shapeOf(x)[classes])
    return Error{"--ignore-index=" + std::to_string(*spec.ignoreIndex) + " is one of the " +
                 std::to_string(shapeOf(x)[classes]) + " classes of " + what + "; choose another"};
  return Success{};
}

/// The model's own loss is what it gives first.
Status endInOwnLoss(FunctionImport &state, func::FuncOp function, Value output, const std::string &what) {
  for (const auto &[flag, given] : {std::pair{"--ignore-index", state.spec.ignoreIndex.has_value()},
                                    {"--class-weights", !state.spec.classWeights.empty()}})
    if (given)
      return Error{std::string(flag) + " goes with an attached loss; the model's own says itself what counts"};
  if (typeOf(output).getNumElements() != 1 || !typeOf(output).getElementType().isF32())
    return Error{what + " of shape " + shapeText(shapeOf(output).vec()) +
                 " is not a loss; with --loss=none the graph must end in one number, else choose --loss"};
  const Answers answers = Answers::of(output);
  const Value scores = predictedBesides(state, output);
  if (!state.training)
    notePrediction(function, scores, targetOfOwnLoss(function, output, scores));
  if (!isLossOp(output.getDefiningOp()))
    function->getParentOfType<ModuleOp>()->setAttr(train::otherMeanAttribute, state.builder.getUnitAttr());
  if (typeOf(output).getRank())
    output = train::ReshapeOp::create(state.builder, output.getLoc(),
                                      RankedTensorType::get({}, state.builder.getF32Type()), output);
  returnResults(state, function, output, answers, scores);
  return Success{};
}

} // namespace

Status attachLoss(FunctionImport &state, func::FuncOp function) {
  const OnnxGraph &graph = state.graph;
  std::string what = "output '" + graph.output + "'";
  Value output = state.values.lookup(graph.output);
  if (!output || isa<BlockArgument>(output))
    return Error{what + " is a constant or an input; there is nothing to train"};
  if (Status declared = checkDeclared(graph, shapeOf(output)); !declared)
    return declared;
  if (Status real = checkReal(state, output, what); !real)
    return real;
  if (state.spec.loss == AttachedLoss::None)
    return endInOwnLoss(state, function, output, what);
  Location loc = NameLoc::get(state.builder.getStringAttr("loss"));
  if (graph.outputBatchDim >= typeOf(output).getRank())
    return Error{"--batch-dim " + graph.output + "=" + std::to_string(graph.outputBatchDim) + ": " + what +
                 " has shape " + shapeText(shapeOf(output).vec())};
  Value x = absorbed(output, state.spec.loss, graph.outputBatchDim);
  const bool absorbs = x != output;
  x = batchFirst(state.builder, x, graph.outputBatchDim);
  output = absorbs ? batchFirst(state.builder, output, graph.outputBatchDim) : x;
  if (state.spec.loss == AttachedLoss::SoftmaxCrossEntropy)
    x = squeezed(state.builder, loc, x);
  if (Status scores = checkScores(state.spec, graph, x, what); !scores)
    return scores;
  const Value target = addTarget(state, function, x);
  Value compared = target; // both as the loss reads them
  Value loss = createLoss(state, loc, x, compared);
  if (!loss)
    return Error{what + ": " + (state.error.empty() ? "its loss cannot be made" : state.error)};
  const bool ofClasses = classDimension(state.spec.loss, shapeOf(x).size()) >= 0;
  Answers answers = Answers::of(loss);
  if (!answers.scores && ofClasses) { // a composition
    answers = {x, compared};
    function->getParentOfType<ModuleOp>()->setAttr(train::classWeightsAttribute, state.builder.getUnitAttr());
  }
  if (!state.training)
    notePrediction(function, output, target);
  // Predictions are the model's own, with the softmax or sigmoid that the loss takes over.
  returnResults(state, function, loss, answers, output);
  return Success{};
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Which values losses read, what their targets look like, what the functions return.
#include "frontend/LossAttachment.h"

#include "frontend/AttachedLosses.h"
#include "frontend/Predicted.h"
#include "ir/TensorName.h"
#include "runtime/Numbers.h"

#include <algorithm>
#include <onnx/onnx_pb.h>

using namespace mlir;

namespace sluice {
namespace {

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
Status checkDeclared(const OnnxGraph &graph, const GraphOutput &output, ArrayRef<int64_t> shape) {
  if (!output.isDeclared)
    return Success{};
  const size_t certain = shape.size() == 4 && poolsInCeilMode(graph) ? 2 : shape.size();
  bool same = output.shape.size() == shape.size();
  for (size_t i = 0; same && i < certain; ++i)
    same = output.shape[i] < 1 || output.shape[i] == shape[i] || graph.replacedBatch;
  if (same)
    return Success{};
  return Error{"output '" + output.name + "' is declared as " + shapeText(output.shape) + " but the graph computes " +
               shapeText(shape.vec())};
}

/// What right answers are counted of: scores and classes; null: nothing.
struct Answers {
  Value scores, classes;

  static Answers of(Value loss) {
    auto entropy = loss.getDefiningOp<train::SoftmaxCrossEntropyOp>();
    return entropy ? Answers{entropy.getX(), entropy.getTarget()} : Answers{};
  }
};

/// What both functions return, in this order.
struct Returned {
  Value loss;
  Answers answers;
  SmallVector<Value> parts, kept; ///< losses in the sum; outputs, of @evaluate alone
};

/// @step returns the loss and its parts, @evaluate the count of right answers and the kept outputs, too; passes and
/// programs find results by this order alone.
void returnResults(FunctionImport &state, func::FuncOp function, const Returned &returned) {
  SmallVector<Value> results = {returned.loss};
  const Answers &answers = returned.answers;
  if (answers.scores && !state.training) {
    auto type = RankedTensorType::get({}, state.builder.getI64Type());
    results.push_back(train::CountCorrectOp::create(state.builder, returned.loss.getLoc(), type, answers.scores,
                                                    answers.classes, IntegerAttr()));
  }
  llvm::append_range(results, returned.parts);
  if (!state.training)
    llvm::append_range(results, returned.kept);
  func::ReturnOp::create(state.builder, returned.loss.getLoc(), results);
  SmallVector<Type> types;
  for (Value value : results)
    types.push_back(value.getType());
  function.setType(state.builder.getFunctionType(function.getArgumentTypes(), types));
}

/// Integers and truth values have no gradient, whatever loss stands after them.
Status checkReal(const FunctionImport &state, const std::string &name, Value output, const std::string &what) {
  if (typeOf(output).getElementType().isF32() && !state.integral.contains(name))
    return Success{};
  std::string others;
  for (const std::string &other : state.graph.otherOutputs)
    others += (others.empty() ? " of '" : ", '") + other + "'";
  return Error{what + " consists of integers or truth values, through which no gradient reaches a parameter; choose " +
               "another value by --output=NAME" + others};
}

/// The value of a trained output, which something computes, as the file declares it.
Result<Value> computedOutput(const FunctionImport &state, const GraphOutput &named) {
  const std::string what = "output '" + named.name + "'";
  Value output = state.values.lookup(named.name);
  if (!output || isa<BlockArgument>(output))
    return Error{what + " is a constant or an input; there is nothing to train"};
  if (Status declared = checkDeclared(state.graph, named, shapeOf(output)); !declared)
    return declared.takeError();
  if (Status real = checkReal(state, named.name, output, what); !real)
    return real.takeError();
  return output;
}

/// The model's own loss is what it gives first.
Status endInOwnLoss(FunctionImport &state, func::FuncOp function) {
  const GraphOutput &named = state.graph.outputs[0];
  const std::string what = "output '" + named.name + "'";
  Result<Value> computed = computedOutput(state, named);
  if (!computed)
    return computed.takeError();
  Value output = *computed;
  for (const auto &[flag, given] : {std::pair{"--ignore-index", state.spec.ignoreIndex.has_value()},
                                    {"--class-weights", !state.spec.classWeights.empty()}})
    if (given)
      return Error{std::string(flag) + " goes with an attached loss; the model's own says itself what counts"};
  if (typeOf(output).getNumElements() != 1 || !typeOf(output).getElementType().isF32())
    return Error{what + " of shape " + shapeText(shapeOf(output).vec()) +
                 " is not a loss; with --loss=none the graph must end in one number, else choose --loss"};
  Returned returned{output, Answers::of(output), {}, {}};
  Predictions predictions(state, function);
  if (!state.training) {
    predictions.add(named.name, {}, toString(AttachedLoss::None));
    predictions.addBesidesOwnLoss(output);
  }
  if (!isLossOp(output.getDefiningOp()))
    function->getParentOfType<ModuleOp>()->setAttr(train::otherMeanAttribute, state.builder.getUnitAttr());
  if (typeOf(output).getRank())
    returned.loss = train::ReshapeOp::create(state.builder, output.getLoc(),
                                             RankedTensorType::get({}, state.builder.getF32Type()), output);
  returned.kept = predictions.note();
  returnResults(state, function, returned);
  return Success{};
}

/// The sum of weighted losses; the parts where there are several.
Value summed(OpBuilder &b, ArrayRef<OutputLoss> losses, ArrayRef<Value> parts) {
  Value sum;
  for (auto [loss, part] : llvm::zip(losses, parts)) {
    const Location loc = part.getLoc();
    const llvm::APFloat weight(static_cast<float>(loss.weight));
    Value term =
        weight.isExactlyValue(1) ? part : train::ScaleOp::create(b, loc, part.getType(), part, weight).getResult();
    sum = sum ? train::AddOp::create(b, loc, part.getType(), sum, term).getResult() : term;
  }
  return sum;
}

/// What classes weigh in losses, for who adds up batches.
void noteClassWeights(ModuleOp module, ArrayRef<OutputLoss> losses) {
  Builder b(module.getContext());
  SmallVector<Attribute> weights;
  for (const OutputLoss &loss : losses)
    weights.push_back(b.getDenseF32ArrayAttr(SmallVector<float>(loss.classWeights.begin(), loss.classWeights.end())));
  if (llvm::any_of(losses, [](const OutputLoss &loss) { return !loss.classWeights.empty(); }))
    module->setAttr(train::classWeightsAttribute, b.getArrayAttr(weights));
}

/// A loss alone, of weight 1, is the result itself. Otherwise the weighted sum is, and each loss becomes a result
/// beside it, for reports; right answers of several losses have no one count and are left out.
Status attachSeveral(FunctionImport &state, func::FuncOp function) {
  const std::vector<OutputLoss> losses = lossesOf(state.spec);
  const bool alone = losses.size() == 1 && losses[0].weight == 1;
  Returned returned;
  Predictions predictions(state, function);
  for (const OutputLoss &loss : losses) {
    const GraphOutput *named = loss.output.empty() ? &state.graph.outputs[0] : state.graph.output(loss.output);
    const std::string what = "output '" + named->name + "'";
    Result<Value> computed = computedOutput(state, *named);
    if (!computed)
      return computed.takeError();
    if (named->batchDim >= typeOf(*computed).getRank())
      return Error{"--batch-dim " + named->name + "=" + std::to_string(named->batchDim) + ": " + what + " has shape " +
                   shapeText(shapeOf(*computed).vec())};
    Value x = absorbed(*computed, loss.kind, named->batchDim);
    const bool absorbs = x != *computed;
    x = batchFirst(state.builder, x, named->batchDim);
    // Predictions are the model's own, with the softmax or sigmoid that the loss takes over.
    Value output = absorbs ? batchFirst(state.builder, *computed, named->batchDim) : x;
    Result<LossValues> made = createLoss(state, function, loss, *named, x);
    if (!made)
      return made.takeError();
    returned.parts.push_back(made->loss);
    if (alone)
      returned.answers = {made->scores, made->classes};
    if (!state.training)
      predictions.add(named->name, output, toString(loss.kind), made->target, loss.weight,
                      alone ? -1 : static_cast<int64_t>(returned.parts.size()) - 1);
  }
  noteClassWeights(function->getParentOfType<ModuleOp>(), losses);
  if (!state.training && state.spec.output.empty())
    predictions.addOthers({});
  returned.loss = summed(state.builder, losses, returned.parts);
  if (alone)
    returned.parts.clear();
  returned.kept = predictions.note();
  returnResults(state, function, returned);
  return Success{};
}

} // namespace

/// A value that is called as a number is meant before the output of that number.
Status nameOutputs(const OnnxFile &file, TrainingSpec &spec) {
  const auto &graph = file.model().graph();
  const auto isValue = [&](const std::string &name) {
    return llvm::any_of(graph.node(),
                        [&](const onnx::NodeProto &node) { return llvm::is_contained(node.output(), name); });
  };
  std::string names;
  for (const auto &output : graph.output())
    names += (names.empty() ? "'" : ", '") + output.name() + "'";
  std::vector<OutputLoss *> losses;
  for (OutputLoss &loss : spec.losses)
    losses.push_back(&loss);
  for (TurnRequest &turn : spec.turns)
    for (OutputLoss &loss : turn.losses)
      losses.push_back(&loss);
  for (OutputLoss *loss : losses) {
    int place = 0;
    if (!parseNumber(loss->output, place) || isValue(loss->output))
      continue;
    if (place < 0 || place >= graph.output_size())
      return Error{"--loss=" + loss->output + "=" + toString(loss->kind) +
                   " names an output by its place, from 0 on; the "
                   "model's outputs are " +
                   names};
    loss->output = graph.output(place).name();
  }
  return Success{};
}

Status attachLoss(FunctionImport &state, func::FuncOp function) {
  return endsInOwnLoss(state.spec) ? endInOwnLoss(state, function) : attachSeveral(state, function);
}

} // namespace sluice

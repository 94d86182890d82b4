// SPDX-License-Identifier: Apache-2.0
// Losses of the command line. Those of classes with weights are composed as ONNX's own loss is.
#include "frontend/AttachedLosses.h"

#include "frontend/ImportNode.h"
#include "frontend/NodeProtos.h"
#include "ir/TensorName.h"
#include "runtime/Printable.h"

using namespace mlir;

namespace sluice {

int64_t classDimension(AttachedLoss loss, int64_t rank) {
  if (loss == AttachedLoss::SoftmaxCrossEntropy)
    return 1;
  return loss == AttachedLoss::TokenCrossEntropy || loss == AttachedLoss::Ctc ? rank - 1 : -1;
}

namespace {

/// Logits [N,K,1,1] are class scores of whole samples: their targets are [N].
Value squeezed(OpBuilder &builder, Location loc, Value x) {
  auto shape = shapeOf(x);
  if (shape.size() <= 2 || llvm::any_of(shape.drop_front(2), [](int64_t extent) { return extent != 1; }))
    return x;
  auto type = RankedTensorType::get(shape.take_front(2), typeOf(x).getElementType());
  return train::ReshapeOp::create(builder, loc, type, x);
}

/// The flag or the option that says so, as messages name it.
std::string wordOf(const OutputLoss &loss, const char *name) {
  return "--loss=" + toString(loss.kind) + "," + name + "=";
}

/// Whether a class of the scores' own does not count, as the id that fills up sentences.
bool ignoresClass(const OutputLoss &loss, Value x) {
  const int64_t classes = classDimension(loss.kind, shapeOf(x).size());
  return loss.ignoreIndex && *loss.ignoreIndex >= 0 && *loss.ignoreIndex < shapeOf(x)[classes];
}

/// What else could be trained, for the end of a message.
std::string otherOutputs(const OnnxGraph &graph) {
  return graph.otherOutputs.empty() ? ""
                                    : "; the model has " + someOf(graph.otherOutputs) +
                                          ", too: --output=NAME, or --loss OUTPUT=NAME for each of several";
}

/// Targets of floats tell whole numbers apart up to 2^24.
Status checkIgnored(const OutputLoss &loss) {
  if (!loss.ignoreIndex || classDimension(loss.kind, 2) >= 0)
    return Success{};
  const std::string flag = "--ignore-index=" + std::to_string(*loss.ignoreIndex);
  if (loss.kind != AttachedLoss::BceWithLogits)
    return Error{flag + " goes with cross-entropies, ctc and bce-with-logits, not with --loss=" + toString(loss.kind)};
  if (isAnswer(*loss.ignoreIndex))
    return Error{flag + ": 0 and 1 are the answers of --loss=bce-with-logits; give targets that do not count another "
                        "number, as 255"};
  constexpr int64_t most = 1 << 24;
  if (*loss.ignoreIndex > most || *loss.ignoreIndex < -most)
    return Error{flag + " is no number that targets of 32-bit floats hold exactly; give one of up to 16777216"};
  return Success{};
}

/// Why a loss of this kind cannot stand after `x`, as importers say it, or success.
Status checkScores(const OutputLoss &loss, const OnnxGraph &graph, const GraphOutput &output, Value x) {
  const std::string what = "output '" + output.name + "'", found = what + " has shape " + shapeText(shapeOf(x).vec());
  const int64_t rank = shapeOf(x).size(), classes = classDimension(loss.kind, rank);
  const bool isCtc = loss.kind == AttachedLoss::Ctc;
  if ((classes >= 0 && rank < 2) || (isCtc && rank != 3))
    return Error{found + " but " + toString(loss.kind) + " needs " +
                 (loss.kind == AttachedLoss::SoftmaxCrossEntropy ? "[batch, classes, ...]"
                  : isCtc                                        ? "[batch, steps, classes]"
                                                                 : "[batch, ..., classes]") +
                 "; choose another --loss"};
  if (rank == 0 || shapeOf(x)[0] != graph.batch)
    return Error{found + ", which does not begin with the batch of " + std::to_string(graph.batch) +
                 ", so that there is no target for each sample; --batch-dim " + output.name +
                 "=K says where it has one"};
  if (const size_t weights = loss.classWeights.size(); weights && (classes < 0 || isCtc))
    return Error{"--class-weights goes with cross-entropies, not with --loss=" + toString(loss.kind) +
                 (loss.kind == AttachedLoss::BceWithLogits ? ", which has pos-weight=W0,W1,... behind its name" : "")};
  else if (weights && static_cast<int64_t>(weights) != shapeOf(x)[classes])
    return Error{"--class-weights has " + std::to_string(weights) + " numbers, " + what + " has " +
                 std::to_string(shapeOf(x)[classes]) + " classes"};
  if (Status ignored = checkIgnored(loss); !ignored)
    return ignored;
  if (classes >= 0 && shapeOf(x)[classes] == 1)
    return Error{found + ", a single class, whose " + toString(loss.kind) +
                 " is always 0: choose --loss=mse for a number, --loss=bce-with-logits for yes or no" +
                 otherOutputs(graph)};
  if (!isCtc)
    return Success{};
  if (ignoresClass(loss, x) && *loss.ignoreIndex != loss.ctc.blank)
    return Error{"--ignore-index=" + std::to_string(*loss.ignoreIndex) + " is one of the " +
                 std::to_string(shapeOf(x)[classes]) + " classes of " + what + ", which would end each target of ctc"};
  if (loss.ctc.length < 1)
    return Error{"--loss=ctc needs length=S, the most labels of a target: data hold them as [samples, S], shorter ones "
                 "filled up with the blank or --ignore-index"};
  if (loss.ctc.blank >= shapeOf(x)[classes])
    return Error{wordOf(loss, "blank") + std::to_string(loss.ctc.blank) + " is none of the " +
                 std::to_string(shapeOf(x)[classes]) + " classes of " + what};
  return Success{};
}

/// The argument of this name, a new one where there is none.
Result<Value> argumentOf(FunctionImport &state, func::FuncOp function, const std::string &name, RankedTensorType type) {
  for (BlockArgument argument : function.getArguments()) {
    auto known = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.name");
    if (!known || known.getValue() != name)
      continue;
    if (argument.getType() != type)
      return Error{"a loss compares with '" + name + "' of shape " + shapeText(shapeOf(argument).vec()) +
                   (typeOf(argument).getElementType().isF32() ? " (numbers)" : " (integers)") + ", but needs " +
                   shapeText(type.getShape().vec()) + (type.getElementType().isF32() ? " of numbers" : " of integers") +
                   "; target=NAME in --loss names another"};
    return Value(argument);
  }
  Builder &builder = state.builder;
  const unsigned index = function.getNumArguments();
  auto attributes = builder.getDictionaryAttr(builder.getNamedAttr("train.name", builder.getStringAttr(name)));
  (void)function.insertArgument(index, type, attributes, NameLoc::get(builder.getStringAttr(name)));
  return Value(function.getArgument(index));
}

/// The argument that holds the targets of `x`: of losses over classes the shape of `x` without the classes' dimension,
/// of integers; [batch, length] of ctc; of all others the shape of `x`, of floats.
Result<Value> targetOf(FunctionImport &state, func::FuncOp function, const OutputLoss &loss, Value x) {
  SmallVector<int64_t> shape(shapeOf(x));
  Type element = state.builder.getF32Type();
  if (const int64_t classes = classDimension(loss.kind, shape.size()); classes >= 0) {
    shape.erase(shape.begin() + classes);
    element = state.builder.getI64Type();
  }
  if (loss.kind == AttachedLoss::Ctc)
    shape[1] = loss.ctc.length;
  return argumentOf(state, function, loss.target, RankedTensorType::get(shape, element));
}

/// [batch, ..., classes] and [batch, ...] as one row and one target for each token.
void flattenTokens(OpBuilder &b, Location loc, Value &x, Value &target) {
  const int64_t classes = shapeOf(x).back(), tokens = typeOf(target).getNumElements();
  x = train::ReshapeOp::create(b, loc, RankedTensorType::get({tokens, classes}, typeOf(x).getElementType()), x);
  target = train::ReshapeOp::create(b, loc, RankedTensorType::get({tokens}, b.getI64Type()), target);
}

/// A cross-entropy of [N,K,...] whose classes have weights, as ONNX's own loss composes it; null after state.error.
Value weighCrossEntropy(FunctionImport &state, const OutputLoss &loss, Value x, Value target) {
  // No names that a model could have.
  const std::string own = loss.output + "/" + loss.target,
                    scores = own + "/scores:", labels = own + "/target:", weights = own + "/class-weights:";
  onnx::NodeProto proto = makeNode("SoftmaxCrossEntropyLoss", {scores, labels, weights});
  proto.set_name("loss");
  proto.add_output(own + "/loss:");
  if (loss.ignoreIndex)
    setInteger(proto, "ignore_index", *loss.ignoreIndex);
  state.values[scores] = x;
  state.values[labels] = target;
  HostTensor &known = state.hosts[weights];
  known.integral = false;
  known.floats = loss.classWeights;
  known.shape = {static_cast<int64_t>(known.floats.size())};
  NodeImport node(state, proto);
  return succeeded(nodeImporters().at(proto.op_type())(node)) ? state.values.lookup(proto.output(0)) : Value();
}

/// The shape in which weights of the answer yes stand beside `x`: in dimension 1 or in the last one, whichever has as
/// many classes, or one for all.
Result<std::vector<int64_t>> shapeOfPositives(const OutputLoss &loss, const std::string &output, ArrayRef<int64_t> x) {
  const auto count = static_cast<int64_t>(loss.posWeights.size());
  const size_t last = x.size() - 1;
  std::vector<int64_t> shape(x.size(), 1);
  const bool second = last > 0 && x[1] == count, rearmost = last > 1 && x[last] == count;
  if (count > 1 && second == rearmost)
    return Error{wordOf(loss, "pos-weight") + " has " + std::to_string(count) + " numbers, output '" + output +
                 "' has shape " + shapeText(x.vec()) +
                 (second ? ", as many in dimension 1 as in the last, so that nobody knows which has the classes"
                         : ", whose dimension 1 or last has the classes") +
                 "; give one number for each class, or one for all"};
  if (count > 1)
    shape[second ? 1 : last] = count;
  return shape;
}

/// Weights of the answer yes become a constant of the module as those of a node do.
Result<Value> createBce(FunctionImport &state, func::FuncOp function, const OutputLoss &loss, const std::string &output,
                        Location loc, Value x, Value target) {
  OpBuilder &b = state.builder;
  Value positives;
  if (!loss.posWeights.empty()) {
    Result<std::vector<int64_t>> shape = shapeOfPositives(loss, output, shapeOf(x));
    if (!shape)
      return shape.takeError();
    onnx::NodeProto proto; // with a result that no model can have
    proto.add_output(loss.output + "/" + loss.target + "/loss:");
    HostTensor weights;
    weights.integral = false;
    weights.floats = loss.posWeights;
    weights.shape = *shape;
    positives = NodeImport(state, proto).table(std::move(weights), "pos-weight");
    if (!positives)
      return Error{"output '" + output + "': " + state.error};
  }
  if (loss.ignoreIndex) // any number lies in no range
    train::addIdLimit(function->getParentOfType<ModuleOp>(), loss.target, {0, 0, loss.ignoreIndex});
  IntegerAttr ignored = loss.ignoreIndex ? b.getI64IntegerAttr(*loss.ignoreIndex) : IntegerAttr();
  auto type = RankedTensorType::get({}, b.getF32Type());
  return Value(train::BceWithLogitsOp::create(b, loc, type, x, target, positives, ignored).getLoss());
}

/// What reports call a loss.
Location locationOf(FunctionImport &state, const GraphOutput &output) {
  const bool alone = state.spec.losses.size() <= 1;
  return NameLoc::get(state.builder.getStringAttr(alone ? "loss" : "loss/" + output.name));
}

/// Lengths of inputs and targets are arguments [batch] where the flag names them, in this order. Programs compare them
/// with the steps of `x` and the labels of a target when they read data, for kernels count along both.
Result<Value> createCtc(FunctionImport &state, func::FuncOp function, const OutputLoss &loss, Location loc, Value x,
                        Value target) {
  OpBuilder &b = state.builder;
  SmallVector<Value> lengths;
  const std::pair<const std::string *, int64_t> named[] = {{&loss.ctc.inputLengths, shapeOf(x)[1]},
                                                           {&loss.ctc.targetLengths, loss.ctc.length}};
  for (const auto &[name, most] : named) {
    if (name->empty())
      continue;
    Result<Value> argument =
        argumentOf(state, function, *name, RankedTensorType::get(shapeOf(x).take_front(), b.getI64Type()));
    if (!argument)
      return argument;
    train::addIdLimit(function->getParentOfType<ModuleOp>(), *name, {0, most + 1});
    lengths.push_back(*argument);
  }
  IntegerAttr ignored = loss.ignoreIndex ? b.getI64IntegerAttr(*loss.ignoreIndex) : IntegerAttr();
  auto op = train::CtcLossOp::create(b, loc, RankedTensorType::get({}, b.getF32Type()), x, target, lengths,
                                     b.getI64IntegerAttr(loss.ctc.blank), ignored,
                                     loss.ctc.inputLengths.empty() ? UnitAttr() : b.getUnitAttr(),
                                     loss.ctc.zeroInfinity ? b.getUnitAttr() : UnitAttr());
  return Value(op.getLoss());
}

} // namespace

/// The order matters: dimensions of 1 go first, since checks and the target look at the rank; checks come before the
/// target, which takes for granted that there is a dimension of classes; tokens become rows only after the target has
/// its shape, which is that of the data.
Result<LossValues> createLoss(FunctionImport &state, func::FuncOp function, const OutputLoss &loss,
                              const GraphOutput &output, Value x) {
  OpBuilder &b = state.builder;
  const Location loc = locationOf(state, output);
  if (loss.kind == AttachedLoss::SoftmaxCrossEntropy)
    x = squeezed(b, loc, x);
  if (Status scores = checkScores(loss, state.graph, output, x); !scores)
    return scores.takeError();
  Result<Value> argument = targetOf(state, function, loss, x);
  if (!argument)
    return argument.takeError();
  const Value target = *argument;
  if (loss.kind == AttachedLoss::Ctc) {
    Result<Value> made = createCtc(state, function, loss, loc, x, target);
    return made ? Result<LossValues>(LossValues{*made, target, {}, {}}) : made.takeError();
  }
  auto type = RankedTensorType::get({}, b.getF32Type());
  if (loss.kind == AttachedLoss::Mse)
    return LossValues{train::MseOp::create(b, loc, type, x, target), target, {}, {}};
  if (loss.kind == AttachedLoss::BceWithLogits) {
    Result<Value> made = createBce(state, function, loss, output.name, loc, x, target);
    return made ? Result<LossValues>(LossValues{*made, target, {}, {}}) : made.takeError();
  }
  IntegerAttr ignored = loss.ignoreIndex ? b.getI64IntegerAttr(*loss.ignoreIndex) : IntegerAttr();
  Value classes = target;
  if (loss.kind == AttachedLoss::TokenCrossEntropy && shapeOf(x).size() > 2)
    flattenTokens(b, loc, x, classes);
  // The device counts right answers of all places: where a class stands for none, evaluation counts them instead.
  const Value scores = ignoresClass(loss, x) ? Value() : x;
  if (loss.classWeights.empty())
    return LossValues{
        train::SoftmaxCrossEntropyOp::create(b, loc, type, x, classes, ignored, IntegerAttr(), IntegerAttr()), target,
        scores, classes};
  Value composed = weighCrossEntropy(state, loss, x, classes);
  if (!composed)
    return Error{"output '" + output.name + "': " + (state.error.empty() ? "its loss cannot be made" : state.error)};
  return LossValues{composed, target, scores, classes};
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// Random numbers as exporters write stochastic depth and dropout out: uniform draws that are compared with a number,
// converted, divided by the probability, and multiplied with an activation. All of that is one train.dropout.
#include "frontend/Compositions.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace sluice {
namespace {

RandomDraw *drawAt(NodeImport &node, int input) {
  auto &draws = node.shared().draws;
  auto found = node.has(input) ? draws.find(node.proto().input(input)) : draws.end();
  return found == draws.end() ? nullptr : &found->second;
}

LogicalResult draws(NodeImport &node, RandomDraw draw) {
  node.shared().draws[node.proto().output(0)] = std::move(draw);
  return success();
}

/// Of a tensor that the node takes for its shape alone.
std::optional<std::vector<int64_t>> shapeAt(NodeImport &node, int input) {
  if (const RandomDraw *draw = drawAt(node, input))
    return draw->shape;
  if (const HostTensor *known = node.known(input))
    return known->shape;
  if (const Source *source = node.source(input))
    return source->shape;
  Value x = node.tensor(input);
  return x ? std::optional(shapeOf(x).vec()) : std::nullopt;
}

LogicalResult importUniform(NodeImport &node) {
  const double low = node.attributes.number("low", 0.0f), high = node.attributes.number("high", 1.0f);
  if (low != 0 || high != 1)
    return node.error("only draws from [0, 1) are supported, not from [" + std::to_string(low) + ", " +
                      std::to_string(high) + ")");
  const bool like = node.proto().op_type() == "RandomUniformLike";
  auto shape = like ? shapeAt(node, 0) : std::optional(node.attributes.integers("shape"));
  return shape ? draws(node, {*shape, node.shared().dropouts++, {}}) : failure();
}

LogicalResult importBernoulli(NodeImport &node) {
  const HostTensor *keep = node.constant(0, "the probability");
  if (!keep)
    return failure();
  for (int64_t i = 1; i < keep->size(); ++i)
    if (keep->number(i) != keep->number(0))
      return node.error("only one probability for all elements is supported");
  if (keep->size() == 0)
    return node.error("draws nothing");
  if (const double p = keep->number(0); !(p >= 0 && p <= 1))
    return node.error("a probability is " + std::to_string(p) + ", must be from 0 to 1");
  return draws(node, {keep->shape, node.shared().dropouts++, keep->number(0)});
}

/// The draw is below, or above, a single number with the probability that results.
LogicalResult compare(NodeImport &node, RandomDraw &draw, bool drawIsFirst) {
  const HostTensor *bound = node.known(drawIsFirst ? 1 : 0);
  if (draw.keep || draw.isCompared || !bound || bound->size() != 1 || bound->shape.size() > draw.shape.size() ||
      std::isnan(bound->number(0)))
    return node.error("random numbers can only be compared once, with one number that is known at compile time");
  draw.isCompared = true;
  RandomDraw mask = draw;
  const bool less = StringRef(node.proto().op_type()).starts_with("Less");
  const double below = std::clamp(bound->number(0), 0.0, 1.0);
  mask.keep = less == drawIsFirst ? below : 1 - below;
  return draws(node, std::move(mask));
}

/// p + draw, which only rounding down makes a mask.
LogicalResult shift(NodeImport &node, RandomDraw &draw, int other) {
  const HostTensor *number = node.known(other);
  if (draw.keep || draw.isCompared || draw.added || !number || number->size() != 1 ||
      number->shape.size() > draw.shape.size() || !(number->number(0) > 0 && number->number(0) <= 1))
    return node.error("to random numbers only one probability that is known at compile time can be added, once");
  draw.isCompared = true;
  RandomDraw sum = draw;
  sum.added = number->number(0);
  return draws(node, std::move(sum));
}

/// floor(p + draw) is 1 with the probability p, else 0.
LogicalResult roundDown(NodeImport &node, RandomDraw draw) {
  if (!draw.added || draw.keep)
    return node.error("random numbers can only be rounded down once a probability is added to them");
  draw.keep = draw.added;
  draw.isRounded = true;
  return draws(node, std::move(draw));
}

/// How many elements of x, one behind the other, share an element of the draw; 0 where these are not so. A batch that
/// --batch has replaced is replaced in the draw as well.
int64_t groupOf(ArrayRef<int64_t> x, std::vector<int64_t> draw, int64_t replacedBatch) {
  if (draw.size() > x.size())
    return 0;
  if (replacedBatch && draw.size() == x.size() && !x.empty() && draw[0] == replacedBatch)
    draw[0] = x[0];
  draw.insert(draw.begin(), x.size() - draw.size(), 1);
  size_t own = x.size(); // dimensions that have numbers of their own
  while (own > 0 && draw[own - 1] == 1)
    --own;
  if (!std::equal(draw.begin(), draw.begin() + static_cast<int64_t>(own), x.begin()))
    return 0;
  int64_t group = 1;
  for (int64_t extent : x.drop_front(own))
    group *= extent;
  return group;
}

/// x * draw, which is dropout.
LogicalResult drop(NodeImport &node, int input, const RandomDraw &draw) {
  Value x = node.tensor(input);
  if (!x)
    return failure();
  // An export has the activation in place of the product, and evaluation the mean: both are x, or x times the mean.
  const bool isMeanOne = draw.keep && std::abs(draw.value * *draw.keep - 1) <= 1e-4;
  const bool isMeanKeep = draw.isRounded && draw.value == 1;
  if ((!isMeanOne && !isMeanKeep) || node.droppedInput() != input)
    return node.error("random numbers can only multiply an activation as dropout does: compared with a probability and "
                      "divided by it");
  const int64_t group = groupOf(shapeOf(x), draw.shape, node.graph().replacedBatch);
  if (!group)
    return node.error("a random tensor of " + shapeText(draw.shape) + " cannot drop parts of " +
                      shapeText(shapeOf(x).vec()) +
                      "; supported are one number for all, a sample, a channel, or an element");
  if (!isMeanOne && !(x = scaled(node, x, *draw.keep)))
    return failure();
  if (!node.training() || node.spec().dropout == DropoutMode::Off || *draw.keep == 1)
    return node.result(x);
  // Images may lie with their channels innermost: of theirs, only samples and single elements are neighbours.
  const int64_t elements = typeOf(x).getNumElements();
  const bool byChannel = shapeOf(x).size() == 4 && group > 1 && elements / group > shapeOf(x)[0];
  Value flat = byChannel ? node.reshape(x, {elements / group, group}) : x;
  auto op = flat ? node.make<train::DropoutOp>(flat, node.f32(1 - *draw.keep), static_cast<uint64_t>(draw.key),
                                               static_cast<uint64_t>(group))
                 : train::DropoutOp();
  return op ? node.result(node.reshape(op, shapeOf(x))) : failure();
}

LogicalResult multiply(NodeImport &node, RandomDraw draw, int other) {
  const bool divides = node.proto().op_type() == "Div";
  if (drawAt(node, other))
    return node.error("products of random numbers are not supported");
  const HostTensor *factor = node.known(other);
  if (!factor && !divides)
    return drop(node, other, draw);
  if (!draw.keep || !factor || factor->size() != 1 || factor->shape.size() > draw.shape.size() ||
      (divides && (other == 0 || factor->number(0) == 0)))
    return node.error("random numbers can only be multiplied with one number, or divided by one that is not 0, once "
                      "they are compared");
  draw.value *= divides ? 1 / factor->number(0) : factor->number(0);
  return draws(node, std::move(draw));
}

/// A mask as numbers or truth values; either is 0 and 1 until it is scaled.
LogicalResult convert(NodeImport &node, RandomDraw draw) {
  const bool like = node.proto().op_type() == "CastLike";
  const bool toFloat =
      like ? !node.isIntegral(1) : node.attributes.integer("to", onnx::TensorProto::FLOAT) == onnx::TensorProto::FLOAT;
  if (!draw.keep || (!toFloat && draw.value != 1))
    return node.error("random numbers can only be converted once they are compared, and to float32 once scaled");
  return draws(node, std::move(draw));
}

} // namespace

std::optional<LogicalResult> importOfDraw(NodeImport &node) {
  int input = 0;
  while (input < node.inputs() && !drawAt(node, input))
    ++input;
  if (input == node.inputs())
    return std::nullopt;
  RandomDraw &draw = *drawAt(node, input);
  const StringRef type = node.proto().op_type();
  if (type == "RandomUniformLike")
    return importUniform(node);
  if (type.starts_with("Less") || type.starts_with("Greater"))
    return compare(node, draw, input == 0);
  if (type == "CastLike" && input == 1 && !draw.keep)
    return std::nullopt; // a cast to float32, which draws are until they are compared
  if (type == "Cast" || type == "CastLike" || type == "Identity")
    return input == 0 ? convert(node, draw) : node.error("nothing can be cast like random numbers that were compared");
  if (type == "Mul" || type == "Div")
    return multiply(node, draw, 1 - input);
  if (type == "Add")
    return shift(node, draw, 1 - input);
  if (type == "Floor")
    return roundDown(node, draw);
  return node.error("random numbers can only be compared with a number, or rounded down once one is added, and "
                    "multiply an activation");
}

void addRandom(NodeImporters &table) {
  table["RandomUniform"] = importUniform;
  table["RandomUniformLike"] = importUniform;
  table["Bernoulli"] = importBernoulli;
}

} // namespace sluice

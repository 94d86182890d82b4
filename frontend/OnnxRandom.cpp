// SPDX-License-Identifier: Apache-2.0
// Random numbers. As exporters write stochastic depth and dropout out: uniform draws that are compared with a number,
// converted, divided by the probability, and multiplied with an activation; all of that is one train.dropout. All
// others are tensors of the step, by train.noise, in evaluation, too.
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

/// Random numbers of a shape; a batch that --batch has replaced is replaced in a shape that the file writes out. Null
/// after an error.
Value noise(NodeImport &node, std::vector<int64_t> shape, bool isWritten, train::Distribution distribution,
            int64_t key) {
  if (const int64_t replaced = node.graph().replacedBatch;
      isWritten && replaced && !shape.empty() && shape[0] == replaced)
    shape[0] = node.graph().batch;
  if (Status small = checkShape(shape, node.spec().limits); !small) {
    (void)node.error("draws a tensor that " + small.error());
    return {};
  }
  Value zero = node.scalar(0, "noise");
  return zero ? node.makeAs<train::NoiseOp>(shape, zero, distribution, static_cast<uint64_t>(key)) : Value();
}

/// scale * x + offset
Value affine(NodeImport &node, Value x, double scale, double offset) {
  Value product = x && scale != 1 ? scaled(node, x, scale) : x;
  return product && offset != 0 ? binary<train::AddOp>(node, product, node.scalar(offset, "offset")) : product;
}

/// A draw as a tensor of the step. Masks are 1 where dropout by the same draw keeps an element.
Value tensorOf(NodeImport &node, const RandomDraw &draw) {
  Value u = noise(node, draw.shape, draw.isWritten, train::Distribution::Uniform, draw.key);
  if (u && draw.keep)
    return affine(node, compared(node, node.scalar(1 - *draw.keep, "least"), u, train::Comparison::LessOrEqual),
                  draw.value, 0);
  return affine(node, u, 1, draw.added.value_or(0));
}

/// The draws that the node reads become tensors, for it and all others; nothing else is done with it.
std::optional<LogicalResult> importWithTensors(NodeImport &node) {
  for (const std::string &name : node.proto().input()) {
    auto draw = node.shared().draws.find(name);
    if (draw == node.shared().draws.end())
      continue;
    Value tensor = tensorOf(node, draw->second);
    if (!tensor)
      return failure();
    node.shared().values[name] = tensor;
    node.shared().draws.erase(draw);
  }
  return std::nullopt;
}

/// Whether the shape of what the node draws is the file's rather than an activation's.
bool writesShape(NodeImport &node) {
  return !node.has(0) || node.known(0) || node.source(0) || (drawAt(node, 0) && drawAt(node, 0)->isWritten);
}

std::optional<std::vector<int64_t>> drawnShape(NodeImport &node) {
  const bool like = StringRef(node.proto().op_type()).ends_with("Like");
  return like ? shapeAt(node, 0) : std::optional(node.attributes.integers("shape"));
}

/// The key is taken first, so that draws have the same keys whether they become masks or tensors.
LogicalResult importUniform(NodeImport &node) {
  const double low = node.attributes.number("low", 0.0f), high = node.attributes.number("high", 1.0f);
  const auto shape = drawnShape(node);
  if (!shape)
    return failure();
  const bool written = writesShape(node);
  const int64_t key = node.shared().dropouts++;
  if (node.shared().randomDraws.isDraw(node.proto().output(0)))
    return draws(node, {*shape, key, {}, 1, {}, false, written});
  return node.result(affine(node, noise(node, *shape, written, train::Distribution::Uniform, key), high - low, low));
}

LogicalResult importNormal(NodeImport &node) {
  const auto shape = drawnShape(node);
  if (!shape)
    return failure();
  Value drawn = noise(node, *shape, writesShape(node), train::Distribution::Normal, node.shared().dropouts++);
  return node.result(affine(node, drawn, node.attributes.number("scale", 1.0f), node.attributes.number("mean", 0.0f)));
}

/// By probabilities of the elements, which may be computed: 1 where a uniform number is below.
LogicalResult importBernoulliByElements(NodeImport &node) {
  Value probability = node.tensor(0);
  if (!probability)
    return failure();
  Value u = noise(node, shapeOf(probability).vec(), /*isWritten=*/false, train::Distribution::Uniform,
                  node.shared().dropouts++);
  return node.result(compared(node, u, probability, train::Comparison::Less));
}

/// One known probability for all elements becomes a draw, of which a following product makes a dropout; others are
/// compared with uniform numbers element by element.
LogicalResult importBernoulli(NodeImport &node) {
  const HostTensor *keep = node.known(0);
  if (!keep)
    return importBernoulliByElements(node);
  bool equal = true;
  for (int64_t i = 0; i < keep->size(); ++i) {
    if (const double p = keep->number(i); !(p >= 0 && p <= 1))
      return node.error("a probability is " + std::to_string(p) + ", must be from 0 to 1");
    equal &= keep->number(i) == keep->number(0);
  }
  if (keep->size() == 0)
    return node.error("draws nothing");
  if (!equal)
    return importBernoulliByElements(node);
  return draws(node, {keep->shape, node.shared().dropouts++, keep->number(0), 1, {}, false, true});
}

/// The draw is below, or above, a single number with the probability that results.
std::optional<LogicalResult> compare(NodeImport &node, const RandomDraw &draw, bool drawIsFirst) {
  const HostTensor *bound = node.known(drawIsFirst ? 1 : 0);
  if (draw.keep || draw.added || !bound || bound->size() != 1 || bound->shape.size() > draw.shape.size() ||
      std::isnan(bound->number(0)))
    return importWithTensors(node);
  RandomDraw mask = draw;
  const bool less = StringRef(node.proto().op_type()).starts_with("Less");
  const double below = std::clamp(bound->number(0), 0.0, 1.0);
  mask.keep = less == drawIsFirst ? below : 1 - below;
  return draws(node, std::move(mask));
}

/// p + draw, which only rounding down makes a mask.
std::optional<LogicalResult> shift(NodeImport &node, const RandomDraw &draw, int other) {
  const HostTensor *number = node.known(other);
  if (draw.keep || draw.added || !number || number->size() != 1 || number->shape.size() > draw.shape.size() ||
      !(number->number(0) > 0 && number->number(0) <= 1))
    return importWithTensors(node);
  RandomDraw sum = draw;
  sum.added = number->number(0);
  return draws(node, std::move(sum));
}

/// floor(p + draw) is 1 with the probability p, else 0.
std::optional<LogicalResult> roundDown(NodeImport &node, RandomDraw draw) {
  if (!draw.added || draw.keep)
    return importWithTensors(node);
  draw.keep = draw.added;
  draw.isRounded = true;
  return draws(node, std::move(draw));
}

/// How many elements of x, one after the other, share an element of the draw; 0 where these are not so. A batch that
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

/// x * draw, where that is dropout; any other product is one of tensors.
std::optional<LogicalResult> drop(NodeImport &node, int input, const RandomDraw &draw) {
  if (node.droppedInput() != input)
    return importWithTensors(node);
  Value x = node.tensor(input);
  if (!x)
    return failure();
  // An export has the activation in place of the product, and evaluation the mean: both are x, or x times the mean.
  const bool isMeanOne = draw.keep && std::abs(draw.value * *draw.keep - 1) <= 1e-4;
  const bool isMeanKeep = draw.isRounded && draw.value == 1;
  if (!isMeanOne && !isMeanKeep)
    return node.error("a random mask drops parts of an activation but is not divided by the probability that it keeps "
                      "one: " +
                      std::to_string(draw.value) + " times " + std::to_string(draw.keep.value_or(1)) +
                      " is not 1; leave the factor out, or make it 1 / " + std::to_string(draw.keep.value_or(1)));
  const bool off = !node.training() || node.spec().dropout == DropoutMode::Off || *draw.keep == 1;
  const int64_t group = groupOf(shapeOf(x), draw.shape, node.graph().replacedBatch);
  if (!group && (!off || broadcastShapes(shapeOf(x).vec(), draw.shape) != shapeOf(x).vec()))
    return importWithTensors(node); // one number for each column, say
  if (!isMeanOne && !(x = scaled(node, x, *draw.keep)))
    return failure();
  if (off)
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

std::optional<LogicalResult> multiply(NodeImport &node, RandomDraw draw, int other) {
  const bool divides = node.proto().op_type() == "Div";
  const HostTensor *factor = drawAt(node, other) ? nullptr : node.known(other);
  if (!drawAt(node, other) && !factor && !divides)
    return drop(node, other, draw);
  if (!draw.keep || !factor || factor->size() != 1 || factor->shape.size() > draw.shape.size() ||
      (divides && (other == 0 || factor->number(0) == 0)))
    return importWithTensors(node);
  draw.value *= divides ? 1 / factor->number(0) : factor->number(0);
  return draws(node, std::move(draw));
}

/// A mask as numbers or truth values; either is 0 and 1 until it is scaled.
std::optional<LogicalResult> convert(NodeImport &node, RandomDraw draw) {
  const bool like = node.proto().op_type() == "CastLike";
  const bool toFloat =
      like ? !node.isIntegral(1) : node.attributes.integer("to", onnx::TensorProto::FLOAT) == onnx::TensorProto::FLOAT;
  if (!toFloat && (!draw.keep || draw.value != 1))
    return importWithTensors(node);
  return draws(node, std::move(draw));
}

} // namespace

std::optional<LogicalResult> importOfDraw(NodeImport &node) {
  int input = 0;
  while (input < node.inputs() && !drawAt(node, input))
    ++input;
  if (input == node.inputs())
    return std::nullopt;
  const RandomDraw draw = *drawAt(node, input);
  const StringRef type = node.proto().op_type();
  const bool asType = type == "CastLike" && input == 1;
  if (type.starts_with("Random") || (asType && !draw.keep))
    return std::nullopt; // reads its shape, or its type, which is float32
  if (asType)
    return importWithTensors(node);
  if (type.starts_with("Less") || type.starts_with("Greater"))
    return compare(node, draw, input == 0);
  if (type == "Cast" || type == "CastLike" || type == "Identity")
    return convert(node, draw);
  if (type == "Mul" || type == "Div")
    return multiply(node, draw, 1 - input);
  if (type == "Add")
    return shift(node, draw, 1 - input);
  return type == "Floor" ? roundDown(node, draw) : importWithTensors(node);
}

void addRandom(NodeImporters &table) {
  table["RandomUniform"] = importUniform;
  table["RandomUniformLike"] = importUniform;
  table["RandomNormal"] = importNormal;
  table["RandomNormalLike"] = importNormal;
  table["Bernoulli"] = importBernoulli;
}

} // namespace sluice

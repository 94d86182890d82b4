// SPDX-License-Identifier: Apache-2.0
// Random numbers as exporters write stochastic depth and dropout out: uniform draws that are compared with a number,
// converted, divided by the probability, and multiplied with an activation. All of that is one train.dropout.
#include "frontend/NodeImport.h"

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

/// Of a tensor that the node takes for its shape alone, or for its values.
std::optional<std::vector<int64_t>> shapeAt(NodeImport &node, int input) {
  if (const HostTensor *known = node.known(input))
    return known->shape;
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
  return shape ? draws(node, {*shape, {}, 1}) : failure();
}

/// Whether `probability` is one, or an error.
bool isProbability(NodeImport &node, double probability) {
  if (probability >= 0 && probability <= 1)
    return true;
  (void)node.error("a probability is " + std::to_string(probability) + ", must be from 0 to 1");
  return false;
}

LogicalResult importBernoulli(NodeImport &node) {
  const HostTensor *keep = node.constant(0, "the probability");
  if (!keep)
    return failure();
  for (int64_t i = 1; i < keep->size(); ++i)
    if (keep->number(i) != keep->number(0))
      return node.error("only one probability for all elements is supported");
  if (keep->size() == 0 || !isProbability(node, keep->number(0)))
    return node.error("needs a probability");
  return draws(node, {keep->shape, keep->number(0), 1});
}

/// The draw is below, or above, a single number with the probability that results.
LogicalResult compare(NodeImport &node, RandomDraw draw, bool drawIsFirst) {
  const HostTensor *bound = node.folded(drawIsFirst ? 1 : 0);
  if (draw.keep || !bound || bound->size() != 1 || std::isnan(bound->number(0)))
    return node.error("random numbers can only be compared with one number that is known at compile time");
  const bool less = StringRef(node.proto().op_type()).starts_with("Less");
  const double below = std::clamp(bound->number(0), 0.0, 1.0);
  draw.keep = less == drawIsFirst ? below : 1 - below;
  return draws(node, std::move(draw));
}

/// How many neighbours of x share an element of the draw; 0 where these are no neighbours.
int64_t groupOf(ArrayRef<int64_t> x, std::vector<int64_t> draw) {
  if (draw.size() > x.size())
    return 0;
  draw.insert(draw.begin(), x.size() - draw.size(), 1);
  size_t same = 0;
  while (same < x.size() && draw[same] == x[same])
    ++same;
  int64_t group = 1;
  for (size_t i = same; i < x.size(); ++i) {
    if (draw[i] != 1)
      return 0;
    group *= x[i];
  }
  // Images may lie with their channels innermost: only samples and single elements are neighbours for certain.
  return x.size() == 4 && same > 1 && group > 1 ? 0 : group;
}

/// x * draw: dropout, but for a factor.
LogicalResult drop(NodeImport &node, Value x, const RandomDraw &draw) {
  const int64_t key = node.shared().dropouts++;
  if (!x)
    return failure();
  if (!draw.keep)
    return node.error("random numbers can only multiply an activation once they are compared with a number");
  const int64_t group = groupOf(shapeOf(x), draw.shape);
  if (!group)
    return node.error("a random tensor of " + shapeText(draw.shape) + " cannot drop parts of " +
                      shapeText(shapeOf(x).vec()) + "; supported are one number for all, a sample, or an element");
  Value y = x;
  const bool drops = node.training() && node.spec().dropout != DropoutMode::Off && *draw.keep < 1;
  if (drops) {
    auto op = node.make<train::DropoutOp>(x, node.f32(1 - *draw.keep), static_cast<uint64_t>(key),
                                          static_cast<uint64_t>(group));
    y = op ? op.getY() : Value();
  }
  // Dropout has divided by the probability, and so means do.
  const double factor = draw.value * *draw.keep;
  if (y && !(std::abs(factor - 1) <= 1e-6)) {
    auto op = node.make<train::ScaleOp>(y, node.f32(factor));
    y = op ? op.getY() : Value();
  }
  return node.result(y);
}

LogicalResult multiply(NodeImport &node, RandomDraw draw, int other) {
  const bool divides = node.proto().op_type() == "Div";
  if (drawAt(node, other))
    return node.error("products of random numbers are not supported");
  if (const HostTensor *factor = node.folded(other)) {
    if (factor->size() != 1 || (divides && (other == 0 || factor->number(0) == 0)))
      return node.error("random numbers can only be multiplied with one number, or divided by one that is not 0");
    draw.value *= divides ? 1 / factor->number(0) : factor->number(0);
    return draws(node, std::move(draw));
  }
  if (divides)
    return node.error("divisions of activations and random numbers are not supported");
  return drop(node, node.tensor(other), draw);
}

} // namespace

std::optional<LogicalResult> importOfDraw(NodeImport &node) {
  int input = 0;
  while (input < node.inputs() && !drawAt(node, input))
    ++input;
  if (input == node.inputs())
    return std::nullopt;
  RandomDraw draw = *drawAt(node, input);
  const StringRef type = node.proto().op_type();
  if (type == "RandomUniformLike")
    return importUniform(node);
  if (type.starts_with("Less") || type.starts_with("Greater"))
    return compare(node, std::move(draw), input == 0);
  if (type == "Cast" || type == "Identity")
    return draws(node, std::move(draw));
  if (type == "Mul" || type == "Div")
    return multiply(node, std::move(draw), 1 - input);
  return node.error("random numbers can only be compared with a number and multiply an activation");
}

void addRandom(NodeImporters &table) {
  table["RandomUniform"] = importUniform;
  table["RandomUniformLike"] = importUniform;
  table["Bernoulli"] = importBernoulli;
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear, as quantization-aware training writes fake quantization: numbers on a grid that
// stay float32. Rounding hands its gradient on (straight-through estimator, Bengio et al. 2013), as PyTorch's
// fake_quantize does: 1 where the rounded number lies in the grid's range, 0 elsewhere. Scales and zero points are
// constants of the model, which no gradient moves. What dequantizes matrices of the file is gone here, see
// StoredForms.h.
#include "frontend/Compositions.h"
#include "frontend/ElementTypes.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace sluice {
namespace {

/// Integers that an element type holds.
struct Range {
  double least, most;
};

std::optional<Range> rangeOf(int32_t elementType) {
  switch (elementType) {
  case onnx::TensorProto::UINT8:
    return Range{0, 255};
  case onnx::TensorProto::INT8:
    return Range{-128, 127};
  case onnx::TensorProto::UINT16:
    return Range{0, 65535};
  case onnx::TensorProto::INT16:
    return Range{-32768, 32767};
  default:
    return std::nullopt;
  }
}

/// Element type of a constant, which casts before it may have given it; 0 where it is not known.
int32_t typeOfConstant(NodeImport &node, std::string name) {
  constexpr int longest = 100;
  for (int steps = 0; steps < longest; ++steps) {
    if (auto source = node.shared().sources.find(name); source != node.shared().sources.end())
      return source->second.elementType;
    const auto made = llvm::find_if(node.graph().nodes, [&](const onnx::NodeProto *other) {
      return other->output_size() > 0 && other->output(0) == name && other->input_size() > 0;
    });
    if (made == node.graph().nodes.end())
      return 0;
    if ((*made)->op_type() == "Cast")
      return static_cast<int32_t>(Attributes(**made).integer("to", 0));
    name = (*made)->input(0);
  }
  return 0;
}

/// The grid that a node takes numbers to, or from.
struct Grid {
  const HostTensor *scale;
  const HostTensor *zero; ///< null: 0
  int64_t axis = -1;      ///< of a scale for each index; -1: one for all
  double shift = 0;       ///< the zero point
};

/// Nothing after an error.
std::optional<Grid> gridOf(NodeImport &node, ArrayRef<int64_t> shape) {
  Grid grid{node.constant(1, "the scale"), nullptr};
  if (!grid.scale || (node.has(2) && !(grid.zero = node.constant(2, "the zero point"))))
    return std::nullopt;
  if (node.attributes.integer("block_size", 0) != 0) {
    (void)node.error("scales of blocks are not supported; use one for the tensor, or for each channel");
    return std::nullopt;
  }
  for (int64_t i = 0; i < grid.scale->size(); ++i)
    if (const double scale = grid.scale->number(i); !(scale > 0) || std::isinf(scale)) {
      (void)node.error("a scale is " + std::to_string(scale) + ", must be above 0");
      return std::nullopt;
    }
  if (grid.scale->size() != 1) {
    const int64_t rank = static_cast<int64_t>(shape.size());
    grid.axis = node.axis(node.attributes.integer("axis", 1), rank);
    if (grid.axis < 0)
      return std::nullopt;
    if (grid.scale->size() != shape[grid.axis]) {
      (void)node.error(std::to_string(grid.scale->size()) + " scales do not fit the extent " +
                       std::to_string(shape[grid.axis]) + " of axis " + std::to_string(grid.axis));
      return std::nullopt;
    }
  }
  for (int64_t i = 0; grid.zero && i < grid.zero->size(); ++i)
    if (grid.zero->number(i) != grid.zero->number(0)) {
      (void)node.error("zero points that differ from channel to channel are not supported");
      return std::nullopt;
    }
  grid.shift = grid.zero && grid.zero->size() > 0 ? grid.zero->number(0) : 0;
  return grid;
}

/// The scale as an operand beside a tensor of this rank.
Value scaleOf(NodeImport &node, const Grid &grid, int64_t rank) {
  HostTensor values = *grid.scale;
  values.shape.assign(grid.axis < 0 ? 0 : rank, 1);
  if (grid.axis >= 0)
    values.shape[grid.axis] = values.size();
  return node.table(std::move(values), "scale");
}

Value shifted(NodeImport &node, Value x, double by) {
  return x && by != 0 ? binary<train::AddOp>(node, x, node.scalar(by, "zero_point")) : x;
}

/// Clips x / scale before rounding, so that the clip's gradient is 0 outside of the range and the rounding's is 1. The
/// bounds are half a step beyond the range: what rounds into it keeps its gradient.
LogicalResult importQuantize(NodeImport &node) {
  Value x = node.tensor(0);
  const auto grid = x ? gridOf(node, shapeOf(x)) : std::nullopt;
  if (!grid)
    return failure();
  const int64_t said = node.attributes.integer("output_dtype", 0);
  const int32_t type = node.has(2) ? typeOfConstant(node, node.proto().input(2))
                       : said      ? static_cast<int32_t>(said)
                                   : static_cast<int32_t>(onnx::TensorProto::UINT8);
  const auto range = rangeOf(type);
  if (!range)
    return node.error("quantizes to " + std::string(elementTypeName(type)) +
                      "; supported are int8, uint8, int16 and uint16");
  // Limits of what rounds into the range: the next numbers inside of those that no longer do.
  const auto inside = [](double bound) { return std::nextafter(static_cast<float>(bound), 0.0f); };
  const float least = inside(range->least - grid->shift - 0.5), most = inside(range->most - grid->shift + 0.5);
  Value scale = scaleOf(node, *grid, typeOf(x).getRank());
  Value limited = clipped(node, binary<train::DivOp>(node, x, scale), least, most);
  auto whole = limited ? node.make<train::RoundOp>(limited, train::Rounding::NearestEven, /*straight_through=*/true)
                       : train::RoundOp();
  if (!whole || failed(node.result(shifted(node, whole, grid->shift))))
    return failure();
  node.shared().integral.insert(node.proto().output(0));
  return success();
}

LogicalResult importDequantize(NodeImport &node) {
  if (node.known(0) || node.source(0))
    return node.error(
        "its weights are stored as integers, which no gradient moves; matrices of 8 and 4 bits are held as they are; "
        "export others with fake quantization (QuantizeLinear and DequantizeLinear behind float weights), before they "
        "are converted");
  Value x = node.tensor(0);
  const auto grid = x ? gridOf(node, shapeOf(x)) : std::nullopt;
  if (!grid)
    return failure();
  Value numbers = shifted(node, x, -grid->shift);
  return node.result(binary<train::MulOp>(node, numbers, scaleOf(node, *grid, typeOf(x).getRank())));
}

} // namespace

void addQuantization(NodeImporters &table) {
  table["QuantizeLinear"] = importQuantize;
  table["DequantizeLinear"] = importDequantize;
}

} // namespace sluice

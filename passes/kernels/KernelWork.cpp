// SPDX-License-Identifier: Apache-2.0
// The work of an op as profiles measure it, see KernelWork.h.
#include "passes/kernels/KernelWork.h"

#include "ir/Train.h"

#include <cmath>

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// The rate at which the op's arithmetic runs, as profiles name it: products run on tensor cores unless their factors
/// are f32 and shall stay so.
static std::string rateOf(Operation *op) {
  auto aware = dyn_cast<PrecisionAware>(op);
  if (!aware || aware.precisionPreference() != PrecisionPreference::Product)
    return "fp32";
  if (Type factor = op->getOperand(0).getType(); isHalf(factor))
    return cast<RankedTensorType>(factor).getElementType().isF16() ? "fp16" : "bf16";
  auto precision = op->getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>("train.precision");
  return precision && precision.getValue() == "tf32" ? "tf32" : "fp32";
}

/// A pass of the convolution with weights w [O,C/groups,kh,kw] and result y [N,O,H,W]. A volume counts as its slices,
/// more images: `side` and `stride` are a slice's.
static void describeConv(planner::Work &work, const std::string &pass, Value w, Value y, ArrayRef<int64_t> strides,
                         int64_t groups) {
  auto weights = cast<RankedTensorType>(w.getType()).getShape(), image = cast<RankedTensorType>(y.getType()).getShape();
  auto product = [](ArrayRef<int64_t> extents) { return double(llvm::product_of(extents)); };
  const double side = std::sqrt(product(image.take_back(2))), pixels = double(image[0]) * product(image.drop_front(2));
  const double area = product(weights.drop_front(2)), stride = std::sqrt(product(strides.take_back(2)));
  if (groups > 1 && weights[1] == 1) {
    work.sample = "depthwise_" + pass;
    work.size = planner::depthwiseSize(double(groups), side, pixels, area, stride);
  } else {
    work.sample = (groups > 1 ? "grouped_" : "conv_") + pass;
    work.size = planner::convSize(double(weights[1]), double(weights[0] / groups), side, pixels, area, stride);
  }
}

static void describeProduct(planner::Work &work, MatmulOp op) {
  auto result = cast<RankedTensorType>(op.getY().getType()).getShape(),
       a = cast<RankedTensorType>(op.getA().getType()).getShape();
  work.sample = "product";
  work.size = planner::productSize(double(result[result.size() - 2]),
                                   double(a[a.size() - (op.getTransposeA() ? 2 : 1)]), double(result.back()));
}

/// Products of a step, one after the other: rows are those of a sample each.
static void describeSteps(planner::Work &work, Value gates, Value weight) {
  auto rows = cast<RankedTensorType>(weight.getType()).getShape();
  work.sample = "product";
  work.size = planner::productSize(double(cast<RankedTensorType>(gates.getType()).getDimSize(1)), double(rows[1]),
                                   double(rows[0]));
}

planner::Work sluice::workOf(Operation *op, int64_t touched) {
  planner::Work work;
  work.kind = cast<HasKernel>(op).opKind();
  work.precision = rateOf(op);
  if (auto costed = dyn_cast<Costed>(op)) {
    work.flops = static_cast<double>(costed.flops());
    work.bytes = static_cast<double>(costed.bytesMoved());
  }
  // An update reads and writes the parameter and its state besides the gradient.
  if (auto update = dyn_cast<UpdateOp>(op))
    work.bytes = static_cast<double>(bytes(update.getGradient().getType()) *
                                     (3 + 2 * static_cast<int64_t>(update.getStates().size())));
  if (auto sum = dyn_cast<AccumulateOp>(op)) // reads and writes it
    work.bytes = 3.0 * static_cast<double>(bytes(sum.getGradient().getType()));
  if (auto slice = dyn_cast<SliceOp>(op)) // no more than it takes out
    work.bytes = 2.0 * static_cast<double>(bytes(slice.getType()));
  if (auto conv = dyn_cast<ConvOp>(op))
    describeConv(work, "forward", conv.getW(), conv.getY(), conv.getStrides(), conv.getGroup());
  else if (auto conv = dyn_cast<ConvStatisticsOp>(op))
    describeConv(work, "forward", conv.getW(), conv.getY(), conv.getStrides(), conv.getGroup());
  else if (auto back = dyn_cast<ConvBackwardDataOp>(op))
    describeConv(work, "backward_data", back.getW(), back.getDy(), back.getStrides(), back.getGroup());
  else if (auto back = dyn_cast<ConvBackwardNormOp>(op))
    describeConv(work, "backward_data", back.getW(), back.getDy(), back.getStrides(), back.getGroup());
  else if (auto back = dyn_cast<ConvBackwardWeightOp>(op))
    describeConv(work, "backward_weight", back.getDw(), back.getDy(), back.getStrides(), back.getGroup());
  else if (auto transposed = dyn_cast<ConvTransposeOp>(op))
    describeConv(work, "backward_data", transposed.getW(), transposed.getX(), transposed.getStrides(),
                 transposed.getGroup());
  else if (auto product = dyn_cast<MatmulOp>(op))
    describeProduct(work, product);
  else if (auto steps = dyn_cast<RecurrenceOp>(op))
    describeSteps(work, steps.getGates(), steps.getWeight());
  else if (auto back = dyn_cast<RecurrenceBackwardOp>(op))
    describeSteps(work, back.getDgates(), back.getWeight());
  else if (isa<MaxPoolOp, AveragePoolOp>(op))
    work.sample = "pool", work.size = {work.bytes};
  else if (isa<MaxPoolBackwardOp, AveragePoolBackwardOp>(op))
    work.sample = "pool_backward", work.size = {work.bytes};
  else if (isa<BatchNormStatisticsOp>(op))
    work.sample = "norm", work.size = {work.bytes};
  else
    work.sample = "elementwise", work.size = {work.bytes};
  work.size.push_back(planner::surroundings(static_cast<double>(touched)));
  for (double &size : work.size)
    size = std::max(size, 1.0);
  return work;
}

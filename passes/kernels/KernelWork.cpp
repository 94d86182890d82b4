// SPDX-License-Identifier: Apache-2.0
// The work of an op as profiles measure it, see KernelWork.h.
#include "passes/kernels/KernelWork.h"

#include "ir/KernelRecords.h"

#include <cmath>

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace sluice {

// What a profile's samples call a kernel, and by which sizes they know it.

/// In the terms by which profiles file convolutions: kind, channels, extent, pixels, area of the filter and stride.
static void describe(planner::Work &work, const ConvWork &conv) {
  static constexpr const char *passes[] = {"forward", "backward_data", "backward_weight"};
  const auto product = [](ArrayRef<int64_t> extents) { return double(llvm::product_of(extents)); };
  const ArrayRef<int64_t> y = conv.y, weights = conv.weights;
  // A volume counts as its slices, more images: `side` and `stride` are a slice's.
  const double side = std::sqrt(product(y.take_back(2))), area = product(weights.drop_front(2));
  const double stride = std::sqrt(product(ArrayRef(conv.strides).take_back(2)));
  const double pixels = double(y[0]) * product(y.drop_front(2));
  const bool depthwise = conv.groups > 1 && weights[1] == 1;
  work.sample = std::string(depthwise         ? "depthwise_"
                            : conv.groups > 1 ? "grouped_"
                                              : "conv_") +
                passes[static_cast<size_t>(conv.pass)];
  work.size = depthwise
                  ? planner::depthwiseSize(double(conv.groups), side, pixels, area, stride)
                  : planner::convSize(double(weights[1]), double(weights[0] / conv.groups), side, pixels, area, stride);
}

static void describe(planner::Work &work, const ProductWork &product) {
  work.sample = "product";
  work.size = planner::productSize(double(product.rows), double(product.inner), double(product.columns));
}

static void describe(planner::Work &work, const AttentionWork &attention) {
  work.sample = attention.backward ? "attention_backward" : "attention_forward";
  work.size = planner::attentionSize(double(attention.rows), double(attention.keys), double(attention.depth));
}

static void describe(planner::Work &work, const MemoryWork &memory) {
  static constexpr const char *kinds[] = {"elementwise", "norm", "pool", "pool_backward"};
  work.sample = kinds[memory.kind];
  work.size = {work.bytes};
}

/// Of the largest tensor that the op reads or writes.
static std::string typeOf(Operation *op) {
  int64_t most = 0;
  StringRef type = "fp32";
  const auto look = [&](Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    if (!tensor || tensor.getNumElements() <= most)
      return;
    most = tensor.getNumElements();
    type = !isHalf(tensor) ? "fp32" : tensor.getElementType().isF16() ? "fp16" : "bf16";
  };
  llvm::for_each(op->getOperands(), look);
  llvm::for_each(op->getResults(), look);
  return type.str();
}

// The last size is that of all samples, see surroundings().
planner::Work workOf(Operation *op, int64_t touched) {
  planner::Work work;
  work.kind = cast<HasKernel>(op).opKind();
  work.precision = arithmeticOf(op);
  work.type = typeOf(op);
  auto costed = dyn_cast<Costed>(op);
  if (costed) {
    work.flops = double(costed.flops());
    work.bytes = double(costed.bytesMoved());
  }
  std::visit([&](const auto &kind) { describe(work, kind); }, costed ? costed.work() : OpWork());
  work.size.push_back(planner::surroundings(double(touched)));
  for (double &size : work.size)
    size = std::max(size, 1.0);
  return work;
}

} // namespace sluice

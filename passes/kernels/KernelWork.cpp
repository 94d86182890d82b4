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

/// Whether elements that lie beside one another go into one sum.
static bool sumsNeighbours(SumToOp sum) {
  const ArrayRef<int64_t> x = cast<RankedTensorType>(sum.getX().getType()).getShape(),
                          y = cast<RankedTensorType>(sum.getY().getType()).getShape();
  return y.empty() || (y.back() == 1 && x.back() > 1);
}

/// What is measured of one op alone, under the name by which programs record it, and is as fast as others of its kind
/// where nobody has measured it.
static void nameOwnSamples(planner::Work &work, Operation *op) {
  work.alike = work.sample;
  if (auto product = dyn_cast<MatmulOp>(op))
    work.sample = product.getTransposeA() ? "product_turned" : work.sample;
  else if (auto attention = dyn_cast<AttentionOp>(op))
    work.sample += attention.getCausal() ? "_causal" : "";
  else if (auto gradient = dyn_cast<AttentionBackwardOp>(op))
    work.sample += gradient.getCausal() ? "_causal" : "";
  else if (auto sum = dyn_cast<SumToOp>(op); sum && sumsNeighbours(sum))
    work.sample = "sum_to_neighbours";
  else if (work.kind != OpKind::Conv)
    work.sample = cast<HasKernel>(op).launchName();
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

/// Without the last size, that of all samples, see surroundings().
static planner::Work workOf(Operation *op) {
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
  nameOwnSamples(work, op);
  for (double &size : work.size)
    size = std::max(size, 1.0);
  return work;
}

namespace {

/// Estimates of one op, whose bytes were touched now shorter and now longer ago.
class Estimate {
public:
  Estimate(ArrayRef<Touch> touches, const planner::Profile &profile) : touches(touches), profile(profile) {
    for (const Touch &touch : touches)
      bytes += touch.bytes;
  }

  /// The mean over its bytes.
  planner::Seconds of(const planner::Work &work) const {
    if (bytes == 0)
      return at(work, 1e18);
    planner::Seconds sum = 0;
    for (const Touch &touch : touches)
      sum += touch.bytes / bytes * at(work, touch.since);
    return sum;
  }

  /// A region's traffic and its arithmetic, whichever takes longer: one goes on while the other waits.
  planner::Seconds of(FusedOp region, const planner::Work &work) const {
    double written = 0;
    for (Value result : region.getOutputs().take_front(region.fullResults()))
      written += double(train::bytes(result.getType()));
    // As products of two tensors, but for what is read beyond that.
    planner::Work products = work, reads = work;
    products.bytes = std::min(work.bytes, 3 * written);
    reads.bytes = work.bytes - products.bytes;
    reads.sample = "fused_sums", reads.alike = "elementwise";
    products.sample = hasChannels(region) ? "fused_channels" : "elementwise", products.alike = "elementwise";
    const planner::Seconds traffic = (products.bytes > 0 ? of(products) : 0) + (reads.bytes > 0 ? of(reads) : 0);
    return std::max(traffic, arithmeticOf(region));
  }

private:
  planner::Seconds at(const planner::Work &work, double since) const {
    planner::Work there = work;
    there.size.push_back(planner::surroundings(since));
    return profile.estimate(there);
  }

  /// Whether it walks over rows as long as the channels, else over all elements in one.
  static bool hasChannels(FusedOp region) {
    return llvm::any_of(llvm::seq<unsigned>(region->getNumOperands()), [&](unsigned i) { return region.isChannel(i); });
  }

  /// By scalar ops, of which the plainest are as fast as one another. Constants cost nothing.
  planner::Seconds arithmeticOf(FusedOp region) const {
    const double elements = double(train::elements(region.domain()));
    planner::Seconds sum = 0;
    for (Operation &scalar : region.getBody().front()) {
      if (isa<arith::ConstantOp, YieldOp>(scalar))
        continue;
      planner::Work work;
      work.sample = scalar.getName().getStringRef().str(), work.alike = "arith";
      work.size = {planner::surroundings(1)};
      if (const std::optional<double> rate = profile.rateOf(work))
        sum += elements / *rate;
    }
    return sum;
  }

  ArrayRef<Touch> touches;
  const planner::Profile &profile;
  double bytes = 0;
};

} // namespace

planner::Seconds secondsOf(Operation *op, ArrayRef<Touch> touches, const planner::Profile &profile) {
  const planner::Work work = workOf(op);
  if (profile.samples.empty())
    return profile.estimate(work);
  const Estimate estimate(touches, profile);
  auto region = dyn_cast<FusedOp>(op);
  return region ? estimate.of(region, work) : estimate.of(work);
}

} // namespace sluice

// SPDX-License-Identifier: Apache-2.0
// The Invertible methods: which fused regions can be undone, and the ops that do it.
#include "ir/Train.h"

#include "mlir/IR/Matchers.h"

#include <optional>

using namespace mlir;
using namespace sluice::train;

namespace {

/// leaky_relu((x - mean) * rstd * scale + bias): numbers of the operands, and the slope.
struct NormalizedLeakyRelu {
  unsigned x, mean, rstd, scale, bias;
  llvm::APFloat alpha;
};

std::optional<unsigned> argumentNumber(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? std::optional(argument.getArgNumber()) : std::nullopt;
}

/// The slope of `select(u > 0, u, u * alpha)`; `u` is set.
std::optional<llvm::APFloat> leakySlope(Value value, Value &u) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  auto scaled = select ? select.getFalseValue().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  llvm::APFloat zero(0.0f), alpha(0.0f);
  if (!compare || !scaled || compare.getPredicate() != arith::CmpFPredicate::OGT)
    return std::nullopt;
  u = select.getTrueValue();
  if (compare.getLhs() != u || scaled.getLhs() != u || !matchPattern(compare.getRhs(), m_ConstantFloat(&zero)) ||
      !matchPattern(scaled.getRhs(), m_ConstantFloat(&alpha)) || !zero.isZero())
    return std::nullopt;
  return alpha;
}

std::optional<NormalizedLeakyRelu> match(FusedOp op) {
  if (op.getNumResults() != 1 || op.getSums() != 0)
    return std::nullopt;
  Value u;
  auto alpha = leakySlope(cast<YieldOp>(op.getBody().front().getTerminator()).getValues()[0], u);
  auto add = alpha ? u.getDefiningOp<arith::AddFOp>() : arith::AddFOp();
  auto scaled = add ? add.getLhs().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  auto normalized = scaled ? scaled.getLhs().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  auto centred = normalized ? normalized.getLhs().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  if (!centred)
    return std::nullopt;
  auto x = argumentNumber(centred.getLhs()), mean = argumentNumber(centred.getRhs()),
       rstd = argumentNumber(normalized.getRhs()), scale = argumentNumber(scaled.getRhs()),
       bias = argumentNumber(add.getRhs());
  if (!x || !mean || !rstd || !scale || !bias || *x != 0 || op.isChannel(*x))
    return std::nullopt;
  for (unsigned channel : {*mean, *rstd, *scale, *bias})
    if (!op.isChannel(channel))
      return std::nullopt;
  return NormalizedLeakyRelu{*x, *mean, *rstd, *scale, *bias, *alpha};
}

/// A smaller one takes negative values out of half precision's range.
constexpr float smallestSlope = 1e-3f;

int64_t elementsPerChannel(RankedTensorType type) { return type.getNumElements() / type.getDimSize(1); }

LogicalResult checkAside(Operation *op, Type full, Type aside) {
  auto x = cast<RankedTensorType>(full), slots = cast<RankedTensorType>(aside);
  if (x.getRank() < 2 || slots.getRank() != 2 || slots.getDimSize(1) != elementsPerChannel(x))
    return op->emitOpError() << "needs [slots, elements per channel] beside " << x << ", not " << slots;
  return success();
}

} // namespace

bool FusedOp::isInvertible() {
  auto matched = match(*this);
  RankedTensorType z = domain();
  bool channelsLast = z.getRank() == 2 || (z.getRank() == 4 && layoutOf(z) == LayoutKind::NHWC);
  return matched && channelsLast && z.getElementType().isF32() && matched->alpha.isFinite() && matched->alpha.convertToFloat() >= smallestSlope &&
         getInputs()[matched->x].getType() == getOutputs()[0].getType();
}

/// One sixteenth of the channels, one at least.
RankedTensorType FusedOp::asideType() {
  RankedTensorType x = domain();
  return RankedTensorType::get({(x.getDimSize(1) + 15) / 16, elementsPerChannel(x)}, x.getElementType());
}

Value FusedOp::buildAside(OpBuilder &builder, bool half) {
  auto matched = *match(*this);
  return SaveGuardedChannelsOp::create(builder, getLoc(), asideType(), getInputs()[matched.x],
                                       getInputs()[matched.scale], getInputs()[matched.bias], half);
}

Value FusedOp::buildInverse(OpBuilder &builder, ValueRange operands, Value result, Value aside,
                            bool half) {
  auto matched = *match(*this);
  return InvertBatchNormLeakyReluOp::create(builder, getLoc(), getInputs()[matched.x].getType(), result,
                                            operands[matched.mean], operands[matched.rstd], operands[matched.scale],
                                            operands[matched.bias], aside, matched.alpha, half);
}

LogicalResult SaveGuardedChannelsOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType());
  if (failed(checkAside(*this, x, getAside().getType()))) // C1
    return failure();
  if (elements(getScale().getType()) != x.getDimSize(1) || elements(getBias().getType()) != x.getDimSize(1)) // C2
    return emitOpError() << "needs one scale and bias for each of " << x.getDimSize(1) << " channels";
  return success();
}

LogicalResult InvertBatchNormLeakyReluOp::verify() {
  if (!getAlpha().isFinite() || !(getAlpha().convertToFloat() >= smallestSlope)) // C1
    return emitOpError() << "needs a slope of 0.001 at least, not " << getAlpha().convertToFloat();
  return checkAside(*this, getZ().getType(), getAside().getType()); // C2
}

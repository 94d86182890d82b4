// SPDX-License-Identifier: Apache-2.0
// The scalar rule of every elementwise op, written with arith and math ops on f32. The order of operations here is the
// order in which every target computes; generated kernels are compiled without contraction.
#include "ir/Scalar.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

using P = arith::CmpFPredicate;

// x <= 0 is false for NaN, so NaN passes through: what PyTorch's relu does.
RULE(ReluOp) {
  SCALAR;
  return {s.select(s.compare(P::OLE, v[0], s.constant(0)), s.constant(0), v[0])};
}
RULE(ReluBackwardOp) {
  SCALAR;
  return {s.select(s.compare(P::OLE, v[1], s.constant(0)), s.constant(0), v[0])};
}
RULE(LeakyReluOp) {
  SCALAR;
  return {
      s.select(s.compare(P::OGT, v[0], s.constant(0)), v[0], s.mul(v[0], s.constant(getAlpha().convertToDouble())))};
}
RULE(LeakyReluBackwardOp) {
  SCALAR;
  return {
      s.select(s.compare(P::OGT, v[1], s.constant(0)), v[0], s.mul(v[0], s.constant(getAlpha().convertToDouble())))};
}
// NaN passes through both comparisons.
RULE(ClipOp) {
  SCALAR;
  Value low = s.constant(getMin().convertToDouble()), high = s.constant(getMax().convertToDouble());
  Value raised = s.select(s.compare(P::OLT, v[0], low), low, v[0]);
  return {s.select(s.compare(P::OGT, raised, high), high, raised)};
}
// Reads y, so that x need not live. At the bounds y does not tell what was limited from what was there: the slope is 0,
// as PyTorch's hardtanh has it.
RULE(ClipBackwardOp) {
  SCALAR;
  Value above = s.compare(P::OGT, v[1], s.constant(getMin().convertToDouble()));
  Value below = s.compare(P::OLT, v[1], s.constant(getMax().convertToDouble()));
  return {s.select(above, s.select(below, v[0], s.constant(0)), s.constant(0))};
}
RULE(SigmoidOp) {
  SCALAR;
  return {s.logistic(v[0])};
}
RULE(SigmoidBackwardOp) {
  SCALAR;
  return {s.mul(s.mul(v[0], v[1]), s.sub(s.constant(1), v[1]))};
}
RULE(TanhOp) { return {math::TanhOp::create(builder, getLoc(), v[0])}; }
RULE(TanhBackwardOp) {
  SCALAR;
  return {s.mul(v[0], s.sub(s.constant(1), s.mul(v[1], v[1])))};
}
RULE(ErfOp) { return {math::ErfOp::create(builder, getLoc(), v[0])}; }
RULE(ErfBackwardOp) {
  SCALAR;
  return {s.mul(s.mul(v[0], s.constant(M_2_SQRTPI)), s.exp(s.sub(s.constant(0), s.mul(v[1], v[1]))))};
}
RULE(GeluOp) {
  SCALAR;
  return {s.mul(v[0], s.below(v[0], getTanh()))};
}
// With p for `below`: p + x p'. p' is the normal density, or with u for tanh's argument 2 p (1 - p) u'.
RULE(GeluBackwardOp) {
  SCALAR;
  Value x = v[1], p = s.below(x, getTanh()), square = s.mul(x, x), density;
  if (getTanh())
    density = s.mul(
        s.mul(s.mul(s.constant(2), p), s.sub(s.constant(1), p)),
        s.mul(s.constant(M_SQRT2 * M_2_SQRTPI / 2), s.add(s.constant(1), s.mul(s.constant(3 * 0.044715), square))));
  else
    density = s.mul(s.constant(M_SQRT1_2 * M_2_SQRTPI / 2), s.exp(s.mul(s.constant(-0.5), square)));
  return {s.mul(v[0], s.add(p, s.mul(x, density)))};
}
RULE(ExpOp) {
  SCALAR;
  return {s.exp(v[0])};
}
RULE(LogOp) {
  SCALAR;
  return {s.log(v[0])};
}
RULE(SqrtOp) { return {math::SqrtOp::create(builder, getLoc(), v[0])}; }
RULE(ReciprocalOp) {
  SCALAR;
  return {s.div(s.constant(1), v[0])};
}
RULE(AbsOp) {
  SCALAR;
  return {s.select(s.compare(P::OLT, v[0], s.constant(0)), s.negative(v[0]), v[0])};
}
RULE(AbsBackwardOp) {
  SCALAR;
  Value falling = s.select(s.compare(P::OLT, v[1], s.constant(0)), s.negative(v[0]), s.constant(0));
  return {s.select(s.compare(P::OGT, v[1], s.constant(0)), v[0], falling)};
}
// max(x, 0) + log(1 + e^-|x|), so that nothing overflows.
RULE(SoftplusOp) {
  SCALAR;
  Value positive = s.compare(P::OGT, v[0], s.constant(0)), negative = s.negative(v[0]);
  Value rest = s.log1p(s.exp(s.select(positive, negative, v[0])));
  return {s.add(s.select(positive, v[0], s.constant(0)), rest)};
}
RULE(EluOp) {
  SCALAR;
  Value below = s.mul(s.constant(getAlpha().convertToDouble()), s.sub(s.exp(v[0]), s.constant(1)));
  return {s.select(s.compare(P::OGT, v[0], s.constant(0)), v[0], below)};
}
// Reads y: below 0 the slope alpha e^x is y + alpha.
RULE(EluBackwardOp) {
  SCALAR;
  Value below = s.mul(v[0], s.add(v[1], s.constant(getAlpha().convertToDouble())));
  return {s.select(s.compare(P::OGT, v[1], s.constant(0)), v[0], below)};
}
RULE(RoundOp) {
  switch (getRounding()) {
  case Rounding::Down:
    return {math::FloorOp::create(builder, getLoc(), v[0])};
  case Rounding::Up:
    return {math::CeilOp::create(builder, getLoc(), v[0])};
  case Rounding::NearestEven:
    return {math::RoundEvenOp::create(builder, getLoc(), v[0])};
  case Rounding::TowardZero:
    return {math::TruncOp::create(builder, getLoc(), v[0])};
  }
  return {};
}
llvm::SmallVector<Value> DetachOp::buildScalar(OpBuilder &, ValueRange v) { return {v[0]}; }
RULE(RemainderOp) { return {arith::RemFOp::create(builder, getLoc(), v[0], v[1])}; }
RULE(ScaleOp) {
  SCALAR;
  return {s.mul(v[0], s.constant(getFactor().convertToDouble()))};
}
RULE(DropoutOp) {
  SCALAR;
  double ratio = getRatio().convertToDouble();
  Value draw = UniformOp::create(builder, getLoc(), builder.getF32Type(), getKey(), getGroup(), getFirst());
  Value kept = s.mul(v[0], s.constant(ratio < 1 ? 1 / (1 - ratio) : 0));
  return {s.select(s.compare(P::OLT, draw, s.constant(ratio)), s.constant(0), kept)};
}
// 1 - u lies in (0, 1], of which the logarithm is finite.
RULE(NoiseOp) {
  SCALAR;
  const auto uniform = [&](uint64_t key) {
    return UniformOp::create(builder, getLoc(), builder.getF32Type(), key, /*group=*/uint64_t(1), getFirst())
        .getResult();
  };
  const uint64_t key = getKey(), second = uint64_t(1) << 32;
  if (getDistribution() == Distribution::Uniform)
    return {s.add(v[0], uniform(key))};
  Value logarithm = s.log(s.sub(s.constant(1), uniform(key)));
  Value radius = s.sqrt(s.mul(s.constant(-2), logarithm));
  return {s.add(v[0], s.mul(radius, s.cos(s.mul(s.constant(2 * M_PI), uniform(key | second)))))};
}
RULE(AddOp) {
  SCALAR;
  return {s.add(v[0], v[1])};
}
RULE(SubOp) {
  SCALAR;
  return {s.sub(v[0], v[1])};
}
RULE(MulOp) {
  SCALAR;
  return {s.mul(v[0], v[1])};
}
RULE(DivOp) {
  SCALAR;
  return {s.div(v[0], v[1])};
}

RULE(CompareOp) {
  SCALAR;
  static constexpr P predicates[] = {P::OEQ, P::OLT, P::OLE};
  Value holds = s.compare(predicates[static_cast<int>(getPredicate())], v[0], v[1]);
  return {s.select(holds, s.constant(1), s.constant(0))};
}
RULE(SelectOp) {
  SCALAR;
  return {s.select(s.compare(P::OGT, v[0], s.constant(0)), v[1], v[2])};
}
RULE(SelectBackwardOp) {
  SCALAR;
  Value first = s.compare(P::OGT, v[1], s.constant(0)), zero = s.constant(0);
  return {getOther() ? s.select(first, zero, v[0]) : s.select(first, v[0], zero)};
}

// BatchNorm. Operand order: x, mean, rstd, scale, bias and so on, as declared.
RULE(NormalizeOp) {
  SCALAR;
  return {s.add(s.mul(s.xhat(v[0], v[1], v[2]), v[3]), v[4])};
}
// The sums are dscale and dbias.
RULE(NormalizeReduceOp) {
  SCALAR;
  return {s.mul(v[0], s.xhat(v[1], v[2], v[3])), v[0]};
}
// The gradient through x and through both statistics of its row.
RULE(LayerNormBackwardOp) {
  SCALAR;
  Value scaled = s.mul(v[0], v[2]), xhat = s.xhat(v[1], v[3], v[4]);
  const auto mean = [&](StringRef name, Value x) {
    return s.named(name, RowMeanOp::create(builder, getLoc(), builder.getF32Type(), x));
  };
  Value shift = mean("shift", scaled), slope = mean("slope", s.mul(scaled, xhat));
  return {s.mul(v[4], s.sub(s.sub(scaled, shift), s.mul(xhat, slope)))};
}
// dx = scale rstd (dy - mean(dy) - xhat mean(dy xhat)), the gradient through x and through both statistics of it. The
// means are the sums of normalize_reduce, dscale and dbias, divided by how many elements they are over.
RULE(NormalizeBackwardOp) {
  SCALAR;
  Value inverse = s.constant(1.0 / static_cast<double>(getCount()));
  Value xhat = s.xhat(v[1], v[2], v[3]);
  Value centred = s.sub(s.sub(v[0], s.mul(v[6], inverse)), s.mul(xhat, s.mul(v[5], inverse)));
  return {s.mul(s.mul(v[4], v[3]), centred)};
}
RULE(ChannelAffineOp) {
  SCALAR;
  return {s.add(s.mul(s.xhat(v[0], v[1], s.rstd(v[2], getEpsilon())), v[3]), v[4])};
}
RULE(ChannelAffineReduceOp) {
  SCALAR;
  return {s.mul(v[0], s.xhat(v[1], v[2], s.rstd(v[3], getEpsilon()))), v[0]};
}
// The statistics are given, not taken of x, so that no mean is subtracted.
RULE(ChannelAffineBackwardOp) {
  SCALAR;
  return {s.mul(v[0], s.mul(v[2], s.rstd(v[1], getEpsilon())))};
}

bool ChannelAffineOp::isChannelOperand(unsigned i) { return i > 0; }
bool ChannelAffineBackwardOp::isChannelOperand(unsigned i) { return i > 0; }
bool NormalizeOp::isChannelOperand(unsigned i) { return i > 0; }
bool NormalizeBackwardOp::isChannelOperand(unsigned i) { return i > 1; }
bool NormalizeReduceOp::isChannelOperand(unsigned i) { return i > 1 && ranked(getOperand(i)).getRank() == 1; }
bool ChannelAffineReduceOp::isChannelOperand(unsigned i) { return i > 1; }
bool NormalizeReduceOp::isSumResult(unsigned) { return true; }
bool ChannelAffineReduceOp::isSumResult(unsigned) { return true; }

INFER(DropoutOp) {
  const int64_t count = elements(op.getX().getType()), group = op.getGroup();
  const auto first = static_cast<int64_t>(op.getFirst());
  if (group < 1 || count % group || first % group) // C1
    return fail(loc, "groups of ", group, " do not divide ", count, " elements after ", first);
  types.push_back(op.getX().getType());
  return success();
}

LogicalResult NoiseOp::verify() { // C1: as of every elementwise op
  if (getKey() >> 32)             // C2
    return emitOpError() << "has the key " << getKey() << ", must be below 2^32";
  return success();
}

/// The result has the layout of whichever operand has its shape: the other one is read again and again.
static LogicalResult broadcastType(MaybeLoc loc, RankedTensorType a, RankedTensorType b, Types &types) {
  SmallVector<int64_t> shape;
  if (!broadcast(a.getShape(), b.getShape(), shape))
    return fail(loc, "operands ", a, " and ", b, " do not broadcast");
  types.push_back(RankedTensorType::get(shape, a.getElementType(),
                                        a.getShape() == ArrayRef<int64_t>(shape) ? a.getEncoding() : b.getEncoding()));
  return success();
}
INFER(AddOp) { return broadcastType(loc, ranked(op.getA()), ranked(op.getB()), types); }
INFER(SubOp) { return broadcastType(loc, ranked(op.getA()), ranked(op.getB()), types); }
INFER(MulOp) { return broadcastType(loc, ranked(op.getA()), ranked(op.getB()), types); }
INFER(DivOp) { return broadcastType(loc, ranked(op.getA()), ranked(op.getB()), types); }
INFER(RemainderOp) { return broadcastType(loc, ranked(op.getA()), ranked(op.getB()), types); }
INFER(CompareOp) { return broadcastType(loc, ranked(op.getA()), ranked(op.getB()), types); }
INFER(SelectOp) {
  SmallVector<Type> values;
  if (failed(broadcastType(loc, ranked(op.getA()), ranked(op.getB()), values)))
    return failure();
  return broadcastType(loc, cast<RankedTensorType>(values[0]), ranked(op.getCondition()), types);
}

// SPDX-License-Identifier: Apache-2.0
// The Invertible methods: which fused regions can be undone, and the ops that do it.
#include "ir/Rules.h"
#include "ir/ScalarNames.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <cmath>
#include <optional>

using namespace mlir;
using namespace sluice;
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

/// The region that fuse makes of train.normalize and train.leaky_relu alone, by the scalars of their rules in the order
/// in which ir/Elementwise.cpp writes them: LeakyReLU is monotone and BatchNorm affine, so that x follows from the
/// result (Rota Bulo et al. 2018, Hascoet et al. 2019). No other results may be there: they would have to be made
/// again, too.
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

/// The steps that lead from an operand to the region's one result, last first: each adds, subtracts or multiplies by a
/// constant, and what it takes besides does not depend on the operand.
using Path = SmallVector<Operation *>;

/// Factors outside make x much smaller or larger than what it is rebuilt from.
constexpr float smallestFactor = 1e-3f, largestFactor = 1e3f;

/// Whether a step multiplies this operand of it by a constant that x survives.
bool rescales(Operation *step, Value operand) {
  llvm::APFloat factor(0.0f);
  return isa<arith::MulFOp>(step) &&
         matchPattern(step->getOperand(step->getOperand(0) == operand ? 1 : 0), m_ConstantFloat(&factor)) &&
         std::fabs(factor.convertToFloat()) >= smallestFactor && std::fabs(factor.convertToFloat()) <= largestFactor;
}

/// The path from the operand to the result if each step of it can be undone, as the sums at the end of residual and
/// reversible blocks can; none where a value on the way is read twice, so that undoing one reader would not do.
std::optional<Path> addend(FusedOp op, unsigned operand) {
  Block &body = op.getBody().front();
  Path path;
  Value now = body.getArgument(operand);
  while (now != cast<YieldOp>(body.getTerminator()).getValues()[0]) {
    if (!now.hasOneUse()) // what else reads it may meet this path again
      return std::nullopt;
    Operation *user = *now.getUsers().begin();
    if (!isa<arith::AddFOp, arith::SubFOp>(user) && !rescales(user, now))
      return std::nullopt;
    path.insert(path.begin(), user);
    now = user->getResult(0);
  }
  // Products alone are not worth it: what they read costs as little to make again.
  bool sums = llvm::any_of(path, [](Operation *step) { return isa<arith::AddFOp, arith::SubFOp>(step); });
  return now.hasOneUse() && sums ? std::optional(path) : std::nullopt;
}

/// The value before a step from the value after it; `map` has what the step takes besides.
Value undo(OpBuilder &b, Operation *step, Value through, Value behind, const IRMapping &map) {
  Location loc = withoutScalarName(step->getLoc());
  bool left = step->getOperand(0) == through;
  Value other = map.lookup(step->getOperand(left ? 1 : 0));
  if (isa<arith::MulFOp>(step))
    return arith::DivFOp::create(b, loc, behind, other);
  if (isa<arith::AddFOp>(step) || !left) {
    Value first = isa<arith::AddFOp>(step) ? behind : other, second = isa<arith::AddFOp>(step) ? other : behind;
    return arith::SubFOp::create(b, loc, first, second);
  }
  return arith::AddFOp::create(b, loc, behind, other);
}

/// x = y - f as a region over the result and the other operands, and the check that it kept its digits.
Value subtract(FusedOp op, unsigned operand, ArrayRef<Operation *> path, OpBuilder &builder, ValueRange operands,
               Value result) {
  SmallVector<Value> inputs = {result};
  SmallVector<int64_t> channels;
  for (auto [i, value] : llvm::enumerate(operands))
    if (i != operand) {
      if (op.isChannel(i))
        channels.push_back(inputs.size());
      inputs.push_back(value);
    }
  auto inverse = FusedOp::create(builder, op.getLoc(), TypeRange(op.domain()), inputs,
                                 builder.getDenseI64ArrayAttr(channels), builder.getI64IntegerAttr(0));
  attr::set<attr::Rule>(inverse, builder.getStringAttr("invert"));
  attr::set<attr::Inverse>(inverse, builder.getUnitAttr());
  OpBuilder b(builder.getContext());
  Block &block = inverse.getBody().emplaceBlock(), &body = op.getBody().front();
  block.addArgument(b.getF32Type(), withScalarName(op.getLoc(), "y"));
  b.setInsertionPointToStart(&block);
  IRMapping map;
  for (unsigned i = 0; i < operands.size(); ++i)
    if (i != operand)
      map.map(body.getArgument(i), block.addArgument(b.getF32Type(), body.getArgument(i).getLoc()));
  // All of the region but the path from operand to result, which is undone step by step from the result on.
  for (Operation &step : body.without_terminator())
    if (!llvm::is_contained(path, &step))
      b.clone(step, map);
  Value x = block.getArgument(0);
  for (auto [i, step] : llvm::enumerate(path))
    x = undo(b, step, i + 1 < path.size() ? path[i + 1]->getResult(0) : Value(body.getArgument(operand)), x, map);
  YieldOp::create(b, op.getLoc(), x);
  Value rebuilt = inverse.getResult(0);
  CheckCancellationOp::create(builder, op.getLoc(), RankedTensorType::get({cancellationParts, 2}, builder.getF32Type()),
                              rebuilt, result);
  return rebuilt;
}

/// A smaller one takes negative values out of half precision's range.
constexpr float smallestSlope = 1e-3f;

int64_t elementsPerChannel(RankedTensorType type) { return type.getNumElements() / type.getDimSize(1); }

/// C2 of both ops around guarded channels: a slot has room for one channel of x.
LogicalResult checkSaved(Operation *op, Type full, Type saved) {
  auto x = cast<RankedTensorType>(full), slots = cast<RankedTensorType>(saved);
  if (x.getRank() < 2 || slots.getRank() != 2 || slots.getDimSize(1) != elementsPerChannel(x) ||
      slots.getElementType() != x.getElementType())
    return op->emitOpError() << "needs [slots, elements per channel] of its type beside " << x << ", not " << slots;
  return success();
}

} // namespace

// Channels last: the kernel that undoes BatchNorm reads a pixel's channels next to one another.
bool FusedOp::isInvertible(unsigned operand) {
  RankedTensorType z = domain();
  if (getNumResults() != 1 || getSums() != 0 || isChannel(operand) || getInputs()[operand].getType() != z || !isReal(z))
    return false;
  if (addend(*this, operand))
    return true;
  auto matched = match(*this);
  bool channelsLast = z.getRank() == 2 || layoutOf(z) == LayoutKind::NHWC;
  return matched && matched->x == operand && channelsLast && matched->alpha.isFinite() &&
         matched->alpha.convertToFloat() >= smallestSlope;
}

/// One sixteenth of the channels, one at least. How many have to be saved depends on scale and bias, which change while
/// a program trains: it ends a step that needs more slots (train.save_guarded_channels). Null for sums, whose check is
/// train.check_cancellation instead.
RankedTensorType FusedOp::savedType(unsigned operand) {
  RankedTensorType x = domain();
  if (addend(*this, operand))
    return {};
  return RankedTensorType::get({(x.getDimSize(1) + 15) / 16, elementsPerChannel(x)}, x.getElementType());
}

Value FusedOp::buildSaved(OpBuilder &builder, unsigned operand, bool half) {
  auto matched = *match(*this);
  return SaveGuardedChannelsOp::create(builder, getLoc(), savedType(operand), getInputs()[matched.x],
                                       getInputs()[matched.scale], getInputs()[matched.bias], half);
}

Value FusedOp::buildInverse(OpBuilder &builder, unsigned operand, ValueRange operands, Value result, Value saved,
                            bool half) {
  if (auto path = addend(*this, operand))
    return subtract(*this, operand, *path, builder, operands, result);
  auto matched = *match(*this);
  return InvertBatchNormLeakyReluOp::create(builder, getLoc(), getInputs()[matched.x].getType(), result,
                                            operands[matched.mean], operands[matched.rstd], operands[matched.scale],
                                            operands[matched.bias], saved, matched.alpha, half);
}

LogicalResult SaveGuardedChannelsOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType());
  if (failed(checkSaved(*this, x, getSaved().getType()))) // C1
    return failure();
  if (elements(getScale().getType()) != x.getDimSize(1) || elements(getBias().getType()) != x.getDimSize(1)) // C2
    return emitOpError() << "needs one scale and bias for each of " << x.getDimSize(1) << " channels";
  return success();
}

LogicalResult InvertBatchNormLeakyReluOp::verify() {
  if (!getAlpha().isFinite() || !(getAlpha().convertToFloat() >= smallestSlope)) // C1
    return emitOpError() << "needs a slope of 0.001 at least, not " << getAlpha().convertToFloat();
  if (getX().getType() != getZ().getType()) // C3
    return emitOpError() << "rebuilds " << getX().getType() << " from " << getZ().getType()
                         << ", which must be one type";
  return checkSaved(*this, getZ().getType(), getSaved().getType()); // C2
}

LogicalResult CheckCancellationOp::verify() {
  auto maxima = cast<RankedTensorType>(getMaxima().getType());
  if (getX().getType() != getY().getType() || maxima.getRank() != 2 || maxima.getDimSize(1) != 2) // C1
    return emitOpError() << "compares " << getX().getType() << " with " << getY().getType() << " in " << maxima
                         << ", which must be two of one type in [parts, 2]";
  return success();
}

/// What z was rounded to last, where x and z have this type.
static DataType roundedTo(DataType stored, bool half) {
  return stored == DataType::F32 && half ? DataType::F16 : stored;
}

KERNEL(SaveGuardedChannelsOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::BatchNormInversion{calls.shape(in(0)), calls.shape(out(0))[0], 1.0f,
                                                    roundedTo(calls.type(in(0)), getHalf())},
                      "save", {in(0), in(1), in(2), out(0)});
}

KERNEL(InvertBatchNormLeakyReluOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::BatchNormInversion{calls.shape(in(0)), calls.shape(in(5))[0],
                                                    getAlpha().convertToFloat(),
                                                    roundedTo(calls.type(in(0)), getHalf())},
                      "invert", {in(0), in(1), in(2), in(3), in(4), in(5), out(0)});
}

KERNEL(CheckCancellationOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::CancellationCheck{elements(getX().getType()), calls.shape(out(0))[0]}, "run",
                      {in(0), in(1), out(0)});
}

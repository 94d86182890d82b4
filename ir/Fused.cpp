// SPDX-License-Identifier: Apache-2.0
// train.fused, and what it shares with the ops that it is made of: the shapes that a rule runs over.
#include "ir/Rules.h"
#include "runtime/FusedGeometry.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// C1 of elementwise ops, C2 of train.fused: `domain` is the shape that the rule runs over.
static LogicalResult checkDomain(Operation *op, RankedTensorType domain, llvm::function_ref<bool(unsigned)> isChannel,
                                 llvm::function_ref<bool(unsigned)> isSum) {
  int64_t channels = domain.getRank() < 2 ? 0 : domain.getDimSize(1);
  auto fits = [&](RankedTensorType type, bool vector) {
    SmallVector<int64_t> shape;
    return vector
               ? type.getShape() == ArrayRef<int64_t>{channels}
               : broadcast(type.getShape(), domain.getShape(), shape) && ArrayRef<int64_t>(shape) == domain.getShape();
  };
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    auto type = ranked(op->getOperand(i));
    if (!fits(type, isChannel(i)))
      return op->emitOpError() << "operand " << i << " of type " << type << " does not fit " << domain;
    if (type.getRank() == domain.getRank() && layoutOf(type) != layoutOf(domain))
      return op->emitOpError() << "operand " << i << " of type " << type << " has another layout than " << domain;
  }
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    if (auto type = ranked(op->getResult(i)); isSum(i) ? !fits(type, true) : type != domain)
      return op->emitOpError() << "result " << i << " of type " << type << " does not fit " << domain;
  return success();
}

LogicalResult sluice::train::verifyElementwise(Operation *op) {
  auto rule = cast<Elementwise>(op);
  auto isSum = [&](unsigned i) { return rule.isSumResult(i); };
  RankedTensorType domain = ranked(isSum(0) ? op->getOperand(0) : op->getResult(0));
  return checkDomain(op, domain, [&](unsigned i) { return rule.isChannelOperand(i); }, isSum); // C1
}

RankedTensorType FusedOp::domain() {
  return cast<RankedTensorType>(fullResults() ? getResult(0).getType() : getOperand(0).getType());
}

/// Whether neither draws nor means of rows are behind a scalar of a region.
static bool isOfOperands(Value scalar) {
  llvm::SmallDenseSet<Value> seen;
  SmallVector<Value> open{scalar};
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op)
      continue;
    if (isa<UniformOp, RowMeanOp>(op))
      return false;
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second)
        open.push_back(operand);
  }
  return true;
}

// A mask has a bit for each element of the domain, in the order of its elements, so that none broadcasts (C3).
LogicalResult FusedOp::verify() {
  Block &block = getBody().front();
  auto yield = dyn_cast<YieldOp>(block.back());
  size_t yielded = yield ? yield.getNumOperands() : 0;
  if (getSums() > getNumResults() || block.getNumArguments() != getNumOperands() || yielded != getNumResults()) // C1
    return emitOpError() << "has " << getNumOperands() << " operands for " << block.getNumArguments()
                         << " region arguments and " << getNumResults() << " results, " << getSums()
                         << " of them sums, for " << yielded << " yielded values";
  if (getNumOperands() == 0 || getNumResults() == 0)
    return emitOpError() << "needs an operand and a result";
  if (getNumOperands() + getNumResults() > FusedGeometry::maxOperands) // C4
    return emitOpError() << "has " << getNumOperands() << " operands and " << getNumResults()
                         << " results, a kernel walks over " << FusedGeometry::maxOperands << " tensors";
  for (unsigned i = 0; i < getNumOperands(); ++i) // C3
    if (auto type = ranked(getOperand(i)); type.getElementType().isInteger(1) && type.getShape() != domain().getShape())
      return emitOpError() << "mask " << i << " of type " << type << " does not fit " << domain();
  for (auto mean : block.getOps<RowMeanOp>()) // C5
    if (domain().getRank() != 2 || !isOfOperands(mean.getValue()))
      return emitOpError() << "takes means of rows of " << domain()
                           << (domain().getRank() == 2 ? ", of what draws or other means are behind" : "");
  return checkDomain(
      *this, domain(), [&](unsigned i) { return isChannel(i); }, [&](unsigned i) { return i >= fullResults(); }); // C2
}

KERNEL(FusedOp) { return {}; }

// Strategies go by kinds, as papers that offload inputs of some layers do; a region of several ops has the kind that
// its operands show.
OpKind FusedOp::opKind() {
  // A normalization has per-channel operands, a join more than one full-shape operand.
  if (!getChannels().empty())
    return OpKind::Norm;
  if (!getBody().getOps<UniformOp>().empty())
    return OpKind::Dropout;
  return getNumOperands() > 1 && isForward(*this) ? OpKind::Join : OpKind::Activation;
}

static std::optional<double> constantOf(Value scalar) {
  FloatAttr value;
  return matchPattern(scalar, m_Constant(&value)) ? std::optional(value.getValueAsDouble()) : std::nullopt;
}

/// An operand of one element, as constants of a model are.
static bool isOneNumber(Value scalar) {
  auto argument = dyn_cast<BlockArgument>(scalar);
  return argument && elements(argument.getOwner()->getParentOp()->getOperand(argument.getArgNumber()).getType()) == 1;
}

/// How often a comparison with a constant holds: draws are uniform in [0, 1); any other value lies around 0, or around
/// the constant that was added to it, on either side as often, and between the other bounds.
static double shareThatHolds(arith::CmpFOp compare) {
  std::optional<double> bound = constantOf(compare.getRhs());
  if (!bound)
    return 0.5;
  if (auto sum = compare.getLhs().getDefiningOp<arith::AddFOp>())
    for (Value addend : sum->getOperands())
      *bound -= constantOf(addend).value_or(isOneNumber(addend) ? 0.5 : 0); // the one of HardSigmoid's exports
  const bool less =
      compare.getPredicate() == arith::CmpFPredicate::OLT || compare.getPredicate() == arith::CmpFPredicate::OLE;
  const double below = compare.getLhs().getDefiningOp<UniformOp>() ? *bound
                       : *bound == 0                               ? 0.5
                       : *bound > 0                                ? 1.0
                                                                   : 0.0;
  return less ? below : 1 - below;
}

/// The share of zeros among the values of a region's scalar, taken as independent of one another: what zvc would leave
/// out (passes/plan/PackedForms.cpp), where no program has measured it. Products are zero where either factor is; of
/// what nothing is known there are none. `known`: values that several read are looked at once.
static double expectedZeros(Value scalar, llvm::DenseMap<Value, double> &known) {
  if (const auto found = known.find(scalar); found != known.end())
    return found->second;
  double zeros = 0;
  auto product = scalar.getDefiningOp<arith::MulFOp>();
  auto select = scalar.getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  if (std::optional<double> value = constantOf(scalar))
    zeros = *value == 0;
  else if (product && product.getLhs() != product.getRhs())
    zeros = 1 - (1 - expectedZeros(product.getLhs(), known)) * (1 - expectedZeros(product.getRhs(), known));
  else if (compare) {
    const double taken = shareThatHolds(compare);
    zeros = taken * expectedZeros(select.getTrueValue(), known) +
            (1 - taken) * expectedZeros(select.getFalseValue(), known);
  }
  return known[scalar] = zeros;
}

double FusedOp::expectedZeros(unsigned result) {
  llvm::DenseMap<Value, double> known;
  return ::expectedZeros(getBody().front().getTerminator()->getOperand(result), known);
}

StringRef FusedOp::resultSuffix(unsigned result, bool backward) {
  return result < fullResults() ? "" : backward ? "_dsum" : "_sum";
}

int64_t FusedOp::flops() {
  int64_t perElement = static_cast<int64_t>(getBody().front().getOperations().size()) - 1;
  return elements(domain()) * std::max<int64_t>(1, perElement);
}

PrecisionPreference FusedOp::precisionPreference() { return PrecisionPreference::Mixed; }

bool FusedOp::isOperandWide(unsigned i) { return isChannel(i); }
bool FusedOp::isResultWide(unsigned i) { return i >= fullResults(); }

// Sums go over all dimensions but the channels, which kernels with channels last take as columns. A draw belongs to the
// place of its element, so that draws fix the order by rank alone: then a program draws the same numbers whatever
// stands around the region.
LayoutPreference FusedOp::layoutPreference() {
  if (getSums())
    return LayoutPreference::ChannelsLast;
  if (!draws())
    return LayoutPreference::Follow;
  return domain().getRank() == 4 ? LayoutPreference::ChannelsLast : LayoutPreference::RowMajor;
}

bool FusedOp::draws() { return !getBody().getOps<UniformOp>().empty(); }
bool FusedOp::hasRowMeans() { return !getBody().getOps<RowMeanOp>().empty(); }

// One region has one order: sums and draws of one rank may ask for different ones, but for those ranks where both
// orders coincide or both ask for channels last.
bool FusedOp::mayJoin(FusedOp other) {
  const int64_t rank = domain().getRank();
  const bool oneOrder = rank < 3 || rank == 4, summed = getSums() || other.getSums();
  return oneOrder || !summed || (!draws() && !other.draws());
}

// SPDX-License-Identifier: Apache-2.0
// One rule for each kind of op, from the operands' axes to the results'. What no rule knows mixes samples: it is
// computed for all of them at once, and so is what reads its results.
#include "passes/SampleAxes.h"

#include "passes/AttentionAxes.h"
#include "passes/DecodeAxes.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

using Axis = std::optional<unsigned>;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }
static unsigned rankOf(Value value) { return static_cast<unsigned>(shapeOf(value).size()); }

namespace {

class Rule {
public:
  Rule(Operation *op, int64_t samples, function_ref<Axis(Value)> axisOf) : op(op), samples(samples), axisOf(axisOf) {
    rule.operands.resize(op->getNumOperands());
    axes.resize(op->getNumResults());
    if (llvm::any_of(op->getOperands(), [&](Value v) { return axisOf(v).has_value(); }))
      find();
  }

  PartRule rule;
  SmallVector<Axis> axes; ///< of the results
  bool parted = false;    ///< by the rule

private:
  void find() {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](Elementwise o) { elementwise(o); })
        .Case<CastOp>([&](auto) { take({{0, *axisOf(op->getOperand(0))}}, axisOf(op->getOperand(0))); })
        .Case([&](ReshapeOp o) { reshape(o); })
        .Case([&](TransposeOp o) { transpose(o); })
        .Case<SliceOp, PadSlabOp, ConcatOp, SoftmaxOp, SoftmaxBackwardOp>(
            [&](auto o) { across(static_cast<unsigned>(o.getAxis())); })
        .Case<SumToOp, BroadcastToOp>([&](auto o) { aligned(o.getX(), o.getY()); })
        .Case<LayerNormOp>([&](auto) { images({0}); })
        .Case<LayerNormBackwardOp>([&](auto) { images({0, 1, 3, 4}); })
        .Case<ConvOp, ConvTransposeOp, MaxPoolOp, AveragePoolOp, LrnOp, ResizeOp, ConvBackwardDataOp,
              AveragePoolBackwardOp, ResizeBackwardOp>([&](auto) { images({0}); })
        .Case<MaxPoolBackwardOp, LrnBackwardOp>([&](auto) { images({0, 1}); })
        .Case<ConvBackwardWeightOp>([&](auto) { images({0, 1}, PartResult::Share); })
        .Case<BatchNormStatisticsOp>([&](auto) { images({0}, PartResult::Statistics); })
        .Case([&](EmbeddingOp o) { embedding(o); })
        .Case([&](EmbeddingBackwardOp o) {
          if (const Axis ids = axisOf(o.getIds()))
            take({{0, *ids}, {1, *ids}}, {}, PartResult::Share);
        })
        .Case([&](MatmulOp o) { product(o); })
        .Case<AttentionOp, AttentionBackwardOp>([&](auto) { attention(); })
        .Case([&](SoftmaxCrossEntropyOp o) { loss(LossForm::SoftmaxCrossEntropy, o.getIgnoreIndex().has_value()); })
        .Case([&](BceWithLogitsOp o) { loss(LossForm::BceWithLogits, o.getIgnoreIndex().has_value()); })
        .Case<MseOp>([&](auto) { loss(LossForm::MeanSquaredError, false); })
        .Case([&](LossBackwardOp o) { loss(o.getLoss(), o.getIgnoreIndex().has_value()); });
  }

  /// Takes part along `dim` of each of these operands, which have the samples there or nowhere; a result that has them
  /// has them in `result`.
  bool take(ArrayRef<std::pair<unsigned, unsigned>> operands, Axis result, PartResult kind = PartResult::Rows) {
    for (auto [number, dim] : operands)
      rule.operands[number] = dim;
    for (OpOperand &use : op->getOpOperands()) {
      const Axis own = axisOf(use.get()), taken = rule.operands[use.getOperandNumber()];
      if (own && own != taken)
        return false;
    }
    rule.results = kind;
    if (kind == PartResult::Rows)
      for (Axis &axis : axes)
        axis = result;
    return parted = true;
  }
  /// `operands` have samples along their first dimension.
  void images(ArrayRef<unsigned> operands, PartResult kind = PartResult::Rows) {
    SmallVector<std::pair<unsigned, unsigned>> first;
    for (unsigned operand : operands)
      first.push_back({operand, 0});
    take(first, 0, kind);
  }

  /// By numpy's rules, from the last dimension on.
  void elementwise(Elementwise e) {
    const Value domain = e.isSumResult(0) ? op->getOperand(0) : op->getResult(0);
    const unsigned rank = rankOf(domain);
    Axis dim;
    for (OpOperand &use : op->getOpOperands())
      if (const Axis own = axisOf(use.get()); own && !e.isChannelOperand(use.getOperandNumber()))
        dim = *own + rank - rankOf(use.get());
    bool channels = e.isSumResult(0);
    SmallVector<std::pair<unsigned, unsigned>> operands;
    for (OpOperand &use : op->getOpOperands()) {
      const unsigned number = use.getOperandNumber(), missing = rank - rankOf(use.get());
      channels |= e.isChannelOperand(number);
      if (dim && !e.isChannelOperand(number) && *dim >= missing &&
          shapeOf(use.get())[*dim - missing] == shapeOf(domain)[*dim])
        operands.push_back({number, *dim - missing});
    }
    if (!dim || (channels && *dim == 1))
      return;
    if (take(operands, dim, e.isSumResult(0) ? PartResult::Share : PartResult::Rows) && op->hasAttr("key"))
      draws(domain, *dim);
  }

  /// Draws are by an element's place in the batch; groups of elements that have one in common are not cut.
  void draws(Value domain, unsigned dim) {
    rule.first = typeOf(domain).getNumElements() / samples;
    auto dropout = dyn_cast<DropoutOp>(op);
    parted = dim == 0 && (!dropout || rule.first % static_cast<int64_t>(dropout.getGroup()) == 0);
  }

  void reshape(ReshapeOp o) {
    const unsigned from = *axisOf(o.getX());
    const ArrayRef<int64_t> x = shapeOf(o.getX());
    const int64_t step = stepOf(x, {from, 1, x[from] / samples});
    if (const auto to = sluice::axisOf(shapeOf(o.getY()), step, samples); to && to->outer == 1)
      take({{0, from}}, static_cast<unsigned>(to->dim));
  }

  void transpose(TransposeOp o) {
    const auto from = static_cast<int64_t>(*axisOf(o.getX()));
    take({{0, from}}, static_cast<unsigned>(llvm::find(o.getPermutation(), from) - o.getPermutation().begin()));
  }

  /// An op that works along `axis`: on each sample alone if they stand elsewhere, in the same place in all operands.
  void across(unsigned axis) {
    Axis dim;
    for (Value operand : op->getOperands())
      if (const Axis own = axisOf(operand))
        dim = own;
    if (!dim || dim == axis)
      return;
    SmallVector<std::pair<unsigned, unsigned>> operands;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      operands.push_back({i, *dim});
    take(operands, dim);
  }

  /// The smaller of both, aligned at the end, may have one element for all samples.
  void aligned(Value x, Value y) {
    const Axis from = axisOf(x);
    const auto to = static_cast<int64_t>(*from) + rankOf(y) - rankOf(x);
    if (to >= 0 && shapeOf(y)[to] == shapeOf(x)[*from])
      take({{0, *from}}, static_cast<unsigned>(to));
    else
      take({{0, *from}}, {}, PartResult::Share);
  }

  /// Rows are behind the ids' dimensions.
  void embedding(EmbeddingOp o) {
    if (const Axis ids = axisOf(o.getIds()))
      take({{1, *ids}}, ids);
  }

  /// Samples are rows of a, columns of b, matrices of a batch, or what is summed over.
  void product(MatmulOp o) {
    const Value a = o.getA(), b = o.getB(), y = o.getY();
    const unsigned ra = rankOf(a), rb = rankOf(b), ry = rankOf(y);
    const Axis inA = axisOf(a), inB = axisOf(b);
    const unsigned rows = o.getTransposeA() ? ra - 1 : ra - 2, columns = o.getTransposeB() ? rb - 2 : rb - 1;
    const unsigned innerA = 2 * ra - 3 - rows, innerB = 2 * rb - 3 - columns;
    if (inA == rows && !inB)
      factor(o, {{0, rows}}, ry - 2);
    else if (inB == columns && !inA)
      factor(o, {{1, columns}}, ry - 1);
    else if ((inA == innerA || inB == innerB) && (!inA || inA == innerA) && (!inB || inB == innerB) && !o.getBias())
      take({{0, innerA}, {1, innerB}}, {}, PartResult::Share);
    else if (const Axis dim = inA ? Axis(*inA + ry - ra) : Axis(*inB + ry - rb); *dim + 2 < ry && !o.getBias())
      factor(o, {}, *dim);
  }
  /// Operands that have the result's dimension are read in part: factors that are given, or all; and the bias, which
  /// may have all rows or columns of the result.
  void factor(MatmulOp o, ArrayRef<std::pair<unsigned, unsigned>> factors, unsigned dim) {
    SmallVector<std::pair<unsigned, unsigned>> operands(factors);
    for (unsigned i = factors.empty() ? 0 : 2; i < op->getNumOperands(); ++i) {
      const unsigned missing = rankOf(o.getY()) - rankOf(op->getOperand(i));
      if (dim >= missing && shapeOf(op->getOperand(i))[dim - missing] == shapeOf(o.getY())[dim])
        operands.push_back({i, dim - missing});
    }
    take(operands, dim);
  }

  void attention() {
    if (auto found = attentionAxes(op, samples, axisOf); found && take(found->operands, {}))
      axes = found->results, rule.viewed = found->factors, parted = !found->draws;
  }

  /// A mean over all elements, or its gradient. Where targets do not count, the batch's count is what it divides by:
  /// rows of classes are told which they are. Other losses of classes are computed together, as --mixup lets them read
  /// the target of the sample before.
  void loss(LossForm form, bool ignores) {
    const bool isGradient = isa<LossBackwardOp>(op), ofClasses = form == LossForm::SoftmaxCrossEntropy;
    const PartResult kind = isGradient ? PartResult::Rows : PartResult::Mean;
    if (axisOf(op->getOperand(0)) != 0u || axisOf(op->getOperand(1)) != 0u || op->hasAttr("first"))
      return;
    if (ofClasses && rankOf(op->getOperand(0)) == 2)
      rule.operands[0] = 0, rule.first = shapeOf(op->getOperand(0))[0] / samples, parted = true,
      rule.results = isGradient ? kind : PartResult::Share;
    else if (take({{0, 0}, {1, 0}}, 0, kind))
      rule.scaled = isGradient, parted = !ignores && !ofClasses;
    if (isGradient)
      axes[0] = 0;
  }

  Operation *op;
  int64_t samples;
  function_ref<Axis(Value)> axisOf;
};

} // namespace

SampleAxes::SampleAxes(func::FuncOp function, int64_t samples, function_ref<bool(BlockArgument)> isShared,
                       int64_t above)
    : samples(samples), above(above) {
  for (BlockArgument argument : function.getArguments()) // an input may have no dimension of samples
    if (!isShared(argument) && rankOf(argument) > 0 && shapeOf(argument)[0] % samples == 0)
      axes[argument] = 0;
  for (Operation &op : function.getOps())
    visit(&op);
  for (bool any = true; any;) {
    any = false;
    for (Operation &op : function.getOps())
      if (ruleOf(&op) && !canPass(&op))
        any = rules.erase(&op);
  }
}

Axis SampleAxes::of(Value value) const {
  const auto found = axes.find(value);
  return found == axes.end() ? Axis() : Axis(found->second);
}

const PartRule *SampleAxes::ruleOf(Operation *op) const {
  const auto found = rules.find(op);
  return found == rules.end() ? nullptr : &found->second;
}

/// Reshapes are free either way, and go with what they read.
bool SampleAxes::paysInParts(Operation *op, const PartRule &rule) const {
  if (isa<ReshapeOp>(op))
    return op->getOperand(0).getDefiningOp() && ruleOf(op->getOperand(0).getDefiningOp());
  int64_t read = 0, written = 0;
  for (auto [operand, axis] : llvm::zip_equal(op->getOperands(), rule.operands))
    read += axis ? bytes(operand.getType()) : 0;
  for (Value result : op->getResults())
    written += bytes(result.getType());
  const bool isSum = rule.results != PartResult::Rows;
  return isSum ? written <= read && read >= above : read + written >= above;
}

/// Whether what the op reads can be cut, and what it makes joined, where the other side is computed for all samples:
/// slabs are of floats and ids, what is joined of floats.
bool SampleAxes::canPass(Operation *op) const {
  const PartRule &rule = *ruleOf(op);
  for (auto [operand, axis] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    Operation *maker = operand.getDefiningOp();
    const bool hasSlabs = isReal(operand.getType()) || getElementTypeOrSelf(operand.getType()).isInteger(64);
    if (axis && !hasSlabs && !(maker && ruleOf(maker)))
      return false;
  }
  for (Value result : op->getResults())
    for (OpOperand &use : result.getUses()) {
      const PartRule *reader = ruleOf(use.getOwner());
      if (!isReal(result.getType()) && !(reader && reader->operands[use.getOperandNumber()]))
        return false;
    }
  return true;
}

void SampleAxes::visit(Operation *op) {
  Rule rule(op, samples, [&](Value value) { return of(value); });
  for (auto [result, axis] : llvm::zip_equal(op->getResults(), rule.axes))
    if (axis)
      axes[result] = *axis;
  if (rule.parted && paysInParts(op, rule.rule))
    rules[op] = std::move(rule.rule);
}

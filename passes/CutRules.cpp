// SPDX-License-Identifier: Apache-2.0
// See CutRules.h. What mixes rows is computed for all of them at once, and so is what reads its results.
#include "passes/CutRules.h"

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

/// What is cut alike whatever the rows are.
class Rule {
public:
  Rule(Operation *op, CutAlong along, int64_t samples, function_ref<Axis(Value)> axisOf)
      : op(op), along(along), samples(samples), axisOf(axisOf) {
    found.operands.resize(op->getNumOperands());
    found.results.resize(op->getNumResults());
    found.windows.resize(op->getNumOperands());
  }

protected:
  bool isCut() const {
    return llvm::any_of(op->getOperands(), [&](Value v) { return axisOf(v).has_value(); });
  }

  void find() {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](Elementwise o) { elementwise(o); })
        .Case<CastOp>([&](auto) { take({{0, *axisOf(op->getOperand(0))}}, axisOf(op->getOperand(0))); })
        .Case([&](TransposeOp o) { transpose(o); })
        .Case<SliceOp, PadSlabOp, ConcatOp, SoftmaxOp, SoftmaxBackwardOp>(
            [&](auto o) { across(static_cast<unsigned>(o.getAxis())); })
        .Case<SumToOp, BroadcastToOp>([&](auto o) { aligned(o.getX(), o.getY()); })
        .Case<LrnOp>([&](auto) { images({0}); })
        .Case<LrnBackwardOp>([&](auto) { images({0, 1}); })
        .Case<BatchNormStatisticsOp>([&](auto) { images({0}, PartResult::Statistics); });
  }

  /// Takes part along `dim` of each of these operands, which have the samples there or nowhere; a result that has them
  /// has them in `result`.
  bool take(ArrayRef<std::pair<unsigned, unsigned>> operands, Axis result, PartResult kind = PartResult::Rows) {
    for (auto [number, dim] : operands)
      found.operands[number] = dim;
    for (OpOperand &use : op->getOpOperands()) {
      const Axis own = axisOf(use.get()), taken = found.operands[use.getOperandNumber()];
      if (own && own != taken)
        return false;
    }
    found.kind = kind;
    if (kind == PartResult::Rows)
      for (Axis &axis : found.results)
        axis = result;
    return found.parted = true;
  }
  /// `operands` have samples along their first dimension, rows along the third.
  void images(ArrayRef<unsigned> operands, PartResult kind = PartResult::Rows) {
    const unsigned rows = along == CutAlong::Batch ? 0 : 2;
    SmallVector<std::pair<unsigned, unsigned>> first;
    for (unsigned operand : operands)
      first.push_back({operand, rows});
    take(first, rows, kind);
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
    found.parted = along == CutAlong::Batch && dim == 0;
    if (!found.parted)
      return;
    found.first = typeOf(domain).getNumElements() / samples;
    if (auto dropout = dyn_cast<DropoutOp>(op))
      found.parted = found.first % static_cast<int64_t>(dropout.getGroup()) == 0;
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

  Operation *op;
  CutAlong along;
  int64_t samples;
  OpAxes found;
  function_ref<Axis(Value)> axisOf;
};

/// Samples of the batch, outermost in a dimension.
class SampleRule : public Rule {
public:
  using Rule::Rule;

  OpAxes axes() {
    if (isCut())
      find(), findSamples();
    return std::move(found);
  }

private:
  void findSamples() {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](ReshapeOp o) { reshape(o); })
        .Case<LayerNormOp>([&](auto) { images({0}); })
        .Case<LayerNormBackwardOp>([&](auto) { images({0, 1, 3, 4}); })
        .Case<ConvOp, ConvTransposeOp, MaxPoolOp, AveragePoolOp, ResizeOp, ConvBackwardDataOp, AveragePoolBackwardOp,
              ResizeBackwardOp>([&](auto) { images({0}); })
        .Case<MaxPoolBackwardOp>([&](auto) { images({0, 1}); })
        .Case<ConvBackwardWeightOp>([&](auto) { images({0, 1}, PartResult::Share); })
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

  void reshape(ReshapeOp o) {
    const unsigned from = *axisOf(o.getX());
    const ArrayRef<int64_t> x = shapeOf(o.getX());
    const int64_t step = stepOf(x, {from, 1, x[from] / samples});
    if (const auto to = sluice::axisOf(shapeOf(o.getY()), step, samples); to && to->outer == 1)
      take({{0, from}}, static_cast<unsigned>(to->dim));
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
    if (auto axes = attentionAxes(op, samples, axisOf); axes && take(axes->operands, {}))
      found.results = axes->results, found.viewed = axes->factors, found.parted = !axes->draws;
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
      found.operands[0] = 0, found.first = shapeOf(op->getOperand(0))[0] / samples, found.parted = true,
      found.kind = isGradient ? kind : PartResult::Share;
    else if (take({{0, 0}, {1, 0}}, 0, kind))
      found.scaled = isGradient, found.parted = !ignores && !ofClasses;
    if (isGradient)
      found.results[0] = 0;
  }
};

/// Rows of images, or slices of volumes.
class ImageRule : public Rule {
public:
  using Rule::Rule;

  OpAxes axes() {
    if (isCut())
      find();
    findWindows();
    return std::move(found);
  }

private:
  /// What has windows reads and writes images, whether or not what it reads is cut. Means over windows that leave the
  /// padding out would leave out rows of other parts, and those that round up count padding which nobody wrote down.
  void findWindows() {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](ConvOp o) { windows(o, kernelOf(o.getW()), {{0, false}}); })
        .Case([&](ConvTransposeOp o) { windows(o, kernelOf(o.getW()), {{0, true}}); })
        .Case([&](ConvBackwardDataOp o) { windows(o, kernelOf(o.getW()), {{0, true}}); })
        .Case([&](ConvBackwardWeightOp o) { windows(o, kernelOf(o.getDw()), {{1, false}}, {0}, PartResult::Share); })
        .Case([&](MaxPoolOp o) { windows(o, o.getKernel()[0], {{0, false}}); })
        .Case([&](MaxPoolBackwardOp o) { windows(o, o.getKernel()[0], {{0, true}, {1, true}}); })
        .Case([&](AveragePoolOp o) {
          if (!o.getCeilMode() || !o.getCountIncludePad())
            windows(o, o.getKernel()[0], {{0, false}});
        })
        .Case([&](AveragePoolBackwardOp o) {
          if (o.getCountIncludePad() || o.getKernel()[0] <= o.getStrides()[0])
            windows(o, o.getKernel()[0], {{0, true}});
        });
  }
  static int64_t kernelOf(Value w) { return shapeOf(w)[2]; }

  template <typename Op>
  void windows(Op o, int64_t kernel, ArrayRef<std::pair<unsigned, bool>> operands, ArrayRef<unsigned> rowByRow = {},
               PartResult kind = PartResult::Rows) {
    const auto dilations = o->template getAttrOfType<DenseI64ArrayAttr>("dilations"); // means may have none
    const int64_t dilation = dilations ? dilations[0] : 1;
    SmallVector<unsigned> taken(rowByRow);
    for (auto [operand, transposed] : operands) {
      found.windows[operand] = Window{(kernel - 1) * dilation + 1, o.getStrides()[0], o.getPads()[0], transposed};
      taken.push_back(operand);
    }
    images(taken, kind);
  }
};

} // namespace

OpAxes sluice::axesOf(Operation *op, CutAlong along, int64_t samples, function_ref<Axis(Value)> axisOf) {
  return along == CutAlong::Batch ? SampleRule(op, along, samples, axisOf).axes()
                                  : ImageRule(op, along, samples, axisOf).axes();
}

// SPDX-License-Identifier: Apache-2.0
// See AttentionAxes.h. Factors may be views of a tensor with samples in front, the result may be written in another
// order, masks broadcast, and with masks there are two sums for each row.
#include "passes/AttentionAxes.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

using Axis = std::optional<unsigned>;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }
static unsigned rankOf(Value value) { return static_cast<unsigned>(shapeOf(value).size()); }

namespace {

template <typename Op> class Finder {
public:
  Finder(Op op, int64_t samples, AxisOf axisOf) : op(op), samples(samples), axisOf(axisOf) {}

  std::optional<AttentionAxes> find() {
    const ArrayRef<int64_t> q = op.getQViewAttr() ? op.getQViewAttr().getShape() : shapeOf(op.getQ());
    const Axis found = factorAxis(op.getQ(), op.getQViewAttr());
    rank = static_cast<unsigned>(q.size());
    if (!found || *found + 2 >= rank || factorAxis(op.getK(), op.getKViewAttr()) != found ||
        factorAxis(op.getV(), op.getVViewAttr()) != found)
      return {};
    dim = inY = *found, extent = q[dim];
    if (const auto order = op.getYOrder())
      inY = static_cast<unsigned>(llvm::find(*order, static_cast<int64_t>(dim)) - order->begin());
    AttentionAxes axes;
    for (OpOperand &use : op->getOpOperands())
      if (const Axis axis = operandAxis(use.get()))
        axes.operands.push_back({use.getOperandNumber(), *axis});
    setResults(op, axes.results);
    axes.factors = dim;
    axes.draws = op.getRatio().convertToFloat() > 0;
    return axes;
  }

private:
  /// In what attention reads of a factor.
  Axis factorAxis(Value value, ViewAttr view) {
    const Axis own = axisOf(value);
    if (!view || own != 0u)
      return view ? Axis() : own;
    for (auto [at, step] : llvm::enumerate(view.getSteps()))
      if (const int64_t each = view.getShape()[at] / samples;
          each * samples == view.getShape()[at] && each * step * samples == elements(value.getType()))
        return static_cast<unsigned>(at);
    return {};
  }

  Axis operandAxis(Value value) {
    if (llvm::is_contained({op.getQ(), op.getK(), op.getV()}, value))
      return axisOf(value);
    if (llvm::is_contained(op.getMasks(), value)) {
      const unsigned missing = rank - rankOf(value);
      return dim >= missing && shapeOf(value)[dim - missing] == extent ? Axis(dim - missing) : Axis();
    }
    return value == op.getLogsumexp() ? inSums() : inY; // else y or its gradient
  }
  unsigned inSums() { return dim + rankOf(op.getLogsumexp()) + 1 - rank; }

  void setResults(AttentionOp, SmallVector<Axis> &results) { results = {inY, inSums()}; }
  /// Factors that are views of one tensor have one gradient: all, or k and v.
  void setResults(AttentionBackwardOp, SmallVector<Axis> &results) {
    results = {axisOf(op.getQ())};
    if (op->getNumResults() == 3)
      results.push_back(axisOf(op.getK()));
    if (op->getNumResults() > 1)
      results.push_back(axisOf(op.getV()));
  }

  Op op;
  int64_t samples;
  AxisOf axisOf;
  unsigned rank = 0, dim = 0, inY = 0;
  int64_t extent = 0;
};

} // namespace

std::optional<AttentionAxes> sluice::attentionAxes(Operation *op, int64_t samples, AxisOf axisOf) {
  if (auto forward = dyn_cast<AttentionOp>(op))
    return Finder<AttentionOp>(forward, samples, axisOf).find();
  return Finder<AttentionBackwardOp>(cast<AttentionBackwardOp>(op), samples, axisOf).find();
}

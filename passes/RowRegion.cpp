// SPDX-License-Identifier: Apache-2.0
// From the scores backwards to the products that make them, then from the gradient of the scores forwards in program
// order, until rows are summed or meet weights again.
#include "passes/RowRegion.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static std::string called(Operation *op) {
  return "'" + op->getName().stripDialect().str() + "' of node '" + nodeName(op->getLoc()) + "'";
}

unsigned sluice::leadingDimensions(ArrayRef<int64_t> shape, int64_t rows) {
  int64_t elements = 1;
  unsigned found = 0;
  for (unsigned i = 0; i + 1 < shape.size(); ++i)
    if ((elements *= shape[i]) == rows)
      found = i + 1;
  return found;
}

namespace {

/// How an operand of an elementwise op, or of a product's row, goes with the rows of its result.
enum class Along { Rows, AllRows, Neither };

class Finder {
public:
  explicit Finder(SoftmaxCrossEntropyOp loss) {
    region.loss = loss;
    region.rows = shapeOf(loss.getX())[0];
  }

  Result<RowRegion> find() {
    if (shapeOf(region.loss.getX()).size() != 2)
      return Error{"its scores are " + text(region.loss.getX()) + ", with classes that are not the last dimension"};
    if (region.loss.getFirst())
      return Error{"it is of some rows already"};
    if (!takeScores(region.loss.getX()) || !scoresAreOwn() || !takeGradients())
      return Error{why};
    return std::move(region);
  }

private:
  static std::string text(Value value) {
    std::string shape;
    for (int64_t extent : shapeOf(value))
      shape += (shape.empty() ? "" : "x") + std::to_string(extent);
    return shape;
  }
  bool refuse(const std::string &reason) {
    why = reason;
    return false;
  }
  bool mixesRows(Operation *op) { return refuse("its rows are not apart in " + called(op)); }

  /// `lead`: leading dimensions of the result that are its rows.
  static Along along(Value operand, Value result, unsigned lead) {
    ArrayRef<int64_t> own = shapeOf(operand), all = shapeOf(result);
    const size_t missing = all.size() - own.size();
    bool rows = missing == 0, none = true;
    for (size_t i = missing; i < lead; ++i) {
      rows &= own[i - missing] == all[i];
      none &= own[i - missing] == 1;
    }
    return none ? Along::AllRows : rows ? Along::Rows : Along::Neither;
  }

  /// Whether the op works on each element alone, whatever shape these have.
  static bool worksOnElements(Operation *op) {
    auto elementwise = dyn_cast<Elementwise>(op);
    if (!elementwise || op->getNumResults() != 1 || op->hasAttr("key") || elementwise.isSumResult(0))
      return false;
    return llvm::none_of(op->getOpOperands(),
                         [&](OpOperand &use) { return elementwise.isChannelOperand(use.getOperandNumber()); });
  }

  /// y = a b, where the rows of a are those of y and b is the same for all.
  bool isProductOfRows(MatmulOp op) const {
    return !op.getTransposeA() && shapeOf(op.getB()).size() == 2 && !region.made.count(op.getB()) &&
           leadingDimensions(shapeOf(op.getA()), region.rows) == shapeOf(op.getA()).size() - 1 &&
           (!op.getBias() || along(op.getBias(), op.getY(), 1) == Along::AllRows);
  }

  /// y = a' b, a sum over the rows of both.
  bool isSumOverRows(MatmulOp op) const {
    return op.getTransposeA() && !op.getTransposeB() && !op.getBias() && shapeOf(op.getA()).size() == 2 &&
           shapeOf(op.getB()).size() == 2 && shapeOf(op.getA())[0] == region.rows;
  }

  /// Takes in what makes a forward value of the rows.
  bool takeScores(Value value) {
    if (region.made.count(value))
      return true;
    Operation *op = value.getDefiningOp();
    const unsigned lead = leadingDimensions(shapeOf(value), region.rows);
    if (!op || isa<ReadOp>(op))
      return refuse("no product with weights makes its scores");
    if (lead == 0)
      return mixesRows(op);
    if (auto product = dyn_cast<MatmulOp>(op)) {
      if (!isProductOfRows(product))
        return mixesRows(op);
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      if (!takeScores(reshape.getX()))
        return false;
    } else if (!worksOnElements(op) || !takeOperands(op, lead)) {
      return why.empty() ? mixesRows(op) : false;
    }
    region.made[value] = lead;
    region.forward.insert(op); // after what it reads
    return true;
  }

  bool takeOperands(Operation *op, unsigned lead) {
    for (Value operand : op->getOperands()) {
      const Along how = along(operand, op->getResult(0), lead);
      if (how == Along::Neither)
        return false;
      if (how == Along::Rows && !takeScores(operand))
        return false;
    }
    return true;
  }

  /// Whether no other loss is made of the scores, whose gradient would join that of this one.
  bool scoresAreOwn() {
    for (auto [value, lead] : region.made)
      for (Operation *user : value.getUsers())
        if (isForward(user) && !region.contains(user))
          return refuse(called(user) + " reads its scores, too");
    return true;
  }

  bool takeGradients() {
    for (Operation *user : region.loss.getX().getUsers())
      if (auto gradient = dyn_cast<LossBackwardOp>(user); gradient && gradient.getTarget() == region.loss.getTarget())
        region.gradient = gradient;
    if (!region.gradient)
      return true;
    region.made[region.gradient.getDx()] = 1;
    llvm::DenseSet<Value> open = {region.gradient.getDx()}; // gradients that go on row by row
    for (Operation *op = region.gradient->getNextNode(); op; op = op->getNextNode())
      if (llvm::any_of(op->getOperands(), [&](Value v) { return open.contains(v); }) && !takeGradient(op, open))
        return false;
    return true;
  }

  bool takeGradient(Operation *op, llvm::DenseSet<Value> &open) {
    region.backward.insert(op);
    if (auto product = dyn_cast<MatmulOp>(op)) {
      if (isProductOfRows(product)) // back at what the head reads
        return region.made[product.getY()] = shapeOf(product.getY()).size() - 1, true;
      return isSumOverRows(product) ? region.sums.insert(op), true : mixesRows(op);
    }
    if (auto sum = dyn_cast<SumToOp>(op)) {
      const unsigned lead = region.made.lookup(sum.getX());
      return along(sum.getY(), sum.getX(), lead) == Along::AllRows ? region.sums.insert(op), true : mixesRows(op);
    }
    const unsigned lead = op->getNumResults() == 1 ? leadingDimensions(shapeOf(op->getResult(0)), region.rows) : 0;
    if (lead == 0 || !(isa<ReshapeOp>(op) || worksOnElements(op)))
      return mixesRows(op);
    for (Value operand : op->getOperands())
      if (!isa<ReshapeOp>(op) && !region.made.count(operand) &&
          along(operand, op->getResult(0), lead) != Along::AllRows)
        return mixesRows(op);
    region.made[op->getResult(0)] = lead;
    open.insert(op->getResult(0));
    return true;
  }

  RowRegion region;
  std::string why;
};

} // namespace

Result<RowRegion> sluice::rowRegionOf(SoftmaxCrossEntropyOp loss) { return Finder(loss).find(); }

Operation *sluice::otherReader(const RowRegion &region) {
  for (auto [value, lead] : region.made)
    if (region.forward.contains(value.getDefiningOp()))
      for (Operation *user : value.getUsers())
        if (!region.contains(user))
          return user;
  return nullptr;
}

// SPDX-License-Identifier: Apache-2.0
// assign-layouts, in one walk over each function:
//  1. function arguments of rank 4 become NHWC when a channels-last op reads them: batches are brought in that order
//  for nothing;
//  2. every op's operands are brought into the layout that it wants, through a train.reorder shared by later users of
//  the same layout;
//  3. its rank-4 results get the layout that it gives. A transpose that can be a view in some layout is one.
#include "passes/Passes.h"

namespace sluice {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

RankedTensorType rank4(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 4 ? type : RankedTensorType();
}

LayoutPreference preferenceOf(Operation *op) {
  auto aware = dyn_cast<LayoutAware>(op);
  return aware ? aware.layoutPreference() : LayoutPreference::RowMajor;
}

bool isFixed(OpOperand &operand) {
  auto aware = dyn_cast<LayoutAware>(operand.getOwner());
  return aware && aware.isLayoutFixed(operand.getOperandNumber());
}

bool wantsChannelsLast(OpOperand &operand) {
  return preferenceOf(operand.getOwner()) == LayoutPreference::ChannelsLast && !isFixed(operand);
}

class Assigner {
public:
  int reorders = 0;

  void run(func::FuncOp function) {
    Block &block = function.getBody().front();
    for (BlockArgument argument : block.getArguments())
      if (auto type = rank4(argument); type && llvm::any_of(argument.getUses(), wantsChannelsLast))
        argument.setType(withLayout(type, LayoutKind::NHWC));
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
      if (!isa<ReadOp>(op))
        assign(&op);
    function.setType(FunctionType::get(function.getContext(), block.getArgumentTypes(), function.getResultTypes()));
  }

private:
  /// The layout that all of an op's free rank-4 operands and results get.
  LayoutKind target(Operation *op) {
    switch (preferenceOf(op)) {
    case LayoutPreference::ChannelsLast:
      return LayoutKind::NHWC;
    case LayoutPreference::RowMajor:
      return LayoutKind::RowMajor;
    case LayoutPreference::Follow:
      break;
    }
    // The largest operand decides; broadcast operands follow.
    Value largest;
    for (Value operand : op->getOperands())
      if (rank4(operand) && (!largest || elements(operand.getType()) > elements(largest.getType())))
        largest = operand;
    return largest ? layoutOf(largest.getType()) : LayoutKind::RowMajor;
  }

  /// Whether the transpose of x as it lies is a view in some layout, which its result gets.
  static bool becomesView(Operation *op) {
    auto transpose = dyn_cast<TransposeOp>(op);
    for (LayoutKind layout : {LayoutKind::RowMajor, LayoutKind::NHWC}) {
      if (!transpose || (layout == LayoutKind::NHWC && !rank4(transpose.getY())))
        return false;
      auto type = withLayout(transpose.getY().getType(), layout);
      if (keepsOrder(transpose.getX().getType(), type, transpose.getPermutation())) {
        transpose.getY().setType(type);
        return true;
      }
    }
    return false;
  }

  void assign(Operation *op) {
    if (becomesView(op))
      return;
    auto aware = dyn_cast<LayoutAware>(op);
    LayoutKind layout = target(op);
    for (OpOperand &operand : op->getOpOperands())
      if (rank4(operand.get()))
        operand.set(inLayout(op, operand.get(), isFixed(operand) ? LayoutKind::RowMajor : layout));
    for (OpResult result : op->getResults())
      if (auto type = rank4(result); type && !(aware && aware.isResultLayoutFixed(result.getResultNumber())))
        result.setType(withLayout(type, layout));
  }

  Value inLayout(Operation *user, Value value, LayoutKind layout) {
    auto type = rank4(value);
    if (layoutOf(type) == layout)
      return value;
    Value &known = reordered[{value, static_cast<int>(layout)}];
    if (known)
      return known;
    OpBuilder b(user);
    auto op = ReorderOp::create(b, user->getLoc(), withLayout(type, layout), value);
    copyOrdinal(user, op);
    reorders += !layoutsCoincide(type);
    return known = op.getY();
  }

  llvm::DenseMap<std::pair<Value, int>, Value> reordered;
};

struct AssignLayouts : sluice::impl::AssignLayoutsBase<AssignLayouts> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      Assigner assigner;
      assigner.run(function);
      reorders += assigner.reorders;
    }
  }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
// assign-layouts, in one walk over each function:
//  1. function arguments become NHWC when a channels-last op reads them, as they are or with one spatial dimension
//  more: batches are brought in that order for nothing;
//  2. every op's operands are brought into the layout that it wants, through a train.reorder shared by later users of
//  the same layout;
//  3. its results get the layout that it gives. A transpose that can be a view in some layout is one, and a reshape
//  that adds or joins spatial dimensions is one in every layout.
// Convolutions, pools and their like have kernels for channels last, other ops for row-major tensors. Said once here
// for both halves of the step, an image changes its order where it has to, and not around every kernel.
#include "passes/Passes.h"

namespace sluice {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

RankedTensorType imageType(Value value) {
  return isImage(value.getType()) ? cast<RankedTensorType>(value.getType()) : RankedTensorType();
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

/// A reshape from a line to an image of height 1 or back, or between a volume and what has fewer dimensions. (Images
/// that become sequences [N,C,H*W] do not count: what reads those is row-major.)
bool changesSpatialRank(Operation *op) {
  auto reshape = dyn_cast<ReshapeOp>(op);
  if (!reshape)
    return false;
  auto x = cast<RankedTensorType>(reshape.getX().getType()), y = cast<RankedTensorType>(reshape.getY().getType());
  if (x.getRank() > y.getRank())
    std::swap(x, y);
  return keepsChannels(x, y) && x.getRank() < y.getRank() && (y.getRank() == 5 || y.getDimSize(2) == 1);
}

/// Whether a channels-last op reads the value. Lines and volumes also count through a reshape; other tensors of their
/// ranks are no images.
bool feedsChannelsLast(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *op = use.getOwner();
    return wantsChannelsLast(use) ||
           (changesSpatialRank(op) && llvm::any_of(op->getResult(0).getUses(), wantsChannelsLast));
  });
}

/// One function, in program order: when an op is looked at, its operands have the layouts that they end up with.
class Assigner {
public:
  int reorders = 0;

  /// Variables stay row-major, as files and other programs know them; their readers reorder them where they must.
  void run(func::FuncOp function) {
    Block &block = function.getBody().front();
    for (BlockArgument argument : block.getArguments())
      if (auto type = imageType(argument); type && feedsChannelsLast(argument))
        argument.setType(withLayout(type, LayoutKind::NHWC));
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
      if (!isa<ReadOp>(op))
        assign(&op);
    function.setType(
        FunctionType::get(function.getContext(), block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  }

private:
  /// The largest rank among an op's images. Those of smaller ranks are broadcast or sums, and row-major.
  static int64_t rankOf(Operation *op) {
    int64_t rank = 0;
    for (Value operand : op->getOperands())
      if (auto type = imageType(operand))
        rank = std::max(rank, type.getRank());
    if (rank == 0)
      for (Value result : op->getResults())
        if (auto type = imageType(result))
          rank = std::max(rank, type.getRank());
    return rank;
  }

  /// Whether a tensor of another rank lies along several dimensions of the op's images, so that its order matters.
  static bool hasMatrix(Operation *op, int64_t rank) {
    auto isMatrix = [&](Value value) {
      auto type = cast<RankedTensorType>(value.getType());
      return type.getRank() != rank && llvm::count_if(type.getShape(), [](int64_t extent) { return extent > 1; }) > 1;
    };
    return llvm::any_of(op->getOperands(), isMatrix) || llvm::any_of(op->getResults(), isMatrix);
  }

  /// The layout that all of an op's free operands and results of this rank get.
  LayoutKind target(Operation *op, int64_t rank) {
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
    if (rank != 4 && hasMatrix(op, rank))
      return LayoutKind::RowMajor;
    for (Value operand : op->getOperands())
      if (hasRank(operand, rank) && (!largest || elements(operand.getType()) > elements(largest.getType())))
        largest = operand;
    return largest ? layoutOf(largest.getType()) : LayoutKind::RowMajor;
  }

  static bool hasRank(Value value, int64_t rank) {
    auto type = imageType(value);
    return type && type.getRank() == rank;
  }

  /// Whether the transpose of x as it lies is a view in some layout, which its result gets.
  static bool becomesView(Operation *op) {
    auto transpose = dyn_cast<TransposeOp>(op);
    for (LayoutKind layout : {LayoutKind::RowMajor, LayoutKind::NHWC}) {
      if (!transpose || (layout == LayoutKind::NHWC && !mayBeChannelsLast(transpose.getY())))
        return false;
      auto type = withLayout(transpose.getY().getType(), layout);
      if (keepsOrder(transpose.getX().getType(), type, transpose.getPermutation())) {
        transpose.getY().setType(type);
        return true;
      }
    }
    return false;
  }

  static bool mayBeChannelsLast(Value value) {
    auto type = imageType(value);
    return type && (type.getRank() == 4 || feedsChannelsLast(value));
  }

  /// Transposes and reshapes come first: those that are views in some layout take the layout in which they are,
  /// whatever reads them, and cost nothing. Of all others operands are brought into the op's layout.
  void assign(Operation *op) {
    if (becomesView(op))
      return;
    if (changesSpatialRank(op)) {
      auto reshape = cast<ReshapeOp>(op);
      reshape.getY().setType(withLayout(reshape.getY().getType(), layoutOf(reshape.getX().getType())));
      return;
    }
    auto aware = dyn_cast<LayoutAware>(op);
    const int64_t rank = rankOf(op);
    LayoutKind layout = target(op, rank);
    for (OpOperand &operand : op->getOpOperands())
      if (imageType(operand.get())) {
        const bool free = hasRank(operand.get(), rank) && !isFixed(operand);
        operand.set(inLayout(op, operand.get(), free ? layout : LayoutKind::RowMajor));
      }
    for (OpResult result : op->getResults())
      if (hasRank(result, rank) && !(aware && aware.isResultLayoutFixed(result.getResultNumber())))
        result.setType(withLayout(imageType(result), layout));
  }

  /// In front of its first user, which all later ones share: backward ops, too, so that the copy lives as long as they
  /// need the value.
  Value inLayout(Operation *user, Value value, LayoutKind layout) {
    auto type = imageType(value);
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
    if (failed(checkRunsBefore(getOperation(), "sluice-assign-layouts", "sluice-assign-precision",
                               [](Operation *op) { return llvm::any_of(op->getResultTypes(), isHalf); })) ||
        failed(checkRunsBefore(getOperation(), "sluice-assign-layouts", "sluice-linearize", attr::has<attr::Stage>)))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      Assigner assigner;
      assigner.run(function);
      reorders += assigner.reorders;
    }
  }
};

} // namespace

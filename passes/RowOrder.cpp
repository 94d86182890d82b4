// SPDX-License-Identifier: Apache-2.0
// The order of rows does not matter between two transposes if all ops between take each row by itself: products
// with one matrix, sums with one row. PyTorch's multi-head attention changes from [batch, sequence] to [sequence,
// batch] before its projections and back after them; here they run in the order that is there.
#include "passes/MovedElements.h"
#include "passes/Patterns.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
int64_t columnsOf(Value value) { return typeOf(value).getRank() ? typeOf(value).getShape().back() : 1; }

bool isProduct(Operation *op, Value rows) {
  auto product = dyn_cast<MatmulOp>(op);
  return product && product.getA() == rows && product.getB() != rows && product.getBias() != rows &&
         !product.getTransposeA() && typeOf(product.getB()).getRank() == 2 &&
         (!product.getBias() || elements(product.getBias().getType()) == columnsOf(product.getBias()));
}

/// A transpose, and the ops after it, each the only reader of the one before, that take each row by itself.
class Rows {
public:
  /// Follows what becomes of the transposed rows as long as each op takes rows one by one; reshapes at the end are left
  /// out.
  explicit Rows(TransposeOp first) : first(first), end(first.getY()) {
    while (end.hasOneUse() && end.getDefiningOp()->getBlock() == first->getBlock()) {
      Operation *next = *end.user_begin();
      if (!isa<ReshapeOp>(next) && !Patterns::addedRow(next, end) && !isProduct(next, end))
        break;
      path.push_back(next);
      end = next->getResult(0);
    }
    while (!path.empty() && isa<ReshapeOp>(path.back())) { // whoever reads it there
      end = path.back()->getOperand(0);
      path.pop_back();
    }
  }

  bool rewrite() { return !path.empty() && keepsColumns() && (backToOrder() || intoAttention()); }

private:
  /// Reshapes join and split rows, or the columns of the transpose's result, but never both.
  bool keepsColumns() {
    int64_t columns = 0;
    for (Operation *op : path)
      if (auto reshape = dyn_cast<ReshapeOp>(op)) {
        if (columns && columnsOf(reshape.getY()) != columns)
          return false;
      } else {
        columns = columnsOf(op->getResult(0));
      }
    // The rows of the first op that takes rows are leading dimensions of the transpose's result.
    Value rows = firstRows();
    int64_t inner = 1;
    for (int64_t extent : llvm::reverse(first.getType().getShape()))
      if (inner < columnsOf(rows))
        inner *= extent;
    return inner == columnsOf(rows);
  }
  Value firstRows() {
    for (Operation *op : path)
      if (!isa<ReshapeOp>(op))
        return isa<MatmulOp>(op) || Patterns::addedRow(op, op->getOperand(0)) ? op->getOperand(0) : op->getOperand(1);
    llvm_unreachable("a path of reshapes was cut");
  }

  /// The ops of the path on [rows, columns].
  Value rebuild(OpBuilder &b, Value rows) {
    const int64_t count = elements(rows.getType()) / columnsOf(firstRows());
    auto matrix = [&](Value value, int64_t columns) { return Patterns::reshaped(b, value, {count, columns}); };
    rows = matrix(rows, columnsOf(firstRows()));
    Value before = first.getY();
    for (Operation *op : path) {
      b.setInsertionPoint(op);
      auto type = RankedTensorType::get({count, columnsOf(op->getResult(0))}, typeOf(rows).getElementType());
      if (auto product = dyn_cast<MatmulOp>(op)) {
        IRMapping map;
        map.map(product.getA(), rows);
        rows = b.clone(*op, map)->getResult(0);
        rows.setType(type);
      } else if (Value row = Patterns::addedRow(op, before)) {
        rows = AddOp::create(b, op->getLoc(), type, rows, Patterns::reshaped(b, row, {columnsOf(row)}));
      }
      before = op->getResult(0);
    }
    return rows;
  }

  /// After the path another transpose, maybe after a reshape: rows come in its order.
  bool backToOrder() {
    if (!end.hasOneUse())
      return false;
    Operation *next = *end.user_begin();
    auto reshape = dyn_cast<ReshapeOp>(next);
    auto last = dyn_cast<TransposeOp>(reshape && reshape->hasOneUse() ? *reshape->user_begin() : next);
    if (!last || last.getPermutation().back() != last.getType().getRank() - 1 || columnsOf(last) != columnsOf(end))
      return false;
    MovedElements moved(typeOf(first.getX()));
    moved.transpose(first.getPermutation());
    SmallVector<int64_t> shape(typeOf(last.getX()).getShape());
    // Rows as they begin the path: ops on it may have changed the number of columns.
    shape.back() = columnsOf(firstRows());
    if (!moved.reshape(shape))
      return false;
    moved.transpose(last.getPermutation());
    SmallVector<int64_t> order;
    if (!orderOf(moved, order))
      return false;
    OpBuilder b(first);
    Value start = first.getX();
    if (!llvm::is_sorted(order))
      start = TransposeOp::create(b, first.getLoc(), start, order);
    Value made = rebuild(b, start);
    b.setInsertionPoint(last);
    last.getY().replaceAllUsesWith(Patterns::reshaped(b, made, last.getType().getShape()));
    return true;
  }

  /// The permutation of the dimensions of the transpose's operand that gives these elements.
  bool orderOf(const MovedElements &moved, SmallVector<int64_t> &order) {
    auto x = typeOf(first.getX());
    SmallVector<MovedElements::Factor> dims;
    int64_t step = x.getNumElements();
    for (auto [i, extent] : llvm::enumerate(x.getShape())) {
      dims.push_back({extent, step /= extent});
      if (extent == 1)
        order.push_back(static_cast<int64_t>(i));
    }
    for (MovedElements::Factor f : moved.factors())
      while (f.extent > 1) {
        auto found = llvm::find_if(dims, [&](const MovedElements::Factor &dim) {
          return dim.extent > 1 && dim.extent * dim.step == f.extent * f.step && f.extent % dim.extent == 0;
        });
        if (found == dims.end())
          return false;
        order.push_back(found - dims.begin());
        f.extent /= found->extent;
      }
    return static_cast<int64_t>(order.size()) == x.getRank();
  }

  /// All that reads what the path gives are queries, keys and values, which then take the transpose into their views.
  bool intoAttention() {
    // [rows of the operand, columns of the path's end], transposed as before.
    const auto perm = first.getPermutation();
    const auto last = static_cast<int64_t>(perm.size()) - 1;
    if (columnsOf(firstRows()) != columnsOf(first) || perm.back() != last)
      return false;
    SmallVector<int64_t> shape(typeOf(first.getX()).getShape());
    shape.back() = columnsOf(end);
    MovedElements moved(RankedTensorType::get(shape, typeOf(end).getElementType()));
    moved.transpose(perm);
    if (!moved.reshape(typeOf(end).getShape()) || !follow(end, moved) || readers.empty())
      return false;
    for (auto &[attention, views] : readers)
      if (!areRead(views))
        return false;
    OpBuilder b(first);
    Value made = rebuild(b, first.getX());
    b.setInsertionPointAfterValue(end);
    Value turned = TransposeOp::create(b, first.getLoc(), Patterns::reshaped(b, made, shape), perm);
    end.replaceAllUsesWith(Patterns::reshaped(b, turned, typeOf(end).getShape()));
    return true;
  }

  using Views = std::array<ViewAttr, 3>;
  /// Through movements to queries, keys and values of attention, whose views it notes in `readers`. False for any other
  /// reader, which would see the rows in another order.
  bool follow(Value value, const MovedElements &moved) {
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      MovedElements next = moved;
      if (MovedElements::isMovement(op)) {
        if (!next.through(op) || !follow(op->getResult(0), next))
          return false;
        continue;
      }
      ViewAttr view = isa<AttentionOp>(op) && use.getOperandNumber() < 3 ? next.view(op->getContext()) : ViewAttr();
      if (!view)
        return false;
      readers[op][use.getOperandNumber()] = view;
    }
    return true;
  }
  /// Whether readAttentionInPlace reads them all from one tensor, or the only one.
  bool areRead(const Views &views) {
    SmallVector<ViewAttr> there(llvm::make_filter_range(views, [](ViewAttr view) { return bool(view); }));
    return (there.size() != 2 || !views[0]) && coverOnce(there, elements(end.getType()));
  }

  TransposeOp first;
  SmallVector<Operation *> path;
  Value end;
  llvm::MapVector<Operation *, Views> readers;
};

} // namespace

int sluice::keepRowOrder(ModuleOp module) {
  SmallVector<TransposeOp> found;
  module.walk([&](TransposeOp op) { found.push_back(op); });
  int made = 0;
  for (TransposeOp op : found)
    made += Rows(op).rewrite();
  for (auto function : module.getOps<func::FuncOp>()) // what was replaced; nothing was erased while the list is read
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  return made;
}

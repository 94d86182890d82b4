// SPDX-License-Identifier: Apache-2.0
// See FuseRows.h. Everything here is of gradients: what forward ops make is planned op by op.
#include "passes/FuseRows.h"

#include "ir/ScalarNames.h"
#include "passes/Regions.h"
#include "runtime/FusedGeometry.h"
#include "runtime/cuda/Cut.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// [rows, C] of a tensor [..., C].
RankedTensorType matrixOf(RankedTensorType type) {
  const int64_t columns = type.getShape().back();
  return RankedTensorType::get({type.getNumElements() / columns, columns}, type.getElementType());
}

/// The value as another type, as what it is a reshape of where that is it; else reshaped right behind what makes it.
Value reshaped(Value value, RankedTensorType type) {
  auto view = value.getDefiningOp<ReshapeOp>();
  if (view && view.getX().getType() == type)
    return view.getX();
  if (value.getType() == type)
    return value;
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  auto made = ReshapeOp::create(b, value.getLoc(), type, value);
  if (Operation *maker = value.getDefiningOp())
    copyOrdinal(maker, made);
  return made;
}

void eraseUnread(ValueRange values) {
  for (Value value : values)
    if (auto view = value.getDefiningOp<ReshapeOp>(); view && view->use_empty())
      view.erase();
}

/// An empty region whose arguments are named so.
FusedOp emptyRegion(OpBuilder &b, Location loc, TypeRange results, ValueRange operands, int64_t sums,
                    ArrayRef<Location> names) {
  auto op = FusedOp::create(b, loc, results, operands, b.getDenseI64ArrayAttr({}), b.getI64IntegerAttr(sums));
  Block &block = op.getBody().emplaceBlock();
  for (Location name : names)
    block.addArgument(b.getF32Type(), name);
  return op;
}

/// What a block of threads has room for.
bool fitsRows(RankedTensorType matrix) {
  return matrix.getDimSize(0) > 1 && matrix.getDimSize(1) > 1 && matrix.getDimSize(1) <= Cut::mostRowColumns;
}

void regionOf(LayerNormBackwardOp op) {
  OpBuilder b(op);
  SmallVector<Location> names;
  for (StringRef name : op.operandNames())
    names.push_back(withScalarName(op.getLoc(), name));
  FusedOp region = emptyRegion(b, op.getLoc(), op->getResultTypes(), op->getOperands(), 0, names);
  copyOrdinal(op, region);
  Block &block = region.getBody().front();
  b.setInsertionPointToStart(&block);
  YieldOp::create(b, op.getLoc(), op.buildScalar(b, block.getArguments()));
  const Location rule = NameLoc::get(StringAttr::get(op.getContext(), op->getName().stripDialect()), op.getLoc());
  for (Operation &inner : block.without_terminator()) {
    const StringRef own = scalarName(inner.getLoc());
    inner.setLoc(own.empty() ? rule : withScalarName(rule, own));
  }
  nameRules(region);
  op.replaceAllUsesWith(region.getResult(0));
  op.erase();
}

/// How an operand of a region over [..., C] looks to one over its rows; none: it differs within them.
std::optional<RankedTensorType> inRows(RankedTensorType type, RankedTensorType domain) {
  const ArrayRef<int64_t> shape = type.getShape();
  if (shape == domain.getShape())
    return matrixOf(type);
  const auto isRow = [&](ArrayRef<int64_t> leading) { return llvm::all_of(leading, [](int64_t n) { return n == 1; }); };
  if (shape.empty() || isRow(shape.drop_back()))
    return shape.size() < 2 ? type : RankedTensorType::get(shape.back(), type.getElementType());
  if (shape.back() == 1 && shape.drop_back() == domain.getShape().drop_back())
    return RankedTensorType::get({type.getNumElements(), 1}, type.getElementType());
  return std::nullopt;
}

/// Whether a matrix of the region's rows stands beside it: what a full operand is a reshape of, or what a reshape makes
/// of a result.
bool meetsMatrix(FusedOp op) {
  const RankedTensorType matrix = matrixOf(op.domain());
  const auto isOne = [&](Value operand) {
    auto view = operand.getDefiningOp<ReshapeOp>();
    return view && typeOf(operand).getShape() == op.domain().getShape() && typeOf(view.getX()) == matrix;
  };
  const auto isReadAsOne = [&](Operation *user) {
    return isa<ReshapeOp>(user) && user->getResult(0).getType() == matrix;
  };
  return llvm::any_of(op.getInputs(), isOne) || llvm::any_of(op->getUsers(), isReadAsOne);
}

/// The region over the rows of its domain: draws go by the place of an element, which is the same.
void flatten(FusedOp op) {
  const RankedTensorType domain = op.domain();
  if (domain.getRank() < 3 || domain.getEncoding() || op.getSums() || !op.getChannels().empty() || !meetsMatrix(op))
    return;
  SmallVector<RankedTensorType> types;
  for (Value operand : op.getInputs()) {
    std::optional<RankedTensorType> type = inRows(typeOf(operand), domain);
    if (!type)
      return;
    types.push_back(*type);
  }
  SmallVector<Value> operands;
  for (auto [operand, type] : llvm::zip(op.getInputs(), types))
    operands.push_back(reshaped(operand, type));
  OpBuilder b(op);
  const SmallVector<Type> results(op->getNumResults(), matrixOf(domain));
  auto flat = FusedOp::create(b, op.getLoc(), results, operands, op.getChannelsAttr(), op.getSumsAttr());
  flat->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  flat.getBody().takeBody(op.getBody());
  for (auto [old, made] : llvm::zip(op->getResults(), flat->getResults())) {
    auto view = ReshapeOp::create(b, op.getLoc(), domain, made);
    copyOrdinal(op, view);
    for (Operation *user : llvm::make_early_inc_range(old.getUsers()))
      if (isa<ReshapeOp>(user) && user->getResult(0).getType() == made.getType()) {
        user->getResult(0).replaceAllUsesWith(made);
        user->erase();
      }
    old.replaceAllUsesWith(view.getY());
    eraseUnread(view.getY());
  }
  const llvm::SetVector<Value> before(op->operand_begin(), op->operand_end());
  op.erase();
  eraseUnread(before.getArrayRef());
}

/// A sum over the rows of what a region makes, as a region behind that one, which may sink into it.
void regionOf(SumToOp sum) {
  const RankedTensorType matrix = matrixOf(typeOf(sum.getX())), result = typeOf(sum.getY());
  auto view = sum.getX().getDefiningOp<ReshapeOp>();
  const Value x = view && view.getX().getType() == matrix ? view.getX() : sum.getX();
  auto maker = x.getDefiningOp<FusedOp>();
  if (!maker || maker.domain() != matrix || matrix.getDimSize(0) < 2 || matrix.getDimSize(1) < 2 ||
      result.getNumElements() != matrix.getDimSize(1) || result.getShape().back() != matrix.getDimSize(1))
    return;
  OpBuilder b(sum.getContext());
  b.setInsertionPointAfter(maker);
  const Location rule = NameLoc::get(b.getStringAttr("sum"), sum.getLoc());
  const Type row = RankedTensorType::get(matrix.getDimSize(1), result.getElementType());
  FusedOp region = emptyRegion(b, sum.getLoc(), row, x, 1, {withScalarName(sum.getLoc(), "dy")});
  copyOrdinal(sum, region);
  Block &block = region.getBody().front();
  Value summed = block.getArgument(0);
  OpBuilder inside = OpBuilder::atBlockBegin(&block);
  if (!sum.getFactor().isExactlyValue(1))
    summed = arith::MulFOp::create(inside, rule, summed, arith::ConstantOp::create(inside, rule, sum.getFactorAttr()));
  YieldOp::create(inside, sum.getLoc(), summed);
  attr::set<attr::Rule>(region, b.getStringAttr("sum"));
  sum.replaceAllUsesWith(reshaped(region.getResult(0), result));
  sum.erase();
  if (view && view->use_empty())
    view.erase();
}

/// Whether the region may run right behind another one: all that it reads is there, but for sums of that one.
bool mayRunBehind(FusedOp op, FusedOp place) {
  return llvm::all_of(op.getInputs(), [&](Value operand) {
    Operation *maker = operand.getDefiningOp();
    return !maker || maker->isBeforeInBlock(place) ||
           (maker == place && cast<OpResult>(operand).getResultNumber() < place.fullResults());
  });
}

/// Whether `sums`, a region with sums in front of `rows`, reads what that reads, or what that reads follows from it
/// without a draw.
bool mayJoin(FusedOp sums, FusedOp rows) {
  const auto reads = [&](Value operand) { return llvm::is_contained(rows.getInputs(), operand); };
  return sums.getSums() > 0 && !sums.hasRowMeans() && !sums.draws() &&
         sums.domain().getShape() == rows.domain().getShape() && sums->isBeforeInBlock(rows) &&
         (llvm::all_of(sums.getInputs(), reads) || llvm::any_of(sums.getOutputs(), reads)) &&
         rows->getNumOperands() + rows->getNumResults() + sums->getNumOperands() + sums->getNumResults() <=
             FusedGeometry::maxOperands &&
         mayRunBehind(rows, sums);
}

/// What a region makes of its rows is reshaped where the first op reads it so: nothing stands in the way of others.
void moveToReader(ReshapeOp view) {
  Operation *first = nullptr;
  for (Operation *user : view->getUsers())
    first = !first || user->isBeforeInBlock(first) ? user : first;
  if (first && !isForward(view) && view.getX().getDefiningOp<FusedOp>())
    view->moveBefore(first);
}

} // namespace

void sluice::makeRowRegions(func::FuncOp function) {
  for (auto op : llvm::to_vector(function.getOps<LayerNormBackwardOp>()))
    if (fitsRows(typeOf(op.getDx())))
      regionOf(op);
  for (auto op : llvm::to_vector(function.getOps<FusedOp>()))
    if (!isForward(op))
      flatten(op);
  for (auto op : llvm::to_vector(function.getOps<SumToOp>()))
    if (!isForward(op))
      regionOf(op);
  for (auto view : llvm::to_vector(function.getOps<ReshapeOp>()))
    moveToReader(view);
}

// It comes right behind the sums, in front of the updates that read them.
int sluice::joinRowSums(func::FuncOp function) {
  int joined = 0;
  for (auto rows : llvm::to_vector(function.getOps<FusedOp>())) {
    if (!rows.hasRowMeans())
      continue;
    for (auto sums : llvm::to_vector(function.getOps<FusedOp>()))
      if (mayJoin(sums, rows)) {
        rows->moveAfter(sums);
        mergeRegions(sums, rows);
        ++joined;
        break;
      }
  }
  return joined;
}

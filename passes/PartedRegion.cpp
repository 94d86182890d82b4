// SPDX-License-Identifier: Apache-2.0
// See PartedRegion.h. Rows of a part lie along one dimension, whatever dimensions they have outside.
#include "passes/PartedRegion.h"

#include "passes/Reshapes.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static void sortByProgram(SmallVectorImpl<Operation *> &ops) {
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

PartedRegion::PartedRegion(const RowRegion &region, int64_t parts)
    : region(region), parts(parts), b(place()), loc(place()->getLoc()),
      ops(region.forward.begin(), region.forward.end()) {
  sortByProgram(ops);
  ops.push_back(region.loss);
  if (!region.gradient)
    return;
  ops.push_back(region.gradient);
  ops.append(region.backward.begin(), region.backward.end());
  SmallVector<Operation *> open = {region.loss};
  while (!open.empty())
    for (Operation *user : open.pop_back_val()->getUsers())
      if (user->isBeforeInBlock(place()) && lossReaders.insert(user))
        open.push_back(user);
}

bool PartedRegion::isOutside(Value value) const {
  return !value.getDefiningOp() || !region.contains(value.getDefiningOp());
}

/// Whether the value is known where the parts begin, or can be by then.
bool PartedRegion::mayMove(Value operand) const {
  Operation *op = operand.getDefiningOp();
  if (!op || (op->isBeforeInBlock(place()) && !lossReaders.contains(op)))
    return true;
  return !region.contains(op) && !lossReaders.contains(op) && (isa<ReadOp>(op) || isPure(op)) &&
         llvm::all_of(op->getOperands(), [&](Value v) { return mayMove(v); });
}

std::string PartedRegion::obstacle() const {
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (isOutside(operand) && !mayMove(operand))
        return "'" + nodeName(op->getLoc()) + "' reads what comes after the loss";
  for (Operation *op : lossReaders)
    if (!isPure(op))
      return "'" + nodeName(op->getLoc()) + "' reads the loss";
  const bool any = llvm::any_of(*place()->getBlock(), [&](Operation &op) {
    return isForward(&op) && !region.contains(&op) && !lossReaders.contains(&op);
  });
  return any || !region.gradient ? "" : "there is nothing before the product";
}

void PartedRegion::move(Value operand) {
  Operation *op = operand.getDefiningOp();
  if (!op || op->isBeforeInBlock(place()))
    return;
  for (Value source : op->getOperands())
    move(source);
  op->moveBefore(place());
  moved.push_back(op);
}

/// Ops of parts are no forward ops: a plan has nothing to do with what lives for one part.
void PartedRegion::note(Operation *made, Operation *of) {
  if (const int64_t ordinal = ordinalOf(of); ordinal >= 0) {
    made->removeAttr(attr::Forward::getNameStr());
    attr::set<attr::Backward>(made, b.getI64IntegerAttr(ordinal));
  }
}

Value PartedRegion::reshaped(Value value, Type type, Operation *of) {
  if (value.getType() == type)
    return value;
  auto view = ReshapeOp::create(b, loc, type, value);
  note(view, of);
  return view;
}

/// An operand of which each part reads its rows. All views of one tensor are one.
Value PartedRegion::wholeRows(Value value) {
  const RankedTensorType type = typeOf(value);
  SmallVector<int64_t> shape = {region.rows};
  llvm::append_range(shape, type.getShape().drop_front(leadingDimensions(type.getShape(), region.rows)));
  auto wanted = RankedTensorType::get(shape, type.getElementType());
  const Value root = withoutReshapes(value);
  for (auto [known, made] : whole)
    if (withoutReshapes(known) == root && made.getType() == wanted)
      return made;
  return reshaped(root, wanted, region.loss);
}

void PartedRegion::prepare(Operation *op) {
  auto product = dyn_cast<MatmulOp>(op);
  for (OpOperand &use : op->getOpOperands()) {
    const Value operand = use.get();
    if (!isOutside(operand) || whole.contains(operand) || same.contains(operand))
      continue;
    if (product && (use.getOperandNumber() == 0 || (region.sums.contains(op) && use.getOperandNumber() == 1))) {
      whole[operand] = wholeRows(operand);
      continue;
    }
    const auto known = isa<Elementwise>(op) ? region.made.find(op->getResult(0)) : region.made.end();
    if (known == region.made.end())
      continue;
    const size_t own = typeOf(op->getResult(0)).getRank() - known->second; // dimensions of a row
    const RankedTensorType type = typeOf(operand);
    if (type.getShape().size() > own + 1) // with ones along the rows' dimensions
      same.map(operand, reshaped(operand, RankedTensorType::get(type.getShape().take_back(own), type.getElementType()),
                                 region.loss));
  }
}

/// Of the only result of a region's op, for the rows of the part at hand.
Type PartedRegion::partType(Operation *op) const {
  const RankedTensorType type = typeOf(op->getResult(0));
  SmallVector<int64_t> shape(type.getShape());
  if (const auto known = region.made.find(op->getResult(0)); known != region.made.end()) {
    shape = {count};
    llvm::append_range(shape, type.getShape().drop_front(known->second));
  } else if (auto sum = dyn_cast<SumToOp>(op)) {
    const size_t own = typeOf(sum.getX()).getRank() - region.made.lookup(sum.getX());
    shape.erase(shape.begin(), shape.end() - std::min(own, shape.size()));
  }
  return RankedTensorType::get(shape, type.getElementType());
}

/// What a sum over rows is by now. A product is added to what there is, in its bytes.
Value PartedRegion::makeSum(Operation *op, Operation *made) {
  const Value before = sums.lookup(op->getResult(0));
  if (!before)
    return made->getResult(0);
  if (isa<MatmulOp>(op)) {
    made->insertOperands(2, before);
    return made->getResult(0);
  }
  auto sum = AddOp::create(b, loc, before, made->getResult(0));
  note(sum, op);
  return sum;
}

void PartedRegion::makeOp(Operation *op, IRMapping &map) {
  const Value result = op->getResult(0);
  const Type type = partType(op);
  if (isa<ReshapeOp>(op) && map.lookup(op->getOperand(0)).getType() == type) {
    map.map(result, map.lookup(op->getOperand(0)));
  } else {
    Operation *made = b.clone(*op, map);
    made->setLoc(loc);
    made->getResult(0).setType(type);
    note(made, op);
    if (op == region.loss || op == region.gradient)
      made->setAttr("first", b.getI64IntegerAttr(begin));
    if (op == region.loss || region.sums.contains(op))
      sums[result] = makeSum(op, made);
  }
  if (region.made.count(result) && !region.forward.contains(op) &&
      llvm::any_of(result.getUsers(), [&](Operation *user) { return !region.contains(user); }))
    joined[result].push_back(map.lookup(result));
}

void PartedRegion::makePart(int64_t part) {
  begin = region.rows * part / parts, count = region.rows * (part + 1) / parts - begin;
  const auto named = [&](Operation *op) {
    return NameLoc::get(b.getStringAttr(nodeName(op->getLoc()) + "/part" + std::to_string(part + 1)));
  };
  IRMapping map = same;
  Values slabs;
  SoftmaxCrossEntropyOp loss = region.loss;
  loc = named(loss.getX().getDefiningOp());
  for (auto [value, rows] : whole) {
    Value &slab = slabs[rows];
    if (!slab) {
      slab = SliceOp::create(b, loc, rows, 0, begin, count);
      note(slab.getDefiningOp(), region.loss);
    }
    map.map(value, slab);
  }
  for (Operation *op : ops) {
    loc = named(op);
    makeOp(op, map);
  }
}

void PartedRegion::replace() {
  for (auto [value, total] : sums) {
    Operation *op = value.getDefiningOp();
    loc = op->getLoc();
    value.replaceAllUsesWith(reshaped(total, value.getType(), op));
  }
  for (auto &[value, pieces] : joined) {
    Operation *op = value.getDefiningOp();
    loc = op->getLoc();
    SmallVector<int64_t> shape(typeOf(pieces.front()).getShape());
    shape.front() = region.rows;
    auto all = ConcatOp::create(b, loc, RankedTensorType::get(shape, typeOf(value).getElementType()), pieces, 0);
    note(all, op);
    value.replaceAllUsesWith(reshaped(all, value.getType(), op));
  }
  SmallVector<Operation *> readers(lossReaders.begin(), lossReaders.end());
  sortByProgram(readers);
  for (Operation *op : readers) {
    op->moveBefore(place());
    note(op, op);
  }
  for (Operation *op : llvm::reverse(ops))
    op->erase();
  for (Operation *op : llvm::reverse(moved)) // views of which parts have others
    if (isa<ReshapeOp>(op) && op->use_empty())
      op->erase();
}

void PartedRegion::run() {
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (isOutside(operand))
        move(operand);
  for (Operation *op : ops)
    prepare(op);
  for (int64_t part = 0; part < parts; ++part)
    makePart(part);
  replace();
}

// SPDX-License-Identifier: Apache-2.0
// See PartedStep.h. New ops are made at the function's end, in their order; old ones go when all are made.
#include "passes/PartedStep.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static RankedTensorType withExtent(RankedTensorType type, unsigned dim, int64_t extent) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = extent;
  return RankedTensorType::get(shape, type.getElementType());
}

PartedStep::PartedStep(func::FuncOp function, const StepCuts &cuts)
    : function(function), cuts(cuts), samples(cuts.request().samples), parts(cuts.request().parts),
      b(function.getContext()) {
  for (Operation &op : function.getBody().front().without_terminator())
    if (isParted(&op))
      left.insert(&op);
    else if (!isa<ReadOp>(op))
      wholeLeft.insert(&op);
}

/// Reads are made where they are wanted first, which must be on the same side of each change of their variable.
void PartedStep::findOrders() {
  llvm::StringMap<SmallVector<Operation *>> readers, changers;
  for (Operation &op : function.getBody().front().without_terminator()) {
    SmallVector<StringRef> read;
    for (Value operand : op.getOperands())
      if (auto variable = operand.getDefiningOp<ReadOp>())
        read.push_back(variable.getVariable());
    for (StringRef variable : read)
      llvm::append_range(before[&op], changers[variable]);
    if (!isa<ChangesVariables>(op)) {
      for (StringRef variable : read)
        readers[variable].push_back(&op);
      continue;
    }
    for (StringRef variable : read) {
      llvm::append_range(before[&op], readers[variable]);
      changers[variable].push_back(&op);
    }
  }
}

bool PartedStep::waitsForReaders(Operation *op) const {
  const auto found = before.find(op);
  return found != before.end() && llvm::any_of(found->second, [&](Operation *other) {
           return left.contains(other) || wholeLeft.contains(other);
         });
}

/// Whether the value is there for all rows, or all its parts are.
bool PartedStep::isWhole(Value value) const {
  Operation *op = value.getDefiningOp();
  return !op || isa<ReadOp>(op) || (!left.contains(op) && !wholeLeft.contains(op));
}

void PartedStep::run() {
  findOrders();
  Block &block = function.getBody().front();
  SmallVector<Operation *> old;
  for (Operation &op : block.without_terminator())
    old.push_back(&op);
  b.setInsertionPoint(block.getTerminator());
  for (makeWholeOps(); !left.empty(); makeWholeOps())
    sweep();
  assert(wholeLeft.empty() && "an op waits for itself");
  Operation *end = current = block.getTerminator();
  for (OpOperand &use : end->getOpOperands())
    use.set(whole(use.get()));
  for (Operation *op : llvm::reverse(old))
    op->erase();
}

void PartedStep::makeWholeOps() {
  for (bool any = true; any;) {
    any = false;
    for (Operation *op : llvm::to_vector(wholeLeft)) {
      if (waitsForReaders(op) || !llvm::all_of(op->getOperands(), [&](Value v) { return isWhole(v); }))
        continue;
      makeWholeOp(op);
      any = true;
    }
  }
}

void PartedStep::makeWholeOp(Operation *op) {
  current = op, currentPart = parts - 1;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(whole(operand));
  Operation *clone = b.clone(*op);
  clone->setOperands(operands);
  number(clone, op, -1);
  for (auto [from, to] : llvm::zip_equal(op->getResults(), clone->getResults()))
    all[from] = to;
  wholeLeft.remove(op);
}

/// Ops of parts that need nothing but what is there, and parts of one another.
SmallVector<Operation *> PartedStep::available() const {
  llvm::SetVector<Operation *> found;
  for (Operation *op : left) {
    const PartRule &rule = *cuts.ruleOf(op);
    const auto isThere = [&](OpOperand &use) {
      Operation *maker = use.get().getDefiningOp();
      const bool inSweep = maker && found.contains(maker) && cuts.ruleOf(maker)->results == PartResult::Rows;
      return isWhole(use.get()) || (inSweep && rule.operands[use.getOperandNumber()]);
    };
    if (llvm::all_of(op->getOpOperands(), isThere) && !waitsForReaders(op))
      found.insert(op);
  }
  return found.takeVector();
}

void PartedStep::sweep() {
  const SmallVector<Operation *> ops = available();
  assert(!ops.empty() && "parts wait for themselves");
  gathered.clear();
  for (int64_t part = 0; part < parts; ++part)
    for (Operation *op : ops)
      makePart(op, part);
  for (Operation *op : ops) {
    left.remove(op);
    if (cuts.ruleOf(op)->results == PartResult::Statistics)
      joinStatistics(op);
  }
}

void PartedStep::makePart(Operation *op, int64_t number) {
  const PartRule &rule = *cuts.ruleOf(op);
  current = op, currentPart = number;
  SmallVector<Value> operands;
  for (auto [operand, slabs] : llvm::zip_equal(op->getOperands(), rule.operands))
    operands.push_back(slabs ? read(operand, *slabs, number) : whole(operand));
  Operation *clone = b.clone(*op);
  clone->setOperands(operands);
  clone->setLoc(partLoc(op->getResult(0)));
  this->number(clone, op, number);
  tellPart(clone, rule, number);
  if (rule.results != PartResult::Rows && rule.results != PartResult::Statistics)
    return addShare(op, clone, number);
  for (auto [from, to] : llvm::zip_equal(op->getResults(), clone->getResults())) {
    if (const Cut *cut = cuts.cutOf(from))
      to.setType(withExtent(typeOf(from), cut->dim, cut->part(number).count()));
    Parts &own = made[from];
    own.resize(parts);
    own[number] = rule.scaled ? scaled(to, number) : to;
  }
}

/// What an op's attributes say of its part.
void PartedStep::tellPart(Operation *made, const PartRule &rule, int64_t part) {
  for (StringRef view : {"q_view", "k_view", "v_view"})
    if (auto whole = made->getAttrOfType<ViewAttr>(view)) {
      SmallVector<int64_t> shape(whole.getShape());
      shape[*rule.viewed] = shape[*rule.viewed] / samples * count(part);
      made->setAttr(view, ViewAttr::get(b.getContext(), shape, whole.getOffset(), whole.getSteps()));
    }
  if (rule.first)
    made->setAttr("first", b.getI64IntegerAttr(rule.first * begin(part)));
  if (rule.pads.empty())
    return;
  SmallVector<int64_t> pads(made->getAttrOfType<DenseI64ArrayAttr>("pads").asArrayRef());
  pads[0] = rule.pads[part].first, pads[pads.size() / 2] = rule.pads[part].second;
  made->setAttr("pads", b.getDenseI64ArrayAttr(pads));
  if (made->hasAttr("ceil_mode"))
    made->setAttr("ceil_mode", b.getBoolAttr(false)); // pads say what rounding up added
  if (auto transposed = dyn_cast<ConvTransposeOp>(made)) {
    SmallVector<int64_t> size(transposed.getOutputSize());
    size[0] = cuts.cutOf(current->getResult(0))->part(part).count();
    transposed.setOutputSize(size);
  }
}

/// Of what the current part has of a value.
Location PartedStep::partLoc(Value value) {
  const char *name = cuts.request().along == CutAlong::Batch ? "/batch" : "/rows";
  return NameLoc::get(b.getStringAttr(nodeName(value.getLoc()) + name + std::to_string(currentPart + 1)));
}

/// The part's share of all rows.
float PartedStep::shareOf(Operation *op, int64_t part) const {
  const PartRule &rule = *cuts.ruleOf(op);
  const auto first = llvm::find_if(rule.operands, [](const auto &slabs) { return slabs.has_value(); });
  const Value operand = op->getOperand(first - rule.operands.begin());
  return static_cast<float>(static_cast<double>((*first)->rows[part].count()) /
                            static_cast<double>(typeOf(operand).getDimSize((*first)->dim)));
}

Value PartedStep::scaled(Value value, int64_t part) {
  const FloatAttr share = b.getF32FloatAttr(shareOf(current, part));
  return numbered(ScaleOp::create(b, value.getLoc(), value.getType(), value, share));
}

/// A product is added to what there is, in its bytes.
void PartedStep::addShare(Operation *op, Operation *made, int64_t part) {
  auto product = dyn_cast<MatmulOp>(made);
  for (auto [from, result] : llvm::zip_equal(op->getResults(), made->getResults())) {
    Value share = result;
    if (cuts.ruleOf(op)->results == PartResult::Mean)
      share = scaled(share, part);
    Value &sum = all[from];
    if (sum && product && product.getAlpha().isExactlyValue(1)) {
      made->insertOperands(2, sum);
    } else if (sum) {
      share = numbered(AddOp::create(b, op->getLoc(), sum, share));
    }
    sum = share;
  }
}

/// With weights w, means m and q = 1/rstd^2 = variance + epsilon of the parts: m = sum of w m_i, and
/// q = sum of w (q_i + (m_i - m)^2).
void PartedStep::joinStatistics(Operation *op) {
  current = op;
  const Location loc = op->getLoc();
  const Parts means = made[op->getResult(0)], roots = made[op->getResult(1)];
  const Type type = means.front().getType();
  const auto sumOf = [&](function_ref<Value(int64_t)> summand) {
    Value sum;
    for (int64_t part = 0; part < parts; ++part) {
      const Value weighted = scaled(summand(part), part);
      sum = sum ? numbered(AddOp::create(b, loc, sum, weighted)) : weighted;
    }
    return sum;
  };
  const Value mean = sumOf([&](int64_t part) { return means[part]; });
  const Value variance = sumOf([&](int64_t part) {
    const Value own =
        numbered(ReciprocalOp::create(b, loc, type, numbered(MulOp::create(b, loc, roots[part], roots[part]))));
    const Value distance = numbered(SubOp::create(b, loc, means[part], mean));
    return numbered(AddOp::create(b, loc, own, numbered(MulOp::create(b, loc, distance, distance))));
  });
  all[op->getResult(0)] = mean;
  all[op->getResult(1)] =
      numbered(ReciprocalOp::create(b, loc, type, numbered(SqrtOp::create(b, loc, type, variance))));
}

/// What a part reads of an old value: what it made of it, or what parts made together, or a slab of what is whole.
Value PartedStep::read(Value value, const Slabs &slabs, int64_t part) {
  const Rows rows = slabs.rows[part];
  const Cut *cut = cuts.cutOf(value);
  if (!cut || !isParted(value.getDefiningOp()))
    return slab(value, slabs.dim, rows);
  return rows == cut->part(part) ? made[value][part] : gather(value, slabs.dim, rows);
}

Value PartedStep::gather(Value value, unsigned dim, Rows rows) {
  Value &known = gathered[{value, rows.begin, rows.end}];
  if (known)
    return known;
  const Cut &cut = *cuts.cutOf(value);
  SmallVector<Value> pieces;
  for (auto [i, piece] : llvm::enumerate(made[value])) {
    const Rows own = cut.part(static_cast<int64_t>(i));
    const Rows common = {std::max(own.begin, rows.begin), std::min(own.end, rows.end)};
    if (common == own)
      pieces.push_back(piece);
    else if (common.count() > 0)
      pieces.push_back(
          numbered(SliceOp::create(b, partLoc(value), piece, dim, common.begin - own.begin, common.count())));
  }
  if (pieces.size() == 1)
    return known = pieces.front();
  const auto type = withExtent(typeOf(value), dim, rows.count());
  return known = numbered(ConcatOp::create(b, partLoc(value), type, pieces, dim));
}

Value PartedStep::slab(Value value, unsigned dim, Rows rows) {
  Value &known = slabs[{value, rows.begin, rows.end}];
  if (known)
    return known;
  return known = numbered(SliceOp::create(b, partLoc(value), whole(value), dim, rows.begin, rows.count()));
}

/// An old value for all rows. Parts are joined, once.
Value PartedStep::whole(Value value) {
  if (isa<BlockArgument>(value))
    return value;
  if (const Value known = all.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (isa<ReadOp>(op))
    return all[value] = b.clone(*op)->getResult(0);
  const Parts &own = made[value];
  auto joined = ConcatOp::create(b, value.getLoc(), value.getType(), own, cuts.cutOf(value)->dim);
  return all[value] = numbered(joined);
}

/// Of what is made for the current op.
Value PartedStep::numbered(Operation *op) {
  number(op, current, currentPart);
  return op->getResult(0);
}

/// Numbers forward ops in their new order, and gives gradients the number of the part's forward op.
void PartedStep::number(Operation *made, Operation *of, int64_t part) {
  const int64_t old = ordinalOf(of);
  made->removeAttr(attr::Forward::getNameStr());
  made->removeAttr(attr::Backward::getNameStr());
  if (old < 0)
    return;
  const int64_t last = part < 0 ? parts - 1 : part;
  if (isForward(of) && !turned) {
    attr::set<attr::Forward>(made, b.getI64IntegerAttr(forward));
    for (int64_t i = part < 0 ? 0 : part; i <= last; ++i)
      ordinals[{old, i}] = forward;
    ++forward;
    return;
  }
  turned = true;
  const auto known = ordinals.find({old, last});
  const int64_t number = known != ordinals.end() ? known->second : std::max<int64_t>(forward - 1, 0);
  attr::set<attr::Backward>(made, b.getI64IntegerAttr(number));
}

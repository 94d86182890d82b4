// SPDX-License-Identifier: Apache-2.0
// See StepCuts.h. Ops are visited in the order of the program; an op's domain are the rows of its results, or, of a
// sum, of what it is over.
#include "passes/StepCuts.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

using Axis = std::optional<unsigned>;

static int64_t extentOf(Value value, unsigned dim) { return cast<RankedTensorType>(value.getType()).getDimSize(dim); }
static unsigned rankOf(Value value) { return static_cast<unsigned>(cast<RankedTensorType>(value.getType()).getRank()); }
static int64_t floorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/// The last row of the domain, and one, that is complete once the operand is there up to `border`.
static int64_t completeAt(const std::optional<Window> &w, int64_t border) {
  if (!w)
    return border;
  return w->transposed ? border * w->stride - w->pad : floorDiv(border + w->pad - w->extent, w->stride) + 1;
}

/// What `rows` of the domain need of an operand, and how much padding stands in front of it and behind. Of the larger
/// side windows may overhang what is wanted or what there is; of the smaller one those are read that touch it.
static Rows neededFor(const std::optional<Window> &w, Rows rows, int64_t extent, std::pair<int64_t, int64_t> &pads) {
  if (!w)
    return rows;
  if (w->transposed) {
    const int64_t from = std::max<int64_t>(floorDiv(rows.begin + w->pad - w->extent, w->stride) + 1, 0);
    const int64_t to = std::min(floorDiv(rows.end + w->pad - 1, w->stride) + 1, extent);
    pads = {rows.begin - (from * w->stride - w->pad),
            std::max<int64_t>((to - 1) * w->stride - w->pad + w->extent - rows.end, 0)};
    return {from, to};
  }
  const int64_t from = rows.begin * w->stride - w->pad, to = (rows.end - 1) * w->stride - w->pad + w->extent;
  pads = {std::max<int64_t>(-from, 0), std::max<int64_t>(to - extent, 0)};
  return {std::max<int64_t>(from, 0), std::min(to, extent)};
}

StepCuts::StepCuts(func::FuncOp function, const CutRequest &request, function_ref<bool(BlockArgument)> isShared)
    : asked(request) {
  const bool isBatch = asked.along == CutAlong::Batch;
  for (BlockArgument argument : function.getArguments()) { // an input may have no dimension of samples
    const unsigned dim = isBatch ? 0 : 2, rank = rankOf(argument);
    if (isShared(argument) || rank < (isBatch ? 1 : 4) || (isBatch && extentOf(argument, 0) % asked.samples != 0))
      continue;
    if (auto borders = even(argument, dim))
      cuts[argument] = {dim, *borders};
  }
  for (Operation &op : function.getOps())
    visit(&op);
  for (bool any = true; any;) {
    any = false;
    for (Operation &op : function.getOps())
      if (ruleOf(&op) && !canPass(&op))
        any = rules.erase(&op);
  }
}

const Cut *StepCuts::cutOf(Value value) const {
  const auto found = cuts.find(value);
  return found == cuts.end() ? nullptr : &found->second;
}

const PartRule *StepCuts::ruleOf(Operation *op) const {
  const auto found = rules.find(op);
  return found == rules.end() ? nullptr : &found->second;
}

Axis StepCuts::axisOf(Value value) const {
  const Cut *cut = cutOf(value);
  return cut ? Axis(cut->dim) : Axis();
}

/// Parts as equal as they can be; none: there are more parts than rows.
std::optional<StepCuts::Borders> StepCuts::even(Value value, unsigned dim) const {
  const int64_t extent = extentOf(value, dim), rows = asked.along == CutAlong::Batch ? asked.samples : extent;
  if (rows < asked.parts)
    return {};
  Borders borders;
  for (int64_t i = 0; i <= asked.parts; ++i)
    borders.push_back(rows * i / asked.parts * (extent / rows));
  return borders;
}

/// Where the parts of an op of images end: where the operands that come in parts let them.
std::optional<StepCuts::Borders> StepCuts::domainOf(Operation *op, const OpAxes &axes) const {
  unsigned of = 0, dim = 0;
  while (axes.kind != PartResult::Rows && (!axes.operands[of] || axes.windows[of]))
    ++of;
  const Value domain = axes.kind == PartResult::Rows ? Value(op->getResult(0)) : op->getOperand(of);
  dim = axes.kind == PartResult::Rows ? *axes.results[0] : *axes.operands[of];
  std::optional<Borders> borders;
  for (auto [operand, axis, window] : llvm::zip_equal(op->getOperands(), axes.operands, axes.windows)) {
    Operation *maker = operand.getDefiningOp();
    if (!axis || !maker || !ruleOf(maker))
      continue;
    const Cut *cut = cutOf(operand);
    if (!borders)
      borders.emplace(asked.parts + 1, extentOf(domain, dim));
    for (int64_t i = 0; i < asked.parts; ++i)
      (*borders)[i] = i == 0 ? 0 : std::min((*borders)[i], completeAt(window, cut->borders[i]));
  }
  if (!borders)
    borders = even(domain, dim);
  for (int64_t i = 0; borders && i < asked.parts; ++i)
    if ((*borders)[i] >= (*borders)[i + 1])
      return {};
  return borders;
}

PartRule StepCuts::ruleFor(Operation *op, const OpAxes &axes, const Borders &domain) const {
  PartRule rule;
  rule.results = axes.kind, rule.scaled = axes.scaled, rule.viewed = axes.viewed, rule.first = axes.first;
  for (auto [operand, axis, window] : llvm::zip_equal(op->getOperands(), axes.operands, axes.windows)) {
    std::optional<Slabs> &slabs = rule.operands.emplace_back();
    if (!axis)
      continue;
    slabs = Slabs{*axis, {}};
    const Borders own = asked.along == CutAlong::Batch ? *even(operand, *axis) : domain;
    for (int64_t i = 0; i < asked.parts; ++i) {
      std::pair<int64_t, int64_t> pads;
      slabs->rows.push_back(neededFor(window, {own[i], own[i + 1]}, extentOf(operand, *axis), pads));
      if (window && static_cast<int64_t>(rule.pads.size()) == i)
        rule.pads.push_back(pads);
    }
  }
  return rule;
}

/// Reshapes are free either way, and go with what they read.
bool StepCuts::paysInParts(Operation *op, const OpAxes &axes) const {
  if (isa<ReshapeOp>(op))
    return op->getOperand(0).getDefiningOp() && ruleOf(op->getOperand(0).getDefiningOp());
  int64_t read = 0, written = 0;
  for (auto [operand, axis] : llvm::zip_equal(op->getOperands(), axes.operands))
    read += axis ? bytes(operand.getType()) : 0;
  for (Value result : op->getResults())
    written += bytes(result.getType());
  const bool isSum = axes.kind != PartResult::Rows;
  return isSum ? written <= read && read >= asked.above : read + written >= asked.above;
}

/// Whether what the op reads can be cut, and what it makes joined, where the other side is not in the same parts: slabs
/// are of floats and ids, what is joined of floats.
bool StepCuts::canPass(Operation *op) const {
  const PartRule &rule = *ruleOf(op);
  for (auto [operand, slabs] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    if (!slabs || isReal(operand.getType()))
      continue;
    Operation *maker = operand.getDefiningOp();
    const bool isId = getElementTypeOrSelf(operand.getType()).isInteger(64);
    if (maker && ruleOf(maker) ? !isInParts(operand, *slabs) : !isId)
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

bool StepCuts::isInParts(Value value, const Slabs &slabs) const {
  const Cut *cut = cutOf(value);
  if (!cut || cut->dim != slabs.dim)
    return false;
  for (int64_t i = 0; i < asked.parts; ++i)
    if (!(cut->part(i) == slabs.rows[i]))
      return false;
  return true;
}

void StepCuts::visit(Operation *op) {
  const OpAxes axes = axesOf(op, asked.along, asked.samples, [&](Value value) { return axisOf(value); });
  std::optional<Borders> domain;
  if (axes.parted && paysInParts(op, axes))
    domain = asked.along == CutAlong::Image ? domainOf(op, axes) : Borders();
  const bool ends = domain && asked.along == CutAlong::Image && axes.kind == PartResult::Rows;
  for (auto [result, axis] : llvm::zip_equal(op->getResults(), axes.results))
    if (auto borders = axis && !ends ? even(result, *axis) : domain; axis && borders)
      cuts[result] = {*axis, *borders};
  if (domain)
    rules[op] = ruleFor(op, axes, *domain);
}

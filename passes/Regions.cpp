// SPDX-License-Identifier: Apache-2.0
// Merging, repeating and simplifying the regions of train.fused ops; the contracts are in the header.
#include "passes/Regions.h"

#include "ir/ScalarNames.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

using P = arith::CmpFPredicate;

namespace {

/// Operands of an op that is being built, each once.
class Operands {
public:
  /// Operand `i` of an op, named as there.
  /// Equal inputs become one: a region reads each element once.
  void add(FusedOp op, unsigned i) {
    Value value = op.getInputs()[i];
    if (!llvm::is_contained(values, value)) {
      values.push_back(value);
      isChannel.push_back(op.isChannel(i));
      locations.push_back(op.getBody().getArgument(i).getLoc());
    }
  }

  /// A value of the shape of the domain, whose scalar is named so.
  void addFull(Value value, Location location) {
    values.push_back(value);
    isChannel.push_back(false);
    locations.push_back(location);
  }

  /// What is over sums alone runs over the shape of operand 0: one with the shape of `domain` goes there. False when
  /// none has it.
  bool lead(RankedTensorType domain) {
    for (size_t i = 0; i < values.size(); ++i)
      if (!isChannel[i] && cast<RankedTensorType>(values[i].getType()).getShape() == domain.getShape()) {
        auto toFront = [&](auto &list) { std::rotate(list.begin(), list.begin() + i, list.begin() + i + 1); };
        toFront(values);
        toFront(isChannel);
        toFront(locations);
        return true;
      }
    return false;
  }

  /// An op with these operands and an empty block with their scalars, which `scalars` maps them to.
  FusedOp build(OpBuilder &b, Location loc, TypeRange results, int64_t sums, IRMapping &scalars) const {
    SmallVector<int64_t> channels;
    for (auto [i, channel] : llvm::enumerate(isChannel))
      if (channel)
        channels.push_back(i);
    auto op = FusedOp::create(b, loc, results, values, b.getDenseI64ArrayAttr(channels), b.getI64IntegerAttr(sums));
    Block &block = op.getBody().emplaceBlock();
    for (auto [value, named] : llvm::zip(values, locations))
      scalars.map(value, block.addArgument(b.getF32Type(), named));
    return op;
  }

private:
  SmallVector<Value> values;
  SmallVector<bool> isChannel;
  SmallVector<Location> locations;
};

Value scalarOf(FusedOp op, unsigned result) { return op.getBody().front().getTerminator()->getOperand(result); }

/// Scalars of the op's region that results depend on, back to those of the results that are `known`.
llvm::SmallDenseSet<Value> scalarsBehind(FusedOp op, ArrayRef<unsigned> results, ArrayRef<unsigned> known = {}) {
  llvm::SmallDenseSet<Value> needed, ends;
  for (unsigned result : results)
    needed.insert(scalarOf(op, result));
  for (unsigned result : known)
    ends.insert(scalarOf(op, result));
  for (Operation &inner : llvm::reverse(op.getBody().front().without_terminator()))
    if (needed.contains(inner.getResult(0)) && !ends.contains(inner.getResult(0)))
      needed.insert(inner.operand_begin(), inner.operand_end());
  return needed;
}

/// Clones what `needed` says of the region of `op` to the builder's place. `scalars` maps the operands, and what of the
/// region is there already.
void cloneScalars(OpBuilder &b, FusedOp op, IRMapping &scalars, const llvm::SmallDenseSet<Value> *needed = nullptr) {
  Block &body = op.getBody().front();
  for (auto [argument, operand] : llvm::zip(body.getArguments(), op.getInputs()))
    if (!needed || needed->contains(argument))
      scalars.map(argument, scalars.lookup(operand));
  for (Operation &inner : body.without_terminator())
    if ((!needed || needed->contains(inner.getResult(0))) && !scalars.contains(inner.getResult(0)))
      b.clone(inner, scalars);
}

std::optional<double> constantOf(Value value) {
  FloatAttr constant;
  return matchPattern(value, m_Constant(&constant)) ? std::optional(constant.getValueAsDouble()) : std::nullopt;
}

/// Whether x, limited to this side of `limit`, compares with `bound` as x itself does.
bool comparesAlike(P side, double limit, P predicate, double bound) {
  const bool below = side == P::OLE || side == P::OLT, above = side == P::OGE || side == P::OGT;
  const bool intoIt = below ? predicate == P::OGT || predicate == P::OLE
                            : predicate == P::OLT || predicate == P::OGE; // holds at the limit itself
  return (below && bound > limit) || (above && bound < limit) || ((below || above) && intoIt && bound == limit);
}

/// The x of x limited to one side of a constant, or of a leaky x, where comparing that with `bound` says the same as
/// comparing x; else null. Holds for NaN, too: it passes through, and no comparison with it is true.
Value comparedInstead(Value value, P predicate, double bound) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto condition = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  std::optional<double> limit = condition ? constantOf(condition.getRhs()) : std::nullopt;
  if (!limit)
    return {};
  Value x = condition.getLhs();
  const P side = condition.getPredicate();
  if (auto scaled = select.getFalseValue().getDefiningOp<arith::MulFOp>();
      select.getTrueValue() == x && scaled && scaled.getLhs() == x)
    return side == P::OGT && predicate == P::OGT && *limit == 0 && bound == 0 &&
                   constantOf(scaled.getRhs()).value_or(-1) > 0
               ? x
               : Value();
  if (select.getFalseValue() != x || constantOf(select.getTrueValue()) != limit)
    return {};
  return comparesAlike(side, *limit, predicate, bound) ? x : Value();
}

/// A gradient that repeats what its forward op did asks on which side of a bound the result lies: often it may ask x
/// itself. What a comparison chooses between is needed anyway.
void compareEarlier(FusedOp op) {
  Block &body = op.getBody().front();
  for (auto compare : body.getOps<arith::CmpFOp>()) {
    std::optional<double> bound = constantOf(compare.getRhs());
    Value compared = compare.getLhs();
    auto choosesIt = [&](Operation *user) { return llvm::is_contained(user->getOperands(), compared); };
    if (!bound || llvm::any_of(compare->getUsers(), choosesIt))
      continue;
    while (Value x = comparedInstead(compare.getLhs(), compare.getPredicate(), *bound))
      compare.getLhsMutable().assign(x);
  }
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(body)))
    if (!isa<YieldOp>(inner) && inner.use_empty())
      inner.erase();
}

} // namespace

bool sluice::keepsDomain(FusedOp producer, ValueRange inputs, FusedOp consumer) {
  auto spans = [&](Value operand) {
    return operand.getDefiningOp() != producer &&
           cast<RankedTensorType>(operand.getType()).getShape() == consumer.domain().getShape();
  };
  // Channels are of rank 1, which a domain is not.
  return consumer.fullResults() > 0 || llvm::any_of(inputs, spans) || llvm::any_of(consumer.getInputs(), spans);
}

bool sluice::shareOrder(FusedOp producer, FusedOp consumer) {
  auto hasMatrix = [](FusedOp op) {
    return llvm::any_of(op.getInputs(), [&](Value operand) {
      const ArrayRef<int64_t> shape = cast<RankedTensorType>(operand.getType()).getShape();
      return static_cast<int64_t>(shape.size()) < op.domain().getRank() &&
             llvm::count_if(shape, [](int64_t extent) { return extent > 1; }) > 1;
    });
  };
  return !(producer.getSums() || consumer.getSums()) || !(hasMatrix(producer) || hasMatrix(consumer));
}

// Results are the consumer's and what others read of the producer's, full ones first, then sums, as train.fused orders
// them. Operands that both read become one, so that the merged kernel reads them once.
FusedOp sluice::mergeRegions(FusedOp producer, FusedOp consumer) {
  Operands operands;
  for (FusedOp op : {producer, consumer})
    for (auto [i, operand] : llvm::enumerate(op.getInputs()))
      if (operand.getDefiningOp() != producer)
        operands.add(op, i);
  auto usedElsewhere = [&](Value v) { return llvm::any_of(v.getUsers(), [&](Operation *u) { return u != consumer; }); };
  SmallVector<Value> kept;
  SmallVector<Type> types;
  int64_t sums = 0;
  for (bool wantSums : {false, true})
    for (FusedOp op : {consumer, producer})
      for (auto [i, result] : llvm::enumerate(op.getOutputs()))
        if ((i >= op.fullResults()) == wantSums && (op == consumer || usedElsewhere(result))) {
          kept.push_back(result);
          types.push_back(result.getType());
          sums += wantSums;
        }
  [[maybe_unused]] const bool leads = sums < static_cast<int64_t>(kept.size()) || operands.lead(consumer.domain());
  assert(leads && "a region of sums has no operand of the shape that it runs over");

  OpBuilder b(consumer);
  IRMapping scalars;
  FusedOp merged = operands.build(b, b.getFusedLoc({producer.getLoc(), consumer.getLoc()}), types, sums, scalars);
  copyOrdinal(consumer, merged); // it runs where the consumer ran
  b.setInsertionPointToStart(&merged.getBody().front());
  for (FusedOp op : {producer, consumer}) {
    cloneScalars(b, op, scalars);
    for (auto [result, scalar] : llvm::zip(op.getOutputs(), op.getBody().front().getTerminator()->getOperands()))
      scalars.map(result, scalars.lookup(scalar));
  }
  SmallVector<Value> yielded;
  for (Value result : kept)
    yielded.push_back(scalars.lookup(result));
  YieldOp::create(b, merged.getLoc(), yielded);
  for (auto [old, now] : llvm::zip(kept, merged.getResults()))
    old.replaceUsesWithIf(now, [&](OpOperand &use) { return use.getOwner() != consumer; });
  consumer.erase();
  producer.erase();

  // What the producer repeats for the consumer's sake is often there already.
  IRRewriter rewriter(merged.getContext());
  DominanceInfo dominance(merged);
  compareEarlier(merged);
  eliminateCommonSubExpressions(rewriter, dominance, merged);
  nameRules(merged);
  return merged;
}

/// "normalize+relu": the rules whose ops the body has, in order, for kernels, profiles and traces.
void sluice::nameRules(FusedOp op) {
  llvm::SmallSetVector<Location, 8> rules; // two normalizations are two
  for (Operation &inner : op.getBody().front().without_terminator())
    if (Location rule = withoutScalarName(inner.getLoc()); isa<NameLoc>(rule) && !isa<arith::ConstantOp>(inner))
      rules.insert(rule);
  std::string text;
  for (Location rule : rules)
    text += (text.empty() ? "" : "+") + cast<NameLoc>(rule).getName().str();
  attr::set<attr::Rule>(op, StringAttr::get(op.getContext(), text));
}

SmallVector<Value> sluice::valuesBehind(FusedOp op, unsigned result, ArrayRef<unsigned> known) {
  auto needed = scalarsBehind(op, result, known);
  SmallVector<Value> values;
  for (unsigned other : known)
    if (needed.contains(scalarOf(op, other)))
      values.push_back(op.getResult(other));
  for (BlockArgument argument : op.getBody().getArguments())
    if (needed.contains(argument))
      values.push_back(op.getInputs()[argument.getArgNumber()]);
  return values;
}

bool sluice::tiedToPlace(FusedOp op, unsigned result, ArrayRef<unsigned> known) {
  return llvm::any_of(scalarsBehind(op, result, known),
                      [](Value scalar) { return isa_and_nonnull<UniformOp, RowMeanOp>(scalar.getDefiningOp()); });
}

// Of the region only what the results depend on is copied, and only the operands of that are read.
FusedOp sluice::cloneFor(OpBuilder &builder, FusedOp op, ArrayRef<unsigned> results, ArrayRef<unsigned> known) {
  OpBuilder::InsertionGuard guard(builder);
  auto needed = scalarsBehind(op, results, known);
  Operands operands;
  for (unsigned other : known)
    if (Value scalar = scalarOf(op, other); needed.contains(scalar))
      operands.addFull(op.getResult(other), scalar.getLoc());
  for (BlockArgument argument : op.getBody().getArguments())
    if (needed.contains(argument))
      operands.add(op, argument.getArgNumber());
  SmallVector<Type> types;
  int64_t sums = 0;
  for (unsigned result : results) {
    types.push_back(op.getResult(result).getType());
    sums += result >= op.fullResults();
  }
  // A region of sums alone runs over the shape of its first operand, see lead().
  if (sums == static_cast<int64_t>(results.size()) && !operands.lead(op.domain()))
    return {};
  IRMapping scalars;
  FusedOp clone = operands.build(builder, op.getLoc(), types, sums, scalars);
  copyOrdinal(op, clone);
  for (unsigned other : known)
    if (Value scalar = scalarOf(op, other); needed.contains(scalar))
      scalars.map(scalar, scalars.lookup(op.getResult(other)));
  builder.setInsertionPointToStart(&clone.getBody().front());
  cloneScalars(builder, op, scalars, &needed);
  SmallVector<Value> yielded;
  for (unsigned result : results)
    yielded.push_back(scalars.lookup(scalarOf(op, result)));
  YieldOp::create(builder, op.getLoc(), yielded);
  nameRules(clone);
  return clone;
}

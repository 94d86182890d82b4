// SPDX-License-Identifier: Apache-2.0
// See JoinedStatistics.h. Statistics of a channel depend on that channel alone. Parts are found as few as possible: an
// earlier join with statistics of its own stands for all that it joined.
#include "passes/JoinedStatistics.h"

#include "ir/Joins.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// More parts than this take longer to join than the statistics that they save.
constexpr size_t mostParts = 4;

struct Statistics {
  Value mean, rstd;
};

/// Of a tensor, with an epsilon.
using Known = llvm::DenseMap<std::pair<Value, Attribute>, Statistics>;

/// What together has the channels of the join.
SmallVector<Value> partsOf(ConcatOp join, Attribute epsilon, const Known &known) {
  ValueRange rest = join.getXs();
  SmallVector<Value> parts;
  for (ConcatOp beginning = beginningOf(join); beginning && parts.empty(); beginning = beginningOf(beginning))
    if (known.contains({beginning.getY(), epsilon})) {
      parts.push_back(beginning.getY());
      rest = rest.drop_front(beginning.getXs().size());
    }
  parts.append(rest.begin(), rest.end());
  return parts;
}

int64_t channels(Value value) { return cast<RankedTensorType>(value.getType()).getDimSize(1); }

/// Null where the parts save nothing.
std::optional<Statistics> fromParts(BatchNormStatisticsOp op, Known &known) {
  auto join = op.getX().getDefiningOp<ConcatOp>();
  if (!join || join.getAxis() != 1)
    return std::nullopt;
  const Attribute epsilon = op.getEpsilonAttr();
  const SmallVector<Value> parts = partsOf(join, epsilon, known);
  int64_t there = 0;
  for (Value part : parts)
    there += known.contains({part, epsilon}) ? channels(part) : 0;
  if (parts.size() > mostParts || 2 * there < channels(join.getY()))
    return std::nullopt;
  OpBuilder b(op);
  SmallVector<Value> means, rstds;
  for (Value part : parts) {
    Statistics &own = known[{part, epsilon}];
    if (!own.mean) {
      auto made = BatchNormStatisticsOp::create(b, op.getLoc(), part, op.getEpsilonAttr());
      copyOrdinal(op, made);
      own = {made.getMean(), made.getRstd()};
    }
    means.push_back(own.mean), rstds.push_back(own.rstd);
  }
  auto mean = ConcatOp::create(b, op.getLoc(), means, 0);
  auto rstd = ConcatOp::create(b, op.getLoc(), rstds, 0);
  copyOrdinal(op, mean);
  copyOrdinal(op, rstd);
  return Statistics{mean.getY(), rstd.getY()};
}

} // namespace

void sluice::joinStatistics(func::FuncOp function) {
  Known known;
  for (auto op : llvm::make_early_inc_range(function.getOps<BatchNormStatisticsOp>())) {
    Statistics own{op.getMean(), op.getRstd()};
    const std::pair<Value, Attribute> of{op.getX(), op.getEpsilonAttr()};
    if (std::optional<Statistics> joined = fromParts(op, known)) {
      op.replaceAllUsesWith(ValueRange{joined->mean, joined->rstd});
      op.erase();
      own = *joined;
    }
    known.try_emplace(of, own);
  }
}

// SPDX-License-Identifier: Apache-2.0
// See SplitBatchNorms.h.
#include "passes/SplitBatchNorms.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// Statistics and normalization are two ops, for only the second is elementwise and can join a region.
static void splitBatchNorm(BatchNormOp op) {
  OpBuilder b(op);
  auto statistics = BatchNormStatisticsOp::create(b, op.getLoc(), op.getX(), op.getEpsilonAttr());
  copyOrdinal(op, statistics);
  Value mean = statistics.getMean(), rstd = statistics.getRstd();
  if (op.getRanks() > 1) {
    auto joint = SynchronizeStatisticsOp::create(b, op.getLoc(), mean, rstd, op.getEpsilonAttr(), op.getRanksAttr());
    copyOrdinal(op, joint);
    mean = joint.getJointMean(), rstd = joint.getJointRstd();
  }
  auto normalize =
      NormalizeOp::create(b, op.getLoc(), op.getY().getType(), op.getX(), mean, rstd, op.getScale(), op.getBias());
  copyOrdinal(op, normalize);
  op.replaceAllUsesWith(ValueRange{normalize.getY(), mean, rstd});
  op.erase();
}

/// Into sums and what is elementwise in them. dx may be unread, in front of the first trained layer: then sums alone
/// are made. They are over all elements of a channel, whose number the elementwise part divides by; for dx, of all
/// ranks' that normalize together.
static void splitBatchNormBackward(BatchNormBackwardOp op) {
  OpBuilder b(op);
  auto type = cast<RankedTensorType>(op.getX().getType());
  auto sums = NormalizeReduceOp::create(b, op.getLoc(), op.getDscale().getType(), op.getDbias().getType(), op.getDy(),
                                        op.getX(), op.getMean(), op.getRstd());
  copyOrdinal(op, sums);
  if (!op.getDx().use_empty()) {
    const auto ranks = static_cast<int64_t>(op.getRanks());
    Value dscale = sums.getDscale(), dbias = sums.getDbias();
    if (ranks > 1) {
      auto joint = SynchronizeSumsOp::create(b, op.getLoc(), dscale, dbias, op.getRanksAttr());
      copyOrdinal(op, joint);
      dscale = joint.getJointDscale(), dbias = joint.getJointDbias();
    }
    auto backward =
        NormalizeBackwardOp::create(b, op.getLoc(), type, op.getDy(), op.getX(), op.getMean(), op.getRstd(),
                                    op.getScale(), dscale, dbias, ranks * (type.getNumElements() / type.getDimSize(1)));
    copyOrdinal(op, backward);
    op.getDx().replaceAllUsesWith(backward.getDx());
  }
  op.getDscale().replaceAllUsesWith(sums.getDscale());
  op.getDbias().replaceAllUsesWith(sums.getDbias());
  op.erase();
}

void sluice::splitBatchNorms(func::FuncOp function) {
  function.walk([](BatchNormOp op) { splitBatchNorm(op); });
  function.walk([](BatchNormBackwardOp op) { splitBatchNormBackward(op); });
}

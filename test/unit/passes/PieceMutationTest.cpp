// SPDX-License-Identifier: Apache-2.0
// Runs that take another piece of a buffer than was planned, the whole of it, or a piece where the whole is meant:
// verification must refuse each.
#include "test/unit/passes/ScheduledModel.h"

#include "ir/Train.h"
#include "runtime/Tensor.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::ProgramOp;
using sched::RunOp;

namespace {

class PieceMutation : public ScheduledModel {};

/// The ins or the outs of a run, with where their pieces begin.
struct Side {
  bool in;
  OperandRange buffers(RunOp run) const { return in ? run.getIns() : run.getOuts(); }
  RankedTensorType type(RunOp run, size_t i) const { return in ? run.inType(i) : run.outType(i); }
  std::optional<int64_t> first(RunOp run, size_t i) const { return in ? run.inFirst(i) : run.outFirst(i); }
  void setFirst(RunOp run, size_t i, int64_t first) const {
    SmallVector<int64_t> firsts;
    for (size_t k = 0; k < buffers(run).size(); ++k)
      firsts.push_back(k == i ? first : this->first(run, k).value_or(sched::wholeBuffer));
    auto changed = DenseI64ArrayAttr::get(run.getContext(), firsts);
    in ? run.setInFirstsAttr(changed) : run.setOutFirstsAttr(changed);
  }
};

/// The next piece, the first one, and the whole where it is a piece.
SmallVector<int64_t> otherFirsts(RunOp run, Side side, size_t i) {
  SmallVector<int64_t> found;
  const std::optional<int64_t> first = side.first(run, i);
  const auto bytes = static_cast<int64_t>(side.buffers(run)[i].getDefiningOp<BufferOp>().getBytes());
  for (int64_t at : {first.value_or(0) + slotAlignment, int64_t{0}})
    if (at + train::bytes(side.type(run, i)) <= bytes && at != first)
      found.push_back(at);
  if (first)
    found.push_back(sched::wholeBuffer);
  return found;
}

TEST_P(PieceMutation, NoOtherPieceIsMeant) {
  std::vector<RunOp> runs = all<RunOp>(program());
  size_t changes = 0, ofPieces = 0;
  for (size_t r = 0; r < runs.size(); ++r)
    for (Side side : {Side{true}, Side{false}})
      for (size_t i = 0; i < side.buffers(runs[r]).size(); ++i)
        for (int64_t first : otherFirsts(runs[r], side, i)) {
          EXPECT_NE(verifyWith([&](ProgramOp p) { side.setFirst(all<RunOp>(p)[r], i, first); }), "")
              << (side.in ? "in " : "out ") << i << " of " << train::nodeName(runs[r].getLoc()) << " at " << first;
          ++changes;
          ofPieces += side.first(runs[r], i).has_value();
        }
  EXPECT_GE(changes, 50u);
  EXPECT_GE(ofPieces, 10u);
}

INSTANTIATE_TEST_SUITE_P(Models, PieceMutation,
                         testing::Values(Case{"slabs", "vdnn-all", ""}, Case{"slabs", "keep", ""},
                                         withRows({"vgg", "keep", ""}, 4096)),
                         nameOf);

} // namespace

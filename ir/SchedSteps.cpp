// SPDX-License-Identifier: Apache-2.0
// What passes and the emitter ask of a sched.program as a whole.
#include "ir/KernelCall.h"

using namespace mlir;
using namespace sluice::sched;

SmallVector<Operation *> sluice::sched::steps(ProgramOp program) {
  SmallVector<Operation *> result;
  for (Operation &op : program.ops())
    if (isa<RunOp, CopyOp>(op))
      result.push_back(&op);
  return result;
}

int64_t sluice::sched::poolBytes(std::optional<StringRef> codec) {
  auto known = codec ? parseCodec(*codec) : std::nullopt;
  return known ? known->pool : 0;
}

static bool copiesBatch(CopyOp copy) { return copy.getFrom().getDefiningOp<BufferOp>().getInput().has_value(); }

DenseSet<Operation *> sluice::sched::issuedByReader(ProgramOp program) {
  DenseSet<Operation *> result;
  // Backwards: a wait orders something as long as an op of its stream that stays comes later.
  auto stays = forEachStream(false);
  for (Operation &op : llvm::reverse(program.ops())) {
    if (auto run = dyn_cast<RunOp>(op)) {
      stays[static_cast<int>(run.getStream())] = true;
    } else if (auto copy = dyn_cast<CopyOp>(op)) {
      if (copiesBatch(copy))
        result.insert(copy);
      else
        stays[static_cast<int>(copy.getStream())] = true;
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      if (!stays[static_cast<int>(wait.getStream())])
        result.insert(wait);
    } else if (auto record = dyn_cast<RecordOp>(op)) {
      if (llvm::all_of(record->getUsers(), [&](Operation *user) { return result.contains(user); }))
        result.insert(record);
    }
  }
  return result;
}

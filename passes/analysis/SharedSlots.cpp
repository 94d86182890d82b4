// SPDX-License-Identifier: Apache-2.0
// V1 of verify-schedule, across the programs of a module.
#include "passes/analysis/SharedSlots.h"

#include "ir/Sched.h"

#include <map>

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::ProgramOp;

namespace {

/// What outlives a step, of all programs: the largest buffer of each.
using Persistents = std::map<sched::Persistent, BufferOp>;

/// V1: buckets of shapes have inputs of their own sizes, in slots that begin at one place; all else is the same.
LogicalResult addPersistent(BufferOp buffer, Persistents &known) {
  BufferOp &other = known.try_emplace(buffer.persistent(), buffer).first->second;
  if (other.getOffset() != buffer.getOffset() || (!buffer.getInput() && other.getBytes() != buffer.getBytes()))
    return buffer.emitOpError() << "V1: '" << buffer.getName() << "' has " << buffer.getBytes() << " bytes at "
                                << *buffer.getOffset() << ", but " << other.getBytes() << " at " << *other.getOffset()
                                << " in another program";
  if (other.getBytes() < buffer.getBytes())
    other = buffer;
  return success();
}

/// V1: what outlives a step shares bytes with no transient of any program, whatever program's it is: the batch of one
/// bucket arrives while the step of another runs. `sorted` share none among themselves.
LogicalResult checkTransients(ProgramOp program, ArrayRef<BufferOp> sorted) {
  const auto placeOf = [](BufferOp buffer) { return std::pair(buffer.getSpace(), *buffer.getOffset()); };
  for (auto buffer : program.getBody().getOps<BufferOp>()) {
    if (buffer.outlivesStep())
      continue;
    const auto end = std::pair(buffer.getSpace(), *buffer.getOffset() + buffer.getBytes());
    const auto behind = llvm::partition_point(sorted, [&](BufferOp other) { return placeOf(other) < end; });
    if (behind == sorted.begin())
      continue;
    BufferOp last = *std::prev(behind); // that begins before this one's end
    if (last.getSpace() == buffer.getSpace() && *last.getOffset() + last.getBytes() > *buffer.getOffset())
      return buffer.emitOpError() << "V1: '" << buffer.getName() << "' of @" << program.getSymName()
                                  << " shares bytes with '" << last.getName() << "' of @"
                                  << last->getParentOfType<ProgramOp>().getSymName() << ", which outlives a step";
  }
  return success();
}

} // namespace

LogicalResult sluice::checkShared(ModuleOp module) {
  Persistents known;
  ProgramOp first;
  for (auto program : module.getOps<ProgramOp>()) {
    if (first && (first.getArenas() != program.getArenas() || first.getBase() != program.getBase() ||
                  first.getPool() != program.getPool()))
      return program.emitOpError() << "V1: has other arenas than @" << first.getSymName();
    first = program;
    for (auto buffer : program.getBody().getOps<BufferOp>())
      if (buffer.outlivesStep() && failed(addPersistent(buffer, known)))
        return failure();
  }
  // Programs see different buffers; what outlives a step must not share bytes with any of them.
  SmallVector<BufferOp> sorted;
  for (auto &entry : known)
    sorted.push_back(entry.second);
  llvm::sort(sorted, [](BufferOp a, BufferOp b) {
    return std::pair(a.getSpace(), *a.getOffset()) < std::pair(b.getSpace(), *b.getOffset());
  });
  for (size_t i = 1; i < sorted.size(); ++i) {
    BufferOp one = sorted[i - 1], other = sorted[i]; // the first that overlaps another overlaps the next
    if (one.getSpace() == other.getSpace() && *other.getOffset() < *one.getOffset() + one.getBytes())
      return one.emitOpError() << "V1: '" << one.getName() << "' shares bytes with '" << other.getName()
                               << "', and both outlive a step";
  }
  for (auto program : module.getOps<ProgramOp>())
    if (failed(checkTransients(program, sorted)))
      return failure();
  return success();
}

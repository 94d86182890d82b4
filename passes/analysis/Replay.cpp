// SPDX-License-Identifier: Apache-2.0
// Walks a placed program in issue order with a vector clock per stream and collects the accesses to its buffers.
#include "passes/analysis/Replay.h"

#include "ir/Train.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::CopyOp;
using sched::RecordOp;
using sched::RunOp;
using sched::Stream;
using sched::WaitOp;

static constexpr int64_t alignment = 256;

std::string sluice::describe(Operation *op) {
  if (auto run = dyn_cast<RunOp>(op))
    return run.getKernel().str() + " of '" + train::nodeName(op->getLoc()) + "'";
  return (sched::stringifyStream(cast<CopyOp>(op).getStream()) + " copy of '" +
          cast<CopyOp>(op).getFrom().getDefiningOp<BufferOp>().getName() + "'")
      .str();
}

LogicalResult Replay::run() { return success(succeeded(checkPlaces()) && succeeded(replay())); }

/// V1
LogicalResult Replay::checkPlaces() {
  if (!program.isPlaced())
    return program.emitOpError("is not placed; run sluice-assign-slots before");
  const int64_t base = *program.getBase(), pool = program.getPool().value_or(0);
  for (auto buffer : program.getBody().getOps<BufferOp>()) {
    auto error = [&] { return buffer.emitOpError() << "V1: '" << buffer.getName() << "' "; };
    bool persistent = buffer.outlivesStep();
    if (!buffer.getOffset() || (!persistent && !buffer.getFirst()))
      return error() << "has no offset or no lifetime";
    const int64_t begin = *buffer.getOffset(), size = buffer.getBytes(),
                  arena = program.bytesOf(buffer.getSpace()) - (buffer.getSpace() == sched::Space::Host ? pool : 0);
    if (begin % alignment)
      return error() << "has offset " << begin << ", not a multiple of " << alignment;
    if (begin < 0 || begin > arena || size > arena - begin) // begin + size may be no int64_t
      return error() << "has " << size << " bytes at " << begin << " of a " << sched::stringifySpace(buffer.getSpace())
                     << " arena of " << arena << " bytes"
                     << (pool && buffer.getSpace() == sched::Space::Host ? " before its pool" : "");
    int64_t end = begin + size;
    if (buffer.onDevice() && (persistent ? end > base : begin < base))
      return error() << "lies at bytes " << begin << " to " << end << ", on the wrong side of the base of " << base
                     << " bytes";
    placeOf[buffer.getBuffer()] = static_cast<int>(places.size());
    places.push_back({{buffer.getSpace(), begin, end},
                      buffer,
                      static_cast<int64_t>(buffer.getFirst().value_or(0)),
                      static_cast<int64_t>(buffer.getLast().value_or(0))});
  }
  for (auto copy : program.getBody().getOps<CopyOp>()) {
    int64_t most = sched::poolBytes(copy.getCodec());
    if (most > 0 && (pool == 0 || pool > most))
      return copy.emitOpError() << "V1: has a pool of " << most << " bytes, the program one of " << pool;
  }
  return success();
}

/// Notes all accesses of a run or copy, reads before writes, as checks rely on. What has run before it is the clock of
/// its stream at its start; a scratch is written, by nobody's version.
LogicalResult Replay::step(Operation *op, Stream stream) {
  int s = static_cast<int>(stream);
  ++steps;
  if (clocks[s][0] < 0) // V5
    return op->emitOpError() << "V5: " << describe(op) << " is the first op of " << sched::stringifyStream(stream)
                             << ", which has not waited for compute: the step before may still be running";
  Clock before = clocks[s];
  int64_t position = ++clocks[s][s];
  auto access = [&](Value buffer, bool writes, std::optional<int64_t> version) -> Access & {
    const int place = placeOf.lookup(buffer);
    accesses.push_back({place, places[place], writes, steps, op, s, position, before, version});
    return accesses.back();
  };
  // sched.run's verifier has seen that a piece lies within its buffer.
  auto narrow = [](Extent &bytes, std::optional<int64_t> first, RankedTensorType type) {
    if (first)
      bytes = {bytes.space, bytes.begin + *first, bytes.begin + *first + train::bytes(type)};
  };
  if (auto run = dyn_cast<RunOp>(op)) {
    for (auto [i, buffer, version] : llvm::enumerate(run.getIns(), run.getInVersions()))
      narrow(access(buffer, false, version).bytes, run.inFirst(i), run.inType(i));
    for (auto [i, buffer, version] : llvm::enumerate(run.getOuts(), run.getOutVersions()))
      narrow(access(buffer, true, version).bytes, run.outFirst(i), run.outType(i));
    if (run.getScratch())
      access(run.getScratch(), true, std::nullopt);
  } else {
    auto copy = cast<CopyOp>(op);
    access(copy.getFrom(), false, copy.getFromVersion());
    access(copy.getTo(), true, copy.getToVersion());
  }
  computeAfter.push_back(clocks[0]);
  return success();
}

/// The program in issue order. Waits of compute right behind a step count for that step: bytes that are given up there
/// are free once these waits are over. A record or another op of compute in between ends that.
LogicalResult Replay::replay() {
  computeAfter.push_back(clocks[0]);
  bool computeMovedOn = false; // since the last step, compute did something else than wait
  for (Operation &op : program.ops()) {
    if (auto run = dyn_cast<RunOp>(op)) {
      if (failed(step(run, run.getStream())))
        return failure();
      computeMovedOn = false;
    } else if (auto copy = dyn_cast<CopyOp>(op)) {
      if (failed(step(copy, copy.getStream())))
        return failure();
      computeMovedOn = false;
    } else if (auto record = dyn_cast<RecordOp>(op)) {
      Clock &clock = events[record.getEvent()] = clocks[static_cast<int>(record.getStream())];
      if (record.getStream() == Stream::Compute)
        clock.released = steps;
      computeMovedOn |= record.getStream() == Stream::Compute;
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      Clock &mine = clocks[static_cast<int>(wait.getStream())];
      mine.merge(events.lookup(wait.getEvent()));
      if (wait.getStream() == Stream::Compute && !computeMovedOn)
        computeAfter.back() = mine;
    }
  }
  return checkEnd();
}

/// V5
LogicalResult Replay::checkEnd() {
  for (int s = 1; s < streamCount; ++s)
    if (clocks[s][s] > 0 && clocks[0][s] < clocks[s][s])
      return program.emitOpError() << "V5: ends before compute has waited for all " << clocks[s][s] << " ops of "
                                   << streamTable[s].name << " (for " << std::max<int64_t>(0, clocks[0][s]) << ")";
  return success();
}

// SPDX-License-Identifier: Apache-2.0
// verify-schedule, for each placed program, from its text alone:
//  1. places: offsets, arenas, base, budgets (V1);
//  2. replay in issue order with one vector clock per stream, collecting every access with what is known to have run
//  before it (V5);
//  3. lifetimes against accesses (V2), pairs of accesses to common bytes (V3), reads against the last write of their
//  bytes and against the version that they are meant to see (V4).
// Plain loops over pairs: it is meant to be dumber than what it checks, and shares no helper with scheduler, planner
// and packer.
#include "passes/Passes.h"

#include "ir/Sched.h"

#include <array>

namespace sluice {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::CopyOp;
using sched::ProgramOp;
using sched::RecordOp;
using sched::RunOp;
using sched::Stream;
using sched::WaitOp;

namespace {

constexpr int64_t alignment = 256;

struct Clock {
  std::array<int64_t, sched::streamCount> ran; ///< ops of each stream known to have run; -1: not even those before the program
  int64_t released = 0;       ///< steps issued when compute last let go of something that is known here
  int64_t &operator[](int stream) { return ran[stream]; }
  int64_t operator[](int stream) const { return ran[stream]; }
  void merge(const Clock &other) {
    for (int s = 0; s < sched::streamCount; ++s)
      ran[s] = std::max(ran[s], other.ran[s]);
    released = std::max(released, other.released);
  }
};

struct Place {
  BufferOp op;
  sched::Space space;
  int64_t begin, end;  ///< bytes
  int64_t first, last; ///< steps; 0 for what outlives the step
  bool overlaps(const Place &other) const { return space == other.space && begin < other.end && other.begin < end; }
};

struct Access {
  int place;
  bool writes;
  int64_t step;
  Operation *op;
  int stream;
  int64_t position; ///< of the op among those of its stream
  Clock before;     ///< what has run when it starts
  int64_t version;  ///< that the op says it reads or leaves; -1: scratch
  bool runsBefore(const Access &later) const { return later.before[stream] >= position; }
};

std::string describe(Operation *op) {
  if (auto run = dyn_cast<RunOp>(op))
    return run.getKernel().str() + " of '" + train::nodeName(op->getLoc()) + "'";
  return (sched::stringifyStream(cast<CopyOp>(op).getStream()) + " copy of '" +
          cast<CopyOp>(op).getFrom().getDefiningOp<BufferOp>().getName() + "'")
      .str();
}

class Verifier {
public:
  explicit Verifier(ProgramOp program) : program(program) {}
  LogicalResult run() {
    return success(succeeded(checkPlaces()) && succeeded(replay()) && succeeded(checkLifetimes()) &&
                   succeeded(checkOverlaps()) && succeeded(checkRaces()) && succeeded(checkContents()) &&
                   succeeded(checkVersions()) && succeeded(checkStarts()));
  }
  size_t accessCount() const { return accesses.size(); }

private:
  LogicalResult checkPlaces();
  LogicalResult replay();
  LogicalResult step(Operation *op, Stream stream);
  LogicalResult checkLifetimes();
  LogicalResult checkStarts();
  LogicalResult checkOverlaps();
  LogicalResult checkRaces();
  LogicalResult checkContents();
  LogicalResult checkVersions();
  InFlightDiagnostic conflict(const Access &first, const Access &second);

  ProgramOp program;
  std::vector<Place> places;
  llvm::DenseMap<Value, int> placeOf;
  std::vector<Access> accesses;
  Clock clocks[sched::streamCount] = {{{0, -1, -1, -1}}, {{-1, 0, -1, -1}}, {{-1, -1, 0, -1}}, {{-1, -1, -1, 0}}};
  llvm::DenseMap<Value, Clock> events;
  int64_t steps = 0;
  std::vector<Clock> computeAfter; ///< by step: what compute has waited for once the waits behind that step are over
};

/// V1
LogicalResult Verifier::checkPlaces() {
  if (!program.isPlaced())
    return program.emitOpError("is not placed; run sluice-assign-slots before");
  int64_t device = *program.getDevice(), base = *program.getBase(), pool = program.getPool().value_or(0),
          host = static_cast<int64_t>(*program.getHost()) - pool, spill = program.getSpill().value_or(0);
  for (auto buffer : program.getBody().getOps<BufferOp>()) {
    auto error = [&] { return buffer.emitOpError() << "V1: '" << buffer.getName() << "' "; };
    bool persistent = buffer.outlivesStep();
    if (!buffer.getOffset() || (!persistent && !buffer.getFirst()))
      return error() << "has no offset or no lifetime";
    int64_t begin = *buffer.getOffset(), end = begin + static_cast<int64_t>(buffer.getBytes()),
            arena = buffer.onDevice() ? device : buffer.getSpace() == sched::Space::Host ? host : spill;
    if (begin % alignment)
      return error() << "has offset " << begin << ", not a multiple of " << alignment;
    if (begin < 0 || end > arena)
      return error() << "ends at byte " << end << " of a " << sched::stringifySpace(buffer.getSpace()) << " arena of "
                     << arena << " bytes" << (pool && buffer.getSpace() == sched::Space::Host ? " before its pool" : "");
    if (buffer.onDevice() && (persistent ? end > base : begin < base))
      return error() << "lies at bytes " << begin << " to " << end << ", on the wrong side of the base of " << base
                     << " bytes";
    placeOf[buffer.getBuffer()] = static_cast<int>(places.size());
    places.push_back({buffer, buffer.getSpace(), begin, end, static_cast<int64_t>(buffer.getFirst().value_or(0)),
                      static_cast<int64_t>(buffer.getLast().value_or(0))});
  }
  for (auto copy : program.getBody().getOps<CopyOp>()) {
    int64_t most = sched::poolBytes(copy.getCodec());
    if (most > 0 && (pool == 0 || pool > most))
      return copy.emitOpError() << "V1: has a pool of " << most << " bytes, the program one of " << pool;
  }
  return success();
}

LogicalResult Verifier::step(Operation *op, Stream stream) {
  int s = static_cast<int>(stream);
  ++steps;
  if (clocks[s][0] < 0) // V5
    return op->emitOpError() << "V5: " << describe(op) << " is the first op of " << sched::stringifyStream(stream)
                             << ", which has not waited for compute: the step before may still be running";
  Clock before = clocks[s];
  int64_t position = ++clocks[s][s];
  auto access = [&](Value buffer, bool writes, int64_t version) {
    accesses.push_back({placeOf.lookup(buffer), writes, steps, op, s, position, before, version});
  };
  if (auto run = dyn_cast<RunOp>(op)) {
    for (auto [buffer, version] : llvm::zip(run.getIns(), run.getInVersions()))
      access(buffer, false, version);
    for (auto [buffer, version] : llvm::zip(run.getOuts(), run.getOutVersions()))
      access(buffer, true, version);
    if (run.getScratch())
      access(run.getScratch(), true, -1);
  } else {
    auto copy = cast<CopyOp>(op);
    access(copy.getFrom(), false, copy.getFromVersion());
    access(copy.getTo(), true, copy.getToVersion());
  }
  computeAfter.push_back(clocks[0]);
  return success();
}

LogicalResult Verifier::replay() {
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
  for (Stream stream : {Stream::ToHost, Stream::ToDevice, Stream::Codec}) { // V5
    int s = static_cast<int>(stream);
    if (clocks[s][s] > 0 && clocks[0][s] < clocks[s][s])
      return program.emitOpError() << "V5: ends before compute has waited for all " << clocks[s][s] << " ops of "
                                   << sched::stringifyStream(stream) << " (for " << std::max<int64_t>(0, clocks[0][s])
                                   << ")";
  }
  return success();
}

/// V2
LogicalResult Verifier::checkLifetimes() {
  for (const Access &access : accesses) {
    const Place &place = places[access.place];
    BufferOp buffer = place.op;
    if (buffer.outlivesStep())
      continue;
    if (access.step < place.first || access.step > place.last)
      return access.op->emitOpError() << "V2: step " << access.step << ", " << describe(access.op) << ", uses '"
                                      << buffer.getName() << "', which lives in steps " << place.first << " to "
                                      << place.last;
    if (place.last > steps)
      return buffer.emitOpError() << "V2: '" << buffer.getName() << "' lives until step " << place.last << " of "
                                  << steps;
    if (computeAfter[place.last][access.stream] < access.position)
      return access.op->emitOpError() << "V2: '" << buffer.getName() << "' is given up after step " << place.last
                                      << ", but compute has not waited for step " << access.step << ", "
                                      << describe(access.op);
  }
  return success();
}

/// V3, as far as lifetimes say it.
LogicalResult Verifier::checkOverlaps() {
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t j = i + 1; j < places.size(); ++j) {
      const Place &a = places[i], &b = places[j];
      if (!a.overlaps(b))
        continue;
      bool forever = !a.first || !b.first;
      if (!forever && (a.last < b.first || b.last < a.first))
        continue;
      BufferOp one = a.op, other = b.op;
      auto diagnostic = one.emitOpError() << "V3: '" << one.getName() << "' at bytes " << a.begin << " to " << a.end
                                          << " and '" << other.getName() << "' at bytes " << b.begin << " to " << b.end
                                          << " share bytes while both live";
      diagnostic.attachNote(other.getLoc())
          << "'" << other.getName() << "' lives in steps " << b.first << " to " << b.last << ", '" << one.getName()
          << "' in steps " << a.first << " to " << a.last;
      return diagnostic;
    }
  return success();
}

/// V2, for copies: they start as soon as compute has let go, which may be before what was issued ahead of them has run.
LogicalResult Verifier::checkStarts() {
  for (const Access &access : accesses) {
    const Place &place = places[access.place];
    if (access.stream == 0 || access.before.released + 1 >= place.first)
      continue;
    return access.op->emitOpError() << "V2: step " << access.step << ", " << describe(access.op) << ", may use '"
                                    << BufferOp(place.op).getName() << "' right after step " << access.before.released
                                    << ", but it lives from step " << place.first;
  }
  return success();
}

InFlightDiagnostic Verifier::conflict(const Access &first, const Access &second) {
  BufferOp one = places[first.place].op, other = places[second.place].op;
  auto diagnostic = second.op->emitOpError()
                    << "V3: step " << second.step << ", " << describe(second.op) << ", "
                    << (second.writes ? "writes" : "reads") << " '" << other.getName() << "' without waiting for step "
                    << first.step << ", " << describe(first.op) << ", which " << (first.writes ? "writes" : "reads")
                    << " '" << one.getName() << "' in the same bytes";
  diagnostic.attachNote(first.op->getLoc())
      << "step " << first.step << " on " << sched::stringifyStream(static_cast<Stream>(first.stream));
  return diagnostic;
}

/// V3
LogicalResult Verifier::checkRaces() {
  for (size_t j = 0; j < accesses.size(); ++j)
    for (size_t i = 0; i < j; ++i) {
      const Access &first = accesses[i], &second = accesses[j];
      if ((!first.writes && !second.writes) || !places[first.place].overlaps(places[second.place]))
        continue;
      // A kernel may update a buffer in place, but not see the same bytes as two buffers.
      bool ordered = first.op == second.op ? first.place == second.place : first.runsBefore(second);
      if (!ordered)
        return conflict(first, second);
    }
  return success();
}

/// V4. Accesses are ordered by now, so the last write in issue order is the last one.
LogicalResult Verifier::checkContents() {
  for (size_t j = 0; j < accesses.size(); ++j) {
    const Access &read = accesses[j];
    if (read.writes)
      continue;
    const Access *last = nullptr;
    for (size_t i = 0; i < j; ++i)
      if (accesses[i].writes && accesses[i].op != read.op && places[accesses[i].place].overlaps(places[read.place]))
        last = &accesses[i];
    BufferOp buffer = places[read.place].op;
    bool initial = buffer.outlivesStep() && !(buffer.getBatch() && *buffer.getBatch() == 1);
    if (last ? last->place == read.place : initial)
      continue;
    auto diagnostic = read.op->emitOpError() << "V4: step " << read.step << ", " << describe(read.op) << ", reads '"
                                             << buffer.getName() << "', ";
    if (!last)
      return diagnostic << "which nothing has written";
    BufferOp writer = places[last->place].op;
    return diagnostic << "whose bytes step " << last->step << ", " << describe(last->op) << ", has overwritten with '"
                      << writer.getName() << "'";
  }
  return success();
}

/// V4, for writes that leave the bytes to the same buffer: every step sees and leaves the version that it names.
LogicalResult Verifier::checkVersions() {
  std::vector<int64_t> writes(places.size(), 0);
  for (size_t begin = 0, end = 0; begin < accesses.size(); begin = end) {
    while (end < accesses.size() && accesses[end].op == accesses[begin].op)
      ++end;
    for (size_t i = begin; i < end; ++i) {
      const Access &access = accesses[i];
      int64_t held = writes[access.place] + access.writes;
      if (access.version >= 0 && access.version != held)
        return access.op->emitOpError() << "V4: step " << access.step << ", " << describe(access.op) << ", "
                                        << (access.writes ? "leaves" : "is meant to read") << " version "
                                        << access.version << " of '" << BufferOp(places[access.place].op).getName()
                                        << "', but the one there is " << held;
    }
    for (size_t i = begin; i < end; ++i)
      writes[accesses[i].place] += accesses[i].writes;
  }
  return success();
}

/// V1, across programs: one place for each buffer that outlives a step, and one size for each arena.
LogicalResult checkShared(ModuleOp module) {
  llvm::StringMap<BufferOp> known;
  ProgramOp first;
  for (auto program : module.getOps<ProgramOp>()) {
    if (first && (first.getDevice() != program.getDevice() || first.getHost() != program.getHost() ||
                  first.getBase() != program.getBase() || first.getPool() != program.getPool() ||
                  first.getSpill() != program.getSpill()))
      return program.emitOpError() << "V1: has other arenas than @" << first.getSymName();
    first = program;
    for (auto buffer : program.getBody().getOps<BufferOp>()) {
      if (!buffer.outlivesStep())
        continue;
      BufferOp other = known.try_emplace(buffer.persistentKey(), buffer).first->second;
      if (other.getOffset() != buffer.getOffset() || other.getBytes() != buffer.getBytes())
        return buffer.emitOpError() << "V1: '" << buffer.getName() << "' has " << buffer.getBytes() << " bytes at "
                                    << *buffer.getOffset() << ", but " << other.getBytes() << " at "
                                    << *other.getOffset() << " in another program";
    }
  }
  // Programs see different buffers; what outlives a step must not share bytes with any of them.
  for (auto &a : known)
    for (auto &b : known) {
      BufferOp one = a.second, other = b.second;
      if (one != other && one.getSpace() == other.getSpace() &&
          *one.getOffset() < *other.getOffset() + other.getBytes() &&
          *other.getOffset() < *one.getOffset() + one.getBytes())
        return one.emitOpError() << "V1: '" << one.getName() << "' shares bytes with '" << other.getName()
                                 << "', and both outlive a step";
    }
  return success();
}

struct VerifySchedule : sluice::impl::VerifyScheduleBase<VerifySchedule> {
  using VerifyScheduleBase::VerifyScheduleBase;

  /// V1
  LogicalResult checkBudget(ProgramOp program, StringRef arena, int64_t bytes, int64_t limit) {
    if (limit <= 0 || bytes <= limit)
      return success();
    return program.emitOpError() << "V1: the " << arena << " arena has " << bytes << " bytes, the budget is " << limit;
  }

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      Verifier verifier(program);
      if (failed(verifier.run()) || failed(checkBudget(program, "device", *program.getDevice(), budget)) ||
          failed(checkBudget(program, "host", *program.getHost(), hostBudget)))
        return signalPassFailure();
      accesses += verifier.accessCount();
    }
    if (failed(checkShared(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace

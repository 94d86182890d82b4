// SPDX-License-Identifier: Apache-2.0
// verify-schedule, for each placed program, from the module's text alone:
//  1. places: offsets, arenas, base, budgets (V1), those that programs share (analysis/SharedSlots.cpp);
//  2. replay in issue order with one vector clock per stream, collecting every access with what is known to have run
//  before it (V5);
//  3. the size of every slot against the shapes that are used in it, in 128 bits (V6);
//  4. lifetimes against accesses (V2), pairs of accesses to common bytes (V3), reads against the last write of their
//  bytes and against the version that they are meant to see (V4);
//  5. runs that are launched together against each other (V7, analysis/Launches.cpp);
//  6. sums over ranks against what reads them (V9, analysis/Reductions.cpp);
//  7. every run and copy against the planned function that the program names (V8, analysis/PlannedStep.cpp).
// It is meant to be dumber than what it checks, and shares no helper with scheduler, planner and packer.
#include "passes/Passes.h"
#include "passes/analysis/ByteHistory.h"
#include "passes/analysis/PlannedStep.h"
#include "passes/analysis/Reductions.h"
#include "passes/analysis/Replay.h"
#include "passes/analysis/SharedSlots.h"
#include "passes/analysis/SlotSizes.h"

#include "ir/Train.h"

#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace sluice {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::ProgramOp;
using sched::Stream;

namespace {

/// Checks of one replayed program.
class Verifier {
public:
  explicit Verifier(const Replay &replay)
      : places(replay.places), accesses(replay.accesses), computeAfter(replay.computeAfter), steps(replay.steps) {}

  LogicalResult run() {
    return success(succeeded(checkLifetimes()) && succeeded(checkOverlaps()) && succeeded(checkRaces()) &&
                   succeeded(checkDecision()) && succeeded(checkContents()) && succeeded(checkVersions()) &&
                   succeeded(checkStarts()) && succeeded(checkEnd()));
  }

private:
  LogicalResult checkLifetimes();
  LogicalResult checkStarts();
  LogicalResult checkOverlaps();
  LogicalResult checkRaces();
  LogicalResult checkDecision();
  LogicalResult checkContents();
  LogicalResult checkVersions();
  LogicalResult checkEnd();
  int conflictWithin(size_t begin, size_t j);
  LogicalResult sharedBytes(int i, int j);
  InFlightDiagnostic conflict(const Access &first, const Access &second);

  const std::vector<Place> &places;
  const std::vector<Access> &accesses;
  const std::vector<Clock> &computeAfter;
  const int64_t steps;
};

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

/// V3, as far as lifetimes say it: in order of birth, each among the neighbours that still live.
LogicalResult Verifier::checkOverlaps() {
  auto last = [&](int i) { return places[i].first ? places[i].last : std::numeric_limits<int64_t>::max(); };
  std::vector<int> byBirth(places.size());
  std::iota(byBirth.begin(), byBirth.end(), 0);
  std::stable_sort(byBirth.begin(), byBirth.end(), [&](int i, int j) { return places[i].first < places[j].first; });
  std::map<std::pair<sched::Space, int64_t>, int> living; // by where they begin
  std::set<std::pair<int64_t, int>> byDeath;
  for (int i : byBirth) {
    const Place &born = places[i];
    for (; !byDeath.empty() && byDeath.begin()->first < born.first; byDeath.erase(byDeath.begin()))
      living.erase({places[byDeath.begin()->second].space, places[byDeath.begin()->second].begin});
    auto next = living.lower_bound({born.space, born.begin});
    if (next != living.end() && places[next->second].overlaps(born))
      return sharedBytes(std::min(i, next->second), std::max(i, next->second));
    if (next != living.begin() && places[std::prev(next)->second].overlaps(born))
      return sharedBytes(std::min(i, std::prev(next)->second), std::max(i, std::prev(next)->second));
    living.emplace(std::pair(born.space, born.begin), i);
    byDeath.emplace(last(i), i);
  }
  return success();
}

/// The error about two places that meet in bytes and in steps.
LogicalResult Verifier::sharedBytes(int i, int j) {
  const Place &a = places[i], &b = places[j];
  BufferOp one = a.op, other = b.op;
  auto diagnostic = one.emitOpError() << "V3: '" << one.getName() << "' at bytes " << a.begin << " to " << a.end
                                      << " and '" << other.getName() << "' at bytes " << b.begin << " to " << b.end
                                      << " share bytes while both live";
  diagnostic.attachNote(other.getLoc()) << "'" << other.getName() << "' lives in steps " << b.first << " to " << b.last
                                        << ", '" << one.getName() << "' in steps " << a.first << " to " << a.last;
  return diagnostic;
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

/// The error about two accesses of common bytes on different streams that no event orders.
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

/// V3, the proof that no two streams race: every earlier access to these bytes runs before this one, by the clocks of
/// the streams, or is an error. What was ordered before the last write of a byte, or before a later read on the same
/// stream, is ordered before what comes after that.
LogicalResult Verifier::checkRaces() {
  ByteHistory history;
  for (size_t begin = 0, j = 0; j < accesses.size(); ++j) {
    const Access &second = accesses[j];
    if (accesses[begin].op != second.op)
      begin = j;
    int first = conflictWithin(begin, j);
    for (ByteHistory::Piece *piece : history.pieces(second.bytes))
      for (int i : piece->since(second.writes))
        if (accesses[i].op != second.op && !accesses[i].runsBefore(second) && (first < 0 || i < first))
          first = i;
    if (first >= 0)
      return conflict(accesses[first], second);
    if (second.writes)
      history.write(second.bytes, static_cast<int>(j));
    else
      history.read(second.bytes, second.stream, static_cast<int>(j));
  }
  return success();
}

static bool isRunOf(const Access &access, StringRef kernel) {
  auto run = dyn_cast<sched::RunOp>(access.op);
  return run && run.getKernel() == kernel;
}

/// V3, for bytes that are in no buffer, the step's state: there the check of a scaled loss's gradients says whether
/// they change anything and what divides them, which norms and updates read, those at home by a copy of their stream.
LogicalResult Verifier::checkDecision() {
  const auto isCheck = [](const Access &access) { return isRunOf(access, "check_gradients"); };
  const auto check = llvm::find_if(accesses, isCheck);
  for (const Access &access : accesses)
    if (check != accesses.end() && (isRunOf(access, "update") || isRunOf(access, "gradient_norm")) &&
        !check->runsBefore(access))
      return access.op->emitOpError() << "V3: step " << access.step << ", " << describe(access.op)
                                      << ", takes a gradient without waiting for step " << check->step << ", "
                                      << describe(check->op) << ", which says how";
  return success();
}

/// The first access of the same op, those from `begin` on, that sees bytes of access `j` as another buffer, or as
/// another piece of it, while one writes them; or -1. A kernel may update what it reads in place, but not see the same
/// bytes as two tensors.
int Verifier::conflictWithin(size_t begin, size_t j) {
  const Access &later = accesses[j];
  for (size_t i = later.writes ? begin : j; i < j; ++i) // reads come before writes
    if (accesses[i].bytes.overlaps(later.bytes) &&
        !(accesses[i].place == later.place && accesses[i].bytes == later.bytes))
      return static_cast<int>(i);
  return -1;
}

/// V4. Accesses are ordered by now, so the last write in issue order is the last one. Every byte that is read was last
/// written as one of the same buffer.
LogicalResult Verifier::checkContents() {
  ByteHistory history;
  for (size_t j = 0; j < accesses.size(); ++j) {
    const Access &read = accesses[j];
    if (read.writes) {
      history.write(read.bytes, static_cast<int>(j));
      continue;
    }
    BufferOp buffer = places[read.place].op;
    // Variables and this batch hold something before the first step; the next batch arrives by a copy.
    const bool initial = buffer.outlivesStep() && !(buffer.getBatch() && *buffer.getBatch() == 1);
    const auto pieces = history.pieces(read.bytes);
    const auto foreign = llvm::find_if(pieces, [&](const ByteHistory::Piece *piece) {
      return piece->write < 0 ? !initial : accesses[piece->write].place != read.place;
    });
    if (foreign == pieces.end())
      continue;
    const Access *last = (*foreign)->write < 0 ? nullptr : &accesses[(*foreign)->write];
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

/// V4, for writes that leave the bytes to the same buffer, in pieces or as a whole: every step sees and leaves the
/// version that it names.
LogicalResult Verifier::checkVersions() {
  std::vector<int64_t> writes(places.size(), 0);
  for (size_t begin = 0, end = 0; begin < accesses.size(); begin = end) {
    while (end < accesses.size() && accesses[end].op == accesses[begin].op)
      ++end;
    for (size_t i = begin; i < end; ++i) {
      const Access &access = accesses[i];
      int64_t held = writes[access.place] + access.writes;
      if (access.version && *access.version != held)
        return access.op->emitOpError() << "V4: step " << access.step << ", " << describe(access.op) << ", "
                                        << (access.writes ? "leaves" : "is meant to read") << " version "
                                        << *access.version << " of '" << BufferOp(places[access.place].op).getName()
                                        << "', but the one there is " << held;
    }
    for (size_t i = begin; i < end; ++i)
      writes[accesses[i].place] += accesses[i].writes;
  }
  return success();
}

/// V4, for what is read after the step: its results, what it keeps, and the batch that the next step finds.
LogicalResult Verifier::checkEnd() {
  ByteHistory history;
  for (auto [j, access] : llvm::enumerate(accesses))
    if (access.writes)
      history.write(access.bytes, static_cast<int>(j));
  const auto written = [&](int i) {
    return llvm::all_of(history.pieces(places[i]), [&](const ByteHistory::Piece *piece) {
      return piece->write >= 0 && accesses[piece->write].place == i;
    });
  };
  for (size_t i = 0; i < places.size(); ++i) {
    BufferOp buffer = places[i].op;
    const bool isRead = buffer.getResult() || buffer.getKept() || (buffer.getBatch() && *buffer.getBatch() == 1);
    if (isRead && !written(static_cast<int>(i)))
      return buffer.emitOpError() << "V4: '" << buffer.getName()
                                  << "' is read after the step, but nothing has written it";
    if (buffer.getKept() && places[i].last != steps)
      return buffer.emitOpError() << "V4: '" << buffer.getName() << "' is read after the step, but is given up after "
                                  << places[i].last << " of " << steps;
  }
  return success();
}

struct VerifySchedule : sluice::impl::VerifyScheduleBase<VerifySchedule> {
  using VerifyScheduleBase::VerifyScheduleBase;

  /// V1
  LogicalResult checkBudget(ProgramOp program, const char *arenas, int64_t bytes, int64_t limit) {
    if (limit < 0 || bytes <= limit)
      return success();
    return program.emitOpError() << "V1: the " << arenas << " " << bytes << " bytes, the budget is " << limit;
  }

  /// V1. Worked out from offsets, not taken from what assign-slots has added up.
  LogicalResult checkBudgets(ProgramOp program) {
    const int64_t device = program.bytesOf(sched::Space::Device), host = program.bytesOf(sched::Space::Host);
    const int64_t limit = budget > 0 ? budget.getValue() : -1;
    if (oneMemory)
      return checkBudget(program, "device and host arenas have", device + host, limit);
    int64_t staging = 0; // and variables; slots end where the next one begins
    for (auto buffer : program.getBody().getOps<BufferOp>())
      if (buffer.outlivesStep() && buffer.getSpace() == sched::Space::Host)
        staging = std::max(staging, static_cast<int64_t>(*buffer.getOffset() + (buffer.getBytes() + 255) / 256 * 256));
    return success(
        succeeded(checkBudget(program, "device arena has", device, limit)) &&
        succeeded(checkBudget(program, "host arena has", host, hostBudget == 0 ? staging : hostBudget.getValue())));
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>()) {
      Replay replay(program);
      if (failed(replay.run()) || failed(checkSizes(symbols, program)) || failed(Verifier(replay).run()) ||
          failed(checkLaunches(replay)) || failed(checkReductions(getOperation(), program)) ||
          failed(checkAgainstStep(symbols, program)) || failed(checkBudgets(program)))
        return signalPassFailure();
      accesses += replay.accesses.size();
    }
    if (failed(checkShared(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace

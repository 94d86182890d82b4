// SPDX-License-Identifier: Apache-2.0
// group-launches, for each program and each kind of run that one launch may take several of, the last kind first:
//  1. go through the runs of the kind in order; each joins the group at hand if it may, else begins the next one;
//  2. move the runs of every group next to each other and mark them;
//  3. take the plan's offsets from programs that changed.
// Moving a run from one place to the other is allowed where nothing in between touches what it writes, or writes what
// it reads. Other streams need no look: what they touch is a step in between as well, or the run does not touch it.
// A network has hundreds of parameters of a few kilobytes, whose updates take less time than their launches. Placing
// comes afterwards, since members that wait live longer than any plan has seen.
#include "passes/Passes.h"
#include "passes/analysis/Lifetimes.h"
#include "passes/analysis/Storages.h"
#include "runtime/Gather.h"

#include "ir/Together.h"

#include "llvm/ADT/MapVector.h"

namespace sluice {
#define GEN_PASS_DEF_GROUPLAUNCHES
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::ProgramOp;
using sched::RunOp;

namespace {

BufferOp slot(Value buffer) { return buffer.getDefiningOp<BufferOp>(); }
bool isVariable(Value buffer) { return slot(buffer).getVariable().has_value(); }
bool isTransient(Value buffer) { return !slot(buffer).outlivesStep() && !slot(buffer).getKept(); }

/// The cast of a gradient that a convolution left in 16 bits: updates, which wait themselves, are what reads it.
bool turnsGradient(RunOp run) {
  return run.getBackward() && run.getKernel() == "cast" && isTransient(run.getIns()[0]) &&
         isTransient(run.getOuts()[0]) && run.getOutVersions()[0] == 1 && train::isHalf(run.inType(0)) &&
         train::layoutOf(run.inType(0)) == train::LayoutKind::NHWC &&
         train::layoutOf(run.outType(0)) != train::LayoutKind::NHWC;
}

/// Writes variables alone, or what few others read soon, so that it may wait.
bool mayWait(RunOp run) { return llvm::all_of(run.getOuts(), isVariable) || turnsGradient(run); }

/// A cast of parameters to floats of 16 bits, whose results nothing holds before: it may come early.
bool mayComeEarly(RunOp run) {
  return llvm::all_of(run.getIns(), isVariable) && llvm::all_of(run.getOuts(), isTransient) &&
         llvm::all_of(run.getOutVersions(), [](int64_t version) { return version == 1; }) &&
         train::isHalf(run.outType(0));
}

/// Can neither wait nor come early, as an update between copies of its states, or a cast of an activation. No other
/// run of its kind may pass it: verify-schedule knows runs by their order within a kind.
bool staysInPlace(RunOp run) { return run.getScratch() || !run.getGathers() || !(mayWait(run) || mayComeEarly(run)); }

/// The same for runs that one launch may take together, and for those that stay in place among them; empty: of a
/// stream whose runs nothing is done with.
std::string kindOf(RunOp run) {
  if (run.getStream() != sched::Stream::Compute || run.getOuts().empty())
    return "";
  std::string kind = run.getBackward() ? "backward" : "forward";
  for (auto call : run.getCalls().getAsRange<sched::CallAttr>())
    kind += " " + call.getKernel().str() + "." + call.getMethod().str();
  return kind;
}

/// The steps of a program, and the bytes of the device that transients take in each.
/// Step by step: programs have some thousands, and an array of bytes tells at once what a longer life adds to.
class Timeline {
public:
  /// Bytes that live in each step, of device slots that end with it; what outlives the step is the same in all.
  explicit Timeline(ProgramOp program) : steps(sched::steps(program)), live(steps.size() + 2) {
    for (auto [i, op] : llvm::enumerate(steps))
      indices[op] = static_cast<int64_t>(i) + 1;
    Lifetimes lifetimes(program);
    for (auto buffer : program.getBody().getOps<BufferOp>()) {
      Life life = lifetimes.of(buffer.getBuffer());
      if (buffer.outlivesStep() || !buffer.onDevice() || life.empty())
        continue;
      lives[buffer.getBuffer()] = life;
      for (int64_t step = life.first; step <= life.last; ++step)
        live[step] += slotBytes(buffer.getBytes());
    }
  }

  int64_t of(Operation *op) const { return indices.lookup(op); }
  Operation *at(int64_t step) const { return steps[step - 1]; }
  int64_t peak() const { return *llvm::max_element(live); }

  /// Lets the transients among `buffers` live at `step` as well, unless that takes more than `ceiling` in some step.
  bool extend(ArrayRef<Value> buffers, int64_t step, int64_t ceiling) {
    std::vector<int64_t> after = live;
    for (Value buffer : buffers)
      if (Life life = lives.lookup(buffer); !life.empty()) {
        for (int64_t t = life.last + 1; t <= step; ++t)
          after[t] += slotBytes(slot(buffer).getBytes());
        for (int64_t t = step; t < life.first; ++t)
          after[t] += slotBytes(slot(buffer).getBytes());
      }
    if (*llvm::max_element(after) > ceiling)
      return false;
    live = std::move(after);
    for (Value buffer : buffers)
      if (auto life = lives.find(buffer); life != lives.end())
        life->second.cover(step, step);
    return true;
  }

private:
  SmallVector<Operation *> steps;
  std::vector<int64_t> live; ///< by step
  llvm::DenseMap<Operation *, int64_t> indices;
  llvm::DenseMap<Value, Life> lives;
};

/// What an op, or several, read and write.
struct Footprint {
  llvm::SmallDenseSet<Value, 16> reads, writes;

  void add(Operation *op) {
    if (auto run = dyn_cast<RunOp>(op)) {
      reads.insert(run.getIns().begin(), run.getIns().end());
      writes.insert(run.getOuts().begin(), run.getOuts().end());
      if (run.getScratch())
        writes.insert(run.getScratch());
    } else if (auto copy = dyn_cast<sched::CopyOp>(op)) {
      reads.insert(copy.getFrom());
      writes.insert(copy.getTo());
    }
  }
  bool disturbs(const Footprint &other) const {
    return llvm::any_of(writes, [&](Value v) { return other.reads.contains(v) || other.writes.contains(v); }) ||
           llvm::any_of(reads, [&](Value v) { return other.writes.contains(v); });
  }
};

Footprint footprintOf(Operation *op) {
  Footprint footprint;
  footprint.add(op);
  return footprint;
}

/// Runs that one launch takes.
struct Group {
  SmallVector<RunOp> members;
  Footprint footprint;
  SmallVector<Value> waiting; ///< transients that live longer, or begin earlier, for the group's sake
  int64_t bytes = 0;          ///< of `waiting`
  int64_t step = 0;           ///< where they all run
};

/// The groups of one program. No group may raise the peak that it has without them (`ceiling`): a budget that a plan
/// meets is met with groups, too.
class Grouping {
public:
  Grouping(ProgramOp program, int64_t mostBytes)
      : program(program), mostBytes(mostBytes), ceiling(Timeline(program).peak()) {}

  /// Gives back how many launches are saved.
  int64_t run();

private:
  std::vector<Group> groupsOf(ArrayRef<RunOp> runs);
  bool join(Timeline &timeline, Group &group, RunOp run);
  static void add(const Timeline &timeline, Group &group, RunOp run, bool waits);

  ProgramOp program;
  const int64_t mostBytes, ceiling;
};

SmallVector<Value> transientsOf(RunOp run) {
  return llvm::to_vector(llvm::make_filter_range(run->getOperands(), isTransient));
}

int64_t bytesOf(ArrayRef<Value> buffers) {
  int64_t total = 0;
  for (Value buffer : buffers)
    total += slotBytes(slot(buffer).getBytes());
  return total;
}

/// Groups that wait run where their last member does, those that come early where the first does.
void Grouping::add(const Timeline &timeline, Group &group, RunOp run, bool waits) {
  group.step = waits || group.members.empty() ? timeline.of(run) : group.step;
  group.members.push_back(run);
  group.footprint.add(run);
  SmallVector<Value> waiting = transientsOf(run);
  group.bytes += bytesOf(waiting);
  llvm::append_range(group.waiting, waiting);
}

/// Three things may forbid it: the sizes of a launch and of a group; an op in between that the moved runs would pass
/// although one needs what the other writes; and the peak. Runs that wait move down to this one, the whole group does;
/// a run that comes early moves up to its group alone.
bool Grouping::join(Timeline &timeline, Group &group, RunOp run) {
  SmallVector<Value> own = transientsOf(run);
  const bool waits = mayWait(run);
  if (waits != mayWait(group.members.front()) || group.members.size() == mostGathered ||
      group.bytes + bytesOf(own) > mostBytes)
    return false;
  const Footprint last = footprintOf(run), &moved = waits ? group.footprint : last;
  if (last.disturbs(group.footprint))
    return false;
  const int64_t here = timeline.of(run);
  for (int64_t step = group.step + 1; step < here; ++step)
    if (footprintOf(timeline.at(step)).disturbs(moved))
      return false;
  if (!timeline.extend(waits ? ArrayRef(group.waiting) : ArrayRef(own), waits ? here : group.step, ceiling))
    return false;
  add(timeline, group, run, waits);
  return true;
}

/// In program order each run joins the last group or opens a new one. A run that must stay in its place is a group of
/// its own, across which nothing moves.
std::vector<Group> Grouping::groupsOf(ArrayRef<RunOp> runs) {
  Timeline timeline(program);
  std::vector<Group> groups;
  bool passable = false; // the last group takes more
  for (RunOp run : runs) {
    const bool stays = staysInPlace(run);
    if (!passable || stays || !join(timeline, groups.back(), run))
      add(timeline, groups.emplace_back(), run, mayWait(run));
    passable = !stays;
  }
  return groups;
}

/// Step 2.
void gatherAt(const Group &group) {
  RunOp first = group.members.front(), last = group.members.back(), before = first;
  for (RunOp member : ArrayRef(group.members).drop_front()) {
    if (!mayWait(first))
      member->moveAfter(before);
    before = member;
  }
  for (RunOp member : ArrayRef(group.members).drop_back())
    if (mayWait(first))
      member->moveBefore(last);
}

// Marks of an earlier run go first. Kinds are taken one after the other, each with a Timeline of its own: moving one
// kind changes the steps of the others. Gradients are turned in front of updates that wait already.
int64_t Grouping::run() {
  llvm::MapVector<StringAttr, SmallVector<RunOp>> kinds;
  for (auto run : program.getBody().getOps<RunOp>()) {
    run->removeAttr(sched::togetherAttribute);
    if (std::string kind = kindOf(run); !kind.empty())
      kinds[StringAttr::get(program.getContext(), kind)].push_back(run);
  }
  SmallVector<ArrayRef<RunOp>> inOrder;
  for (const bool turning : {false, true})
    for (auto &[kind, runs] : llvm::reverse(kinds))
      if (llvm::any_of(runs, turnsGradient) == turning && !llvm::all_of(runs, staysInPlace))
        inOrder.push_back(runs);
  int64_t saved = 0;
  for (ArrayRef<RunOp> runs : inOrder) {
    for (const Group &group : groupsOf(runs)) {
      for (RunOp member : ArrayRef(group.members).drop_front())
        member->setAttr(sched::togetherAttribute, UnitAttr::get(program.getContext()));
      gatherAt(group);
      saved += static_cast<int64_t>(group.members.size()) - 1;
    }
  }
  return saved;
}

/// Lives are no longer those that the plan has places for.
void forgetOffsets(ProgramOp program) {
  for (auto buffer : program.getBody().getOps<BufferOp>())
    if (!buffer.outlivesStep())
      buffer.removeOffsetAttr();
}

struct GroupLaunches : sluice::impl::GroupLaunchesBase<GroupLaunches> {
  using GroupLaunchesBase::GroupLaunchesBase;

  void runOnOperation() override {
    if (bytes < 0) {
      getOperation().emitError() << "bytes=" << bytes.getValue() << " is no size of a group; give 0 or more";
      return signalPassFailure();
    }
    for (auto program : getOperation().getOps<ProgramOp>())
      if (const int64_t less = Grouping(program, bytes).run(); less > 0) {
        saved += less;
        forgetOffsets(program);
      }
  }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
// dtr: M. Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, Section 2.
//
// Rule: run the program op by op. When an allocation does not fit, evict the resident tensor with the smallest
// h = (cost of the tensor and of its evicted neighbourhood) / (bytes * staleness): staleness is the time since its last
// access, its neighbourhood the evicted tensors that it would have to be made from, and those that would have to be
// made from it, through evicted ones all the way. Whoever reads an evicted tensor makes it again first.
//
// Changed: online there, at compile time here: the rule plays the known order of the step, on a clock of predicted
// seconds, and what it evicts becomes the plan's re-runs. Order tells us when a tensor is dead, so that it leaves at
// once (the paper waits for the framework's references). The neighbourhood is walked exactly, so that its union-find
// approximation h_DTR^eq has no use. A tensor may go once the forward half has read it for the last time, because
// programs run ops again in the backward half only; all that one op misses comes back in one segment, every op of it
// once. What cannot come back stays as long as a re-run may want it (the paper's banishing the other way round). Where
// the rule overruns memory it plays again with less: 15/16, 14/16 and so on of what keep adds to the base, and between
// the sixteenths where halving finds the least that a play gets along with.
//
// Complexity O(evictions * tensors * neighbourhood) a play, of which there are 23 at most.
//
// Knobs: neighbours=1 (0: the tensor's own cost only, the paper's h_DTR^local); reruns=8: a play that runs forward ops
// again more often than that, on average, thrashes and is given up.
//
// Fails where all plays overrun or thrash; evicts what it will want next, because it does not look ahead.
#include "passes/planner/Bounds.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace sluice::planner {

namespace {

/// Forward ops that run again together, because they write the same buffers.
struct Maker {
  std::vector<int> ops; ///< in program order
  std::set<int> outputs, inputs;
  std::set<int> readers; ///< makers that read an output
  Seconds seconds = 0;
  bool droppable = false; ///< outputs may be evicted whenever the forward half has read them for the last time
};

/// What holds of a problem however it is played.
struct Makers {
  explicit Makers(const Combiner &combiner);
  bool droppable(int b) const { return of[b] >= 0 && list[of[b]].droppable; }

  std::vector<Maker> list;
  std::vector<int> of; ///< by buffer; -1 without a maker
  std::vector<int>
      overwrite;         ///< by buffer: first op of the backward half that writes it; the number of ops without one
  std::vector<int> need; ///< by buffer: last position that may want the content of the forward half
  std::vector<int> keepUntil; ///< by buffer: position after which a resident one is dead

private:
  void group(const Problem &problem);
  void findNeeds(const Combiner &combiner);
};

Makers::Makers(const Combiner &combiner)
    : of(combiner.problem.buffers.size(), -1), overwrite(of.size(), static_cast<int>(combiner.problem.ops.size())) {
  const Problem &problem = combiner.problem;
  for (int k = static_cast<int>(problem.ops.size()) - 1; k >= 0; --k)
    if (problem.ops[k].phase != Phase::Forward)
      for (int b : problem.ops[k].writes)
        overwrite[b] = k;
  group(problem);
  findNeeds(combiner);
}

void Makers::group(const Problem &problem) {
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    const Op &op = problem.ops[k];
    if (op.phase != Phase::Forward)
      continue;
    Maker made;
    made.ops = {k};
    made.outputs.insert(op.writesWhen(true).begin(), op.writesWhen(true).end());
    made.inputs.insert(op.readsWhen(true).begin(), op.readsWhen(true).end());
    made.seconds = op.rerun ? op.rerun->seconds : op.seconds;
    for (int b : op.writesWhen(true))
      if (of[b] >= 0 && !list[of[b]].ops.empty()) {
        Maker &same = list[of[b]];
        made.ops.insert(made.ops.begin(), same.ops.begin(), same.ops.end());
        made.outputs.insert(same.outputs.begin(), same.outputs.end());
        made.inputs.insert(same.inputs.begin(), same.inputs.end());
        made.seconds += same.seconds;
        same = {};
      }
    std::sort(made.ops.begin(), made.ops.end());
    for (int b : made.outputs)
      of[b] = static_cast<int>(list.size());
    list.push_back(std::move(made));
  }
  for (size_t m = 0; m < list.size(); ++m) {
    for (int b : list[m].outputs)
      list[m].inputs.erase(b);
    for (int b : list[m].inputs)
      if (of[b] >= 0)
        list[of[b]].readers.insert(static_cast<int>(m));
  }
}

/// Later makers first: what is made from a buffer may want it as late as its own readers want that. Gradients must not
/// have taken the place of anything by then.
void Makers::findNeeds(const Combiner &combiner) {
  for (size_t b = 0; b < of.size(); ++b)
    need.push_back(std::min(combiner.accesses[b].last, overwrite[b]));
  for (auto maker = list.rbegin(); maker != list.rend(); ++maker) {
    int at = -1;
    for (int b : maker->outputs)
      at = std::max(at, need[b]);
    auto still = [&](int b) { return at <= overwrite[b]; };
    maker->droppable = std::all_of(maker->outputs.begin(), maker->outputs.end(),
                                   [&](int b) { return combiner.recomputation.possible(b) && still(b); }) &&
                       std::all_of(maker->inputs.begin(), maker->inputs.end(), still);
    if (maker->droppable)
      for (int b : maker->inputs)
        need[b] = std::max(need[b], at);
  }
  for (size_t b = 0; b < of.size(); ++b)
    keepUntil.push_back(droppable(static_cast<int>(b)) ? combiner.accesses[b].last
                                                       : std::max(need[b], combiner.accesses[b].last));
}

/// One run of the step with at most `limit` bytes, as far as evictions can see to it.
class Play {
public:
  Play(const Combiner &combiner, const Makers &makers, Bytes limit, const Options &options);

  /// Nothing when it thrashes.
  std::optional<Plan> run();

private:
  Bytes bytesOf(int b) const { return aligned(problem, problem.buffers[b].bytes); }
  std::vector<int> missing(const Op &op) const;
  void execute(int op, bool again);
  void hold(int op, bool again, int by);
  void leave(int b);
  void makeRoom(Bytes bytes);
  int victim();
  double worth(int b);
  Seconds evictedAround(int maker);

  const Problem &problem;
  const Combiner &combiner;
  const Makers &makers;
  const Bytes limit;
  const bool neighbours;
  double rerunsLeft;
  std::vector<bool> resident, evicted;
  std::vector<int> held; ///< how many ops of this position still read or write the buffer
  std::vector<Seconds> touched;
  std::vector<std::vector<int>> dead; ///< by position: who leaves after it
  std::vector<int> seen;              ///< by maker: the last walk that saw it
  int walk = 0, position = 0;
  Bytes used;
  Seconds clock = 0;
};

Play::Play(const Combiner &combiner, const Makers &makers, Bytes limit, const Options &options)
    : problem(combiner.problem), combiner(combiner), makers(makers), limit(limit),
      neighbours(numberKnob(options, "neighbours", 1) > 0), resident(problem.buffers.size(), false),
      evicted(resident.size(), false), held(resident.size(), 0), touched(resident.size(), 0), dead(problem.ops.size()),
      seen(makers.list.size(), 0), used(problem.base) {
  rerunsLeft = numberKnob(options, "reruns", 8) *
               static_cast<double>(std::count_if(problem.ops.begin(), problem.ops.end(),
                                                 [](const Op &op) { return op.phase == Phase::Forward; }));
  for (int b = 0; b < static_cast<int>(resident.size()); ++b) {
    if (makers.keepUntil[b] >= 0)
      dead[makers.keepUntil[b]].push_back(b);
    const int first = combiner.accesses[b].first;
    if (first < 0 || combiner.accesses[b].firstWrite == first)
      continue;
    resident[b] = true; // arrives from outside
    used += bytesOf(b);
  }
}

std::optional<Plan> Play::run() {
  Plan plan = keepPlan(problem);
  for (position = 0; position < static_cast<int>(problem.ops.size()); ++position) {
    const std::vector<int> segment = missing(problem.ops[position]);
    if ((rerunsLeft -= static_cast<double>(segment.size())) < 0)
      return std::nullopt;
    hold(position, false, 1);
    for (int op : segment)
      hold(op, true, 1);
    for (int op : segment)
      execute(op, true);
    execute(position, false);
    for (int b : dead[position])
      leave(b);
    if (!segment.empty())
      plan.recomputes.push_back({position, segment});
  }
  pruneRecomputes(problem, plan);
  return plan;
}

/// Ops that bring back what the op accesses and the device no longer has, in order.
std::vector<int> Play::missing(const Op &op) const {
  std::set<int> ops;
  std::vector<int> wanted = op.reads;
  wanted.insert(wanted.end(), op.writes.begin(), op.writes.end()); // whose bytes an evicted one has given up
  std::set<int> found;
  while (!wanted.empty()) {
    const int b = wanted.back();
    wanted.pop_back();
    if (!evicted[b] || !found.insert(makers.of[b]).second)
      continue;
    const Maker &maker = makers.list[makers.of[b]];
    ops.insert(maker.ops.begin(), maker.ops.end());
    wanted.insert(wanted.end(), maker.inputs.begin(), maker.inputs.end());
  }
  return {ops.begin(), ops.end()};
}

void Play::hold(int op, bool again, int by) {
  for (const auto *list : {&problem.ops[op].readsWhen(again), &problem.ops[op].writesWhen(again)})
    for (int b : *list)
      held[b] += by;
}

void Play::execute(int k, bool again) {
  const Op &op = problem.ops[k];
  Bytes bytes = aligned(problem, again && op.rerun ? op.rerun->workspace : op.workspace);
  for (int b : op.writesWhen(again))
    bytes += resident[b] ? 0 : bytesOf(b);
  makeRoom(bytes);
  for (int b : op.writesWhen(again)) {
    used += resident[b] ? 0 : bytesOf(b);
    resident[b] = true;
    evicted[b] = false;
  }
  clock += again && op.rerun ? op.rerun->seconds : op.seconds;
  hold(k, again, -1);
  for (const auto *list : {&op.readsWhen(again), &op.writesWhen(again)})
    for (int b : *list) {
      touched[b] = clock;
      if (again && held[b] == 0 && makers.keepUntil[b] <= position)
        leave(b); // made for the segment alone
    }
}

void Play::leave(int b) {
  if (!resident[b])
    return;
  used -= bytesOf(b);
  resident[b] = false;
  evicted[b] = makers.droppable(b);
}

void Play::makeRoom(Bytes bytes) {
  while (used + bytes > limit) {
    const int b = victim();
    if (b < 0)
      return;
    leave(b);
  }
}

/// The buffer to evict next; -1 when there is none.
int Play::victim() {
  int found = -1;
  double least = 0;
  for (int b = 0; b < static_cast<int>(resident.size()); ++b) {
    if (!resident[b] || held[b] > 0 || !makers.droppable(b) || combiner.accesses[b].lastForward >= position ||
        makers.overwrite[b] <= position)
      continue;
    if (const double h = worth(b); found < 0 || h < least) {
      found = b;
      least = h;
    }
  }
  return found;
}

/// h_DTR.
double Play::worth(int b) {
  const int maker = makers.of[b];
  const Seconds cost = makers.list[maker].seconds + (neighbours ? evictedAround(maker) : 0);
  const double bytesAndTime = static_cast<double>(problem.buffers[b].bytes) * (clock - touched[b]);
  return bytesAndTime > 0 ? cost / bytesAndTime : std::numeric_limits<double>::infinity();
}

/// Seconds of the evicted neighbourhood: what the maker's outputs would come from, and what would come from them.
Seconds Play::evictedAround(int maker) {
  ++walk;
  seen[maker] = walk;
  Seconds seconds = 0;
  auto wanted = [&](int b) { return evicted[b] && makers.need[b] > position; };
  for (bool up : {true, false}) {
    std::vector<int> work = {maker};
    while (!work.empty()) {
      const Maker &here = makers.list[work.back()];
      work.pop_back();
      std::vector<int> next;
      if (up)
        for (int b : here.inputs)
          next.insert(next.end(), evicted[b], makers.of[b]);
      else
        std::copy_if(here.readers.begin(), here.readers.end(), std::back_inserter(next), [&](int m) {
          return std::any_of(makers.list[m].outputs.begin(), makers.list[m].outputs.end(), wanted);
        });
      for (int m : next)
        if (std::exchange(seen[m], walk) != walk) {
          seconds += makers.list[m].seconds;
          work.push_back(m);
        }
    }
  }
  return seconds;
}

} // namespace

static Answer planDtr(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "dtr", memory);
  if (!combiner.can(Action::Recompute))
    return Refused{"strategy 'dtr' needs action 'recompute', which the target does not execute"};
  const Makers makers(combiner);
  const Bytes kept = best.peak - problem.base;
  for (int share = 16; share >= 0; --share) { // sixteenths; the first play has what there is
    const bool first = share == 16;
    std::optional<Plan> plan = Play(combiner, makers, first ? memory : problem.base + kept / 16 * share, options).run();
    if (!plan)
      continue;
    Attempt attempt = combiner.complete(std::move(*plan), {});
    if (attempt.feasible)
      return answerOf(std::move(attempt), "dtr", memory);
    if (!first) // another memory would not play it again, so the least bytes are those of the others
      improve(best, std::move(attempt));
  }
  Bytes low = memoryFloor(problem);
  for (int halving = 0; halving < 6 && low < best.peak && !best.feasible; ++halving) {
    const Bytes limit = low + (best.peak - low) / 2;
    std::optional<Plan> plan = Play(combiner, makers, limit, options).run();
    if (!plan || !improve(best, combiner.complete(std::move(*plan), {})))
      low = limit;
  }
  return answerOf(std::move(best), "dtr", memory);
}

Strategy dtrStrategy() {
  Strategy s{"dtr", "evict by cost over bytes and staleness, make again on demand (Kirisame et al. 2021)", planDtr};
  s.knobs = {{"neighbours", 1}, {"reruns", 1e4}};
  s.actions = {Action::Recompute};
  return s;
}

} // namespace sluice::planner

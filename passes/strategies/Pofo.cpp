// SPDX-License-Identifier: Apache-2.0
// pofo: O. Beaumont, L. Eyraud-Dubois, A. Shilova, Efficient Combination of Rematerialization and Offloading for
// Training DNNs, NeurIPS 2021 (from a public port of its supplement; see E2 of the planner digests).
//
// Rule: cut the chain into blocks. A block is one stage that saves all that its backward op needs, or several stages of
// which only the input stays and that run again by rotor's schedule. Every block's input is kept or offloaded; a
// dynamic program over the blocks carries the bytes that are kept, those still to be copied out, and those to be copied
// back before the backward half goes on below.
//
// Changed: states are pruned by dominance instead of a grid of 50 slots an axis, and the link's idle time on one side
// of the turn pays for the other side, as in dynprog (the port clips both at zero). A block's need is the largest over
// its own stages, not up to the end of the chain, and its input is charged once (the port charges it twice). The best
// schedules, also for more memory than there is, are tried on the op-level program, whose tensors die one by one, and
// the fastest that fits is taken. rotor's plans, which move nothing, are schedules of this space, too, and are tried:
// blocks here are whole stages and inputs of blocks stay or leave whole.
//
// While a block runs again and content is still to come back, its time is estimated half-way between full overlap and
// none, as in the port.
//
// Complexity O(L^2 * states * log(states)), states at most `limit` a boundary; chains of more than 100 stages are
// grouped first.
//
// Knobs: slots=0 of rotor's table (0: as rotor), limit=24, sets=4 schedules tried a memory.
//
// Fails below the smallest memory of its blocks and of rotor's plans; weak inside large stages, because blocks are
// whole stages.
#include "passes/strategies/Pofo.h"

#include "passes/planner/ChainSimulate.h"
#include "passes/planner/Words.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace sluice::planner {

namespace {

/// At the boundary before stage i, whose input is either x_i alone or, after a saving stage, all that came with it.
struct State {
  double stays = 0; ///< kept bytes from before, without the input of stage i
  double out = 0;   ///< not yet copied out; negative: bandwidth * time since the last copy ended
  double back = 0;  ///< copied back before the backward half goes on below; negative likewise
  Seconds time = 0;
  int parent = -1; ///< among all states
  PofoBlock block; ///< that leads here
};

double plus(double v) { return std::max(0.0, v); }

/// The recursion over boundaries of blocks. Layers tell apart whether the stage before saved all or its boundary alone,
/// as that is what offloading the input of a block moves.
class Pofo {
public:
  Pofo(const Chain &chain, const RotorTable &rotor, double memory, size_t limit)
      : c(chain), rotor(rotor), memory(memory + byteSlack(chain)), limit(limit), n(chain.uF.size()),
        layers(2 * (n + 1)) {}

  /// Boundary by boundary. States get their numbers once they are pruned, since `parent` needs one that stays.
  std::vector<PofoSchedule> run(size_t count) {
    layers[0].push_back(State{});
    for (int i = 0; i < n; ++i)
      for (bool all : {false, true})
        for (const State &s : pruned(std::move(layers[2 * i + all]))) {
          states.push_back(s);
          saveStage(s, i, all);
          runAgain(s, i, all);
        }
    std::vector<State> ends = std::move(layers[2 * n]);
    ends.insert(ends.end(), layers[2 * n + 1].begin(), layers[2 * n + 1].end());
    for (State &s : ends) // what is left of either side is copied at the turn
      s.time += c.bandwidth > 0 ? plus(s.out + s.back) / c.bandwidth : 0;
    std::sort(ends.begin(), ends.end(), faster);
    std::vector<PofoSchedule> schedules;
    for (size_t k = 0; k < ends.size() && k < count; ++k)
      schedules.push_back({trace(ends[k]), ends[k].time});
    return schedules;
  }

private:
  static bool faster(const State &a, const State &b) {
    return std::tie(a.time, a.stays, a.out, a.back) < std::tie(b.time, b.stays, b.out, b.back);
  }

  double inputBytes(int i, bool all) const { return all ? c.moved(i) : c.x[i]; }

  /// Seconds that `excess` bytes must leave for first; infinite without a link.
  Seconds idle(double excess) const { return excess > 0 ? excess / c.bandwidth : 0; }

  /// A block of one stage that saves everything.
  void saveStage(const State &s, int i, bool all) {
    const double input = inputBytes(i, all), left = memory - s.stays - input;
    const double needF = c.moved(i + 1) + c.exF[i];
    const double needB = c.moved(i + 1) + c.y[i] + c.y[i + 1] + c.exB[i];
    if (std::max(needF, needB) > left)
      return;
    const Seconds eF = idle(needF + plus(s.out) - left), eB = idle(needB + plus(s.back) - left);
    push(s, {i, i, true, false, 0}, input, c.uF[i] + eF, c.uB[i] + eB);
  }

  /// Blocks from stage i to each later one. The forward half waits for what is late at the worst stage, less what has
  /// left while the stages before it ran; the backward half runs rotor's schedule beside the copies back.
  void runAgain(const State &s, int i, bool all) {
    const double input = inputBytes(i, all), left = memory - s.stays - input;
    double late = 0; // the largest need, less what has left by then
    Seconds forward = 0;
    for (int j = i; j < n; ++j) {
      const double need = c.moved(j + 1) + c.exF[j] + (j > i ? c.x[j] : 0);
      if (need > left)
        return; // so it is for every longer block
      late = std::max(late, need - c.bandwidth * forward);
      forward += c.uF[j];
      const Seconds again = rotor.best(left, i, j);
      if (!std::isfinite(again))
        continue;
      const Seconds eF = idle(late + plus(s.out) - left), copy = s.back > 0 ? s.back / c.bandwidth : 0;
      const Seconds backward = copy > 0 ? (std::max(again, copy) + again + copy) / 2 : again;
      push(s, {i, j, false, false, left}, input, forward + eF, backward);
    }
  }

  /// Both choices for the block's input. What is still to be copied shrinks by what the link carries while the block
  /// runs.
  void push(const State &s, PofoBlock block, double input, Seconds forward, Seconds backward) {
    std::vector<State> &next = layers[2 * (block.last + 1) + block.saved];
    const double outMoved = forward * c.bandwidth, backMoved = backward * c.bandwidth;
    const Seconds time = s.time + forward + backward;
    if (!std::isfinite(time))
      return;
    const int parent = static_cast<int>(states.size()) - 1;
    next.push_back({s.stays + input, s.out - outMoved, s.back - backMoved, time, parent, block});
    block.offloaded = true;
    if (c.bandwidth > 0 && input > 0)
      next.push_back({s.stays, plus(s.out) + input - outMoved, input + plus(s.back - backMoved), time, parent, block});
  }

  /// Undominated states; of too many the fastest of every share by kept bytes.
  std::vector<State> pruned(std::vector<State> all) const {
    std::sort(all.begin(), all.end(), faster);
    std::vector<State> front;
    for (const State &s : all)
      if (front.size() < 2 * limit && std::none_of(front.begin(), front.end(), [&](const State &f) {
            return f.stays <= s.stays && f.out <= s.out && f.back <= s.back;
          }))
        front.push_back(s);
    // The sort is by time, so the limit above may have cut off those that keep least.
    if (!all.empty())
      front.push_back(*std::min_element(all.begin(), all.end(), [](auto &a, auto &b) {
        return std::tie(a.stays, a.time) < std::tie(b.stays, b.time);
      }));
    if (front.size() <= limit)
      return front;
    std::sort(front.begin(), front.end(), [](auto &a, auto &b) {
      return std::tie(a.stays, a.time, a.out, a.back) < std::tie(b.stays, b.time, b.out, b.back);
    });
    std::vector<State> kept = {front.front()};
    for (size_t k = 0; k + 1 < limit; ++k) {
      const size_t from = k * front.size() / (limit - 1), to = (k + 1) * front.size() / (limit - 1);
      kept.push_back(*std::min_element(front.begin() + from, front.begin() + to, faster));
    }
    return kept;
  }

  /// Back to the state before the first stage, which no block leads to.
  std::vector<PofoBlock> trace(const State &end) const {
    std::vector<PofoBlock> blocks = {end.block};
    for (int s = end.parent; states[s].parent >= 0; s = states[s].parent)
      blocks.push_back(states[s].block);
    std::reverse(blocks.begin(), blocks.end());
    return blocks;
  }

  const Chain &c;
  const RotorTable &rotor;
  const double memory;
  const size_t limit;
  const int n;
  std::vector<std::vector<State>> layers; ///< 2 * boundary + 1 if all of the stage before was saved
  std::vector<State> states;              ///< that were extended
};

/// Ops whose re-run would only repeat the inputs of blocks, which are there; what else they write stays, too.
std::set<int> makersOfInputs(const Problem &problem, const Stages &stages, const PofoSchedule &schedule) {
  std::set<int> inputs, makers;
  for (const PofoBlock &block : schedule.blocks)
    for (int b : stages.activations(block.last))
      if (!block.saved && stages.crosses(b, 1))
        inputs.insert(b);
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k)
    for (int b : problem.ops[k].writesWhen(true))
      if (inputs.count(b))
        makers.insert(k);
  return makers;
}

std::vector<int> offloadedBy(const Stages &stages, const PofoSchedule &schedule) {
  std::vector<int> offloaded;
  for (size_t k = 1; k < schedule.blocks.size(); ++k) // x_0 is empty: batch slots are part of the base
    if (const PofoBlock &block = schedule.blocks[k]; block.offloaded)
      for (int b : stages.activations(block.first - 1))
        if (schedule.blocks[k - 1].saved || stages.crosses(b, 1))
          offloaded.push_back(b);
  return offloaded;
}

/// The op-level plan of a schedule, offloads still to be chosen.
Plan planOf(const Problem &problem, const Stages &stages, const RotorTable &rotor, const PofoSchedule &schedule) {
  std::vector<StageRun> runs;
  for (int i = 0; i < stages.count(); ++i)
    runs.push_back({i, true});
  for (auto block = schedule.blocks.rbegin(); block != schedule.blocks.rend(); ++block)
    if (block->saved)
      runs.push_back({block->first, false});
    else
      rotor.append(block->room, block->first, block->last, runs);
  Plan plan = keepPlan(problem);
  plan.recomputes = segmentsOf(problem, stages, runs);
  const std::set<int> made = makersOfInputs(problem, stages, schedule);
  for (Recompute &r : plan.recomputes)
    r.ops.erase(std::remove_if(r.ops.begin(), r.ops.end(), [&](int op) { return made.count(op) > 0; }), r.ops.end());
  pruneRecomputes(problem, plan);
  return plan;
}

} // namespace

std::vector<PofoSchedule> pofoSchedules(const Chain &chain, const RotorTable &rotor, double memory, size_t count,
                                        size_t limit) {
  return Pofo(chain, rotor, memory, std::max<size_t>(limit, 2)).run(count);
}

/// The chain is only a model of the program, so that its schedules are tried there, also those for more memory than
/// there is. Where none fits, the same ones are tried whatever the budget: what is named as the smallest must not
/// depend on who asks.
static Answer planPofo(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "pofo", memory);
  for (Action action : {Action::Offload, Action::Recompute})
    if (!combiner.can(action))
      return Refused{std::string("strategy 'pofo' needs action '") + actionName(action) +
                     "', which the target does not execute"};
  const Stages stages(problem, 100);
  const Chain chain = stages.chain();
  const int slots = static_cast<int>(numberKnob(options, "slots", 0));
  const std::shared_ptr<const RotorTable> table = rotorTable(chain, slots, options);
  const RotorTable &rotor = *table;
  const size_t count = std::max(1.0, numberKnob(options, "sets", 4));
  const size_t limit = std::max(2.0, numberKnob(options, "limit", 24));
  auto tryMemory = [&](double bytes) {
    for (const PofoSchedule &schedule : pofoSchedules(chain, rotor, bytes, count, limit)) {
      Choice choice;
      choice.offloaded = offloadedBy(stages, schedule);
      improve(best, combiner.complete(planOf(problem, stages, rotor, schedule), choice));
    }
  };
  for (double factor : {1.0, 1.1, 1.3})
    tryMemory(factor * (memory - problem.base));
  if (best.feasible) {
    improve(best, bestRematerialization(combiner, slots));
    return answerOf(best, "pofo", memory);
  }
  // Schedules that do not depend on the budget, so that the smallest one named here is met by the next call.
  best = combiner.attempt({});
  improve(best, bestRematerialization(combiner, slots));
  const double floor = chainFloor(chain), peak = chainPeak(chain);
  for (int step = 0; step <= 8; ++step)
    tryMemory(floor + (peak - floor) * step / 8);
  return answerOf(best, "pofo", memory);
}

Strategy pofoStrategy() {
  Strategy s{"pofo", "recompute and offload blocks of a chain (Beaumont et al. 2021)", planPofo};
  s.knobs = {{"slots", 1e4}, {"limit", 1e5}, {"sets", 1e5}};
  s.actions = {Action::Offload, Action::Recompute};
  return s;
}

} // namespace sluice::planner

// SPDX-License-Identifier: Apache-2.0
// dynprog: O. Beaumont, L. Eyraud-Dubois, A. Shilova, Optimal GPU-CPU Offloading Strategies for Deep Neural Network
// Training, Euro-Par 2020, Section 4.3, Algorithm 1.
//
// Rule: decide stage by stage whether x_i is offloaded; the state at a boundary is what both halves of the schedule
// need to know of each other: bytes that stay, bytes not yet copied out, bytes to be copied back, idle time so far.
// The turn is closed by equation (9).
//
// Changed: three printed equations are corrected, because the print overruns memory: equation (6) uses exB,
// equation (9) uses y_(j+1), feasibility uses D+ (also, y_(L+1) is not charged to the forward half). States are
// pruned by exact dominance instead of rounding. With partial release the first set is optimal among ordered
// schedules (not among all: Lemma 3 has counterexamples). With whole release the best sets, GREEDY's among them,
// are simulated as they would run, and the fastest changes one tensor, or exchanges one that moves for one that stays,
// for as long as that makes it faster: the recursion knows parts, and no finer sample of its states finds what whole
// tensors want. So do partial ones where states had to be sampled; what they reach then cuts the recursion, which runs
// again without the states that cannot beat it.
//
// Complexity O(L * states^2), states at most `limit` a boundary; beyond it the least idle state of every cell of a
// grid survives. Exchanges: 1e6 / L simulations at most.
//
// Knobs: limit=0 states (0: chosen by L so that planning takes a few seconds at most), sets=64 simulated with whole
// release, exchanges=1 (0: the fastest of those, as it is).
//
// Fails below chainFloor: the largest stage's inputs and outputs.
#include "passes/strategies/DynProg.h"

#include "passes/strategies/Combine.h"
#include "passes/strategies/Stages.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace sluice::planner {

namespace {

/// At the boundary before stage i; s_i, D_F and D_B are the paper's names.
struct State {
  double stays = 0; ///< s_i without |x_i|: kept bytes among x_0..x_(i-1)
  double out = 0;   ///< D_F: not yet copied out; negative: bandwidth * time since the last copy ended
  double back = 0;  ///< D_B: copied back before B_(i-1) starts; negative likewise
  Seconds idle = 0;
  int parent = -1;
  bool offloaded = false; ///< x_(i-1)
};

double plus(double v) { return std::max(0.0, v); }

bool dominates(const State &a, const State &b) {
  return a.stays <= b.stays && a.out <= b.out && a.back <= b.back && a.idle <= b.idle;
}

/// The recursion over boundaries 0..n. Layer i has the undominated states before F_i, with their way back.
class DynProg {
public:
  DynProg(const Chain &chain, double memory, size_t limit, bool relaxed = false)
      : c(chain), memory(memory), limit(limit), relaxed(relaxed), n(chain.uF.size()), slack(byteSlack(chain)) {
    measureRest();
  }

  /// Sets whose makespan is below `cutoff` seconds.
  std::vector<DynProgSet> run(size_t count, Seconds cutoff = std::numeric_limits<Seconds>::infinity());
  bool exact = true;

private:
  void measureRest();
  bool feasible(const State &s, int i) const;
  Seconds leastIdle(const State &s, int i) const;
  void extend(const State &s, int index, int i, std::vector<State> &next) const;
  std::vector<State> pruned(std::vector<State> states);
  void thin(std::vector<State> &states) const;
  Seconds turn(const State &s) const;
  std::vector<std::pair<Seconds, int>> ends() const;
  std::vector<bool> trace(int index) const;

  const Chain &c;
  const double memory;
  const size_t limit;
  const bool relaxed; ///< states that are too many become fewer better ones: the best end is a lower bound
  const int n;
  const double slack;
  std::vector<double> excess; ///< by i: bytes of x_0 to x_j beyond memory at the worst j >= i, were all kept
  std::vector<Seconds> rest;  ///< by i: of F_i and B_i and those after them
  std::vector<double> before; ///< by i: bytes of x_0 to x_(i-1)
  std::vector<std::vector<State>> layers;
};

void DynProg::measureRest() {
  before.assign(n + 1, 0);
  for (int i = 0; i < n; ++i)
    before[i + 1] = before[i] + c.moved(i);
  excess.assign(n + 1, 0);
  rest.assign(n + 1, 0);
  for (int i = n - 1; i >= 0; --i) {
    const double here = before[i] + c.moved(i) + c.moved(i + 1) + std::max(c.exF[i], c.y[i] + c.exB[i] + c.y[i + 1]);
    excess[i] = i == n - 1 ? here - memory - slack : std::max(excess[i + 1], here - memory - slack);
    rest[i] = rest[i + 1] + c.uF[i] + c.uB[i];
  }
}

/// Idle time of no schedule through the state is less: what is still to be moved out and back, and what the rest will
/// have to move, takes the link until the turn, beside the ops and idle times up to there.
Seconds DynProg::leastIdle(const State &s, int i) const {
  if (c.bandwidth == 0)
    return s.idle;
  const double more = i < n ? plus(excess[i] - before[i] + s.stays) : 0;
  return s.idle + plus((s.out + s.back + 2 * more) / c.bandwidth - rest[i]);
}

bool DynProg::feasible(const State &s, int i) const {
  const double here = s.stays + c.moved(i) + c.moved(i + 1);
  return here + std::max(c.exF[i], c.y[i] + c.exB[i] + c.y[i + 1]) <= memory + slack;
}

/// Equations (1) to (8).
void DynProg::extend(const State &s, int index, int i, std::vector<State> &next) const {
  const double beta = c.bandwidth, x = c.moved(i);
  const double mF = s.stays + x + plus(s.out), mB = c.y[i] + s.stays + x + plus(s.back);
  const double excessF = plus(mF + c.exF[i] + c.moved(i + 1) - memory - slack);
  const double excessB = plus(mB + c.exB[i] + c.moved(i + 1) + c.y[i + 1] - memory - slack);
  const Seconds eF = excessF > 0 ? excessF / beta : 0, eB = excessB > 0 ? excessB / beta : 0;
  const double movedF = excessF + c.uF[i] * beta, movedB = excessB + c.uB[i] * beta;
  const Seconds idle = s.idle + eF + eB;
  next.push_back({s.stays + x, s.out - movedF, s.back - movedB, idle, index, false});
  if (beta > 0)
    next.push_back({s.stays, plus(s.out) + x - movedF, x + plus(s.back - movedB), idle, index, true});
}

/// Keeps, of every cell of a grid, the state with the least idle time, and the one that stays smallest. Relaxed: a
/// state of every cell that dominates all of them, so that no schedule gets slower.
void DynProg::thin(std::vector<State> &states) const {
  auto range = [&](double State::*field) {
    double low = std::numeric_limits<double>::max(), high = -low;
    for (const State &s : states) {
      low = std::min(low, s.*field);
      high = std::max(high, s.*field);
    }
    return std::pair(low, std::max(high - low, 1e-300));
  };
  const auto stays = range(&State::stays), out = range(&State::out), back = range(&State::back);
  for (int cells = 256; cells > 1; cells = cells * 3 / 4) {
    std::map<std::tuple<int, int, int>, State> kept;
    auto cell = [&](double v, std::pair<double, double> r) {
      return static_cast<int>((v - r.first) / r.second * (cells - 1));
    };
    for (const State &s : states) {
      auto [at, fresh] = kept.try_emplace({cell(s.stays, stays), cell(s.out, out), cell(s.back, back)}, s);
      State &known = at->second;
      if (!fresh && relaxed)
        known = {std::min(known.stays, s.stays),
                 std::min(known.out, s.out),
                 std::min(known.back, s.back),
                 std::min(known.idle, s.idle),
                 s.parent,
                 s.offloaded};
      else if (!fresh && s.idle < known.idle)
        known = s;
    }
    if (kept.size() + 1 > limit && cells > 2)
      continue;
    const State smallest =
        *std::min_element(states.begin(), states.end(), [](auto &a, auto &b) { return a.stays < b.stays; });
    states = {smallest};
    for (const auto &[key, s] : kept)
      states.push_back(s);
    return;
  }
}

std::vector<State> DynProg::pruned(std::vector<State> states) {
  std::sort(states.begin(), states.end(), [](const State &a, const State &b) {
    return std::tie(a.idle, a.stays, a.out, a.back) < std::tie(b.idle, b.stays, b.out, b.back);
  });
  if (states.size() > 2 * limit) {
    exact = false;
    thin(states);
    std::sort(states.begin(), states.end(), [](const State &a, const State &b) { return a.idle < b.idle; });
  }
  std::vector<State> front;
  for (const State &s : states)
    if (std::none_of(front.begin(), front.end(), [&](const State &f) { return dominates(f, s); }))
      front.push_back(s);
  if (front.size() > limit) {
    exact = false;
    thin(front);
  }
  return front;
}

/// Equation (9): the gap between the end of F_L and the start of B_L.
Seconds DynProg::turn(const State &s) const {
  const double beta = c.bandwidth, last = c.moved(n);
  if (beta == 0)
    return 0;
  const double mF = s.stays + last + plus(s.out), mB = s.stays + last + plus(s.back);
  Seconds gap = std::max(0.0, (s.out + s.back) / beta);
  double later = 0; // bytes of x_i with i > j + 1, which are gone by then
  Seconds sinceB = 0, sinceF = 0;
  for (int j = n - 1; j >= 0; --j) {
    const bool early = sinceB * beta < -s.back, late = sinceF * beta < -s.out;
    if (!early && !late)
      break;
    if (early)
      gap = std::max(gap, (c.exB[j] + c.y[j] + c.y[j + 1] - later + mF - memory - slack) / beta - sinceB);
    if (late)
      gap = std::max(gap, (c.exF[j] - later + mB - memory - slack) / beta - sinceF);
    sinceB += c.uB[j];
    sinceF += c.uF[j];
    later += c.moved(j + 1);
  }
  return gap;
}

std::vector<bool> DynProg::trace(int index) const {
  std::vector<bool> set(n);
  for (int i = n; i > 0; --i) {
    const State &s = layers[i][index];
    set[i - 1] = s.offloaded;
    index = s.parent;
  }
  return set;
}

/// Idle seconds and index of the states after the last stage, the fastest first.
std::vector<std::pair<Seconds, int>> DynProg::ends() const {
  std::vector<std::pair<Seconds, int>> ends;
  for (int k = 0; k < static_cast<int>(layers[n].size()); ++k)
    ends.push_back({layers[n][k].idle + turn(layers[n][k]), k});
  // Of equally fast ones the one that keeps most.
  std::sort(ends.begin(), ends.end(), [&](const auto &a, const auto &b) {
    return std::make_tuple(a.first, -layers[n][a.second].stays, a.second) <
           std::make_tuple(b.first, -layers[n][b.second].stays, b.second);
  });
  return ends;
}

std::vector<DynProgSet> DynProg::run(size_t count, Seconds cutoff) {
  const Seconds most = cutoff - chainCompute(c);
  layers.push_back({State{}});
  for (int i = 0; i < n; ++i) {
    std::vector<State> next;
    for (int k = 0; k < static_cast<int>(layers[i].size()); ++k)
      if (feasible(layers[i][k], i))
        extend(layers[i][k], k, i, next);
    next.erase(std::remove_if(next.begin(), next.end(), [&](const State &s) { return leastIdle(s, i + 1) >= most; }),
               next.end());
    layers.push_back(pruned(std::move(next)));
  }
  std::vector<DynProgSet> sets;
  for (const auto &[idle, index] : ends()) {
    if (sets.size() == count || idle >= most)
      break;
    sets.push_back({trace(index), chainCompute(c) + idle});
  }
  return sets;
}

} // namespace

/// States a boundary with which planning takes a few seconds at most.
static size_t limitFor(const Chain &chain) {
  return std::clamp<size_t>(static_cast<size_t>(std::sqrt(1.5e9 / chain.uF.size())), 200, 6000);
}

std::vector<DynProgSet> dynprogSets(const Chain &chain, double memory, size_t count, size_t limit, bool &exact) {
  DynProg dp(chain, memory, limit > 0 ? limit : limitFor(chain));
  auto sets = dp.run(count);
  exact = dp.exact;
  return sets;
}

std::optional<Seconds> dynprogBound(const Chain &chain, double memory, size_t limit) {
  const std::vector<DynProgSet> sets = DynProg(chain, memory, limit, true).run(1);
  return sets.empty() ? std::nullopt : std::optional(sets[0].makespan);
}

/// From the fastest of sets that a sample of states gave to the optimum, or near it: exchanges, then the recursion with
/// what they reached for a limit. Partial release.
static ChainPlan afterSampling(const Chain &chain, double memory, size_t limit, ChainPlan plan) {
  plan = exchanged(chain, memory, std::move(plan), Release::Partial);
  const Seconds cutoff = plan.timeline.makespan * (1 - 1e-9);
  ChainAnswer best = std::move(plan);
  for (const DynProgSet &set : DynProg(chain, memory, limit).run(1, cutoff))
    takeBetter(best, offloadChain(chain, memory, set.offloaded, Release::Partial));
  return std::get<ChainPlan>(std::move(best));
}

static ChainAnswer chainDynProg(const Chain &chain, double memory, Release release, const Options &options) {
  const std::vector<bool> none(chain.uF.size(), false);
  if (chainPeak(chain) <= memory)
    return offloadChain(chain, memory, none, release);
  const size_t count = release == Release::Partial ? 1 : numberKnob(options, "sets", 64);
  bool exact = true;
  std::vector<std::vector<bool>> sets;
  const size_t limit = numberKnob(options, "limit", 0) > 0 ? numberKnob(options, "limit", 0) : limitFor(chain);
  for (DynProgSet &set : dynprogSets(chain, memory, count, limit, exact))
    sets.push_back(std::move(set.offloaded));
  // A sample of states may miss what the prefix finds.
  if (release == Release::Whole || !exact || sets.empty())
    sets.push_back(greedyPrefix(chain, memory));
  ChainAnswer best = bestOffload(chain, memory, sets, release);
  auto *plan = std::get_if<ChainPlan>(&best);
  if (!plan || numberKnob(options, "exchanges", 1) <= 0)
    return best;
  if (release == Release::Whole)
    return exchanged(chain, memory, std::move(*plan), release);
  return exact ? best : ChainAnswer(afterSampling(chain, memory, limit, std::move(*plan)));
}

/// On op-level programs a stage is offloaded with all its activations. Its tensors die one by one there, so the chain
/// overestimates what stays; sets for more memory than there is are tried, too.
static Answer planDynProg(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(best, "dynprog", memory);
  if (!combiner.can(Action::Offload))
    return Refused{"strategy 'dynprog' needs action 'offload', which the target does not execute"};
  const Stages stages(problem);
  const Chain chain = stages.chain();
  Choice all;
  for (int i = 0; i < stages.count(); ++i)
    all.offloaded.insert(all.offloaded.end(), stages.activations(i).begin(), stages.activations(i).end());
  improve(best, combiner.attempt(all));
  Choice prefix;
  prefix.offloadRest = true;
  improve(best, combiner.attempt(prefix));
  const size_t count = std::max(1.0, numberKnob(options, "sets", 64) / 8);
  const size_t limit = numberKnob(options, "limit", 0);
  bool exact = true;
  for (double factor : {1.0, 1.05, 1.1, 1.2, 1.35})
    for (const DynProgSet &set :
         dynprogSets(chain, factor * (memory - problem.base), count, limit > 0 ? limit : 400, exact)) {
      Choice choice;
      for (int i = 1; i < stages.count(); ++i) // x_i is what stage i - 1 saved
        if (set.offloaded[i])
          choice.offloaded.insert(choice.offloaded.end(), stages.activations(i - 1).begin(),
                                  stages.activations(i - 1).end());
      improve(best, combiner.attempt(choice));
    }
  return answerOf(best, "dynprog", memory);
}

Strategy dynprogStrategy() {
  Strategy s{"dynprog", "offload the best set of stages (Beaumont et al. 2020)", planDynProg, chainDynProg};
  s.knobs = {{"limit", 1e5}, {"sets", 1e5}, {"exchanges"}};
  s.actions = {Action::Offload};
  s.weaker = {"greedy"};
  return s;
}

} // namespace sluice::planner

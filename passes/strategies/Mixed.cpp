// SPDX-License-Identifier: Apache-2.0
// mixed: our own. Every action on one branching program: lossless encodings, recomputation and offloading together, and
// inversion, compression and half-precision copies where they are allowed.
//
// Rule: what is cheap per byte is recomputed or inverted (normalization and activations before convolutions), what is
// expensive is offloaded while the link has time, earliest-born first, because early tensors have the longest windows
// and late ones none. How much of each is not guessed but tried: recompute sets are prefixes of the tensors by bytes
// per second of re-running, optionally without the borders of every g-th stage (which stops chains of re-runs) and
// without early tensors; every trial is completed by GREEDY's offloading and timed by the simulator. Allowed codecs of
// copies apply to all of them; compression takes the tensors born after what the link carries, as many as the codec
// stream packs in some share of the forward half. All that is tried with what may be inverted being inverted where that
// is cheaper than running it again, and wherever it is possible. The best is then improved by giving single tensors
// another action, and by random small sets of them, drawn in the same way every time. The registry lets faster plans of
// the other strategies take over, so mixed is never slower than they are. Under an error budget no codec is given:
// which form each tensor gets in device memory and on copies follows from how many bytes are to be freed that way,
// within what share of the budget (LossyForms.h); both are tried, and then other forms of single tensors. Where an op
// has alternative kernels, a plan with those of least workspace, which then takes faster ones where there is room,
// competes with the plan for those in use.
//
// Complexity O(trials * ops). Limits count trials, so planning is deterministic.
//
// Knobs: trials=0 (0: by the number of ops), recompute=1, offload=1, encode=1 (0 forbids the action), zvc=0 (1 leaves
// zeros out of copies of sparse tensors: on the host's target less host memory in use, no less reserved, never faster;
// on cuda, before the link, those that are faster so by the profile), takeover=1 (0: its own plan,
// whatever the others find).
//
// Fails below the live bytes of the smallest trial.
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"
#include "passes/strategies/Candidates.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Kernels.h"
#include "passes/strategies/Stages.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <limits>
#include <set>

namespace sluice::planner {

namespace {

class Mixed {
public:
  Mixed(const Problem &problem, Bytes memory, const Options &options)
      : combiner(problem, memory, options), stages(problem), problem(problem), memory(memory), options(options) {
    const double ops = std::max<size_t>(problem.ops.size(), 1);
    trials = numberKnob(options, "trials", 0);
    if (trials == 0)
      trials = std::clamp(1.3e6 / ops, 60.0, 3000.0);
    mayRecompute = combiner.can("recompute") && numberKnob(options, "recompute", 1) > 0;
    mayOffload = combiner.can("offload") && numberKnob(options, "offload", 1) > 0;
    mayEncode = numberKnob(options, "encode", 1) > 0;
    frame.offloadRest = mayOffload;
    if (problem.errorBudget)
      return;
    Decision halved;
    halved.codec = "fp16";
    if (combiner.can("fp16") && combiner.copiesWith("fp16") && copyGains(halved))
      frame.codec = "fp16";
    else if (combiner.can("zvc") && numberKnob(options, "zvc", 0) > 0)
      frame.codec = "zvc";
  }

  Answer run() {
    search();
    if (!best.feasible && memory > 0) {
      // The search went after this budget and found nothing; the one for the least memory ends at the smallest that
      // works.
      Mixed least(problem, 0, options);
      least.search();
      best = combiner.attempt(least.bestChoice);
    }
    return answerOf(best, "mixed", memory);
  }

private:
  void search() {
    best = combiner.attempt({});
    if (best.feasible)
      return;
    rankings = {rankTensors(combiner, mayRecompute, false)};
    // Where both cost about the same, only one may be possible in a row: running the sums of a reversible network again
    // needs their earlier neighbours, rebuilding them the later ones.
    if (Ranking other = rankTensors(combiner, mayRecompute, true); other.byInversion != rankings[0].byInversion)
      rankings.push_back(std::move(other));
    const std::vector<Choice> tried = frames();
    const double each = trials * 2 / 5 / (2 * tried.size() * rankings.size());
    for (const Ranking &next : rankings) {
      ranking = &next;
      for (const Choice &one : tried) {
        frame = one;
        consider({});
        if (mayRecompute || !ranking->byInversion.empty())
          for (double d : {4.0, 1e9}) {
            frame.dearer = d;
            sweep(each);
          }
      }
    }
    ranking = bestRanking ? bestRanking : &rankings[0];
    if (problem.errorBudget)
      refineForms(trials / 2);
    refine(trials / 5);
    disturb();
  }

  /// What trials have in common, one after the other: who is packed in device memory, and how.
  std::vector<Choice> frames() const {
    std::vector<Choice> all;
    const int carried = birthAfter(combiner, mayOffload ? 1 : 0);
    Choice next = frame;
    if (!problem.errorBudget)
      for (double share : anyPacked(combiner) ? std::vector<double>{0, 0.4, 0.8, 2} : std::vector<double>{0}) {
        next.compressed = packedWithin(combiner, share, carried);
        all.push_back(next);
      }
    for (const FormWish &wish : problem.errorBudget ? LossyForms::wishes({0, carried}) : std::vector<FormWish>()) {
      next.rates = wish;
      all.push_back(next);
    }
    return all;
  }

  /// True when a codec makes the largest copy shorter, not only smaller.
  bool copyGains(const Decision &with) const {
    const auto largest = std::max_element(problem.buffers.begin(), problem.buffers.end(),
                                          [](const Buffer &a, const Buffer &b) { return a.bytes < b.bytes; });
    const int b = static_cast<int>(largest - problem.buffers.begin());
    return largest != problem.buffers.end() && copySeconds(problem, b, with, true) < copySeconds(problem, b, {}, true);
  }

  enum class Outcome { Best, Slower, Dear, TooLarge };

  Choice choiceOf(Choice like, const std::vector<int> &dropped) const;
  Outcome attempt(const Choice &choice, const std::vector<int> &dropped);
  bool consider(const std::vector<int> &dropped);
  bool considerNeighbour(const std::vector<int> &changed);
  void sweep(double share);
  void prefixes(const std::vector<int> &order);
  bool considerForms(const FormWish &rates);
  void refineForms(double leave);
  void refine(double leave);
  void disturb();

  const Combiner combiner;
  const Stages stages;
  const Problem &problem;
  const Bytes memory;
  const Options &options;
  double trials = 0; ///< left; one that is given up early counts a quarter
  bool mayRecompute = false, mayOffload = false, mayEncode = false;
  std::vector<Ranking> rankings;
  const Ranking *ranking = nullptr; ///< of the trials to come
  Choice frame;                     ///< what they have in common
  Choice bestChoice;
  const Ranking *bestRanking = nullptr;
  std::vector<int> bestDropped;
  Attempt best;
};

Choice Mixed::choiceOf(Choice like, const std::vector<int> &dropped) const {
  like.recomputed.clear();
  like.inverted.clear();
  for (int b : dropped)
    (ranking->byInversion.count(b) ? like.inverted : like.recomputed).push_back(b);
  return like;
}

/// Tries a set of the ranked tensors, with and without encodings. True when it is the best so far.
bool Mixed::consider(const std::vector<int> &dropped) {
  bool won = false;
  for (bool encode : {true, false}) {
    if (encode && !mayEncode)
      continue;
    Choice choice = choiceOf(frame, dropped);
    choice.encode = encode;
    for (bool again : {false, true}) {
      choice.again = again;
      const Outcome outcome = attempt(choice, dropped);
      won |= outcome == Outcome::Best;
      if (outcome != Outcome::TooLarge || dropped.empty())
        break; // second re-runs are for budgets that nothing else reaches
    }
    if (std::none_of(problem.buffers.begin(), problem.buffers.end(),
                     [](const Buffer &b) { return !b.encodings.empty(); }))
      break;
  }
  return won;
}

/// Tries the best choice with other actions for some tensors. True when it is the best so far.
bool Mixed::considerNeighbour(const std::vector<int> &changed) {
  std::vector<int> dropped = bestDropped;
  for (int b : changed)
    if (const auto at = std::find(dropped.begin(), dropped.end(), b); at != dropped.end())
      dropped.erase(at);
    else
      dropped.push_back(b);
  return attempt(choiceOf(bestChoice, dropped), dropped) == Outcome::Best;
}

/// One trial.
Mixed::Outcome Mixed::attempt(const Choice &choice, const std::vector<int> &dropped) {
  Attempt made = combiner.attempt(choice, best.feasible ? best.makespan : std::numeric_limits<Seconds>::infinity());
  const bool dear = made.peak == std::numeric_limits<Bytes>::max();
  const Outcome otherwise = made.feasible ? Outcome::Slower : dear ? Outcome::Dear : Outcome::TooLarge;
  trials -= dear ? 0.25 : 1;
  if (!improve(best, std::move(made)))
    return otherwise;
  bestChoice = choice;
  bestRanking = ranking;
  bestDropped = dropped;
  return otherwise == Outcome::TooLarge ? otherwise : Outcome::Best;
}

/// Prefixes of an order by bytes: a coarse sweep, then finer around the best.
void Mixed::prefixes(const std::vector<int> &order) {
  Bytes total = 0;
  for (int b : order)
    total += problem.buffers[b].bytes;
  std::set<size_t> tried = {0};
  auto tryShare = [&](double share) {
    Bytes sum = 0;
    size_t length = 0;
    while (length < order.size() && sum < total * share)
      sum += problem.buffers[order[length++]].bytes;
    return tried.insert(length).second && consider({order.begin(), order.begin() + length});
  };
  double at = -1;
  for (double share : {1.0, 0.75, 0.5, 0.35, 0.2, 0.1})
    if (tryShare(share))
      at = share;
  for (double step : {0.08, 0.04, 0.02, 0.01, 0.005})
    for (double side : {-1.0, 1.0})
      if (at >= 0 && trials > 0 && at + side * step > 0 && at + side * step < 1 && tryShare(at + side * step))
        at += side * step;
}

void Mixed::sweep(double share) {
  const double leave = trials - share;
  // Early tensors have the longest windows, so they are left to the link: as many as it can carry during some share of
  // the forward half.
  for (double carried : {0.0, 0.5, 1.0, 1.7}) {
    const int from = birthAfter(combiner, carried);
    for (int spacing : {0, 1, 2, 3, 4, 6, 9}) {
      if (trials <= leave || spacing > stages.count())
        continue;
      std::vector<int> order;
      for (int b : ranking->order)
        if (combiner.accesses[b].first >= from && (spacing == 0 || !stages.anyCrosses(ranking->closures[b], spacing)))
          order.push_back(b);
      prefixes(order);
    }
  }
}

/// Gives single tensors another action while that helps: the most expensive re-runs are taken back, the cheapest
/// missing ones added.
void Mixed::refine(double leave) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto b = ranking->order.rbegin(); b != ranking->order.rend(); ++b) {
      if (trials <= leave)
        return;
      changed |= considerNeighbour({*b});
    }
  }
}

/// Tries the best choice with other lossy forms. True when it is the best so far.
bool Mixed::considerForms(const FormWish &rates) {
  Choice choice = bestChoice;
  choice.rates = rates;
  return attempt(choice, bestDropped) == Outcome::Best;
}

/// More and less packing and errors around the best; then other forms of single tensors.
void Mixed::refineForms(double leave) {
  if (!bestChoice.rates)
    return;
  for (double step : {0.08, 0.04, 0.02, 0.01})
    for (const FormWish &wish : LossyForms::around(*bestChoice.rates, step))
      if (trials > leave)
        considerForms(wish);
  for (bool changed = true; changed && trials > leave;) {
    changed = false;
    for (int b : combiner.lossy.packable())
      for (const FormWish &wish : combiner.lossy.withOtherForms(*bestChoice.rates, b))
        changed |= trials > leave && considerForms(wish);
  }
}

/// Gives some random tensors another action, half of them close in the ranking, until the trials are used up.
void Mixed::disturb() {
  uint32_t state = 1;
  auto random = [&](size_t n) {
    state = state * 1664525u + 1013904223u; // Numerical Recipes' generator; its high bits are the good ones
    return (state >> 8) % n;
  };
  const std::vector<int> &ranked = ranking->order;
  const std::vector<int> packed = bestChoice.rates ? combiner.lossy.packable() : std::vector<int>();
  while (trials > 0 && !ranked.empty()) {
    if (!packed.empty() && random(3) == 0) {
      const std::vector<FormWish> others =
          combiner.lossy.withOtherForms(*bestChoice.rates, packed[random(packed.size())]);
      considerForms(others[random(others.size())]);
      continue;
    }
    std::vector<int> changed;
    size_t at = random(ranked.size());
    for (size_t flips = 1 + random(4); flips > 0; --flips) {
      if (std::find(changed.begin(), changed.end(), ranked[at]) == changed.end())
        changed.push_back(ranked[at]);
      at = random(2) ? random(ranked.size()) : std::min(ranked.size() - 1, at + random(5));
    }
    considerNeighbour(changed);
  }
}

} // namespace

static Answer planOwn(const Problem &problem, Bytes memory, const Options &options) {
  return lossyOrExact(problem, memory, options, [](auto &p, Bytes m, auto &o) { return Mixed(p, m, o).run(); });
}

static Answer planMixed(const Problem &problem, Bytes memory, const Options &options) {
  return planWithKernels(problem, memory, options, planOwn);
}

/// Whole stages as units: their tensors move or run again together. Lossy actions as those strategies were published
/// that know them.
static ChainAnswer chainMixed(const Chain &chain, double memory, Release, const Options &options) {
  if (options.allowLossy.empty() || chain.bandwidth == 0)
    return ChainProblem(chain, true).run(memory, planMixed, options);
  Options allowed = everythingAllowed(options);
  allowed.allowLossy = options.allowLossy;
  return publishedProblem(chain).run(memory, planMixed, withoutUnnamed(allowed));
}

Strategy mixedStrategy() {
  Strategy s{"mixed", "encode, recompute and offload together; invert, compress and halve where allowed", planMixed,
             chainMixed};
  s.knobs = {{"trials", 1e7}, {"recompute"}, {"offload"}, {"encode"}, {"zvc"}, {"takeover"}};
  s.actions = allActions();
  s.takesOver = true;
  s.takenOver = {0, 0};
  return s;
}

Strategy autoStrategy() {
  Strategy s = mixedStrategy();
  s.name = "auto";
  s.summary = "mixed";
  return s;
}

} // namespace sluice::planner

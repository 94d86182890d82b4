// SPDX-License-Identifier: Apache-2.0
// See MixedSearch.h, and Mixed.cpp for the rule.
#include "passes/strategies/MixedSearch.h"

#include "passes/planner/Bounds.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"
#include "passes/strategies/PlanMoves.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace sluice::planner {

MixedSearch::MixedSearch(const Problem &problem, Bytes memory, const Options &options)
    : combiner(problem, memory, options), stages(problem), problem(problem), memory(memory), options(options) {
  const double ops = std::max<size_t>(problem.ops.size(), 1);
  trials = numberKnob(options, "trials", 0);
  if (trials == 0)
    trials = std::clamp(1.3e6 / ops, 60.0, 3000.0) / (options.sketch ? 8 : 1);
  all = trials;
  mayRecompute = combiner.can(Action::Recompute) && numberKnob(options, "recompute", 1) > 0;
  mayOffload = combiner.can(Action::Offload) && numberKnob(options, "offload", 1) > 0;
  mayEncode = numberKnob(options, "encode", 1) > 0;
  frame.offloadRest = mayOffload;
  if (problem.errorBudget)
    return;
  Decision halved;
  halved.codec = Codec::Fp16;
  if (combiner.can(Codec::Fp16) && copiesWith(problem, Codec::Fp16) && copyGains(halved))
    frame.codec = Codec::Fp16;
  // Where the link is a file, no codec is slower than it: leaving zeros out may gain and costs little.
  else if (const bool slow = factsOf(problem.home).packs == Packs::Pieces;
           combiner.can(Codec::Zvc) && numberKnob(options, "zvc", slow ? 1 : 0) > 0)
    frame.codec = Codec::Zvc;
}

Answer MixedSearch::run(const std::vector<SearchEnd> &others) {
  search(others);
  if (!best.feasible && memory > 0 && !options.sketch) {
    // The search went after this budget and found nothing; the one for the least memory ends at the smallest that
    // works.
    MixedSearch least(problem, 0, options);
    least.search({});
    best = combiner.attempt(least.bestChoice);
    bestChoice = least.bestChoice;
  }
  moveSingly();
  return answerOf(best, "mixed", memory);
}

/// Changes the best plan itself, where it may get better by much. Under an error budget forms depend on the whole plan,
/// and what is rebuilt has a place that follows from all re-runs: such plans stay as they are.
void MixedSearch::moveSingly() {
  constexpr double closeEnough = 1.005; // times the bound
  if (!best.feasible || !mayRecompute || problem.errorBudget || !bestChoice.inverted.empty())
    return;
  if (best.makespan > closeEnough * actionBound(problem, memory, allowedActions(options)))
    best = withMoves(combiner, bestChoice, std::move(best), all);
}

SearchEnd MixedSearch::end(Codec::Kind codec) const {
  SearchEnd result{bestChoice, bestDropped, 0};
  if (result.choice.rates)
    result.choice.rates->only = codec;
  if (bestRanking)
    result.ranking = static_cast<size_t>(bestRanking - rankings.data());
  return result;
}

// Trials are shared out: two fifths to sweeps over all frames, a tenth more to those with every gap, then what others
// have found, and the rest to refining, of which a fifth of all that is left is kept for random changes.
void MixedSearch::search(const std::vector<SearchEnd> &others) {
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
  frame = tried.front();
  sweepEveryGap(all / 10);
  for (const SearchEnd &other : others) {
    ranking = &rankings[std::min(other.ranking, rankings.size() - 1)];
    attempt(other.choice, other.dropped);
  }
  ranking = bestRanking ? bestRanking : &rankings[0];
  if (problem.errorBudget)
    refineForms(trials / 2);
  refine(trials / 5);
  disturb();
}

/// What trials have in common, one after the other: who is packed in device memory, and how.
std::vector<Choice> MixedSearch::frames() const {
  std::vector<Choice> all;
  const int carried = birthAfter(combiner, mayOffload ? 1 : 0);
  const int packedCarried = birthAfter(combiner, mayOffload ? 3 : 0); // about what int8 makes of that
  Choice next = frame;
  if (!problem.errorBudget)
    for (double share : anyPacked(combiner) ? std::vector<double>{0, 0.4, 0.8, 2} : std::vector<double>{0}) {
      next.compressed = packedWithin(combiner, share, carried);
      all.push_back(next);
    }
  for (const FormWish &wish :
       problem.errorBudget ? LossyForms::wishes({0, carried, packedCarried}) : std::vector<FormWish>()) {
    next.rates = wish;
    all.push_back(next);
  }
  return all;
}

bool MixedSearch::copyGains(const Decision &with) const {
  const auto largest = std::max_element(problem.buffers.begin(), problem.buffers.end(),
                                        [](const Buffer &a, const Buffer &b) { return a.bytes < b.bytes; });
  const int b = static_cast<int>(largest - problem.buffers.begin());
  return largest != problem.buffers.end() && copySeconds(problem, b, with, true) < copySeconds(problem, b, {}, true);
}

Choice MixedSearch::choiceOf(Choice like, const std::vector<int> &dropped) const {
  like.recomputed.clear();
  like.inverted.clear();
  for (int b : dropped)
    (ranking->byInversion.count(b) ? like.inverted : like.recomputed).push_back(b);
  return like;
}

/// Tries a set of the ranked tensors, with and without encodings. True when it is the best so far.
bool MixedSearch::consider(const std::vector<int> &dropped) {
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
bool MixedSearch::considerNeighbour(const std::vector<int> &changed) {
  std::vector<int> dropped = bestDropped;
  for (int b : changed)
    if (const auto at = std::find(dropped.begin(), dropped.end(), b); at != dropped.end())
      dropped.erase(at);
    else
      dropped.push_back(b);
  return attempt(choiceOf(bestChoice, dropped), dropped) == Outcome::Best;
}

/// One trial.
MixedSearch::Outcome MixedSearch::attempt(const Choice &choice, const std::vector<int> &dropped) {
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
void MixedSearch::prefixes(const std::vector<int> &order) {
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

/// Prefixes of the ranking, with early tensors left to the link, and with borders of every so many stages kept. Ends
/// when its share of the trials is used.
void MixedSearch::sweep(double share) {
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

/// The same with every gap of what is offloaded, near the floor, where nothing fits without or a tenth of the time is
/// lost. On trials of its own: what the search finds without them it still does.
void MixedSearch::sweepEveryGap(double share) {
  if (best.feasible && best.makespan <= 1.1 * combiner.computeOf(keepPlan(problem)))
    return;
  const Plan keep = keepPlan(problem);
  const auto longest = gapsOf(problem, keep, Gaps::Longest), every = gapsOf(problem, keep, Gaps::Every);
  bool more = false;
  for (size_t b = 0; b < every.size(); ++b)
    more |= problem.buffers[b].offloadable && every[b].size() > longest[b].size();
  if (!mayOffload || !more)
    return;
  const double before = std::exchange(trials, share);
  frame.gaps = Gaps::Every;
  for (const Ranking &next : rankings) {
    ranking = &next;
    consider({});
    if (mayRecompute || !ranking->byInversion.empty())
      for (double d : {4.0, 1e9}) {
        frame.dearer = d;
        sweep(share / 2 / static_cast<double>(rankings.size()));
      }
  }
  trials = before;
}

/// Gives single tensors another action while that helps: the most expensive re-runs are taken back, the cheapest
/// missing ones added.
void MixedSearch::refine(double leave) {
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
bool MixedSearch::considerForms(const FormWish &rates) {
  Choice choice = bestChoice;
  choice.rates = rates;
  return attempt(choice, bestDropped) == Outcome::Best;
}

/// More and less packing and errors around the best; then other forms of single tensors.
void MixedSearch::refineForms(double leave) {
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
void MixedSearch::disturb() {
  uint32_t state = 1;
  auto random = [&](size_t n) {
    state = state * 1664525u + 1013904223u; // Numerical Recipes' generator; its high bits are the good ones
    return (state >> 8) % n;
  };
  const std::vector<int> &ranked = ranking->order;
  const std::vector<int> packed = bestChoice.rates ? combiner.lossy.packable() : std::vector<int>();
  while (trials > 0 && !ranked.empty()) {
    if (!packed.empty() && random(3) == 0) {
      FormWish wish = *bestChoice.rates;
      for (size_t changes = 1 + random(3); changes > 0; --changes) {
        const std::vector<FormWish> others = combiner.lossy.withOtherForms(wish, packed[random(packed.size())]);
        wish = others[random(others.size())];
      }
      considerForms(wish);
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

} // namespace sluice::planner

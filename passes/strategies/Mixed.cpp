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
// is cheaper than running it again, and wherever it is possible; and, on a tenth more trials near the floor, with
// tensors that leave in every gap between two accesses instead of the longest one: skip connections among forward ops,
// gradients. The best is then improved by giving single tensors another action, and by random small sets of them, drawn
// in the same way every time; and then, where the bound leaves more than half a percent, by moves of the plan itself
// (PlanMoves.h), on as many trials again: a tensor may run again before several of its readers, before an earlier
// position, or leave though another was born earlier. The registry lets faster plans of the other strategies take over,
// so mixed is never slower than they are. Under an error budget no codec is given: which form each tensor gets in
// device memory and on copies follows from how many bytes are to be freed that way, within what share of the budget
// (LossyForms.h); both are tried, and then other forms of single tensors. Where an op has alternative kernels, a plan
// with those of least workspace, which then takes faster ones where there is room, competes with the plan for those in
// use.
//
// Complexity O(trials * ops). Limits count trials, so planning is deterministic.
//
// Knobs: trials=0 (0: by the number of ops), recompute=1, offload=1, encode=1 (0 forbids the action), zvc=0 (1 leaves
// zeros out of copies of sparse tensors: on the host's target less host memory in use, no less reserved, never faster;
// on cuda, before the link, those that are faster so by the profile), takeover=1 (0: its own plan,
// whatever the others find).
//
// Fails below the live bytes of the smallest trial.
#include "passes/planner/Words.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Kernels.h"
#include "passes/strategies/MixedSearch.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>

namespace sluice::planner {

static bool mayRound(const Options &options) { return !(options.executable & lossyActions()).empty(); }

/// The lossy codecs that options let plans use.
static std::vector<Codec::Kind> codecsOf(const Options &options) {
  std::vector<Codec::Kind> codecs;
  for (const CodecFacts &codec : codecTable)
    if (!codec.exact && options.executable.has(codec.kind))
      codecs.push_back(codec.kind);
  return codecs;
}

/// Under an error budget exact actions alone, and each codec alone: so no codec that is allowed makes a plan slower.
static std::vector<Options> fewerCodecs(const Problem &problem, const Options &options) {
  if (!problem.errorBudget || !mayRound(options))
    return {};
  const auto without = [&](Abilities others) {
    Options fewer = options;
    fewer.executable = options.executable - others;
    return fewer;
  };
  std::vector<Options> sets = {without(lossyActions())};
  if (const std::vector<Codec::Kind> codecs = codecsOf(options); codecs.size() > 1)
    for (const Codec::Kind codec : codecs)
      sets.push_back(without(lossyCodecs() - Abilities{codec}));
  return sets;
}

/// Exact actions need no search for forms; several codecs go on from where the searches with each of them ended.
static Answer planOwn(const Problem &problem, Bytes memory, const Options &options) {
  if (!problem.errorBudget)
    return MixedSearch(problem, memory, options).run();
  if (!mayRound(options)) {
    Problem exactly = problem;
    exactly.errorBudget.reset();
    return MixedSearch(exactly, memory, options).run();
  }
  std::vector<SearchEnd> ends;
  if (options.known)
    for (const KnownPlans &fewer : options.known->fewer)
      if (fewer.end)
        ends.push_back(*fewer.end);
  MixedSearch search(problem, memory, options);
  Answer answer = search.run(ends);
  if (const std::vector<Codec::Kind> codecs = codecsOf(options); options.known && codecs.size() == 1)
    options.known->end = std::make_shared<SearchEnd>(search.end(codecs.front()));
  return answer;
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
  s.fewer = fewerCodecs;
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

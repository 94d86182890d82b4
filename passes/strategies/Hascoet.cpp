// SPDX-License-Identifier: Apache-2.0
// hascoet: T. Hascoet, W. Zhuang, Q. Febvre, Y. Ariki, T. Takiguchi, Reducing the Memory Cost of Training Convolutional
// Neural Networks by CPU Offloading, Journal of Software Engineering and Applications 12, 2019, pages 307-320.
//
// Rule: copy the inputs of convolutions and pools to pinned host memory, converted to half precision on the way;
// rebuild the inputs of BatchNorm and LeakyReLU from the activation's output, which the next convolution needs anyway;
// copy back one layer ahead of the backward half. The set does not look at the budget. Algorithm 1: bytes are freed
// when the copy and the last layer that reads them have ended, for the input of a residual block that is the block's
// end. Algorithm 2: a layer's input is fetched when the backward step of the layer above starts; layers wait for copies
// that do not hide.
//
// Changed: where memory is short, ops wait for copies out. As printed the second algorithm waits for the copy of the
// layer above, which is there already; ours waits for the layer's own. Layers are those that have an input to fetch.
// BatchNorm's true scale is inverted, not |g| + eps, and channels that amplify rounding keep their values in a planned
// side slot.
//
// Complexity O(ops^2).
//
// Knobs: fp16=1 (0 copies raw bytes), invert=1 (0 keeps inputs of BatchNorm and LeakyReLU): the steps of the paper's
// ablation. layers=0 (N: the first N inputs are offloaded, 0: all), the paper's control of time against memory. stay=0
// (1: when bytes leave and return is chosen by our simulator, and tensors whose copies do not hide stay where memory
// allows).
//
// Fails where that set does not make enough room. Plain ReLU is not invertible: such networks keep what BatchNorm
// reads.
#include "passes/planner/Transfers.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <map>
#include <set>

namespace sluice::planner {

/// Algorithms 1 and 2 for what the choice moves. The second goes first: what it fetches early is on the device beside
/// what the first has still to copy out.
static Attempt asWritten(const Combiner &combiner, const Choice &choice) {
  const Problem &problem = combiner.problem;
  Plan plan = combiner.marked(choice);
  std::map<int, std::vector<int>> fetchedFor; // by position of the first reader
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b)
    if (plan.decisions[b].action == Action::Offload)
      fetchedFor[plan.decisions[b].absences.front().neededBy].push_back(b);
  int above =
      0; // the layer before it in the backward half; the first layers are fetched when the forward half has ended
  while (above < static_cast<int>(problem.ops.size()) && problem.ops[above].phase == Phase::Forward)
    ++above;
  for (const auto &[reader, tensors] : fetchedFor) {
    for (int b : tensors) {
      Absence &away = plan.decisions[b].absences.front();
      away.returnAfter = std::clamp(above - 1, away.freeBefore, away.neededBy - 1);
    }
    above = reader;
  }
  delayDepartures(problem, combiner.memory, plan, false);
  return measured(problem, combiner.memory, std::move(plan));
}

/// The set follows from kinds of layers alone. An input of a convolution or pool leaves; every other activation that
/// can be rebuilt is.
static Answer planHascoet(const Problem &problem, Bytes memory, const Options &options) {
  const bool halves = numberKnob(options, "fp16", 1) > 0, inverts = numberKnob(options, "invert", 1) > 0;
  for (auto [wanted, action] :
       {std::pair(true, Ability(Action::Offload)), {halves, Codec::Fp16}, {inverts, Action::Invert}})
    if (Status may = checkAbility(options, "hascoet", action); wanted && !may)
      return Refused{may.error()};
  const Combiner combiner(problem, memory, options);
  std::set<int> inputs;
  for (const Op &op : problem.ops)
    if (op.phase == Phase::Forward && (op.kind == OpKind::Conv || op.kind == OpKind::Pool))
      inputs.insert(op.reads.begin(), op.reads.end());
  Choice choice;
  choice.codec = halves ? Codec::Fp16 : Codec::None;
  const double layers = numberKnob(options, "layers", 0);
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (!inputs.count(b)) {
      if (inverts && problem.buffers[b].activation)
        choice.inverted.push_back(b);
    } else if (problem.buffers[b].offloadable && combiner.accesses[b].hasGap()) {
      choice.offloaded.push_back(b);
    }
  std::stable_sort(choice.offloaded.begin(), choice.offloaded.end(),
                   [&](int a, int b) { return combiner.accesses[a].first < combiner.accesses[b].first; });
  if (layers > 0 && layers < choice.offloaded.size())
    choice.offloaded.resize(static_cast<size_t>(layers));
  const bool mayStay = numberKnob(options, "stay", 0) > 0;
  return answerOf(mayStay ? combiner.attempt(choice) : asWritten(combiner, choice), "hascoet", memory);
}

/// x_i is the input of stage i. An inversion costs what the stage's forward op costs: it moves the same bytes.
static ChainAnswer chainHascoet(const Chain &chain, double memory, Release, const Options &options) {
  if (chain.kinds.empty())
    return Refused{"strategy 'hascoet' chooses by kind of layer, and the problem has no 'op'"};
  if (chain.bandwidth == 0)
    return Refused{"strategy 'hascoet' offloads, and the problem's 'bandwidth' is 0"};
  return publishedProblem(chain).run(memory, planHascoet, everythingAllowed(options));
}

Strategy hascoetStrategy() {
  Strategy s{"hascoet", "offload inputs of convolutions and pools in fp16, invert BatchNorm (Hascoet et al. 2019)",
             planHascoet, chainHascoet};
  s.knobs = {{"fp16"}, {"invert"}, {"layers"}, {"stay"}};
  s.actions = {Action::Offload, Codec::Fp16, Action::Invert};
  s.lossyAsPublished = true;
  return s;
}

} // namespace sluice::planner

// SPDX-License-Identifier: Apache-2.0
// hascoet: T. Hascoet, W. Zhuang, Q. Febvre, Y. Ariki, T. Takiguchi, Reducing the Memory Cost of Training Convolutional
// Neural Networks by CPU Offloading, Journal of Software Engineering and Applications 12, 2019, pages 307-320.
//
// Rule: copy the inputs of convolutions and pools to pinned host memory, converted to half precision on the way;
// rebuild the inputs of BatchNorm and LeakyReLU from the activation's output, which the next convolution needs anyway;
// copy back one layer ahead of the backward half. The set does not look at the budget.
//
// Changed: when bytes leave and return is chosen by our simulator instead of a thread that waits for events (the
// printed second algorithm waits for the wrong event); BatchNorm's true scale is inverted, not |g| + eps, and channels
// that amplify rounding keep their values in a planned side slot. Where an input of a convolution is the source of an
// inversion it is back in time for both.
//
// Complexity O(ops).
//
// Knobs: fp16=1 (0 copies raw bytes), invert=1 (0 keeps inputs of BatchNorm and LeakyReLU): the steps of the paper's
// ablation.
//
// Fails where that set does not make enough room. Plain ReLU is not invertible: such networks keep what BatchNorm
// reads.
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

#include <set>

namespace sluice::planner {

static Answer planHascoet(const Problem &problem, Bytes memory, const Options &options) {
  const bool halves = numberKnob(options, "fp16", 1) > 0, inverts = numberKnob(options, "invert", 1) > 0;
  for (auto [wanted, action] : {std::pair(true, "offload"), {halves, "fp16"}, {inverts, "invert"}})
    if (std::string missing = missingAction(options, "hascoet", action); wanted && !missing.empty())
      return Refused{missing};
  const Combiner combiner(problem, memory, options);
  std::set<int> inputs;
  for (const Op &op : problem.ops)
    if (op.phase == Phase::Forward && (op.kind == OpKind::Conv || op.kind == OpKind::Pool))
      inputs.insert(op.reads.begin(), op.reads.end());
  Choice choice;
  choice.codec = halves ? "fp16" : "";
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (inputs.count(b))
      choice.offloaded.push_back(b);
    else if (inverts && problem.buffers[b].activation)
      choice.inverted.push_back(b);
  return answerOf(combiner.attempt(choice), "hascoet", memory);
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
  s.knobs = {{"fp16"}, {"invert"}};
  s.actions = {"offload", "fp16", "invert"};
  s.lossyAsPublished = true;
  return s;
}

} // namespace sluice::planner
